"""Documents by URL, and the index by which they are found.

Place in the flow: `gossamer cat` and :mod:`gossamer.analysis.reprocess` find documents here, in the index, in runs that are not
merged yet, and in row logs that have no run yet; it works while the crawl runs. :mod:`gossamer.query.convert` has the index made
again from the archive where it is lost or cut: of committed records alone, and of none that cannot be read.
"""

import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from gossamer.documents.statements import NO_COPY
from gossamer.storage.archive.cdxj import Capture, IndexedCapture, find, found_in, index_line
from gossamer.storage.archive.contract import INDEX
from gossamer.storage.archive.reading import CAPTURES, ArchivedRecord, Gap, Span, read_record, scan
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.tables.places import segments
from gossamer.values.errors import UsageError
from gossamer.values.media_type import essence
from gossamer.values.outcome import TRANSIENT, Outcome, of_status
from gossamer.values.visit import Location


class ArchivedDocument(msgspec.Struct, frozen=True):
    """The records of one fetch in the archive."""

    record: ArchivedRecord
    """The response or revisit record of the fetch itself."""
    source: ArchivedRecord
    """The record that holds the body: another one where the fetch brought the same bytes again."""

    @property
    def is_kept_out(self) -> bool:
        """A rule of the crawl kept the body out of the archive: the record ends behind the header block."""
        one = self.source
        return one.kind != "revisit" and one.fields.get("warc-truncated") == "unspecified" and not one.body


class ArchiveReader:
    """Finds and reads what a crawl archived."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def captures(self, url: str) -> list[IndexedCapture]:
        """Every capture of a canonical URL, the oldest first."""
        # Logs, then runs, then the index: a row moves on in this order, and is in the next place before it leaves one.
        found: set[IndexedCapture] = set()
        for segment in segments(self.directory):
            if segment.table == "pages":
                with contextlib.suppress(FileNotFoundError), segment.path.open("rb") as rows:
                    found.update(found_in((row for row in rows if row.endswith(b"\n")), url))
        for run in self.directory.glob("state/*/index/*.cdxj"):
            found.update(find(run, url))
        found.update(find(self.directory / INDEX, url))
        return sorted(found, key=lambda one: (one.timestamp, one.entry.filename, int(one.entry.offset)))

    def document(self, url: str, at: str = "") -> ArchivedDocument:
        """The version of a document that stands last, with its body: an answer of a failing server takes no other's place.

        Args:
            at: digits of a time, as `202603`: what stood at its end.

        Raises:
            UsageError: there is none.
            CrawlDirectoryError: the archive is damaged there.
        """
        captures = [one for one in self.captures(url) if not at or one.timestamp[: len(at)] <= at]
        captures = [one for one in captures if not _is_passing(one.entry.status)] or captures
        if not captures and not (self.directory / WARC_DIRECTORY).is_dir():
            raise UsageError(f"{self.directory} has no archive: its crawl ran with --no-warc, or archived nothing")
        if not captures:
            when = f" as it was at {at}" if at else ""
            raise UsageError(f"{url} is not in the archive of {self.directory}{when}; `gossamer why` tells its story")
        record = self.read(captures[-1])
        return ArchivedDocument(record, self.original(record, url, captures[-1].entry.digest.removeprefix("sha1:")))

    def read(self, capture: IndexedCapture) -> ArchivedRecord:
        entry = capture.entry
        place = Location(f"{WARC_DIRECTORY}/{Path(entry.filename).name}", int(entry.offset), int(entry.length))
        return self.record(place)

    def record(self, place: Location) -> ArchivedRecord:
        """The record that lies there. Raises CrawlDirectoryError: it cannot be read."""
        return read_record(self.directory, place)

    def original(self, record: ArchivedRecord, url: str, digest: str = "") -> ArchivedRecord:
        """The record that holds the body: itself, or the one that a revisit refers to.

        That is the one of the date that it names, otherwise one with this digest, otherwise the last one before.

        Raises:
            UsageError: it is not in this archive.
        """
        if record.kind != "revisit":
            return record
        target = record.fields.get("warc-refers-to-target-uri", url)
        date = _digits(record.fields.get("warc-refers-to-date", ""))
        at = _digits(record.fields.get("warc-date", ""))
        others = [one for one in self.captures(target) if one.entry.mime != "warc/revisit"]
        chosen = (
            [one for one in others if date and one.timestamp == date]
            or [one for one in others if digest and one.entry.digest == f"sha1:{digest}"]
            or [one for one in others if one.timestamp <= at]
        )
        if not chosen:
            raise UsageError(f"{url} was fetched again unchanged, and the document it repeats is not in this archive")
        return self.read(chosen[-1])


def _is_passing(status: str) -> bool:
    """Whether an answer with this status says nothing of the document (as :data:`gossamer.query.schema.TELLING` has it)."""
    return status.isdigit() and of_status(int(status)) in TRANSIENT


def _digits(date: str) -> str:
    return "".join(letter for letter in date[:19] if letter.isdigit())


# The index made again. It reads all of the archive, and holds the lines of one part of it at a time.

#: Lines that are sorted at once: 30 MB of them.
_LINES = 100_000


def archive_ends(directory: Path) -> dict[str, int]:
    """The archive files of a crawl, inside its directory, and how far each is committed by its ledgers.
    Raises CrawlDirectoryError: a ledger cannot be read."""
    ends: dict[str, int] = {}
    for path in sorted((directory / STATE_DIRECTORY).glob("*/ledger")):
        ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=path.parent.name))
        with ledger.looking():
            ends.update(ledger.committed_ends())
    return {file: end for file, end in sorted(ends.items()) if file.startswith(f"{WARC_DIRECTORY}/")}


def runs_of(directory: Path, workspace: Path, damaged: Callable[[str, Gap], None]) -> list[Path]:
    """Sorted runs in `workspace` with a line for every capture of the archive that was committed and can be shown.

    Args:
        workspace: where they are written.
        damaged: is told of each gap, with the name of its file.
    """
    lines = (
        line
        for file, end in archive_ends(directory).items()
        if (directory / file).exists()
        for capture in captures(directory, file, end, damaged)
        if (line := index_line(capture)) is not None
    )
    runs: list[Path] = []
    while part := sorted(islice(lines, _LINES)):
        runs.append(workspace / f"again-{len(runs)}")
        runs[-1].write_bytes(b"".join(part))
    return runs


def captures(directory: Path, file: str, end: int, damaged: Callable[[str, Gap], None]) -> Iterator[Capture]:
    beside = b""
    for found in scan(directory / file, end):
        if isinstance(found, Gap):
            damaged(file, found)
            continue
        if found.kind == "metadata":
            beside = found.told
            continue
        if found.kind in CAPTURES:
            yield capture_of(found, file, is_kept=_is_kept(found, beside), request=_told(beside, b"request"))
        beside = b""


def _is_kept(span: Span, beside: bytes) -> bool:
    """Whether a page let a copy be kept: of one that did not there is a record cut behind its header block, which says so."""
    if span.size or span.kind == "revisit" or "warc-truncated" not in span.fields:
        return True
    told = _told(beside, b"noarchive")
    return bool(told) and NO_COPY not in told


def _told(beside: bytes, name: bytes) -> str:
    """A field of the record beside an answer; empty where it has none."""
    lines = (line for line in beside.split(b"\r\n") if line.startswith(name + b":"))
    return next(lines, b"").partition(b":")[2].strip().decode("utf-8", "replace")


def capture_of(span: Span, file: str, *, is_kept: bool, request: str = "") -> Capture:
    """The source of an index line, read out of a record of the archive that holds an answer.

    Args:
        file: the archive file, inside the crawl directory.
        is_kept: False where the record beside it says that no copy was to be kept.
        request: what the record beside it says was asked for beside the URL.
    """
    fields = span.fields
    lines = span.head.split(b"\r\n")
    words = lines[0].split(None, 2)
    kinds = (line.partition(b":")[2] for line in lines[1:] if line.lower().startswith(b"content-type:"))
    mime = next(kinds, b"").decode("latin-1") if span.head else fields.get("content-type", "")
    is_not_modified = fields.get("warc-profile", "").endswith("/server-not-modified")
    return Capture(
        url=fields.get("warc-target-uri", ""),
        fetched_at=fields.get("warc-date", ""),
        outcome=Outcome.NOT_MODIFIED if is_not_modified else Outcome.OK,
        status=int(words[1]) if len(words) > 1 and words[1].isdigit() else 0,
        mime=essence(mime),
        digest=fields.get("warc-payload-digest", "").removeprefix("sha1:"),
        duplicate_of=fields.get("warc-refers-to-target-uri", "") if span.kind == "revisit" else "",
        noarchive=not is_kept,
        request=request,
        warc_file=file,
        warc_offset=span.offset,
        warc_length=span.length,
    )
