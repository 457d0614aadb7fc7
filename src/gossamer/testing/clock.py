"""A clock that a test moves by hand, so that it can assert "waited 30 s" without sleeping."""

import asyncio
import heapq
from itertools import count


class FakeClock:
    """A clock that stands still until :meth:`advance`. Satisfies :class:`gossamer.flow.clock.Clock`."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = self._start = now
        self._passed = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return f"<FakeClock {self._passed:g} s on, {len(self._sleepers)} asleep>"

    def now(self) -> float:
        """Return the seconds since the epoch."""
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
