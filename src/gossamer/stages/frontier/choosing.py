"""One hand-out: tasks of hosts whose turn it is, chosen host by host. Nothing is written to the ledger meanwhile.

Place in the flow: the frontier has brought in what is due, lets this choose, and writes what was decided (:mod:`unwritten`)
before the tasks go out.
"""

from collections.abc import Callable
from typing import Final

from gossamer.contracts.robots import RobotsRuling, RobotsVerdict
from gossamer.model.outcome import Outcome
from gossamer.model.task import ROBOTS, Task
from gossamer.model.url import host_of, site_of
from gossamer.stages.frontier.addresses import HostAddresses
from gossamer.stages.frontier.aside import Aside
from gossamer.stages.frontier.deciding import DecidedTask, Lot, TaskDecisions
from gossamer.stages.frontier.hosts import FrontierHost, FrontierHosts
from gossamer.stages.frontier.slots import Slots
from gossamer.stages.frontier.turns import HostTurns
from gossamer.stages.frontier.unwritten import Unwritten
from gossamer.stages.frontier.uses import FrontierUses

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
