"""Receipts: how a remote connector learns that everything an item caused is safe, without any component helping.

A remote receiver gives each batch a receipt. Every item that is derived from it, in any component of the process,
*holds* the receipt until it is handled in turn; when nothing holds it any more, its sender is told.
Inside one process the lineage travels in a context variable, so a filter's outputs inherit it by being sent while
the input is handled. In a process without remote inputs there are no receipts, and this costs one look-up a send.
"""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from itertools import groupby


class Receipt:
    """Counts who still needs it, and calls `done` once when the last one lets go.

    Whoever makes a receipt holds it once.
    """

    __slots__ = ("_done", "_holders")

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._holders = 1

    def __repr__(self) -> str:
        return f"<Receipt held {self._holders} times>"

    def hold(self, times: int = 1) -> None:
        """One more holder, or several."""
        self._holders += times

    def release(self, times: int = 1) -> None:
        """One holder less, or several; the last one completes the receipt.

        A task that outlives the handling of its item may hold the receipt again when it is too late: that is harmless.
        """
        self._holders -= times
        if self._holders == 0:
            done, self._done = self._done, _nothing
            done()


def _nothing() -> None:
    """What a completed receipt does when it is completed once more."""


def joint(receipts: Iterable[Receipt | None]) -> Receipt | None:
    """One receipt for a batch that is handled as a whole: it releases each of `receipts` once when it completes."""
    parents = [receipt for receipt in receipts if receipt is not None]
    if not parents:
        return None

    def release_all() -> None:
        for parent in parents:
            parent.release()

    return Receipt(release_all)


def runs(receipts: Iterable[Receipt | None] | None) -> Iterator[tuple[Receipt, int]]:
    """Each receipt with the number of items in a row that have it: a frame's thousand items are one release."""
    for receipt, run in groupby(receipts or ()):
        if receipt is not None:
            yield receipt, len(list(run))


#: What the code that runs now is handling; outputs sent meanwhile inherit it.
current: ContextVar[Receipt | None] = ContextVar("gossamer_receipt", default=None)
