"""Time that a test controls: a clock moved by hand, an event loop on simulated time, and the bound after which a test counts
as hung.
"""

import asyncio
import heapq
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import count
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

HUNG_AFTER: Final = 180.0
"""Seconds that a test waits for a process, a socket, a thread or an event before it calls it hung. The bound ends a hang and is no
promise about speed, so all tests share it, and a machine that is busy with other work never reaches it."""


class FakeClock:
    """A clock that stands still until :meth:`advance`. Satisfies :class:`gossamer.engine.unit.Clock`."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = self._start = now
        self._passed = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return f"<FakeClock {self._passed:g} s on, {len(self._sleepers)} asleep>"

    def now(self) -> float:
        return self._now + self._passed

    def monotonic(self) -> float:
        """Return the seconds that the test has let pass."""
        return self._passed

    def steady(self) -> float:
        """Return the seconds since the epoch, unchanged by :meth:`jump`."""
        return self._start + self._passed

    async def sleep(self, seconds: float) -> None:
        """Return once the test has advanced the clock by `seconds`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, next(self._order), waiting))
        await waiting

    @property
    def asleep(self) -> int:
        """The number of sleepers that wait for the clock."""
        return sum(not waiting.done() for _, _, waiting in self._sleepers)

    async def advance(self, seconds: float, *, turns: int = 10) -> None:
        """Let `seconds` pass. Every sleeper wakes at its own time, in order, and gets `turns` turns of the event loop."""
        until = self._passed + seconds
        await _turn(turns)
        while self._sleepers and self._sleepers[0][0] <= until:
            due, _, waiting = heapq.heappop(self._sleepers)
            self._passed = max(self._passed, due)
            if not waiting.done():
                waiting.set_result(None)
                await _turn(turns)
        self._passed = until
        await _turn(turns)

    def skip(self) -> bool:
        """Move to the time of the next sleeper and wake it. Returns False if none sleeps."""
        while self._sleepers:
            due, _, waiting = heapq.heappop(self._sleepers)
            if not waiting.done():
                self._passed = max(self._passed, due)
                waiting.set_result(None)
                return True
        return False

    def jump(self, seconds: float) -> None:
        """Set wall time forward or back, as an operator or a time server does. Monotonic time does not change."""
        self._now += seconds


async def _turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop that moves a clock to the next sleeper whenever nothing is left to do. Give units the same clock; the loop's
    own timers stay in real time.

    A crawl on it, with a protocol module that answers by itself, runs through hours in a second, and each run has the same order.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.working = 0
        """Number of unfinished calls in threads. The clock waits for them, so threads do not change the order of events."""
        super().__init__(_Idling(clock, lambda: self.working == 0))

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Arguments]], _Result], *args: *_Arguments
    ) -> asyncio.Future[_Result]:
        """Run a function in a thread. The clock stands still until it returns."""
        future = super().run_in_executor(executor, func, *args)
        self.working += 1
        future.add_done_callback(self._worked)
        return future

    def _worked(self, _: asyncio.Future[Any]) -> None:
        self.working -= 1


class _Idling(selectors.DefaultSelector):
    """Moves the clock in places where other selectors wait for the network."""

    def __init__(self, clock: FakeClock, may_pass: Callable[[], bool]) -> None:
        super().__init__()
        self._clock = clock
        self._may_pass = may_pass

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that have come. If there are none and the loop would wait, wake the next sleeper instead."""
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            return events
        if self._may_pass() and self._clock.skip():
            return []
        return super().select(timeout)
