"""Handlers that block: threads that run them, and the watch over the event loop that names a handler which should have been
in one.
"""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from traceback import walk_stack
from types import CodeType, FrameType
from typing import Any

from gossamer.spiders.handlers import HandlerPlan
from gossamer.values.items import place_of

# Threads for handlers that block: each runs one handler at a time, and is left behind if the handler never returns.
# :mod:`running` hands them the handlers that are written with `def`. They are daemons, so a handler that hangs does not keep the
# program from ending.


class Hanging(Exception):
    """A handler did not return in time. Its text is the line of the user's code where it is."""


class TooManyHang(Exception):
    """Too many threads were left behind, so no more are started."""


class Threads:
    """At most `most` threads at work, and as many left behind."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._places = asyncio.Semaphore(most)
        self._idle: list[_Worker] = []
        self.left_behind: list[threading.Thread] = []

    def __repr__(self) -> str:
        return f"<Threads at most {self._most}, {len(self.left_behind)} left behind>"

    async def run(self, work: Callable[[], Any], deadline: float) -> Any:
        """Return the result of `work`; raises its exception. Raises Hanging: it took longer than `deadline` seconds; its thread
        is left behind. Raises TooManyHang: this has happened too often."""
        async with self._places:
            self.left_behind = [thread for thread in self.left_behind if thread.is_alive()]
            if len(self.left_behind) >= self._most:
                raise TooManyHang(f"{len(self.left_behind)} threads hang in handlers")
            worker = self._idle.pop() if self._idle else _Worker()
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            worker.jobs.put((work, future))
            try:
                async with asyncio.timeout(deadline):
                    result = await future
            except TimeoutError:
                if future.done() and not future.cancelled():  # the handler's own
                    self._idle.append(worker)
                    raise
                frame = sys._current_frames().get(worker.ident or 0)
                self._leave(worker)
                raise Hanging(place_in(frame)) from None
            except asyncio.CancelledError:
                self._leave(worker)
                raise
            except BaseException:
                self._idle.append(worker)
                raise
            self._idle.append(worker)
            return result

    def _leave(self, worker: "_Worker") -> None:
        worker.jobs.put(None)
        self.left_behind.append(worker)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().jobs.put(None)


class _Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="gossamer handler", daemon=True)
        self.jobs: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while (job := self.jobs.get()) is not None:
            work, future = job
            try:
                result, error = work(), None
            except BaseException as raised:  # the waiting handler gets it, whatever it is
                result, error = None, raised
            with contextlib.suppress(RuntimeError):  # the loop has ended: nothing waits any more
                future.get_loop().call_soon_threadsafe(_settle, future, result, error)
            del job, work, future, result, error  # an idle thread holds no page


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # no future takes one
        future.set_exception(RuntimeError("the handler raised StopIteration"))
    else:
        future.set_exception(error)


def place_in(frame: FrameType | None) -> str:
    """Return the innermost line of the user's own code on a stack; empty if there is none."""
    stack = () if frame is None else walk_stack(frame)
    return next(filter(None, (place_of(one.f_code.co_filename, line) for one, line in stack)), "")


# A watch over the event loop: a handler that blocks it stops the whole crawl, so the watch names the handler and its line.
# :mod:`running` starts one with the crawl. The loop sets a mark several times a second; a thread looks at the mark, and if it is
# old, at the stack of the loop's thread.

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
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        self._beat(loop)
        threading.Thread(target=self._look, args=(loop, thread), name="gossamer watch", daemon=True).start()

    def stop(self) -> None:
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
            stack = () if frame is None else walk_stack(frame)
            plan = next((self._codes[one.f_code] for one, _ in stack if one.f_code in self._codes), None)
            if plan is not None and plan.name not in self._told:
                self._told.add(plan.name)
                self._tell(
                    f"{plan.place}: {plan.who} blocks the crawl, which stands still meanwhile: {since:.1f} s so far, at "
                    f"{place_in(frame) or plan.place}; await the call that waits, or write the handler with def "
                    "instead of async def"
                )
