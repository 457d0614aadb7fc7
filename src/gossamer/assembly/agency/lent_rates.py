"""The shares of `--rate` and `--bandwidth` that an agent is lent: kept in its ledger, and given to whoever goes by them.

Place in the flow: an agent takes what it had before it asks for anything, tells its supervisor what it uses
(:mod:`gossamer.assembly.agency.rates`), and takes what it is told. A share outlives supervisor and agent: an agent that came back
with an even part would use what others have been lent meanwhile.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gossamer.assembly.units_at_work import UnitsAtWork
from gossamer.model.errors import DiskFull
from gossamer.services.politeness.provider import HostPoliteness
from gossamer.services.politeness.whole_crawl import RateUse
from gossamer.stages.fetch.http import HttpModule

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
    """What one agent is lent."""

    def __init__(self, units: UnitsAtWork, among: Sequence[str]) -> None:
        """`among` are the agents of the crawl that work."""
        self._units = units
        self._among = tuple(among)
        self._shares = dict.fromkeys(LENT, 1.0)

    def __repr__(self) -> str:
        return f"<LentRates {self._shares}>"

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
        """What it has used of each rate that the crawl has."""
        for polite in self._units.providers(HostPoliteness):
            pages, size = polite.rates()
            if size is not None:
                # A large body is paid for when it is there, and comes in long before: who counts more has seen more.
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
