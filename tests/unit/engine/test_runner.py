"""The runner: pools, suspension, turnover, kinds at their edges, leaving and draining."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from gossamer.engine.component import (
    AsynchronousFilter,
    Component,
    Consumer,
    Filter,
    Producer,
    SemiSynchronousFilter,
    SynchronousFilter,
)
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.gate import Receipt
from gossamer.engine.runner import Runner
from gossamer.testing import Stand


class Slow(Filter):
    """Handles an item when the test says so."""

    inbox: In[int]
    outbox: Out[int]

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[int, asyncio.Event] = {}
        self.at_work = 0
        self.most = 0

    async def filter(self, item: int) -> list[int]:
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        await self.gate(item).wait()
        self.at_work -= 1
        return [item]

    def gate(self, item: int) -> asyncio.Event:
        return self.gates.setdefault(item, asyncio.Event())


def test_a_pool_handles_as_many_items_at_once_as_it_has_workers(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        async with Stand(slow, workers=3) as stand:
            await stand.give("inbox", *range(5))
            assert slow.at_work == 3
            for item in range(5):
                slow.gate(item).set()
            assert sorted(await stand.made("outbox")) == [0, 1, 2, 3, 4]
            assert slow.most == 3

    run(body())


def test_one_worker_keeps_the_order(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        async with Stand(slow) as stand:
            await stand.give("inbox", 1, 2, 3)
            for item in (3, 2, 1):
                slow.gate(item).set()
            assert await stand.made("outbox") == [1, 2, 3]

    run(body())


def test_suspension_finishes_what_is_in_hand_and_takes_nothing_up(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        async with Stand(slow) as stand:
            await stand.give("inbox", 1, 2, 3)
            suspending = asyncio.create_task(stand.runner.gate.suspend())
            await stand.settle()
            assert not suspending.done()
            slow.gate(1).set()
            await suspending
            assert stand.runner.gate.suspended
            slow.gate(2).set()
            slow.gate(3).set()
            assert await stand.made("outbox") == [1]
            stand.runner.gate.resume()
            assert await stand.made("outbox") == [2, 3]

    run(body())


def test_a_suspended_component_leaves_waiting_items_in_the_connector(run: Any) -> None:
    async def body() -> None:
        async with Stand(Slow()) as stand:
            await stand.runner.gate.suspend()
            stand.runner.gate.resume()
            await stand.settle()
            await stand.runner.gate.suspend()
            await stand.give("inbox", 1, 2, 3)
            # One may have been promised to the worker that waited already; it is held at the gate.
            assert stand.connectors["inbox"].statistics().waiting >= 2

    run(body())


def test_a_turnover_does_not_wait_for_what_came_after(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        async with Stand(slow, workers=2) as stand:
            await stand.give("inbox", 1)
            turnover = asyncio.create_task(stand.runner.gate.turnover())
            await stand.settle()
            await stand.give("inbox", 2)
            assert not turnover.done()
            slow.gate(1).set()
            await turnover
            assert slow.at_work == 1

    run(body())


def test_a_component_that_leaves_finishes_what_is_in_hand_and_leaves_the_rest_to_others(run: Any) -> None:
    async def body() -> None:
        slow = Slow()
        async with Stand(slow) as stand:
            await stand.give("inbox", 1, 2)
            leaving = asyncio.create_task(stand.runner.leave())
            await stand.settle()
            assert not leaving.done()
            slow.gate(1).set()
            await leaving
            await stand.wait()
            assert await stand.made("outbox") == [1]
            assert stand.connectors["inbox"].statistics().waiting == 1
            assert stand.connectors["outbox"].ended

    run(body())


class Numbers(Producer):
    """Plain."""

    outbox: Out[int]

    def produce(self) -> Iterator[int]:
        yield from range(1_000_000)


class Feed(Producer):
    """Waits for something that never comes, and says when its generator is closed."""

    outbox: Out[int]
    closed = False

    async def produce(self) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.get_running_loop().create_future()
        finally:
            self.closed = True


@pytest.mark.parametrize("verb", ["drain", "leave"])
def test_a_producer_that_waits_for_more_ends_when_no_more_is_wanted(verb: str, run: Any) -> None:
    async def body() -> None:
        feed = Feed()
        async with Stand(feed) as stand:
            assert await stand.made("outbox") == [1]
            if verb == "drain":
                stand.runner.drain()
            else:
                await stand.runner.leave()
            await stand.wait()
            assert feed.closed

    run(body())


class Entrance(Slow):
    """What comes in comes out of another graph."""

    is_entrance = True


def test_an_entrance_that_drains_finishes_what_it_has_and_takes_nothing_more(run: Any) -> None:
    async def body() -> None:
        entrance = Entrance()
        async with Stand(entrance) as stand:
            await stand.give("inbox", 1, 2)
            stand.runner.drain()
            entrance.gate(1).set()
            await stand.wait()
            assert await stand.made("outbox") == [1], "its input never ended"

    run(body())


def test_a_suspended_producer_has_sent_what_it_had_in_hand_and_sends_no_more(run: Any) -> None:
    async def body() -> None:
        async with Stand(Numbers(), capacity=2) as stand:
            await stand.settle()
            suspending = asyncio.create_task(stand.runner.gate.suspend())
            await stand.settle()
            assert not suspending.done(), "the third number waits for room, and is in hand"
            assert await stand.made("outbox") == [0, 1, 2]
            await suspending
            assert await stand.made("outbox") == []
            stand.runner.gate.resume()
            assert (await stand.made("outbox", at_most=1))[0] == 3

    run(body())


def test_a_plain_producer_lets_others_have_their_turn(run: Any) -> None:
    async def body() -> None:
        numbers = Numbers()
        async with Stand(numbers, capacity=1_000_000) as stand:
            await stand.settle(10)
            stand.runner.drain()
            await stand.wait()
            assert stand.handled < 1_000_000

    run(body())


class Pairs(SynchronousFilter):
    """Three inputs, and a fourth output never used."""

    a: In[int]
    b: In[int]
    c: In[int]
    outbox: Out[int]

    def filter(self, a: int, b: int, c: int) -> list[int]:
        return [a + b + c]


def test_unpaired_items_are_drained_from_all_inputs_at_once(run: Any) -> None:
    """One producer that fills `a` and `b` in turn must not be stuck at one while the other is drained."""

    async def body() -> None:
        async with Stand(Pairs(), capacity=1) as stand:
            stand.end("c")

            async def feed_both() -> None:
                for number in range(20):
                    await stand.feeds["b"].send(number)
                    await stand.feeds["a"].send(number)
                stand.end("a", "b")

            await feed_both()
            await stand.wait()
            assert stand.component.metrics.counters["unpaired"] == 40

    run(body())


def test_dropped_items_release_their_receipts_once(run: Any) -> None:
    async def body() -> None:
        done: list[int] = []
        async with Stand(Pairs()) as stand:
            for role in ("a", "b"):
                for number in range(3):
                    receipt = Receipt(lambda number=number: done.append(number))  # type: ignore[misc]
                    stand.connectors[role].offer([number], receipt)
                    receipt.release()
            await stand.settle()
            stand.end()
            await stand.wait()
            assert sorted(done) == [0, 0, 1, 1, 2, 2]

    run(body())


def test_a_synchronous_filter_leaves_between_two_rounds(run: Any) -> None:
    async def body() -> None:
        async with Stand(Pairs()) as stand:
            await stand.give("b", 1)
            await stand.runner.leave()
            await stand.wait()
            assert stand.connectors["b"].statistics().waiting == 1

    run(body())


def test_a_synchronous_filter_that_leaves_first_handles_what_it_has_in_hand(run: Any) -> None:
    async def body() -> None:
        async with Stand(Pairs()) as stand:
            await stand.give("a", 1, 2)
            await stand.give("b", 10)
            leaving = asyncio.create_task(stand.runner.leave())
            await stand.settle()
            assert not stand.ended, "two items of one input are in hand, without their partners"
            await stand.give("c", 100, 200, 300)
            await stand.give("b", 20, 30)
            await leaving
            await stand.wait()
            assert await stand.made("outbox") == [111, 222]
            assert stand.connectors["c"].statistics().waiting == 1
            assert stand.component.metrics.counters["unpaired"] == 0

    run(body())


class Store(AsynchronousFilter):
    """Gives back what it was given."""

    inbox: In[int]
    outbox: Out[int]

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[int] = []
        self.ended_inputs: list[str] = []

    def on_inbox(self, item: int) -> None:
        self.kept.append(item)
        self.signal("outbox")

    def take_outbox(self, free: int) -> list[int]:
        taken, self.kept = self.kept[:free], self.kept[free:]
        return taken

    def input_ended(self, role: str) -> None:
        self.ended_inputs.append(role)


def test_an_asynchronous_filter_that_ends_while_its_output_is_full_gives_everything_first(run: Any) -> None:
    async def body() -> None:
        async with Stand(Store(), capacity={"outbox": 1}) as stand:
            await stand.give("inbox", *range(10))
            stand.end()
            await stand.settle()
            assert not stand.ended
            assert await stand.made("outbox") == list(range(10))
            await stand.wait()
            assert stand.connectors["outbox"].ended

    run(body())


def test_an_asynchronous_filter_that_leaves_gives_what_it_has_and_hears_of_the_end(run: Any) -> None:
    async def body() -> None:
        store = Store()
        async with Stand(store, capacity={"outbox": 1}) as stand:
            await stand.give("inbox", 1, 2)
            leaving = asyncio.create_task(stand.runner.leave())
            assert await stand.made("outbox") == [1, 2]
            await leaving
            await stand.wait()
            assert store.ended_inputs == ["inbox"]

    run(body())


def test_a_suspended_asynchronous_filter_gives_nothing(run: Any) -> None:
    async def body() -> None:
        async with Stand(Store(), capacity={"outbox": 1}) as stand:
            await stand.give("inbox", 1, 2, 3)
            await stand.runner.gate.suspend()
            assert await stand.made("outbox") == [1]
            stand.runner.gate.resume()
            assert await stand.made("outbox") == [2, 3]

    run(body())


class Turns(SemiSynchronousFilter):
    """Takes a while for one of its inputs."""

    slow: In[str]
    quick: In[str]
    outbox: Out[str]

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def on_slow(self, item: str) -> list[str]:
        await self.go.wait()
        return [item]

    def on_quick(self, item: str) -> list[str]:
        return [item]


def test_a_semi_synchronous_filter_finishes_one_item_before_the_next_of_any_input(run: Any) -> None:
    async def body() -> None:
        turns = Turns()
        async with Stand(turns) as stand:
            await stand.give("slow", "first")
            await stand.give("quick", "second")
            assert await stand.made("outbox") == []
            turns.go.set()
            assert await stand.made("outbox") == ["first", "second"]

    run(body())


class Nothing(Component):
    """Of no kind."""


def test_a_component_of_no_kind_does_not_run(run: Any) -> None:
    component = Nothing()
    component.bind({}, {})
    with pytest.raises(ComponentFailed, match="Nothing is not runnable"):
        run(Runner(component).run())


class Hung(Consumer):
    """Waits for something that another part cancels."""

    inbox: In[int]

    def __init__(self) -> None:
        super().__init__()
        self.answer: asyncio.Future[None] | None = None

    async def consume(self, item: int) -> None:
        self.answer = asyncio.get_running_loop().create_future()
        await self.answer


def test_a_worker_whose_wait_was_cancelled_by_others_fails_by_name_and_does_not_vanish(run: Any) -> None:
    async def body() -> None:
        hung = Hung()
        async with Stand(hung) as stand:
            await stand.give("inbox", 7)
            assert hung.answer is not None
            hung.answer.cancel()
            with pytest.raises(ComponentFailed, match=r"component 'Hung' failed on 7: .*was cancelled"):
                await stand.wait()

    run(body())


def test_a_failed_component_does_not_end_its_outputs_as_if_they_were_whole(run: Any) -> None:
    class Breaks(Filter):
        inbox: In[int]
        outbox: Out[int]

        def filter(self, item: int) -> list[int]:
            raise ValueError("no")

    async def body() -> None:
        async with Stand(Breaks()) as stand:
            await stand.give("inbox", 1)
            with pytest.raises(ComponentFailed):
                await stand.wait()
            assert not stand.connectors["outbox"].ended

    run(body())


def test_a_runner_shows_its_state(run: Any) -> None:
    async def body() -> None:
        async with Stand(Slow(), workers=2) as stand:
            await stand.give("inbox", 1)
            assert repr(stand.runner) == "<Runner of Slow: 1 busy, 2 workers>"

    run(body())
