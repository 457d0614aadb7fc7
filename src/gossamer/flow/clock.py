"""The only source of time. Units read it from their `clock`, so tests can hand them one that stands still."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for people and archives, monotonic time for every delay and deadline, steady time for what outlives both."""

    def now(self) -> float:
        """Seconds since the epoch; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back."""
        ...

    def steady(self) -> float:
        """Seconds since the epoch that never jump: wall time when this clock was made, and monotonic time since then.

        For waits that are kept on the disk: another process can read them, and no jump of the wall clock (fault 94) makes
        this one wait an hour more, or not at all.
        """
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""
        ...


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds of the system's monotonic clock."""
        return time.monotonic()

    def steady(self) -> float:
        """Wall time that no operator or time server sets."""
        return self._offset + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        import asyncio  # units are used without a loop, too: in parser processes, and to judge what a person gave

        await asyncio.sleep(seconds)
