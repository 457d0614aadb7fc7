"""The only source of time, and token buckets that are kept as one instant each.

Place in the flow: units read their `clock`, so tests can hand them one that stands still. The frontier asks buckets for the
caps of a whole crawl (pages and bytes a second), and the fetcher for the bandwidth.

A bucket is written as the instant at which everything taken so far is paid for (generic cell rate algorithm): no token is ever
added, so nothing has to run in between. The amount that a request brings is not known when it begins, so :class:`Reserve` books
the mean of the last ones and settles the difference: many requests at once would otherwise fetch in one second what is then
paid off for many.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for people and archives, monotonic time for every delay and deadline, steady time for what outlives both."""

    def now(self) -> float:
        """Seconds since the epoch; may jump."""

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back."""

    def steady(self) -> float:
        """Seconds since the epoch that never jump: wall time when this clock was made, and monotonic time since then.

        For waits that are kept on the disk: another process can read them, and no jump of the wall clock (fault 94) makes
        this one wait an hour more, or not at all.
        """

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def steady(self) -> float:
        """Wall time that no operator or time server sets."""
        return self._offset + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        import asyncio  # units are used without a loop, too: in parser processes, and to judge what a person gave

        await asyncio.sleep(seconds)


#: Seconds' worth of tokens that may be saved up: bridges a late turn of the event loop, and is too short for a burst that
#: a server would notice.
BURST = 0.1


#: Smoothing of the amount that a request brings: the last twenty or so count.
SMOOTHING = 0.1

#: Requests whose amounts must be known before their mean is trusted: the first page of a site is often none like the others.
ENOUGH = 8


class Bucket:
    """Lets `rate` units a second through; any amount may be taken at once and is then paid off."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        """Units a second; None is no cap. May change at any time."""
        self.taken = 0.0
        """Units that were taken so far, less those given back; only while there is a cap."""
        self._paid_at = float("-inf")

    def ready_at(self) -> float:
        """The instant, in monotonic seconds, from which on something may be taken."""
        return self._paid_at if self.rate is not None else float("-inf")

    def lend(self, rate: float | None, now: float) -> None:
        """Go by another rate, also with what was taken and is not paid for: a debt made at a tenth of it would last too long."""
        if self.rate is not None and rate is not None and self._paid_at > now:
            self._paid_at = now + (self._paid_at - now) * self.rate / rate
        self.rate = rate

    def take(self, amount: float, now: float) -> None:
        """Take `amount` units; a negative amount is given back."""
        if self.rate is not None:
            self.taken += amount
            saved = max(0.0, BURST - 1.0 / self.rate)  # below 10 a second one unit is the whole burst
            self._paid_at = max(self._paid_at, now - saved) + amount / self.rate


class Reserve:
    """How much is booked for a request that begins: a bucket's `take` before, and the difference when the amount is known."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._mean = 0.0
        """Units of a request, smoothed; 0 until the first amount is known."""
        self._known = 0
        """Requests whose amount is known, up to :data:`ENOUGH`."""

    def book(self, now: float) -> float:
        """Take what a request probably brings; returns it. The first ones bring a second's worth: too much, until it is known."""
        if self._bucket.rate is None:
            return 0.0
        booked = self._mean if self._known >= ENOUGH else max(self._mean, self._bucket.rate)
        self._bucket.take(booked, now)
        return booked

    def settle(self, amount: float, booked: float, now: float) -> None:
        """It brought so much, after `booked` was taken for it."""
        if self._bucket.rate is None:
            return
        if amount:
            self._known = min(self._known + 1, ENOUGH)
            self._mean += max(SMOOTHING, 1.0 / self._known) * (amount - self._mean)
        self._bucket.take(amount - booked, now)
