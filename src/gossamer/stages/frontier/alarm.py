"""A wake-up call: the earliest of those that were asked for. The frontier's only timer."""

import asyncio
from collections.abc import Callable
from math import inf

from gossamer.flow.clock import Clock


class Alarm:
    """Calls back once, at the earliest instant that it was set to."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._at = inf
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Alarm at {self._at:g}>"

    def set(self, at: float) -> None:
        """Ring at this monotonic instant, unless it is to ring before."""
        if at >= self._at:
            return
        self.cancel()
        self._at = at
        self._task = asyncio.create_task(self._wait(at))

    def cancel(self) -> None:
        """Do not ring."""
        if self._task is not None:
            self._task.cancel()
        self._task, self._at = None, inf

    async def _wait(self, at: float) -> None:
        await self._clock.sleep(max(0.0, at - self._clock.monotonic()))
        self._task, self._at = None, inf
        self._ring()
