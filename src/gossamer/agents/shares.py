"""The common state of the agents of a crawl, as plain rules: when the crawl has ended, and which agent may use which part of
pages, bytes and rates.

Place in the flow: the supervisor asks after each round of reports, and tells each agent its new share (:mod:`lending`). It keeps
nothing: one that begins to ask anew, after a kill, hears from each agent what it has, and comes to the same end.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from gossamer.crawls.figures import UnitsAtWork
from gossamer.fetcher.http import HttpModule
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.whole_crawl import RateUse
from gossamer.values.errors import DiskFull

# The end of a crawl of several agents: all of them are at rest at one instant, and nothing is on its way between two.
#
# The decision needs no clock and no order of messages. A URL stays owed at its sender until the other agent has committed it, so
# where no agent owes anything, nothing is on its way. An agent that is at rest begins to work again only by committing what came
# in. So if every agent was at rest in two rounds of questions, one after the other, and has committed nothing in between, then
# all were at rest together when the second round began, and nothing will ever wake them.


class AgentReport(msgspec.Struct, frozen=True):
    """The report of one agent."""

    agent: str
    life: str
    """Differs for each process of the agent: one that came back has forgotten what it was doing."""
    commits: int
    """Groups that its ledger has kept in this life."""
    is_at_rest: bool
    """It has nothing to do until others bring something, and owes nothing."""


class Quiescence:
    """Hears rounds of reports, and says when all is over."""

    def __init__(self, agents: Collection[str]) -> None:
        self._agents = frozenset(agents)
        self._before: frozenset[AgentReport] = frozenset()

    def is_over(self, reports: Sequence[AgentReport]) -> bool:
        """Whether the crawl has ended, by this round and the one before: one report of each agent that answered, all asked for
        after the reports of the round before had come."""
        now = frozenset(one for one in reports if one.is_at_rest)
        before, self._before = self._before, now
        return now == before and {one.agent for one in now} == self._agents


# Pages of `--max-pages`, lent so that all agents together never take one more. A share counts pages of the whole life of the
# crawl, so that what an agent has used of it is never asked for back. An agent that comes back has no share until it is lent one.
# The pool is what no agent may use: an agent counts with the most that it may have been told until it says itself that it has
# less.
#
# The bytes of `--max-bytes` are lent in the same way. The size of answers in flight is not known: an agent passes its share with
# the last pages that it takes, as a crawl of one agent passes the limit.

#: The least that is lent of bytes: some pages. Smaller parts of the last bytes cost a round each.
LEAST_BYTES = 64 << 10


class Borrower(msgspec.Struct, frozen=True):
    agent: str
    used: int
    """Pages that it has, and requests in flight that may become pages; or bytes."""
    share: int
    """The most that it may have."""
    wants: bool
    """It has work, and will have used up its share soon."""

    @property
    def bound(self) -> int:
        """The most that it may come to."""
        return max(self.used, self.share)


def lent(limit: int, borrowers: Sequence[Borrower], least: int = 1) -> Mapping[str, int]:
    """The shares that are to change, by agent; those that become less are to be told, and confirmed, first.

    Half of the pool goes out at a time, in equal parts of `least` or more, so that something is left for an agent that finds work
    later. When the pool is empty, agents that want nothing give back what they have not used.
    """
    wanting = [one for one in borrowers if one.wants]
    if not wanting:
        return {}
    pool = limit - sum(one.bound for one in borrowers)
    if pool <= 0:
        return {one.agent: one.used for one in borrowers if not one.wants and one.share > one.used}
    part = max(least, pool // (2 * len(wanting)))
    parts = [min(part, pool - index * part) for index in range(len(wanting))]
    return {one.agent: one.bound + size for one, size in zip(wanting, parts, strict=True) if size > 0}


# Rates of the whole crawl, `--rate` or `--bandwidth`. A share is a multiple of the even part, so that all shares of a rate
# together are never more than there are agents, whatever the rate is set to. An agent that uses less than it may gives up what it
# leaves; those that use all of theirs get it, in equal parts. A share becomes more only when the agents that have less have
# confirmed it; one that is silent counts with the most that it may have. Each agent keeps its share in its ledger (:mod:`run`),
# and goes by it without a supervisor, or after a death.

#: Seconds over which the use of a rate is measured: long enough that one large answer is not taken for a change of work.
WINDOW = 2.0

#: Units of an even part that a measurement has to be long enough for: of fewer requests one more or less would decide.
ENOUGH = 8.0

#: An agent that uses this part of its share is short of it. A measurement may miss one of eight units.
SHORT = 0.85

#: An agent that is not short keeps a share of which its use is this part: less than above, so that it is not short again at once.
LOOSE = 0.7

#: The least share: an agent that finds work has so much at once, and is short of it within one measurement.
LEAST = 0.1

#: Shares change by more than this part of an even one, or not at all: every change is a message and a write.
_STEP = 0.05


class _Agent(msgspec.Struct):
    """The state of one agent and one rate."""

    bound: float
    """The most that it may go by."""
    told: float
    target: float
    since: float
    """When the measurement began, in monotonic seconds."""
    used_then: float
    use: float | None = None
    """Of its even part, as measured last; None while it is not known."""
    is_fresh: bool = False
    """It was measured since shares were decided last."""


class RateShares:
    """The shares of one rate."""

    def __init__(self, agents: Iterable[str]) -> None:
        self._names = tuple(agents)
        self._agents: dict[str, _Agent] = {}

    def hear(self, name: str, use: RateUse, now: float) -> None:
        """An agent says what it has used."""
        one = self._agents.get(name)
        if one is None:
            self._agents[name] = _Agent(use.share, use.share, use.share, now, use.used)
            return
        one.bound = max(use.share, one.told)
        seconds = now - one.since
        if use.used < one.used_then:
            one.since, one.used_then, one.use = now, use.used, None  # it is another life
        elif seconds >= max(WINDOW, ENOUGH / use.part):
            one.use = (use.used - one.used_then) / seconds / use.part
            one.since, one.used_then, one.is_fresh = now, use.used, True

    def decide(self) -> Mapping[str, float]:
        """The shares that agents are to be told now."""
        known = self._agents
        if len(self._names) < 2 or known.keys() != set(self._names):
            return {}
        agents = [known[name] for name in self._names]
        have = sum(one.bound for one in agents)
        if have > len(agents) + _STEP:
            # An agent has lost its ledger, or has come back to the crawl: its share was lent to others meanwhile.
            for one in agents:
                one.target = one.bound * len(agents) / have
        elif all(one.is_fresh for one in agents):
            whole = float(len(agents))
            wants = [
                whole if one.use is None or one.use >= SHORT * one.bound else max(LEAST, one.use / LOOSE)
                for one in agents
            ]
            # As before where none is short.
            targets = divided(whole, wants) if max(wants) >= whole else [one.target for one in agents]
            for one, target in zip(agents, targets, strict=True):
                one.target, one.is_fresh = target, False
        told: dict[str, float] = {}
        for name, one in known.items():
            if one.target < one.bound - _STEP:
                told[name] = one.told = one.target
        room = len(self._names) - sum(one.bound for one in known.values())
        for name, one in known.items():
            if name not in told and room > _STEP and one.target > one.bound + _STEP:
                one.told = told[name] = min(one.target, one.bound + room)
                room -= one.told - one.bound
                one.bound = one.told
        return told


def divided(whole: float, wants: Sequence[float]) -> list[float]:
    """Divide `whole` so that none gets more than it wants, and none less than another that wants no less."""
    left, parts = whole, [0.0] * len(wants)
    order = sorted(range(len(wants)), key=wants.__getitem__)
    for place, index in enumerate(order):
        parts[index] = min(wants[index], left / (len(order) - place))
        left -= parts[index]
    return parts


# The shares of `--rate` and `--bandwidth` that an agent is lent (:mod:`shares`). They lie in its ledger, and outlive supervisor and
# agent: an agent that came back with an even part would use what others have been lent meanwhile.

#: The rates that are lent, by their settings' names.
RATE = "rate"
BANDWIDTH = "bandwidth"
LENT = (RATE, BANDWIDTH)

#: Under this name an agent's ledger keeps its shares.
_NAME = "rate-shares"


class KeptShares(msgspec.Struct, frozen=True):
    """Shares as an agent keeps them."""

    among: tuple[str, ...]
    """The agents that they were divided among: other ones begin with even parts."""
    shares: dict[str, float]
    """Rate -> multiple of the even part."""


class LentRates:
    """The share that one agent is lent."""

    def __init__(self, units: UnitsAtWork, among: Sequence[str]) -> None:
        """`among` are the agents of the crawl that work."""
        self._units = units
        self._among = tuple(among)
        self._shares = dict.fromkeys(LENT, 1.0)

    def begin(self) -> None:
        """Go by the shares that the ledger has, if they are of the same agents."""
        kept = self._units.ledger.meta(_NAME)
        if not kept:
            return
        known = msgspec.json.decode(kept, type=KeptShares)
        if known.among == self._among:
            self._give(known.shares)

    def take(self, shares: Mapping[str, float]) -> None:
        """Go by these from now on. Nothing changes while the disk is full: the supervisor hears that, and counts with what is."""
        after = {**self._shares, **{name: share for name, share in shares.items() if name in LENT}}
        try:
            self._units.ledger.put_meta(_NAME, msgspec.json.encode(KeptShares(self._among, after)))
        except DiskFull:
            return
        self._give(after)

    def uses(self) -> dict[str, RateUse]:
        """The use of each rate that the crawl has."""
        for polite in self._units.providers(HostPoliteness):
            pages, size = polite.rates()
            if size is not None:
                # A large body is paid for when it is there, and comes in long before, so the greater count is the newer one.
                coming = sum(http.bytes_taken for http in self._units.providers(HttpModule))
                size = msgspec.structs.replace(size, used=max(size.used, coming))
            return {name: use for name, use in zip(LENT, (pages, size), strict=True) if use is not None}
        return {}

    def _give(self, shares: Mapping[str, float]) -> None:
        self._shares = {**self._shares, **shares}
        for polite in self._units.providers(HostPoliteness):
            polite.take_rates(self._shares[RATE], self._shares[BANDWIDTH])
        for http in self._units.providers(HttpModule):
            http.take_bandwidth(self._shares[BANDWIDTH])
        self._units.frontier.signal("tasks")
