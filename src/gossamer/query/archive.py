"""Documents by URL: found in the index, in runs that are not merged yet, and in row logs that have no run yet.

Place in the flow: `gossamer cat` and :mod:`gossamer.operations.reprocess` read here; it works while the crawl runs.
"""

import contextlib
from pathlib import Path

import msgspec

from gossamer.model.errors import UsageError
from gossamer.model.outcome import TRANSIENT, of_status
from gossamer.model.visit import Location
from gossamer.stores.cdxj import INDEX, IndexedCapture, find, found_in
from gossamer.stores.segments import segments
from gossamer.stores.warc import WARC_DIRECTORY
from gossamer.stores.warc_reading import ArchivedRecord, read_record


class ArchivedDocument(msgspec.Struct, frozen=True):
    """What the archive keeps of one fetch."""

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
            url: canonical.
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
        """The record of a capture."""
        entry = capture.entry
        place = Location(f"{WARC_DIRECTORY}/{Path(entry.filename).name}", int(entry.offset), int(entry.length))
        return self.record(place)

    def record(self, place: Location) -> ArchivedRecord:
        """The record that lies there.

        Raises:
            CrawlDirectoryError: it cannot be read.
        """
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
