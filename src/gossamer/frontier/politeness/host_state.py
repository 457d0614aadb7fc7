"""One host that was asked: its own delay and gap, the circuits of its name and endpoints, when it is next, and the note that
outlives the process.

Place in the flow: :mod:`gates` keeps one for each host and tells it what happens there. `status` and progress show why a host
waits (:func:`why_held`). The committer keeps notes in the ledger beside the host's queue, so that a restart or a hand-over knocks
no earlier.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from math import inf
from typing import TypeVar

import msgspec

from gossamer.frontier.politeness import pace
from gossamer.frontier.politeness.pace import FRESH, Pace, PaceRules
from gossamer.frontier.politeness.rate_slots import Place
from gossamer.frontier.politeness.retries import Circuit, circuit_after
from gossamer.frontier.politeness.rules import GateRules, live_of, pace_of
from gossamer.values.outcome import Outcome
from gossamer.values.url import site_of


class HeldBy(StrEnum):
    """The reason why a host waits for longer than its usual delay."""

    DNS_FAILED = "dns_failed"
    """Its name has no address."""
    UNREACHABLE = "unreachable"
    """It did not answer, and is only probed."""
    REFUSALS = "refusals"
    """It said that it is asked too often."""
    ROBOTS_UNREACHABLE = "robots_unreachable"
    """Its robots.txt is out of reach."""


#: A rule's own hold of a host: until when it rests, and the rule's word for why.
Rest = tuple[float, str]

NO_REST: Rest = (0.0, "")


class Held(msgspec.Struct, frozen=True):
    """A host that waits."""

    host: str
    seconds: float
    """For how long, if nothing changes."""
    why: str
    """A word of :class:`HeldBy` or of a further rule; for its usual delay, one of the reasons of the pace."""


def why_held(
    pace: Pace, name: Circuit | None, endpoints: Mapping[str, Circuit], now: float, rest: Rest = NO_REST
) -> tuple[str | None, float]:
    """Why a host waits, and until when; None where nothing but its usual delay is against a request.

    Args:
        pace: what its answers have taught.
        name: the circuit of its name.
        endpoints: those of its endpoints.
        now: on the clock of the circuits and of the pace.
        rest: what a further rule says of it.
    """
    if name is not None and name.until > now:
        return HeldBy.DNS_FAILED, name.until
    first = min(endpoints.values(), key=lambda one: one.until, default=None)
    if first is not None and first.until > now:
        # An endpoint that is held without a failure has a robots.txt that is out of reach.
        return HeldBy.UNREACHABLE if first.is_open else HeldBy.ROBOTS_UNREACHABLE, first.until
    if pace.until > now:
        # A name that is not found while our own network seems down leaves no circuit.
        return HeldBy.REFUSALS if pace.refusals else HeldBy.DNS_FAILED, pace.until
    if rest[0] > now:
        return rest[1], rest[0]
    return None, 0.0


# Monotonic clocks begin anew with the machine, and wall clocks jump. So a note holds how long there was still to *wait* when it
# was written, and of the wall clock only when that was: a clock set back makes no host wait longer than the note says, and one set
# forward shortens a wait by as much as it jumped, which no process can tell from time passed.


class HostNote(msgspec.Struct, frozen=True, gc=False):
    """One host, as the ledger keeps it."""

    written: float
    """Seconds since the epoch."""
    rest: float
    """Seconds of the usual delay that were still to wait; while a request was live, the whole delay."""
    pace: Pace
    """`until` is in seconds from `written`."""
    circuit: Circuit | None = None
    """Of its name; notes of earlier versions have that of the whole host here. `until` is in seconds from `written`."""
    circuits: dict[str, Circuit] = {}
    """Of its endpoints, likewise."""


def _shifted_pace(pace: Pace, by: float, not_before: float = 0.0) -> Pace:
    until = pace.until + by if pace.until else 0.0
    known = pace.control
    if known is not None:
        known = msgspec.structs.replace(known, last=known.last + by, since=known.since + by)
    # A crawl that stops and starts again is away for a while: that says nothing of the time between two answers.
    return msgspec.structs.replace(pace, until=until if until > not_before else 0.0, seen=0.0, control=known)


C = TypeVar("C", Circuit, Circuit | None)


def _shifted_circuit(circuit: C, by: float, not_before: float = 0.0) -> C:
    if circuit is None:
        return circuit
    if not circuit.until:
        return circuit
    # The instant of a probe that is due is kept, if only as "now": it is what tells a probe from a late failure.
    return msgspec.structs.replace(circuit, until=max(not_before, circuit.until + by))


Circuits = Mapping[str, Circuit]

#: Refusals in a row after which a host is spent: by then our own back-off alone has made it wait for 21 minutes.
PATIENCE = 10


class AskedHost(Place):
    """One host that was asked, or is known: its pace, its circuits, and when it is next."""

    __slots__ = ("begun", "circuit", "circuits", "is_due", "last", "most", "pace", "prior", "rest", "rules")

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
        """The start of the last request; earlier where the answer before it took longer than a gap, so that the gap is kept on
        average."""
        self.prior = (-inf, -inf)
        """`last` and `begun` before the live request began, in case that it turns out never to have gone out."""
        self.rest = NO_REST
        """The hold by a rule beside ours."""
        self.is_due = False
        """It was restored when its wait was over: this run owes it a try, whatever it was given before."""

    def closed_until(self) -> float:
        """The instant at which name and some endpoint may be asked again, as far as failures are concerned."""
        by_name = self.circuit.until if self.circuit is not None else 0.0
        return max(by_name, closed_until(self.circuits)) if self.circuits else by_name

    def start_of(self, now: float) -> float:
        """The instant that counts as the start of a request that begins now."""
        gap = self.pace.gap
        if not gap:
            return now
        due = self.begun + gap
        late = self.last + pace.delay_of(self.pace, self.rules) - due
        return max(due, now - min(gap, late)) if late > 0.0 else now

    def opens(self) -> float:
        """The instant at which delay and gap are over."""
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
        if self.rest[0] > opens:
            opens = self.rest[0]
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

    def is_closed(self, now: float) -> bool:
        """Whether this host waits because none of the endpoints that are known of it answers."""
        return bool(self.circuits) and closed_until(self.circuits) > now

    def meet(self, urls: Iterable[str]) -> None:
        """There are tasks for these URLs: endpoints that did not fail are no reason for them to wait."""
        if self.circuits:
            self.circuits = {**{site_of(url): Circuit() for url in urls}, **self.circuits}
            self.settle()

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
        """Liveness belongs to the endpoint: another port of the same host may be well."""
        known = circuit_after(self.circuits.get(endpoint), outcome, now, rules.waits, rules.strikes) or Circuit()
        circuits = {**self.circuits, endpoint: known}
        self.circuits = circuits if any(one.strikes for one in circuits.values()) else {}

    def note(self, now: float, wall: float) -> HostNote:
        """A note of this state, taken at monotonic `now` and wall time `wall`."""
        rest = longest(self.pace, self.rules) if self.live else self.opens() - now
        return HostNote(
            written=wall,
            rest=max(0.0, rest),
            pace=_shifted_pace(self.pace, -now),
            circuit=_shifted_circuit(self.circuit, -now),
            circuits={endpoint: _shifted_circuit(one, -now) for endpoint, one in self.circuits.items()},
        )

    def restore(self, note: HostNote, now: float, wall: float, *, clean: bool) -> None:
        """Go on from a note.

        Args:
            note: what :meth:`note` gave.
            now: monotonic seconds.
            wall: seconds since the epoch.
            clean: False after a kill: a request may have gone out after the note, so the host waits its whole delay.
        """
        passed = max(0.0, wall - note.written)
        by = now - passed
        self.pace = _shifted_pace(note.pace, by, not_before=now)
        self.circuit = _shifted_circuit(note.circuit, by, not_before=now)
        self.circuits = {name: _shifted_circuit(one, by, not_before=now) for name, one in note.circuits.items()}
        whole = longest(self.pace, self.rules)
        rest = min(max(0.0, note.rest - passed), whole) if clean else whole
        self.last = now + rest - pace.delay_of(self.pace, self.rules)
        self.is_due = self.pace.until <= now and self.closed_until() <= now
        self.settle()


def closed_until(circuits: Circuits) -> float:
    return min((one.until for one in circuits.values()), default=0.0)


def longest(known: Pace, rules: PaceRules) -> float:
    """Seconds that this host may have to be left alone after an end, refusals and circuits apart."""
    return max(pace.delay_of(known, rules), known.gap)
