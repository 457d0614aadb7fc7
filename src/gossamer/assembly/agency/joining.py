"""Agents that join a crawl of several at work, and leave it: as many as a person says, or as the rule of growth says. And domains
that go from a busy agent to an idle one.

Place in the flow: :mod:`gossamer.assembly.agency.crawl` has one; commands ask it, and it looks at the load of all agents. The crawl
then comes to rest, domains change hands (:mod:`roster`), and its agents go on.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gossamer.assembly.agency.balance import Balance
from gossamer.assembly.growth import LOOK, Growth, Load, RestSpacing, bounded, together, why_fixed
from gossamer.flow.errors import FlowError
from gossamer.model.agents import member
from gossamer.model.errors import GossamerError
from gossamer.stages.frontier.sheet import FrontierSheet

if TYPE_CHECKING:
    from gossamer.assembly.agency.crawl import DividedCrawl


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
