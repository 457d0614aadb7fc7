"""Turns of hosts: those with work, those that are ready and those that wait.

Place in the flow: the frontier puts a host in when there is something to fetch from it, and takes one out when a slot
is free. A request goes out when every layer allows it:

- *host*: one live request (`per_host` where the user owns it), its own delay (:mod:`pace`), the circuits of its name and of its
  endpoints (:mod:`retries`);
- *domain* and *address*: at most 4 live and 0.25 s between two starts each;
- *crawl*: pages/s, bytes/s, and our own network is there (:mod:`whole_crawl`).

The delay of a host counts from the end of its last request, and with `per_host` > 1 from its last start too; the gap that
refusals have taught counts from its last start. Only hosts that were asked have an entry. A host with work is in one of three
places:

- *ready*: in a front queue of its level; looked at again when it is drawn, for much may have happened;
- *waiting*: in a heap, by the instant when it is next;
- *parked* beside the domain, address or busy host that is in its way. Only the place itself stands in the heap, and
  lets one host go at a time: 1,000 hosts at one address cost one look each, not 1,000 for every request.

Entries of the heap are corrected lazily: one that is out of date is passed over when it comes up. Every operation is
`O(log n)` in the hosts with work, amortised. Memory is theirs, some 700 bytes each; queues of URLs are not kept here.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Generic, TypeVar

import msgspec

from gossamer.frontier.contract import LEVELS
from gossamer.frontier.politeness.places import AskedHost, Place, SharedPlace, SharedPlaces
from gossamer.frontier.politeness.rules import LayerRules, live_of, pace_of
from gossamer.frontier.politeness.whole_crawl import WholeCrawl

T = TypeVar("T")

#: How much likelier a level is than the next one: of eight levels, the last still gets one draw in 255.
BIAS = 2.0


class FrontQueues(Generic[T]):
    """One queue for each level of urgency, chosen at random with a bias; first in, first out within a level.

    A strict order would starve what is less urgent for as long as urgent things keep coming. With the bias each level is
    chosen half as often as the one before it, and none never. Randomness is seeded, so a crawl on a simulated clock repeats
    exactly. To take one costs `O(levels)`.
    """

    def __init__(self, draw: Callable[[], float], levels: int = LEVELS, bias: float = BIAS) -> None:
        """Empty queues.

        Args:
            draw: numbers in [0, 1), seeded.
            levels: how many queues.
            bias: at least 1; infinite takes the most urgent always.
        """
        self._draw = draw
        self._queues: tuple[deque[T], ...] = tuple(deque() for _ in range(levels))
        self._weights = tuple(bias**-level if level else 1.0 for level in range(levels))
        self.taken = 0
        """The levels that are not empty, as bits; 0 where nothing is queued."""

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    def push(self, thing: T, level: int) -> None:
        """Append to a level; levels outside the range count as the nearest one."""
        level = min(max(level, 0), len(self._queues) - 1)
        self._queues[level].append(thing)
        self.taken |= 1 << level

    def pop(self) -> T:
        """Take the oldest thing of a level drawn at random. Raises IndexError: there is nothing."""
        taken = self.taken
        level = self._chosen(taken) if taken & (taken - 1) else taken.bit_length() - 1
        if level < 0:
            raise IndexError("nothing is queued")
        queue = self._queues[level]
        thing = queue.popleft()
        if not queue:
            self.taken ^= 1 << level
        return thing

    def _chosen(self, taken: int) -> int:
        levels = [level for level in range(len(self._queues)) if taken >> level & 1]
        left = self._draw() * sum(self._weights[level] for level in levels)
        for level in levels:
            left -= self._weights[level]
            if left < 0.0:
                return level
        return levels[0]


#: Hosts that a place lets go in vain, because another place holds them up, before it takes a rest; and how long, in
#: seconds. Without it two crowded places could pass all their hosts to and fro for each request.
_TRIES = 4
_REST = 0.25

#: Entries of the heap below which it is not worth clearing of those that are out of date.
_FEW = 256


class _Parking(msgspec.Struct, eq=False):
    """Hosts beside a place that is in their way."""

    place: Place
    hosts: deque[str] = msgspec.field(default_factory=deque)
    stamp: int = 0
    vain: int = 0
    """Hosts let go in vain since the last that could begin."""


class _Turn(msgspec.Struct, eq=False):
    """A host with work."""

    domain: str
    address: str
    level: int
    stamp: int = 0
    """Of its entry in the heap; 0 while it has none."""
    parking: _Parking | None = None
    """Where it is parked."""
    via: _Parking | None = None
    """Which parking let it go."""


class Schedule:
    """Hosts in the order in which they may be asked."""

    def __init__(
        self,
        rules: LayerRules,
        draw: Callable[[], float],
        *,
        is_blocked: Callable[[str, float], object] = lambda host, now: False,
    ) -> None:
        """An empty schedule.

        Args:
            rules: the settings of all layers.
            draw: numbers in [0, 1), seeded: which level is next.
            is_blocked: asked when a host's turn comes, so that rules beside the layers can have it rest; true of hosts that must
                not be asked any more, which leave.
        """
        self.rules = rules
        self.crawl = WholeCrawl(rules)
        self.hosts: dict[str, AskedHost] = {}
        """Hosts that were asked, or are known."""
        self.domains = SharedPlaces(rules.domain, rules.domain_on_loopback, rules.per_host)
        self.addresses = SharedPlaces(rules.address, rules.address_on_loopback, rules.per_host)
        self.is_outdated = False
        """Hosts may have become ready earlier than they were told: settings changed, or hosts were spared."""
        self.blocked: list[str] = []
        """Hosts that left because they are blocked; their reader clears the list."""
        self._is_blocked = is_blocked
        self._ready: FrontQueues[str] = FrontQueues(draw)
        self._turns: dict[str, _Turn] = {}
        self.parked: dict[Place, _Parking] = {}
        """By the places beside which hosts wait."""
        self._heap: list[tuple[float, int, str | _Parking]] = []
        self._stamps = 0
        self._stale = 0
        self._left: list[_Parking] = []
        """Parkings whose host was handed out: they are armed again once it has begun."""

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._turns)

    def __contains__(self, host: object) -> bool:
        return host in self._turns

    def asked(self, host: str) -> AskedHost:
        """The entry of a host, a new one where it was never asked."""
        entry = self.hosts.get(host)
        if entry is None:
            entry = self.hosts[host] = AskedHost(host, self.rules)
        return entry

    def blocker(self, host: str, domain: str, address: str) -> tuple[float, Place | None]:
        """The instant at which host, domain and address all allow a request, and the last of them to do so.

        The time is infinite if another request has to end first. None: they know nothing that is against it.
        """
        until = -inf
        where: Place | None = None
        own, shared = self.hosts.get(host), self.domains.get(domain)
        # A turn at an address is no use without the domain's: two agents would wait for each other's.
        there = None if shared is not None and not shared.limit else self.addresses.get(address)
        if own is not None:
            until, where = inf if own.live >= own.limit else own.next, own
        if shared is not None:
            opens = inf if shared.live >= shared.limit else shared.next
            if opens > until:
                until, where = opens, shared
        if there is not None:
            opens = inf if there.live >= there.limit else there.next
            if opens > until:
                until, where = opens, there
        return until, where

    # -- changes

    def change(self, rules: LayerRules) -> None:
        self.rules = rules
        self.is_outdated = True
        self.crawl.change(rules)
        for host, entry in self.hosts.items():
            entry.rules, entry.most = pace_of(host, rules), live_of(host, rules)
            entry.settle()
        self.domains.change(rules.domain, rules.domain_on_loopback, rules.per_host)
        self.addresses.change(rules.address, rules.address_on_loopback, rules.per_host)

    def put(self, host: str, domain: str, address: str, level: int = 0) -> None:
        turn = self._turns.get(host)
        if turn is None:
            turn = self._turns[host] = _Turn(domain, address, level)
            # Only its own place is looked at here; the shared ones are when its turn comes.
            own = self.hosts.get(host)
            until = -inf if own is None else inf if own.live >= own.limit else own.next
            self._place(host, turn, until, own)
        else:
            turn.level, turn.address = level, address

    def drop(self, host: str) -> None:
        turn = self._turns.pop(host, None)
        if turn is not None:
            self._stale += turn.stamp > 0
            if turn.via is not None:
                self._arm(turn.via)

    def ended(self, host: str, domain: str, address: str) -> None:
        """A request of this host has ended: hosts that waited for that may go on."""
        for place in (self.hosts.get(host), self.domains.known(domain), self.addresses.known(address)):
            parking = self.parked.get(place) if place is not None else None
            if parking is not None and not parking.stamp:
                self._arm(parking)

    def opened(self, place: Place) -> None:
        """A place may be asked again: hosts that wait there may go on."""
        parking = self.parked.get(place)
        if parking is not None:
            self._arm(parking)

    def reconsider(self) -> None:
        """Look at every waiting host anew: some may go on earlier than they were told. `O(n log n)`.

        :meth:`pop` does so by itself where settings have changed or hosts were spared.
        """
        self.is_outdated = False
        waiting = [(host, turn) for host, turn in self._turns.items() if turn.stamp or turn.parking is not None]
        self._heap.clear()
        self._stale = 0
        self.parked.clear()
        self._left.clear()
        for host, turn in waiting:
            turn.stamp, turn.parking = 0, None
            until, where = self.blocker(host, turn.domain, turn.address)
            self._place(host, turn, until, where)

    # -- taking

    def pop(self, now: float) -> str | float:
        """The host whose turn it is, or until when to wait.

        Args:
            now: monotonic seconds.

        Returns:
            A host that may begin now; it has left the schedule. Or the instant at which to ask again, infinite if
            something must be put in or end first.
        """
        if self.is_outdated:
            self.reconsider()
        crawl = self.crawl
        if crawl.quiet_until > now or crawl.is_capped or crawl.network.down_since is not None:
            opens = crawl.ready_at(now)
            if opens > now:
                return opens
        if self._left:
            for parking in self._left:
                self._arm(parking)
            self._left.clear()
        heap = self._heap
        while True:
            if heap and heap[0][0] <= now:
                self._wake(now)
            if not self._ready.taken:
                while heap and self._is_stale(heap[0]):
                    heapq.heappop(heap)
                    self._stale -= 1
                return heap[0][0] if heap else inf
            host = self._ready.pop()
            turn = self._turns.get(host)
            if turn is not None and not turn.stamp and turn.parking is None and self._may_begin(host, turn, now):
                return host

    # -- inside

    def _may_begin(self, host: str, turn: _Turn, now: float) -> bool:
        """Look at a host that was drawn: it leaves the schedule to begin or because it is blocked, or waits on."""
        via, turn.via = turn.via, None
        if self._is_blocked(host, now):
            del self._turns[host]
            self.blocked.append(host)
            if via is not None:
                self._arm(via)
            return False
        until, where = self.blocker(host, turn.domain, turn.address)
        if until <= now:
            del self._turns[host]
            if via is not None:
                via.vain = 0
                self._left.append(via)
            return True
        self._place(host, turn, until, where)
        if via is not None:
            via.vain += 1
            if via.vain < _TRIES:
                self._arm(via)
            else:
                via.vain = 0
                self._arm(via, min(until, now + _REST))
        return False

    def _place(self, host: str, turn: _Turn, until: float, where: Place | None) -> None:
        """Put a host where it belongs. One that is open already is ready, whether it is time yet or not."""
        if where is None:
            self._ready.push(host, turn.level)
        elif until < inf and not isinstance(where, SharedPlace):
            turn.stamp = self._push(until, host)
        else:
            parking = self.parked.get(where)
            if parking is None:
                parking = self.parked[where] = _Parking(where)
            turn.parking = parking
            parking.hosts.append(host)
            if not parking.stamp:
                self._arm(parking)

    def _push(self, until: float, what: "str | _Parking") -> int:
        if self._stale > _FEW and 2 * self._stale > len(self._heap):
            self._heap[:] = [entry for entry in self._heap if not self._is_stale(entry)]
            heapq.heapify(self._heap)
            self._stale = 0
        self._stamps += 1
        heapq.heappush(self._heap, (until, self._stamps, what))
        return self._stamps

    def _arm(self, parking: _Parking, not_before: float = -inf) -> None:
        """Set the instant at which a parking lets its next host go. One whose place is full is armed by :meth:`ended`."""
        if parking.stamp:
            return
        if not parking.hosts:
            if self.parked.get(parking.place) is parking:
                del self.parked[parking.place]
            return
        place = parking.place
        until = inf if place.live >= place.limit else max(place.next, not_before)
        if until < inf:
            parking.stamp = self._push(until, parking)

    def _wake(self, now: float) -> None:
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, stamp, what = heapq.heappop(heap)
            if isinstance(what, str):
                turn = self._turns.get(what)
                if turn is None or turn.stamp != stamp:
                    self._stale -= 1
                    continue
                turn.stamp = 0
                self._ready.push(what, turn.level)
            elif what.stamp == stamp:
                what.stamp = 0
                while what.hosts:
                    host = what.hosts.popleft()
                    turn = self._turns.get(host)
                    if turn is not None and turn.parking is what:
                        turn.parking, turn.via = None, what
                        self._ready.push(host, turn.level)
                        break
                else:
                    self._arm(what)

    def _is_stale(self, entry: tuple[float, int, "str | _Parking"]) -> bool:
        _, stamp, what = entry
        if isinstance(what, str):
            turn = self._turns.get(what)
            return turn is None or turn.stamp != stamp
        return what.stamp != stamp
