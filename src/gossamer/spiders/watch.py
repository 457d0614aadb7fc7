"""A watch over the event loop: a handler that blocks it stops the whole crawl, so the watch names the handler and its line.

Place in the flow: :mod:`running` starts one with the crawl. The loop sets a mark several times a second; a thread looks at
the mark, and if it is old, at the stack of the loop's thread.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import CodeType, FrameType

from gossamer.spiders.handlers import HandlerPlan
from gossamer.spiders.threads import place_in

#: Seconds between two marks, and between two looks at them.
_BEAT = 0.25

#: Seconds without a mark after which the loop counts as blocked: whatever the crawl itself does in one go takes some
#: hundredths, on a loaded machine some tenths.
PATIENCE = 1.0


class LoopWatch:
    """Reports each handler that blocks the loop, once."""

    def __init__(
        self, codes: Mapping[CodeType, HandlerPlan], tell: Callable[[str], None], patience: float = PATIENCE
    ) -> None:
        self._codes = codes
        self._tell = tell
        self._patience = patience
        self._mark = 0.0
        self._told: set[str] = set()
        self._ended = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<LoopWatch over {len(self._codes)} handlers>"

    def start(self) -> None:
        """Begin to watch. Call it on the loop that is watched."""
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        self._beat(loop)
        threading.Thread(target=self._look, args=(loop, thread), name="gossamer watch", daemon=True).start()

    def stop(self) -> None:
        """End the watch. Call it on the loop."""
        self._ended.set()
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._mark = time.monotonic()
        self._timer = loop.call_later(_BEAT, self._beat, loop)

    def _look(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._ended.wait(_BEAT):
            since = time.monotonic() - self._mark
            if since < self._patience or loop.is_closed():
                continue
            frame = sys._current_frames().get(thread)
            plan = self._handler_on(frame)
            if plan is not None and plan.name not in self._told:
                self._told.add(plan.name)
                self._tell(
                    f"{plan.place}: {plan.who} blocks the crawl, which stands still meanwhile: {since:.1f} s so far, at "
                    f"{place_in(frame) or plan.place}; await the call that waits, or write the handler with def "
                    "instead of async def"
                )

    def _handler_on(self, frame: FrameType | None) -> HandlerPlan | None:
        while frame is not None:
            plan = self._codes.get(frame.f_code)
            if plan is not None:
                return plan
            frame = frame.f_back
        return None
