"""The frontier's component: takes seeds, answers and commits in any order, hands out tasks when slots are free.

It is where the ring of the crawl is closed and where it is kept from stopping dead: its inputs accept always, since what
they bring goes to the ledger's queues on the disk. A *host* is free again when its answer is there; a *slot* only when
the visit is committed (design promise 1).

Who decides what: the queues hold tasks by host, politeness says which host is next and when, the robots gate judges each
task before it goes out, the traversal says which host comes first. :mod:`hosts` keeps what is known of the hosts that
take turns; :mod:`stopping` says when a crawl stops.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import ClassVar

import msgspec

from gossamer.contracts.filtering import TaskFilter
from gossamer.contracts.flights import Flights
from gossamer.contracts.ledger import Ledger, TaskQueues
from gossamer.contracts.politeness import Politeness
from gossamer.contracts.resolving import Resolver
from gossamer.contracts.robots import RobotsGate, RobotsRuling, RobotsVerdict
from gossamer.contracts.seen import SeenSet
from gossamer.contracts.traversal import Traversal
from gossamer.flow.component import AsynchronousFilter
from gossamer.flow.ports import In, Out, Uses, UsesMany
from gossamer.model.outcome import ANSWERED, Outcome
from gossamer.model.task import ANNOUNCED, ROBOTS, Answer, Arrived, Committed, Task, sooner, with_level
from gossamer.model.url import endpoint_of, host_of, site_of
from gossamer.model.visit import Response, Visit
from gossamer.services.depths import announced
from gossamer.services.politeness.retries import WAITS
from gossamer.stages.frontier.alarm import Alarm
from gossamer.stages.frontier.announcing import Announcing
from gossamer.stages.frontier.aside import Aside
from gossamer.stages.frontier.hosts import FrontierHost, FrontierHosts
from gossamer.stages.frontier.judging import judged
from gossamer.stages.frontier.limits import CrawlLimits
from gossamer.stages.frontier.lingering import USUAL, Failures, RetriesWaiting
from gossamer.stages.frontier.lookups import Lookups
from gossamer.stages.frontier.nameless import Nameless
from gossamer.stages.frontier.parting import keep_waits
from gossamer.stages.frontier.probing import Probing
from gossamer.stages.frontier.sheet import FrontierSheet
from gossamer.stages.frontier.stopping import Stopping

#: Hosts that are admitted at once: each batch of moves is one commit.
ADMITTED = 256

#: Tasks of one host that may be refused in one turn before others get theirs: a site may forbid a million.
REFUSED_IN_A_TURN = 32

#: Tasks of a host that are looked at for another endpoint when one of them does not answer.
LOOKED_AT = 256

#: Hosts whose reason to wait is told.
TOLD = 20

#: Hosts that take turns before those that wait long make room for others, and what is long, in seconds: they come back
#: from the disk when they are due.
CROWDED = 8_192
LONG_WAIT = 300.0

#: One slot in so many is for hosts whose last page came within so many seconds: hundreds of hosts that answer a byte a second
#: would take all slots for as long as such answers are borne with, and those that are well would wait (fault 11).
KEPT_FREE = 8
LIVELY = 5.0


class Frontier(AsynchronousFilter[FrontierSheet]):
    """Hands out what may be fetched, host by host."""

    seeds: In[Task]
    answers: In[Answer]
    committed: In[Committed]
    arrived: In[Arrived]
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

    spills = frozenset({"seeds", "answers", "committed", "arrived"})
    optional = frozenset({"arrived"})
    crowded: ClassVar[int] = CROWDED
    """Hosts that take turns before those that wait long make room for others."""

    lasts = "it knows what is in flight"

    def __init__(self, sheet: FrontierSheet | None = None) -> None:
        super().__init__(sheet)
        self.is_paused = False
        self._stopping = Stopping(_limits(self.sheet), self.sheet.directory)
        self._hosts = FrontierHosts()
        self._is_stirred = True
        """The queues may have hosts that can be admitted."""
        self._refused: deque[Visit] = deque()
        self._in_flight = 0
        self._sources = {"seeds"}
        """Inputs that may bring tasks yet."""
        self._draining = False
        missing, no_such = partial(self._missing, is_none=False), partial(self._missing, is_none=True)
        self._lookups = Lookups(lambda: self.resolver, self._known, missing, no_such, self._count_broken)
        self._aside = Aside(lambda: self.politeness, self._is_all_here)
        self._nameless = Nameless()
        self._probing: Probing | None = None
        self._alarm: Alarm | None = None
        self._failures = Failures()
        self._stepped_over: list[tuple[Task, float]] = []
        """Tasks whose endpoint does not answer, with the seconds for which it is left alone: others of their hosts go first."""
        self._too_deep: list[Task] = []
        """Tasks that are deeper than the limit by now: it was lowered."""
        self._announcing: Announcing | None = None
        self.has_lingered = False
        """It ended because all that was left waits for longer than it lingers."""
        self.metrics.gauge("queued", lambda: len(self.queues))
        self.metrics.gauge("hosts", lambda: len(self._hosts))
        self.metrics.gauge("in_flight", lambda: self._in_flight)
        self.metrics.gauge("lookups", lambda: len(self._lookups))
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
    def time_limit(self) -> str:
        """The limit of time that is reached first, by its setting's name; empty where there is none."""
        return self._stopping.time_limit

    def ends_at(self) -> float:
        """The monotonic instant at which the time is up; infinite where there is no limit."""
        return self._stopping.ends_at()

    # -- life

    async def start(self) -> None:
        """Go on from what the ledger holds."""
        self._stopping.begin(self.ledger.counters(), self.clock.monotonic())
        self._sources |= self.ins.keys() & {"arrived"}
        self._alarm = Alarm(self.clock, lambda: self.signal("tasks"))
        self._announcing = Announcing(self.ledger.depths)
        self._probing = Probing(self.ledger, self.gates.get("fetch", ()))
        if not self.ledger.is_clean:
            self.politeness.hush()
        self.signal("tasks")

    async def stop(self) -> None:
        """Take the alarm and the look-ups away."""
        if self._alarm is not None:
            self._alarm.cancel()
        await self._lookups.close()
        self._nameless.write(self.ledger, self.politeness, self.clock.now())
        keep_waits(self.ledger, self.politeness, self.politeness.at_work(), self.clock.monotonic())

    def changed(self, before: FrontierSheet) -> None:
        """More may be handed out now, or less."""
        self._stopping.rules = _limits(self.sheet)
        self.signal("tasks")

    def drain(self) -> None:
        """Hand out no more; the crawl ends when everything in flight is committed."""
        self._draining = True
        self._end_if_done()

    def pause(self) -> None:
        """Hand out no more until :meth:`go_on`; what is in flight is finished."""
        self.is_paused = True

    def go_on(self) -> None:
        """Hand out again."""
        self.is_paused = False
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
        self._is_stirred = True
        self.signal("tasks")

    def on_answers(self, answer: Answer) -> None:
        """The host is free again, or waits."""
        self.politeness.answered(answer)
        self._stopping.answered(answer)
        self._failures.answered(answer.url, answer.outcome)
        host = self._hosts.get(answer.host)
        if host is not None and not answer.is_errand:
            host.is_lively = answer.outcome in ANSWERED and answer.elapsed < LIVELY
        self._put(answer.host)
        self.signal("tasks")

    def on_committed_many(self, group: Sequence[Committed]) -> None:
        """Slots are free again, and there may be new tasks."""
        for committed in group:
            self._in_flight -= 1
            if committed.task.relation == ANNOUNCED:
                assert self._announcing is not None
                self._announcing.committed()
                continue
            self._stopping.committed(committed)
            if committed.is_kept:
                self.queues.put_back(committed.task)
                self._look_around(committed.task.host)
            if committed.site:
                self._settle(committed.site)
        self._draining = self._draining or bool(self._stopping.goal)
        for host in dict.fromkeys(committed.task.host for committed in group):
            self._put(host)
        if self._probing is not None:
            self._probing.committed(len(group))
        self._is_stirred = True
        self.signal("tasks")
        self._end_if_done()

    def on_arrived_many(self, group: Sequence[Arrived]) -> None:
        """Other agents found URLs of our hosts; they are queued already."""
        if any(one.new for one in group):
            self._is_stirred = True
            self.signal("tasks")

    def input_ended(self, role: str) -> None:
        """With no seeds to come, and no URLs of other agents, an empty frontier is the end."""
        if role in self._sources:
            self._sources.discard(role)
            self.signal("tasks")
            self._end_if_done()

    # -- outputs

    def take_tasks(self, free: int) -> list[Task]:
        """Up to `free` tasks of hosts that are ready, within concurrency and limits."""
        found: list[Task] = []
        now = self.clock.monotonic()
        self._nameless.write(self.ledger, self.politeness, self.clock.now())
        self._wake_due()
        self._announce()
        if self._probing is not None and not self._draining and self._probing.step():
            self._is_stirred = True
            # What comes back does so in steps: a family may have a million URLs.
            asyncio.get_running_loop().call_soon(self.signal, "tasks")
        for_all = self.sheet.concurrency - self.sheet.concurrency // KEPT_FREE
        for name in self._aside.next_round(for_all - self._in_flight):
            self._put(name)
        has_admitted = False
        while len(found) < free and self._may_hand_out(now):
            host = self.politeness.next(now)
            if isinstance(host, str):
                entered = self._hosts.enter(host, is_held=False)
                if self._aside.keeps(entered, only_lively=self._in_flight >= for_all):
                    continue
                task = self._task_of(entered, now)
                if task is not None:
                    found.append(task)
            elif self._refuse_blocked():
                continue
            elif has_admitted and self._is_stirred:
                # A page may name thousands of hosts: the others go on before more of them come in.
                asyncio.get_running_loop().call_soon(self.signal, "tasks")
                break
            elif self._admit():
                has_admitted = True
            else:
                self._wait(host, now)
                break
        self._refuse_blocked()
        self._end_round(found)
        return found

    def _end_round(self, found: Sequence[Task]) -> None:
        """What follows from handing out these."""
        if not all(task.is_safe for task in found):
            self.ledger.sync()  # nothing of what may not be sent twice leaves before its note is on the disk
        self._step_over()
        self._give_up()
        if self._probing is not None:
            self._probing.flush()
        if self._refused:
            self.signal("refused")
        self._end_if_done()

    def take_refused(self, free: int) -> list[Visit]:
        """Visits of tasks that must not be fetched: their story ends at the commit, like any other."""
        return [self._refused.popleft() for _ in range(min(free, len(self._refused)))]

    # -- one host's turn

    def _task_of(self, host: FrontierHost, now: float) -> Task | None:
        """What this host is asked now; None where it is not its turn after all."""
        if host.errands:
            is_known = self._is_known(host, host.errands[0])
            return self._begin(host, host.errands.popleft(), now) if is_known else None
        for _ in range(REFUSED_IN_A_TURN):
            tasks = self.queues.pop(host.name)
            if not tasks:
                self._leave(host)
                return None
            if self._probing is not None and self._probing.takes(tasks[0]):
                continue
            wait = self.politeness.closed(tasks[0], now)
            if wait:
                self._stepped_over.append((tasks[0], wait))
                continue
            limit = self.ledger.depths.limit
            task = tasks[0] if limit is None else self._nearest(tasks[0])
            if limit is not None and task.depth > limit:
                self._too_deep.append(task)
                continue
            host.level = self.traversal.host_level(task, task.level)
            if task.request is not None and task.request.was_begun:
                self._refuse(task, Outcome.INTERRUPTED, "it may have been sent before the crawl was killed")
                continue
            if not self._is_known(host, task):
                self.queues.put_back(task)
                return None
            gates, steady = self.gates.get("fetch", ()), self.clock.steady()
            outcome, reason, verdict = judged(host, task, gates, self.robots, self.ledger, steady)
            if outcome is not None:
                self._refuse(task, outcome, reason)
                if self._in_flight >= self.sheet.concurrency:
                    break
            elif verdict.ruling is RobotsRuling.ALLOWED and self._is_time(host, verdict, now):
                return self._begin(host, task, now)
            else:
                self.queues.put_back(task)
                return self._delayed(host, task, verdict, now)
        self._put(host.name)
        return None

    def _is_known(self, host: FrontierHost, task: Task) -> bool:
        """Whether it is known where this task's request would go."""
        sheet = self.sheet
        return self._lookups.is_known(host, task, proxied=sheet.proxied, unresolved=sheet.unresolved)

    def _look_around(self, name: str) -> bool:
        """Where a host waits because an endpoint does not answer: see whether it has tasks for another. False where it has none at
        all, and is held no more."""
        host = self._hosts.get(name)
        if host is None or not host.is_held or not self.politeness.is_closed(name, self.clock.monotonic()):
            return True
        tasks = self.queues.pop(name, LOOKED_AT)
        if not tasks:
            self._leave(host)
            return False
        for task in reversed(tasks):
            self.queues.put_back(task)
        self.politeness.meet(name, {task.url for task in tasks})
        return True

    def _step_over(self) -> None:
        """What is not to be asked for now comes back when its endpoint may be asked again."""
        if not self._stepped_over:
            return
        steady = self.clock.steady()
        with self.ledger.group() as group:
            for task, wait in self._stepped_over:
                if group.done(task.identity):
                    group.later(task, steady + wait)
        self._stepped_over.clear()

    def _give_up(self) -> None:
        """What is too deep is as if it had never been met."""
        if not self._too_deep:
            return
        with self.ledger.group() as group:
            group.count("dropped:depth", sum(map(group.give_up, self._too_deep)))
        self._too_deep.clear()

    def _announce(self) -> None:
        """Where the limit of depth rose, the links of visited pages are announced again: they take the way of what is refused."""
        if self._announcing is None or self._draining or self.is_paused:
            return
        for task in self._announcing.take(self.sheet.concurrency - self._in_flight):
            self._in_flight += 1
            self.flights.depart(task.identity)
            self._refused.append(Visit(task, Response(Outcome.OK, started=self.clock.now())))
        if self._announcing.is_searching:
            # The search goes on in steps: there may be millions of URLs between two pages.
            asyncio.get_running_loop().call_soon(self.signal, "tasks")

    def _nearest(self, task: Task) -> Task:
        """The task at the shortest depth that is known of its URL by now."""
        depth = self.ledger.depth_of([task.identity])[0]
        return task if depth is None or depth >= task.depth else msgspec.structs.replace(task, depth=depth)

    def _is_time(self, host: FrontierHost, verdict: RobotsVerdict, now: float) -> bool:
        """Whether the host may be asked now, its `Crawl-delay` included."""
        if verdict.delay == host.crawl_delay:
            return True
        host.crawl_delay = verdict.delay
        return self.politeness.pace(host.name, verdict.delay) <= now

    def _delayed(self, host: FrontierHost, task: Task, verdict: RobotsVerdict, now: float) -> Task | None:
        """The host must be asked for its robots.txt first, or waits."""
        if verdict.ruling is RobotsRuling.FETCH_FIRST:
            return self._ask_robots(host, site_of(task.url), verdict, now)
        if verdict.ruling is RobotsRuling.WAIT:
            self.politeness.hold(task, verdict.until - self.clock.steady())
            self.metrics.count("robots_waits")
            if not self._look_around(host.name):
                return None
        self._put(host.name)
        return None

    def _ask_robots(self, host: FrontierHost, site: str, asked: RobotsVerdict, now: float) -> Task | None:
        """Begin a request for a site's robots.txt, at its host or where a redirect led."""
        etag, modified = asked.etag, asked.last_modified
        task = Task(asked.url, host_of(asked.url), source=site, relation=ROBOTS, etag=etag, last_modified=modified)
        host.asking.add(site)
        if task.host == host.name:
            return self._begin(host, task, now)
        other = self._hosts.enter(task.host, is_held=False)
        other.errands.append(task)
        self._put(other.name)
        return None

    def _begin(self, host: FrontierHost, task: Task, now: float) -> Task:
        if not task.is_safe:
            with self.ledger.group() as group:
                group.begun(task)
        self._in_flight += 1
        self.flights.depart(task.identity)
        if self.politeness.begin(task, host.address, now):
            self._put(host.name)
        return task

    def _refuse(self, task: Task, outcome: Outcome, why: str) -> None:
        self._in_flight += 1
        self.flights.depart(task.identity)
        self._refused.append(Visit(task, Response(outcome, started=self.clock.now(), error=why)))

    def _refuse_blocked(self) -> bool:
        """End the story of tasks of hosts that turned out to be blocked, as many as there are slots for; False for none."""
        any_refused = False
        for name in self.politeness.take_blocked():
            host, slots = self._hosts.get(name), max(1, self.sheet.concurrency - self._in_flight)
            errands = host.errands if host is not None else ()
            # Another site's robots.txt led here: that site must learn that it is not to be had.
            tasks = [host.errands.popleft() for _ in range(min(slots, len(errands)))] if host is not None else []
            tasks += self.queues.pop(name, slots - len(tasks)) if slots > len(tasks) else []
            rule = self.politeness.rule_against(name)
            for task in tasks:
                self._refuse(task, Outcome.BLOCKED, f"{rule} is blocked")
            if tasks:
                any_refused = True
                self._put(name)
            elif host is not None:
                self._leave(host)
        return any_refused

    # -- hosts come and go

    def _put(self, name: str) -> None:
        """This host may take a turn, if it has something to ask and nothing else comes first."""
        host = self._hosts.get(name)
        if host is None or (not host.errands and (host.asking or not host.is_held)):
            return
        if host.is_held and not host.errands and len(self._hosts) > self.crowded:
            wait = self.politeness.waits(name, self.clock.monotonic())
            if LONG_WAIT < wait < inf:
                self._rest(host, wait)
                return
        self.politeness.put(name, host.address, host.level)

    def _rest(self, host: FrontierHost, seconds: float) -> None:
        self._aside.rests(host.name)
        self.queues.rest(host.name, self.clock.steady() + seconds)
        self._leave(host)

    def _leave(self, host: FrontierHost) -> None:
        for name in self._hosts.leave(host):
            self.politeness.forget(name)

    def _settle(self, site: str) -> None:
        """A site's robots.txt has been asked for: its host goes on."""
        host = self._hosts.get(host_of(site))
        if host is not None:
            host.asking.discard(site)
            if host.is_held:
                self._put(host.name)
            else:
                self._leave(host)

    def _admit(self) -> bool:
        """Take hosts over from the queues, where there may be any; False if there is none."""
        if not self._is_stirred:
            return False
        states = self.queues.admit(self.clock.steady(), ADMITTED)
        self._is_stirred = len(states) == ADMITTED
        for state in states:
            self._aside.is_back(state.host)
            self.politeness.restore(state.host, state.note, clean=self.ledger.is_clean)
            self._hosts.enter(state.host, is_held=True)
            if self._look_around(state.host):
                self._put(state.host)
        return bool(states)

    def _wake_due(self) -> None:
        """Tasks whose next try is due go back to their hosts, and hosts whose rest is over come back."""
        wall = self.clock.steady()
        if self.queues.next_due() <= wall:
            self.queues.wake(wall)
            self._is_stirred = True
        if self.queues.next_rest() <= wall:
            self._is_stirred = True

    def _count_broken(self, error: Exception) -> None:
        self.metrics.count(f"broken_resolver:{type(error).__name__}")

    def _known(self, host: FrontierHost) -> None:
        """Its address was looked up."""
        self._put(host.name)
        self.signal("tasks")

    def _missing(self, host: FrontierHost, *, is_none: bool) -> None:
        """Its name has no address: it has failed without being asked, and waits like any host that failed (fault 46).

        Of a name that does not exist (`is_none`) the second look-up is the last: its links are dead.
        """
        if host.errands:
            # Another host's robots.txt led here, and is not to be had.
            host.ports[endpoint_of(host.errands[0].url)[1]] = ""
        else:
            if is_none and self._is_none_again(host):
                self._known(host)
                return
            self.politeness.missed(host.name)
            self._stopping.missed(host.name)
            self._failures.answered(f"http://{host.name}/", Outcome.DNS_FAILED)
            self._nameless.add(host.name)
        self._known(host)

    def _is_none_again(self, host: FrontierHost) -> bool:
        host.is_none, was_none = True, host.is_none
        if was_none:
            self._stopping.missed(host.name)
            self._failures.answered(f"http://{host.name}/", Outcome.CLIENT_ERROR)
            host.absent = "the name does not exist"
        return was_none

    # -- when to stop

    def _may_hand_out(self, now: float) -> bool:
        if self._draining or self.is_paused or self._in_flight >= self.sheet.concurrency:
            return False
        allowed = self._stopping.allows(self._in_flight, len(self.queues) > 0, now)
        self._draining = bool(self._stopping.reached)
        return allowed

    def _wait(self, until: float, now: float) -> None:
        """Nothing can be handed out now: see whether anything ever can, and ask again when it may."""
        self._step_over()
        if self._is_idle():
            if self._is_hopeless():
                self._draining = True
                return
            if self._is_over(now):
                if self._probe_last():
                    return
                self.has_lingered = self._draining = True
                return
        due = min(self.queues.next_due(), self.queues.next_rest()) - self.clock.steady() + now
        if self._alarm is not None:
            self._alarm.set(min(until, due, self._stopping.ends_at()))

    def _is_idle(self) -> bool:
        """Whether all that happens is that queued tasks wait."""
        is_announcing = self._announcing is not None and not self._announcing.is_over
        is_busy = self._in_flight or len(self._lookups) or is_announcing
        return not is_busy and not self._sources and len(self.queues) > 0

    def _is_hopeless(self) -> bool:
        """Whether everything that is left belongs to hosts that were given their chances, or to seeds that nobody serves."""
        linger = self.sheet.linger
        if linger != "forever" and linger <= USUAL and self._stopping.is_unserved:
            return True
        return self._aside.is_only_spent()

    def _is_over(self, now: float) -> bool:
        """Whether all that is left waits to be tried again for longer than the crawl lingers."""
        linger = self.sheet.linger
        if linger == "forever" or self.queues.next_due() - self.clock.steady() <= linger:
            return False
        return self._aside.all_wait(linger, now)

    def waiting(self) -> RetriesWaiting | None:
        """Retries that are due later, as things are; None where there are none. `O(n)` in the hosts that have tasks."""
        now, steady = self.clock.monotonic(), self.clock.steady()
        first = min(self.queues.next_due(), steady + self._aside.first_retry(now))
        if first == inf:
            return None
        due = datetime.fromtimestamp(max(first, steady), UTC).isoformat(timespec="seconds")
        hosts = self._failures.reasons(self._aside.waiting(now), TOLD)
        return RetriesWaiting(len(self.queues), due.replace("+00:00", "Z"), hosts)

    def _is_all_here(self) -> bool:
        """Whether neither a seed nor a task for later will bring another host. Endpoints that were given their chances are asked
        at such distances that no page's own retry is as far away."""
        return self._is_sown and self.queues.next_due() - self.clock.steady() > WAITS[-1]

    @property
    def _is_sown(self) -> bool:
        """Whether nobody will bring tasks any more but other agents."""
        return self._sources <= {"arrived"}

    @property
    def wants_pages(self) -> bool:
        """Whether its share of pages will soon keep it from handing out what it has."""
        return len(self.queues) > 0 and self._stopping.is_short(self._in_flight + self.sheet.concurrency)

    def is_at_rest(self) -> bool:
        """Whether it would end now if other agents brought nothing more. What was set aside is probed before that."""
        if not self._is_sown or self._in_flight or len(self._lookups):
            return False
        if self._draining:
            return True
        if len(self.queues) and self._stopping.is_short(0):
            return False  # it goes on as soon as it may have more pages
        if len(self.queues) and not (self._is_hopeless() or self._is_over(self.clock.monotonic())):
            return False
        return not self._probe_last()

    def _end_if_done(self) -> None:
        nothing_left = self._draining or not (self._sources or len(self.queues))
        if not nothing_left or self._in_flight:
            return
        if not self._draining and self._announcing is not None and not self._announcing.is_over:
            if not self.is_paused:
                self.signal("tasks")
            return
        if not self._draining and self._probe_last():
            return
        self.finish()

    def _probe_last(self) -> bool:
        """Before a crawl ends by itself, queue what was freed of what is set aside, or probe it; False for nothing."""
        if self._probing is None or not self._probing.last_round():
            return False
        self._is_stirred = True
        self.signal("tasks")
        return True


def _limits(sheet: FrontierSheet) -> CrawlLimits:
    return CrawlLimits(
        sheet.max_pages,
        sheet.max_time,
        sheet.total_time,
        max_bytes=sheet.max_bytes,
        min_free_disk=sheet.min_free_disk,
        page_share=sheet.page_share,
    )
