"""The frontier's component: takes seeds, answers and commits in any order, hands out tasks when slots are free.

It is where the ring of the crawl is closed and where it is kept from stopping dead: its inputs accept always, since what
they bring goes to the ledger's queues on the disk. A *host* is free again when its answer is there; a *slot* only when
the visit is committed (design promise 1).

A hand-out brings in what is due, chooses task by task (:mod:`choosing`, :mod:`deciding`), and writes what it decided in one group
(:mod:`unwritten`) before anything goes out. The queues hold tasks by host, politeness says which host is next and when, the robots
gate judges each task before it goes out, the traversal says which host comes first. :mod:`turns` lets hosts come and go,
:mod:`addresses` has them looked up, :mod:`going_on` says whether the frontier hands out, waits or ends.
"""

import asyncio
from collections.abc import Iterator, Sequence
from math import inf
from types import MappingProxyType
from typing import ClassVar

from gossamer.engine.component import AsynchronousFilter
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.expressions.contract import TaskFilter
from gossamer.fetcher.contract import Resolver
from gossamer.frontier.contract import Flights, Politeness, Traversal
from gossamer.frontier.dispatch import Choosing, TaskDecisions
from gossamer.frontier.host_turns import CROWDED, FrontierHost, FrontierHosts, HostTurns
from gossamer.frontier.limits import Failures, RetriesWaiting, Stopping
from gossamer.frontier.lookups import HostAddresses
from gossamer.frontier.other_tasks import Announcing, LentOut, Probing
from gossamer.frontier.robots.contract import RobotsGate
from gossamer.frontier.seams import LentHosts, Revisits
from gossamer.frontier.sheet import FrontierSheet
from gossamer.frontier.slots import Alarm, Slots, keep_waits
from gossamer.frontier.termination import GoingOn, Prospects
from gossamer.storage.ledger.contract import Ledger, TaskQueues, announced
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.task import ANNOUNCED, ROBOTS, Answer, Arrived, Committed, Task, sooner, with_level
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

    spills = frozenset({"seeds", "answers", "committed", "arrived", "returned"})
    optional = frozenset({"arrived", "returned"})
    crowded: ClassVar[int] = CROWDED
    """Hosts that take turns before those that wait long make room for others."""

    lasts = "it knows what is in flight"

    def __init__(self, sheet: FrontierSheet | None = None) -> None:
        super().__init__(sheet)
        self._sources = {"seeds"}
        """Inputs that may bring tasks yet."""
        self._hosts = FrontierHosts()
        self._stopping = Stopping(self.sheet.limits, self.sheet.directory)
        self._failures = Failures()
        self._prospects = Prospects(self, self._sources, self._stopping, self._failures)
        self._slots = Slots(self)
        self._turns = HostTurns(self, self._hosts, self._prospects.aside, self.crowded)
        self._addresses = HostAddresses(self, self._stopping, self._failures, self._known, self._count_broken)
        self._lent = LentOut(self)
        self._going_on = GoingOn(
            self,
            self._sources,
            self._slots,
            self._addresses,
            self._lent,
            self._stopping,
            self._prospects,
            self._stir,
        )
        self._probing: Probing | None = None
        self._choosing: Choosing | None = None
        self._announcing: Announcing | None = None
        self._alarm: Alarm | None = None
        self.metrics.gauge("queued", lambda: len(self.queues))
        self.metrics.gauge("hosts", lambda: len(self._hosts))
        self.metrics.gauge("in_flight", lambda: self._slots.taken)
        self.metrics.gauge("lookups", lambda: len(self._addresses))
        self.metrics.gauge("too_deep", lambda: self.ledger.counters().get("dropped:depth", 0))

    @property
    def limit(self) -> str:
        """The limit that ended the crawl, by its setting's name; empty while none has."""
        return self._stopping.reached

    @property
    def goal(self) -> str:
        """The URL that the crawl was to end at (`--until`), where that ended it; empty otherwise."""
        return self._stopping.goal

    @property
    def has_lingered(self) -> bool:
        """It ended because all that was left waits for longer than it lingers."""
        return self._going_on.has_lingered

    @property
    def is_paused(self) -> bool:
        """It hands out no more until :meth:`go_on`."""
        return self._going_on.is_paused

    @property
    def time_limit(self) -> str:
        """The limit of time that is reached first, by its setting's name; empty where there is none."""
        return self._stopping.time_limit

    def ends_at(self) -> float:
        """The monotonic instant at which the time is up; infinite where there is no limit."""
        return self._stopping.ends_at()

    # -- life

    async def start(self) -> None:
        """Go on from what the ledger holds."""
        self.recount()
        self._sources.update(self.ins.keys() & {"arrived"})
        self._alarm = Alarm(self.clock, lambda: self.signal("tasks"))
        self._announcing = Announcing(self.ledger.depths)
        self._probing = Probing(self.ledger, self.gates.get("fetch", ()))
        self._choosing = Choosing(
            self,
            self._hosts,
            self._turns,
            self._prospects.aside,
            self._slots,
            self._addresses,
            TaskDecisions(self, self._addresses, self._probing),
        )
        self._going_on.begin(self._announcing, self._probing)
        if not self.ledger.is_clean:
            self.politeness.hush()
        self._lent.watch(self._told_of_lent, self._going_on.room)
        self.signal("tasks")

    def _told_of_lent(self) -> None:
        """There is news of crawlers that were sent: tasks to fetch from here, or nothing more to wait for."""
        self._stir()
        self._end_if_done()

    def _stir(self) -> None:
        """There may be tasks in the queues that were not there before."""
        self._turns.is_stirred = True
        self.signal("tasks")

    def recount(self) -> None:
        """Go on from what the ledger has counted: before the first task, again where records were given up meanwhile."""
        self._stopping.begin(self.ledger.counters(), self.clock.monotonic())

    async def stop(self) -> None:
        """Take the alarm and the look-ups away."""
        if self._alarm is not None:
            self._alarm.cancel()
        await self._addresses.close()
        self._addresses.write()
        keep_waits(self.ledger, self.politeness, self.politeness.at_work(), self.clock.monotonic())

    def changed(self, before: FrontierSheet) -> None:
        """More may be handed out now, or less."""
        self._stopping.rules = self.sheet.limits
        self.signal("tasks")

    def drain(self) -> None:
        """Hand out no more; the crawl ends when everything in flight is committed."""
        self._going_on.is_draining = True
        self._end_if_done()

    def pause(self) -> None:
        """Hand out no more until :meth:`go_on`; what is in flight is finished."""
        self._going_on.is_paused = True

    def go_on(self) -> None:
        """Hand out again."""
        self._going_on.is_paused = False
        self.signal("tasks")

    # -- inputs

    def on_seeds_many(self, tasks: Sequence[Task]) -> None:
        """Seeds are new URLs like any others, kept in one group; a resumed crawl has seen them."""
        for task in tasks:
            self._stopping.sown(task.url)
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
        self._stir()

    def on_answers(self, answer: Answer) -> None:
        """The host is free again, or waits."""
        self.politeness.answered(answer)
        self._stopping.answered(answer)
        self._failures.answered(answer.url, answer.outcome)
        host = self._hosts.get(answer.host)
        if host is not None and not answer.is_errand:
            host.is_lively = answer.outcome in ANSWERED and answer.elapsed < LIVELY
        self._turns.put(answer.host)
        self.signal("tasks")

    def on_committed_many(self, group: Sequence[Committed]) -> None:
        """Slots are free again, and there may be new tasks."""
        for committed in group:
            self._slots.taken -= not committed.is_brought
            if committed.task.relation == ANNOUNCED:
                assert self._announcing is not None
                self._announcing.committed()
                continue
            self._stopping.committed(committed)
            if committed.is_kept:
                self.queues.put_back(committed.task)
                self._turns.look_around(committed.task.host)
            if committed.site:
                self._turns.settle(committed.site)
        if self._stopping.goal:
            self._going_on.is_draining = True
        for host in dict.fromkeys(committed.task.host for committed in group if not committed.is_brought):
            self._turns.put(host)
        if self._probing is not None:
            self._probing.committed(len(group))
        self._stir()
        self._end_if_done()

    def on_arrived_many(self, group: Sequence[Arrived]) -> None:
        """Other agents found URLs of our hosts; they are queued already."""
        if any(one.new for one in group):
            self._stir()

    def on_returned_many(self, tasks: Sequence[Task]) -> None:
        """Nobody fetches these: they go back to their hosts, which may have been asked all the same."""
        for task in tasks:
            if not self._slots.take_back(task):
                continue
            if task.relation == ROBOTS:
                self._turns.settle(task.source)
            elif task.is_safe:
                self.queues.put_back(task)
                self._turns.look_around(task.host)
            self._turns.put(task.host)
        self._stir()
        self.signal("refused")
        self._end_if_done()

    def input_ended(self, role: str) -> None:
        """With no seeds to come, and no URLs of other agents, an empty frontier is the end."""
        if role in self._sources:
            self._sources.discard(role)
            self.signal("tasks")
            self._end_if_done()

    # -- outputs

    def take_tasks(self, free: int) -> list[Task]:
        """Up to `free` tasks of hosts that are ready, within concurrency and limits."""
        now = self.clock.monotonic()
        self._bring_in()
        choosing, found = self._choosing, list[Task]()
        assert choosing is not None
        until = choosing.choose(found, free, now, self._going_on.may_hand_out)
        if until is not None and self._turns.admit():
            until = choosing.choose(found, free, now, self._going_on.may_hand_out)
            if until is not None and self._turns.is_stirred:
                # A page may name thousands of hosts: the others go on before more of them come in.
                self._come_back()
                until = None
        choosing.refuse_blocked()
        choosing.unwritten.write(self.ledger, self.clock.steady())
        if until is not None:
            self._wait(until, now)
        if self._probing is not None:
            self._probing.flush()
        if self._slots.refused:
            self.signal("refused")
        self._end_if_done()
        return found

    def _bring_in(self) -> None:
        """What is due comes into the queues, and hosts that waited for slots take turns again."""
        self._addresses.write()
        self._turns.wake_due()
        going_on = self._going_on
        if not (going_on.is_draining or going_on.is_paused):
            self._turns.wake_known()
        self._announce()
        if self._probing is not None and not going_on.is_draining and self._probing.step():
            self._turns.is_stirred = True
            self._come_back()  # a family may have a million URLs: they come in steps
        for name in self._prospects.aside.next_round(self._slots.free_for_all):
            self._turns.put(name)

    def _come_back(self) -> None:
        """Hand out again when others had their turn."""
        asyncio.get_running_loop().call_soon(self.signal, "tasks")

    def take_refused(self, free: int) -> list[Visit]:
        """Visits of tasks that must not be fetched: their story ends at the commit, like any other."""
        return self._slots.take_refused(free)

    def _announce(self) -> None:
        """Where the limit of depth rose, the links of visited pages are announced again: they take the way of what is refused."""
        going_on = self._going_on
        if self._announcing is None or going_on.is_draining or going_on.is_paused:
            return
        for task in self._announcing.take(self._slots.free):
            self._slots.end(task, Outcome.OK)
        if self._announcing.is_searching:
            self._come_back()  # the search goes on in steps: there may be millions of URLs between two pages

    def _count_broken(self, error: Exception) -> None:
        self.metrics.count(f"broken_resolver:{type(error).__name__}")

    def _known(self, host: FrontierHost) -> None:
        """There is news of its address."""
        self._turns.put(host.name)
        self.signal("tasks")

    # -- when to stop

    def _wait(self, until: float, now: float) -> None:
        """Nothing can be handed out now: see whether anything ever can, and ask again when it may."""
        if self._going_on.is_worth_waiting(now) and self._alarm is not None:
            self._alarm.set(min(until, self._prospects.next_due(now), self._stopping.ends_at()))

    def waiting(self) -> RetriesWaiting | None:
        """Retries that are due later, as things are; None where there are none. `O(n)` in the hosts that have tasks."""
        return self._prospects.waiting()

    @property
    def wants_pages(self) -> bool:
        """Whether its share of pages will soon keep it from handing out what it can."""
        return self._stopping.is_short_of_pages(self._slots.taken + self.sheet.concurrency) and self._can_go_on()

    @property
    def wants_bytes(self) -> bool:
        """Whether its share of bytes will."""
        return self._stopping.is_short_of_bytes(self._slots.taken + self.sheet.concurrency) and self._can_go_on()

    def _can_go_on(self) -> bool:
        """Whether there are URLs that may be asked for soon; others may use what it was lent while all its hosts wait for long."""
        return len(self.queues) > 0 and (self._turns.is_stirred or any(True for _ in self.hosts_due()))

    def hosts_due(self) -> Iterator[str]:
        """Hosts that have queued URLs, and that are being asked or may be asked within :data:`DUE`."""
        now, waits = self.clock.monotonic(), self.politeness.waits
        return (one.name for one in self._hosts if one.is_held and not DUE < waits(one.name, now) < inf)

    def is_at_rest(self) -> bool:
        """Whether it would end now if other agents brought nothing more. What was set aside is probed before that."""
        return self._going_on.is_at_rest()

    def _end_if_done(self) -> None:
        going_on = self._going_on
        if not going_on.has_nothing_left:
            return
        if going_on.is_announcing and not going_on.is_draining:
            if not going_on.is_paused:
                self.signal("tasks")
        elif going_on.ends():
            self._lent.end()
            self.finish()
