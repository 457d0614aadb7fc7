"""One hand-out: tasks of hosts whose turn it is, chosen host by host. Nothing is written to the ledger meanwhile.

Place in the flow: the frontier has brought in what is due, lets this choose, and writes what was decided (:mod:`unwritten`)
before the tasks go out.
"""

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

import msgspec

from gossamer.expressions.contract import TaskFilter, verdicts_on
from gossamer.frontier.host_turns import Aside, FrontierHost, FrontierHosts, HostTurns
from gossamer.frontier.lookups import HostAddresses
from gossamer.frontier.other_tasks import Probing
from gossamer.frontier.robots.contract import RobotsGate, RobotsRuling, RobotsVerdict
from gossamer.frontier.sheet import FrontierUses
from gossamer.frontier.slots import Slots
from gossamer.storage.ledger.contract import Kept, Ledger
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Task
from gossamer.values.url import endpoint_of, host_of, site_of

# What one hand-out has decided and the ledger has not heard of yet: written in one group, before anything goes out.
#
# Place in the flow: the frontier decides task by task, and writes once for all of them.

#: Where robots exclusion stands at a host whose answer another crawl has shared, in the word of the table `hosts`.
SHARED = "shared"


class Unwritten:
    """Decisions of one hand-out."""

    def __init__(self) -> None:
        self._begun: list[Task] = []
        self._later: list[tuple[Task, float]] = []
        self._too_deep: list[Task] = []
        self._learnt: list[tuple[str, str, bytes]] = []

    def __repr__(self) -> str:
        return f"<Unwritten: {len(self._begun)} begin, {len(self._later)} later, {len(self._too_deep)} too deep>"

    @property
    def _is_empty(self) -> bool:
        return not (self._begun or self._later or self._too_deep or self._learnt)

    def begun(self, task: Task) -> None:
        """A request that may not be sent twice is handed out."""
        self._begun.append(task)

    def later(self, task: Task, seconds: float) -> None:
        """The endpoint of this task does not answer, and is left alone for so long: others of its host go first."""
        self._later.append((task, seconds))

    def too_deep(self, task: Task) -> None:
        """The task is deeper than the limit by now, as if it had never been met."""
        self._too_deep.append(task)

    def learnt(self, site: str, host: str, state: bytes) -> None:
        """Another crawl has shared what this site of a host says in robots.txt; `state` is the gate's."""
        self._learnt.append((site, host, state))

    def write(self, ledger: Ledger, now: float) -> None:
        """Write all of it down; `now` is in seconds since the epoch."""
        if self._is_empty:
            return
        with ledger.group() as group:
            for task in self._begun:
                group.begun(task)
            for task, seconds in self._later:
                if group.done(task.identity):
                    group.later(task, now + seconds, known=True)
            if self._too_deep:
                group.count("dropped:depth", sum(map(group.give_up, self._too_deep)))
            for site, host, state in self._learnt:
                group.robots(site, host, state)
                group.count("robots_shared")
                kept = group.host_state(host)
                group.host(msgspec.structs.replace(kept, first_seen=kept.first_seen or now, robots_state=SHARED))
        if self._begun:
            ledger.sync()  # nothing of what may not be sent twice leaves before its note is on the disk
        self._begun, self._later, self._too_deep, self._learnt = [], [], [], []


# May this task be asked for at all? Its address, filters of tasks and robots.txt say so, each time before a task goes out.
#
# Place in the flow: the frontier asks for the first task of the host whose turn it is.

ALLOWED = RobotsVerdict(RobotsRuling.ALLOWED)


def judged(
    host: FrontierHost, task: Task, gates: Sequence[TaskFilter], robots: RobotsGate, ledger: Kept, now: float
) -> tuple[Outcome | None, str, RobotsVerdict]:
    """The outcome of a task that must not be asked for, and why; or None, and what robots.txt says of it.

    What the ledger kept of a site's robots.txt is taken up when it is first needed. `now`: seconds since the epoch. The host
    is one of which it is known where the task's request would go.
    """
    if host.absent:
        return Outcome.DNS_FAILED, host.absent, ALLOWED
    reason = host.ports[endpoint_of(task.url)[1]]
    if reason:
        return Outcome.ADDRESS_REFUSED, reason, ALLOWED
    rule = verdicts_on(gates, "fetch", (task,))[0]
    if rule:
        return Outcome.BLOCKED, rule, ALLOWED
    verdict = robots.judge(task, now)
    if verdict.ruling in (RobotsRuling.FETCH_FIRST, RobotsRuling.WAIT):
        site = site_of(task.url)
        kept = b"" if robots.state(site) else ledger.robots(site, host.name)
        if kept:
            robots.restore(site, kept)
            verdict = robots.judge(task, now)
    if verdict.ruling is RobotsRuling.DENIED:
        return Outcome.ROBOTS_DENIED, rule_text(verdict), verdict
    return None, "", verdict


def rule_text(verdict: RobotsVerdict) -> str:
    """The rule of robots.txt that decided, with its line."""
    return f"{verdict.rule} (robots.txt, line {verdict.line})" if verdict.line else verdict.rule


# What becomes of the task at the head of a host's queue, when it is the host's turn.
#
# Place in the flow: the frontier asks here, and carries the decision out. Nothing is written meanwhile; what is found out
# on the way (an address, a `Crawl-delay`) is told to those who remember it.


class Lot(Enum):
    """What may become of a task that was popped."""

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
    """Where its request would go is being looked up; its host goes on when that is known."""
    WAITS = auto()
    """Its robots.txt comes first, or its host has to wait."""


class DecidedTask(msgspec.Struct, frozen=True):
    """A decision."""

    lot: Lot
    task: Task
    verdict: RobotsVerdict = ALLOWED
    """What robots.txt says of it, where that was asked."""
    outcome: Outcome = Outcome.BLOCKED
    """Where it is refused: as what."""
    why: str = ""
    """Where it is refused: by which rule, in words."""
    seconds: float = 0.0
    """Where it is for later: for how long."""


class TaskDecisions:
    """Decides task by task."""

    def __init__(self, uses: FrontierUses, addresses: HostAddresses, probing: Probing) -> None:
        self._uses = uses
        self._addresses = addresses
        self._probing = probing

    def __repr__(self) -> str:
        return f"<TaskDecisions by {self._uses.robots!r}>"

    def decide(self, host: FrontierHost, first: Task, now: float) -> DecidedTask:
        """What becomes of the first task of this host, which was popped; `now` is monotonic."""
        uses = self._uses
        if self._probing.takes(first):
            return DecidedTask(Lot.SET_ASIDE, first)
        if wait := uses.politeness.closed(first, now):
            return DecidedTask(Lot.LATER, first, seconds=wait)
        limit = uses.ledger.depths.limit
        task = first if limit is None else self._nearest(first)
        if limit is not None and task.depth > limit:
            return DecidedTask(Lot.TOO_DEEP, task)
        host.level = uses.traversal.host_level(task, task.level)
        if task.request is not None and task.request.was_begun:
            why = "it may have been sent before the crawl was killed"
            return DecidedTask(Lot.REFUSED, task, outcome=Outcome.INTERRUPTED, why=why)
        if not self._addresses.is_known(host, task):
            return DecidedTask(Lot.UNKNOWN, task)
        gates, steady = uses.gates.get("fetch", ()), uses.clock.steady()
        outcome, why, verdict = judged(host, task, gates, uses.robots, uses.ledger, steady)
        if outcome is not None:
            return DecidedTask(Lot.REFUSED, task, verdict, outcome, why)
        goes = verdict.ruling is RobotsRuling.ALLOWED and self._is_time(host, verdict, now)
        return DecidedTask(Lot.GOES if goes else Lot.WAITS, task, verdict)

    def _nearest(self, task: Task) -> Task:
        """The task at the shortest depth that is known of its URL by now."""
        depth = self._uses.ledger.depth_of([task.identity])[0]
        return task if depth is None or depth >= task.depth else msgspec.structs.replace(task, depth=depth)

    def _is_time(self, host: FrontierHost, verdict: RobotsVerdict, now: float) -> bool:
        """Whether the host may be asked now, its `Crawl-delay` included."""
        if verdict.delay == host.crawl_delay:
            return True
        host.crawl_delay = verdict.delay
        return self._uses.politeness.pace(host.name, verdict.delay) <= now


#: Tasks of one host that may be refused in one turn before others get theirs: a site may forbid a million.
REFUSED_IN_A_TURN: Final = 32


class Choosing:
    """Takes the hosts in their turns, and of each what it is asked next."""

    def __init__(
        self,
        uses: FrontierUses,
        hosts: FrontierHosts,
        turns: HostTurns,
        aside: Aside,
        slots: Slots,
        addresses: HostAddresses,
        decisions: TaskDecisions,
    ) -> None:
        self._uses = uses
        self._hosts = hosts
        self._turns = turns
        self._aside = aside
        self._slots = slots
        self._addresses = addresses
        self._decisions = decisions
        self.unwritten = Unwritten()
        """What was decided, and is to be written before anything goes out."""

    def __repr__(self) -> str:
        return f"<Choosing among {self._hosts!r}>"

    def choose(self, found: list[Task], most: int, now: float, may_go_on: Callable[[float], bool]) -> float | None:
        """Add tasks of hosts whose turn it is, up to `most` in all.

        Args:
            found: the tasks chosen so far.
            most: how many there may be.
            now: the monotonic instant.
            may_go_on: whether one more task may go out; asked before each.

        Returns:
            The monotonic instant at which the next host is ready, where that is all there is to wait for.
        """
        while len(found) < most and may_go_on(now):
            host = self._uses.politeness.next(now)
            if isinstance(host, str):
                entered = self._hosts.enter(host, is_held=False)
                if self._aside.keeps(entered, only_lively=self._slots.free_for_all <= 0):
                    continue
                task = self._task_of(entered, now)
                if task is not None:
                    found.append(task)
            elif not self.refuse_blocked():
                return host
        return None

    def _task_of(self, host: FrontierHost, now: float) -> Task | None:
        """What this host is asked now; None where it is not its turn after all."""
        if host.errands:
            is_known = self._addresses.is_known(host, host.errands[0])
            return self._begin(host, host.errands.pop(0), now) if is_known else None
        for _ in range(REFUSED_IN_A_TURN):
            tasks = self._uses.queues.pop(host.name)
            if not tasks:
                self._turns.leave(host)
                return None
            decided = self._decisions.decide(host, tasks[0], now)
            if decided.verdict.is_news:
                site = site_of(decided.task.url)
                self.unwritten.learnt(site, host.name, self._uses.robots.state(site))
            if decided.lot is Lot.GOES:
                return self._begin(host, decided.task, now)
            if decided.lot in (Lot.UNKNOWN, Lot.WAITS):
                self._uses.queues.put_back(decided.task)
                return self._delayed(host, decided.task, decided.verdict, now) if decided.lot is Lot.WAITS else None
            self._pass_over(decided)
            if self._slots.free <= 0:
                break
        self._turns.put(host.name)
        return None

    def _begin(self, host: FrontierHost, task: Task, now: float) -> Task:
        if not task.is_safe:
            self.unwritten.begun(task)
        self._slots.depart(task)
        if self._uses.politeness.begin(task, host.address, now):
            self._turns.put(host.name)
        return task

    def _pass_over(self, decided: DecidedTask) -> None:
        """The task does not go out, and others of its host may."""
        if decided.lot is Lot.REFUSED:
            self._slots.end(decided.task, decided.outcome, decided.why)
        elif decided.lot is Lot.LATER:
            self.unwritten.later(decided.task, decided.seconds)
        elif decided.lot is Lot.TOO_DEEP:
            self.unwritten.too_deep(decided.task)

    def _delayed(self, host: FrontierHost, task: Task, verdict: RobotsVerdict, now: float) -> Task | None:
        """The host must be asked for its robots.txt first, or waits."""
        if verdict.ruling is RobotsRuling.FETCH_FIRST:
            return self._ask_robots(host, site_of(task.url), verdict, now)
        if verdict.ruling is RobotsRuling.WAIT:
            self._uses.politeness.hold(task, verdict.until - self._uses.clock.steady())
            self._uses.metrics.count("robots_waits")
            if not self._turns.look_around(host.name):
                return None
        self._turns.put(host.name)
        return None

    def _ask_robots(self, host: FrontierHost, site: str, asked: RobotsVerdict, now: float) -> Task | None:
        """Begin a request for a site's robots.txt, at its host or where a redirect led."""
        etag, modified = asked.etag, asked.last_modified
        task = Task(asked.url, host_of(asked.url), source=site, relation=ROBOTS, etag=etag, last_modified=modified)
        host.asking = (*host.asking, site)
        if task.host == host.name:
            return self._begin(host, task, now)
        other = self._hosts.enter(task.host, is_held=False)
        other.errands.append(task)
        self._turns.put(other.name)
        return None

    def refuse_blocked(self) -> bool:
        """End the story of tasks of hosts that turned out to be blocked, as many as there are slots for; False for none."""
        any_refused = False
        for name in self._uses.politeness.take_blocked():
            host, slots = self._hosts.get(name), max(1, self._slots.free)
            errands = host.errands if host is not None else ()
            # Another site's robots.txt led here: that site must learn that it is not to be had.
            tasks = [host.errands.pop(0) for _ in range(min(slots, len(errands)))] if host is not None else []
            tasks += self._uses.queues.pop(name, slots - len(tasks)) if slots > len(tasks) else []
            rule = self._uses.politeness.rule_against(name)
            for task in tasks:
                self._slots.end(task, Outcome.BLOCKED, f"{rule} is blocked")
            if tasks:
                any_refused = True
                self._turns.put(name)
            elif host is not None:
                self._turns.leave(host)
        return any_refused
