"""The one way in which a crawl at rest is rewritten: visits, records and rows are taken out of everything that names them.

Place in the flow: `gossamer delete` (:mod:`gossamer.analysis.removals`) and `gossamer trim` (:mod:`gossamer.analysis.removals`)
derive a :class:`CrawlRewriting` each, which says what goes; :func:`rewrite` has the crawl to itself, finishes what a kill has left,
and does what is new. `gossamer reprocess` only makes tables anew, by the same switch (:mod:`gossamer.query.table_rewrites`), and
so needs no journal and no rest.

Promises: the journal (:mod:`gossamer.storage.rewrite_journals`) says how far a rewriting is. Each step can be killed at any
point and done again, and finds that it was done before. No crawl starts here until the last one is done, unless the rewriting
failed where nothing is half done. A place that is named anywhere is there: records that move are named by their new places
before the old ones go.
"""

import asyncio
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.handing_over import refuse_on_the_way
from gossamer.crawls.control.resting import opened_as_found
from gossamer.crawls.damage import accept_losses, damages_of
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.followers import Following
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.files import Point, crash_at
from gossamer.engine.sheet import show_bytes, show_count
from gossamer.engine.subjects import found_at
from gossamer.query.convert import convert
from gossamer.query.table_rewrites import check_tables, leftovers
from gossamer.storage.archive.reading import Gap, Span, opened, scan
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.ledger.ledger import RocksLedger, ledgers_of
from gossamer.storage.recovery import in_store, is_away, refusal, restore
from gossamer.storage.rewrite_journals import FOLDER, Deletion, Trim, begun, note_end, note_progress, take_up
from gossamer.storage.tables.manifest import are_tables, damaged_tables, known_notes, notes_of, write_notes
from gossamer.storage.tables.places import converting, replacing
from gossamer.values.errors import CrawlDirectoryError, GossamerError

#: The rewritings, named by their places: they are derived from what stands here, and each call may have to finish another kind.
_KINDS = {Deletion: "gossamer.analysis.removals:Deleting", Trim: "gossamer.analysis.removals:Trimming"}


def rewrite(
    directory: Path,
    verb: str,
    wanted: Deletion | Trim | None,
    now: float,
    *,
    accept: bool,
    remark: Callable[[str], object],
) -> list[Any]:
    """Rewrite a crawl at rest, after finishing what an earlier call has begun; returns what each rewriting did.

    Args:
        directory: the crawl directory.
        verb: the command, as `delete`.
        wanted: what is done; None: only what was begun is finished.
        now: seconds since the epoch; names new files of the archive.
        accept: go on without what is lost or damaged.
        remark: takes losses that are accepted, and what item files and stores have to tell that were made anew, and are complete.

    Raises:
        UsageError: what is wanted cannot be done with this crawl.
        CrawlDirectoryError: the crawl runs or is damaged, or another program reads its tables: then the next call does the rest.
    """
    done = []
    with _at_rest(directory, verb, accept=accept, remark=remark) as ledgers:

        def rewriting(journal: Deletion | Trim) -> CrawlRewriting:
            kind: type[CrawlRewriting] = found_at(_KINDS[type(journal)])
            return kind(directory, ledgers, journal, now, remark)

        while (left := take_up(directory)) is not None:
            done.append(rewriting(left).run())
            if wanted is not None and wanted.goal == left.goal:
                wanted = None
        if wanted is not None:
            one = rewriting(wanted)
            one.check()
            done.append(one.run())
    return done


@contextmanager
def _at_rest(
    directory: Path, verb: str, *, accept: bool, remark: Callable[[str], object]
) -> Iterator[list[RocksLedger]]:
    """Hold the ledgers of a crawl, so that no other program works on it, and be the only one that replaces its tables."""
    with ExitStack() as stack:
        ledgers = ledgers_of(directory)
        for ledger in ledgers:
            stack.enter_context(opened_as_found(ledger))
        if not stack.enter_context(replacing(directory)):
            raise CrawlDirectoryError(
                f"the tables of {directory} are being processed again; {verb} when that has ended"
            )
        try:
            if accept:
                with converting(directory, wait=True):
                    for loss in accept_losses(directory, ledgers).what:
                        remark(f"{verb} goes on, although {loss}")
            yield ledgers
        except GossamerError:
            raise
        except Exception as error:  # whatever it was, the journal knows how far it came
            why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            raise CrawlDirectoryError(
                f"{verb} came to no end ({why}); when that is mended, finish: gossamer {verb} {directory}"
            ) from error


class CrawlRewriting(ABC):
    """One rewriting, and how far it is. Heirs say what goes; the order of the steps stands here alone."""

    def __init__(
        self, directory: Path, ledgers: list[RocksLedger], journal: Any, now: float, remark: Callable[[str], object]
    ) -> None:
        self.directory = directory
        self.ledgers = ledgers
        self.journal = journal
        self.now = now
        self._remark = remark
        self._verb: str = journal.verb
        self._finish = f"gossamer {self._verb} {directory}"

    # -- what heirs say

    def check(self) -> None:
        """Refuse what cannot be done, before anything is. Raises UsageError, CrawlDirectoryError."""
        check_tables(self.directory)
        refuse_on_the_way(self.directory)

    @abstractmethod
    def place(self) -> dict[str, Any]:
        """Find what goes, and write new files of the archive beside the old; returns what the journal notes."""

    @property
    def is_idle(self) -> bool:
        """Nothing goes, so that nothing is left to be done."""
        return False

    @abstractmethod
    def change_ledgers(self) -> None:
        """Let the ledgers tell nothing any more of what goes, and name the new places of what moves."""

    @abstractmethod
    def change_tables(self) -> int:
        """Make the tables without the rows that go; returns how many these are."""

    @abstractmethod
    def change_files(self) -> None:
        """Take records out of the archive, which nothing names any more, and what tells of them out of other files."""

    @abstractmethod
    def told(self) -> Any: ...

    # -- the order

    def run(self) -> Any:
        steps: tuple[Callable[[], None], ...] = (
            self._bring_back,
            self._place,
            self._ledgers,
            self._tables,
            self.change_files,
            self._index,
            self._follow,
        )
        # A run in between may have fetched what was to be forgotten: a finished step is not done again.
        for step in steps[-1:] if self.journal.is_placed and self.journal.is_free else steps:
            if self.is_idle:
                break
            try:
                step()
            except Exception:
                # A failure that leaves nothing of the crawl half done keeps no crawl from going on.
                if any(begun(self.directory)) and (step == self._follow or not self.journal.is_placed):
                    self.note(is_free=True)
                raise
            crash_at(Point.DELETION)
        told = self.told()
        note_end(self.directory, self.journal)
        return told

    def note(self, **changes: Any) -> None:
        """Say in the journal how far it is."""
        self.journal = msgspec.structs.replace(self.journal, **changes)
        note_progress(self.directory, self.journal)

    def _bring_back(self) -> None:
        """Cut off what was never committed.
        Raises CrawlDirectoryError: the crawl is not whole, or a part of it lies on a disk that is not there."""
        if self.journal.is_placed:  # archive and tables may be half changed, and were whole before
            return
        ends = self.ends()
        damages = damages_of(self.directory, ends)
        self._refuse([*damages.files, *damages.tables])
        if away := next((file for file in ends if is_away(self.directory / file)), ""):
            raise CrawlDirectoryError(
                f"{self.directory / away} lies on a disk that is not there; bring the disk back first"
            )
        self._bring_archive_here()
        providers = read_wiring(self.directory).providers.values()
        disks = [Path(str(disk)) for node in providers for disk in node.settings.get("disks", ())]
        for ledger in self.ledgers:
            others = [one for one in self.ledgers if one is not ledger]
            restore(
                self.directory,
                ledger.committed_ends(),
                ledger.sheet.agent,
                disks,
                others={file: end for one in others for file, end in one.committed_ends().items()},
                are_tables=lambda missing: are_tables(known_notes(self.directory), missing),
            )
        self.note(is_free=False)

    def _bring_archive_here(self) -> None:
        """Bring archive files back that are in a store alone. Raises CrawlDirectoryError: they cannot be read, or do not fit."""
        files = {self.directory / file: far.size for file in self.ends() if (far := in_store(self.directory / file))}
        free = shutil.disk_usage(self.directory).free
        if free < sum(files.values()):
            raise CrawlDirectoryError(
                f"{show_count(len(files), 'archive file')} of {self.directory} with {show_bytes(sum(files.values()))} are in "
                f"the store alone, and the disk has {show_bytes(free)} free; make room, then finish: {self._finish}"
            )
        for path in files:
            fresh = path.with_name(f".{path.name}.new")
            with opened(path) as source, fresh.open("wb") as copy:
                shutil.copyfileobj(source, copy)
                copy.flush()
                os.fsync(copy.fileno())
            fresh.replace(path)

    def _place(self) -> None:
        if not self.journal.is_placed:
            self._convert()
            shutil.rmtree(self.directory / FOLDER, ignore_errors=True)
            (self.directory / FOLDER).mkdir(parents=True)
            self.note(is_placed=True, **self.place())

    def _ledgers(self) -> None:
        for ledger in self.ledgers:
            for name in ledger.checkpoints():  # they are copies of what goes, and name files that go
                shutil.rmtree(ledger.places.checkpoints / name)
        self.change_ledgers()

    def _tables(self) -> None:
        self._convert()
        crash_at(Point.DELETION)
        rows = self.change_tables()
        self.note(rows=self.journal.rows + rows)

    def _index(self) -> None:
        """Make the index again from the archive, and remove the files that newer tables replace."""
        with converting(self.directory, wait=True):
            write_notes(self.directory, msgspec.structs.replace(notes_of(self.directory), index=()))
        convert(self.directory, ended=True)
        if left := leftovers(self.directory):
            raise CrawlDirectoryError(
                f"{left[0]} is read by another program; when that has ended, finish: {self._finish}"
            )

    def _follow(self) -> None:
        """Let followers of the crawl begin anew, since its tables have; one that cannot may keep rows that are gone."""
        troubles: list[str] = []

        async def follow() -> None:
            following = Following(self.directory, CrawlOptions(), troubles.append, remark=self._remark)
            await following.start()
            await following.finish()

        asyncio.run(follow())
        if troubles:
            raise CrawlDirectoryError(f"{troubles[0]}; then finish: {self._finish}")

    # -- what heirs read

    def ends(self) -> dict[str, int]:
        """How far each file is committed: path inside the crawl directory -> byte."""
        return {file: end for ledger in self.ledgers for file, end in ledger.committed_ends().items()}

    def archive(self) -> Iterator[tuple[str, Iterator[Span]]]:
        """The committed records of each file of the archive. Raises CrawlDirectoryError: one is damaged."""
        for file, end in sorted(self.ends().items()):
            if file.startswith(f"{WARC_DIRECTORY}/"):
                yield file, self._records(self.directory / file, end)

    def _records(self, path: Path, end: int) -> Iterator[Span]:
        for found in scan(path, end):
            if isinstance(found, Gap):
                raise CrawlDirectoryError(
                    f"{path} is damaged at byte {found.offset}; bring it back from a copy, or go on without: "
                    f"{self._finish} --accept-loss"
                )
            yield found

    def _convert(self) -> None:
        """Make tables of all rows, and refuse tables that are not what was written."""
        if told := convert(self.directory, ended=True).told:
            self._remark(told)
        self._refuse(damaged_tables(self.directory, notes_of(self.directory), deep=True))

    def _refuse(self, damages: Sequence[object]) -> None:
        """Refuse a crawl that is not whole, and say how to go on without what is lost."""
        if damages:
            raise refusal(self.directory, damages, f"{self._finish} --accept-loss")
