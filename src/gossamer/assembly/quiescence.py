"""When a crawl of several agents has ended: all of them are at rest at one instant, and nothing is on its way between two.

Place in the flow: who watches the agents asks each of them, again and again, and tells here what they said. It decides nothing
that an agent has to keep: whoever begins to ask anew, after a kill, comes to the same end.

The decision needs no clock and no order of messages. A URL stays owed at its sender until the other agent has committed it, so
where nobody owes anything, nothing is on its way. An agent that is at rest begins to work again only by committing what came
in. So if every agent was at rest in two rounds of questions, one after the other, and has committed nothing in between,
then all were at rest together when the second round began, and nobody will ever wake them.
"""

from collections.abc import Collection, Sequence

import msgspec


class AgentReport(msgspec.Struct, frozen=True):
    """What one agent says of itself."""

    agent: str
    life: str
    """Differs for each process of the agent: one that came back has forgotten what it was doing."""
    commits: int
    """Groups that its ledger has kept in this life."""
    is_at_rest: bool
    """It has nothing to do until others bring something, and owes nobody anything."""


class Quiescence:
    """Hears rounds of reports, and says when all is over."""

    def __init__(self, agents: Collection[str]) -> None:
        self._agents = frozenset(agents)
        self._before: frozenset[AgentReport] = frozenset()

    def __repr__(self) -> str:
        return f"<Quiescence of {len(self._agents)} agents>"

    def is_over(self, reports: Sequence[AgentReport]) -> bool:
        """Whether the crawl has ended, by this round and the one before.

        Args:
            reports: one of each agent that answered, all asked for after the reports of the round before had come.
        """
        now = frozenset(one for one in reports if one.is_at_rest)
        before, self._before = self._before, now
        return now == before and {one.agent for one in now} == self._agents
