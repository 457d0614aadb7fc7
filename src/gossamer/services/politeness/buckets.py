"""The caps of the whole crawl, pages/s and bytes/s: token buckets, kept as one instant each.

Place in the flow: :mod:`gates` asks them before every request. A bucket is written as the instant at which everything
taken so far is paid for (generic cell rate algorithm): no token is ever added, so nothing has to run in between.
"""

#: Seconds' worth of tokens that may be saved up: bridges a late turn of the event loop, and is too short for a burst that
#: anybody would notice.
BURST = 0.1


class Bucket:
    """Lets `rate` units a second through; any amount may be taken at once and is then paid off."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        """Units a second; None is no cap. May change at any time."""
        self._paid_at = float("-inf")

    def ready_at(self) -> float:
        """The instant, in monotonic seconds, from which on something may be taken."""
        return self._paid_at if self.rate is not None else float("-inf")

    def take(self, amount: float, now: float) -> None:
        """Take `amount` units."""
        if self.rate is not None:
            saved = max(0.0, BURST - 1.0 / self.rate)  # below 10 a second one unit is the whole burst
            self._paid_at = max(self._paid_at, now - saved) + amount / self.rate
