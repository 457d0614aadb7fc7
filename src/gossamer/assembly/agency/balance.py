"""When an agent that has little to do should get domains of one that is busy: a rule that is told how loaded each agent is.

Place in the flow: the supervising process asks it once a second (:mod:`joining`). The rule is pure. It answers with capacities: by
the ring, an agent has as much of the web as its capacity says, so that domains move to an agent whose capacity has grown, and
nobody else has to be told whose they are.

Hashing gives each agent about as many domains as the others. It cannot know how large they are: among 400 hosts whose sizes follow
a power law, one of two agents got a quarter more pages than the other (docs/benchmarks.md). So one of them runs out of work, and
its core stays unused until the crawl ends.
"""

import math
from collections.abc import Mapping

from gossamer.assembly.growth import BUSY, EACH, WORTH, Load, RestSpacing

#: The share of a core below which an agent has room for domains of others: it has half its core left, or more.
IDLE = 0.5

#: Seconds for which one agent must be idle beside a busy one. What they tell is a mean of ten seconds already.
LASTING = 5.0

#: The least capacity: an agent has some fifty points on the ring then, and its share strays by a seventh.
LEAST = 0.05

#: Digits of a capacity behind the point, as :func:`~gossamer.model.agents.member` reads them.
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
