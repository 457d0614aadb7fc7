"""An event loop on a simulated clock: whenever nothing is left to do, the clock moves to the time of the next sleeper.

A crawl on it, with a protocol module that answers by itself, runs through hours in a second, and each run has the same order:
the speed of the machine does not matter.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

from gossamer.testing.clock import FakeClock

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop that moves a clock by itself. Give units the same clock; the loop's own timers stay in real time."""

    def __init__(self, clock: FakeClock) -> None:
        self.working = 0
        """Number of unfinished calls in threads. The clock waits for them, so threads do not change the order of events."""
        super().__init__(_Idling(clock, lambda: self.working == 0))

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Arguments]], _Result], *args: *_Arguments
    ) -> "asyncio.Future[_Result]":
        """Run a function in a thread. The clock stands still until it returns."""
        future = super().run_in_executor(executor, func, *args)
        self.working += 1
        future.add_done_callback(self._worked)
        return future

    def _worked(self, _: "asyncio.Future[Any]") -> None:
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
