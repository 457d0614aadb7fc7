"""`check_connector` checks the promises of :mod:`gossamer.engine.connector` for a connector of your own.

::

    @asynccontextmanager
    async def make(capacity):
        connector = MyConnector("mine", Numbered, capacity)
        await connector.start()
        yield Ends(connector, connector)
        await connector.stop()

    asyncio.run(check_connector(make))

A broken promise raises an AssertionError that names it. No check waits for a time: it looks for forbidden events while
others happen. Items are in ascending order, so that a priority connector by `number` passes as well.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

import msgspec

from gossamer.engine.connector import Connector, Statistics
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import Closed, EndOfItems, WrongItem

#: How often over a connector is filled, so that producers must be suspended.
_TIMES = 3


class Numbered(msgspec.Struct, frozen=True):
    """An item of the checks."""

    number: int
    producer: int = 0


class Ends(NamedTuple):
    """The two sides of a connector, for producers and for consumers. They are the same object unless the connector has two."""

    producing: Connector[Numbered]
    consuming: Connector[Numbered]


Make = Callable[[int], AbstractAsyncContextManager[Ends]]
"""Makes a started connector for items of :class:`Numbered` with a capacity, and stops it."""

Check = Callable[[Ends], Awaitable[None]]


async def check_connector(make: Make) -> None:
    """Run every check, each with a connector of its own.

    Raises:
        AssertionError: a promise is broken.
    """
    for check, capacity in CHECKS:
        async with make(capacity) as ends:
            await check(ends)


def _numbers(start: int, stop: int, producer: int = 0) -> list[Numbered]:
    return [Numbered(number, producer) for number in range(start, stop)]


async def _send_each(out: Out[Numbered], items: list[Numbered]) -> None:
    for item in items:
        await out.send(item)
    out.close()


async def _receive_all(end: In[Numbered], limit: int = 100) -> list[Numbered]:
    received: list[Numbered] = []
    try:
        while True:
            received += await end.receive_many(limit)
    except EndOfItems:
        return received


def _total(ends: Ends) -> int:
    if ends.producing is ends.consuming:
        return ends.producing.statistics().capacity
    return ends.producing.statistics().capacity + ends.consuming.statistics().capacity


async def check_each_once_in_order(ends: Ends) -> None:
    """Check promise 1, item by item."""
    items = _numbers(0, 500)
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    sending = asyncio.ensure_future(_send_each(out, items))
    received = [await end.receive() for _ in items]
    assert received == items, "promise 1: what is sent is received once, in order"
    await sending
    assert await _receive_all(end) == [], "promise 1: nothing is received that was not sent"


async def check_bulks_once_in_order(ends: Ends) -> None:
    """Check promise 1 in bulks: some greater than the capacity, and one that is empty."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    receiving = asyncio.ensure_future(_receive_all(end, 7))
    start = 0
    for size in (1, 0, 3, 10, 100, 1000):
        await out.send_many(_numbers(start, start + size))
        start += size
    out.close()
    assert await receiving == _numbers(0, start), "promise 1: bulks arrive once, in order"


async def check_at_most_the_limit(ends: Ends) -> None:
    """Check that a consumer gets at least one item and never more than it asked for."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    sending = asyncio.ensure_future(out.send_many(_numbers(0, 60)))
    received = 0
    while received < 60:
        batch = await end.receive_many(4)
        assert 1 <= len(batch) <= 4, "between one and `limit` items are received"
        received += len(batch)
    await sending


async def check_bulks_stay_contiguous(ends: Ends) -> None:
    """Check promise 2 with several producers whose bulks do not fit."""
    bulks = 5
    outs = [Out("out", ends.producing) for _ in range(4)]

    async def produce(out: Out[Numbered], producer: int) -> None:
        for bulk in range(bulks):
            await out.send_many([Numbered(producer * bulks + bulk, producer)] * 30)
        out.close()

    sending = [asyncio.ensure_future(produce(out, number)) for number, out in enumerate(outs)]
    received = await _receive_all(In("in", ends.consuming), 9)
    await asyncio.gather(*sending)
    assert len(received) == 4 * bulks * 30, "promise 1: many producers lose nothing"
    runs = sum(1 for before, item in itertools.pairwise(received) if before.number != item.number) + 1
    assert runs == 4 * bulks, "promise 2: a bulk put stays contiguous"


async def check_capacity_suspends_producers(ends: Ends) -> None:
    """Check promise 3 and `room` while a consumer takes one item at a time."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    most = _total(ends)
    items = _numbers(0, most * _TIMES)
    accepted = 0

    async def produce() -> None:
        nonlocal accepted
        for item in items:
            while not out.try_send(item):
                assert await out.room() >= 1, "promise 3: room is at least one item"
            accepted += 1
        out.close()

    sending = asyncio.ensure_future(produce())
    for received in range(len(items)):
        assert accepted - received <= most, "promise 3: at most `capacity` items wait"
        waiting = ends.consuming.statistics().waiting
        assert waiting <= ends.consuming.statistics().capacity, "promise 3: at most `capacity` items wait"
        assert (await end.receive()).number == received, "promise 1: in order"
    await sending
    assert await _receive_all(end) == [], "promise 5: nothing but the end is left"


async def check_wrong_items_are_refused(ends: Ends) -> None:
    """Check promise 4 for every way to send."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    wrong: Any = "not a Numbered"

    async def try_to_send() -> None:
        out.try_send(wrong)

    for refused in (out.send(wrong), out.send_many([Numbered(1), wrong]), try_to_send()):
        said = ""
        try:
            await refused
        except WrongItem as error:
            said = str(error)
        assert "Numbered" in said, (
            "promise 4: an item of the wrong type is refused with a message that names the right one"
        )
    await out.send(Numbered(7))
    out.close()
    assert await _receive_all(end) == [Numbered(7)], "promise 4: the connector is unharmed"


async def check_end_comes_after_the_last_item(ends: Ends) -> None:
    """Check promise 5 with several producers and several waiting consumers."""
    outs = [Out("out", ends.producing) for _ in range(3)]
    consumers = [asyncio.ensure_future(_receive_all(In("in", ends.consuming), 5)) for _ in range(3)]
    for number, out in enumerate(outs):
        await out.send_many(_numbers(number * 50, number * 50 + 50))
        out.close()
    received = sorted(item.number for part in await asyncio.gather(*consumers) for item in part)
    assert received == list(range(150)), "promise 5: everything is received, then each consumer gets EndOfItems"
    try:
        await outs[0].send(Numbered(0))
    except Closed:
        return
    raise AssertionError("a closed end takes no items")


async def check_end_comes_while_a_producer_is_suspended(ends: Ends) -> None:
    """Check promise 5: closing an end does not cut off items that it is sending, and all waiting consumers end."""
    out = Out("out", ends.producing)
    sending = asyncio.ensure_future(out.send_many(_numbers(0, 100)))
    await asyncio.sleep(0)
    out.close()
    consumers = [asyncio.ensure_future(_receive_all(In("in", ends.consuming), 9)) for _ in range(3)]
    parts = await asyncio.gather(*consumers)
    await sending
    assert sorted(item.number for part in parts for item in part) == list(range(100)), "promise 5: drained, then ended"


async def check_cancelled_consumers_lose_nothing(ends: Ends) -> None:
    """Check promise 6 for consumers, at every moment of their waiting."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    received: list[Numbered] = []
    for number in range(100):
        waiting = asyncio.ensure_future(end.receive())
        for _ in range(number % 3):
            await asyncio.sleep(0)
        await out.send(Numbered(number))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        waiting.cancel()
        try:
            received.append(await waiting)
        except asyncio.CancelledError:
            received.append(await end.receive())
    assert received == _numbers(0, 100), "promise 6: a cancelled consumer loses nothing"


async def check_cancelled_producers_lose_nothing(ends: Ends) -> None:
    """Check promise 6 for producers: items of a cancelled one that are in arrive in order, and the others go on."""
    first, second = Out("first", ends.producing), Out("second", ends.producing)
    cancelled = asyncio.ensure_future(first.send_many(_numbers(0, _total(ends) * _TIMES)))
    follower = asyncio.ensure_future(second.send_many(_numbers(10**6, 10**6 + 10)))
    for _ in range(5):
        await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    receiving = asyncio.ensure_future(_receive_all(In("in", ends.consuming)))
    await follower
    first.close()
    second.close()
    received = await receiving
    accepted = [item for item in received if item.number < 10**6]
    assert accepted == _numbers(0, len(accepted)), "promise 6: what was accepted arrives, once and in order"
    assert received[-10:] == _numbers(10**6, 10**6 + 10), "promise 6: a cancelled producer does not stop the others"


async def check_polling_never_waits(ends: Ends) -> None:
    """Check that `try_receive` returns an item that is there, or None."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    assert end.try_receive() is None, "nothing was sent"
    await out.send(Numbered(1))
    item = None
    while item is None:
        await asyncio.sleep(0)
        item = end.try_receive()
    assert item == Numbered(1), "try_receive gives what is there"
    assert end.try_receive() is None, "it is there once"


async def check_background_transfer(ends: Ends) -> None:
    """Check that `send_soon` and `receive_soon` do not suspend the caller."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    received: list[Numbered] = []
    waiting = end.receive_soon(received.append)
    await out.send_soon(Numbered(3))
    await waiting
    await asyncio.sleep(0)
    assert received == [Numbered(3)], "receive_soon calls back with the item"


async def check_statistics(ends: Ends) -> None:
    """Check that both sides count the items that went through."""
    before = ends.consuming.statistics()
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    sending = asyncio.ensure_future(_send_each(out, _numbers(0, 300)))
    assert len(await _receive_all(end)) == 300
    await sending
    for side in {ends.producing, ends.consuming}:
        seen: Statistics = side.statistics()
        assert seen.passed - before.passed == 300, "statistics: every item is counted once"
        assert seen.waiting == 0, "statistics: nothing waits"
        assert 1 <= seen.peak <= seen.capacity, "statistics: the peak is within the capacity"
        assert seen.stalled >= 0.0
    assert ends.producing.statistics().stalled > 0.0, "statistics: the producer was suspended, and the time is counted"


async def check_idle(ends: Ends) -> None:
    """Check that `idle` returns only when all items are handed out."""
    out, end = Out("out", ends.producing), In("in", ends.consuming)
    await ends.producing.idle()
    sending = asyncio.ensure_future(out.send_many(_numbers(0, 50)))
    await asyncio.sleep(0)
    idle = asyncio.ensure_future(ends.producing.idle())
    received = 0
    while received < 50:
        assert not idle.done(), "idle: something still waits inside"
        received += len(await end.receive_many(9))
    await sending
    end.acknowledge()
    await idle
    await ends.consuming.idle()


#: Each check with the capacity that it is for: small ones suspend, larger ones batch.
CHECKS: tuple[tuple[Check, int], ...] = (
    (check_each_once_in_order, 8),
    (check_bulks_once_in_order, 16),
    (check_at_most_the_limit, 10),
    (check_bulks_stay_contiguous, 20),
    (check_capacity_suspends_producers, 4),
    (check_wrong_items_are_refused, 8),
    (check_end_comes_after_the_last_item, 8),
    (check_end_comes_while_a_producer_is_suspended, 8),
    (check_cancelled_consumers_lose_nothing, 8),
    (check_cancelled_producers_lose_nothing, 8),
    (check_polling_never_waits, 8),
    (check_background_transfer, 8),
    (check_statistics, 2),
    (check_idle, 8),
)
