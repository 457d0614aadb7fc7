"""Old versions of pages, taken out of a crawl at rest, so that its archive does not grow for ever.

Place in the flow: `gossamer trim` calls :func:`trim`; the order of the steps is that of every rewriting
(:mod:`gossamer.analysis.rewriting`). Everything that stays of a file that loses something is copied into a new file. Ledger and
tables name the new places before the old file goes.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from gossamer.analysis.rewriting import CrawlRewriting, rewrite
from gossamer.analysis.verifying import RecordPlaces
from gossamer.engine.files import AppendFile, Point, crash_at, pieces_of
from gossamer.query.table_rewrites import SCANNED, choose, move_rows
from gossamer.storage.archive.reading import CAPTURES, Span, opened, scan
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.ledger.moving import move
from gossamer.storage.rewrite_journals import FOLDER, Trim
from gossamer.values.errors import UsageError
from gossamer.values.visit import Location

#: A new file is begun behind the old one by which the last grew this large: as archive files of a crawl are.
ROTATE_BYTES = 1 << 30

#: Fields of a capture, in the order of the last names of :data:`SCANNED`.
_FIELDS = (
    "warc-target-uri",
    "warc-date",
    "warc-type",
    "warc-payload-digest",
    "warc-refers-to-target-uri",
    "warc-refers-to-date",
)


class Trimmed(msgspec.Struct, frozen=True):
    versions: int
    visits: int
    """Visits that are gone from the tables."""
    records: int
    """Answers that are gone from the archive."""
    bytes: int
    """Bytes by which the archive shrank."""
    rows: int
    """Rows of all tables that are gone."""


def trim(
    directory: Path,
    versions: int | None,
    now: float,
    *,
    accept: bool = False,
    remark: Callable[[str], object] = lambda _: None,
) -> Trimmed:
    """Keep so many versions of each page, at least 1, after finishing what an earlier call has begun, or only finish that;
    returns what the last trim did. The others are as of :func:`~gossamer.analysis.rewriting.rewrite`. Raises UsageError: no
    trim is to be finished."""
    wanted = None if versions is None else Trim(versions)
    done = rewrite(directory, "trim", wanted, now, accept=accept, remark=remark)
    trimmed = [one for one in done if isinstance(one, Trimmed)]
    if not trimmed:
        raise UsageError(f"no trim of {directory} is under way; say how much stays: --keep-versions N")
    return trimmed[-1]


class Trimming(CrawlRewriting):
    journal: Trim

    @property
    def is_idle(self) -> bool:
        return self.journal.is_placed and not (self.journal.old or self.journal.visits)

    def place(self) -> dict[str, Any]:
        """Choose what goes, and copy what stays of the files that lose something."""
        for left in (self.directory / WARC_DIRECTORY).glob("*.warc.gz.new"):  # of a call that was killed
            left.unlink()
        self._write("scanned", self._scanned())
        crash_at(Point.DELETION)
        folder = self.directory / FOLDER
        visits, records = choose(self.directory, self._file("scanned"), self.journal.versions, folder)
        old = [line["file"] for line in self._lines("files")]
        new = self._copy(set(old))
        crash_at(Point.DELETION)
        before = sum((self.directory / file).stat().st_size for file in old)
        after = sum(size for files in new.values() for size in files.values())
        return {"old": tuple(old), "new": new, "visits": visits, "records": records, "freed": before - after}

    def _scanned(self) -> Iterator[dict[str, object]]:
        """A line for each capture of the archive that was committed."""
        for file, spans in self.archive():
            start: int | None = None
            for found in spans:
                if found.kind in CAPTURES:
                    values = (file, found.offset if start is None else start, found.offset, found.length)
                    told = (found.fields.get(name, "") for name in _FIELDS)
                    yield dict(zip(SCANNED, (*values, *told), strict=True))
                    start = None
                elif "warc-target-uri" not in found.fields:  # of a file, or of bytes that are gone
                    start = None
                elif start is None:
                    start = found.offset

    def _copy(self, old: set[str]) -> dict[str, dict[str, int]]:
        """Write what stays into new files beside their places; returns these by agent, with their bytes."""
        owners = {file: ledger.sheet.agent for ledger in self.ledgers for file in ledger.committed_ends()}
        copies = {agent: _Copies(self.directory, agent, self.now) for agent in sorted({owners[one] for one in old})}

        def moves() -> Iterator[dict[str, object]]:
            for line in self._lines("staying"):
                file, start, offset = line["file"], line["start"], line["offset"]
                new_file, new_start = copies[owners[file]].take(file, start, offset + line["length"])
                yield {**line, "new_file": new_file, "new_offset": new_start + offset - start}

        self._write("moves", moves())
        return {agent: one.end() for agent, one in copies.items()}

    def _file(self, name: str) -> Path:
        return self.directory / FOLDER / f"{name}.jsonl"

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        with self._file(name).open("rb") as lines:
            for line in lines:
                yield msgspec.json.decode(line)

    def _write(self, name: str, lines: Iterator[dict[str, object]]) -> None:
        encode = msgspec.json.Encoder().encode
        with self._file(name).open("wb") as file:
            file.writelines(encode(line) + b"\n" for line in lines)

    def change_ledgers(self) -> None:
        """Give the new files their names, and let the ledgers know them."""
        for files in self.journal.new.values():
            for file in files:
                with suppress(FileNotFoundError):  # it was done before
                    (self.directory / f"{file}.new").rename(self.directory / file)
                crash_at(Point.DELETION)
        moves = _Moves(self._lines("moves"))
        for ledger in self.ledgers:
            lost = ((line["digest"].removeprefix("sha1:"), line["uri"]) for line in self._lines("lost"))
            move(ledger, moves.place, self.journal.new.get(ledger.sheet.agent, {}), self.journal.old, lost)

    def change_tables(self) -> int:
        return move_rows(self.directory, self._file("moves"), self._file("visits"))

    def change_files(self) -> None:
        for file in self.journal.old:
            path = self.directory / file
            if path.is_symlink():  # it lies on another disk
                path.resolve().unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            crash_at(Point.DELETION)

    def told(self) -> Trimmed:
        one = self.journal
        return Trimmed(one.versions, one.visits, one.records, one.freed, one.rows)


class _Copies:
    """New archive files of one agent, under names with `.new` behind until they count."""

    def __init__(self, directory: Path, agent: str, now: float) -> None:
        self._directory = directory
        self._agent = agent
        self._stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S")
        self._serial = 0
        self._file: AppendFile | None = None
        self._name = ""
        self._source: BinaryIO | None = None
        self._from = ""
        self._done: dict[str, int] = {}

    def take(self, file: str, start: int, end: int) -> tuple[str, int]:
        """Copy some bytes of an archive file; returns where they are."""
        if file != self._from:
            self._begin(file)
        assert self._file is not None
        there = self._file.end
        self._bytes(start, end)
        return self._name, there

    def end(self) -> dict[str, int]:
        """Everything is on the disk; returns the files and their bytes."""
        self._close()
        if self._source is not None:
            self._source.close()
        return self._done

    def _begin(self, file: str) -> None:
        """Another source: its first record says what the records behind it have in common."""
        if self._source is not None:
            self._source.close()
        self._source, self._from = opened(self._directory / file), file
        if self._file is not None and self._file.end >= ROTATE_BYTES:
            self._close()
        if self._file is None:
            prefix = Path(file).name.rpartition(f"-{self._agent}-")[0]
            while True:
                name = f"{WARC_DIRECTORY}/{prefix}-{self._agent}-{self._stamp}-{self._serial:05d}.warc.gz"
                self._serial += 1
                path = self._directory / name
                if not path.exists() and not path.is_symlink():
                    break
            self._name, self._file = name, AppendFile(path.with_name(f"{path.name}.new"), fresh=True)
        first = next(scan(self._directory / file), None)
        if isinstance(first, Span) and first.kind == "warcinfo":
            self._bytes(0, first.end)

    def _bytes(self, start: int, end: int) -> None:
        assert self._source is not None
        assert self._file is not None
        self._source.seek(start)
        for piece in pieces_of(self._source, end - start):
            self._file.append(piece)

    def _close(self) -> None:
        if self._file is not None:
            self._file.sync()
            self._done[self._name] = self._file.end
            self._file.close()
            self._file = None


class _Moves:
    """New places of records, by the old ones."""

    def __init__(self, lines: Iterator[dict[str, Any]]) -> None:
        self._names: list[str] = []
        self._places = RecordPlaces()
        for line in lines:
            if not self._names or self._names[-1] != line["new_file"]:
                self._names.append(line["new_file"])
            self._places.add(line["file"], line["offset"], line["new_offset"], len(self._names) - 1)

    def place(self, record: Location) -> Location | None:
        """The place of a record from now on; None where it stays."""
        found = self._places.at(record.file, record.offset)
        return None if found is None else Location(self._names[found[1]], found[0], record.length)
