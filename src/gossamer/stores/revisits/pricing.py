"""The price of a visit: it rises while more pages are worth one than there may be visits, and falls while fewer are.

Place in the flow: the schedule asks for the price when it says how long a page waits, and reports the visits that it queues. No
page but the one at hand is looked at, so the price costs the same for ten pages and ten million.
"""

from math import exp

import msgspec

from gossamer.model.change_rate import Belief, gain_after

#: Visits that may be ahead of the rate or behind it, as a share of the known pages, and at least: the price follows this
#: difference.
_AHEAD, _LEAST_AHEAD = 0.02, 32.0

#: By how many powers of e the price answers at once when the visits are as far ahead as they may be, and how many more in the time
#: of one mean interval. The first keeps it steady, the second brings it to its place.
_AT_ONCE, _IN_TIME = 2.0, 2.0

#: The price goes at most this far from the worth of a usual page after the mean interval, in powers of e: it comes back soon.
_FURTHEST = 6.0


class Price(msgspec.Struct, array_like=True):
    """The price, as it is kept between runs. Call :meth:`step` before the rest; times are in seconds."""

    at: float = 0.0
    """Wall time of the last step."""
    credit: float = 0.0
    """Visits that there may be yet; below 0 they are ahead."""
    offset: float = 0.0
    """By how many powers of e the price is above the worth of a usual page."""
    most: float = _LEAST_AHEAD
    """By how many visits they may be ahead or behind."""

    def step(self, now: float, known: int, mean_interval: float) -> None:
        """Time has passed. A clock that goes back changes nothing; one that leaps brings what a full credit is."""
        passed, self.at = max(now - self.at, 0.0) if self.at else 0.0, now
        self.most = max(known * _AHEAD, _LEAST_AHEAD)
        self.credit = min(self.credit + passed * known / mean_interval, self.most)
        if passed < mean_interval:  # a longer time is a pause, which says nothing of the price
            change = _IN_TIME * self.credit / self.most * passed / mean_interval
            self.offset = min(max(self.offset - change, -_FURTHEST), _FURTHEST)

    def hold(self, now: float) -> None:
        """Time has passed in which visits were kept back for other reasons: the price stays."""
        self.at = now

    @property
    def room(self) -> int:
        """How many visits there may be at once."""
        return max(int(self.credit + self.most), 0)

    def spend(self, visits: int) -> None:
        """Visits were queued."""
        self.credit -= visits

    def now(self, usual: Belief, mean_interval: float) -> float:
        """Seconds of freshness that a visit must be worth; `usual` is what is believed of all pages."""
        ahead = min(max(self.credit / self.most, -1.0), 1.0)
        return gain_after(usual, mean_interval) * exp(self.offset - _AT_ONCE * ahead)
