"""`fused:`, the connector that calls its consumer in place, in the producer's own task.

Place in the flow: it saves the queue and the task switch where an arrow costs more than it gives. Handing items over is one
call: :meth:`FusedConnector.send` is awaited by the producer's handler and awaits the consumer's. Back-pressure is that call.

Promises: the consumer's gate, failures and counters, and the connector's figures are those of any other arrow. There is one
consumer only, a filter or a consumer.
"""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from gossamer.engine.connector import Connector, Receipts, Retired, Statistics
from gossamer.engine.errors import EndOfItems, WiringError
from gossamer.engine.gate import Receipt
from gossamer.engine.handling import Handler, ItemFailed
from gossamer.engine.performer import Performer

T = TypeVar("T")


class FusedConnector(Connector[T]):
    """Hands items straight to the consumer's handler."""

    def __init__(self, name: str, item_type: type[T], capacity: int = 1) -> None:
        super().__init__(name, item_type, capacity)
        self._consumer: tuple[Performer, Handler] | None = None
        self._over = asyncio.Event()
        self._retired = False
        self._passed = 0
        self._inside = 0
        self._peak = 0
        self._idlers: list[asyncio.Future[None]] = []

    def attach(self, performer: Performer, handle: Handler) -> None:
        """Name the one consumer.

        Raises:
            WiringError: there is one already.
        """
        if self._consumer is not None:
            raise WiringError(f"connector {self.name!r} is fused and takes one consumer; make it local: for several")
        self._consumer = performer, handle

    def detach(self) -> None:
        """Forget the consumer: another one takes its place."""
        self._consumer = None

    def offer(self, items: Sequence[T], receipt: Receipt | None) -> bool:
        """Never: the consumer may have to wait, so the producer has to."""
        return False

    async def send(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Call the consumer. The receipt needs no holder: the items are handled before this returns."""
        self.check(items)
        if self._consumer is None:
            raise WiringError(f"connector {self.name!r} is fused, but nothing consumes from it")
        performer, handle = self._consumer
        gate, batch, count = performer.gate, list(items), len(items)
        self._inside += count
        if self._inside > self._peak:
            self._peak = self._inside
        try:
            number = gate.try_enter() or await gate.enter()
            try:
                await handle(batch)
            except ItemFailed as failure:
                await performer.recover(handle, batch, failure)
            finally:
                gate.leave(number)
        finally:
            self._inside -= count
            if not self._inside and self._idlers:
                self._tell_idlers()
        performer.component.metrics.counters["items"] += count
        self._passed += count

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
        """As many as the producer likes."""
        return self.capacity

    async def idle(self) -> None:
        """Wait until no call is under way."""
        while self._inside:
            future = asyncio.get_running_loop().create_future()
            self._idlers.append(future)
            await future

    def _tell_idlers(self) -> None:
        idlers, self._idlers = self._idlers, []
        for future in idlers:
            if not future.done():
                future.set_result(None)

    def retire(self) -> None:
        """Send the consumer to the successor."""
        self._retired = True
        self._over.set()

    def end(self) -> None:
        self._over.set()

    def statistics(self) -> Statistics:
        """The figures as they stand; what is being handled counts as waiting."""
        return Statistics(self._passed, self._inside, self._peak, 0.0, self.capacity)
