"""The frontier's component: takes seeds, answers and commits in any order, hands out tasks when slots are free.

It is where the ring of the crawl is closed and where it is kept from stopping dead: its inputs accept always.
A *host* is free again when its answer is there; a *slot* only when the visit is committed (DESIGN 4.1).
"""

import asyncio
from typing import Annotated

from gossamer.contracts.flights import Flights
from gossamer.contracts.seen import SeenSet
from gossamer.flow.component import AsynchronousFilter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.task import Answer, Committed, Task
from gossamer.stages.frontier.queues import HostQueues


class FrontierSheet(Sheet, frozen=True):
    """How many at once, and when to stop."""

    concurrency: Annotated[
        int, setting("Requests in flight in all, from hand-out to commit.", unit="requests", ge=1)
    ] = 64
    per_host: Annotated[
        int, setting("Live requests to one host; more only where you own it.", unit="requests", ge=1)
    ] = 1
    max_pages: Annotated[int, setting("Stop after so many HTML pages; never one more.", unit="pages", ge=1)] | None = (
        None
    )
    max_pages_per_host: Annotated[int, setting("Hand out so many tasks for one host.", unit="tasks", ge=1)] | None = (
        None
    )
    max_time: (
        Annotated[float, setting("Stop after this time.", unit="s", gt=0, restart="the timer is set at the start")]
        | None
    ) = None
    max_bytes: Annotated[int, setting("Stop after so many bytes of bodies.", unit="bytes", ge=1)] | None = None


class Frontier(AsynchronousFilter[FrontierSheet]):
    """First in, first out, hosts taking turns."""

    seeds: In[Task]
    answers: In[Answer]
    committed: In[Committed]
    tasks: Out[Task]
    seen: Uses[SeenSet]
    flights: Uses[Flights]

    spills = frozenset({"seeds", "answers", "committed"})

    def __init__(self, sheet: FrontierSheet | None = None) -> None:
        super().__init__(sheet)
        self.queues = HostQueues(self.sheet.per_host)
        self.limit = ""
        """The limit that ended the crawl, by its setting's name; empty while none has."""
        self._in_flight = 0
        self._asked: dict[str, str] = {}
        """URL -> host of requests that have no answer yet: an answer that a mended link brings twice frees no host twice."""
        self._pages = 0
        self._bytes = 0
        self._handed_out: dict[str, int] = {}
        self._seeds_ended = False
        self._draining = False
        self._timer: asyncio.Task[None] | None = None
        self.metrics.gauge("queued", lambda: len(self.queues))
        self.metrics.gauge("hosts", lambda: self.queues.hosts)
        self.metrics.gauge("in_flight", lambda: self._in_flight)

    async def start(self) -> None:
        """Set the timer of `max_time`."""
        if self.sheet.max_time is not None:
            self._timer = asyncio.create_task(self._run_out(self.sheet.max_time))

    async def stop(self) -> None:
        """Take the timer away."""
        if self._timer is not None:
            self._timer.cancel()

    async def _run_out(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self._reach("max_time")

    def changed(self, before: FrontierSheet) -> None:
        """More may be handed out now."""
        self.queues.per_host = self.sheet.per_host
        self.signal("tasks")

    def drain(self) -> None:
        """Hand out no more; the crawl ends when everything in flight is committed."""
        self._draining = True
        self._end_if_done()

    # -- inputs

    def on_seeds(self, task: Task) -> None:
        """A seed is a new URL like any other."""
        if self.seen.offer([task.url]):
            self._add(task)
        self.signal("tasks")

    def on_answers(self, answer: Answer) -> None:
        """The host is free again."""
        self._free_host(answer.url)
        self.signal("tasks")

    def on_committed(self, committed: Committed) -> None:
        """The slot is free again, and there may be new tasks."""
        self._free_host(committed.url)
        self._in_flight -= 1
        self._pages += committed.is_page
        self._bytes += committed.bytes
        for task in committed.new:
            self._add(task)
        if self.sheet.max_bytes is not None and self._bytes >= self.sheet.max_bytes:
            self._reach("max_bytes")
        self.signal("tasks")
        self._end_if_done()

    def input_ended(self, role: str) -> None:
        """Without seeds to come, an empty frontier is the end."""
        if role == "seeds":
            self._seeds_ended = True
            self._end_if_done()

    # -- output

    def take_tasks(self, free: int) -> list[Task]:
        """Up to `free` tasks of hosts that are ready, within concurrency and limits."""
        found: list[Task] = []
        while len(found) < free and self._may_hand_out():
            task = self.queues.pop()
            if task is None:
                break
            self._in_flight += 1
            self._asked[task.url] = task.host
            self.flights.depart(task.url)
            found.append(task)
        self._end_if_done()
        return found

    def _may_hand_out(self) -> bool:
        if self._draining or self._in_flight >= self.sheet.concurrency:
            return False
        limit = self.sheet.max_pages
        if limit is None or not len(self.queues):
            return True
        if self._pages >= limit:
            self._reach("max_pages")
            return False
        # Every URL in flight may turn out to be a page, so each reserves one: the limit is never exceeded (DESIGN 9.6).
        return self._pages + self._in_flight < limit

    def _free_host(self, url: str) -> None:
        host = self._asked.pop(url, None)
        if host is not None:
            self.queues.free(host)

    def _add(self, task: Task) -> None:
        limit = self.sheet.max_pages_per_host
        if limit is not None:
            count = self._handed_out.get(task.host, 0) + 1
            if count > limit:
                self.metrics.count("cut:max_pages_per_host")
                return
            self._handed_out[task.host] = count
        self.metrics.count("discovered")
        self.queues.push(task)

    def _reach(self, limit: str) -> None:
        self.limit = self.limit or limit
        self._draining = True
        self._end_if_done()

    def _end_if_done(self) -> None:
        nothing_left = self._draining or (self._seeds_ended and not len(self.queues))
        if nothing_left and self._in_flight == 0:
            self.finish()
