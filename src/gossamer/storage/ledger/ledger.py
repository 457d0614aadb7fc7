"""The ledger's provider: it opens an agent's store, hands out groups, and keeps the counters.

Place in the flow: the commit opens a group for its visits after the archive has their bytes; the frontier opens one for seeds,
and takes its tasks from the queues; URL-seen asks the seen set. All three live in the process that owns the state (design
question 1).
"""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import msgspec

from gossamer.engine.errors import refusing
from gossamer.engine.files import Point, crash_at
from gossamer.storage.ledger import opening, schema
from gossamer.storage.ledger.depth import DepthLimit, KeptLinks
from gossamer.storage.ledger.group import LedgerGroup
from gossamer.storage.ledger.layout import END_PREFIX, OWN_PREFIX, SECRET_KEY, STATE_KEY, KeptRequests, Marks
from gossamer.storage.ledger.queues import HostQueues, Plan
from gossamer.storage.ledger.reader import LedgerReader, LedgerSheet, LedgerState
from gossamer.storage.ledger.seen import KeptFingerprints, SeenContents, SeenUrls
from gossamer.storage.ledger.spaces import KeptSpaces
from gossamer.storage.ledger.store import Batch, RocksStore, number_behind
from gossamer.storage.ledger.waiting import AsideTasks
from gossamer.storage.recovery import changed_files
from gossamer.storage.tables.places import check_is_here
from gossamer.values.errors import CrawlDirectoryError, LedgerDamaged, UsageError

if TYPE_CHECKING:
    from gossamer.storage.ledger.moving import LedgerRewriting

__all__ = ["STATE_DIRECTORY", "LedgerSheet", "RocksLedger"]

#: Where the states of agents lie inside the crawl directory (docs/kept.md).
STATE_DIRECTORY = "state"

#: Name of the value that says how the last process ended.
CLEAN = "ledger.clean"

#: Tables are written so often before a checkpoint of a ledger at work: once what waited, and once what came meanwhile.
_FLUSHES = 2

_encode = msgspec.msgpack.Encoder().encode


class _Commit(msgspec.Struct, frozen=True):
    """The changes to memory that a written batch stands for."""

    group: LedgerGroup
    plan: Plan
    state: LedgerState
    ends: dict[str, int]


class RocksLedger(LedgerReader):
    """One agent's ledger. Contract: `Ledger`; its queues and seen set: :mod:`gossamer.storage.ledger.providers`."""

    keeps_state = True

    store_type: ClassVar[type[RocksStore]] = RocksStore
    """The database that it opens: an heir may bring one that fails, or that looks on."""

    depths: DepthLimit
    spaces: KeptSpaces

    def __init__(self, sheet: LedgerSheet | None = None) -> None:
        super().__init__(sheet and sheet.within_memory())
        self.places = opening.Places(Path(self.sheet.directory, STATE_DIRECTORY, self.sheet.agent))
        self.open_group: LedgerGroup | None = None
        self._lock: opening.ProcessLock | None = None
        self._state = LedgerState(Marks(), {})
        self._unsure: _Commit | None = None
        """The group that is being written, or of which it is not known whether it was."""
        self._ends: dict[str, int] = {}
        self.is_clean = True
        """Whether the last process that had it open ended with nothing in flight, or there was none."""
        self.is_fresh = True
        """Whether nothing was ever committed."""

    async def start(self) -> None:
        self.open()

    def changed(self, before: LedgerSheet) -> None:
        """Another limit of depth may hold. Raises SettingError: the crawl does not know the depths of its URLs."""
        if self.sheet.depth != before.depth:
            self.depths.change(self.sheet.depth)

    async def stop(self) -> None:
        self.close()

    def open(self) -> None:
        """Open the agent's ledger, or begin one. Raises CrawlDirectoryError: another process has it, it is damaged, newer than
        this program, or cannot be written."""
        places = self.places
        if self.sheet.existing and not places.state.is_dir():
            raise opening.missing(places.state)
        self._lock = opening.ProcessLock(places.lock)
        advice = "; resume where it can be written"
        with refusing(CrawlDirectoryError, f"cannot write to {places.state}", advice), ExitStack() as undone:
            undone.callback(self._unlock)
            places.recover()
            if not places.ledger.exists():
                if self.sheet.existing:
                    raise opening.missing(places.state)
                self._store = opening.begin(self._create, places, self.sheet)
            else:
                opening.check_log(places.ledger)
                # The library drops what it cannot read of the log when it opens a store to write. A clean end leaves it empty.
                if number_behind(places.ledger):
                    look = partial(RocksStore, places.ledger, self.sheet, read_only=True)
                    opening.open_beside(places.ledger, look).close()
                self._store = self.store_type(places.ledger, self.sheet)
            undone.callback(self._store.close)
            if self.sheet.private:
                places.close_to_others()
            schema.migrate(self._store)
            crash_at(Point.RECOVERY)
            self._load()
            if not self.is_fresh:
                self.put_meta(CLEAN, b"")
            undone.pop_all()
        self.metrics.gauge("queued", lambda: len(self.queues))
        self.metrics.gauge("held", lambda: self.queues.held)
        self.metrics.gauge("buffered", lambda: self.queues.buffered)
        self.metrics.gauge("seen_asked", lambda: self.seen.asked)
        self.metrics.gauge("seen_missed", lambda: self.seen.missed)

    def damage(self) -> LedgerDamaged | None:
        """Why its store cannot be read at all, if so. It is not to be open. Raises CrawlDirectoryError: it can be, and is of
        another version."""
        try:
            with self.looking():
                return None
        except LedgerDamaged as error:
            return error

    def begin_anew(self, ends: Mapping[str, int]) -> None:
        """Put an empty ledger in the place of one that is lost, whole at once; `ends` says of files of the crawl directory where
        what is kept of them ends. Raises CrawlDirectoryError: another process has it, or it cannot be written."""
        opening.replace(
            self.places, lambda path: opening.make_empty(self._create, path, self.sheet).close(), self.sheet, ends
        )

    def go_back(self, ends: Mapping[str, int]) -> None:
        """Go on from the last commit before a changed byte of its log; `ends` and what it raises are as of :meth:`begin_anew`."""
        opening.replace(self.places, partial(opening.link, self.places.ledger), self.sheet, ends)

    @contextmanager
    def looking(self, snapshot: Path | None = None) -> Iterator[Self]:
        """Open it to read the present state, or a `snapshot` of it (:meth:`snapshot_at_work`), also while another process has it
        open: nothing is locked, written or repaired. Raises CrawlDirectoryError: there is none, it is damaged, or of another
        version."""
        if snapshot is None and not self.places.ledger.is_dir():
            raise opening.missing(self.places.state)
        with ExitStack() as stack:
            with refusing(CrawlDirectoryError, f"cannot read {self.places.ledger}"):
                path = snapshot or stack.enter_context(opening.readable(self.places.ledger))
            open_it = partial(self.store_type, path, self.sheet, read_only=True)
            self._store = open_it() if snapshot is not None else opening.open_beside(self.places.ledger, open_it)
            stack.callback(self._store.close)
            if schema.version_of(self._store) < schema.VERSION:
                raise CrawlDirectoryError(
                    f"the ledger in {self.places.ledger} is of an older version; resume the crawl"
                )
            self._load(may_write=False)
            yield self

    def damage_of_checkpoint(self, name: str) -> str:
        """Read a checkpoint through; returns what is wrong with it, empty where nothing is, or where it is gone meanwhile."""
        path = self.places.checkpoints / name
        wrong = changed_files(path)
        try:
            with closing(self.store_type(path, self.sheet, read_only=True)) as store:
                store.read_through()
        except CrawlDirectoryError as error:
            wrong.append(str(error))
        return wrong[0] if wrong and path.exists() else ""

    def close(self) -> None:
        """Close it; hosts that moved are written first."""
        if self._lock is None:
            return
        try:
            self._mend()
            group = LedgerGroup(self)
            group.meta(CLEAN, b"" if self.queues.in_flight else b"yes")
            self._commit(group)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close it and write nothing more, as if the process had died: what a test of recovery needs."""
        if self._lock is not None:
            self._store.close()
            self.places.drop_link()
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _create(self, path: Path) -> RocksStore:
        return self.store_type(path, self.sheet, create=True)

    def _load(self, *, may_write: bool = True) -> None:
        self._unsure = None
        self._state = state = opening.read_state(self._store)
        self._ends = opening.read_ends(self._store)
        self.keys = opening.read_keys(self._store, self.sheet)
        self.depths = DepthLimit(
            self._store, self.sheet.depth, self.put_meta if may_write else lambda name, value: None
        )
        self.seen = SeenUrls(self._store, self.keys, self.sheet.recent, depths=self.depths.keeps_depths)
        self.requests = KeptRequests(self._store, self.keys, session=os.urandom(8))
        self.queues = HostQueues(self._store, self.keys, self.sheet, state.marks, self.requests)
        self.contents = SeenContents(self._store)
        self.forget_hosts()
        self._failing = {}
        self.page_links = KeptLinks(self._store, self.keys)
        self.fingerprints = KeptFingerprints(self._store, self.keys)
        self.spaces = KeptSpaces(self._store, self.keys)
        self.shelf = AsideTasks(self._store, self.keys)
        self.is_fresh = self._store.get("meta", STATE_KEY) is None
        self.is_clean = self.is_fresh or self.meta(CLEAN) == b"yes"

    @property
    def secret(self) -> bytes:
        return self._store.get("meta", SECRET_KEY) or b""

    # -- groups

    @contextmanager
    def group(self) -> Iterator[LedgerGroup]:
        """Open a group; it is written when the block ends, and forgotten when it raises. Raises RuntimeError: there is an open
        group; CrawlDirectoryError: it could not be written, and nothing of it is kept."""
        if self.open_group is not None:
            raise RuntimeError("one group at a time: check-and-put must know of everything that is staged")
        self._mend()
        self.open_group = group = LedgerGroup(self)
        try:
            yield group
            self._commit(group)
        finally:
            self.open_group = None

    def _commit(self, group: LedgerGroup) -> None:
        batch = self._store.batch()
        plan = self.queues.plan(group.changes)
        self.queues.write(plan, batch)
        group.write(batch)
        counters = dict(self._state.counters)
        for name, number in group.counts.items():
            if number:
                counters[name] = counters.get(name, 0) + number
        state = LedgerState(plan.marks, counters, self._state.commits + 1)
        batch.put("meta", STATE_KEY, _encode(state))
        ends: dict[str, int] = {}
        for file, end in group.ends.items():
            if end > self._ends.get(file, -1):
                ends[file] = end
                batch.put("meta", END_PREFIX + file.encode(), str(end).encode())
        self._unsure = _Commit(group, plan, state, ends)
        crash_at(Point.BEFORE_COMMIT)
        self._store.write(batch)
        crash_at(Point.AFTER_COMMIT)
        self._committed()

    def _committed(self) -> None:
        commit, self._unsure = self._unsure, None
        assert commit is not None
        self.queues.apply(commit.plan)
        commit.group.applied()
        self._state = commit.state
        self._ends.update(commit.ends)
        self.metrics.counters["commits"] += 1

    def _mend(self) -> None:
        """After a write that failed: go on where there is room again, or say once more that there is none.

        What failed to be written may yet have reached the disk, as when the disk was full only for what follows. The count
        of commits tells.
        """
        if self._store.mend() and self._unsure is not None:
            if opening.read_state(self._store).commits == self._unsure.state.commits:
                self._committed()
            self._unsure = None

    def flush_moves(self) -> None:
        """Write which hosts came and went, where any did."""
        if self.queues.moved:
            self._mend()
            self._commit(LedgerGroup(self))

    @contextmanager
    def rewriting(self, *, is_at_work: bool = False) -> "Iterator[LedgerRewriting]":
        """Change what is kept beneath queues and groups, with nothing in flight; all of it is read anew afterwards.

        Of a ledger that `is_at_work`, nothing that changes is in flight, and only what memory has of it is forgotten.
        """
        from gossamer.storage.ledger.moving import LedgerRewriting  # no crawl at work needs it

        self._mend()
        is_clean = self.is_clean
        try:
            yield LedgerRewriting(self._store, self.keys, self._write_counted)
        finally:
            if is_at_work:
                self.flush_moves()
                self.seen.forget()
                self.forget_hosts()
                self.queues.look_again()
            else:
                self._load()
                self.is_clean = is_clean

    def _write_counted(self, batch: Batch, counts: Mapping[str, int], finished: int) -> None:
        before, marks = self._state, self._state.marks
        added = {name: before.counters.get(name, 0) + number for name, number in counts.items() if number}
        unfinished = marks.unfinished - finished
        after = LedgerState(
            Marks(marks.serial, marks.rotation, unfinished), {**before.counters, **added}, before.commits
        )
        batch.put("meta", STATE_KEY, _encode(after))
        self.spaces.forget()
        self._store.write(batch)
        before.counters.update(added)
        marks.unfinished = unfinished
        crash_at(Point.DELETION)

    async def settle(self) -> None:
        if self.sheet.durability == "power":
            await asyncio.to_thread(self._store.sync)

    def sync(self) -> None:
        self._store.sync()

    # -- beside groups

    def give_up_ends(self, ends: Mapping[str, int | None]) -> None:
        """Files that end before what was committed of them, or are gone (None): their lost parts count no more."""
        self._mend()
        batch = self._store.batch()
        for file, end in ends.items():
            key = END_PREFIX + file.encode()
            if end is None:
                batch.delete("meta", key)
                self._ends.pop(file, None)
            else:
                batch.put("meta", key, str(end).encode())
                self._ends[file] = end
        self._store.write(batch)

    def put_meta(self, name: str, value: bytes) -> None:
        self._mend()
        self._store.put("meta", OWN_PREFIX + name.encode(), value)

    # -- checkpoints

    async def checkpoint_at_work(self, name: str) -> Path:
        """As :meth:`checkpoint`, for a crawl at work: groups go on until little is left to be written, and wait for that alone.
        Raises UsageError: the name cannot be used, or is taken."""
        self.places.check_name(name)
        await self._flush_at_work()
        return self.checkpoint(name)

    async def snapshot_at_work(self, path: Path) -> None:
        await self._flush_at_work()
        self.flush_moves()
        self._store.snapshot_to(path)

    async def _flush_at_work(self) -> None:
        for _ in range(_FLUSHES):
            await asyncio.to_thread(self._store.flush)

    def checkpoint(self, name: str) -> Path:
        """Keep the present state under a name, as a snapshot that shares its files. Raises UsageError: the name cannot be used,
        or is taken."""
        self.flush_moves()
        return self.places.add(name, self._store.snapshot_to)

    def checkpoints(self) -> list[str]:
        return self.places.names()

    def restore(self, name: str, ends: Mapping[str, int] | None = None) -> None:
        """Go back to a checkpoint, which stays. Records after it are kept: `ends`, file of the crawl directory -> its size now,
        count as committed ends from now on, and the crawl goes on in new files (design question 10). Raises UsageError: there is
        no such checkpoint; CrawlDirectoryError: the ledger is in use, or the checkpoint is damaged."""
        known = self.places.names()
        if name not in known:
            raise UsageError(f"there is no checkpoint {name!r}; known: {', '.join(known) or 'none'}")
        opening.replace(self.places, partial(opening.link, self.places.checkpoints / name), self.sheet, ends or {})


def ledgers_of(directory: Path) -> list[RocksLedger]:
    """The ledgers of a crawl's agents, not open. Raises CrawlDirectoryError: there is none."""
    found = sorted(path.parent.name for path in (directory / STATE_DIRECTORY).glob("*/ledger"))
    check_is_here(directory)
    if not found:
        raise CrawlDirectoryError(
            f"{directory} has no ledger: the crawl ended before it kept anything, or its {STATE_DIRECTORY}/ is lost; "
            "begin anew with --overwrite"
        )
    return [RocksLedger(LedgerSheet(directory=str(directory), agent=agent)) for agent in found]
