"""One run of stages over visits of an archive: rows of the tables in, row logs out, here or on another machine.

Place in the flow: :mod:`gossamer.analysis.reprocess` cuts the wiring of a crawl at both ends, and puts a producer that reads visits
out of the archive where fetch was, a consumer that writes rows where commit was. Where a cluster is given, it sends parts of the
archive there (:func:`in_parts`), whose machines read the archive themselves (:func:`processed`) and give back row logs.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.catalog import catalog as shipped_catalog
from gossamer.engine.component import Consumer, Producer
from gossamer.engine.ends import In, Out
from gossamer.engine.files import scratch
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import Wiring
from gossamer.query.archive import ArchiveReader, archived_visit
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.storage.tables.places import CRAWL_FILE, rows_directory, segment_name, segments
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.outcome import TRANSIENT, Outcome
from gossamer.values.task import DONE, Answer, Disposition, RetryDecision
from gossamer.values.visit import Visit

#: The provider that says of an answer whether it was the last of its page, by its name in the catalog.
RULINGS = "archived-rulings"

#: Bytes of the archive that one part has, as of a dataset of Ray: it takes a core a minute, and what is lost is as much.
PART_BYTES = 128 << 20

#: A function that runs one of an installed package, `module:function`, from bytes to bytes, over parts, wherever that is.
Mapped = Callable[[str, Iterable[bytes]], Iterator[bytes]]


class ArchiveCounts(msgspec.Struct):
    documents: int = 0
    unreadable: int = 0
    newest: float = 0.0
    """When the newest visit of them was fetched, in seconds since the epoch; 0 where there is none."""
    rendered: int = 0
    rendered_alike: int = 0

    def add(self, part: "ArchiveCounts") -> None:
        self.newest = max(self.newest, part.newest)
        for name in ("documents", "unreadable", "rendered", "rendered_alike"):
            setattr(self, name, getattr(self, name) + getattr(part, name))


class ArchiveRun:
    """Reads visits, sends them through stages, and writes their rows."""

    def __init__(self, directory: Path, catalog: Catalog) -> None:
        """`catalog` gets the two ends, by the names that the wiring has."""
        self.counts = ArchiveCounts()
        self._reader = ArchiveReader(directory)
        self._rows: Iterable[Mapping[str, Any]] = ()
        self._catalog = catalog
        self._shown_before: dict[str, bytes] = {}
        """By visit, the digests of pages that are on their way."""
        visits, written = self._visits, self._written

        class Replay(Producer[NoSettings]):
            """Sends every visit that the archive has, in the order of the archive."""

            visits: Out[Visit]

            def produce(self) -> Iterable[Visit]:
                return visits()

        class Rows(Consumer[NoSettings]):
            """Writes the rows of visits."""

            visits: In[Visit]

            def consume_many(self, visits: list[Visit]) -> None:
                written(visits)

        catalog.add("archive-visits", Replay)
        catalog.add("visit-rows", Rows)
        catalog.add(RULINGS, ArchivedRulings)

    async def write(
        self, rows: Iterable[Mapping[str, Any]], wiring: Wiring, tables: tuple[str, ...], workspace: Path
    ) -> None:
        """Write row logs of these tables into a folder that is laid out as a crawl directory, out of these rows of `pages`."""
        self._rows = rows
        self._log = log = TableLog(TableLogSheet(directory=str(workspace), tables=tables, log=False, sha256=False))
        try:
            await RunningGraph(plan(wiring, self._catalog)).run()
        finally:
            await log.stop()

    def _visits(self) -> Iterator[Visit]:
        for row in self._rows:
            self.counts.newest = max(self.counts.newest, row["fetched_at"].replace(tzinfo=UTC).timestamp())
            try:
                visit = archived_visit(self._reader, {**row})
            except (UsageError, CrawlDirectoryError):
                self.counts.unreadable += 1
                continue
            if visit.is_part or (row["bytes"] and not visit.response.body):
                # Its body was not to be kept, or is a part of the document: the findings of that time are all that is known.
                continue
            self.counts.documents += 1
            if visit.rendered is not None and visit.rendered.dom:
                self._shown_before[visit.id] = hashlib.sha1(visit.rendered.dom, usedforsecurity=False).digest()
            yield visit

    def _written(self, visits: list[Visit]) -> None:
        # Of the pages that a browser showed note is taken: only those have a digest of their markup.
        for visit in visits:
            before, now = self._shown_before.pop(visit.id, b""), visit.rendered
            if now is not None and now.digest:
                self.counts.rendered += 1
                self.counts.rendered_alike += before == hashlib.sha1(now.dom, usedforsecurity=False).digest()
        self._log.append(visits, [None] * len(visits))


class ArchivedRulings(Provider[NoSettings]):
    """Knows a failure that was tried again by its outcome: the last try is called otherwise.

    Contract: `parsing.contract.Rulings`.
    """

    def expected(self, answer: Answer) -> RetryDecision:
        is_last = answer.outcome not in TRANSIENT or answer.outcome is Outcome.GONE_AFTER_RETRIES
        return DONE if is_last else RetryDecision(Disposition.RETRY)


# -- parts that other machines process


class ArchivePart(msgspec.Struct):
    """The orders for one of them."""

    directory: str
    wiring: Wiring
    tables: tuple[str, ...]
    rows: list[dict[str, Any]] = []


class ProcessedPart(msgspec.Struct):
    counts: ArchiveCounts
    logs: list[tuple[str, bytes]]
    """Row logs, each with its table."""


async def in_parts(
    mapped: Mapped, rows: Iterable[dict[str, Any]], told: ArchivePart, workspace: Path, most: int
) -> ArchiveCounts:
    """As :meth:`ArchiveRun.write`, by parts of `most` bytes of the archive and one record more; returns the counts of all."""

    def parts() -> Iterator[bytes]:
        held, size = list[dict[str, Any]](), 0
        for row in rows:
            held.append(row)
            size += row["warc_length"] or 0
            if size >= most:
                yield msgspec.msgpack.encode(msgspec.structs.replace(told, rows=held))
                held, size = [], 0
        if held:
            yield msgspec.msgpack.encode(msgspec.structs.replace(told, rows=held))

    counts, number = ArchiveCounts(), 0
    answers = mapped(f"{__name__}:{processed.__name__}", parts())
    while (answer := await asyncio.to_thread(next, answers, None)) is not None:
        part = msgspec.msgpack.decode(answer, type=ProcessedPart)
        counts.add(part.counts)
        place, number = rows_directory(workspace, f"part-{number:06}"), number + 1
        place.mkdir(parents=True)
        for serial, (table, log) in enumerate(part.logs, 1):
            (place / segment_name(table, "0", serial)).write_bytes(log)
    return counts


def processed(given: bytes) -> bytes:
    """Process a part on this machine. Raises CrawlDirectoryError: the crawl cannot be reached from here."""
    part = msgspec.msgpack.decode(given, type=ArchivePart)
    if not Path(part.directory, CRAWL_FILE).exists():
        raise CrawlDirectoryError(
            f"{part.directory} is not on every machine of the cluster; put the crawl on a disk that all of them see"
        )
    for row in part.rows:
        row["fetched_at"] = datetime.fromisoformat(row["fetched_at"])
    run = ArchiveRun(Path(part.directory), shipped_catalog())
    with scratch() as folder:
        asyncio.run(run.write(part.rows, part.wiring, part.tables, Path(folder)))
        logs = [(one.table, one.path.read_bytes()) for one in segments(Path(folder))]
    return msgspec.msgpack.encode(ProcessedPart(run.counts, logs))
