"""Agents that join and leave a crawl at work: by a person's word, by the rule of growth, or because their loads differ."""

import asyncio
import contextlib
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gossamer.agents.growth import (
    AGAIN,
    BUSY,
    EACH,
    LOOK,
    WORTH,
    Growth,
    Load,
    LoadGauge,
    RestSpacing,
    bounded,
    together,
    why_fixed,
)
from gossamer.engine.errors import FlowError
from gossamer.frontier.limits import FrontierSheet
from gossamer.values.agents import agent_name
from gossamer.values.errors import GossamerError, UsageError

if TYPE_CHECKING:
    from gossamer.agents.crawl import SupervisedCrawl
    from gossamer.crawls.crawl import Crawl


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


# Agents that join a crawl at work, and leave it: as many as a person says, or as the rule of growth says. And domains that go from
# a busy agent to an idle one.
#
# Place in the flow: :mod:`gossamer.agents.crawl` has one; commands ask it, and it looks at the load of all agents. The crawl
# then comes to rest, domains change hands (:mod:`roster`), and its agents go on.


class Joining:
    """Lets agents join and leave, and divides the domains more evenly."""

    def __init__(self, crawl: "SupervisedCrawl", growth: Growth | None = None) -> None:
        self._crawl = crawl
        spacing = RestSpacing()
        self._growth = growth or Growth(spacing)
        self.balance = Balance(spacing)
        """Says how much of the web each agent should have."""
        self._gauge: LoadGauge | None = None
        self._stays = ""
        """Why nobody joins but where a person says so; empty where somebody may."""
        self._wish = 0
        self._stirred = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Joining {self._growth!r}>"

    # -- what people ask

    def stay(self, why: str) -> None:
        """Let nobody join but where a person says so, for this reason."""
        self._stays = why

    def why_alone(self) -> str:
        """Why nobody joins the only agent by himself; empty where somebody may, or several work."""
        lone = self._crawl.lone
        if lone is None or self._stays:
            return self._stays if lone is not None else ""
        if lone.exchange is not None:
            return "it exchanges URLs by files"
        if lone.units.frontier.sheet.max_agents == 1:
            return "no more are allowed"
        if self._most(1) <= 1:
            return "the machine has no core or no memory for another one"
        return self._why_not(2)

    def check_number(self, number: int) -> None:
        """Refuse a number of agents that the crawl cannot have. Raises as :meth:`resize`."""
        if (lone := self._crawl.lone) is None:
            self._crawl.several.check_number(number)
            return
        from gossamer.agents.membership import check_can_change
        from gossamer.agents.orders import check_can_divide

        if lone.is_stopping:
            raise UsageError("the crawl is about to end; its agents stay as they are")
        if number > 1:
            check_can_divide(lone.graph, list(map(agent_name, range(number))), lone.directory)
            check_can_change(lone.wiring, lone.directory)

    def resize(self, number: int) -> None:
        """Let the crawl have so many agents, in some seconds.

        Raises:
            UsageError: it cannot have them, or is about to end. Nothing has changed.
            WiringError: likewise.
        """
        self.check_number(number)
        if self._crawl.lone is None:
            self._crawl.several.resize(number)
        else:
            self._wish = number
            self._stirred.set()

    # -- looks at the load

    async def watch(self) -> None:
        """Let agents join where those at work have no core left, and idle ones get domains of busy ones, until it is cancelled, or
        the only agent has come to rest for others."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._stirred.wait()
            self._stirred.clear()
            if (lone := self._crawl.lone) is None:
                self._look_at(time.monotonic(), self._crawl.several.loads())
            elif lone.working and (number := self._wish or self._wanted_beside(lone)) > 1:
                if await self._crawl.hand_over(number):
                    self._growth.postpone(time.monotonic())
                    return
                await self._try_later(number)

    def _wanted_beside(self, lone: "Crawl") -> int:
        """How many there should be in the place of the only one."""
        if lone.exchange is not None:
            return 1
        if self._gauge is None:
            self._gauge = LoadGauge(lone)
        now = time.monotonic()
        return self._wanted(now, 1, self._gauge.read(now))

    async def _try_later(self, number: int) -> None:
        self._growth.postpone(time.monotonic())
        if self._wish:
            self._report(
                f"the crawl did not come to rest, so {number} agents cannot share it yet; it tries again in {AGAIN:g} s"
            )
            await asyncio.sleep(AGAIN)

    def _look_at(self, now: float, loads: Mapping[str, Load]) -> None:
        """Decide on several agents, by their loads; none while they rest, or one of them has not told."""
        if not loads:
            return
        several = self._crawl.several
        if (number := self._wanted(now, len(loads), together(loads.values()))) > len(loads):
            self._growth.postpone(now)
            several.resize(number)
        elif several.may_move and (capacities := self.balance.hear(now, loads, several.roster.capacities)):
            self.balance.postpone(now)
            with contextlib.suppress(FlowError, GossamerError):  # then domains stay where they are
                several.roster.weigh(several.graph, capacities)
                several.rest()

    def _wanted(self, now: float, working: int, load: Load) -> int:
        """How many agents there should be by the rule, unless something is against more of them, which is told once."""
        if self._stays:
            return working
        number = self._growth.hear(now, working, self._most(working), load)
        if number > working and (why := self._why_not(number)):
            self._stays = why
            self._report(
                f"the processor is busy, and more agents could take a part of the hosts, but none joins: {why}"
            )
            return working
        return number

    def _most(self, working: int) -> int:
        """How many agents there may be."""
        lone = self._crawl.lone
        sheet = lone.units.frontier.sheet if lone is not None else self._crawl.several.graph.sheet("frontier")
        return bounded(sheet, working) if isinstance(sheet, FrontierSheet) else working

    def _why_not(self, number: int) -> str:
        """Why nobody can join so that there are this many; empty where somebody can."""
        lone = self._crawl.lone
        if why := why_fixed(lone.graph if lone is not None else self._crawl.several.graph):
            return why
        try:
            self.check_number(number)
        except (FlowError, GossamerError) as error:
            return str(error)
        return ""

    def _report(self, line: str) -> None:
        (self._crawl.lone or self._crawl.several).report(line)
