"""What the two ends of a connector promise beyond the connector's own suite: clones, emits, exchanges, acknowledgement."""

import asyncio
from typing import Any

import msgspec
import pytest

from gossamer.engine.connector import Statistics, class_of
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import Closed, EndOfItems, WiringError
from gossamer.engine.gate import Receipt, current
from gossamer.engine.local import LocalConnector


def connector(name: str = "arrow", capacity: int = 4) -> LocalConnector[int]:
    return LocalConnector(name, int, capacity)


def test_what_is_emitted_waits_for_flush_and_can_be_taken_back(run: Any) -> None:
    async def body() -> None:
        queue = connector()
        out = Out("out", queue)
        out.emit(1)
        out.emit(2)
        assert len(out.pending) == 2
        out.take_back(1)
        await out.flush()
        await out.flush()
        assert queue.poll(9)[0] == [1]

    run(body())


def test_an_emit_that_is_taken_back_lets_go_of_its_receipt() -> None:
    done: list[int] = []
    receipt = Receipt(lambda: done.append(1))
    out = Out("out", connector())
    token = current.set(receipt)
    out.emit(1)
    current.reset(token)
    receipt.release()
    assert not done
    out.take_back(0)
    assert done == [1]


def test_a_clone_keeps_the_stream_open_and_follows_an_exchange(run: Any) -> None:
    async def body() -> None:
        old, new = connector("old"), connector("new")
        out = Out("out", old)
        clone = out.clone()
        out.close()
        out.close()
        assert not old.ended
        out.hold()
        assert not clone.try_send(1)
        sending = clone.send_soon(1)
        out.rebind(new)
        out.release()
        await sending
        assert new.poll(9)[0] == [1]
        clone.close()
        assert new.ended

    run(body())


def test_a_closed_end_says_so(run: Any) -> None:
    out = Out("links", connector())
    out.close()
    with pytest.raises(Closed, match="output 'links' was closed; nothing can be sent through it any more"):
        run(out.send(1))


def test_asking_for_the_next_items_acknowledges_the_last(run: Any) -> None:
    async def body() -> None:
        queue = connector()
        done: list[int] = []
        for item in (1, 2, 3):
            receipt = Receipt(lambda item=item: done.append(item))  # type: ignore[misc]
            queue.offer([item], receipt)
            receipt.release()
        inlet = In("in", queue)
        assert await inlet.receive() == 1
        assert done == []
        assert inlet.try_receive() == 2
        assert done == [1]
        assert await inlet.receive_soon(lambda item: None) == 3
        assert done == [1, 2]
        inlet.acknowledge()
        inlet.acknowledge()
        assert done == [1, 2, 3]

    run(body())


def test_who_waits_on_a_retired_connector_goes_on_at_the_new_one(run: Any) -> None:
    async def body() -> None:
        old, new = connector("old"), connector("new")
        inlet = In("in", old)
        receiving = asyncio.create_task(inlet.receive())
        await asyncio.sleep(0)
        inlet.rebind(new)
        old.retire()
        Out("out", new).try_send(5)
        assert await receiving == 5

    run(body())


def test_the_end_of_an_exchanged_connector_is_not_the_end(run: Any) -> None:
    async def body() -> None:
        old, new = connector("old"), connector("new")
        out, inlet = Out("out", old), In("in", old)
        receiving = asyncio.create_task(inlet.receive())
        await asyncio.sleep(0)
        inlet.rebind(new)
        await new.adopt([7], None)
        out.close()
        assert await receiving == 7

    run(body())


def test_who_waits_on_a_connector_that_is_removed_without_a_successor_has_the_end(run: Any) -> None:
    async def body() -> None:
        old = connector()
        receiving = asyncio.create_task(In("in", old).receive())
        await asyncio.sleep(0)
        old.retire()
        with pytest.raises(EndOfItems, match="was removed"):
            await receiving

    run(body())


def test_room_at_a_held_end_is_that_of_the_new_connector(run: Any) -> None:
    async def body() -> None:
        out = Out("out", connector("old", 1))
        out.hold()
        asking = asyncio.create_task(out.room())
        await asyncio.sleep(0)
        assert not asking.done()
        out.rebind(connector("new", 7))
        out.release()
        assert await asking == 7

    run(body())


def test_figures_go_on_after_an_exchange() -> None:
    before = Statistics(passed=5, waiting=0, peak=4, stalled=1.5, capacity=4)
    after = Statistics(passed=2, waiting=1, peak=3, stalled=0.5, capacity=9)
    assert after.after(before) == Statistics(passed=7, waiting=1, peak=4, stalled=2.0, capacity=9)


class Plain:
    """msgspec knows nothing of it."""


class Tree(msgspec.Struct):
    """It knows this, although it holds itself."""

    branches: "list[Tree]" = []
    anything: object = None


class Hidden(msgspec.Struct):
    """One of its fields is foreign."""

    maybe: tuple[int, Plain] | None = None


@pytest.mark.parametrize(("item_type", "bare"), [(int, int), (list[str], list), (Tree, Tree), (dict[str, Tree], dict)])
def test_an_item_type_is_a_class_or_a_container_of_classes_with_a_codec(item_type: Any, bare: type) -> None:
    assert class_of(item_type) is bare


@pytest.mark.parametrize(
    ("item_type", "message"),
    [
        (Plain, "items of type Plain have no codec, so they could not cross a process: Plain is neither plain data"),
        (list[Plain], "items of type list have no codec, so they could not cross a process: Plain is neither"),
        (Hidden, "items of type Hidden have no codec, so they could not cross a process: Plain is neither"),
        (int | str, "cannot be an item type: name one class, or a container of classes"),
        (Any, "cannot be an item type: name one class, or a container of classes"),
    ],
)
def test_an_item_type_that_could_not_cross_a_process_is_refused_on_every_connector(
    item_type: Any, message: str
) -> None:
    with pytest.raises(WiringError, match=message):
        LocalConnector("arrow", item_type)


def test_ends_and_connectors_show_their_state() -> None:
    queue = connector()
    assert repr(Out("out", queue)) == "<Out out to <LocalConnector arrow: 0 of 4 waiting, 0 passed>>"
    assert repr(In("in", queue)) == "<In in from <LocalConnector arrow: 0 of 4 waiting, 0 passed>>"


def test_who_is_not_needed_is_not_woken_and_keeps_its_place_in_the_line(run: Any) -> None:
    async def body() -> None:
        queue = connector()
        out, port = Out("out", queue), In("in", queue)
        first, second, third = (asyncio.create_task(port.receive_many(4)) for _ in range(3))
        await asyncio.sleep(0)
        assert out.try_send(1)
        assert out.try_send(2)
        assert await first == [1, 2]
        assert out.try_send(3)
        assert await second == [3]
        out.close()
        with pytest.raises(EndOfItems):
            await third

    run(body())


def test_what_a_cancelled_consumer_was_woken_for_wakes_the_next(run: Any) -> None:
    async def body() -> None:
        queue = connector()
        out, port = Out("out", queue), In("in", queue)
        first, second = (asyncio.create_task(port.receive_many(8)) for _ in range(2))
        await asyncio.sleep(0)
        assert out.try_send(1)
        first.cancel()
        assert await second == [1]
        again = asyncio.create_task(port.receive_many(8))
        await asyncio.sleep(0)
        assert out.try_send(2)
        assert await again == [2]

    run(body())
