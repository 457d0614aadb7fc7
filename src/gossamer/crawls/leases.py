"""Several crawlers on one queue and one URL cache: the keeper gives out URLs by leases, and a crawler keeps its leases alive.

Place in the flow: between frontier and fetch, where crawlers are processes of their own (Ridgway 2010, section 4.1; leases
take the place of the locks of its section 7.3.3). The keeper has one :class:`LeaseUrls` for each crawler. All of them take
from the frontier's one queue of tasks, so the next URL goes to a crawler that has room. :class:`TakeLeases` stands at the
crawler's entrance.

A lease ends with the visit, or when it runs out: a crawler that began anew, or has not renewed its leases in time, has lost
them. The frontier then puts the URLs back into their hosts' queues, with the usual delay and without spending a try. If a
crawler sends a visit without a lease, the keeper drops it.
"""

import asyncio
import os
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from gossamer.engine.component import AsynchronousFilter
from gossamer.engine.ends import In, Out
from gossamer.engine.sheet import Sheet, setting
from gossamer.values.task import Answer, LeasedTask, LeaseRenewal, Task
from gossamer.values.visit import Visit

T = TypeVar("T")

#: Looks at the leases within the time of one: one that ran out is noticed a quarter of it later at most.
LOOKS = 4


class LeaseUrlsSheet(Sheet, frozen=True):
    crawler: Annotated[
        str, setting("Name of the process that takes the leases.", restart="its connectors lead to one")
    ] = ""
    slots: Annotated[int, setting("Lease at most this many URLs at once.", unit="URLs", ge=1)] = 64
    lease: Annotated[
        float, setting("Take URLs back from a crawler that has not renewed its leases for this long.", unit="s", gt=0)
    ] = 30.0


class LeaseUrls(AsynchronousFilter[LeaseUrlsSheet]):
    """Leases URLs to one crawler, and takes back those that it does not bring."""

    tasks: In[Task]
    renewals: In[LeaseRenewal]
    answered: In[Answer]
    fetched: In[Visit]
    leased: Out[LeasedTask]
    answers: Out[Answer]
    visits: Out[Visit]
    returned: Out[Task]

    #: As many as there are leases at most, since nothing else is passed on.
    spills = frozenset({"renewals", "answered", "fetched"})

    lasts = "it knows which URLs are on lease"

    def __init__(self, sheet: LeaseUrlsSheet | None = None) -> None:
        super().__init__(sheet)
        self.lapsed: Callable[[str, str], None] = lambda crawler, life: None
        """Called with the names of the crawler and of its life when its leases have run out, so that this life can be ended and
        another one begun; the process that comes after a death may still be starting, and stays."""
        self._life = ""
        self._heard = 0.0
        self._open: dict[str, list[Task]] = {}
        self._has_room = asyncio.Event()
        self._are_tasks_over = False
        self._leased = deque[LeasedTask]()
        self._answers = deque[Answer]()
        self._visits = deque[Visit]()
        self._returned = deque[Task]()
        self._watching: asyncio.Task[None] | None = None
        self._leases = 0
        self.metrics.gauge("leases", lambda: self._leases)

    # -- life

    async def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    def changed(self, before: LeaseUrlsSheet) -> None:
        self._has_room.set()

    async def _watch(self) -> None:
        while True:
            await self.clock.sleep(self.sheet.lease / LOOKS)
            if self._life and self.clock.monotonic() - self._heard > self.sheet.lease:
                self.report(
                    f"{self.sheet.crawler} has not renewed its leases for {self.sheet.lease:g} s; "
                    f"its {self._leases} URLs go back to the queue"
                )
                self.metrics.count("lapses")
                life, self._life = self._life, ""
                self._take_back()
                self.lapsed(self.sheet.crawler, life)

    # -- inputs

    async def on_tasks(self, task: Task) -> None:
        """Lease the next URL, when the crawler is there and has room. Until then no more are taken from the queue."""
        while not (self._life and self._leases < self.sheet.slots):
            self._has_room.clear()
            await self._has_room.wait()
        self._open.setdefault(task.identity, []).append(task)
        self._leases += 1
        self._leased.append(LeasedTask(task, self._life))
        self.metrics.count("leased")
        self.signal("leased")

    def on_renewals(self, renewal: LeaseRenewal) -> None:
        """The crawler is there. If it has begun anew, it has forgotten what it had."""
        self._heard = self.clock.monotonic()
        if renewal.life != self._life:
            self._life = renewal.life
            self._take_back()
        self._has_room.set()

    def on_answered(self, answer: Answer) -> None:
        """The host is free again, if the URL is on lease here."""
        if answer.identity in self._open:
            self._answers.append(answer)
            self.signal("answers")

    def on_fetched(self, visit: Visit) -> None:
        """A lease ends with what it was for."""
        leases = self._open.get(visit.task.identity)
        if leases is None:
            self.metrics.count("late")
            return
        leases.pop()
        self._leases -= 1
        if not leases:
            del self._open[visit.task.identity]
        self._visits.append(visit)
        self.signal("visits")
        self._has_room.set()
        self._end_if_done()

    def input_ended(self, role: str) -> None:
        """With no more tasks to come, and none on lease, there is nothing left to say to the crawler."""
        self._are_tasks_over = self._are_tasks_over or role == "tasks"
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._are_tasks_over and not self._open:
            self.finish()

    def _take_back(self) -> None:
        """All leases have ended without a visit."""
        for tasks in self._open.values():
            self._returned.extend(tasks)
        self.metrics.count("returned", self._leases)
        self._leases = 0
        self._open.clear()
        self._leased.clear()
        self.signal("returned")
        self._has_room.set()
        self._end_if_done()

    # -- outputs

    def take_leased(self, free: int) -> Sequence[LeasedTask]:
        return _taken(self._leased, free)

    def take_answers(self, free: int) -> Sequence[Answer]:
        return _taken(self._answers, free)

    def take_visits(self, free: int) -> Sequence[Visit]:
        return _taken(self._visits, free)

    def take_returned(self, free: int) -> Sequence[Task]:
        return _taken(self._returned, free)


class TakeLeasesSheet(Sheet, frozen=True):
    renew: Annotated[float, setting("Renew the leases at this interval.", unit="s", gt=0)] = 5.0


class TakeLeases(AsynchronousFilter[TakeLeasesSheet]):
    """Takes URLs on lease, and renews the leases as long as the process works."""

    leased: In[LeasedTask]
    tasks: Out[Task]
    renewals: Out[LeaseRenewal]

    spills = frozenset({"leased"})

    def __init__(self, sheet: TakeLeasesSheet | None = None) -> None:
        super().__init__(sheet)
        self._life = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._tasks = deque[Task]()
        self._renewals = deque[LeaseRenewal]()
        self._renewing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Say that a new life has begun, and go on saying it: on the event loop, so that one that hangs loses its leases."""
        self._renewing = asyncio.create_task(self._renew())

    async def stop(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()

    async def _renew(self) -> None:
        while not self.finished:
            self._renewals.append(LeaseRenewal(self._life))
            self.signal("renewals")
            await self.clock.sleep(self.sheet.renew)

    def on_leased_many(self, leases: Sequence[LeasedTask]) -> None:
        """Fetch what is leased to this life: a link sends once more what the process before it had not acknowledged."""
        mine = [lease.task for lease in leases if lease.life == self._life]
        self.metrics.count("outdated", len(leases) - len(mine))
        self._tasks.extend(mine)
        self.signal("tasks")

    def take_tasks(self, free: int) -> Sequence[Task]:
        return _taken(self._tasks, free)

    def take_renewals(self, free: int) -> Sequence[LeaseRenewal]:
        """The news for the keeper; the latest says all."""
        latest = list(self._renewals)[-1:]
        self._renewals.clear()
        return latest


def _taken(waiting: deque[T], free: int) -> list[T]:
    return [waiting.popleft() for _ in range(min(free, len(waiting)))]
