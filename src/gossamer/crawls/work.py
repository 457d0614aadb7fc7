"""The work of one run: how it begins, pauses and ends, how it comes to rest for others, and the lines that it tells people.

Place in the flow: :class:`CrawlWork` gets the coroutine in which all units run; people and signals end it from outside, at any
time. Its heir :class:`CrawlAtWork` is the base of every crawl whose units work in its own process. It may be brought to rest, so
that others go on with it; until it rests, it can still end as any crawl does. :class:`RunLines` takes every line for the terminal
and the run's log.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gossamer.crawls.companions import write_hosts
from gossamer.crawls.damage import bring_back, restored_lines
from gossamer.crawls.figures import RunFigures, Sampler, UnitsAtWork
from gossamer.crawls.live import LiveChanges, Suspensions
from gossamer.crawls.summary import ENDED, Summary
from gossamer.engine.component import Producer
from gossamer.engine.graph import Graph
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import Sheet, option_name
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import Difference, Wiring
from gossamer.frontier.frontier import Frontier
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.logs import note_line

U = TypeVar("U")
S = TypeVar("S", bound=Sheet)

#: Seconds that a stopped crawl waits for what is in flight: a stop takes ten at most (fault 116).
GRACE = 8.0

#: Seconds that a page in flight has to come in when the time of a crawl is up.
BEYOND = 10.0

#: Seconds between two looks at the limits of time, which may be changed while a crawl runs.
LOOK_AT_LIMITS = 5.0


class CrawlWork:
    """The running graph, and how it is brought to an end."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """Nothing runs yet; `report` takes lines for people."""
        self._report = report
        self.running: RunningGraph | None = None
        self._work: asyncio.Future[None] | None = None
        self._is_torn = False
        self.is_stopping = False
        """It was told to end."""
        self.cut_by = ""
        """The limit of time that cut what was in flight, by its setting's name; empty where none did."""

    @property
    def is_going(self) -> bool:
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
        self.running = running
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
        """Hand out nothing more; requests in flight are fetched and committed, as far as :data:`GRACE` allows.

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
        """Stop at once: drop what is in flight, and keep what is committed. Safe to call at any time."""
        self.is_stopping = True
        self._tear()

    def _torn(self) -> None:
        """The work is torn off; what an heir runs beside it ends too."""

    def _tear(self) -> None:
        self._is_torn = True
        self._torn()
        if self._work is not None:
            self._work.cancel()

    def _drain(self) -> None:
        assert self.running is not None
        self.running.drain()
        asyncio.get_running_loop().call_later(GRACE, self._lose_patience)

    def _lose_patience(self) -> None:
        if self.is_going:
            self._report(
                f"the requests in flight did not end within {GRACE:g} s; their URLs are fetched again when the crawl goes on"
            )
            self.abort()

    async def _cut_in_time(self, work: "asyncio.Future[None]", frontier: Frontier) -> None:
        """Requests in flight when the time is up have :data:`BEYOND` to come in; then they are cut. Limits may change meanwhile."""
        assert self.running is not None
        while not work.done():
            left = frontier.totals.ends_at() - frontier.clock.monotonic()
            if left <= 0.0:
                self.running.drain(Producer)  # many seeds would keep what is in flight from coming in
                left += BEYOND
            if left <= 0.0:
                self.cut_by = frontier.totals.time_limit
                self._report(
                    f"the requests in flight {BEYOND:g} s after the end of {option_name(self.cut_by)} were cut; "
                    "their URLs are fetched when the crawl goes on"
                )
                self._tear()
                return
            await frontier.clock.sleep(min(left, LOOK_AT_LIMITS))


class Lapsing(Provider[S]):
    """A provider that ends the crawl where it finds that another process has the crawl by now."""

    lapsed: Callable[[], None] = staticmethod(lambda: None)
    """Ends the crawl; set by who runs it."""


# The base of every crawl whose units work in its own process, whether it is the only agent or one of several.

#: Seconds that what is in flight may take before others go on with a crawl: where one answer takes longer, it goes on as it is.
PATIENCE = 30.0

#: Seconds between two looks at whether anything is in flight.
_LOOK = 0.05


class CrawlAtWork(CrawlWork):
    """A graph at work, as those see it who steer it, count it and show it."""

    figures: RunFigures
    """Its figures; set by the heir, with its running graph."""
    changes: LiveChanges
    """Its changes while it runs; those that are to last are kept by the crawl as a whole. Set by the heir likewise."""

    def __init__(self, directory: Path, report: Callable[[str], None]) -> None:
        super().__init__(report)
        self.directory = directory
        self.suspensions = Suspensions(lambda: self.graph_at_work)
        """Its components that take up nothing now."""
        self.is_paused = False
        """It asks for nothing more, since a person has said so."""
        self.is_handed_over = False
        """It has ended at rest, and others are to go on with it."""
        self._is_resting = False

    @property
    def graph_at_work(self) -> RunningGraph:
        assert self.running is not None, "it does not run yet"
        return self.running

    @property
    def graph(self) -> Graph:
        return self.graph_at_work.whole

    @property
    def units(self) -> UnitsAtWork:
        return UnitsAtWork(self.graph_at_work)

    @property
    def ledger(self) -> RocksLedger:
        """The part that keeps everything that must not be forgotten."""
        return self.units.ledger

    def providers(self, kind: type[U]) -> list[U]:
        return self.units.providers(kind)

    @property
    def working(self) -> bool:
        """Units are at work, so that there is progress to show, and the graph can be changed."""
        return self.is_going and self.running is not None and self.running.has_begun

    @property
    def state_at_work(self) -> str:
        return "stopping" if self.is_stopping else "paused" if self.is_paused else "running"

    def stop(self) -> None:
        self.suspensions.end()
        super().stop()

    def finish(self) -> None:
        self.suspensions.end()
        super().finish()

    def pause(self) -> None:
        """Ask for nothing more until :meth:`go_on`; requests in flight are finished and kept."""
        self.is_paused = True
        self.units.frontier.pause()

    def go_on(self) -> None:
        """Go on after :meth:`pause`, or let the others do so."""
        self.is_paused = False
        if not self._is_resting:
            self.units.frontier.go_on()

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a running unit. Raises SettingError: a value or a setting that cannot change; UsageError: it cannot
        be kept. Nothing has changed then, here and below."""
        await self.changes.set(unit, settings)
        self.units.frontier.signal("tasks")

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """Change the graph while it runs; returns what has changed. Raises FlowError: it does not fit; UsageError."""
        return await self.changes.rewire(change)

    def foreseen(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """The changes that :meth:`rewire` would make, as far as that can be said before. Raises as it."""
        return self.changes.foreseen(change)

    async def undo(self) -> Difference:
        """Take the last change of the graph back. Raises as :meth:`rewire`."""
        return await self.changes.undo()

    def _go_on_with_kept(self, pages_before: int | None = None, *, accept: bool) -> None:
        """Units are up, and none has worked yet: bring the directory to what the ledger committed. Raises CrawlDirectoryError:
        that cannot be, and is not accepted."""
        restored, accepted = bring_back(self.graph_at_work, self.directory, accept=accept)
        for line in restored_lines(restored, accepted, self.directory):
            self._report(line)
        if accepted.again:
            self.units.frontier.recount()
        self.figures.begin(pages_before)
        self.ledger.put_meta(ENDED, b"")

    def _keep_end(self, summary: Summary, sampler: Sampler) -> None:
        """Units have done their work, and are up: note how it ended."""
        if not self.is_aborted:
            sampler.take(ended=summary.state)
            write_hosts(self.graph_at_work)
        self.ledger.put_meta(ENDED, msgspec.json.encode(summary))

    async def rest(self) -> bool:
        """End as soon as nothing is in flight, if it has more to do, so that others go on with it. False where it ended or goes on
        otherwise."""
        frontier = self.units.frontier
        self._is_resting = True
        frontier.pause()
        until = time.monotonic() + PATIENCE
        while self.working and not self.is_stopping and time.monotonic() < until:
            if not frontier.metrics.snapshot()["in_flight"]:
                if frontier.totals.reached or not len(frontier.queues):
                    break  # it is about to end by itself
                self.is_handed_over = True
                self.finish()
                return True
            await asyncio.sleep(_LOOK)
        self._is_resting = False
        if self.working and not self.is_paused:
            frontier.go_on()
        return False


# Lines for people: to the terminal as they come, and into the log while the run is at work.

#: Lines that are said once more at the end of a crawl: the latest.
WARNINGS = 10


class RunLines:
    """The lines of one run."""

    def __init__(self, directory: Path, report: Callable[[str], None], is_working: Callable[[], bool]) -> None:
        """Nothing is told yet. `is_working`: whether units are up now."""
        self._directory = directory
        self._report = report
        self._is_working = is_working
        self.warnings: deque[str] = deque(maxlen=WARNINGS)
        """The lines that were told while the crawl was at work; they are said once more at the end."""

    def tell(self, line: str) -> None:
        if self._is_working():
            self.warnings.append(line)
            note_line(self._directory, line)
        self._report(line)
