"""How much of a rate of the whole crawl, `--rate` or `--bandwidth`, each agent may use. Pure.

Place in the flow: the supervisor tells after each round what agents have used, and passes on what is decided. A share is a multiple
of the even part, so that all shares of a rate together are never more than there are agents, whatever the rate is set to. An agent
that uses less than it may gives up what it leaves; those that use all of theirs get it, in equal parts. A share becomes more only
when the agents that have less have confirmed it; one that is silent counts with the most that it may have.

Each agent keeps its share in its ledger (:mod:`gossamer.assembly.agency.lent_rates`). Without a supervisor, or after a death, it
goes by that one.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gossamer.services.politeness.whole_crawl import RateUse

#: Seconds over which the use of a rate is measured: long enough that one large answer is not taken for a change of work.
WINDOW = 2.0

#: Units of an even part that a measurement has to be long enough for: of fewer requests one more or less would decide.
ENOUGH = 8.0

#: An agent that uses this part of its share is short of it. A measurement may miss one of eight units.
SHORT = 0.85

#: Who is not short keeps a share of which its use is this part: less than above, so that it does not become short of it at once.
LOOSE = 0.7

#: The least share: an agent that finds work has so much at once, and is short of it within one measurement.
LEAST = 0.1

#: Shares change by more than this part of an even one, or not at all: every change is a message and a write.
_STEP = 0.05


class _Agent(msgspec.Struct):
    """What is known of one agent and one rate."""

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
        """Nobody has been heard of yet."""
        self._names = tuple(agents)
        self._agents: dict[str, _Agent] = {}

    def __repr__(self) -> str:
        return f"<RateShares { ({name: one.bound for name, one in self._agents.items()}) }>"

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
            # An agent has lost its ledger, or has come back to the crawl: what it has was lent to others meanwhile.
            for one in agents:
                one.target = one.bound * len(agents) / have
        elif all(one.is_fresh for one in agents):
            _aim(agents)
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


def _aim(agents: Sequence[_Agent]) -> None:
    """Say what each is to have, by what it has used; as before where nobody is short."""
    whole = float(len(agents))
    wants = [_wanted(one, whole) for one in agents]
    targets = divided(whole, wants) if max(wants) >= whole else [one.target for one in agents]
    for one, target in zip(agents, targets, strict=True):
        one.target, one.is_fresh = target, False


def _wanted(one: _Agent, whole: float) -> float:
    """What it could use of the whole; all of it where it is short."""
    if one.use is None or one.use >= SHORT * one.bound:
        return whole
    return max(LEAST, one.use / LOOSE)


def divided(whole: float, wants: Sequence[float]) -> list[float]:
    """Divide `whole` so that nobody gets more than it wants, and nobody less than another that wants no less."""
    left, parts = whole, [0.0] * len(wants)
    order = sorted(range(len(wants)), key=wants.__getitem__)
    for place, index in enumerate(order):
        parts[index] = min(wants[index], left / (len(order) - place))
        left -= parts[index]
    return parts
