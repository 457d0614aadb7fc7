"""Who may ask an address, or a registered domain: one agent at a time, in turns, where several have hosts there. Pure.

Place in the flow: the supervisor tells after each round which places agents want and which they give back, and passes on what is
decided. A place is an address; where a crawl divides the hosts of a registered domain, that domain is one too. An agent asks at a
place only while it has the turn, by its own rules; it gives the turn back when it is told to, as soon as nothing is in flight
there, with the seconds that the next request has to wait. So limits of a place hold for all agents together. Nothing is kept: an
agent that dies loses its turns, and a supervisor that takes over agents at work asks them which they have.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from math import inf

import msgspec

from gossamer.frontier.politeness.provider import DOMAIN_MARK

#: Seconds after which an agent is told to give an address back that another one wants. A shorter turn costs each of them more
#: rounds in which nobody asks, a longer one lets hosts wait.
TURN = 2.0

#: The same for an address in a crawl where agents also take turns at domains. An agent wants the address only while it has the
#: domain, so the address has to follow quickly: with turns of one length, two agents could swap domain and address for ever.
SHORT_TURN = 0.5


class Lent(msgspec.Struct):
    """What one agent is to be told."""

    granted: dict[str, tuple[int, float]] = {}
    """Place -> number of the turn, and the seconds that it has to wait."""
    recalled: list[str] = []
    noted: dict[str, int] = {}
    """Places that it has given back, with the numbers of the turns."""

    @property
    def is_empty(self) -> bool:
        """There is nothing to tell."""
        return not (self.granted or self.recalled or self.noted)


class _Place:
    """One place that is lent, or waited for."""

    __slots__ = ("agent", "begun", "is_recalled", "number", "open_at", "queue")

    def __init__(self) -> None:
        self.agent = ""
        self.number = 0
        self.begun = 0.0
        self.is_recalled = False
        self.open_at = 0.0
        self.queue: deque[str] = deque()


class PlaceTurns:
    """The turns of all places."""

    def __init__(self, gap: float, *, has_domains: bool = False) -> None:
        """Nobody has a turn.

        Args:
            gap: seconds that a place is left alone between two requests.
            has_domains: agents take turns at domains, too.
        """
        self._has_domains = has_domains
        self._gap = gap
        self._places: dict[str, _Place] = {}
        self._lives: dict[str, str] = {}
        self._told: dict[str, Lent] = {}
        self._number = 0
        self._opens = -inf

    def __repr__(self) -> str:
        return f"<PlaceTurns of {len(self._places)} places>"

    def take_over(self, held: Mapping[str, Mapping[str, int]], highest: int, now: float) -> None:
        """Agents are at work already: another supervisor has lent them turns, also to agents that have died since.

        Args:
            held: agent -> place -> number of the turn.
            highest: no turn of the other supervisor had a higher number, as far as it matters.
            now: monotonic seconds.
        """
        self._opens = now + self._gap
        self._number = max((highest, *(number for turns in held.values() for number in turns.values())))
        for agent, turns in held.items():
            for name, number in turns.items():
                one = self._places[name] = _Place()
                one.agent, one.number, one.begun = agent, number, now

    def hear(
        self, agent: str, life: str, wants: Iterable[str], back: Mapping[str, tuple[int, float]], now: float
    ) -> None:
        """What an agent says.

        Args:
            agent: its name.
            life: differs for each process of it: one that came back has no turns.
            wants: places that it would ask.
            back: place -> number of the turn that it has ended, and the seconds that the next request has to wait.
            now: monotonic seconds.
        """
        if self._lives.get(agent, life) != life:
            for name in [name for name, one in self._places.items() if one.agent == agent]:
                self._free(name, now + self._gap)
        self._lives[agent] = life
        told = self._told.setdefault(agent, Lent({}, [], {}))
        for name, (number, wait) in back.items():
            told.noted[name] = number
            known = self._places.get(name)
            if known is not None and (known.agent, known.number) == (agent, number):
                self._free(name, now + wait)
        for name in wants:
            known = self._places.get(name)
            if known is None:
                known = self._places[name] = _Place()
                known.open_at = self._opens
            if known.agent == agent and not known.is_recalled:
                told.granted[name] = known.number, max(0.0, known.open_at - now)
            elif known.agent != agent and agent not in known.queue:
                known.queue.append(agent)

    def decide(self, now: float) -> dict[str, Lent]:
        """What is to be told, by agent; the same again where it was not heard."""
        for name, one in list(self._places.items()):
            if one.agent and one.queue and (one.is_recalled or now - one.begun >= self._turn(name)):
                one.is_recalled = True
                self._told.setdefault(one.agent, Lent({}, [], {})).recalled.append(name)
            elif not one.agent and one.queue:
                self._number += 1
                one.agent, one.number, one.begun, one.is_recalled = one.queue.popleft(), self._number, now, False
                told = self._told.setdefault(one.agent, Lent({}, [], {}))
                told.granted[name] = one.number, max(0.0, one.open_at - now)
            elif not one.agent and one.open_at <= now:
                del self._places[name]
        told_now, self._told = self._told, {}
        return {agent: lent for agent, lent in told_now.items() if not lent.is_empty}

    def _turn(self, name: str) -> float:
        return SHORT_TURN if self._has_domains and not name.startswith(DOMAIN_MARK) else TURN

    def _free(self, name: str, open_at: float) -> None:
        one = self._places[name]
        one.agent, one.is_recalled, one.open_at = "", False, open_at
