"""The work of one run, from its begin until it is done, told to stop, torn off, or out of time.

Place in the flow: :mod:`crawl` hands it the coroutine in which all units run; people and signals end it from outside, at any time.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from gossamer.assembly.ending import option_name
from gossamer.flow.running import RunningGraph
from gossamer.stages.frontier.component import Frontier

#: Seconds that a stopped crawl waits for what is in flight: a stop takes ten at most (fault 116).
GRACE = 8.0

#: Seconds that a page in flight has to come in when the time of a crawl is up.
BEYOND = 10.0

#: Seconds between two looks at the limits of time, which may be changed while a crawl runs.
LOOK_AT_LIMITS = 5.0


class CrawlWork:
    """What runs, and how it is brought to an end."""

    def __init__(self, report: Callable[[str], None], torn: Callable[[], None]) -> None:
        """Nothing runs yet.

        Args:
            report: takes lines for people.
            torn: called when the work is torn off, so that what runs beside it ends too.
        """
        self._report = report
        self._torn = torn
        self._running: RunningGraph | None = None
        self._work: asyncio.Future[None] | None = None
        self._is_torn = False
        self.is_stopping = False
        """It was told to end."""
        self.cut_by = ""
        """The limit of time that cut what was in flight, by its setting's name; empty where none did."""

    def __repr__(self) -> str:
        state = "stopping" if self.is_stopping else "at work" if self.is_going else "at rest"
        return f"<CrawlWork {state}>"

    @property
    def is_going(self) -> bool:
        """Units are up, so that there is progress to show."""
        return self._work is not None and not self._work.done()

    @property
    def is_aborted(self) -> bool:
        """It was torn off before its end."""
        return self._is_torn and self._work is not None and self._work.cancelled()

    async def until_done(
        self,
        work: Coroutine[Any, Any, None],
        running: RunningGraph,
        frontier: Frontier,
        beside: AbstractAsyncContextManager[None],
    ) -> None:
        """Wait for the end of the work, or for :meth:`abort`; `beside` is entered meanwhile."""
        self._running = running
        self._work = asyncio.ensure_future(work)
        if self.is_stopping:
            # It was told so while it started: it ends as soon as it has begun.
            asyncio.get_running_loop().call_soon(self._tear if self._is_torn else self._drain)
        watch = asyncio.create_task(self._cut_in_time(self._work, frontier))
        try:
            async with beside:
                await self._work
        except asyncio.CancelledError:
            if not self.is_aborted:
                raise
        finally:
            watch.cancel()

    def stop(self) -> None:
        """Hand out nothing more; what is in flight is fetched and committed, as far as :data:`GRACE` allows.

        Safe to call at any time.
        """
        self.is_stopping = True
        if self._work is not None:
            self._drain()

    def finish(self) -> None:
        """End as a crawl does that has nothing left: others have said that nothing more will come. Safe to call while it works."""
        if self.is_going:
            self._drain()

    def abort(self) -> None:
        """Stop at once: what is in flight is dropped, what is committed is kept. Safe to call at any time."""
        self.is_stopping = True
        self._tear()

    def _tear(self) -> None:
        self._is_torn = True
        self._torn()
        if self._work is not None:
            self._work.cancel()

    def _drain(self) -> None:
        assert self._running is not None
        self._running.drain()
        asyncio.get_running_loop().call_later(GRACE, self._lose_patience)

    def _lose_patience(self) -> None:
        if self.is_going:
            self._report(
                f"the requests in flight did not end within {GRACE:g} s; their URLs are fetched again when the crawl goes on"
            )
            self.abort()

    async def _cut_in_time(self, work: "asyncio.Future[None]", frontier: Frontier) -> None:
        """What is in flight when the time is up has :data:`BEYOND` to come in; then it is cut. Limits may change meanwhile."""
        while not work.done():
            left = frontier.ends_at() + BEYOND - frontier.clock.monotonic()
            if left <= 0.0:
                self.cut_by = frontier.time_limit
                self._report(
                    f"the requests in flight {BEYOND:g} s after the end of {option_name(self.cut_by)} were cut; "
                    "their URLs are fetched when the crawl goes on"
                )
                self._tear()
                return
            await frontier.clock.sleep(min(left, LOOK_AT_LIMITS))
