"""Old versions of pages taken out of a crawl that nobody is at work on, so that its archive does not grow for ever.

Place in the flow: `gossamer trim` calls :func:`trim`. A journal (:mod:`gossamer.storage.rewrite_journals`) says that a trim
was begun. Each step can be killed at any point and done again; until the last one is done no crawl starts here.

What stays of a file that loses something is copied into a new file. Ledger and tables name the new places before the old file
goes, so that every place that is named is there.
"""

import shutil
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from gossamer.analysis.at_rest import at_rest, bring_back, convert_whole, ends_of, follow_again, index_again
from gossamer.engine.crash_points import Point, crash_at
from gossamer.engine.files import AppendFile
from gossamer.query.latest_visits import SCANNED, choose, rewrite
from gossamer.query.removing import check_tables
from gossamer.storage.archive.reading import CAPTURES, Gap, Span, scan
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.moving import move
from gossamer.storage.rewrite_journals import FOLDER, Trim, begun_trim, end_trim, note_trim, refuse_unfinished
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.visit import Location

#: A new file is begun behind the old one by which the last grew this large: as archive files of a crawl are.
ROTATE_BYTES = 1 << 30

#: Bytes that are copied at once.
_PIECE = 1 << 20


class Trimmed(msgspec.Struct, frozen=True):
    """What a trim did."""

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
    """Keep so many versions of each page, after finishing what an earlier call has begun.

    Args:
        directory: the crawl directory.
        versions: how many stay, at least 1; None: only what was begun is finished.
        now: seconds since the epoch; names new files of the archive.
        accept: go on without what is lost or damaged.
        remark: takes losses that are accepted, and what item files and stores have to tell that were made anew, and are complete.

    Raises:
        UsageError: there is nothing to finish.
        CrawlDirectoryError: the crawl runs or is damaged, or somebody reads its tables: then the next call does the rest.
    """
    with at_rest(directory, "trim", accept=accept, remark=remark) as ledgers:
        begun = begun_trim(directory)
        done = None
        if begun is not None:
            done = _Trimming(directory, ledgers, begun, now, remark).run()
        if versions is not None and (begun is None or begun.versions != versions):
            refuse_unfinished(directory)
            check_tables(directory)
            done = _Trimming(directory, ledgers, Trim(versions), now, remark).run()
        if done is None:
            raise UsageError(f"no trim of {directory} is under way; say how much stays: --keep-versions N")
        return done


class _Trimming:
    """One trim, and how far it is."""

    def __init__(
        self,
        directory: Path,
        ledgers: list[RocksLedger],
        begun: Trim,
        now: float,
        remark: Callable[[str], object],
    ) -> None:
        self._directory = directory
        self._folder = directory / FOLDER
        self._ledgers = ledgers
        self._trim = begun
        self._now = now
        self._remark = remark
        self._finish = f"gossamer trim {directory}"

    def run(self) -> Trimmed:
        with self._freed(not self._trim.is_placed):
            self._place()
        if self._trim.old or self._trim.visits:
            steps = (self._put, self._ledger, self._tables, self._remove, self._index, self._follow)
            for step in steps[-1:] if self._trim.is_free else steps:
                with self._freed(step == self._follow):
                    step()
                crash_at(Point.DELETION)
        one = self._trim
        end_trim(self._directory)
        return Trimmed(one.versions, one.visits, one.records, one.freed, one.rows)

    @contextmanager
    def _freed(self, is_whole: bool) -> Iterator[None]:
        """A failure that leaves nothing of the crawl half done keeps nobody from working on it."""
        try:
            yield
        except Exception:
            if is_whole and begun_trim(self._directory) is not None:
                self._note(is_free=True)
            raise

    def _note(self, **changes: Any) -> None:
        self._trim = msgspec.structs.replace(self._trim, **changes)
        note_trim(self._directory, self._trim)

    # -- what stays, and where

    def _place(self) -> None:
        """Choose what goes, and copy what stays of the files that lose something; nothing that counts has changed yet."""
        if self._trim.is_placed:
            return
        bring_back(self._directory, "trim", self._ledgers)
        self._note(is_free=False)
        convert_whole(self._directory, "trim", self._remark)
        self._folder.mkdir(exist_ok=True)
        for left in (self._directory / WARC_DIRECTORY).glob("*.warc.gz.new"):  # of a call that was killed
            left.unlink()
        scanned = self._folder / "scanned.jsonl"
        encode = msgspec.json.Encoder().encode
        with scanned.open("wb") as file:
            file.writelines(encode(line) + b"\n" for line in self._scanned())
        crash_at(Point.DELETION)
        chosen = choose(self._directory, scanned, self._trim.versions, self._folder)
        old = [line["file"] for line in self._lines("files")]
        new = self._copy(set(old))
        crash_at(Point.DELETION)
        before = sum((self._directory / file).stat().st_size for file in old)
        after = sum(size for files in new.values() for size in files.values())
        self._note(
            is_placed=True,
            old=tuple(old),
            new=new,
            visits=chosen.visits,
            records=chosen.records,
            freed=before - after,
        )

    def _scanned(self) -> Iterator[dict[str, object]]:
        """A line for each capture of the archive that was committed."""
        for file, end in sorted(ends_of(self._ledgers).items()):
            if not file.startswith(f"{WARC_DIRECTORY}/"):
                continue
            start: int | None = None
            for found in scan(self._directory / file, end):
                if isinstance(found, Gap):
                    raise CrawlDirectoryError(
                        f"{self._directory / file} is damaged at byte {found.offset}; bring it back from a copy, "
                        f"or go on without: {self._finish} --accept-loss"
                    )
                if found.kind in CAPTURES:
                    values = (file, found.offset if start is None else start, found.offset, found.length)
                    yield dict(zip(SCANNED, (*values, *_told(found)), strict=True))
                    start = None
                elif "warc-target-uri" not in found.fields:  # of a file, or of bytes that are gone
                    start = None
                elif start is None:
                    start = found.offset

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        with (self._folder / f"{name}.jsonl").open("rb") as lines:
            for line in lines:
                yield msgspec.json.decode(line)

    def _copy(self, old: set[str]) -> dict[str, dict[str, int]]:
        """Write what stays into new files beside their places; returns these by agent, with their bytes."""
        owners = {file: ledger.sheet.agent for ledger in self._ledgers for file in ledger.committed_ends()}
        copies = {agent: _Copies(self._directory, agent, self._now) for agent in sorted({owners[one] for one in old})}
        encode = msgspec.json.Encoder().encode
        with (self._folder / "moves.jsonl").open("wb") as moves:
            for line in self._lines("staying"):
                file, start, offset = line["file"], line["start"], line["offset"]
                new_file, new_start = copies[owners[file]].take(file, start, offset + line["length"])
                new = {**line, "new_file": new_file, "new_offset": new_start + offset - start}
                moves.write(encode(new) + b"\n")
        return {agent: one.end() for agent, one in copies.items()}

    # -- what names it

    def _put(self) -> None:
        """Give the new files their names."""
        for files in self._trim.new.values():
            for file in files:
                with suppress(FileNotFoundError):  # it was done before
                    (self._directory / f"{file}.new").rename(self._directory / file)
                crash_at(Point.DELETION)

    def _ledger(self) -> None:
        moves = _Moves(self._lines("moves"))
        for ledger in self._ledgers:
            for name in ledger.checkpoints():  # they name files that go
                shutil.rmtree(ledger.places.checkpoints / name)
            lost = ((line["digest"].removeprefix("sha1:"), line["uri"]) for line in self._lines("lost"))
            move(ledger, moves.place, self._trim.new.get(ledger.sheet.agent, {}), self._trim.old, lost)

    def _tables(self) -> None:
        convert_whole(self._directory, "trim", self._remark)
        rows = rewrite(self._directory, self._folder / "moves.jsonl", self._folder / "visits.jsonl")
        self._note(rows=self._trim.rows + rows)

    def _remove(self) -> None:
        for file in self._trim.old:
            path = self._directory / file
            if path.is_symlink():  # it lies on another disk
                path.resolve().unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            crash_at(Point.DELETION)

    def _index(self) -> None:
        index_again(self._directory, self._finish)

    def _follow(self) -> None:
        follow_again(self._directory, self._remark, self._finish)


def _told(span: Span) -> tuple[str, ...]:
    """What a capture says of itself, in the order of :data:`SCANNED`."""
    names = (
        "warc-target-uri",
        "warc-date",
        "warc-type",
        "warc-payload-digest",
        "warc-refers-to-target-uri",
        "warc-refers-to-date",
    )
    return tuple(span.fields.get(name, "") for name in names)


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
        self._source, self._from = (self._directory / file).open("rb"), file
        if self._file is not None and self._file.end >= ROTATE_BYTES:
            self._close()
        if self._file is None:
            self._open(file)
        first = next(scan(self._directory / file), None)
        if isinstance(first, Span) and first.kind == "warcinfo":
            self._bytes(0, first.end)

    def _open(self, file: str) -> None:
        prefix = Path(file).name.rpartition(f"-{self._agent}-")[0]
        while True:
            name = f"{WARC_DIRECTORY}/{prefix}-{self._agent}-{self._stamp}-{self._serial:05d}.warc.gz"
            self._serial += 1
            path = self._directory / name
            if not path.exists() and not path.is_symlink():
                break
        self._name, self._file = name, AppendFile(path.with_name(f"{path.name}.new"), fresh=True)

    def _bytes(self, start: int, end: int) -> None:
        assert self._source is not None
        assert self._file is not None
        self._source.seek(start)
        left = end - start
        while left and (piece := self._source.read(min(left, _PIECE))):
            self._file.append(piece)
            left -= len(piece)

    def _close(self) -> None:
        if self._file is not None:
            self._file.sync()
            self._done[self._name] = self._file.end
            self._file.close()
            self._file = None


class _Moves:
    """New places of records, in the order of the old ones; 20 bytes each."""

    def __init__(self, lines: Iterator[dict[str, Any]]) -> None:
        self._names: list[str] = []
        self._by_file: dict[str, tuple[array[int], array[int], array[int]]] = {}
        for line in lines:
            if not self._names or self._names[-1] != line["new_file"]:
                self._names.append(line["new_file"])
            old, new, names = self._by_file.setdefault(line["file"], (array("Q"), array("Q"), array("L")))
            old.append(line["offset"])
            new.append(line["new_offset"])
            names.append(len(self._names) - 1)

    def place(self, record: Location) -> Location | None:
        """Where a record lies from now on; None where it stays."""
        old, new, names = self._by_file.get(record.file, (array("Q"), array("Q"), array("L")))
        at = bisect_left(old, record.offset)
        if at == len(old) or old[at] != record.offset:
            return None
        return Location(self._names[names[at]], new[at], record.length)
