"""The provider that ships what is new of a crawl to its store, publishes checkpoints, and stays its owner.

Place in the flow: it stands beside the commit, and reads the crawl directory between two of its groups (:mod:`shipping`). Then the
head is replaced (:mod:`gossamer.backup.head`).

It is a rule of politeness, too. An owner that could not say for a lease that it is alive asks no host, since another one may have
taken the crawl. Where that is so it ends the crawl, and writes nothing more into the store. A store that takes less than the crawl
writes slows the crawl down: no host is asked while too much is on the disk of this machine alone.
"""

import asyncio
import contextlib
import math
import shutil
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from gossamer.backup.contract import ObjectChanged, Store, StoreFailed, StoreRefused
from gossamer.backup.far_archive import let_go, stand_in
from gossamer.backup.head import AgentInStore, digest_of, note_owned, owned
from gossamer.backup.one_agent import claimed
from gossamer.backup.opening import CopiedStore, open_store, probe
from gossamer.backup.options import AGENT, CheckpointBytes, CheckpointEvery, KeepLocal, Lease
from gossamer.backup.shipping import SNAPSHOT, Shipping, size_of
from gossamer.crawls.control.standing import StoredAgent
from gossamer.crawls.work import Lapsing
from gossamer.engine.ends import Uses, UsesMany
from gossamer.engine.files import Point, crash_at
from gossamer.engine.sheet import Sheet, setting, show_bytes, show_count, show_seconds
from gossamer.storage.archive.warc import WarcArchive
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.members import division_of, members_of
from gossamer.storage.tables.places import reading
from gossamer.values.agents import at_work
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.task import Task

#: An owner says so many times in a lease that it is alive, and asks no host in the last part of it, so that nothing is in
#: flight when another one takes over.
_BEATS, _QUIET = 6, 0.75

#: A crawl asks no host while the store lacks so many times the bytes after which a checkpoint is due.
_BEHIND = 4


class PublisherSheet(Sheet, frozen=True):
    directory: Annotated[str, setting("Use this crawl directory.", restart="it is published", names="a folder")] = "."
    url: Annotated[str, setting("Publish into this store.", restart="the crawl keeps its store", names="a folder")] = ""
    every: CheckpointEvery = 300.0
    bytes: CheckpointBytes = 256_000_000
    keep_local: KeepLocal = None
    lease: Annotated[Lease, setting(restart="it is timed")] = 30.0
    goes_on: Annotated[
        bool,
        setting(
            "Go on while the store is away, as its disk is one of this machine.", restart="it says who owns the crawl"
        ),
    ] = False


class Publisher(Lapsing[PublisherSheet]):
    """Publishes a crawl into its store. A rule of politeness: `store` is why hosts rest while it cannot."""

    keeps_state = True
    word = "store"
    ledger: Uses[RocksLedger]
    archives: UsesMany[WarcArchive] = MappingProxyType({})

    def __init__(self, sheet: PublisherSheet | None = None) -> None:
        super().__init__(sheet)
        self._directory = Path(self.sheet.directory)
        self._members: tuple[str, ...] = ()
        """All agents, where several share the directory."""
        self._division = 0
        self._first = AGENT
        """The first of them at work: it was there before those who joined last."""
        self._is_unknown = False
        """The agent has joined, and what the store has of the crawl does not name it, so that no takeover concerns it."""
        self._place: AgentInStore | None = None
        self._shipping: Shipping
        """The objects that are in the store already, since this process owns its place there."""
        self._sent: dict[str, str] = {}
        """Requests that may not be sent twice, and have an object each: its name, and the identity of the request."""
        self._is_fenced = False
        self._is_failing = self._is_new = False
        self.heard = -math.inf
        """When the store last said that this process is the owner."""
        self.opened: Callable[..., Store] = open_store
        self._published = 0.0
        self._ends: Mapping[str, int] = {}
        """The committed ends of files as the last checkpoint has them."""
        self._short: list[str] = []
        """Archive files on a disk that is not there, of which the store lacks something."""
        self._is_behind = False
        self._is_due = False
        self._is_ending = False
        self._task: asyncio.Task[None] | None = None
        self._publishing: asyncio.Task[bool] | None = None
        self._one_at_a_time = asyncio.Lock()
        self.metrics.gauge("seconds_since_checkpoint", lambda: time.monotonic() - self._published)
        self.metrics.gauge("bytes_since_checkpoint", self._written)

    async def start(self) -> None:
        """Become the owner. Where the crawl was in the store before, and that is away, this process becomes the owner later. Raises
        CrawlDirectoryError: the store does not do or refuses this process, or another one owns what is in it."""
        self._members, self._division = members_of(self._directory), division_of(self._directory)
        self._first = next(iter(at_work(self._members)), AGENT)
        agents = {self.ledger.sheet.agent, *at_work(self._members)}
        self._is_new = not any(owned(self._directory, agent) for agent in agents)
        self._published, began = time.monotonic(), _now()
        try:
            await asyncio.to_thread(self._begin, self.ledger.committed_ends())
            self.heard = began
        except StoreFailed as error:
            if self._is_new or isinstance(error, StoreRefused):  # waiting would not help
                raise
            if self.sheet.goes_on:
                self.report(f"{error}; the crawl goes on without its copy")
                return
            self._fail(str(error))
        self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Publish what the crawl came to. The ledger is open still, and nothing is committed any more."""
        if self._task is None:
            return
        self._is_ending = True
        if self._publishing is not None:
            await self._publishing
        if (place := self._place) is not None and not self._is_fenced:
            assert place.head is not None
            if place.head.epoch > 1 or self.ledger.counters().get("fetched") or self._members:
                await self.publish(has_ended=True)
            else:  # it came to nothing, and its directory is removed, too
                with contextlib.suppress(StoreFailed):
                    await asyncio.to_thread(lambda: place.remove(place.store.list(f"{place.folder}/")))
        async with self._one_at_a_time:  # a claim or a beat under way would come after those of the next process
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def stored_agent(self) -> StoredAgent:
        """The entry of the agent in the store."""
        head = None if self._place is None else self._place.head
        if head is None:
            return StoredAgent(
                self.ledger.sheet.agent, "", 0.0, self.sheet.lease, None, is_away=True, rests=self._rests
            )
        published = round(time.monotonic() - self._published, 1) if head.checkpoint else None
        heard = round(max(0.0, _now() - self.heard), 1)
        return StoredAgent(
            *(self.ledger.sheet.agent, head.holder, heard, self.sheet.lease, published, head.epoch),
            *(self._written(), self._is_failing, self._is_failing and self._rests),
        )

    def rest(self, host: str, wall: float) -> float:
        """Let every host rest while another process may own the crawl, or the store is too far behind."""
        return self.sheet.lease / _BEATS if self._is_behind or self._rests else 0.0

    # -- requests that may not be sent twice

    async def may_send(self, task: Task) -> bool:
        """Contract: `SendGuard`. The ledger notes such a request, too, but a checkpoint may be older than that note. So an object
        of its own says that it was sent, until a checkpoint has its outcome. While the store is away this waits."""
        await self.sure()
        place, mark = self._place, digest_of(task.identity.encode("utf-8", "surrogatepass"))
        if place is None:
            return True  # it goes on without its copy
        assert place.head is not None
        life = place.head.life.encode()
        while mark not in self._sent:
            try:
                may_send = await asyncio.to_thread(place.note_sent, mark, life)
            except StoreFailed as error:
                self._fail(str(error))
                if self.sheet.goes_on:
                    return True
                await asyncio.sleep(self.sheet.lease / _BEATS)
            else:
                self._sent[mark] = task.identity
                if not may_send:
                    self.metrics.count("not_sent_again")
                    return False
        await self.sure()
        return True

    # -- ownership

    async def sure(self) -> None:
        """Return as soon as no other process can own the agent: its tasks from then on are in its next checkpoint, or lost with
        its folder. It does not return where another process has the agent."""
        while self._rests:
            await asyncio.sleep(self.sheet.lease / _BEATS)

    @property
    def _has_published(self) -> bool:
        """The checkpoint is of the agents that the crawl has."""
        head = self._place.head if self._place is not None else None
        return (
            head is not None
            and bool(head.checkpoint)
            and (head.members, head.division) == (self._members, self._division)
        )

    @property
    def _rests(self) -> bool:
        is_silent = not self.sheet.goes_on and self.heard + _QUIET * self.sheet.lease <= _now()
        return self._is_fenced or self._is_unknown or is_silent

    def _begin(self, ends: Mapping[str, int]) -> None:
        agent = self.ledger.sheet.agent
        store = self.opened(self.sheet.url, is_new=self._is_new)
        if isinstance(store, CopiedStore):
            store.tell = self.report
        now, odd = probe(store)
        if odd:
            self.report(odd)
        place = claimed(store, self._directory, agent, self.sheet.lease, now)
        self._shipping = Shipping(self._directory, place, self._members, self.metrics)
        self._ends = {name: size_of(parts) for name, parts in self._shipping.known.files.items()}
        self._is_unknown = self._division > 1 and agent != self._first and not self._shipping.known.files
        self._stand_in(place, ends)
        self._place = place
        # Several agents forget nothing of each other before they have published, and none is whole without the others.
        self._is_due = bool(self._members) and not self._has_published

    async def _work(self) -> None:
        """Say that the owner is alive, and publish when it is time; both until the end."""
        while True:
            await asyncio.sleep(min(self.sheet.lease / _BEATS, self.sheet.every))
            place = self._place
            await self._in_store(partial(self._begin, self.ledger.committed_ends()) if place is None else place.renew)
            if self._is_fenced:
                self.lapsed()
            if place is None:
                continue
            if self._is_unknown and (first := owned(self._directory, self._first)) is not None:
                self._is_unknown = first.division < self._division
            is_time = self._is_due or time.monotonic() - self._published >= self.sheet.every
            self._look_behind()
            if (
                (is_time or self._written() >= self.sheet.bytes)
                and not self._is_ending
                and (self._publishing is None or self._publishing.done())
            ):
                self._publishing = asyncio.create_task(self.publish())

    def _written(self) -> int:
        """Bytes of archive, rows and log that no checkpoint has."""
        return sum(max(0, end - self._ends.get(file, 0)) for file, end in self.ledger.committed_ends().items())

    def _look_behind(self) -> None:
        """Notice that the store takes less than the crawl writes, or has caught up."""
        is_behind = (written := self._written()) >= _BEHIND * self.sheet.bytes and not self.sheet.goes_on
        if is_behind and not self._is_behind:
            self.report(
                f"the store {self.sheet.url} is slower than the crawl: {show_bytes(written)} are not in it yet, and no host "
                "is asked until it has them"
            )
        elif self._is_behind and not is_behind:
            self.report(f"the store {self.sheet.url} has caught up, and the crawl goes on")
        self._is_behind = is_behind

    async def _in_store(self, do: Callable[[], None]) -> bool:
        """Change the head, one change at a time; False where that could not be. A process that is the owner no more ends the
        crawl."""
        async with self._one_at_a_time:
            began = _now()
            try:
                if not self._is_fenced:
                    await asyncio.to_thread(do)
            except ObjectChanged:
                self._end(f"the crawl in {self.sheet.url} belongs to another process by now")
            except (StoreFailed, OSError) as error:
                self._fail(str(error))
            except CrawlDirectoryError as error:  # met by an owner that begins late
                self._end(str(error))
            else:
                self.heard = began
                if self._is_failing:
                    self._is_failing = False
                    self.report(f"the store {self.sheet.url} can be reached again")
                return not self._is_fenced
            return False

    def _end(self, why: str) -> None:
        if not self._is_fenced:
            self._is_fenced = True
            self.report(f"{why}, so this one ends; nothing of it is published any more")

    def _fail(self, why: str) -> None:
        self.metrics.count("failures")
        if not self._is_failing:
            self._is_failing = True
            rests = f"asking no host after {show_seconds(_QUIET * self.sheet.lease)} without it"
            if self._place is None:
                rests = "asking no host until it is there"
            self.report(f"{why}; trying again, and {'going on meanwhile' if self.sheet.goes_on else rests}")

    # -- checkpoints

    async def publish(self, *, has_ended: bool = False) -> bool:
        """Publish the present state; False where that could not be."""
        try:
            is_published = await self._published_now(has_ended)
        except (CrawlDirectoryError, OSError) as error:
            is_told = isinstance(error, StoreFailed)
            self._fail(str(error) if is_told else f"the checkpoint could not be made: {error}")
            is_published = False
        if has_ended and not is_published and not self._is_fenced:
            old = show_seconds(time.monotonic() - self._published)
            self.report(
                f"what came in the last {old} is in {self._directory} alone: the last checkpoint was not published"
            )
        return is_published

    async def _published_now(self, has_ended: bool) -> bool:
        place, shipping, snapshot = self._place, self._shipping, self.ledger.places.state / SNAPSHOT
        assert place is not None
        began = time.monotonic()
        await asyncio.to_thread(self._stand_in, place, self.ledger.committed_ends())
        shutil.rmtree(snapshot, ignore_errors=True)
        ended = [mark for mark, identity in self._sent.items() if not self.ledger.requests.is_begun(identity)]
        with reading(self._directory):  # no row log goes while it is shipped, where a table was made of it
            try:
                await self.ledger.snapshot_at_work(snapshot)
                ends = self.ledger.committed_ends()
                files = dict(shipping.files(snapshot, ends))
                checkpoint = await asyncio.to_thread(shipping.ship, snapshot, files)
            finally:
                shutil.rmtree(snapshot, ignore_errors=True)
        before = shipping.known
        if checkpoint == before and self._has_published and not has_ended:
            self._published, self._ends = began, ends
            return True
        crash_at(Point.CHECKPOINT)
        old = place.head.checkpoint if place.head is not None else ""
        members, division = self._members, self._division
        do = partial(place.publish, checkpoint, has_ended=has_ended, members=members, division=division)
        if not await self._in_store(do):
            return False
        assert place.head is not None
        life = place.head.life  # noted before another one is begun
        note_owned(self._directory, place.agent, self.sheet.url, (life,), place.head, has_ended=has_ended)
        is_first = shipping.keep(checkpoint, files)
        self._published, self._is_due, self._ends = began, False, ends
        if not has_ended:
            self._look_behind()
        self.metrics.count("checkpoints")
        for mark in ended:
            del self._sent[mark]
        gone = {*(before.keys - checkpoint.keys), old, *map(place.sent_key, ended)} - {""}
        with contextlib.suppress(StoreFailed):  # parts that are not named any more do no harm
            await asyncio.to_thread(lambda: place.remove({*gone, *(place.left_by_others() if is_first else ())}))
        if self.sheet.keep_local is not None:
            # Each agent keeps its share. While the store is away all stay.
            most = self.sheet.keep_local // max(1, len(at_work(self._members)))
            with contextlib.suppress(StoreFailed):
                count, lost = await asyncio.to_thread(
                    let_go, self._directory, place, shipping.known.files, most, self._in_use
                )
                self.metrics.count("files_let_go", count)
                if lost:
                    self.report(f"the store {self.sheet.url} has lost a part of {lost}, which is shipped again")
                    shipping.forget(lost)
        return True

    def _stand_in(self, place: AgentInStore, ends: Mapping[str, int]) -> None:
        """Have the store stand in for disks of the archive that are lost, and name these."""
        linked, short = stand_in(self._directory, place, self._shipping.known.files, ends, self._in_use)
        if linked:
            self.report(
                f"{show_count(len(linked), 'archive file')} lay on a disk that is not there, as {linked[0]}; what reads them "
                f"reads the store {self.sheet.url} from now on"
            )
        if fresh := [name for name in short if name not in self._short]:
            self.report(
                f"{fresh[0]} lies on a disk that is not there, and the store {self.sheet.url} has it only as far as the last "
                "checkpoint; what came since can be read when the disk is back"
            )
        self._short = short

    @property
    def _in_use(self) -> set[str]:
        return {name for some in self.archives.values() for archive in some for name in archive.open_files()}


def _now() -> float:
    """Seconds that pass also while the machine sleeps, where the system counts these."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
