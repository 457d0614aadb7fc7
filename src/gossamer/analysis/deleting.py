"""Removals from a crawl at rest: everything of a URL, host or domain, for a person has a right to be removed.

Place in the flow: `gossamer delete` calls :func:`delete`; the order of the steps is that of every rewriting
(:mod:`gossamer.analysis.rewriting`). Subjects take out what they keep themselves (`forget` of their declarations).

Records are overwritten where they lie, by one of the same length that says that something was deleted: no other record moves, so
rows, index and committed ends stay true. Lines of logs are overwritten in the same way.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from gossamer.analysis.rewriting import CrawlRewriting, rewrite
from gossamer.crawls.control.resting import check_can_block, close_hosts
from gossamer.crawls.directory import lost_ledgers
from gossamer.engine.files import Point, crash_at
from gossamer.engine.subjects import found_at, subjects
from gossamer.fetcher.cookies import COOKIES, forget_cookies
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.query.schema import tables_of
from gossamer.query.table_rewrites import remove_rows
from gossamer.storage.archive.reading import CAPTURES, Gap, Span, fill
from gossamer.storage.archive.reading import DELETED as DELETED_RECORD
from gossamer.storage.archive.records import uri_field
from gossamer.storage.ledger.deleting import delete as delete_from_ledger
from gossamer.storage.ledger.deleting import hosts_of
from gossamer.storage.logs import DELETED, LOG_FOLDER, LOG_PATH, NOTES_LOG
from gossamer.storage.recovery import QUARANTINE
from gossamer.storage.rewrite_journals import Deleted, DeletedPlace, Deletion, note_done, read_places, write_places
from gossamer.storage.tables.places import COUNTED, INDEX_DIRECTORY, TABLES
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.hosts import DeletionTarget
from gossamer.values.instants import unique_name, utc_text
from gossamer.values.url import canonical

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
