"""The frontier's component takes seeds, answers and commits in any order, and hands out tasks when slots are free; and the stage
in front of it, which turns URLs that a person typed into tasks.

Place in the flow: the ring of the crawl closes here. The frontier's inputs never block, so the ring cannot deadlock: tasks that
they bring go to the ledger's queues on the disk. A *host* is free again when its answer has come, a *slot* only when the visit
is committed.

A hand-out brings in what is due, chooses tasks host by host (:mod:`dispatch`), and writes the decisions in one group before
anything goes out. :mod:`host_turns` lets hosts come and go and finds their addresses, :mod:`termination` says whether the
frontier hands out, waits or ends, and has the tasks that come from elsewhere than from links, and :mod:`limits` counts. Each of
these parts sees the frontier itself, and asks it for providers and settings each time: they may be exchanged while a crawl runs.
"""

import asyncio
from collections.abc import Iterator, Sequence
from math import inf
from types import MappingProxyType
from typing import Annotated, ClassVar

from gossamer.engine.component import AsynchronousFilter, Producer
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.sheet import Sheet, setting
from gossamer.expressions.contract import TaskFilter
from gossamer.fetcher.contract import Resolver
from gossamer.frontier.contract import Flights, LentHosts, Politeness, Revisits, Traversal
from gossamer.frontier.dispatch import Dispatch, Slots
from gossamer.frontier.host_turns import CROWDED, HostTurns, Lookups
from gossamer.frontier.limits import CrawlTotals, Failures, FrontierSheet
from gossamer.frontier.robots.contract import RobotsGate
from gossamer.frontier.termination import DepthReopening, Termination, TrapProbes
from gossamer.parsing.contract import Beginnings
from gossamer.storage.ledger.contract import Ledger, TaskQueues, announced
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.errors import UnreadableUrl
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.request_identity import Requested
from gossamer.values.task import ANNOUNCED, ROBOTS, Answer, Arrived, Committed, Task, sooner, with_level
from gossamer.values.url import canonical, host_of
from gossamer.values.visit import Visit

#: Seconds within which the last page of a lively host came: some slots are kept for such hosts.
LIVELY = 5.0

#: Seconds within which a host that waits is asked soon: a usual delay.
DUE = 1.0


class Frontier(AsynchronousFilter[FrontierSheet]):
    """Hands out the tasks that may be fetched, host by host."""

    seeds: In[Task]
    answers: In[Answer]
    committed: In[Committed]
    arrived: In[Arrived]
    returned: In[Task]
    wants: In[Task]
    tasks: Out[Task]
    refused: Out[Visit]
    ledger: Uses[Ledger]
    queues: Uses[TaskQueues]
    seen: Uses[SeenSet]
    flights: Uses[Flights]
    politeness: Uses[Politeness]
    robots: Uses[RobotsGate]
    traversal: Uses[Traversal]
    resolver: Uses[Resolver]
    gates: UsesMany[TaskFilter]
    revisits: UsesMany[Revisits] = MappingProxyType({})
    lent: UsesMany[LentHosts] = MappingProxyType({})

    spills = frozenset({"seeds", "answers", "committed", "arrived", "returned", "wants"})
    optional = frozenset({"arrived", "returned", "wants"})
    crowded: ClassVar[int] = CROWDED
    """Hosts that take turns before those that wait long make room for others."""

    gives_all = True
    lasts = "it knows what is in flight"

    def __init__(self, sheet: FrontierSheet | None = None) -> None:
        super().__init__(sheet)
        self.turns = HostTurns(self)
        self.lookups = Lookups(self)
        self.slots = Slots(self)
        self.totals = CrawlTotals(self.sheet)
        self.failures = Failures()
        self.termination = Termination(self)
        self.reopening = DepthReopening(self)
        self.probes = TrapProbes(self)
        self._dispatch = Dispatch(self)
        self.metrics.gauge("queued", lambda: len(self.queues))
        self.metrics.gauge("hosts", lambda: len(self.turns))
        self.metrics.gauge("in_flight", lambda: self.slots.taken)
        self.metrics.gauge("lookups", lambda: self.lookups.names)
        self.metrics.gauge("too_deep", lambda: self.ledger.counters().get("dropped:depth", 0))

    # -- life

    async def start(self) -> None:
        self.recount()
        self.termination.sources.update(self.ins.keys() & {"arrived"})
        self.probes.begin()
        if not self.ledger.is_clean:
            self.politeness.hush()
        for lender in self.lent.get("hosts", ()):
            lender.watch(self._told_of_lent, self.termination.room)
        self.signal("tasks")

    def _told_of_lent(self) -> None:
        self.stir()
        self.termination.end_if_done()

    def stir(self) -> None:
        """There may be tasks in the queues that were not there before."""
        self.turns.is_stirred = True
        self.signals["tasks"].set()

    def recount(self) -> None:
        """Go on from what the ledger has counted: before the first task, again where records were given up meanwhile."""
        self.totals.begin(self.ledger.counters(), self.clock.monotonic())

    async def stop(self) -> None:
        self.termination.alarm.cancel()
        await self.lookups.close()
        self.turns.keep_waits()

    def changed(self, before: FrontierSheet) -> None:
        self.totals.limit(self.sheet)
        self.signal("tasks")

    def drain(self) -> None:
        self.termination.is_draining = True
        self.termination.end_if_done()

    def pause(self) -> None:
        """Hand out no more until :meth:`go_on`; tasks in flight are finished."""
        self.termination.is_paused = True

    def go_on(self) -> None:
        self.termination.is_paused = False
        self.signal("tasks")

    # -- inputs

    def on_seeds_many(self, tasks: Sequence[Task]) -> None:
        """Seeds are new URLs like any others, kept in one group; a resumed crawl has seen them."""
        for task in tasks:
            self.totals.sown(task.url)
        followed = self.traversal.follow(tasks, None)
        with self.ledger.group() as group:
            limit = self.ledger.depths.limit
            if limit is None:
                # The seen set says what counts as new: to one of random walks, a URL is as often as it comes.
                known = {task.identity: task for task in followed}
                new = [known[identity] for identity in self.seen.offer([task.identity for task in followed])]
            else:
                new = announced(followed, group, limit)
            group.push([with_level(task, sooner(task, self.traversal.level(task, 0))) for task in new])
            group.count("hosts", sum(group.tally("host", task.host, 1) == 1 for task in new))
        self.stir()

    def on_answers(self, answer: Answer) -> None:
        self.politeness.answered(answer)
        self.totals.answered(answer)
        self.failures.answered(answer.url, answer.outcome)
        host = self.turns.get(answer.host)
        if host is not None and not answer.is_errand:
            host.is_lively = answer.outcome in ANSWERED and answer.elapsed < LIVELY
        self.turns.put(answer.host)
        self.signals["tasks"].set()

    def on_committed_many(self, group: Sequence[Committed]) -> None:
        hosts: dict[str, None] = {}
        for committed in group:
            if not committed.is_brought:
                self.slots.arrive(committed.task)
                hosts[committed.task.host] = None
            if committed.task.relation == ANNOUNCED:
                self.reopening.committed()
                continue
            self.totals.committed(committed)
            if committed.is_kept:
                self.queues.put_back(committed.task)
                self.turns.look_around(committed.task.host)
            if committed.site:
                self.turns.settle(committed.site)
        if self.totals.goal:
            self.termination.is_draining = True
        for host in hosts:
            self.turns.put(host)
        self.probes.since += len(group)
        self.stir()
        if not self.slots.taken:
            self.termination.end_if_done()

    def on_arrived_many(self, group: Sequence[Arrived]) -> None:
        if any(one.new for one in group):
            self.stir()

    def on_returned_many(self, tasks: Sequence[Task]) -> None:
        """These tasks were not fetched: they go back to their hosts, which may have been asked all the same."""
        for task in tasks:
            if not self.slots.take_back(task):
                continue
            if task.relation == ROBOTS:
                self.turns.settle(task.source)
            elif task.is_want:
                self.turns.want(task)
            elif task.is_safe:
                self.queues.put_back(task)
                self.turns.look_around(task.host)
            self.turns.put(task.host)
        self.stir()
        self.signal("refused")
        self.termination.end_if_done()

    def on_wants_many(self, tasks: Sequence[Task]) -> None:
        """Pages that are being rendered want these: they go before the other tasks of their hosts, and need no slot, since the page
        that waits for them has one."""
        for task in tasks:
            self.turns.want(task)
        self.signal("tasks")

    def input_ended(self, role: str) -> None:
        """With no seeds to come, and no URLs of other agents, an empty frontier is the end."""
        if role in self.termination.sources:
            self.termination.sources.discard(role)
            self.signal("tasks")
            self.termination.end_if_done()

    # -- outputs

    def take_tasks(self, free: int) -> list[Task]:
        """Up to `free` tasks of hosts that are ready, within concurrency and limits."""
        now, steady = self.clock.monotonic(), self.clock.steady()
        turns, termination, dispatch = self.turns, self.termination, self._dispatch
        self._bring_in(steady)
        found: list[Task] = []
        until = dispatch.choose(found, free, now)
        if until is not None and turns.is_stirred and turns.admit():
            until = dispatch.choose(found, free, now)
            if until is not None and turns.is_stirred:
                # A page may name thousands of hosts: the others go on before more of them come in.
                self._come_back()
                until = None
        if until is None:
            dispatch.refuse(self.politeness.take_blocked())
        dispatch.batch.write(self.ledger, steady)
        if until is not None:
            termination.wait(until, now, steady)
        if self.probes.leaving:
            self.probes.flush()
        if self.slots.refused:
            self.signal("refused")
        if not self.slots.taken:
            termination.end_if_done()
        return found

    def _bring_in(self, steady: float) -> None:
        """Bring due tasks into the queues; hosts that waited for slots take turns again."""
        turns, termination = self.turns, self.termination
        if self.lookups.nameless:
            self.lookups.write()
        hands_out = not (termination.is_draining or termination.is_paused)
        turns.wake_due(steady, known_pages=hands_out)
        if hands_out and self.reopening.is_under_way:
            # Where the limit of depth rose, links are announced again: they take the way of what is refused.
            for task in self.reopening.take(self.slots.free):
                self.slots.end(task, Outcome.OK)
            if self.reopening.is_searching:
                self._come_back()  # the search goes on in steps: there may be millions of URLs between two pages
        if not termination.is_draining and self.probes.step():
            turns.is_stirred = True
            self._come_back()  # a family may have a million URLs: they come in steps
        if turns.has_put_off:
            turns.begin_round()

    def _come_back(self) -> None:
        """Hand out again when others had their turn."""
        asyncio.get_running_loop().call_soon(self.signal, "tasks")

    def take_refused(self, free: int) -> list[Visit]:
        """Visits of tasks that must not be fetched: their story ends at the commit, like any other."""
        refused = self.slots.refused
        return [refused.popleft() for _ in range(min(free, len(refused)))]

    # -- what the crawl asks

    @property
    def wants_pages(self) -> bool:
        """Whether its share of pages will soon keep it from handing out what it can."""
        return self.totals.is_short_of_pages(self.slots.taken + self.sheet.concurrency) and self._can_go_on()

    @property
    def wants_bytes(self) -> bool:
        """Whether its share of bytes will."""
        return self.totals.is_short_of_bytes(self.slots.taken + self.sheet.concurrency) and self._can_go_on()

    def _can_go_on(self) -> bool:
        """Whether there are URLs that may be asked for soon; others may use what it was lent while all its hosts wait for long."""
        return len(self.queues) > 0 and (self.turns.is_stirred or any(True for _ in self.hosts_due()))

    def hosts_due(self) -> Iterator[str]:
        """Hosts that have queued URLs, and that are being asked or may be asked within :data:`DUE`."""
        now, waits = self.clock.monotonic(), self.politeness.waits
        return (one.name for one in self.turns if one.is_held and not DUE < waits(one.name, now) < inf)


# -- the stage in front

_PLAIN = (None,)


class SeedsSheet(Sheet, frozen=True):
    urls: Annotated[tuple[str, ...], setting("Start from these URLs.", restart="seeds are sent once")] = ()


class Seeds(Producer[SeedsSheet]):
    """Sends each seed once, in order."""

    outbox: Out[Task]

    unsent = 0
    """Seeds that were not sent before the end; the next run sends them."""

    def produce(self) -> Iterator[Task]:
        """A task for each seed that is a URL; the others are counted as `unreadable`."""
        self.unsent = len(self.sheet.urls)
        for text in self.sheet.urls:
            self.unsent -= 1
            try:
                url = canonical(text)
            except UnreadableUrl:
                self.metrics.count("unreadable")
                continue
            for request in self.requests(url):
                yield Task(url=url, host=host_of(url), request=request)

    def requests(self, url: str) -> Sequence[Requested | None]:
        return _PLAIN


class RequestedSeeds(Seeds):
    """Sends each seed once, in order, as a request that a program has set up (method, handler, data)."""

    asking: Uses[Beginnings]

    def requests(self, url: str) -> Sequence[Requested | None]:
        return self.asking.beginnings(url)
