"""Places that can be asked only so often: a host, a domain, an address.

Place in the flow: :mod:`schedule` keeps them and lets hosts wait beside the place that is in their way; :mod:`provider` tells
them what happens there. Domains and addresses are *shared* by hosts, and stand in tables. A host that was asked has a delay and gap
of its own, the circuits of its name and endpoints, and a note that outlives the process: the committer keeps it in the ledger
beside the host's queue, so that a restart or a hand-over knocks no earlier. `status` and progress show why a host waits
(:func:`why_held`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from math import inf

import msgspec

from gossamer.frontier.politeness import pace
from gossamer.frontier.politeness.pace import FRESH, Pace, PaceRules
from gossamer.frontier.politeness.retries import Circuit, circuit_after
from gossamer.frontier.politeness.rules import LayerRules, Share, live_of, pace_of
from gossamer.values.addresses import is_loopback
from gossamer.values.outcome import Outcome
from gossamer.values.url import site_of

#: Places that are kept before the idle ones among them are looked for.
_FEW = 1024


class Place:
    """Lets `limit` requests be live at once, and none begin before `next`."""

    __slots__ = ("limit", "live", "next")

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.live = 0
        self.next = -inf
        """Monotonic seconds."""

    def ready_at(self) -> float:
        return inf if self.live >= self.limit else self.next


class SharedPlace(Place):
    """A domain or address."""

    __slots__ = ("on_loopback", "reopens", "turn")

    def __init__(self, limit: float, *, on_loopback: bool) -> None:
        super().__init__(limit)
        self.on_loopback = on_loopback
        self.turn = 0
        """Number of the turn that is lent, where places are asked in turns; 0 for none."""
        self.reopens = -inf
        """The instant from which the hosts here may be asked again, where another agent may ask the same ones."""


class SharedPlaces:
    """All domains, or all addresses, that are or lately were asked: idle ones are dropped whenever the table has doubled."""

    def __init__(self, usual: Share, loopback: Share, per_host: int) -> None:
        self._table: dict[str, SharedPlace] = {}
        self._sweep_at = _FEW
        self._usual, self._loopback, self._per_host = usual, loopback, per_host
        self.known: Callable[[str], SharedPlace | None] = self._table.get
        """The place of this name, or None."""
        self.get: Callable[[str], SharedPlace | None] = self._table.get
        """The same for a caller that would ask there: where places are asked in turns, the place is wanted."""
        self.wanted: dict[str, None] = {}
        """Names of places where hosts wait for a turn."""
        self.back: dict[str, tuple[int, float]] = {}
        """Places that were given back: number of the turn, and the instant from which they may be asked."""
        self._recalled: set[str] = set()
        self._by_turns = False

    def __len__(self) -> int:
        return len(self._table)

    def change(self, usual: Share, loopback: Share, per_host: int) -> None:
        self._usual, self._loopback, self._per_host = usual, loopback, per_host
        for name, place in self._table.items():
            place.limit = 0 if self._is_foreign(name, place) else self._limit(place.on_loopback)

    def enter(self, name: str, place: SharedPlace | None, now: float, *, on_loopback: bool, least: int = 1) -> None:
        """One more request is live at `place`, which is what :meth:`get` gives for `name`; its host alone may have `least`."""
        if place is None:
            self._sweep(now)
            place = self._table[name] = SharedPlace(self._limit(on_loopback), on_loopback=on_loopback)
        elif place.on_loopback != on_loopback:
            place.on_loopback, place.limit = on_loopback, self._limit(on_loopback)
        if place.limit < least:
            place.limit = least
        place.live += 1
        place.next = now + (self._loopback.gap if on_loopback else self._usual.gap)

    def leave(self, name: str, reopens: float = -inf) -> None:
        """A request has ended at this place; another agent may ask here from the instant `reopens` on."""
        place = self._table.get(name)
        if place is not None and place.live > 0:
            place.live -= 1
            place.reopens = max(place.reopens, reopens)
            if not place.live and name in self._recalled:
                self._give_back(name, place)

    # -- turns, where other agents have hosts at the same places

    def ask_by_turns(self) -> None:
        """From now on, let nothing begin but at places that are lent."""
        self._by_turns = True
        self.get = self._borrowed

    def lend(self, name: str, number: int, opens: float) -> SharedPlace:
        """A place may be asked from this instant on, until it is recalled; returns it."""
        place = self._table.get(name)
        if place is None:
            place = self._table[name] = SharedPlace(0, on_loopback=is_loopback(name))
        if number not in (place.turn, self.back.get(name, (0, 0.0))[0]):
            place.turn, place.limit, place.next = number, self._limit(place.on_loopback), max(place.next, opens)
            self.wanted.pop(name, None)
        return place

    def held(self) -> dict[str, int]:
        return {name: place.turn for name, place in self._table.items() if place.turn}

    def recall(self, name: str, *, is_wanted: bool) -> None:
        """Begin nothing more there, and give it back as soon as nothing is live; a host waits there where it `is_wanted`."""
        place = self._table.get(name)
        if place is None or not place.turn:
            return
        place.limit = 0
        self._recalled.add(name)
        if is_wanted:
            self.wanted[name] = None
        if not place.live:
            self._give_back(name, place)

    def noted(self, name: str, number: int) -> None:
        if self.back.get(name, (0, 0.0))[0] == number:
            del self.back[name]

    def _give_back(self, name: str, place: SharedPlace) -> None:
        self._recalled.discard(name)
        self.back[name] = place.turn, max(place.next, place.reopens)
        place.turn, place.limit = 0, 0

    def _borrowed(self, name: str) -> SharedPlace | None:
        place = self._table.get(name)
        if place is None and name:
            on_loopback = is_loopback(name)
            share = self._loopback if on_loopback else self._usual
            if not share.gap and share.live == inf:
                return None
            place = self._table[name] = SharedPlace(0, on_loopback=on_loopback)
        if place is not None and self._is_foreign(name, place):
            self.wanted[name] = None
        return place

    def _is_foreign(self, name: str, place: SharedPlace) -> bool:
        """Nothing may begin there: it is another agent's turn, or about to be."""
        if not self._by_turns or (place.turn and name not in self._recalled):
            return False
        share = self._loopback if place.on_loopback else self._usual
        return bool(share.gap) or share.live < inf

    def _limit(self, on_loopback: bool) -> float:
        """A person who allows one host more live requests owns it, and means them to happen."""
        return max((self._loopback if on_loopback else self._usual).live, self._per_host)

    def _sweep(self, now: float) -> None:
        if len(self._table) < self._sweep_at:
            return
        idle = [name for name, place in self._table.items() if not place.live and place.next <= now]
        for name in idle:
            place = self._table[name]
            if place.turn:
                self._give_back(name, place)
            if name not in self.wanted:
                del self._table[name]
        self._sweep_at = max(_FEW, 2 * len(self._table))


# -- a host


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


Circuits = Mapping[str, Circuit]


def _shifted_circuit(circuit: Circuit, by: float, not_before: float = 0.0) -> Circuit:
    # The instant of a probe that is due is kept, if only as "now": it is what tells a probe from a late failure.
    return msgspec.structs.replace(circuit, until=max(not_before, circuit.until + by)) if circuit.until else circuit


def _shifted_circuits(circuits: Circuits, by: float, not_before: float = 0.0) -> dict[str, Circuit]:
    return {endpoint: _shifted_circuit(one, by, not_before) for endpoint, one in circuits.items()}


#: Refusals in a row after which a host is spent: by then our own back-off alone has made it wait for 21 minutes.
PATIENCE = 10


class AskedHost(Place):
    """One host that was asked, or is known: its pace, its circuits, and when it is next."""

    __slots__ = ("begun", "circuit", "circuits", "is_due", "last", "most", "pace", "prior", "rest", "rules")

    def __init__(self, host: str, rules: LayerRules) -> None:
        self.most = live_of(host, rules)
        self.rules = pace_of(host, rules)
        super().__init__(self.most)
        self.pace = FRESH
        self.circuit: Circuit | None = None
        """Of its name: whether that has an address."""
        self.circuits: Circuits = {}
        """Of its endpoints, by scheme, name and port. Empty while none of them has failed; then also those that are well, as far
        as they are known. Never changed, only replaced: the places known before a failure may be restored."""
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
        by_name = self.circuit.until if self.circuit is not None else 0.0
        return max(by_name, closed_until(self.circuits)) if self.circuits else by_name

    def start_of(self, now: float, gap: float) -> float:
        """The instant that counts as the start of a request that begins now, with the gap that refusals have taught."""
        due = self.begun + gap
        late = self.last + pace.delay_of(self.pace, self.rules) - due
        return max(due, now - min(gap, late)) if gap and late > 0.0 else now

    def opens(self) -> float:
        opens, known = self.last + pace.delay_of(self.pace, self.rules), self.pace.control
        return opens if known is None else max(opens, self.begun + known.gap)

    def settle(self) -> None:
        """Work out when this host is next."""
        known, opens = self.pace, self.opens()
        if known.until > opens:
            opens = known.until
        if (self.circuits or self.circuit is not None) and (closed := self.closed_until()) > opens:
            opens = closed
        if self.rest[0] > opens:
            opens = self.rest[0]
        self.next = opens
        is_probed = (self.circuit is not None and self.circuit.is_open) or (
            bool(self.circuits) and all(one.is_open for one in self.circuits.values())
        )
        self.limit = 1 if is_probed or known.refusals else self.most  # a host that refused is alone until it answers

    def hold(self, endpoint: str, until: float) -> None:
        before = self.circuits.get(endpoint) or Circuit()
        held = msgspec.structs.replace(before, strikes=max(1, before.strikes), until=max(before.until, until))
        self.circuits = {**self.circuits, endpoint: held}
        self.settle()

    def closed_for(self, url: str, now: float) -> float:
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

    def judge_endpoint(self, endpoint: str, outcome: Outcome, now: float, rules: LayerRules) -> None:
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
            circuit=None if self.circuit is None else _shifted_circuit(self.circuit, -now),
            circuits=_shifted_circuits(self.circuits, -now) if self.circuits else {},
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
        self.circuit = None if note.circuit is None else _shifted_circuit(note.circuit, by, not_before=now)
        self.circuits = _shifted_circuits(note.circuits, by, not_before=now)
        whole = longest(self.pace, self.rules)
        rest = min(max(0.0, note.rest - passed), whole) if clean else whole
        self.last = now + rest - pace.delay_of(self.pace, self.rules)
        self.is_due = self.pace.until <= now and self.closed_until() <= now
        self.settle()


def closed_until(circuits: Circuits) -> float:
    return min((one.until for one in circuits.values()), default=0.0)


def longest(known: Pace, rules: PaceRules) -> float:
    delay = pace.delay_of(known, rules)
    return delay if known.control is None else max(delay, known.control.gap)
