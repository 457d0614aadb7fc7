"""Bodies as they come in: the valve that all of them pass under a bandwidth, and the store of large and coded ones.

Place in the flow: :mod:`~gossamer.fetcher.transfer` asks the valve before it takes a piece of a body, and
:mod:`~gossamer.fetcher.http` lets transfers go on whose turn has come. Politeness lets no more requests begin than the
bandwidth bears (:mod:`gossamer.engine.clock`), but the size of their answers is not known before.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from gossamer.documents.content_coding import Decoded, Keeping, Undoing, codings, refusal
from gossamer.engine.clock import Bucket
from gossamer.values.body import Body, BodyWriter

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


class BodyStore:
    """A body beyond what is simply collected: as it came and without its content coding, each on disk if it is large."""

    __slots__ = ("_raw", "_undoing")

    def __init__(self, keeping: Keeping, content_coding: str) -> None:
        self._raw = BodyWriter(keeping.memory, keeping.directory, digest=True)
        applied = codings(content_coding)
        self._undoing: Undoing | None = None
        if applied and not refusal(applied):
            self._undoing = Undoing(applied, keeping)

    def write(self, piece: bytes) -> None:
        """Take a piece as it came (OSError where the disk is full)."""
        self._raw.write(piece)
        if self._undoing is not None:
            self._undoing.feed(piece)

    @property
    def cut(self) -> str:
        """The stop that the decoded body has run into, if it has: nothing more need come."""
        return self._undoing.cut if self._undoing is not None else ""

    def take(self, *, whole: bool) -> tuple[Body, Decoded | None]:
        """The body as it came, and what its content coding came to where that could be undone."""
        return self._raw.take(), self._undoing.end(whole=whole) if self._undoing is not None else None
