"""Agents that join and leave a crawl at work: by a person's word, by the rule of growth, or because their loads differ."""

import asyncio
import contextlib
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gossamer.agents.growth import BUSY, EACH, LOOK, WORTH, Growth, Load, RestSpacing, bounded, together, why_fixed
from gossamer.engine.errors import FlowError
from gossamer.frontier.limits import FrontierSheet
from gossamer.values.agents import member
from gossamer.values.errors import GossamerError

if TYPE_CHECKING:
    from gossamer.agents.crawl import DividedCrawl


# When an agent that has little to do should get domains of one that is busy: a rule that is told how loaded each agent is.
#
# Place in the flow: the supervising process asks it once a second (:mod:`joining`). The rule is pure. It answers with
# capacities: by the ring, an agent has as much of the web as its capacity says, so that domains move to an agent whose
# capacity has grown, and nobody else has to be told whose they are.
#
# Hashing gives each agent about as many domains as the others. It cannot know how large they are: among 400 hosts whose
# sizes follow a power law, one of two agents got a quarter more pages than the other (docs/benchmarks.md). So one of them
# runs out of work, and its core stays unused until the crawl ends.

#: The share of a core below which an agent has room for domains of others: it has half its core left, or more.
IDLE = 0.5

#: Seconds for which one agent must be idle beside a busy one. What they tell is a mean of ten seconds already.
LASTING = 5.0

#: The least capacity: an agent has some fifty points on the ring then, and its share strays by a seventh.
LEAST = 0.05

#: Digits of a capacity behind the point, as :func:`~gossamer.values.agents.member` reads them.
_DIGITS = 3


class Balance:
    """Says how much of the web each agent should have. Pure: it is told the time, in monotonic seconds."""

    def __init__(self, spacing: RestSpacing | None = None) -> None:
        """`spacing` says how often the crawl may rest of itself; it is shared with the rule of growth."""
        self._spacing = spacing or RestSpacing()
        self._since = math.inf

    def __repr__(self) -> str:
        return f"<Balance, uneven since {self._since:g}>"

    def hear(self, now: float, loads: Mapping[str, Load], capacities: Mapping[str, float]) -> dict[str, float]:
        """The capacities that agents should have instead of theirs; empty where all stays as it is.

        Args:
            now: monotonic seconds.
            loads: of the agents that work.
            capacities: of the same agents.
        """
        busy = [agent for agent, load in loads.items() if load.busy >= BUSY and _has_enough(load)]
        idle = [agent for agent, load in loads.items() if load.busy < IDLE]
        if not (busy and idle):
            self._since = math.inf
            return {}
        self._since = min(self._since, now)
        if now - self._since < LASTING or not self._spacing.may_rest(now):
            return {}
        return evened(loads, capacities, busy, idle)

    def postpone(self, now: float) -> None:
        """Domains have just moved, or could not: say nothing for a while."""
        self._since = math.inf
        self._spacing.rested(now)


def _has_enough(load: Load) -> bool:
    """There are domains for two, and work for longer than it takes to move them."""
    return load.domains >= 2 * EACH and load.seconds_left >= WORTH


def evened(
    loads: Mapping[str, Load], capacities: Mapping[str, float], busy: list[str], idle: list[str]
) -> dict[str, float]:
    """Capacities under which each busy agent keeps what makes it as busy as all are on the average; the idle ones get the rest.

    Their sum stays as it is, so that an agent that joins later gets its due. Arguments are those of :meth:`Balance.hear`, and the
    names of agents that give and that take.
    """
    mean = sum(load.busy for load in loads.values()) / len(loads)
    fresh = dict(capacities)
    for agent in busy:
        kept = min(1.0, mean / loads[agent].busy)
        fresh[agent] = round(max(LEAST, capacities[agent] * kept), _DIGITS)
    given = sum(capacities[agent] - fresh[agent] for agent in busy)
    room = {agent: max(0.0, mean - loads[agent].busy) for agent in idle}
    total = sum(room.values())
    if given <= 0.0 or total <= 0.0:
        return {}
    for agent, part in room.items():
        fresh[agent] = round(capacities[agent] + given * part / total, _DIGITS)
    return fresh


# Agents that join a crawl of several at work, and leave it: as many as a person says, or as the rule of growth says. And domains
# that go from a busy agent to an idle one.
#
# Place in the flow: :mod:`gossamer.agents.crawl` has one; commands ask it, and it looks at the load of all agents. The crawl
# then comes to rest, domains change hands (:mod:`roster`), and its agents go on.


class Joining:
    """Lets agents join and leave, and divides the domains more evenly."""

    def __init__(self, crawl: "DividedCrawl") -> None:
        self._crawl = crawl
        spacing = RestSpacing()
        self._growth = Growth(spacing)
        self.balance = Balance(spacing)
        """Says how much of the web each agent should have."""
        self._is_fixed = False

    def __repr__(self) -> str:
        return f"<Joining {self._growth!r}>"

    def check_number(self, number: int) -> None:
        """Refuse a number of agents that the crawl cannot have. Raises as :meth:`resize`."""
        self._crawl.check_goes_on()
        self._crawl.roster.with_number(self._crawl.graph, number)

    def resize(self, number: int) -> None:
        """Let the crawl have so many agents, in some seconds.

        Raises:
            UsageError: it cannot have them, or is about to end. Nothing has changed.
            WiringError: likewise.
        """
        self.check_number(number)
        if number != len(self._crawl.supervisor.agents):
            self._crawl.roster.want(self._crawl.graph, number)
            self._crawl.rest()

    def why_alone(self) -> str:
        """Why nobody joins by himself. Several agents do not work alone."""
        return ""

    async def watch(self) -> None:
        """Let agents join where those that work have no core left, and idle ones domains of busy ones, until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK)
            supervisor = self._crawl.supervisor
            heard = {
                name: agent.news.load
                for name, agent in supervisor.agents.items()
                if agent.news is not None and not agent.is_late
            }
            if not supervisor.is_resting and len(heard) == len(supervisor.agents):
                self._look_at(time.monotonic(), heard)

    def _look_at(self, now: float, loads: Mapping[str, Load]) -> None:
        sheet, working = self._crawl.graph.sheet("frontier"), len(loads)
        most = bounded(sheet, working) if isinstance(sheet, FrontierSheet) else working
        if not self._is_fixed and (number := self._growth.hear(now, working, most, together(loads.values()))) > working:
            self._growth.postpone(now)
            self._let_join(number)
        elif self._may_move and (capacities := self.balance.hear(now, loads, self._crawl.roster.capacities)):
            self.balance.postpone(now)
            with contextlib.suppress(FlowError, GossamerError):  # then domains stay where they are
                self._crawl.roster.weigh(self._crawl.graph, capacities)
                self._crawl.rest()

    @property
    def _may_move(self) -> bool:
        """Domains may move without a person's word: the ring alone says whose they are, and no process has what others lack."""
        crawl = self._crawl
        if crawl.supervisor.is_stopping or crawl.supervisor.limit or crawl.roster.masters:
            return False
        return not any(member(text).place for text in crawl.roster.members) and not why_fixed(crawl.graph)

    def _let_join(self, number: int) -> None:
        """Let the crawl have so many, unless something is against it."""
        why = why_fixed(self._crawl.graph)
        try:
            if not why:
                self.resize(number)
        except (FlowError, GossamerError) as error:
            why = str(error)
        if why:
            self._is_fixed = True
            self._crawl.report(
                f"the processor is busy, and more agents could take a part of the hosts, but none joins: {why}"
            )
