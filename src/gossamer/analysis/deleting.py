"""Everything of a URL, host or domain taken out of a crawl that nobody is at work on: somebody has a right to be removed.

Place in the flow: `gossamer delete` calls :func:`delete`. A journal (:mod:`gossamer.storage.rewrite_journals`) says that a
deletion was begun. Each step can be killed at any point and done again, and finds what it did before gone. Until the last
one is done no crawl starts here.

Records are overwritten where they lie, by one of the same length that says that something was deleted: no other record moves, so
rows, index and committed ends stay true. Lines of logs are overwritten in the same way.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.designations import SCHEMA as DESIGNATIONS
from gossamer.agents.designations import designated, forget_domains
from gossamer.agents.held_domains import let_go
from gossamer.agents.mail_on_disk import SCHEMA as MAIL
from gossamer.agents.mail_on_disk import delete_mail
from gossamer.agents.shared_state import SHARED, SharedFile, forget_copies
from gossamer.analysis.at_rest import at_rest, bring_back, convert_whole, ends_of, follow_again, index_again
from gossamer.crawls.control.resting import check_can_block, close_hosts
from gossamer.crawls.directory import lost_ledgers
from gossamer.engine.crash_points import Point, crash_at
from gossamer.fetcher.cookies import COOKIES, forget_cookies
from gossamer.frontier.politeness.blocklist import Blocklist
from gossamer.mobile.manager.book import forget_lent
from gossamer.query.removing import check_tables, remove_rows
from gossamer.query.schema import tables_of
from gossamer.recrawl.ledger import forget_known
from gossamer.storage.archive.files import DELETED as DELETED_RECORD
from gossamer.storage.archive.files import fill
from gossamer.storage.archive.reading import CAPTURES, Gap, Span, scan
from gossamer.storage.archive.records import uri_field
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.json_lines import NOTES_LOG
from gossamer.storage.ledger.deleting import delete as delete_from_ledger
from gossamer.storage.ledger.deleting import hosts_of
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.logs import LOG_FOLDER, LOG_PATH
from gossamer.storage.recovery import QUARANTINE
from gossamer.storage.rewrite_journals import (
    Deleted,
    DeletedPlace,
    Deletion,
    note_done,
    note_progress,
    read_places,
    refuse_unfinished_trim,
    unfinished,
    write_places,
)
from gossamer.storage.tables.places import COUNTED, INDEX_DIRECTORY, TABLES
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.hosts import DeletionTarget
from gossamer.values.identity import unique_name, utc_text
from gossamer.values.url import canonical

#: Records that stand before the one of an answer and belong to it: the request, and what is known beside it.
_BESIDE = 2

#: What takes the place of a line of a log, with blanks up to its end.
_NO_LINE = b'{"event":"deleted"}'

#: Columns of the log that name a URL whose line goes, beside those of the tables.
_LOG_COLUMNS = ("url", "duplicate_of")


def target_of(text: str) -> DeletionTarget:
    """What an argument of the command line means: a URL where it has a scheme, otherwise a host or domain.

    Raises:
        UsageError: it is neither.
    """
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
    """Delete something, after finishing what an earlier call has begun; returns what was noted of each.

    Args:
        directory: the crawl directory.
        target: what is deleted; None: only what was begun is finished.
        now: seconds since the epoch.
        forget: let it be fetched again when a crawl meets it.
        accept: go on without what is lost or damaged.
        remark: takes losses that are accepted, and what item files and stores have to tell that were made anew, and are complete.

    Raises:
        UsageError: there is nothing to finish, or the crawl cannot keep from fetching it again.
        CrawlDirectoryError: the crawl runs or is damaged, or somebody reads its tables: then the next call does the rest.
    """
    refuse_unfinished_trim(directory)
    with at_rest(directory, "delete", accept=accept, remark=remark) as ledgers:
        notes = []
        begun = unfinished(directory)
        if begun is not None:
            notes.append(_Deleting(directory, ledgers, begun, remark).run())
        if target is not None and not (begun is not None and begun.target == target):
            _check(directory, target, forget=forget)
            deletion = Deletion(unique_name(now), utc_text(now), target, forget)
            notes.append(_Deleting(directory, ledgers, deletion, remark).run())
        if not notes:
            raise UsageError(f"nothing is left to be deleted in {directory}; name a URL, a host or a domain")
        return tuple(notes)


def _check(directory: Path, target: DeletionTarget, *, forget: bool) -> None:
    """Refuse what cannot be done, before anything is."""
    check_tables(directory)
    if not forget and target.kind == "host":
        check_can_block(directory)
    if forget and any(directory.glob("state/*/sieve")):
        raise UsageError(
            f"the crawl in {directory} has its seen URLs in a sieve, which cannot forget any; leave --forget out"
        )


class _Deleting:
    """One deletion, and how far it is."""

    def __init__(
        self, directory: Path, ledgers: list[RocksLedger], deletion: Deletion, remark: Callable[[str], object]
    ) -> None:
        self._directory = directory
        self._ledgers = ledgers
        self._deletion = deletion
        self._remark = remark
        self._finish = f"gossamer delete {directory}"

    def run(self) -> Deleted:
        steps: list[Callable[[], None]] = [
            self._bring_back,
            self._find_places,
            self._never_again,
            self._find_hosts,
            self._ledger,
            self._masters,
            self._archive,
            self._logs,
            self._cookies,
            self._tables,
            self._copies,
            self._followers,
        ]
        # A run in between may have fetched what was to be forgotten: what is done here is not done again.
        for step in steps[-1:] if self._deletion.is_placed and self._deletion.is_free else steps:
            with self._freed(step == self._followers):
                step()
            crash_at(Point.DELETION)
        return note_done(self._directory, self._deletion)

    @contextmanager
    def _freed(self, is_last: bool) -> Iterator[None]:
        """A failure that leaves nothing of the crawl half done keeps nobody from working on it."""
        try:
            yield
        except Exception:
            if unfinished(self._directory) is not None and (is_last or not self._deletion.is_placed):
                self._note(is_free=True)
            raise

    def _note(self, **changes: Any) -> None:
        self._deletion = msgspec.structs.replace(self._deletion, **changes)
        note_progress(self._directory, self._deletion)

    def _bring_back(self) -> None:
        """Cut off what was never committed, and refuse a crawl that is not whole."""
        if self._deletion.is_placed:  # archive and tables may be half changed, and were whole before
            return
        bring_back(self._directory, "delete", self._ledgers)
        self._note(is_free=False)

    # -- the archive

    def _find_places(self) -> None:
        """Read the archive, and note which records go: those of the target, and those that say `the same bytes as the target`."""
        if self._deletion.is_placed:
            return
        self._records = 0
        write_places(self._directory, self._places())
        self._note(is_placed=True, records=self._records)

    def _places(self) -> Iterator[DeletedPlace]:
        for file, end in sorted(ends_of(self._ledgers).items()):
            if not file.startswith(f"{WARC_DIRECTORY}/"):
                continue
            joined: DeletedPlace | None = None
            for span in self._going(self._directory / file, end):
                self._records += 1
                if joined is not None and joined.offset + joined.length == span.offset:
                    joined = DeletedPlace(file, joined.offset, joined.length + span.length)
                    continue
                if joined is not None:
                    yield joined
                joined = DeletedPlace(file, span.offset, span.length)
            if joined is not None:
                yield joined

    def _going(self, path: Path, end: int) -> Iterator[Span]:
        """The records of a file that go. What stands beside an answer precedes it, and goes with it."""
        beside: list[Span] = []
        for found in scan(path, end):
            if isinstance(found, Gap):
                raise CrawlDirectoryError(
                    f"{path} is damaged at byte {found.offset}; bring it back from a copy, or go on without: "
                    f"{self._finish} --accept-loss"
                )
            if found.kind not in CAPTURES:
                beside = [*beside, found][-_BESIDE:]
                continue
            url = found.fields.get("warc-target-uri", "")
            visit, beside = [*(one for one in beside if one.fields.get("warc-target-uri") == url), found], []
            if self._is_gone(url) or self._is_gone(found.fields.get("warc-refers-to-target-uri", "")):
                yield from visit

    def _is_gone(self, uri: str) -> bool:
        target = self._deletion.target
        return uri == uri_field(target.name) if target.kind == "url" else target.has(uri)

    def _archive(self) -> None:
        for place in read_places(self._directory):
            path = self._directory / place.file
            if (size := path.stat().st_size if path.exists() else 0) < place.offset + place.length:
                if size > place.offset:  # the file was cut since: what is left of the record goes too
                    os.truncate(path, place.offset)
            elif not fill(path, Gap(place.offset, place.length), self._deletion.at, DELETED_RECORD):
                raise CrawlDirectoryError(f"{path} has no room at byte {place.offset} for a note of what was deleted")
            crash_at(Point.DELETION)

    # -- what is known

    def _never_again(self) -> None:
        target = self._deletion.target
        if target.kind == "host" and not self._deletion.forget:
            close_hosts(self._directory, [target.name])

    def _find_hosts(self) -> None:
        """Note which hosts go whole before anything goes that tells of them."""
        found = {name for ledger in self._ledgers for name in hosts_of(ledger, self._deletion.target)}
        self._note(hosts=tuple(sorted(found.union(self._deletion.hosts or ()))))

    def _ledger(self) -> None:
        for ledger in self._ledgers:
            for name in ledger.checkpoints():  # they are copies of what goes
                shutil.rmtree(ledger.places.checkpoints / name)
            hosts = self._deletion.hosts or ()
            forget_known(ledger, self._deletion.target, hosts)
            lent = forget_lent(ledger, self._deletion.target)
            done = delete_from_ledger(ledger, self._deletion.target, hosts, forget=self._deletion.forget)
            self._note(
                documents=self._deletion.documents + done.documents,
                tasks=self._deletion.tasks + lent + done.tasks,
                again=self._deletion.again + done.again,
            )

    def _masters(self) -> None:
        """What masters share has domains that were given away, and URLs that wait for agents."""
        target = self._deletion.target
        if not (self._directory / SHARED).exists():
            return
        forget_copies(self._directory)
        with closing(SharedFile(self._directory)) as shared:
            shared.open(DESIGNATIONS + MAIL)
            gone = {domain: agent for domain, agent in designated(shared.reading) if target.has_host(domain)}
            for ledger in self._ledgers:  # before the table forgets which they are
                let_go(ledger, list(gone))
            with shared.erasing() as connection:
                delete_mail(connection, target.has)
                forget_domains(connection, gone)

    def _logs(self) -> None:
        """Overwrite lines. Notes, and items that were skipped, may name anything anywhere: a line goes that holds the name."""
        target = self._deletion.target
        name = msgspec.json.encode(target.name)[1:-1]  # as a line has it: a query may hold a backslash
        columns = {*_LOG_COLUMNS, *(spec.page for spec in tables_of(self._directory).values() if spec.page)}
        lines = 0
        logs = {LOG_PATH, *(file for file in ends_of(self._ledgers) if file.startswith(LOG_FOLDER))}
        for path in sorted((self._directory / LOG_FOLDER).glob("*.jsonl")):
            if path.relative_to(self._directory).as_posix() in logs:
                lines += _overwrite(path, lambda line: name in line and _names(line, columns, target))
            elif path.name.startswith("skipped") or path == self._directory / NOTES_LOG:
                lines += _overwrite(path, lambda line: name in line)
        self._note(lines=self._deletion.lines + lines)

    def _cookies(self) -> None:
        forget_cookies(self._directory / COOKIES, self._deletion.target.has_host)

    # -- what is made of it

    def _tables(self) -> None:
        directory = self._directory
        convert_whole(directory, "delete", self._remark)
        crash_at(Point.DELETION)
        rows = remove_rows(directory, self._deletion.target)
        self._note(rows=self._deletion.rows + rows)
        crash_at(Point.DELETION)
        index_again(directory, self._finish)

    def _copies(self) -> None:
        """Quarantine and lost ledgers hold torn and damaged bytes of anything; index and what is counted are made again."""
        for place in (QUARANTINE, INDEX_DIRECTORY, *(f"{TABLES}/{name}" for name in COUNTED)):
            shutil.rmtree(self._directory / place, ignore_errors=True)
        for lost in lost_ledgers(self._directory):
            shutil.rmtree(lost, ignore_errors=True)

    def _followers(self) -> None:
        """What follows the crawl is made anew, since its tables have begun anew. What cannot be may have rows that are gone."""
        follow_again(self._directory, self._remark, self._finish)


def _names(line: bytes, columns: set[str], target: DeletionTarget) -> bool:
    try:
        event = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError:
        return False
    return any(isinstance(url := event.get(name), str) and target.has(url) for name in columns)


def _overwrite(path: Path, is_gone: Callable[[bytes], bool]) -> int:
    """Put lines of the same length in the place of some; returns of how many. One that was half overwritten is finished."""
    lines = position = 0
    with path.open("rb") as source, os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb") as file:
        for line in source:
            text = line.rstrip(b"\n")
            is_torn = text.startswith(_NO_LINE[:-1]) and text.rstrip() != _NO_LINE
            if is_torn or is_gone(text):
                file.seek(position)
                file.write((_NO_LINE if len(text) >= len(_NO_LINE) else b"{}").ljust(len(text)))
                lines += 1
            position += len(line)
        file.flush()
        os.fsync(file.fileno())
    return lines
