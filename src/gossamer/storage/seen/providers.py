"""The sieve as a wiring names it: for URLs alone, and for the tasks of a crawl, kept with its ledger; and the sieve in a crawl:
three providers in front of the ledger's, so that no stage knows of it (decision 9).

    commit, frontier ── push ──► `sieve-ledger` ──► the sieve's log, kept with the same group
                                                    │ merges
    frontier ◄── admit, pop ──  `sieve-queues` ◄────┘ what is new is pushed to the ledger's queues

`sieve-hint` is the seen set that the stages ask: it only spares the sieve what was offered lately. URLs that it lets pass count
as new until the sieve decides; so the budgets of hosts and domains count offers of URLs, not URLs.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.files import replace_file
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import AgentSheet
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.ledger.providers import LedgerFront, QueuesFront
from gossamer.storage.seen.sieve import Ends, Sieve
from gossamer.values.task import Task

#: Where a sieve lies in the crawl directory: beside the agent's ledger.
SIEVE_DIRECTORY = "state/{agent}/sieve"

#: Where a sieve without a ledger keeps what was drained of it.
DRAINED_FILE = "drained.json"

#: Counter of the ledger: offers and drainings that it has kept.
STEPS = "sieve_steps"

T = TypeVar("T")

_fixed = partial(setting, restart="it is part of the sieve that is open")


class SieveSheet(AgentSheet, frozen=True):
    """Settings of a sieve."""

    capacity: Annotated[
        int,
        _fixed(
            "Merge this many offered URLs at once; each takes 20 bytes of memory, and 70 during the merge.",
            unit="URLs",
            ge=1,
        ),
    ] = 1 << 19
    recent: Annotated[
        int,
        _fixed(
            "Cache at most this many recent and popular URLs in front of the sieve; each takes 171 bytes.",
            unit="URLs",
            ge=1,
        ),
    ] = 65_536
    sync: Annotated[bool, _fixed("Wait for the disk, so that merges and offers survive a power cut.")] = False


class _Sieving(Provider[SieveSheet], Generic[T]):
    """The common part of both providers."""

    keeps_state = True

    sieve: Sieve[T]

    def _open(
        self, kind: type[T], url_of: Callable[[T], str], ends: Ends, progress: Callable[[], int] = lambda: 0
    ) -> None:
        self.sieve = Sieve(self.home, kind, url_of, self.sheet, ends, progress)
        self.sieve.open()
        self.metrics.gauge("waiting", lambda: self.sieve.waiting)
        self.metrics.gauge("seen", lambda: self.sieve.seen)
        self.metrics.gauge("asked", lambda: self.sieve.asked)
        self.metrics.gauge("offered", lambda: self.sieve.missed)
        self.metrics.gauge("merges", lambda: self.sieve.merges)

    @property
    def home(self) -> Path:
        return Path(self.sheet.directory, SIEVE_DIRECTORY.format(agent=self.sheet.agent))

    async def stop(self) -> None:
        self.close()

    def close(self) -> None:
        """Close it. Waiting offers stay in its log."""
        self.sieve.close()

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        return self.sieve.unseen(urls)

    def flush(self) -> None:
        """Decide waiting offers soon, even though there is room for more."""
        self.sieve.flush()

    async def merged(self) -> None:
        merging = self.sieve.merging
        if merging is not None:
            await asyncio.wait([asyncio.wrap_future(merging)])

    @property
    def ready(self) -> bool:
        return self.sieve.ready

    def __len__(self) -> int:
        return len(self.sieve)


class SieveSeen(_Sieving[str]):
    """Keeps URLs only, without a ledger. Contract: `LateSeenSet`."""

    def __init__(self, sheet: SieveSheet | None = None) -> None:
        super().__init__(sheet)
        self._drained: dict[str, int] = {}
        self._handed_out: tuple[str, int] | None = None

    async def start(self) -> None:
        self.open()

    def open(self) -> None:
        path = self.home / DRAINED_FILE
        self._drained = msgspec.json.decode(path.read_bytes(), type=dict[str, int]) if path.exists() else {}
        self._open(str, str, self._end)

    def _end(self, file: str) -> int | None:
        return None if file.startswith("offers") else self._drained.get(file, 0)

    def close(self) -> None:
        self._received()
        super().close()

    def offer(self, urls: Sequence[str]) -> list[str]:
        self._received()
        self.sieve.offer(urls)
        return []

    def drain(self, most: int = 1_000) -> list[str]:
        self._received()
        items, file, end = self.sieve.take(most)
        if items:
            self._handed_out = file, end
        return items

    async def settle(self) -> None:
        while self.sieve.waiting:
            self.sieve.flush()
            await self.merged()

    def _received(self) -> None:
        """Count the last items that were handed out as received."""
        if self._handed_out is None:
            return
        file, end = self._handed_out
        self._handed_out = None
        kept = {name: at for name, at in self._drained.items() if (self.home / name).exists()}
        self._drained = {**kept, file: end}
        replace_file(self.home / DRAINED_FILE, msgspec.json.encode(self._drained), sync=self.sheet.sync)
        if self.sheet.sync:
            self.sieve.settled()


class LedgerSieve(_Sieving[Task]):
    """A late seen set for whole tasks, kept with the ledger: the frontier gets them long after the page that they were found on.

    Promises:
        1. Every task offered in a group that is kept, of a URL that was never offered before, comes out sooner or later.
        2. Only tasks that were offered come out, each URL once.
        3. A drained task counts as out exactly if the group in which it was drained is kept; otherwise it comes again
           after a reopening.
    """

    ledger: Uses[Ledger]

    async def start(self) -> None:
        """Open the sieve. Offers that the ledger does not know of were never committed, and are dropped."""
        self.open()

    def open(self) -> None:
        self._prefix = SIEVE_DIRECTORY.format(agent=self.sheet.agent) + "/"
        self._open(Task, attrgetter("url"), self._end, lambda: self.ledger.counters().get(STEPS, 0))

    def _end(self, file: str) -> int:
        return self.ledger.committed_ends().get(self._prefix + file, 0)

    def offer(self, tasks: Sequence[Task], group: Group) -> None:
        self.sieve.offer(tasks)
        # Also where nothing was added: a group before this one may have failed after it had offered the same tasks.
        file, end = self.sieve.position
        group.written(self._prefix + file, end)
        group.count(STEPS)

    def drain(self, group: Group, most: int = 1_000) -> list[Task]:
        items, file, end = self.sieve.take(most)
        if items:
            group.written(self._prefix + file, end)
            group.count(STEPS)
        return items

    async def settle(self) -> None:
        if self.sheet.sync:
            await asyncio.to_thread(self.sieve.sync)
            self.sieve.settled()


# -- in front of the ledger's

#: Seconds between two looks at a merge that the frontier waits for.
LOOK = 0.05

#: Tasks that come out at once, in one group.
DRAINED = 1_000


class SieveHint(Provider[NoSettings]):
    """Stands in for the URL-seen test where stages ask. It lets every URL that is not in its cache pass; the sieve
    removes seen ones later."""

    sieve: Uses[LedgerSieve]
    keeps_state = True

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        return self.sieve.unseen(urls)

    def offer(self, urls: Sequence[str]) -> list[str]:
        """The same: their tasks are offered when they are pushed."""
        return self.sieve.unseen(urls)


class _SievingGroup:
    """A group whose new tasks go into the sieve. Everything else is the group's own."""

    def __init__(self, group: Group, sieve: LedgerSieve) -> None:
        self._group = group
        self._sieve = sieve

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def push(self, tasks: Sequence[Task]) -> None:
        """They come out into their hosts' queues later, where they are new.

        Requests that are no plain GET are few, and may be large: the ledger itself says whether they are new.
        """
        plain = [task for task in tasks if task.request is None]
        if plain or not tasks:
            self._sieve.offer(plain, self._group)
        others = {task.identity: task for task in tasks if task.request is not None}
        if others:
            self._group.push([others[identity] for identity in self._group.offer(list(others))])


class SieveLedger(LedgerFront):
    """Passes everything on to the ledger, except the tasks that its groups push. Contract: `Ledger`."""

    sieve: Uses[LedgerSieve]

    @contextmanager
    def group(self) -> Iterator[Group]:
        with self.behind.group() as group:
            yield cast(Group, _SievingGroup(group, self.sieve))

    async def settle(self) -> None:
        await self.sieve.settle()
        await self.behind.settle()


class SieveQueuesSheet(Sheet, frozen=True):
    low: Annotated[
        int,
        setting("If fewer tasks than this are queued, merge the sieve even though it is not full.", unit="tasks", ge=1),
    ] = 10_000


class SieveQueues(QueuesFront[SieveQueuesSheet]):
    """Hands out tasks of the ledger's queues, and fills these from the sieve. Contract: `TaskQueues`.

    It moves URLs from the sieve to the queues when the frontier looks for tasks that are due.
    """

    ledger: Uses[Ledger]
    sieve: Uses[LedgerSieve]

    def __len__(self) -> int:
        return len(self.behind) + len(self.sieve)

    def next_due(self) -> float:
        """When there may be more to queue: now where something came out, soon where the frontier runs dry."""
        due = self.behind.next_due()
        if self.sieve.ready:
            return min(due, 0.0)
        if len(self.behind) >= self.sheet.low or not len(self.sieve):
            return due
        self.sieve.flush()
        return min(due, self.clock.now() + LOOK)

    def wake(self, now: float) -> int:
        woken = self.behind.wake(now)
        if not self.sieve.ready:
            return woken
        with self.ledger.group() as group:
            tasks = self.sieve.drain(group, DRAINED)
            group.push(tasks)
        return woken + len(tasks)
