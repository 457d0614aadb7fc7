"""Divides among the agents of a crawl what they have together, and tells them what changes: pages, bytes, time, turns at
addresses, rates, settings and pauses.

Place in the flow: the supervisor brings the news of each round here. The rules are pure: those of turns stand first, and
:mod:`shares` has those of pages, bytes and rates. Nothing of this must outlive the supervisor: the next one hears from agents
at work what they have. A message that an agent does not take is no failure: its share is decided again by what it says next,
and a change of settings that it did not hear comes with its next answer, without beginning again.
"""

import contextlib
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any

import msgspec

from gossamer.agents.masters import SHARED_SETTINGS
from gossamer.agents.process import part_of
from gossamer.agents.run import AgentNews
from gossamer.agents.shares import LEAST_BYTES, LENT, Borrower, RateShares, lent
from gossamer.agents.supervised import AgentProcess, MasterProcess, SupervisedProcess
from gossamer.agents.supervision import LendRates, LendTurns, SetAgent
from gossamer.agents.wiring import shares_domains
from gossamer.crawls.control.messages import Continue, Pause
from gossamer.crawls.control.server import AgentSilent
from gossamer.crawls.control.wire import ControlRequest, RequestRefused
from gossamer.engine.graph import Graph
from gossamer.frontier.politeness.provider import DOMAIN_MARK
from gossamer.frontier.politeness.rules import PolitenessSheet, rules_of

# Turns at addresses and registered domains where several agents have hosts: one agent at a time may ask there. Pure.
#
# The supervisor tells after each round which places agents want and which they give back, and passes on what is decided. A place is
# an address; where a crawl divides the hosts of a registered domain, that domain is one too. An agent asks at a place only while
# it has the turn, by its own rules; it gives the turn back when it is told to, as soon as nothing is in flight there, with the
# seconds that the next request has to wait. So limits of a place hold for all agents together. Nothing is kept: an agent that
# dies loses its turns, and a supervisor that takes over agents at work asks them which they have.

#: Seconds after which an agent is told to give an address back that another one wants. A shorter turn costs each of them more
#: rounds in which no agent asks, a longer one lets hosts wait.
TURN = 2.0

#: The same for an address in a crawl where agents also take turns at domains. An agent wants the address only while it has the
#: domain, so the address has to follow quickly: with turns of one length, two agents could swap domain and address for ever.
SHORT_TURN = 0.5


class Lent(msgspec.Struct):
    """The news for one agent."""

    granted: dict[str, tuple[int, float]] = {}
    """Place -> number of the turn, and the seconds that it has to wait."""
    recalled: list[str] = []
    noted: dict[str, int] = {}
    """Places that it has given back, with the numbers of the turns."""


class _Place(msgspec.Struct):
    """One place that is lent, or waited for."""

    agent: str = ""
    number: int = 0
    begun: float = 0.0
    is_recalled: bool = False
    open_at: float = 0.0
    queue: deque[str] = msgspec.field(default_factory=deque)


class PlaceTurns:
    """The turns of all places."""

    def __init__(self, gap: float, *, has_domains: bool = False) -> None:
        """No agent has a turn. A place is left alone for `gap` seconds between two requests; `has_domains` says that agents take
        turns at domains, too."""
        self._has_domains = has_domains
        self._gap = gap
        self._places: dict[str, _Place] = {}
        self._lives: dict[str, str] = {}
        self._told: defaultdict[str, Lent] = defaultdict(Lent)
        self._number = 0
        self._opens = -inf

    def __repr__(self) -> str:
        return f"<PlaceTurns of {len(self._places)} places>"

    def take_over(self, held: Mapping[str, Mapping[str, int]], highest: int, now: float) -> None:
        """Agents are at work already: another supervisor has lent them turns, also to agents that have died since. `held` has the
        numbers of turns, by agent and place; none had a higher number than `highest`, as far as it matters."""
        self._opens = now + self._gap
        self._number = max((highest, *(number for turns in held.values() for number in turns.values())))
        for agent, turns in held.items():
            for name, number in turns.items():
                self._places[name] = _Place(agent, number, now)

    def hear(
        self, agent: str, life: str, wants: Iterable[str], back: Mapping[str, tuple[int, float]], now: float
    ) -> None:
        """The word of an agent.

        Args:
            life: differs for each process of it: one that came back has no turns.
            wants: places that it would ask.
            back: place -> number of the turn that it has ended, and the seconds that the next request has to wait.
        """
        if self._lives.get(agent, life) != life:
            for name in [name for name, one in self._places.items() if one.agent == agent]:
                self._free(name, now + self._gap)
        self._lives[agent] = life
        told = self._told[agent]
        for name, (number, wait) in back.items():
            told.noted[name] = number
            known = self._places.get(name)
            if known is not None and (known.agent, known.number) == (agent, number):
                self._free(name, now + wait)
        for name in wants:
            known = self._places.get(name)
            if known is None:
                known = self._places[name] = _Place(open_at=self._opens)
            if known.agent == agent and not known.is_recalled:
                told.granted[name] = known.number, max(0.0, known.open_at - now)
            elif known.agent != agent and agent not in known.queue:
                known.queue.append(agent)

    def decide(self, now: float) -> dict[str, Lent]:
        """The news, by agent; the same again where it was not heard."""
        for name, one in list(self._places.items()):
            turn = SHORT_TURN if self._has_domains and not name.startswith(DOMAIN_MARK) else TURN
            if one.agent and one.queue and (one.is_recalled or now - one.begun >= turn):
                one.is_recalled = True
                self._told[one.agent].recalled.append(name)
            elif not one.agent and one.queue:
                self._number += 1
                one.agent, one.number, one.begun, one.is_recalled = one.queue.popleft(), self._number, now, False
                self._told[one.agent].granted[name] = one.number, max(0.0, one.open_at - now)
            elif not one.agent and one.open_at <= now:
                del self._places[name]
        told_now, self._told = self._told, defaultdict(Lent)
        return {agent: lent for agent, lent in told_now.items() if lent.granted or lent.recalled or lent.noted}

    def _free(self, name: str, open_at: float) -> None:
        one = self._places[name]
        one.agent, one.is_recalled, one.open_at = "", False, open_at


def place_turns(graph: Graph) -> PlaceTurns:
    """The turns of this crawl's agents at the places where several of them have hosts. No agent has one."""
    node = graph.providers.get("politeness")
    if node is None or not isinstance(node.sheet, PolitenessSheet):
        return PlaceTurns(0.0)
    rules = rules_of(node.sheet)
    if node.sheet.host_turns:
        gap = rules.pace.floor if rules.pace.delay is None else rules.pace.delay
        return PlaceTurns(max(gap, rules.address.gap, rules.domain.gap), has_domains=True)
    if shares_domains(graph.wiring):
        return PlaceTurns(max(rules.address.gap, rules.domain.gap), has_domains=True)
    return PlaceTurns(rules.address.gap)


#: Limits that an agent reaches for all of them: the others need not go on to the same place.
_FOR_ALL = frozenset({"until", "max_time", "total_time", "min_free_disk"})


class Lending:
    """Limits, turns and rates of one crawl of several agents."""

    def __init__(self, agents: Mapping[str, AgentProcess], turns: PlaceTurns | None = None) -> None:
        """Nothing is lent yet. `turns` says who may ask at a place where several agents have hosts."""
        self.max_pages: int | None = None
        """The limit of the whole crawl, which is lent to agents."""
        self.max_bytes: int | None = None
        """Likewise."""
        self.ends_at = inf
        """The monotonic instant at which the time of this run is up."""
        self._agents = agents
        self._turns = turns or PlaceTurns(0.0)
        self._rates = {name: RateShares(agents) for name in LENT}

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
        with contextlib.suppress(AgentSilent, RequestRefused):
            await self._agents[name].line.do(request)


class GivenSettings:
    """Remembers the settings that were changed in the life of one supervisor."""

    def __init__(self, agents: int) -> None:
        self.edition = 0
        """Of the settings as they stand: how often they were changed."""
        self._agents = agents
        self._known: dict[tuple[str, str], tuple[int, Any]] = {}

    def note(self, unit: str, settings: Mapping[str, Any]) -> Callable[[], None]:
        """These settings of a unit have these values from now on; returns what takes that back for those who have not heard it."""
        self.edition += 1
        before = dict(self._known)
        for name, value in settings.items():
            self._known[unit, name] = self.edition, value

        def take_back() -> None:
            self._known = before

        return take_back

    def unheard(self, index: int | None, since: int) -> dict[str, dict[str, Any]]:
        """Return the settings, by unit, that a process has not heard which knows the edition `since`: the agent of this index, or a
        master where there is none. A master has few of them, under names of its own."""
        found: dict[str, dict[str, Any]] = {}
        for (unit, name), (changed, value) in self._known.items():
            if changed <= since:
                continue
            if index is not None:
                found.setdefault(unit, {})[name] = part_of(unit, name, value, self._agents, index)
            elif (own := SHARED_SETTINGS.get((unit, name))) is not None:
                found.setdefault(own[0], {})[own[1]] = value
        return found


class Giving:
    """Tells agents and masters the settings and pauses that they have not heard."""

    def __init__(self, agents: Mapping[str, AgentProcess], masters: Mapping[str, MasterProcess]) -> None:
        self._agents, self._masters = agents, masters
        self._given = GivenSettings(len(agents))

    async def give(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a unit in all agents; one that does not answer is told when it does. Raises RequestRefused: one does
        not take them; those before it have them."""
        given = dict(settings)
        for limit, share in (("max_pages", "page_share"), ("max_bytes", "byte_share")):
            if unit == "frontier" and limit in given:
                # Shares are lent anew: each was a part of another number.
                given[share] = None if given[limit] is None else 0
        take_back = self._given.note(unit, given)
        try:
            everybody: list[SupervisedProcess] = [*self._agents.values(), *self._masters.values()]
            for one in [one for one in everybody if not one.is_late]:
                with contextlib.suppress(AgentSilent):
                    await self._give_missed(one)
        except RequestRefused:
            take_back()
            raise

    async def catch_up(self, name: str, *, is_held: bool) -> str:
        """Tell one that answers what others were told while it was away; returns why it refused that, empty where it did
        not."""
        one: SupervisedProcess = self._agents.get(name) or self._masters[name]
        edition = self._given.edition
        try:
            if name in self._agents and one.is_held != is_held:
                await one.line.do(Pause() if is_held else Continue())
                one.is_held = is_held
            await self._give_missed(one)
        except AgentSilent:
            pass
        except RequestRefused as error:
            one.edition = edition
            return str(error)
        return ""

    async def _give_missed(self, one: SupervisedProcess) -> None:
        edition = self._given.edition
        if one.edition == edition:
            return
        index = list(self._agents).index(one.name) if one.name in self._agents else None
        for unit, settings in self._given.unheard(index, one.edition).items():
            await one.line.do(SetAgent(unit, settings))
        one.edition = edition
