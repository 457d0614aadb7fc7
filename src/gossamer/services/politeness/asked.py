"""One host that was asked: its own delay and gap, the circuits of its name and endpoints, and when it is next.

Place in the flow: :mod:`gates` keeps one for each host and tells it what happens there.
"""

from collections.abc import Mapping, Sequence
from math import inf

import msgspec

from gossamer.model.outcome import Outcome
from gossamer.model.url import site_of
from gossamer.services.politeness import circuit, pace
from gossamer.services.politeness.circuit import Circuit
from gossamer.services.politeness.pace import FRESH, Pace, PaceRules
from gossamer.services.politeness.places import Place
from gossamer.services.politeness.rules import GateRules, live_of, pace_of

Circuits = Mapping[str, Circuit]

#: Refusals in a row after which a host is spent: by then our own back-off alone has made it wait for 21 minutes.
PATIENCE = 10


class AskedHost(Place):
    """One host that was asked, or is known: its pace, its circuits, and when it is next."""

    __slots__ = ("begun", "circuit", "circuits", "is_due", "last", "most", "pace", "prior", "rules")

    def __init__(self, host: str, rules: GateRules) -> None:
        self.most = live_of(host, rules)
        self.rules = pace_of(host, rules)
        super().__init__(self.most)
        self.pace = FRESH
        self.circuit: Circuit | None = None
        """Of its name: whether that has an address."""
        self.circuits: Circuits = {}
        """Of its endpoints, by scheme, name and port. Empty while none of them has failed; then also those that are well, as far
        as they are known. Never changed, only replaced: what was known before a failure may be restored."""
        self.last = -inf
        """From when the delay counts: the last end, or with several live requests the last start."""
        self.begun = -inf
        """When the last request began; earlier where the answer before it took longer than a gap, so that the gap is kept on
        average."""
        self.prior = (-inf, -inf)
        """`last` and `begun` before the live request began, in case that it turns out never to have gone out."""
        self.is_due = False
        """It was restored when its wait was over: this run owes it a try, whatever it was given before."""

    def closed_until(self) -> float:
        """When name and some endpoint of it may be asked again, as far as failures are concerned."""
        by_name = self.circuit.until if self.circuit is not None else 0.0
        return max(by_name, closed_until(self.circuits)) if self.circuits else by_name

    def start_of(self, now: float) -> float:
        """What counts as the start of a request that begins now."""
        gap = self.pace.gap
        if not gap:
            return now
        due = self.begun + gap
        late = self.last + pace.delay_of(self.pace, self.rules) - due
        return max(due, now - min(gap, late)) if late > 0.0 else now

    def opens(self) -> float:
        """When delay and gap are over."""
        opens, known = self.last + pace.delay_of(self.pace, self.rules), self.pace.control
        return opens if known is None else max(opens, self.begun + known.gap)

    def settle(self) -> None:
        """Work out when this host is next."""
        known, closed = self.pace, self.closed_until()
        opens = self.opens()
        if known.until > opens:
            opens = known.until
        if closed > opens:
            opens = closed
        self.next = opens
        is_probed = (self.circuit is not None and self.circuit.is_open) or (
            bool(self.circuits) and all(one.is_open for one in self.circuits.values())
        )
        self.limit = 1 if is_probed or known.is_alone else self.most

    def hold(self, endpoint: str, until: float) -> None:
        """Do not ask this endpoint before that instant."""
        before = self.circuits.get(endpoint) or Circuit()
        held = msgspec.structs.replace(before, strikes=max(1, before.strikes), until=max(before.until, until))
        self.circuits = {**self.circuits, endpoint: held}
        self.settle()

    def closed_for(self, url: str, now: float) -> float:
        """Seconds for which the endpoint of this URL is not asked because it did not answer; 0 where it may be."""
        broken = self.circuits.get(site_of(url)) if self.circuits else None
        return 0.0 if broken is None else max(0.0, broken.until - now)

    def retry_wait(self, now: float) -> float:
        """Seconds that a failure, a refusal or a robots.txt out of reach keeps this host waiting; 0 where only its delay does."""
        return 0.0 if self.live else max(0.0, self.pace.until - now, self.closed_until() - now)

    def is_spent(self, waits: Sequence[float]) -> bool:
        """Whether a crawl need not stay alive for this host: it was given its chances, and in this run one if it was due."""
        if self.is_due:
            return False
        circuits = self.circuits.values()
        return (
            (self.circuit is not None and self.circuit.is_spent(waits))
            or (bool(circuits) and all(one.is_spent(waits) for one in circuits))
            or self.pace.refusals >= PATIENCE
        )

    def judge_endpoint(self, endpoint: str, outcome: Outcome, now: float, rules: GateRules) -> None:
        """Liveness belongs to the endpoint: another port of the same host may be well (design question 31)."""
        known = circuit.after(self.circuits.get(endpoint), outcome, now, rules.waits, rules.strikes) or Circuit()
        circuits = {**self.circuits, endpoint: known}
        self.circuits = circuits if any(one.strikes for one in circuits.values()) else {}


def closed_until(circuits: Circuits) -> float:
    return min((one.until for one in circuits.values()), default=0.0)


def longest(known: Pace, rules: PaceRules) -> float:
    """Seconds that this host may have to be left alone after an end, refusals and circuits apart."""
    return max(pace.delay_of(known, rules), known.gap)
