"""Divides among the agents of a crawl what they have together: pages, bytes, time, turns at addresses, rates.

Place in the flow: the supervisor brings the news of each round here, and this tells agents what they are lent. The rules are pure,
and have modules of their own: :mod:`shares` for pages and bytes, :mod:`turns` for addresses, :mod:`rates` for rates. Nothing of
this must outlive the supervisor: the next one hears from agents at work what they have.

A message that an agent does not take is no failure: its share is decided again by what it says next.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf

from gossamer.agents.agent import LENT, AgentNews
from gossamer.agents.line import AgentRefused, AgentSilent
from gossamer.agents.shares import LEAST_BYTES, Borrower, RateShares, lent
from gossamer.agents.supervised import AgentProcess
from gossamer.agents.turns import PlaceTurns
from gossamer.crawls.control.agent_messages import LendRates, LendTurns, SetAgent
from gossamer.crawls.control.wire import ControlRequest

#: Limits that an agent reaches for all of them: the others need not go on to the same place.
_FOR_ALL = frozenset({"until", "max_time", "total_time", "min_free_disk"})


class Lending:
    """Limits, turns and rates of one crawl of several agents."""

    def __init__(self, agents: Mapping[str, AgentProcess], turns: PlaceTurns | None = None) -> None:
        """Nothing is lent yet.

        Args:
            agents: those of the crawl, by their names.
            turns: says who may ask at a place where several agents have hosts.
        """
        self.max_pages: int | None = None
        """The limit of the whole crawl, which is lent to agents."""
        self.max_bytes: int | None = None
        """Likewise."""
        self.ends_at = inf
        """The monotonic instant at which the time of this run is up."""
        self._agents = agents
        self._turns = turns or PlaceTurns(0.0)
        self._rates = {name: RateShares(agents) for name in LENT}

    def __repr__(self) -> str:
        return f"<Lending to {', '.join(self._agents)}>"

    def begin_with(self, news: Iterable[AgentNews]) -> None:
        """Begin with agents that are at work, as they have told: with the turns that another supervisor has lent them."""
        found, now = list(news), time.monotonic()
        held = {one.report.agent: one.turns_held for one in found}
        highest = max((number for one in found for number, _ in one.turns_back.values()), default=0)
        self._turns.take_over(held, highest, now)
        self._hear_turns(found, now)

    def reached(self, news: Iterable[AgentNews]) -> str:
        """The limit that the crawl has reached, by its setting's name; empty where there is none.

        Agents that do not answer count as they stood.
        """
        for one in news:
            if one.limit in _FOR_ALL:
                return one.limit
        known = [agent.news for agent in self._agents.values() if agent.news is not None]
        if self.max_pages is not None and sum(one.pages for one in known) >= self.max_pages:
            return "max_pages"
        if self.max_bytes is not None and sum(one.bytes for one in known) >= self.max_bytes:
            return "max_bytes"
        return "max_time" if time.monotonic() >= self.ends_at else ""

    async def lend_turns(self, news: Iterable[AgentNews]) -> None:
        """Let agents ask addresses one after the other."""
        now = time.monotonic()
        self._hear_turns(news, now)
        for name, told in self._turns.decide(now).items():
            # One that is late is told later: it is decided again when it says that it wants a turn, or has one.
            if not self._agents[name].is_late:
                await self._tell(name, LendTurns(told.granted, told.recalled, told.noted))

    def _hear_turns(self, news: Iterable[AgentNews], now: float) -> None:
        for one in news:
            self._turns.hear(one.report.agent, one.report.life, one.wants_turns, one.turns_back, now)

    async def lend_rates(self, news: Iterable[AgentNews]) -> None:
        """Let agents that have more to do use what others leave of the rates of the whole crawl."""
        now = time.monotonic()
        for one in news:
            for rate, use in one.rates.items():
                self._rates[rate].hear(one.report.agent, use, now)
        told: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for rate, shares in self._rates.items():
            for name, share in shares.decide().items():
                told[name][rate] = share
        for name, lent_to_it in told.items():
            # One that is late keeps what it has, and says so when it answers.
            if not self._agents[name].is_late:
                await self._tell(name, LendRates(lent_to_it))

    async def lend_limits(self, news: Sequence[AgentNews]) -> None:
        """Divide what is left of pages and bytes; not while an agent is silent that may use what it was lent."""
        if {one.report.agent for one in news} != self._agents.keys():
            return
        told: defaultdict[str, dict[str, int]] = defaultdict(dict)
        if self.max_pages is not None:
            pages = [Borrower(n.report.agent, n.pages + n.in_flight, n.share or 0, n.wants_pages) for n in news]
            for name, share in lent(self.max_pages, pages).items():
                told[name]["page_share"] = share
        if self.max_bytes is not None:
            size = [Borrower(n.report.agent, n.bytes, n.byte_share or 0, n.wants_bytes) for n in news]
            for name, share in lent(self.max_bytes, size, LEAST_BYTES).items():
                told[name]["byte_share"] = share
        for name, shares in told.items():
            await self._tell(name, SetAgent("frontier", shares))

    async def _tell(self, name: str, request: ControlRequest) -> None:
        with contextlib.suppress(AgentSilent, AgentRefused):
            await self._agents[name].line.do(request)
