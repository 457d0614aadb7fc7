"""The sieve in a crawl: three providers in front of the ledger's, so that no stage knows of it (decision 9).

    commit, frontier ── push ──► `sieve-ledger` ──► the sieve's log, kept with the same group
                                                    │ merges
    frontier ◄── admit, pop ──  `sieve-queues` ◄────┘ what is new is pushed to the ledger's queues

`sieve-hint` is the seen set that the stages ask: it only spares the sieve what was offered lately. URLs that it lets pass count
as new until the sieve decides; so the budgets of hosts and domains count offers of URLs, not URLs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.ledger.providers import LedgerFront, QueuesFront
from gossamer.storage.seen.contract import TaskSieve
from gossamer.values.task import Task

#: Seconds between two looks at a merge that the frontier waits for.
LOOK = 0.05

#: Tasks that come out at once, in one group.
DRAINED = 1_000


class SieveHint(Provider[NoSettings]):
    """Stands in for the URL-seen test where stages ask. It lets every URL that is not in its cache pass; the sieve
    removes seen ones later."""

    sieve: Uses[TaskSieve]
    keeps_state = True

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """Those of `urls` that were not offered lately, in order; depths are not kept."""
        return self.sieve.unseen(urls)

    def offer(self, urls: Sequence[str]) -> list[str]:
        """The same: their tasks are offered when they are pushed."""
        return self.sieve.unseen(urls)


class _Sieving:
    """A group whose new tasks go into the sieve. Everything else is the group's own."""

    def __init__(self, group: Group, sieve: TaskSieve) -> None:
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

    sieve: Uses[TaskSieve]

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger."""
        with self.behind.group() as group:
            yield cast(Group, _Sieving(group, self.sieve))

    async def settle(self) -> None:
        """Return when every group so far is as durable as the settings ask; the sieve's log first."""
        await self.sieve.settle()
        await self.behind.settle()


class SieveQueuesSheet(Sheet, frozen=True):
    """Settings of :class:`SieveQueues`."""

    low: Annotated[
        int,
        setting("If fewer tasks than this are queued, merge the sieve even though it is not full.", unit="tasks", ge=1),
    ] = 10_000


class SieveQueues(QueuesFront[SieveQueuesSheet]):
    """Hands out tasks of the ledger's queues, and fills these from the sieve. Contract: `TaskQueues`.

    It moves URLs from the sieve to the queues when the frontier looks for tasks that are due.
    """

    ledger: Uses[Ledger]
    sieve: Uses[TaskSieve]

    def __len__(self) -> int:
        """Tasks that are not popped; of those in the sieve, all that may come out."""
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
        """Queue what is due and what came out, some at a time; returns how many."""
        woken = self.behind.wake(now)
        if not self.sieve.ready:
            return woken
        with self.ledger.group() as group:
            tasks = self.sieve.drain(group, DRAINED)
            group.push(tasks)
        return woken + len(tasks)
