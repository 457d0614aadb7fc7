"""Whether a crawl directory agrees with itself: ledger = archive = log = tables = counters (docs/design/kills.md, I4 to I6, I8).

`gossamer verify --deep` comes first: committed ends, what was made, every record. What follows is for the kill loop, and holds the
whole log in memory: counters as sums over the log, rows against lines, and a second reader. Everything is read and nothing
changed. The archive is read by two readers that share no code: warcio, record by record from
end to end, and Gossamer's own, at the places that the ledger names. The crawl must rest; after a kill the
tails that the next start would cut off are told as notes, not as findings.
"""

import io
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from warcio.archiveiterator import ArchiveIterator

from gossamer.analysis import verifying
from gossamer.crawls.control.resting import has_gone_back
from gossamer.query.database import Database
from gossamer.storage.archive.reading import read_record
from gossamer.storage.ledger.ledger import RocksLedger, ledgers_of
from gossamer.storage.logs import LOG_PATH
from gossamer.values.body import sha1_base32
from gossamer.values.errors import CrawlDirectoryError, GossamerError
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import ANSWERED, DOCUMENTS, Outcome
from gossamer.values.task import WANT

#: Where in the archive a record lies: file, offset, length.
Place = tuple[str, int, int]


class Verified(verifying.Verified):
    """The findings of `gossamer verify`, and the rest. Records are responses and revisits that were read back."""

    lines: int = 0
    """Visits in the crawl's log, robots.txt among them."""
    counters: dict[str, int] = msgspec.field(default_factory=dict)
    is_torn: bool = False
    """There are bytes behind what was committed, as a kill leaves them."""

    def check(self, what: str, found: object, wanted: object) -> None:
        """Two figures must be the same."""
        if found != wanted:
            self.find(f"{what}: {found} where {wanted} belong")


class _Record(msgspec.Struct, frozen=True):
    url: str
    kind: str
    digest: str
    """SHA-1 of the body that was read, base32; of a revisit, what it says itself."""


def verify(directory: Path) -> Verified:
    """Compare everything with everything.

    Raises:
        CrawlDirectoryError: there is no ledger to begin with.
    """
    told = Verified(str(directory))
    ledgers = ledgers_of(directory)
    for finding in verifying.verify(directory, deep=True).findings:
        told.find(finding)
    ends: dict[str, int] = {}
    """The committed ends of files; of a ledger that cannot be read, none."""
    for ledger in ledgers:
        try:
            with ledger.looking():
                ends |= ledger.committed_ends()
        except CrawlDirectoryError as error:
            told.find(str(error))
    records = dict(_archived(directory, ends, told))
    lines = list(_logged(directory, told))
    told.records, told.lines = len(records), len(lines)
    gone_back = has_gone_back(directory)
    if gone_back:
        told.notes.append("the crawl went back to a checkpoint: archive and log hold more than the ledger")
    for ledger in ledgers:
        try:
            with ledger.looking():
                _check_ledger(directory, ledger, records, lines, told, gone_back=gone_back)
        except CrawlDirectoryError as error:
            told.find(str(error))
    _check_log(records, lines, told)
    _check_tables(directory, lines, told)
    return told


# -- what there is


class _Beginning(io.RawIOBase):
    """A file up to a byte: what was committed of it."""

    def __init__(self, file: BinaryIO, end: int) -> None:
        self._file = file
        self._left = end

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data


def _archived(directory: Path, ends: Mapping[str, int], told: Verified) -> Iterator[tuple[Place, _Record]]:
    """Every response and revisit of the archive that was committed, by its place."""
    for path in sorted(directory.glob("warc/*.warc.gz")):
        name = path.relative_to(directory).as_posix()
        if name not in ends:
            told.notes.append(f"{name}: the next start takes it away, since nothing of it was committed")
            told.is_torn = True
            continue
        try:
            yield from _records_of(path, name, ends[name], told)
        except Exception as error:
            told.find(f"{name} cannot be read to its end: {type(error).__name__}: {error}")


def _records_of(path: Path, name: str, committed: int, told: Verified) -> Iterator[tuple[Place, _Record]]:
    end = 0
    with path.open("rb") as file:
        records = ArchiveIterator(_Beginning(file, committed), check_digests=True)
        for record in records:
            kind, fields = record.rec_type, record.rec_headers
            body = record.raw_stream.read()
            length = fields.get_header("Content-Length")
            url, offset = fields.get_header("WARC-Target-URI") or "", records.get_record_offset()
            size = records.get_record_length()
            end = offset + size
            if record.digest_checker is not None and record.digest_checker.passed is False and kind != "revisit":
                told.find(f"{name} at byte {offset}: {record.digest_checker.problems}")
            if length is None:
                told.find(f"{name} at byte {offset}: a record without a length")
            if kind in ("response", "revisit"):
                said = (fields.get_header("WARC-Payload-Digest") or "").removeprefix("sha1:")
                digest = said if kind == "revisit" else sha1_base32(body)
                if kind == "response" and said and said != digest:
                    told.find(f"{name} at byte {offset}: {url} has another body than its record says")
                yield (name, offset, size), _Record(url, kind, digest)
    told.check(f"end of the last committed record of {name}", end, committed)


def _logged(directory: Path, told: Verified) -> Iterator[dict[str, Any]]:
    """Every visit in the crawl's log; a torn last line was never committed."""
    path = directory / LOG_PATH
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                told.notes.append(f"{LOG_PATH}: the last line is torn")
                return
            try:
                row = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                told.find(f"{LOG_PATH}, line {number}: {error}")
                continue
            if row.get("event") in ("page", "robots"):
                yield row


# -- what must agree


def _check_ledger(
    directory: Path,
    ledger: RocksLedger,
    records: dict[Place, _Record],
    lines: list[dict[str, Any]],
    told: Verified,
    *,
    gone_back: bool,
) -> None:
    told.counters = counters = dict(ledger.counters())
    committed = _committed(directory, ledger, lines, told)
    last = {row["url"]: row for row in committed if row["event"] == "page"}
    wants = 0
    for row in ledger.documents():
        told.rows += 1
        wants += row.relation.startswith(WANT)
        _check_row(directory, row, records, last.get(row.url), told)
    for space in ledger.spaces.figures():
        if space.wrong or not space.version:
            told.find(f"the space {space.owner!r} of the ledger does not add up under {space.wrong} hosts")
    if gone_back:
        return
    _check_counters(counters, committed, told)
    unfinished = len(ledger.queues) + counters.get("set_aside", 0)
    done = told.rows - wants  # what a page has asked for while it was rendered, the crawl has not discovered
    if not done <= counters.get("discovered", 0) <= done + unfinished:
        told.find(f"{counters.get('discovered', 0)} URLs were discovered, {done} are done and {unfinished} wait")
    if not unfinished and done:
        told.check("URLs that are done", done, counters.get("discovered", 0))


def _committed(
    directory: Path, ledger: RocksLedger, lines: list[dict[str, Any]], told: Verified
) -> list[dict[str, Any]]:
    """The log as far as it was committed."""
    for name, end in ledger.committed_ends().items():
        path = directory / name
        if not path.exists():  # row logs go when they are tables; what is missing otherwise was told
            continue
        size = path.stat().st_size
        if size > end:
            told.is_torn = True
            told.notes.append(f"{name}: the next start cuts {size - end} uncommitted bytes off")
            if ledger.is_clean:
                told.find(
                    f"{name} goes on for {size - end} bytes behind what was committed, though the crawl ended well"
                )
    if not told.is_torn or not (directory / LOG_PATH).exists():
        return lines
    end = ledger.committed_ends().get(LOG_PATH, 0)
    whole = (directory / LOG_PATH).read_bytes()[:end]
    return [row for row in map(msgspec.json.decode, whole.splitlines()) if row.get("event") in ("page", "robots")]


def _check_row(
    directory: Path, row: DocumentRow, records: dict[Place, _Record], line: dict[str, Any] | None, told: Verified
) -> None:
    """One document row: the log's last word on the URL, and the record that it points to, by both readers."""
    if line is None:
        told.find(f"{row.url} is done in the ledger and not in the log")
        return
    told.check(f"outcome of {row.url} in the log", line["outcome"], str(row.outcome))
    if row.location is None:
        return
    place = (row.location.file, row.location.offset, row.location.length)
    told.check(f"place of {row.url} in the log", _place_of(line), place)
    record = records.get(place)
    if record is None:
        told.find(f"{row.url}: the archive has no record at {place}")
        return
    told.check(f"URL of the record at {place}", record.url, row.url)
    if row.digest and record.kind == "response":
        told.check(f"digest of the record of {row.url}", record.digest, row.digest)
    try:
        ours = read_record(directory, row.location)
    except CrawlDirectoryError as error:
        told.find(str(error))
        return
    told.check(f"URL by our own reader at {place}", ours.fields.get("warc-target-uri"), row.url)
    if row.digest and ours.kind == "response":
        told.check(f"digest by our own reader of {row.url}", sha1_base32(ours.body), row.digest)


def _place_of(line: dict[str, Any]) -> Place | None:
    if "warc_file" not in line:
        return None
    return line["warc_file"], line["warc_offset"], line["warc_length"]


def _check_counters(counters: dict[str, int], lines: list[dict[str, Any]], told: Verified) -> None:
    """The counters are the sums over the log."""
    pages = [line for line in lines if line["event"] == "page"]
    told.check("visits", counters.get("visits", 0), len(pages))
    told.check("fetched", counters.get("fetched", 0), sum(line["outcome"] in ANSWERED for line in pages))
    told.check("bytes", counters.get("bytes", 0), sum(line["bytes"] for line in pages))
    outcomes = Counter(line["outcome"] for line in pages)
    for outcome in Outcome:
        if outcome is not Outcome.ROBOTS_UNREACHABLE and not any(
            line["outcome"] == outcome for line in lines if line["event"] == "robots"
        ):
            told.check(f"outcome {outcome}", counters.get(f"outcome:{outcome}", 0), outcomes[outcome])
    documents = [line for line in pages if line["outcome"] in DOCUMENTS and not line.get("discarded")]
    html = {line["url"] for line in documents if line.get("media_type", line.get("mime")) in HTML_TYPES}
    told.check("pages", counters.get("pages", 0), len(html))


def _check_log(records: dict[Place, _Record], lines: list[dict[str, Any]], told: Verified) -> None:
    """Each line that names a record has it, and no record is without a line."""
    named = Counter(place for line in lines if (place := _place_of(line)) is not None)
    for place, count in named.items():
        if count > 1:
            told.find(f"{count} lines of the log name the record at {place}")
        if place not in records:
            told.find(f"the log names a record at {place}, and there is none")
    without = [place for place in records if place not in named]
    if without and told.is_torn:
        told.notes.append(f"{len(without)} records were not committed")
    else:
        for place in without:
            told.find(f"the record of {records[place].url} at {place} is in no log")


def _check_tables(directory: Path, lines: list[dict[str, Any]], told: Verified) -> None:
    """The table of pages has the log's rows; not compared where a kill left uncommitted ones in either."""
    if told.is_torn:
        return
    pages = [line for line in lines if line["event"] == "page"]
    with Database(directory) as database:
        sums = database.ask("SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(warc_offset), 0) FROM pages_all")
        found = next(iter(sums))
    wanted = (len(pages), sum(line["bytes"] for line in pages), sum(line.get("warc_offset", 0) for line in pages))
    told.check("rows, bytes and offsets of the table of pages", tuple(map(int, found)), wanted)


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        print("usage: ./gossamer dev verify DIR...", file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    worst = 0
    for name in arguments:
        try:
            told = verify(Path(name))
        except GossamerError as error:
            print(f"{name}: {error}")
            worst = 5
            continue
        for line in told.notes:
            print(f"{name}: note: {line}")
        for line in told.findings:
            print(f"{name}: {line}")
        verdict = "agrees with itself" if told.is_whole else "does not agree with itself"
        print(f"{name}: {verdict}: {told.rows} rows, {told.records} records, {told.lines} lines of the log")
        worst = worst if told.is_whole else 5
    return worst
