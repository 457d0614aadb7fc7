"""Waiting for what other processes and threads do: by the wall clock, since no fake one reaches them."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from gossamer.testing.clock import HUNG_AFTER

T = TypeVar("T")


def until(holds: Callable[[], T | None], pause: float = 0.02) -> T:
    """Ask again and again, with so many seconds between, which leave the processor to what is waited for; returns the answer
    that holds."""
    end = time.monotonic() + HUNG_AFTER
    while not (found := holds()):
        assert time.monotonic() < end, "what is waited for did not come"
        time.sleep(pause)
    return found


async def awaited(holds: Callable[[], object]) -> None:
    """The same on the event loop, which goes on meanwhile."""
    end = time.monotonic() + HUNG_AFTER
    while not holds():
        assert time.monotonic() < end, "what is waited for did not come"
        await asyncio.sleep(0.01)
