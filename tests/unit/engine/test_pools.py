"""Pools: workers come while all are busy, go after an idle time, and never lose an item by it."""

import asyncio
from typing import Any

from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.testing import FakeClock, Stand


class Held(Consumer):
    """Holds each item until the test lets it go."""

    inbox: In[int]

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.doors: dict[int, asyncio.Event] = {}
        self.kept: list[int] = []

    async def consume(self, item: int) -> None:
        self.doors[item] = asyncio.Event()
        await self.doors[item].wait()
        self.kept.append(item)

    def open(self, *items: int) -> None:
        for item in items:
            self.doors[item].set()

    @property
    def workers(self) -> float:
        return self.metrics.snapshot()["workers"]


def test_a_pool_grows_to_its_maximum_while_all_are_busy(run: Any) -> None:
    async def body() -> None:
        component = Held()
        async with Stand(component, workers=3) as stand:
            await stand.settle()
            assert component.workers == 1
            seen = []
            for item in range(5):
                await stand.give("inbox", item)
                seen.append((len(component.doors), component.workers))
            assert seen == [(1, 2), (2, 3), (3, 3), (3, 3), (3, 3)]
            component.open(0, 1, 2)
            await stand.settle()
            component.open(3, 4)
            await stand.settle()
            assert sorted(component.kept) == [0, 1, 2, 3, 4]

    run(body())


def test_workers_that_nobody_needed_for_an_idle_time_end_and_one_stays(run: Any) -> None:
    async def body() -> None:
        component = Held()
        async with Stand(component, workers=4) as stand:
            await stand.give("inbox", 0, 1, 2, 3)
            await component.clock.advance(100)
            assert component.workers == 4, "who is busy is needed"
            component.open(0, 1, 2)
            await stand.settle()
            await component.clock.advance(9)
            assert component.workers == 4
            await component.clock.advance(12)
            assert component.workers == 1 + 0, "three were idle, and the one that is busy stays"
            component.open(3)
            await stand.settle()
            await stand.give("inbox", 4, 5)
            assert component.workers == 3
            component.open(4, 5)
            await component.clock.advance(30)
            assert component.workers == 1
            assert component.clock.asleep == 0, "one worker alone watches no clock"
            await stand.give("inbox", 6)
            component.open(6)
            await stand.settle()
            stand.end()
            await stand.wait()
        assert sorted(component.kept) == list(range(7))
        assert component.workers == 0

    run(body())


def test_a_pool_that_is_needed_now_and_then_keeps_who_was_needed(run: Any) -> None:
    async def body() -> None:
        component = Held()
        async with Stand(component, workers=4) as stand:
            await stand.give("inbox", 0, 1, 2)
            assert component.workers == 4
            component.open(0, 1, 2)
            for first in (10, 20, 30):
                await stand.give("inbox", first, first + 1)
                component.open(first, first + 1)
                await stand.settle()
                await component.clock.advance(8)
            assert component.workers in (2, 3), "two were busy at once within each idle time"

    run(body())


def test_a_pool_gets_another_size_while_it_works(run: Any) -> None:
    async def body() -> None:
        component = Held()
        async with Stand(component, workers=2) as stand:
            await stand.give("inbox", *range(8))
            assert len(component.doors) == 2
            stand.runner.resize(4, 10.0)
            component.open(0)
            await stand.settle()
            assert sorted(component.doors) == [0, 1, 2, 3, 4]
            stand.runner.resize(1, 10.0)
            component.open(1, 2, 3)
            await stand.settle()
            assert sorted(component.doors) == [0, 1, 2, 3, 4], "nobody begins until only one place is taken"
            for item in (4, 5, 6, 7):
                component.open(item)
                await stand.settle()
            assert component.kept == list(range(8))
            assert component.workers == 1
            stand.end()
            await stand.wait()

    run(body())


def test_a_pool_that_shrinks_while_all_become_free_at_once_keeps_a_worker(run: Any) -> None:
    async def body() -> None:
        component = Held()
        async with Stand(component, workers=5) as stand:
            await stand.give("inbox", 0, 1, 2, 3)
            assert component.workers == 5, "four are busy, and one waits"
            component.open(0, 1, 2, 3)
            stand.runner.resize(1, 10.0)
            await stand.settle()
            assert component.workers == 1
            await stand.give("inbox", 4)
            component.open(4)
            await stand.settle()
            assert sorted(component.kept) == [0, 1, 2, 3, 4], "a pool without a worker ends its stream"

    run(body())
