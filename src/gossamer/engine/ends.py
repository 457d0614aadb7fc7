"""The two ends by which components hold a connector; they never see the connector itself.

Behind the same end the connector may be exchanged while items flow (:mod:`gossamer.engine.changing`): a task that waits here is
moved to the new one, and nothing in the component notices.

A unit declares on its class the ends that it reads and writes, and the providers that it uses.

::

    class Links(Filter[LinksSheet]):
        inbox: In[Visit]                      # a typed input
        outbox: Out[Visit]                    # a typed output
        resolver: Uses[Resolver]              # a provider, by interface; the attribute's name is the role
        filters: UsesMany[UrlFilter]          # providers under keys: `filters = {follow = ["scope", "traps"]}`

The framework reads the annotations (:func:`declared`), and sets the attributes when the wiring is bound. A type checker
sees `Uses[Resolver]` as `Resolver` itself: a unit cannot tell which implementation, or how many wrapped ones, stand behind.
"""

import asyncio
import itertools
import operator
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from gossamer.engine.connector import DEFAULT_LIMIT, Connector, Receipts, Retired
from gossamer.engine.errors import Closed, EndOfItems, WiringError
from gossamer.engine.gate import Receipt, current, runs

T = TypeVar("T")


class Out(Generic[T]):
    """The producing end.

    Sync: :meth:`try_send`. Suspending: :meth:`send`, :meth:`send_many`. In the background: :meth:`send_soon`.
    """

    __slots__ = ("_clones", "_held", "_open", "connector", "is_free", "pending", "role")

    def __init__(self, role: str, connector: Connector[T]) -> None:
        self.role = role
        self.connector = connector
        """The connector behind this end now."""
        self._held: asyncio.Event | None = None
        self._open = self.is_free = True
        """It is not closed, and not held."""
        self.pending: list[tuple[T, Receipt | None]] = []
        """Items that wait for :meth:`flush`."""
        self._clones: list[Out[T]] = []
        connector.add_producer()

    def __repr__(self) -> str:
        return f"<Out {self.role} to {self.connector!r}>"

    def try_send(self, item: T) -> bool:
        return self._held is None and self._usable().offer((item,), current.get())

    async def send(self, item: T) -> None:
        if not (self.is_free and self.connector.offer((item,), current.get())):
            await self._send_slowly((item,))

    async def send_many(self, items: Sequence[T]) -> None:
        """Send items so that no other producer's come between, suspended while there is no room."""
        if items and not (self.is_free and self.connector.offer(items, current.get())):
            await self._send_slowly(items)

    def send_soon(self, item: T) -> "asyncio.Task[None]":
        """Send in the background; the task is done when the item was accepted."""
        sending = asyncio.ensure_future(self.send(item))
        receipt = current.get()
        if receipt is not None:
            # The item in hand may be finished before the new one is accepted: until then the task holds its receipt.
            receipt.hold()
            sending.add_done_callback(lambda task: None if task.cancelled() or task.exception() else receipt.release())
        return sending

    def emit(self, item: T) -> None:
        """Put by for :meth:`flush`: how plain (not async) component code sends."""
        receipt = current.get()
        if receipt is not None:
            # The first flush sends this too, perhaps that of another worker while it handles something else.
            receipt.hold()
        self.pending.append((item, receipt))

    def take_back(self, keep: int) -> None:
        """Forget what was put by after the first `keep` items: their handler raised, and will be asked again."""
        for _, receipt in self.pending[keep:]:
            if receipt is not None:
                receipt.release()
        del self.pending[keep:]

    async def flush(self) -> None:
        """Send what was put by, as one bulk (one for each receipt)."""
        if not self.pending:
            return
        pending, self.pending = self.pending, []
        for receipt, group in itertools.groupby(pending, key=operator.itemgetter(1)):
            items = [item for item, _ in group]
            token = current.set(receipt)
            try:
                await self.send_many(items)
            finally:
                current.reset(token)
            if receipt is not None:
                receipt.release(len(items))

    async def room(self) -> int:
        """Wait until something can be sent; how many items, at least one."""
        while not self.is_free:
            self._usable()
            if self._held is not None:
                await self._held.wait()
        return await self.connector.room()

    def clone(self) -> "Out[T]":
        """Another producing end of the same connector, to be closed by its own owner."""
        other = Out(self.role, self._usable())
        other._held, other.is_free = self._held, self.is_free
        self._clones = [*(clone for clone in self._clones if clone._open), other]
        return other

    def close(self) -> None:
        if self._open:
            self._open = self.is_free = False
            self.connector.remove_producer()

    def _usable(self) -> Connector[T]:
        if not self._open:
            raise Closed(f"output {self.role!r} was closed; nothing can be sent through it any more")
        return self.connector

    async def _send_slowly(self, items: Sequence[T]) -> None:
        while self._held is not None:
            await self._held.wait()
        await self._usable().send(items, current.get())

    def hold(self) -> None:
        self._held, self.is_free = asyncio.Event(), False
        for clone in self._clones:
            clone.hold()

    def release(self) -> None:
        if self._held is not None:
            self._held.set()
            self._held, self.is_free = None, self._open
        for clone in self._clones:
            clone.release()

    def rebind(self, connector: Connector[T]) -> None:
        """Put another connector behind this end and its clones. The caller tells the old one."""
        if self._open:
            connector.add_producer()
        self.connector = connector
        for clone in self._clones:
            clone.rebind(connector)

    @property
    def open_ends(self) -> int:
        return self._open + sum(clone.open_ends for clone in self._clones)


class In(Generic[T]):
    """The consuming end.

    Sync: :meth:`try_receive`. Suspending: :meth:`receive`, :meth:`receive_many`. In the background: :meth:`receive_soon`.
    Asking for the next items acknowledges the last: until then they count as being handled.
    """

    __slots__ = ("_receipts", "connector", "role")

    def __init__(self, role: str, connector: Connector[T]) -> None:
        self.role = role
        self.connector = connector
        """The connector behind this end now."""
        self._receipts: Receipts = None

    def __repr__(self) -> str:
        return f"<In {self.role} from {self.connector!r}>"

    def try_receive(self) -> T | None:
        self.acknowledge()
        items, self._receipts = self.connector.poll(1)
        return items[0] if items else None

    async def receive(self) -> T:
        """One item, suspended while there is none. Raises EndOfItems: there will be none any more."""
        return (await self.receive_many(1))[0]

    async def receive_many(self, limit: int = DEFAULT_LIMIT) -> list[T]:
        """Between one and `limit` items, suspended while there is none. Raises EndOfItems: there will be none any more."""
        if self._receipts is not None:
            self.acknowledge()
        items, self._receipts = self.connector.poll(limit)
        if not items:
            items, self._receipts = await self.take(limit)
        return items

    def receive_soon(self, callback: Callable[[T], object]) -> "asyncio.Task[T]":
        """Receive one item in the background and call back with it (`ConsumeAsynchronously` of Hunyadi 2007, section 4.4)."""

        def hand_over(task: "asyncio.Task[T]") -> None:
            if not task.cancelled() and task.exception() is None:
                callback(task.result())

        waiting = asyncio.ensure_future(self.receive())
        waiting.add_done_callback(hand_over)
        return waiting

    def acknowledge(self) -> None:
        """Tell that the items received last are handled and their effects safe. The next receive calls it if nothing did before."""
        receipts, self._receipts = self._receipts, None
        for receipt, times in runs(receipts):
            receipt.release(times)

    def position(self) -> dict[str, int]:
        return self.connector.position()

    def resume(self, positions: Mapping[str, int]) -> None:
        self.connector.resume(positions)

    async def take(self, limit: int) -> tuple[list[T], Receipts]:
        """Items with their receipts, for the framework, which has to release these."""
        while True:
            connector = self.connector
            try:
                return await connector.take(limit)
            except Retired:
                if connector is self.connector:
                    raise EndOfItems(f"connector {connector.name!r} was removed") from None
            except EndOfItems:
                # The end of an exchanged connector is not the end: items that waited there have gone over into the new one.
                if connector is self.connector:
                    raise

    def rebind(self, connector: Connector[T]) -> None:
        """Put another connector behind this end; `retire` of the old one moves those that wait there."""
        self.connector = connector


_ONE = "gossamer.engine: one provider"
_MANY = "gossamer.engine: providers by key"

Uses = Annotated[T, _ONE]
UsesMany = Annotated[Mapping[str, Sequence[T]], _MANY]


class Declared(msgspec.Struct, frozen=True):
    """Ports and providers that a unit's class declares, by attribute name (the role)."""

    inputs: dict[str, Any]
    """Item type of each input."""
    outputs: dict[str, Any]
    uses: dict[str, Any]
    """Interface of each single provider."""
    uses_many: dict[str, Any]
    """Interface of each keyed set of providers."""


def declared(unit: type) -> Declared:
    """Read the annotations of a unit's class, inherited ones included. Raises WiringError: they name something that is not
    there at run time."""
    return _declared(unit)


@lru_cache(maxsize=256)  # a plan asks for each class some ten times, and evaluating its annotations takes 0.1 ms
def _declared(unit: type) -> Declared:
    found = Declared({}, {}, {}, {})
    try:
        hints = typing.get_type_hints(unit, include_extras=True)
    except NameError as error:
        raise WiringError(f"class {unit.__name__}: {error} in its annotations; import it at run time, too") from None
    for role, hint in hints.items():
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is In:
            found.inputs[role] = arguments[0]
        elif origin is Out:
            found.outputs[role] = arguments[0]
        elif _ONE in getattr(hint, "__metadata__", ()):
            found.uses[role] = arguments[0]
        elif _MANY in getattr(hint, "__metadata__", ()):
            found.uses_many[role] = typing.get_args(typing.get_args(arguments[0])[1])[0]
    return found


__all__ = ["Declared", "In", "Out", "Uses", "UsesMany", "declared"]
