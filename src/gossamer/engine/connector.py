"""Connectors: what items pass through on their way from component to component (Hunyadi 2007, section 4.4).

A connector is typed, bounded and closable, takes many producers and consumers, and reports itself. Components never see
it: they hold one of its ends (:mod:`gossamer.engine.ends`), and cannot tell a queue in memory from a link to another machine.

Promises of every connector (suite: `gossamer.testing.check_connector`):

1. Each item that is sent is received once, in the order of sending where there is one producer and one consumer.
2. A bulk put stays contiguous: no other producer's items come between.
3. At most `capacity` items wait; a producer that finds no room is suspended until there is some.
4. An item of the wrong type is refused before it enters, and the connector is unharmed.
5. When all producers have closed and everything is received, consumers get :class:`EndOfItems`.
6. Cancelling a waiting producer or consumer loses nothing that was accepted.
"""

import asyncio
import functools
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec

from gossamer.engine.errors import WiringError, WrongItem
from gossamer.engine.gate import Receipt

T = TypeVar("T")

#: Items that wait at most, unless the wiring says otherwise: enough to batch, too few to hide a slow consumer.
DEFAULT_CAPACITY = 256

#: Items that one `receive_many` takes at most, unless it says otherwise.
DEFAULT_LIMIT = 100

Side = Literal["both", "send", "receive"]
"""Which ends of a connector are in this process."""

#: The name of a process that has not been given one: enough where there is one sender.
DEFAULT_SLOT = "main"

Receipts = Sequence[Receipt | None] | None
"""The receipt of each received item, or None where none of them has one."""


class Statistics(msgspec.Struct, frozen=True):
    passed: int = 0
    """Items handed to consumers."""
    waiting: int = 0
    """Items inside now."""
    peak: int = 0
    """The most that ever waited."""
    stalled: float = 0.0
    """Seconds that producers were suspended for want of room, in all."""
    capacity: int = 0
    """The most that may wait. A remote connector's counts both queues and what is under way."""
    unacknowledged: int = 0
    """Items that left this process and are not known to be safe on the other side; remote connectors only."""
    repeated: int = 0
    """Items that came a second time over a mended link and were dropped; remote connectors only."""

    def after(self, earlier: "Statistics") -> "Statistics":
        return msgspec.structs.replace(
            self,
            passed=self.passed + earlier.passed,
            peak=max(self.peak, earlier.peak),
            stalled=self.stalled + earlier.stalled,
            repeated=self.repeated + earlier.repeated,
        )


class Waiters:
    """Tasks that wait until a condition holds. A method that changes something tells them, where some are `waiting`."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []

    def changed(self) -> None:
        waiting, self.waiting = self.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when the condition holds, or raise its exception."""
        while not holds():
            future = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future


class Flow:
    """Items that a method handles in place, and who waits until there are none."""

    __slots__ = ("idlers", "inside", "passed", "peak")

    def __init__(self) -> None:
        self.inside = self.peak = self.passed = 0
        self.idlers = Waiters()


class Retired(Exception):
    """Internal: the connector under a waiting end was exchanged; the end tries again on the new one."""


def class_of(item_type: Any) -> type:
    """The class that items of this type are instances of. Raises WiringError: the type is no class, or msgspec has no codec
    for it: every item type must be able to cross a process, also on `local:` (row C2)."""
    bare = typing.get_origin(item_type) or item_type
    if not isinstance(bare, type) or bare in (types.UnionType, Any):
        raise WiringError(f"{item_type!r} cannot be an item type: name one class, or a container of classes")
    is_own = bare is item_type and bare.__module__.startswith(_OWN)
    if not is_own and (why := without_codec(item_type)):
        raise WiringError(f"items of type {bare.__name__} have no codec, so they could not cross a process: {why}")
    return bare


#: Item types of this package are looked through by a test: it takes 7 ms, a fortieth of a start.
_OWN = f"{__name__.partition('.')[0]}."


@functools.lru_cache(maxsize=256)
def without_codec(item_type: Any) -> str:
    """Why items of this type cannot be coded; empty where they can. Kept, because a graph asks for each arrow several times."""
    try:
        msgspec.msgpack.Decoder(item_type)
        foreign = next(_foreign(msgspec.inspect.type_info(item_type), set()), None)
    except TypeError as error:
        return str(error)
    return f"{foreign.__name__} is neither plain data nor a msgspec struct" if foreign else ""


def crosses(kind: type) -> bool:
    """A class that msgspec does not know, and that says itself how it crosses a process (:mod:`.remote.frames`)."""
    return hasattr(kind, "to_parcel") and hasattr(kind, "from_parcel")


def _foreign(info: object, seen: set[type]) -> Iterator[type]:
    """Classes within a type that msgspec knows nothing of. It accepts them, and fails when the first item comes."""
    if isinstance(info, msgspec.inspect.CustomType) and info.cls is not object and not crosses(info.cls):
        yield info.cls
    if not isinstance(info, msgspec.Struct) or getattr(info, "cls", None) in seen:
        return
    if hasattr(info, "cls"):
        seen.add(info.cls)
    for name in info.__struct_fields__:
        part = getattr(info, name)
        for inner in part if isinstance(part, tuple) else (part,):
            yield from _foreign(inner, seen)


class Connector(ABC, Generic[T]):
    """The base of all connectors, as their ends and the graph see them. `name` is the wiring's."""

    call: Callable[[Sequence[Any]], Awaitable[None]] | None = None
    """Calls the consumer in place with checked items, where sending is that; :meth:`offer` then never accepts."""

    def __init__(self, name: str, item_type: type[T], capacity: int = DEFAULT_CAPACITY) -> None:
        if capacity < 1:
            raise WiringError(f"connector {name!r}: capacity {capacity} is less than 1")
        self.name = name
        self.item_type = item_type
        self.capacity = capacity
        self.item_class = class_of(item_type)
        self.usual = frozenset((self.item_class,))
        """The class of nearly all items: :meth:`check` is asked of the others."""
        self.producers = 0
        self.ended = False
        """Every producer end in this process was closed; nothing more can come from here."""

    def __repr__(self) -> str:
        seen = self.statistics()
        return f"<{type(self).__name__} {self.name}: {seen.waiting} of {self.capacity} waiting, {seen.passed} passed>"

    async def start(self) -> None:
        """Open what the connector needs."""

    async def stop(self) -> None:
        """Release it. Items that still wait are dropped by `local:` and kept by a journal."""

    @abstractmethod
    def offer(self, items: Sequence[T], receipt: Receipt | None) -> bool:
        """Accept all items now, contiguously, or none: True if they were accepted. Never waits."""

    @abstractmethod
    async def send(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Accept all items, contiguously, as room allows."""

    async def adopt(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Accept what waited in a predecessor, in an exchange. Where it can, a connector does so beyond its capacity:
        these items were accepted once, and the consumer that could make room may be suspended."""
        await self.send(items, receipt)

    @abstractmethod
    def poll(self, limit: int) -> tuple[list[T], Receipts]:
        """Up to `limit` items that are there now, perhaps none. Never waits."""

    @abstractmethod
    async def take(self, limit: int) -> tuple[list[T], Receipts]:
        """Between one and `limit` items. Raises EndOfItems: there will be none any more."""

    @abstractmethod
    async def room(self) -> int:
        """Wait until something can be sent; how many items, at least one."""

    @abstractmethod
    async def idle(self) -> None:
        """Return when nothing waits inside and no producer is suspended here."""

    @abstractmethod
    def retire(self) -> None:
        """Wake consumers that wait here with :class:`Retired`."""

    @abstractmethod
    def end(self) -> None:
        """All producers have closed: consumers end when everything is received."""

    @abstractmethod
    def statistics(self) -> Statistics:
        """The figures as they stand."""

    def position(self) -> dict[str, int]:
        """How far each remote sender's items have been handed to consumers, by stream; empty without remote senders.

        A consumer that keeps this in the same transaction as what it made of the items, and gives it back to
        :meth:`resume` when it starts again, has every item exactly once. It must be the connector's only consumer.
        """
        return {}

    def resume(self, positions: Mapping[str, int]) -> None:
        """Take the :meth:`position` that a consumer has kept, when it starts again and before it receives anything."""

    def add_producer(self) -> None:
        self.producers += 1

    def remove_producer(self) -> None:
        """A producer end was closed; with the last one the stream ends."""
        self.producers -= 1
        if self.producers == 0:
            self.end_here()

    def end_here(self) -> None:
        """Nothing more can come from this process: the last producer end was closed, here or at a predecessor."""
        self.ended = True
        self.end()

    def check(self, items: Sequence[Any]) -> None:
        """Refuse what is not of this connector's type. Raises WrongItem: names the connector, what came and what would be
        right."""
        expected = self.item_class
        for item in items:
            if not isinstance(item, expected):
                raise WrongItem(
                    f"connector {self.name!r} carries {expected.__name__}, not {type(item).__name__}: {item!r:.100}"
                )
