"""The figures of one run: its summary at any moment and at its end, its last seconds, and its samples.

Place in the flow: the counters are the ledger's, the limits the frontier's; :mod:`crawl` asks here at the end, and
:mod:`~gossamer.crawls.control.at_work` while the crawl runs. The crawl's process takes the pulse once a second, never for each
page; `status` and progress read it. Its memory is bounded: eleven samples of the counters, seven of the sizes, and the pages that
have been under way for longest.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gossamer.crawls.control.waits import disk_free, sizes_of, walked_sizes
from gossamer.crawls.summary import (
    Summary,
    counted,
    cpu_seconds,
    cuts_of,
    has_documents,
    peak_rss,
    urls_elsewhere,
)
from gossamer.engine.errors import WiringError
from gossamer.engine.processes import give_back_memory
from gossamer.engine.running import RunningGraph
from gossamer.engine.unit import Clock, SystemClock, meanwhile
from gossamer.frontier.frontier import Frontier
from gossamer.frontier.traps.watch import LearntTraps
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.seen.memory import MemoryFlights
from gossamer.storage.tables.log import TableLog
from gossamer.storage.tables.row_tables import COARSE, FINE, SAMPLES, SampleRow
from gossamer.values.errors import GossamerError
from gossamer.values.instants import utc_text
from gossamer.values.outcome import ERRORS, Outcome

if TYPE_CHECKING:
    from gossamer.crawls.work import CrawlAtWork, CrawlWork

# The last seconds of a crawl: speed, growth, and pages that take long.

#: Seconds between two samples, and the seconds over which the speed is told.
BEAT, SPAN = 1.0, 10.0

#: Seconds between two samples of the sizes, and the seconds over which their growth is told: stores grow in leaps.
MEASURE, GROWTH_SPAN = 10.0, 60.0

#: Seconds between two looks at what must be walked over.
SURVEY = 60.0

#: Pages under way that are watched: those that began first are the slow ones.
WATCHED = 32

#: Seconds after which a page that is under way is slow: most answers are there in one.
SLOW = 10.0


class Counts(msgspec.Struct, frozen=True):
    pages: int
    fetched: int
    flights: Sequence[str]
    """The pages that have been under way for longest, the oldest first."""
    cpu: float = 0.0
    """Seconds of CPU that the process has used."""


class SlowPage(msgspec.Struct, frozen=True):
    """A page that has been under way for long."""

    url: str
    seconds: float
    """How long at least."""


class Pulse:
    def __init__(
        self,
        count: Callable[[], Counts],
        measure: Callable[[], Mapping[str, int]],
        survey: Callable[[], Mapping[str, int]],
        clock: Clock,
    ) -> None:
        """Nothing is sampled yet.

        Args:
            measure: gives the bytes of each data set; it must look at no directory.
            survey: gives those of data sets that are directories; called in a thread, once a minute.
        """
        self._count = count
        self._measure = measure
        self._survey = survey
        self._surveyed: Mapping[str, int] = {}
        self._clock = clock
        self._counts: deque[tuple[float, Counts]] = deque(maxlen=round(SPAN / BEAT) + 1)
        self._sizes: deque[tuple[float, Mapping[str, int]]] = deque(maxlen=round(GROWTH_SPAN / MEASURE) + 1)
        self._since: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Pulse of {len(self._counts)} samples, {len(self._since)} pages watched>"

    def beating(self) -> AbstractAsyncContextManager[None]:
        """Take samples while the block runs."""
        return meanwhile(self._go_on(), self._look_around())

    async def _go_on(self) -> None:
        while True:
            self.beat()
            await self._clock.sleep(BEAT)

    async def _look_around(self) -> None:
        while True:
            # A crawl of seconds ends before its directories are worth a look.
            await self._clock.sleep(MEASURE)
            self._surveyed = await asyncio.to_thread(self._survey)
            # The allocator keeps what was freed among what is in use, and more of it the longer a crawl lasts.
            await asyncio.to_thread(give_back_memory)
            await self._clock.sleep(SURVEY - MEASURE)

    def beat(self) -> None:
        now, counts = self._clock.monotonic(), self._count()
        self._counts.append((now, counts))
        urls = (identity.partition("\n")[0] for identity in counts.flights)  # without the mark of a request
        self._since = {url: self._since.get(url, now) for url in urls}
        if not self._sizes or now - self._sizes[-1][0] >= MEASURE:
            self._sizes.append((now, {**self._measure(), **self._surveyed}))

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of each data set: those that know their own size as they are now, the others as they were a minute ago at most."""
        return {**self._measure(), **self._surveyed}

    @property
    def speeds(self) -> tuple[float, float]:
        """Pages and fetched answers a second over the last ten seconds, or since the beginning."""
        if not self._counts:
            return 0.0, 0.0
        before, first = self._counts[0]
        now, last = self._clock.monotonic(), self._count()
        passed = now - before
        if passed <= 0:
            return 0.0, 0.0
        return (last.pages - first.pages) / passed, (last.fetched - first.fetched) / passed

    @property
    def busy(self) -> float:
        if len(self._counts) < 2:
            return 0.0
        (before, first), (now, last) = self._counts[0], self._counts[-1]
        return (last.cpu - first.cpu) / (now - before) if now > before else 0.0

    @property
    def growth(self) -> Mapping[str, float]:
        """Bytes a second by which each data set grew over the last minute; empty before the second sample."""
        if len(self._sizes) < 2:
            return {}
        (before, first), (now, last) = self._sizes[0], self._sizes[-1]
        return {name: (size - first[name]) / (now - before) for name, size in last.items() if name in first}

    @property
    def slow_pages(self) -> list[SlowPage]:
        """Pages that have been under way for longer than :data:`SLOW` seconds, the slowest first; at most :data:`WATCHED`."""
        now = self._clock.monotonic()
        slow = [SlowPage(url, now - since) for url, since in self._since.items() if now - since >= SLOW]
        return sorted(slow, key=lambda page: -page.seconds)


# The units of a crawl that work in its own process, found by what they are.

U = TypeVar("U")


class UnitsAtWork:
    """Components and providers of a running graph."""

    def __init__(self, running: RunningGraph) -> None:
        self.running = running
        """The graph."""

    @property
    def frontier(self) -> Frontier:
        """The component that hands out. Raises WiringError: the wiring has none."""
        for component in self.components(Frontier):
            return component
        raise WiringError("the wiring has no component of class Frontier; a crawl needs one")

    @property
    def ledger(self) -> RocksLedger:
        """The part that keeps everything that the crawl must not forget. Raises WiringError: the wiring has none."""
        for ledger in self.providers(RocksLedger):
            return ledger
        raise WiringError("the wiring has no ledger; a crawl needs one")

    def providers(self, kind: type[U]) -> list[U]:
        return [unit for unit in self.running.providers.values() if isinstance(unit, kind)]

    def components(self, kind: type[U]) -> list[U]:
        found = (runner.component for runner in self.running.runners.values())
        return [component for component in found if isinstance(component, kind)]


#: Units of one agent of several, as the catalog calls them: they keep what the others get.
_OUTBOXES = frozenset({"outbox", "mass-mail", "file-outbox"})


class RunFigures:
    """The figures of a run, and how it stands."""

    def __init__(self, directory: Path, units: UnitsAtWork, work: "CrawlWork", began: float) -> None:
        """`began` is a monotonic instant."""
        self._directory = directory
        self._units = units
        self._work = work
        self._began = began
        self.pages_before = 0
        """Pages of earlier runs."""
        self.pulse = Pulse(self._count, lambda: sizes_of(units.ledger), lambda: walked_sizes(directory), SystemClock())
        """The last seconds of the crawl; by the machine's clock, since people look at it."""

    def begin(self, pages_before: int | None = None) -> None:
        """The run begins, or goes on with what had so many pages before it."""
        self.pages_before = self._counters().get("pages", 0) if pages_before is None else pages_before

    def summary(self) -> Summary:
        counters, frontier, cut_by = self._counters(), self._units.frontier, self._work.cut_by
        queued = len(frontier.queues) + urls_elsewhere(counters)
        limit = frontier.totals.reached or cut_by
        state = self._state(counters, queued, limit)
        ended_by = f"limit:{limit}" if limit else "stopped" if state == "stopped" else ""
        # A trap that a person has confirmed is refused, and is no guess any more.
        confirmed = [family for unit in self._units.providers(LearntTraps) for family in unit.confirmed]
        set_aside = counters.get("set_aside", 0) - sum(self._units.ledger.shelf.row(one).count for one in confirmed)
        seconds = time.monotonic() - self._began
        here = counters.get("pages", 0) - self.pages_before
        return Summary(
            crawl=str(self._directory),
            state=state,
            **counted(counters),
            queued=queued,
            seconds=round(seconds, 3),
            pages_per_second=round(here / seconds, 2) if seconds else 0.0,
            cpu_seconds=cpu_seconds(),
            peak_rss_bytes=peak_rss(),
            set_aside=set_aside,
            cuts=cuts_of(counters, ended_by, queued, set_aside),
            limit=limit if state == "limit" else "",
            goal=frontier.totals.goal if state == "limit" else "",
        )

    def last_summary(self) -> Summary:
        """The summary of the end: it also says what waits, which takes a look at every host that has tasks."""
        summary = self.summary()
        counters = self._counters()
        if summary.state == "limit" and not (has_documents(counters) or self._had_no_part(counters, summary.queued)):
            summary = msgspec.structs.replace(summary, state="incomplete")
        return msgspec.structs.replace(
            summary, waiting=self._units.frontier.termination.waiting() if summary.queued else None
        )

    def _state(self, counters: Mapping[str, int], queued: int, limit: str) -> str:
        if self._work.is_stopping:
            return "stopped"
        if limit:
            return "limit"
        if self._had_no_part(counters, queued):
            return "finished"
        lost = queued or counters.get(f"outcome:{Outcome.GONE_AFTER_RETRIES}") or not has_documents(counters)
        return "incomplete" if lost else "finished"

    def _had_no_part(self, counters: Mapping[str, int], queued: int) -> bool:
        """Whether this is one agent of several, and nothing of what is known so far is its part."""
        uses = {plan.use for plan in self._units.running.whole.wiring.providers.values()}
        return not (queued or counters.get("fetched") or uses.isdisjoint(_OUTBOXES))

    def _counters(self) -> Mapping[str, int]:
        return self._units.ledger.counters()

    def _count(self) -> Counts:
        counters = self._counters()
        flights = [url for unit in self._units.providers(MemoryFlights) for url in unit.oldest(WATCHED)]
        return Counts(counters.get("pages", 0), counters.get("fetched", 0), flights, time.process_time())


# Samples of a crawl: how it stands, every ten seconds and at its end, as rows of the table `samples`. The numbers are those of
# :mod:`~gossamer.crawls.control.at_work`, without those that need a look at each host: a sample costs some hundred microseconds.


#: Figures that a sample and a summary have alike.
_OF_SUMMARY = (
    "pages", "fetched", "unique_documents", "bytes", "raised", "discovered", "queued", "set_aside", "hosts", "seconds",
    "cpu_seconds", "peak_rss_bytes", "outcomes",
)  # fmt: skip


class Sampler:
    """Takes the samples of a crawl, and writes them beside its other rows."""

    def __init__(
        self, crawl: "CrawlAtWork", clock: Clock | None = None, beside: Callable[[], None] = lambda: None
    ) -> None:
        """`clock` says when a sample is due: the machine's, unless another is given, since people look at the plots.
        `beside` is called with each sample."""
        self._beside = beside
        self._crawl = crawl
        self._clock = clock or SystemClock()
        self._kept = 0
        """The number of the last five minutes, since the epoch, of which a sample is kept for good."""

    def sampling(self) -> AbstractAsyncContextManager[None]:
        """Take samples while the block runs."""
        return meanwhile(self._go_on())

    async def _go_on(self) -> None:
        while True:
            await self._clock.sleep(FINE)
            self.take()
            self._beside()

    def take(self, ended: str = "") -> None:
        """Take a sample and write it; `ended` is the state in which the run ends.

        One that cannot be written is counted by the log as `samples_lost`: the crawl goes on without it.
        """
        logs = self._crawl.providers(TableLog)
        if not logs:
            return
        log, now = logs[0], self._crawl.ledger.clock.now()
        is_kept = bool(ended) or int(now // COARSE) != self._kept
        row = sample_of(self._crawl, log.sheet.agent, now, every=COARSE if is_kept else FINE, ended=ended)
        try:
            log.add(SAMPLES.name, [row], self._crawl.ledger)
        except (OSError, GossamerError):
            log.metrics.count("samples_lost")
            return
        if is_kept:
            self._kept = int(now // COARSE)


def sample_of(crawl: "CrawlAtWork", agent: str, now: float, *, every: int, ended: str = "") -> SampleRow:
    """How a running crawl stands, as a row. `ended`: the state in which the run ends; empty while it goes on."""
    summary, frontier, pulse = crawl.figures.summary(), crawl.units.frontier, crawl.figures.pulse
    speed, _ = pulse.speeds
    return SampleRow(
        taken_at=utc_text(now),
        agent=agent,
        every=every,
        state=ended or crawl.state_at_work,
        **{name: getattr(summary, name) for name in _OF_SUMMARY},
        errors=sum(count for name, count in summary.outcomes.items() if name in ERRORS),
        in_flight=int(frontier.metrics.snapshot()["in_flight"]),
        pages_per_second=0.0 if ended else round(speed, 2),
        disk_free=disk_free(crawl.directory),
        sizes={name: int(size) for name, size in pulse.sizes.items()},
    )
