"""Connectors within one process: `local:` and `priority:FIELD`, bounded queues that the event loop alone guards, and `fused:`,
which calls its consumer in place, in the producer's own task.

The three gates of Hunyadi 2007, section 4.4 (producer mutex, free slots, critical section) become two: producers take turns
while one of them is suspended, so that a bulk put stays contiguous, and they wait for free slots. The third is the
event loop: between two awaits nothing else runs.

`priority:FIELD` differs in its buffer alone, as a connector of one's own usually does: items leave in the order of one of their
fields, lowest first, and equal items in the order of arrival.

`fused:` saves the queue and the task switch where an arrow costs more than it gives. Handing items over is one call: the
producer's :meth:`~gossamer.engine.handling.Handling.perform` awaits the consumer's. Back-pressure is that call. The consumer's
gate, failures and counters, and the connector's figures are those of any other arrow. There is one consumer only, a
filter or a consumer.
"""

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from gossamer.engine.connector import DEFAULT_CAPACITY, Connector, Flow, Receipts, Retired, Statistics, Waiters
from gossamer.engine.errors import ConnectorError, EndOfItems, WiringError
from gossamer.engine.gate import Receipt
from gossamer.engine.handling import Handling

T = TypeVar("T")


class Buffer(Protocol[T]):
    """Keeps items that wait, and decides the order in which they leave: usually all that a connector of one's own needs."""

    def __len__(self) -> int: ...

    def put(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Keep items, all with this receipt."""

    def get(self, limit: int) -> tuple[list[T], Receipts]:
        """Remove up to `limit` items."""


class FifoBuffer(Generic[T]):
    """First in, first out. Receipts are kept only from the first one on: most graphs have none."""

    __slots__ = ("_items", "_receipts")

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._receipts: deque[Receipt | None] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, items: Sequence[T], receipt: Receipt | None) -> None:
        if receipt is not None or self._receipts is not None:
            if self._receipts is None:
                self._receipts = deque([None] * len(self._items))
            if receipt is not None:
                receipt.hold(len(items))
            self._receipts.extend([receipt] * len(items))
        self._items.extend(items)

    def get(self, limit: int) -> tuple[list[T], Receipts]:
        items, receipts = self._items, self._receipts
        if limit == 1 and receipts is None:
            return [items.popleft()], None
        count = len(items)
        if count <= limit:
            taken = list(items)
            items.clear()
        else:
            count = limit
            taken = [items.popleft() for _ in range(count)]
        if receipts is None:
            return taken, None
        return taken, [receipts.popleft() for _ in range(count)]


class LocalConnector(Connector[T]):
    """A bounded queue in this process."""

    def __init__(self, name: str, item_type: type[T], capacity: int = DEFAULT_CAPACITY) -> None:
        super().__init__(name, item_type, capacity)
        self._buffer: Buffer[T] = self.make_buffer()
        self._consumers: deque[tuple[asyncio.Future[None], int]] = deque()
        """The consumer that waits for items, and how many it takes at once."""
        self._expected = 0
        """Items that consumers can take who are woken and have not looked yet."""
        self._turns: deque[asyncio.Future[None]] = deque()
        self._rooms: deque[asyncio.Future[None]] = deque()
        self._idlers = Waiters()
        self._waiting = 0
        self._sending = False
        self._ended = False
        self._retired = False
        self._failure: ConnectorError | None = None
        self._passed = 0
        self._peak = 0
        self._stalled = 0.0

    def make_buffer(self) -> Buffer[T]:
        return FifoBuffer()

    # -- producing

    def offer(self, items: Sequence[T], receipt: Receipt | None) -> bool:
        """Accept all items now if they fit and no other producer is in the middle of a bulk."""
        if not self.usual.issuperset(map(type, items)):
            self.check(items)
        waiting = self._waiting + len(items)
        if self._sending or waiting > self.capacity:
            return False
        self._buffer.put(items, receipt)
        self._waiting = waiting
        if waiting > self._peak:
            self._peak = waiting
        if self._consumers:
            self._wake_consumers()
        return True

    async def send(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Accept items in pieces as room comes free; no other producer's come between."""
        self.check(items)
        began = time.monotonic()
        if self._sending:
            turn = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            try:
                await turn
                self._check_failure()
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._pass_turn()
                raise
        self._sending = True
        try:
            start = 0
            while start < len(items):
                free = self.capacity - self._waiting
                if free <= 0:
                    await self._wait_in(self._rooms)
                    continue
                piece = items[start : start + free]
                self._buffer.put(piece, receipt)
                start += len(piece)
                self._waiting += len(piece)
                self._peak = max(self._peak, self._waiting)
                self._wake_consumers()
        finally:
            self._stalled += time.monotonic() - began
            self._pass_turn()

    async def adopt(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Accept all, also beyond the capacity: no other producer can send here yet."""
        self._buffer.put(items, receipt)
        self._waiting += len(items)
        self._peak = max(self._peak, self._waiting)
        self._wake_consumers()

    async def room(self) -> int:
        while self._sending or self._waiting >= self.capacity:
            await self._wait_in(self._rooms)
        return self.capacity - self._waiting

    def _pass_turn(self) -> None:
        """Hand the mutex to the next producer in line, or free it."""
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._sending = False
        self._wake(self._rooms)
        self._tell_idlers()
        if self._ended:
            self._wake_consumers(all_of_them=True)

    # -- consuming

    def poll(self, limit: int) -> tuple[list[T], Receipts]:
        if not self._waiting:
            return [], None
        taken = self._buffer.get(limit)
        count = len(taken[0])
        self._waiting -= count
        self._passed += count
        if self._rooms:
            self._wake(self._rooms)
        if self._idlers.waiting:
            self._tell_idlers()
        return taken

    async def take(self, limit: int) -> tuple[list[T], Receipts]:
        while not self._waiting:
            if self._ended and not self._sending:
                raise EndOfItems(f"connector {self.name!r} has ended")
            if self._retired:
                raise Retired
            if self._failure is not None:
                raise self._failure
            arrival = asyncio.get_running_loop().create_future()
            self._consumers.append((arrival, limit))
            try:
                await arrival
            except asyncio.CancelledError:
                if arrival.done() and not arrival.cancelled():
                    self._expected -= limit
                    self._wake_consumers()
                raise
            self._expected -= limit
        return self.poll(limit)

    def retire(self) -> None:
        self._retired = True
        self._wake_consumers(all_of_them=True)

    def end(self) -> None:
        self._ended = True
        self._wake_consumers(all_of_them=True)

    def fail(self, error: ConnectorError) -> None:
        """Raise `error` in all that wait here now or later: the other side of a remote connector may refuse it for good."""
        self._failure = error
        self._wake_consumers(all_of_them=True)
        self._wake(self._turns)
        self._wake(self._rooms)
        self._idlers.changed()

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # -- waiting and waking

    async def idle(self) -> None:
        def is_idle() -> bool:
            is_busy = self._sending or bool(self._waiting)
            if is_busy:
                self._check_failure()
            return not is_busy

        await self._idlers.until(is_idle)

    def _wake_consumers(self, *, all_of_them: bool = False) -> None:
        """Wake as many as can take the items that wait, and no more: the others would wake for nothing."""
        while self._consumers and (all_of_them or self._expected < self._waiting):
            arrival, limit = self._consumers.popleft()
            if not arrival.done():
                arrival.set_result(None)
                self._expected += limit

    async def _wait_in(self, line: deque[asyncio.Future[None]]) -> None:
        self._check_failure()
        future = asyncio.get_running_loop().create_future()
        line.append(future)
        await future
        self._check_failure()

    @staticmethod
    def _wake(line: deque[asyncio.Future[None]]) -> None:
        while line:
            future = line.popleft()
            if not future.done():
                future.set_result(None)

    def _tell_idlers(self) -> None:
        if not self._sending and not self._waiting:
            self._idlers.changed()

    def statistics(self) -> Statistics:
        return Statistics(self._passed, self._waiting, self._peak, self._stalled, self.capacity)


# -- `priority:FIELD`


class PriorityBuffer(Generic[T]):
    """A heap by the value of one field."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._heap: list[tuple[Any, int, T, Receipt | None]] = []
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, items: Sequence[T], receipt: Receipt | None) -> None:
        if receipt is not None:
            receipt.hold(len(items))
        for item in items:
            heapq.heappush(self._heap, (getattr(item, self._field), next(self._arrivals), item, receipt))

    def get(self, limit: int) -> tuple[list[T], Receipts]:
        entries = [heapq.heappop(self._heap) for _ in range(min(limit, len(self._heap)))]
        receipts = [entry[3] for entry in entries]
        return [entry[2] for entry in entries], receipts if any(receipts) else None


class PriorityConnector(LocalConnector[T]):
    """A bounded queue in this process that serves the lowest value of `field` first."""

    def __init__(self, name: str, item_type: type[T], capacity: int = DEFAULT_CAPACITY, *, field: str) -> None:
        if field not in getattr(item_type, "__struct_fields__", ()):
            known = ", ".join(getattr(item_type, "__struct_fields__", ())) or "none"
            raise WiringError(
                f"connector {name!r}: items of type {item_type.__name__} have no field {field!r}; known: {known}"
            )
        self._field = field
        super().__init__(name, item_type, capacity)

    def make_buffer(self) -> Buffer[T]:
        return PriorityBuffer(self._field)


# -- `fused:`


class FusedConnector(Connector[T]):
    """Hands items straight to the consumer's method."""

    def __init__(self, name: str, item_type: type[T], capacity: int = 1) -> None:
        super().__init__(name, item_type, capacity)
        self._handling: Handling | None = None
        self._flow = Flow()
        self._over = asyncio.Event()
        self._retired = False

    def attach(self, handling: Handling) -> None:
        """Name the one consumer. Raises WiringError: there is one already."""
        if self.call is not None:
            raise WiringError(f"connector {self.name!r} is fused and takes one consumer; make it local: for several")
        handling.flow = self._flow
        self._handling, self.call = handling, handling.perform

    def detach(self) -> None:
        """Forget the consumer: another one takes its place."""
        if self._handling is not None:
            self._handling.flow = Flow()
        self._handling = self.call = None

    def offer(self, items: Sequence[T], receipt: Receipt | None) -> bool:
        """Never: the consumer may have to wait, so the producer has to."""
        return False

    async def send(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Call the consumer. The receipt needs no holder: the items are handled before this returns."""
        self.check(items)
        if self.call is None:
            raise WiringError(f"connector {self.name!r} is fused, but nothing consumes from it")
        await self.call(items)

    def poll(self, limit: int) -> tuple[list[T], Receipts]:
        return [], None

    async def take(self, limit: int) -> tuple[list[T], Receipts]:
        """Wait for the end: items come by the handler, not by this."""
        await self._over.wait()
        if self._retired:
            raise Retired
        await self.idle()
        raise EndOfItems(f"connector {self.name!r} has ended")

    async def room(self) -> int:
        return self.capacity

    async def idle(self) -> None:
        await self._flow.idlers.until(lambda: not self._flow.inside)

    def retire(self) -> None:
        self._retired = True
        self._over.set()

    def end(self) -> None:
        self._over.set()

    def statistics(self) -> Statistics:
        return Statistics(self._flow.passed, self._flow.inside, self._flow.peak, 0.0, self.capacity)
