"""The gate of a component, and the receipts of the items that pass it.

Place in the flow: every piece of work enters through the :class:`Gate` of its runner. So a pool is a number of places,
suspension is a shut gate, an exchange waits for a turnover, and a restart waits until it is alone. It knows nothing of items.

A :class:`Receipt` tells a remote sender that everything an item caused is safe, without help of any component. A remote
receiver gives each batch one; every item that is derived from it, in any component of the process, *holds* it until that item
is handled in turn, and the last holder completes it. The lineage travels in a context variable, so a filter's outputs inherit
it by being sent while the input is handled. A process without remote inputs has no receipts, and pays one look-up a send.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from itertools import groupby
from math import inf


class Crowd:
    """Those who entered a gate between two turnovers."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Gate:
    """Lets work in, in the order of asking. Handlers enter and leave by its fields, without a call, where nothing is in the way."""

    def __init__(self, places: int | None = None) -> None:
        """`places`: how many may be inside at once; None for any number."""
        self.suspended = self._repairing = False
        self.shut = False
        """It lets nothing in now."""
        self.free: float = inf if places is None else places
        """Places to be had; below 0, so many of those inside give theirs up when they leave."""
        self.crowd = Crowd()
        """Those who enter now are counted here until they leave."""
        self.is_watched = False
        """A holder that leaves has to call :meth:`left`: a place, a turnover or a repair is waited for."""
        self._places = self.free
        self._queue: deque[asyncio.Future[None]] = deque()
        self._opened = asyncio.Event()
        self._opened.set()
        self._earlier: deque[Crowd] = deque()
        """Crowds that a turnover waits for, the oldest first."""
        self._turnovers: list[tuple[Crowd, asyncio.Future[None]]] = []
        self._awaiting = 0
        self._moved = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Gate: {'suspended' if self.suspended else 'open'}, {self.inside} inside>"

    @property
    def inside(self) -> int:
        return self.crowd.count + sum(crowd.count for crowd in self._earlier)

    def try_enter(self) -> Crowd | None:
        """Enter as :meth:`enter` does if that takes no waiting; None if it does."""
        if self.shut or self.free < 1:
            return None
        self.free -= 1
        self.crowd.count += 1
        return self.crowd

    async def enter(self) -> Crowd:
        """Wait for a place and for the gate to be open; the crowd is for :meth:`leave`."""
        if self.free >= 1:
            self.free -= 1
        else:
            place = asyncio.get_running_loop().create_future()
            self._queue.append(place)
            self.is_watched = True
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._pass_place_on()
                raise
        if self.shut:
            try:
                await self.opened()
            except BaseException:
                self._pass_place_on()
                raise
        self.crowd.count += 1
        return self.crowd

    def leave(self, crowd: Crowd) -> None:
        """End the work that :meth:`enter` let in."""
        crowd.count -= 1
        if self.is_watched:
            self.left()
        else:
            self.free += 1

    def left(self) -> None:
        """One of a crowd has left it: its place is free, and others may have waited for that."""
        self._pass_place_on()
        self._moved.set()
        while self._earlier and not self._earlier[0].count:
            self._earlier.popleft()
        for crowd, future in self._turnovers:
            if crowd not in self._earlier and not future.done():
                future.set_result(None)
        self._turnovers = [waiting for waiting in self._turnovers if waiting[0] in self._earlier]
        self.is_watched = bool(self._queue or self._repairing or self._turnovers)

    def resize(self, places: int) -> None:
        """Let so many in at once from now on. None is sent away: places that are too many go as those inside leave."""
        more, self._places = int(places - self._places), places
        if more < 0:
            self.free += more
        for _ in range(more):
            self._pass_place_on()

    async def opened(self) -> None:
        while self.shut:
            await self._opened.wait()

    def _pass_place_on(self) -> None:
        while self._queue and self.free >= 0:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.free += 1

    # -- suspension and turnover

    async def suspend(self) -> None:
        self.suspended = self.shut = True
        self._opened.clear()
        await self.turnover()

    def resume(self) -> None:
        self.suspended = False
        self._reopen()

    def _reopen(self) -> None:
        self.shut = self.suspended or self._repairing
        if not self.shut:
            self._opened.set()

    async def turnover(self) -> None:
        """Return when all that are inside now have gone, whatever came after them."""
        if self.crowd.count:
            self._earlier.append(self.crowd)
            self.crowd = Crowd()
        if self._earlier:
            future = asyncio.get_running_loop().create_future()
            self._turnovers.append((self._earlier[-1], future))
            self.is_watched = True
            await future

    # -- repair

    @contextmanager
    def awaiting_repair(self) -> Iterator[None]:
        """Count one that is inside as waiting for a repair, so that the repair need not wait for it."""
        self._awaiting += 1
        self._moved.set()
        try:
            yield
        finally:
            self._awaiting -= 1

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Shut the gate, and wait until all inside have gone or wait for the repair."""
        self._repairing = self.shut = self.is_watched = True
        self._opened.clear()
        try:
            while self.inside > self._awaiting:
                self._moved.clear()
                await self._moved.wait()
            yield
        finally:
            self._repairing = False
            self._reopen()


# -- receipts


class Receipt:
    """Counts its holders, and calls `done` once when the last one lets go.

    Its maker holds it once.
    """

    __slots__ = ("_done", "_holders")

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._holders = 1

    def __repr__(self) -> str:
        return f"<Receipt held {self._holders} times>"

    def hold(self, times: int = 1) -> None:
        self._holders += times

    def release(self, times: int = 1) -> None:
        """One holder less, or several; the last one completes the receipt.

        A task that outlives the handling of its item may hold the receipt again when it is too late: that is harmless.
        """
        self._holders -= times
        if self._holders == 0:
            done, self._done = self._done, lambda: None  # it may be completed once more
            done()


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


#: The receipt of the item that the running code handles; outputs sent meanwhile inherit it.
current: ContextVar[Receipt | None] = ContextVar("gossamer_receipt", default=None)
