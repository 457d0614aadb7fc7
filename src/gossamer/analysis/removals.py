"""Removals from a crawl at rest: everything of a URL, host or domain, for a person has a right to be removed; and old versions of
pages, so that its archive does not grow for ever.

Place in the flow: `gossamer delete` calls :func:`delete`, and `gossamer trim` calls :func:`trim`; the order of the steps is that of
every rewriting (:mod:`gossamer.analysis.rewriting`). Subjects take out what they keep themselves (`forget` of their declarations).

A deletion overwrites records where they lie, by one of the same length that says that something was deleted: no other record moves,
so rows, index and committed ends stay true. Lines of logs are overwritten in the same way. A trim copies everything that stays of a
file that loses something into a new file. Ledger and tables name the new places before the old file goes.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from gossamer.analysis.rewriting import CrawlRewriting, rewrite
from gossamer.analysis.verifying import RecordPlaces
from gossamer.crawls.control.resting import check_can_block, close_hosts
from gossamer.crawls.directory import lost_ledgers
from gossamer.engine.files import AppendFile, Point, crash_at, pieces_of
from gossamer.engine.subjects import found_at, subjects
from gossamer.fetcher.cookies import COOKIES, forget_cookies
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.query.schema import tables_of
from gossamer.query.table_rewrites import SCANNED, choose, move_rows, remove_rows
from gossamer.storage.archive.reading import CAPTURES, Gap, Span, fill, opened, scan
from gossamer.storage.archive.reading import DELETED as DELETED_RECORD
from gossamer.storage.archive.records import uri_field
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.ledger.deleting import delete as delete_from_ledger
from gossamer.storage.ledger.deleting import hosts_of
from gossamer.storage.ledger.moving import move
from gossamer.storage.logs import DELETED, LOG_FOLDER, LOG_PATH, NOTES_LOG
from gossamer.storage.recovery import QUARANTINE
from gossamer.storage.rewrite_journals import (
    FOLDER,
    Deleted,
    DeletedPlace,
    Deletion,
    Trim,
    note_done,
    read_places,
    write_places,
)
from gossamer.storage.tables.places import COUNTED, INDEX_DIRECTORY, TABLES
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.hosts import DeletionTarget
from gossamer.values.instants import unique_name, utc_text
from gossamer.values.url import canonical
from gossamer.values.visit import Location

#: Records that stand before the one of an answer and belong to it: the request, and what is known beside it.
_BESIDE = 2

#: Columns of the log that name a URL whose line goes, beside those of the tables.
_LOG_COLUMNS = ("url", "duplicate_of")


def target_of(text: str) -> DeletionTarget:
    """The target that an argument of the command line names: a URL where it has a scheme, otherwise a host or domain.
    Raises UsageError: it is neither."""
    if "://" in text:
        try:
            return DeletionTarget("url", canonical(text))
        except UnreadableUrl as error:
            raise UsageError(f"{error}; write it in full, as https://example.org/page") from None
    return DeletionTarget("host", Blocklist().block(text))


def delete(
    directory: Path,
    target: DeletionTarget | None,
    now: float,
    *,
    forget: bool = False,
    accept: bool = False,
    remark: Callable[[str], object] = lambda _: None,
) -> tuple[Deleted, ...]:
    """Delete a target, after finishing what an earlier call has begun, or only finish that; returns the notes of all deletions
    that were done. With `forget`, a crawl that meets it fetches it again; the others are as of
    :func:`~gossamer.analysis.rewriting.rewrite`. Raises UsageError: there is nothing to finish, or the crawl cannot keep from
    fetching it again."""
    wanted = None if target is None else Deletion(unique_name(now), utc_text(now), target, forget)
    done = rewrite(directory, "delete", wanted, now, accept=accept, remark=remark)
    if not done:
        raise UsageError(f"nothing is left to be deleted in {directory}; name a URL, a host or a domain")
    return tuple(one for one in done if isinstance(one, Deleted))


class Deleting(CrawlRewriting):
    journal: Deletion

    def check(self) -> None:
        super().check()
        if not self.journal.forget and self.journal.target.kind == "host":
            check_can_block(self.directory)
        if self.journal.forget and any(self.directory.glob("state/*/sieve")):
            raise UsageError(
                f"the crawl in {self.directory} has its seen URLs in a sieve, which cannot forget any; leave --forget out"
            )

    def place(self) -> dict[str, Any]:
        self._count = 0
        write_places(self.directory, self._places())
        return {"records": self._count}

    def _places(self) -> Iterator[DeletedPlace]:
        """Stretches of the archive that go; records that lie side by side are one."""
        for file, spans in self.archive():
            joined: DeletedPlace | None = None
            for span in self._going(spans):
                self._count += 1
                if joined is not None and joined.offset + joined.length == span.offset:
                    joined = DeletedPlace(file, joined.offset, joined.length + span.length)
                    continue
                if joined is not None:
                    yield joined
                joined = DeletedPlace(file, span.offset, span.length)
            if joined is not None:
                yield joined

    def _going(self, spans: Iterator[Span]) -> Iterator[Span]:
        """The records of the target, and those that refer to its bytes. Records beside an answer precede it, and go with it."""
        beside: list[Span] = []
        for found in spans:
            if found.kind not in CAPTURES:
                beside = [*beside, found][-_BESIDE:]
                continue
            url = found.url
            visit, beside = [*(one for one in beside if one.url == url), found], []
            if self._is_gone(url) or self._is_gone(found.fields.get("warc-refers-to-target-uri", "")):
                yield from visit

    def _is_gone(self, uri: str) -> bool:
        target = self.journal.target
        return uri == uri_field(target.name) if target.kind == "url" else target.has(uri)

    def change_ledgers(self) -> None:
        target = self.journal.target
        if target.kind == "host" and not self.journal.forget:
            close_hosts(self.directory, [target.name])
        # Hosts are found by what they have, so they are noted before any of it goes.
        found = {name for ledger in self.ledgers for name in hosts_of(ledger, target)}
        hosts = tuple(sorted(found.union(self.journal.hosts or ())))
        self.note(hosts=hosts)
        crash_at(Point.DELETION)
        for subject in subjects():
            if subject.forget:
                tasks = found_at(subject.forget)(self.directory, self.ledgers, target, hosts)
                self.note(tasks=self.journal.tasks + tasks)
        crash_at(Point.DELETION)
        for ledger in self.ledgers:
            done = delete_from_ledger(ledger, target, hosts, forget=self.journal.forget)
            self.note(
                documents=self.journal.documents + done.documents,
                tasks=self.journal.tasks + done.tasks,
                again=self.journal.again + done.again,
            )

    def change_tables(self) -> int:
        return remove_rows(self.directory, self.journal.target)

    def change_files(self) -> None:
        for place in read_places(self.directory):
            path = self.directory / place.file
            if (size := path.stat().st_size if path.exists() else 0) < place.offset + place.length:
                if size > place.offset:  # the file was cut since: what is left of the record goes too
                    os.truncate(path, place.offset)
            elif not fill(path, Gap(place.offset, place.length), self.journal.at, DELETED_RECORD):
                raise CrawlDirectoryError(f"{path} has no room at byte {place.offset} for a note of what was deleted")
            crash_at(Point.DELETION)
        self._change_logs()
        crash_at(Point.DELETION)
        forget_cookies(self.directory / COOKIES, self.journal.target.has_host)
        # Quarantine and lost ledgers hold torn and damaged bytes of anything; index and counted tables are made again.
        for name in (QUARANTINE, INDEX_DIRECTORY, *(f"{TABLES}/{name}" for name in COUNTED)):
            shutil.rmtree(self.directory / name, ignore_errors=True)
        for lost in lost_ledgers(self.directory):
            shutil.rmtree(lost, ignore_errors=True)

    def _change_logs(self) -> None:
        """Overwrite lines. Notes, and items that were skipped, may name anything anywhere: a line goes that holds the name."""
        target = self.journal.target
        name = msgspec.json.encode(target.name)[1:-1]  # as a line has it: a query may hold a backslash
        columns = {*_LOG_COLUMNS, *(spec.page for spec in tables_of(self.directory).values() if spec.page)}
        lines = 0
        logs = {LOG_PATH, *self.ends()}
        for path in sorted((self.directory / LOG_FOLDER).glob("*.jsonl")):
            if path.relative_to(self.directory).as_posix() in logs:
                lines += _overwrite(path, lambda line: name in line and _names(line, columns, target))
            elif path.name.startswith("skipped") or path == self.directory / NOTES_LOG:
                lines += _overwrite(path, lambda line: name in line)
        self.note(lines=self.journal.lines + lines)

    def told(self) -> Deleted:
        return note_done(self.directory, self.journal)


def _names(line: bytes, columns: set[str], target: DeletionTarget) -> bool:
    try:
        event = msgspec.json.decode(line, type=dict[str, Any])
    except ValueError:
        return False
    return any(isinstance(url := event.get(name), str) and target.has(url) for name in columns)


def _overwrite(path: Path, is_gone: Callable[[bytes], bool]) -> int:
    """Put lines of the same length in the place of some; returns of how many. One that was half overwritten is finished."""
    lines = position = 0
    with path.open("rb") as source, os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb") as file:
        for line in source:
            text = line.rstrip(b"\n")
            is_torn = text.startswith(DELETED[:-1]) and text.rstrip() != DELETED
            if is_torn or is_gone(text):
                file.seek(position)
                file.write((DELETED if len(text) >= len(DELETED) else b"{}").ljust(len(text)))
                lines += 1
            position += len(line)
        file.flush()
        os.fsync(file.fileno())
    return lines


# -- old versions

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
        place = _new_places(self._lines("moves"))
        for ledger in self.ledgers:
            lost = ((line["digest"].removeprefix("sha1:"), line["uri"]) for line in self._lines("lost"))
            move(ledger, place, self.journal.new.get(ledger.sheet.agent, {}), self.journal.old, lost)

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


def _new_places(moves: Iterator[dict[str, Any]]) -> Callable[[Location], Location | None]:
    """Says where a record lies from now on; None where it stays."""
    names, places = [""], RecordPlaces()
    for line in moves:
        if names[-1] != line["new_file"]:
            names.append(line["new_file"])
        places.add(line["file"], line["offset"], line["new_offset"], len(names) - 1)

    def place(record: Location) -> Location | None:
        found = places.at(record.file, record.offset)
        return None if found is None else Location(names[found[1]], found[0], record.length)

    return place
