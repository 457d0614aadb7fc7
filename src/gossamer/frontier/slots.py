"""Slots of the frontier: one for each task that was handed out or refused, until its visit is committed.

Place in the flow: whatever takes a task out of the queues for good takes a slot here; a committed visit frees it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from math import inf
from typing import Final

import msgspec

from gossamer.engine.clock import Clock
from gossamer.frontier.contract import Politeness
from gossamer.frontier.sheet import FrontierUses
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.errors import DiskFull
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Answer, Task
from gossamer.values.visit import Response, Visit

#: One slot in so many is for hosts whose last page came within some seconds: hundreds of hosts that answer a byte a second
#: would take all slots for as long as such answers are borne with, and those that are well would wait (fault 11).
KEPT_FREE: Final = 8


class Slots:
    """As many as there may be visits under way."""

    def __init__(self, uses: FrontierUses) -> None:
        self._uses = uses
        self.taken = 0
        """Slots that are not free."""
        self.refused: deque[Visit] = deque()
        """Visits without a request, on their way to the commit."""

    def __repr__(self) -> str:
        return f"<Slots: {self.taken} taken, {self.free} free>"

    @property
    def free(self) -> int:
        """Slots that are left; below zero where the setting was lowered."""
        return self._uses.sheet.concurrency - self.taken

    @property
    def free_for_all(self) -> int:
        """Slots that are left for hosts of any kind, and not kept for lively ones."""
        return self.free - self._uses.sheet.concurrency // KEPT_FREE

    def depart(self, task: Task) -> None:
        """A task is under way."""
        self.taken += 1
        self._uses.flights.depart(task.identity)

    def take_back(self, task: Task) -> bool:
        """A task is under way no more, though nobody has fetched it. A request that may not be sent twice ends here, since it was
        perhaps sent. Returns False if its visit was committed meanwhile."""
        uses = self._uses
        if not uses.flights.arrive(task.identity):
            return False
        mark = "" if task.request is None else task.request.mark
        is_errand = task.relation == ROBOTS
        lost = Answer(task.url, task.host, Outcome.INTERRUPTED, 0.0, is_errand=is_errand, mark=mark)
        uses.politeness.ruling(lost)
        self.taken -= 1
        if not task.is_safe:
            self.end(task, Outcome.INTERRUPTED, "the crawler that had it is gone, and it may not be sent twice")
        return True

    def end(self, task: Task, outcome: Outcome, why: str = "") -> None:
        """A task's story ends without a request: at the commit, like any other."""
        self.depart(task)
        self.refused.append(Visit(task, Response(outcome, started=self._uses.clock.now(), error=why)))

    def take_refused(self, most: int) -> list[Visit]:
        """Up to `most` of these visits."""
        return [self.refused.popleft() for _ in range(min(most, len(self.refused)))]


# A wake-up call: the earliest of those that were asked for. The frontier's only timer.


class Alarm:
    """Calls back once, at the earliest instant that it was set to."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._at = inf
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Alarm at {self._at:g}>"

    def set(self, at: float) -> None:
        """Ring at this monotonic instant, unless it is to ring before."""
        if at >= self._at:
            return
        self.cancel()
        self._at = at
        self._task = asyncio.create_task(self._wait(at))

    def cancel(self) -> None:
        """Do not ring."""
        if self._task is not None:
            self._task.cancel()
        self._task, self._at = None, inf

    async def _wait(self, at: float) -> None:
        await self._clock.sleep(max(0.0, at - self._clock.monotonic()))
        self._task, self._at = None, inf
        self._ring()


# What is kept of hosts that must wait when a run ends, beside what was committed with their visits.
#
# Place in the flow: the frontier calls this when it stops. A host's state is written with each of its visits. One that was
# asked in a run that was killed waits its whole delay in the next, which may end before it has visited the host: without
# this, a third run would go by what the first one wrote, and ask too soon.


def keep_waits(ledger: Ledger, politeness: Politeness, hosts: Iterable[str], now: float) -> None:
    """Write down how long each of these hosts has still to wait; `now` is monotonic."""
    waiting = [name for name in hosts if politeness.waits(name, now) > 0.0]
    if not waiting:
        return
    try:
        with ledger.group() as group:
            for name in waiting:
                if note := politeness.note(name):
                    group.host(msgspec.structs.replace(group.host_state(name), note=note))
    except DiskFull:
        return  # then they go by what was written before
