"""The limits of a crawl as a whole: its caps on pages and bytes, our own network, and the quiet after a kill.

Place in the flow: :mod:`gates` asks here beside host, domain and address, and tells of requests that begin and of bytes that came.
"""

from math import inf

import msgspec

from gossamer.engine.clock import Bucket, Reserve
from gossamer.frontier.politeness import pace
from gossamer.frontier.politeness.host_state import Circuits
from gossamer.frontier.politeness.network import Network
from gossamer.frontier.politeness.pace import FRESH, Pace
from gossamer.frontier.politeness.retries import Circuit
from gossamer.frontier.politeness.rules import GateRules

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

    def __init__(self, rules: GateRules, network: Network[Known] | None) -> None:
        """`network` watches over our own, and belongs to this crawl alone."""
        self.network = network or Network()
        self._rules = rules
        self._pages = Bucket(rules.pages_per_second)
        self._bytes = Bucket(rules.bytes_per_second)
        self._page_share = self._byte_share = 1.0
        self._reserve = Reserve(self._bytes)
        self._quiet_until = -inf
        self.change(rules)

    def ready_at(self, now: float) -> float:
        """The instant from which hosts may be asked; infinite while a probe of our network is out."""
        if not self._is_capped and self.network.down_since is None:
            return self._quiet_until
        return max(self._quiet_until, self._pages.ready_at(), self._bytes.ready_at(), self.network.ready_at(now))

    def begin(self, host: str, now: float) -> float:
        """A request goes out. Returns the bytes that are booked for it, for :meth:`received`."""
        if self.network.down_since is not None:
            self.network.begun(host)
        if not self._is_capped:
            return 0.0
        self._pages.take(1, now)
        return self._reserve.book(now)

    def received(self, amount: int, now: float, booked: float = 0.0) -> None:
        """So many bytes came in, and so many were booked when the request began."""
        self._reserve.settle(amount, booked, now)

    def change(self, rules: GateRules) -> None:
        """Go by other caps from now on."""
        self._rules = rules
        self._pages.rate, self._bytes.rate = self._rates()
        self._is_capped = self._pages.rate is not None or self._bytes.rate is not None

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

    def hush(self, rules: GateRules, now: float) -> None:
        """After a kill: hosts without a note may have been asked a moment ago, so no host is asked before one usual delay.

        Nor is any domain or address before its own gap.
        """
        self._quiet_until = now + max(pace.base_delay(FRESH, rules.pace), rules.domain.gap, rules.address.gap)
