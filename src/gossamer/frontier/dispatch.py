"""One hand-out: tasks of hosts whose turn it is, chosen host by host, and the slots that they take.

Place in the flow: the component brings in what is due and calls :meth:`Dispatch.choose`. For the first task of each host
:func:`decide` says what becomes of it. Nothing is written to the ledger meanwhile: a :class:`DispatchBatch` notes the
decisions, and is written in one group before the tasks go out. A task that goes out or is refused takes a slot, until its
visit is committed.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import msgspec

from gossamer.expressions.contract import verdicts_on
from gossamer.frontier.host_turns import FrontierHost
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Answer, Task
from gossamer.values.url import endpoint_of, host_of, site_of
from gossamer.values.visit import Response, Visit

if TYPE_CHECKING:
    from gossamer.frontier.frontier import Frontier

#: Tasks of one host that may be refused in one turn before others get theirs: a site may forbid a million.
REFUSED_IN_A_TURN: Final = 32

#: One slot in so many is for hosts whose last page came within some seconds: hundreds of hosts that answer a byte a second
#: would take all slots for as long as such answers may last, and healthy hosts would wait.
KEPT_FREE: Final = 8

#: Where robots exclusion stands at a host whose answer another crawl has shared, in the word of the table `hosts`.
SHARED: Final = "shared"

ALLOWED: Final = RobotsVerdict(RobotsRuling.ALLOWED)


class DispatchStep(Enum):
    """The next step of the task at the head of a host's queue."""

    GOES = auto()
    """It is asked for now."""
    REFUSED = auto()
    """It must not be asked for."""
    SET_ASIDE = auto()
    """It belongs to what looks like a trap."""
    LATER = auto()
    """Its endpoint does not answer; others of its host go first."""
    TOO_DEEP = auto()
    """It is deeper than the limit by now."""
    UNKNOWN = auto()
    """Its address is being looked up; its host goes on when that is known."""
    WAITS = auto()
    """Its robots.txt comes first, or its host has to wait."""


class TaskDecision(msgspec.Struct, frozen=True):
    """The next step of a task, and why."""

    step: DispatchStep
    task: Task
    verdict: RobotsVerdict = ALLOWED
    """The answer of robots.txt, where that was asked."""
    outcome: Outcome = Outcome.BLOCKED
    """Of a refused task."""
    why: str = ""
    """Of a refused task: the rule, in words."""
    seconds: float = 0.0
    """Of a task for later."""


def decide(frontier: "Frontier", host: FrontierHost, first: Task, now: float) -> TaskDecision:
    """Decide on the first task of this host, which was popped; `now` is monotonic."""
    if frontier.probes.takes(first):
        return TaskDecision(DispatchStep.SET_ASIDE, first)
    if wait := frontier.politeness.closed(first, now):
        return TaskDecision(DispatchStep.LATER, first, seconds=wait)
    task, limit = first, frontier.ledger.depths.limit
    if limit is not None:
        depth = frontier.ledger.depth_of([task.identity])[0]  # the URL may have been met nearer to a seed by now
        if depth is not None and depth < task.depth:
            task = msgspec.structs.replace(task, depth=depth)
        if task.depth > limit:
            return TaskDecision(DispatchStep.TOO_DEEP, task)
    host.level = frontier.traversal.host_level(task, task.level)
    if task.request is not None and task.request.was_begun:
        why = "it may have been sent before the crawl was killed"
        return TaskDecision(DispatchStep.REFUSED, task, outcome=Outcome.INTERRUPTED, why=why)
    port = endpoint_of(task.url)[1]
    if not (host.absent or port in host.ports or frontier.lookups.is_known(host, task)):
        return TaskDecision(DispatchStep.UNKNOWN, task)
    if host.absent:
        return TaskDecision(DispatchStep.REFUSED, task, outcome=Outcome.DNS_FAILED, why=host.absent)
    if why := host.ports[port]:
        return TaskDecision(DispatchStep.REFUSED, task, outcome=Outcome.ADDRESS_REFUSED, why=why)
    if why := verdicts_on(frontier.gates.get("fetch", ()), "fetch", (task,))[0]:
        return TaskDecision(DispatchStep.REFUSED, task, why=why)
    return _decide_by_robots(frontier, host, task, now)


def _decide_by_robots(frontier: "Frontier", host: FrontierHost, task: Task, now: float) -> TaskDecision:
    robots, steady = frontier.robots, frontier.clock.steady()
    verdict = robots.judge(task, steady)
    if verdict.ruling in (RobotsRuling.FETCH_FIRST, RobotsRuling.WAIT):
        site = site_of(task.url)
        # The ledger's copy of a site's robots.txt is read when it is first needed.
        if not robots.state(site) and (kept := frontier.ledger.robots(site, host.name)):
            robots.restore(site, kept)
            verdict = robots.judge(task, steady)
    if verdict.ruling is RobotsRuling.DENIED:
        why = f"{verdict.rule} (robots.txt, line {verdict.line})" if verdict.line else verdict.rule
        return TaskDecision(DispatchStep.REFUSED, task, verdict, Outcome.ROBOTS_DENIED, why)
    if verdict.ruling is not RobotsRuling.ALLOWED:
        return TaskDecision(DispatchStep.WAITS, task, verdict)
    if verdict.delay != host.crawl_delay:
        host.crawl_delay = verdict.delay
        if frontier.politeness.pace(host.name, verdict.delay) > now:
            return TaskDecision(DispatchStep.WAITS, task, verdict)
    return TaskDecision(DispatchStep.GOES, task, verdict)


class DispatchBatch:
    """Decisions of one hand-out that the ledger does not know yet."""

    def __init__(self) -> None:
        self.begun: list[Task] = []
        """Requests that go out, and may not be sent twice."""
        self.later: list[tuple[Task, float]] = []
        """Tasks whose endpoint does not answer, and for how many seconds it is left alone."""
        self.too_deep: list[Task] = []
        """Tasks that are deeper than the limit by now: given up as if they had never been met."""
        self.learnt: list[tuple[str, str, bytes]] = []
        """Sites whose robots.txt another crawl has shared: site, host, and the gate's state."""

    def write(self, ledger: Ledger, now: float) -> None:
        """Write all of it down, and forget it; `now` is in seconds since the epoch."""
        if not (self.begun or self.later or self.too_deep or self.learnt):
            return
        with ledger.group() as group:
            for task in self.begun:
                group.begun(task)
            for task, seconds in self.later:
                if group.done(task.identity):
                    group.later(task, now + seconds, known=True)
            if self.too_deep:
                group.count("dropped:depth", sum(map(group.give_up, self.too_deep)))
            for site, host, state in self.learnt:
                group.robots(site, host, state)
                group.count("robots_shared")
                kept = group.host_state(host)
                group.host(msgspec.structs.replace(kept, first_seen=kept.first_seen or now, robots_state=SHARED))
        if self.begun:
            ledger.sync()  # nothing of what may not be sent twice leaves before its note is on the disk
        self.begun, self.later, self.too_deep, self.learnt = [], [], [], []


class Slots:
    """One slot for each task that was handed out or refused, until its visit is committed."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self.taken = 0
        """Slots that are not free."""
        self.wants = 0
        """Requests of pages that are being rendered, on their way: they take no slot, and may outlast their page."""
        self.refused: deque[Visit] = deque()
        """Visits without a request, on their way to the commit."""

    @property
    def free(self) -> int:
        return self._frontier.sheet.concurrency - self.taken

    @property
    def free_for_all(self) -> int:
        """Slots that are left for hosts of any kind, and not kept for lively ones."""
        return self.free - self._frontier.sheet.concurrency // KEPT_FREE

    def depart(self, task: Task) -> None:
        is_want = task.is_want
        self.taken += not is_want
        self.wants += is_want
        self._frontier.flights.depart(task.identity)

    def arrive(self, task: Task) -> None:
        """Free the slot of a task: its visit is committed, or it was not fetched."""
        is_want = task.is_want
        self.taken -= not is_want
        self.wants -= is_want

    def end(self, task: Task, outcome: Outcome, why: str = "") -> None:
        """End a task's story without a request: at the commit, like any other."""
        self.depart(task)
        self.refused.append(Visit(task, Response(outcome, started=self._frontier.clock.now(), error=why)))

    def take_back(self, task: Task) -> bool:
        """Free the slot of a task that went out and was not fetched. A request that may not be sent twice ends here, since it may
        have been sent. Returns False if its visit was committed meanwhile."""
        frontier = self._frontier
        if not frontier.flights.arrive(task.identity):
            return False
        mark = "" if task.request is None else task.request.mark
        is_errand = task.relation == ROBOTS
        lost = Answer(task.url, task.host, Outcome.INTERRUPTED, 0.0, is_errand=is_errand, mark=mark)
        frontier.politeness.ruling(lost)
        self.arrive(task)
        if not task.is_safe:
            self.end(task, Outcome.INTERRUPTED, "the crawler that had it is gone, and it may not be sent twice")
        return True


class Dispatch:
    """Takes the hosts in their turns, and the next task of each."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self.batch = DispatchBatch()
        """Decisions that must be written before anything goes out."""

    def choose(self, found: list[Task], most: int, now: float) -> float | None:
        """Add tasks of hosts whose turn it is, up to `most` in all; `now` is monotonic.

        Returns:
            The monotonic instant at which the next host is ready, where that is all there is to wait for.
        """
        frontier = self._frontier
        while len(found) < most and not frontier.termination.is_paused:
            wants_only = not frontier.termination.may_hand_out(now)
            if wants_only and not frontier.turns.wanting:
                return None
            name = frontier.politeness.next(now)
            if isinstance(name, str):
                host = frontier.turns.get(name) or frontier.turns.enter(name, is_held=False)
                is_passed = frontier.turns.passes_over(host, wants_only=wants_only)
                if not is_passed and (task := self._next_task(host, now)) is not None:
                    found.append(task)
            elif not (blocked := frontier.politeness.take_blocked()) or not self.refuse(blocked):
                return name
        return None

    def _next_task(self, host: FrontierHost, now: float) -> Task | None:
        """The next task of this host; None where it is not its turn after all."""
        frontier = self._frontier
        if host.errands or host.wants:
            return self._next_own(host, now)
        if frontier.turns.is_withheld(host.name):
            frontier.turns.withhold(host)
            return None
        for _ in range(REFUSED_IN_A_TURN):
            tasks = frontier.queues.pop(host.name)
            if not tasks:
                frontier.turns.leave(host)
                return None
            decision = decide(frontier, host, tasks[0], now)
            task = decision.task
            if decision.verdict.is_news:
                site = site_of(task.url)
                self.batch.learnt.append((site, host.name, frontier.robots.state(site)))
            if decision.step is DispatchStep.GOES:
                return self._begin(host, task, now)
            if decision.step in (DispatchStep.UNKNOWN, DispatchStep.WAITS):
                frontier.queues.put_back(task)
                return self._delay(host, task, decision.verdict, now) if decision.step is DispatchStep.WAITS else None
            if decision.step is DispatchStep.REFUSED:
                frontier.slots.end(task, decision.outcome, decision.why)
            elif decision.step is DispatchStep.LATER:
                self.batch.later.append((task, decision.seconds))
            elif decision.step is DispatchStep.TOO_DEEP:
                self.batch.too_deep.append(task)
            if frontier.slots.free <= 0:
                break
        frontier.turns.put(host.name)
        return None

    def _next_own(self, host: FrontierHost, now: float) -> Task | None:
        """The next request that stands in no queue: for a robots.txt that another site has led to, or of a page that is being
        rendered; None where that has to wait, or must not be sent."""
        frontier = self._frontier
        if host.errands:
            is_known = frontier.lookups.is_known(host, host.errands[0])
            return self._begin(host, host.errands.pop(0), now) if is_known else None
        task = host.wants[0]
        decision = decide(frontier, host, task, now)
        if decision.step is DispatchStep.UNKNOWN:
            return None
        if decision.step is DispatchStep.WAITS:
            return self._delay(host, task, decision.verdict, now)
        frontier.turns.given(host)
        if decision.step is DispatchStep.GOES:
            return self._begin(host, task, now)
        frontier.slots.end(task, decision.outcome, decision.why or "its server does not answer, or it may be a trap")
        frontier.turns.put(host.name)
        return None

    def _begin(self, host: FrontierHost, task: Task, now: float) -> Task:
        frontier = self._frontier
        if not task.is_safe:
            self.batch.begun.append(task)
        frontier.slots.depart(task)
        if frontier.politeness.begin(task, host.address, now):
            frontier.turns.put(host.name)
        return task

    def _delay(self, host: FrontierHost, task: Task, verdict: RobotsVerdict, now: float) -> Task | None:
        """Ask for the robots.txt of the task's site first, at its host or where a redirect led; or let the host wait."""
        frontier, site = self._frontier, site_of(task.url)
        if verdict.ruling is RobotsRuling.FETCH_FIRST:
            etag, modified = verdict.etag, verdict.last_modified
            asked = Task(
                verdict.url, host_of(verdict.url), source=site, relation=ROBOTS, etag=etag, last_modified=modified
            )
            host.asking = (*host.asking, site)
            if asked.host == host.name:
                return self._begin(host, asked, now)
            host = frontier.turns.enter(asked.host, is_held=False)
            host.errands.append(asked)
        elif verdict.ruling is RobotsRuling.WAIT:
            frontier.politeness.hold(task, verdict.until - frontier.clock.steady())
            frontier.metrics.count("robots_waits")
            frontier.turns.look_around(host.name)
        frontier.turns.put(host.name)
        return None

    def refuse(self, blocked: Sequence[str]) -> bool:
        """End the story of tasks of hosts that turned out to be blocked, as many as there are slots for; False for none."""
        any_refused, frontier = False, self._frontier
        for name in blocked:
            if frontier.turns.is_withheld(name):
                continue
            host, slots = frontier.turns.get(name), max(1, frontier.slots.free)
            # Another site's robots.txt may have led here: that site must learn that it is not to be had.
            tasks = [] if host is None else frontier.turns.take_own(host, slots)
            tasks += frontier.queues.pop(name, slots - len(tasks)) if slots > len(tasks) else []
            rule = frontier.politeness.rule_against(name)
            for task in tasks:
                frontier.slots.end(task, Outcome.BLOCKED, f"{rule} is blocked")
            if tasks:
                any_refused = True
                frontier.turns.put(name)
            elif host is not None:
                frontier.turns.leave(host)
        return any_refused
