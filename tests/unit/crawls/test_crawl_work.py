"""How the work of a run ends: by itself, told to, torn off, or out of time; by a clock of the test's own."""

import asyncio
import contextlib
from math import inf
from typing import Any

from gossamer.crawls.work import BEYOND, LOOK_AT_LIMITS, CrawlWork
from gossamer.engine.component import Component
from gossamer.testing.clock import FakeClock


class Limited:
    """A frontier and its totals, as far as their limit of time goes."""

    time_limit = "max_time"

    def __init__(self, clock: FakeClock, ends_at: float) -> None:
        self.clock = clock
        self.end = ends_at
        self.totals = self

    def ends_at(self) -> float:
        return self.end


class Drained:
    """A running graph that ends when it is drained, if it can."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.is_drained = False
        self.makes_more = True

    def drain(self, kind: type = Component) -> None:
        self.makes_more = False
        if kind is Component:
            self.is_drained = True
            self.done.set()


class Work(CrawlWork):
    def __init__(self, made: "Made") -> None:
        super().__init__(made.told.append)
        self.made = made

    def _torn(self) -> None:
        self.made.torn += 1


class Made:
    """Work, what it told, and how often it was torn off."""

    def __init__(self, ends_at: float = inf) -> None:
        self.told: list[str] = []
        self.torn = 0
        self.clock = FakeClock()
        self.frontier: Any = Limited(self.clock, self.clock.monotonic() + ends_at)
        self.running: Any = Drained()
        self.work = Work(self)

    def begin(self, *, hangs: bool = False) -> "asyncio.Task[None]":
        ends = asyncio.Event() if hangs else self.running.done

        async def all_units() -> None:
            await ends.wait()

        until = self.work.until_done(all_units(), self.running, self.frontier, contextlib.nullcontext())
        return asyncio.ensure_future(until)


def test_what_is_in_flight_when_the_time_is_up_has_ten_seconds_and_is_cut() -> None:
    async def body() -> None:
        made = Made(ends_at=1.0)
        task = made.begin(hangs=True)
        await made.clock.advance(1.0 + BEYOND - 0.1, turns=20)
        assert made.work.is_going and not made.torn
        assert not made.running.makes_more, "seeds that still come in would hold up what is in flight"
        await made.clock.advance(LOOK_AT_LIMITS, turns=20)
        await task
        assert (made.work.cut_by, made.work.is_aborted, made.torn) == ("max_time", True, 1)
        assert not made.work.is_stopping, "a limit ended it, nobody told it to"
        assert "--max-time were cut" in made.told[0]

    asyncio.run(body())


def test_a_limit_of_time_that_is_raised_meanwhile_holds() -> None:
    async def body() -> None:
        made = Made(ends_at=1.0)
        task = made.begin()
        await made.clock.advance(5.0, turns=20)
        made.frontier.end += 1_000.0
        await made.clock.advance(100.0, turns=50)
        assert made.work.is_going
        made.work.stop()
        await task
        assert not made.work.is_aborted and not made.work.cut_by

    asyncio.run(body())


def test_who_is_told_to_stop_before_it_began_ends_as_soon_as_it_has() -> None:
    async def body() -> None:
        made = Made()
        made.work.stop()
        await made.begin()
        assert made.running.is_drained and made.work.is_stopping and not made.work.is_aborted

    asyncio.run(body())


def test_torn_work_ends_at_once_and_what_runs_beside_it_is_told() -> None:
    async def body() -> None:
        made = Made()
        task = made.begin(hangs=True)
        await asyncio.sleep(0)
        made.work.abort()
        await task
        assert made.work.is_aborted and made.work.is_stopping and made.torn == 1 and not made.running.is_drained

    asyncio.run(body())
