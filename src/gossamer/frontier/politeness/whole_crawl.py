"""The limits of a crawl as a whole: its caps on pages and bytes, the quiet after a kill, and our own network.

Place in the flow: :mod:`provider` asks here beside host, domain and address, and tells of requests that begin, of bytes that came,
and of every request that reached its host or did not.

When our own network is down the crawl waits, and no host is blamed. While failures come over many hosts without one success
between them, the state of each host before its first failure is remembered. Many are domains and addresses, not names: one dead
server with twelve names is one. Once there are enough the network counts as down: the hosts get back their states, pages are
put back, and single probes at growing distances find out when it is over.

Only names that are not found and connections that are not made tell of our network. A server that lets us in and
then stalls is there: hundreds of such may be all that is left of a crawl, which must not wait for a network that it has.

A list of dead links fails over many hosts too. So among the failing hosts there must be some that answered earlier in
this crawl, and after `patience` the hosts are blamed after all, until one answers: a crawl whose last hosts have
died must end. Loopback hosts count like others.
"""

from math import inf
from typing import Generic, TypeVar

import msgspec

from gossamer.engine.unit import Bucket, Reserve
from gossamer.frontier.politeness import pace
from gossamer.frontier.politeness.pace import FRESH, Pace
from gossamer.frontier.politeness.places import Circuits
from gossamer.frontier.politeness.retries import Circuit
from gossamer.frontier.politeness.rules import LayerRules

# -- our own network

T = TypeVar("T")

#: Hosts that are remembered for having answered: those of the last minutes, who should still be there.
_REMEMBERED = 4096

#: Seconds for which a host that answered counts among those that our network leads to. One that has no more pages is asked no more,
#: so that it cannot fail with the others.
_RECENT = 600.0

#: Different domains and addresses without which nothing tells our network from a server: a crawl of one site waits for that.
_FEWEST = 2


class NetworkRules(msgspec.Struct, frozen=True):
    """Rules for when the network counts as down, and how it is probed."""

    failures: int = 12
    """In a row, without one success; of fewer hosts than the next rule asks for, as many of each."""
    hosts: int = 4
    """Different domains among them, and different addresses; all of them where fewer have answered lately."""
    familiar: int = 2
    """Of both, such as belong to hosts that have answered before."""
    first_probe: float = 1.0
    """Seconds until the first probe; then doubling."""
    longest_probe: float = 60.0
    patience: float = 6 * 3600.0
    """Seconds for which hosts are spared: as long as a dead host's longest wait."""


class Network(Generic[T]):
    """Watches over the outcomes of all hosts; `T` is what is known of a host, and given back."""

    def __init__(self, rules: NetworkRules | None = None) -> None:
        self.rules = rules or NetworkRules()
        self.down_since: float | None = None
        """Monotonic seconds; None while it is up."""
        self._failures = 0
        self._suspects: dict[str, T] = {}
        self._places = _Places()
        self._familiar_places = _Places()
        self._familiar: dict[str, tuple[tuple[str, str], float]] = {}
        """Hosts that answered: where they are, and when they did."""
        self._failing_since = 0.0
        self._probe_at = 0.0
        self._probe_wait = 0.0
        self._probe: str = ""
        self._is_out_of_patience = False

    @property
    def is_down(self) -> bool:
        return self.down_since is not None

    @property
    def is_suspect(self) -> bool:
        """It may be down: a page whose try fails now should not pay for it."""
        return self.is_down or (not self._is_out_of_patience and self._is_wide())

    def ready_at(self, now: float) -> float:
        """Monotonic seconds of the next probe; infinite while one is out; `now` while the network is up."""
        if self.down_since is None:
            return now
        return float("inf") if self._probe else self._probe_at

    @property
    def next_probe(self) -> float:
        return self._probe_at

    def begun(self, host: str) -> None:
        if self.down_since is not None and not self._probe:
            self._probe = host

    def reached(self, host: str, now: float, *, place: tuple[str, str] = ("", "")) -> None:
        """A host was reached: the network is up, and failures until now were the hosts' own. Arguments as for :meth:`failed`."""
        self._familiar[host] = (place, now)
        if len(self._familiar) > _REMEMBERED:
            # The oldest goes; one that still answers comes back with its next answer.
            del self._familiar[next(iter(self._familiar))]
        if self._failures or self.down_since is not None:
            self._clear()
            self.down_since = None
            self._probe = ""
        self._is_out_of_patience = False

    def unasked(self, host: str) -> None:
        """A request ended before it went out: a probe that proves nothing."""
        if host == self._probe:
            self._probe = ""

    def failed(
        self, host: str, before: T, now: float, *, place: tuple[str, str] = ("", ""), is_proof: bool = True
    ) -> dict[str, T]:
        """A host was not reached.

        Args:
            host: its name.
            before: what is known of it without this failure.
            now: monotonic seconds.
            place: its registered domain (empty: its name) and its address (empty where it is not known).
            is_proof: False where the host was silent and may have been there: while the network is up that is no sign
                against it.

        Returns:
            What is to be restored, by host, if the network is down; empty if the failure is the host's own.
        """
        if self._is_out_of_patience:
            return {}
        if self.down_since is not None:
            if host == self._probe:
                self._probe = ""
                self._probe_wait = min(self.rules.longest_probe, 2.0 * self._probe_wait)
                self._probe_at = now + self._probe_wait
                if now - self.down_since >= self.rules.patience:
                    self._is_out_of_patience, self.down_since = True, None
                    self._clear()
                    return {}
            return {host: before}
        if not is_proof:
            return {}
        if not self._failures:
            self._failing_since = now
        self._failures += 1
        # More failing hosts than these add nothing to the verdict; the memory is bounded, and those not in it are only
        # as blamed as a few failures make them.
        if host not in self._suspects and len(self._suspects) < _REMEMBERED:
            self._suspects[host] = before
            self._places.add(host, place)
            if host in self._familiar:
                self._familiar_places.add(host, place)
        # Two hosts that are asked for nothing but probes never come to twelve: the crawl ends before.
        places = min(self.rules.hosts, len(self._places))
        if not (self._failures * self.rules.hosts >= self.rules.failures * places and self._is_wide()):
            return {}
        restored = self._suspects
        restored.setdefault(host, before)
        self._suspects = {}
        self._clear()
        self.down_since = now
        self._probe = ""
        self._probe_wait = self.rules.first_probe
        self._probe_at = now + self._probe_wait
        return restored

    def _is_wide(self) -> bool:
        if len(self._familiar_places) < self.rules.familiar or len(self._places) < _FEWEST:
            return False
        if len(self._places) >= self.rules.hosts:
            return True
        # Different domains and addresses that had answered lately when the failures began; no more than the rule asks for.
        found = _Places()
        for host, (place, at) in self._familiar.items():
            if at >= self._failing_since - _RECENT:
                found.add(host, place)
                if len(found) >= self.rules.hosts:
                    break
        return len(self._places) >= len(found)

    def _clear(self) -> None:
        self._failures = 0
        self._places = _Places()
        self._familiar_places = _Places()
        self._suspects.clear()


class _Places:
    """The domains and addresses at which hosts failed."""

    def __init__(self) -> None:
        self._domains: set[str] = set()
        self._addresses: set[str] = set()

    def add(self, host: str, place: tuple[str, str]) -> None:
        """A host failed that belongs to this domain and has this address, as far as that is known."""
        domain = place[0] or host
        self._domains.add(domain)
        # The address of a name that was not found is not known: its domain stands for it.
        self._addresses.add(place[1] or domain)

    def __len__(self) -> int:
        return min(len(self._domains), len(self._addresses))


# -- the crawl

Known = tuple[Pace, Circuit | None, Circuits]
"""The state of a host that failures change, and that it gets back where they were not its own."""


class RateUse(msgspec.Struct, frozen=True):
    """One agent's use of a rate of the whole crawl."""

    part: float
    """Units a second that every agent has where none has more than another."""
    share: float
    """Its share, as a multiple of `part`."""
    used: float
    """Units that it has taken since it was started."""


class WholeCrawl:
    """The layer above all hosts."""

    def __init__(self, rules: LayerRules) -> None:
        self.network: Network[Known] = Network()
        self._rules = rules
        self._pages = Bucket(rules.pages_per_second)
        self._bytes = Bucket(rules.bytes_per_second)
        self._page_share = self._byte_share = 1.0
        self._reserve = Reserve(self._bytes)
        self.quiet_until = -inf
        self.change(rules)

    def ready_at(self, now: float) -> float:
        """The instant from which hosts may be asked; infinite while a probe of our network is out."""
        if not self.is_capped and self.network.down_since is None:
            return self.quiet_until
        return max(self.quiet_until, self._pages.ready_at(), self._bytes.ready_at(), self.network.ready_at(now))

    def begin(self, host: str, now: float) -> float:
        """A request goes out. Returns the bytes that are booked for it, for :meth:`received`."""
        if self.network.down_since is not None:
            self.network.begun(host)
        if not self.is_capped:
            return 0.0
        self._pages.take(1, now)
        return self._reserve.book(now)

    def received(self, amount: int, now: float, booked: float = 0.0) -> None:
        """So many bytes came in, and so many were booked when the request began."""
        self._reserve.settle(amount, booked, now)

    def change(self, rules: LayerRules) -> None:
        self._rules = rules
        self._pages.rate, self._bytes.rate = self._rates()
        self.is_capped = self._pages.rate is not None or self._bytes.rate is not None

    def lend(self, pages: float, size: float, now: float) -> None:
        """Go by so many times the caps that the rules name: other agents of the crawl have as much less."""
        self._page_share, self._byte_share = pages, size
        for bucket, rate in zip((self._pages, self._bytes), self._rates(), strict=True):
            bucket.lend(rate, now)

    def _rates(self) -> tuple[float | None, float | None]:
        pages, size = self._rules.pages_per_second, self._rules.bytes_per_second
        return None if pages is None else pages * self._page_share, None if size is None else size * self._byte_share

    def uses(self) -> tuple[RateUse | None, RateUse | None]:
        """The use of the caps on pages and on bytes; None where there is no cap."""
        pages, size = self._rules.pages_per_second, self._rules.bytes_per_second
        return (
            None if pages is None else RateUse(pages, self._page_share, self._pages.taken),
            None if size is None else RateUse(size, self._byte_share, self._bytes.taken),
        )

    def hush(self, rules: LayerRules, now: float) -> None:
        """After a kill: hosts without a note may have been asked a moment ago, so no host is asked before one usual delay.

        Nor is any domain or address before its own gap.
        """
        self.quiet_until = now + max(pace.delay_of(FRESH, rules.pace), rules.domain.gap, rules.address.gap)
