"""Agents that join a crawl of several at work, and leave it: as many as a person says, or as the rule of growth says.

Place in the flow: :mod:`gossamer.assembly.agency.crawl` has one; commands ask it, and it looks at the load of all agents. The crawl
then comes to rest, domains change hands (:mod:`roster`), and its agents go on.
"""

import asyncio
import time
from typing import TYPE_CHECKING

from gossamer.assembly.growth import LOOK, Growth, bounded, together, why_fixed
from gossamer.flow.errors import FlowError
from gossamer.model.errors import GossamerError
from gossamer.stages.frontier.sheet import FrontierSheet

if TYPE_CHECKING:
    from gossamer.assembly.agency.crawl import DividedCrawl


class Joining:
    """Lets agents join and leave."""

    def __init__(self, crawl: "DividedCrawl") -> None:
        self._crawl = crawl
        self._growth = Growth()
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
            self._crawl.supervisor.rest()

    def why_alone(self) -> str:
        """Why nobody joins by himself. Several agents do not work alone."""
        return ""

    async def watch(self) -> None:
        """Let agents join where those that work have no core left, until this is cancelled."""
        while True:
            await asyncio.sleep(LOOK)
            supervisor = self._crawl.supervisor
            loads = [agent.news.load for agent in supervisor.agents.values() if agent.news is not None]
            if self._is_fixed or supervisor.is_resting or len(loads) < len(supervisor.agents):
                continue
            now, working = time.monotonic(), len(loads)
            sheet = self._crawl.graph.sheet("frontier")
            most = bounded(sheet, working) if isinstance(sheet, FrontierSheet) else working
            number = self._growth.hear(now, working, most, together(loads))
            if number > working:
                self._growth.postpone(now)
                self._let_join(number)

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
