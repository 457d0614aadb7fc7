"""The only source of time. Units read it from their `clock`, so tests can hand them one that stands still."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for people and archives, monotonic time for every delay and deadline."""

    def now(self) -> float:
        """Seconds since the epoch; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds of the system's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)
