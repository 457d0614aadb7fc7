"""The bandwidth of a crawl where its bytes come in: bodies of all transfers pass one valve.

Place in the flow: :mod:`~gossamer.stages.fetch.transfer` asks here before it takes a piece of a body, and
:mod:`~gossamer.stages.fetch.http` lets transfers go on whose turn has come. Politeness lets no more requests begin than the
bandwidth bears (:mod:`gossamer.services.politeness.buckets`), but nobody knows before what each of them brings.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from gossamer.services.politeness.buckets import Bucket

T = TypeVar("T")


class Valve(Generic[T]):
    """Lets so many bytes a second through, in the order in which they come."""

    def __init__(self, rate: float, now: Callable[[], float], go_on: Callable[[T], None]) -> None:
        """An open valve.

        Args:
            rate: bytes a second.
            now: monotonic seconds.
            go_on: is called with a transfer that was held, when its piece may be taken.
        """
        self.rate = rate
        self.now = now
        self._whole = rate
        self._go_on = go_on
        self._bucket = Bucket(rate)

    @property
    def taken(self) -> float:
        """Bytes that were let through so far, or will be when their turn comes."""
        return self._bucket.taken

    def lend(self, share: float) -> None:
        """Let so many times the rate through that it was made with."""
        self.rate = self._whole * share
        self._bucket.lend(self.rate, self.now())

    def take(self, amount: int) -> float:
        """Take so many bytes; returns the seconds until they are let through, 0 where they are at once."""
        now = self.now()
        wait = self._bucket.ready_at() - now
        self._bucket.take(amount, now)
        return max(0.0, wait)

    def hold(self, transfer: T, wait: float) -> None:
        """Let this transfer go on after so many seconds."""
        asyncio.get_running_loop().call_later(wait, self._go_on, transfer)
