"""What becomes of the task at the head of a host's queue, when it is the host's turn.

Place in the flow: the frontier asks here, and carries the decision out. Nothing is written meanwhile; what is found out on the way
(an address, a `Crawl-delay`) is told to those who remember it.
"""

from enum import Enum, auto

import msgspec

from gossamer.contracts.robots import RobotsRuling, RobotsVerdict
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.stages.frontier.addresses import HostAddresses
from gossamer.stages.frontier.hosts import FrontierHost
from gossamer.stages.frontier.judging import ALLOWED, judged
from gossamer.stages.frontier.probing import Probing
from gossamer.stages.frontier.uses import FrontierUses


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
