"""One crawl from options to summary: checked, started, watched, stopped.

Place in the flow: :class:`AnyCrawl` has the steps of every crawl, in their order: everything that can be refused is refused
before the directory is touched (no half-made directory). Its heirs say where agents work: in this process (:class:`Crawl`), or in
others (:mod:`gossamer.agents`). :mod:`plan` says what a crawl will be, :mod:`work` how its work ends, :mod:`figures` what it has
done, and :mod:`live` changes it while it runs.
"""

import contextlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gossamer.crawls.companions import Beside, Companions, works_beside
from gossamer.crawls.control.server import ControlServer
from gossamer.crawls.damage import refuse_without_ledger
from gossamer.crawls.directory import CrawlPlace, begin_anew, refuse_unfinished_work
from gossamer.crawls.figures import RunFigures, Sampler
from gossamer.crawls.leases import LeaseUrls
from gossamer.crawls.live import KeptChanges, read_changes
from gossamer.crawls.machine import coroutine_runner
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.plan import CrawlPlan, check_addresses
from gossamer.crawls.processes import Fleet
from gossamer.crawls.summary import RunEnding, Summary, came_to_nothing, cpu_seconds, peak_rss
from gossamer.crawls.work import CrawlAtWork, Lapsing, RunLines
from gossamer.engine.connector import Statistics
from gossamer.engine.files import scratch
from gossamer.engine.graph import Graph
from gossamer.engine.planning import Catalog
from gossamer.engine.running import RunningGraph
from gossamer.engine.unit import Clock, SystemClock
from gossamer.engine.wiring import Wiring
from gossamer.frontier.frontier import Seeds
from gossamer.frontier.traps.watch import LearntTraps
from gossamer.storage.commit.commit_stage import Tally
from gossamer.storage.ledger.opening import ProcessLock
from gossamer.storage.logs import setting_aside
from gossamer.storage.members import ensure_crawl_id, refuse_divided
from gossamer.values.errors import UsageError
from gossamer.values.visit import Record

if TYPE_CHECKING:
    from gossamer.crawls.control.picture import UnitInstances
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.crawls.control.steering import Others
    from gossamer.crawls.control.wire import Answered, ControlRequest


class BegunAlone(NamedTuple):
    """The work of one process in a run that others go on with."""

    began: float
    """The monotonic instant at which the run began."""
    pages_before: int
    """Pages of earlier runs."""
    is_paused: bool
    """A person has said so."""
    standing: "CrawlStanding"
    """How the crawl stood then."""
    lock: ProcessLock
    """That of the crawl's supervisor: no other may have the crawl in between."""


class AnyCrawl(ABC):
    """The steps of a crawl, wherever its agents work. Making one checks everything and touches nothing."""

    beside: Sequence[Beside] = ()
    """The work of subjects beside it."""
    is_handed_over = False
    """It has ended at rest, and others are to go on with it."""
    _has_begun = False

    def __init__(
        self,
        plan: CrawlPlan,
        options: CrawlOptions,
        report: Callable[[str], None],
        *,
        tables: bool,
        begun: BegunAlone | None = None,
    ) -> None:
        """Check the place, and what works beside the agents; without `tables`, rows stay in their logs. `begun` is what one
        process did of the run already. Raises UsageError: the options do not fit; CrawlDirectoryError: the directory is in use or
        damaged."""
        self.options = options
        self.plan = plan
        """Its plan."""
        self.seeds, self.directory = plan.seeds, plan.directory
        self._begun = begun
        self.began = 0.0 if begun is None else begun.began
        """The monotonic instant at which the run began; 0.0 before."""
        self._lines = RunLines(self.directory, report, lambda: self.working)
        self._place = CrawlPlace(self.directory, options, is_found=plan.has_found_name)
        self._place.check()
        if options.accept_loss and not options.resume:
            raise UsageError(
                "--accept-loss goes on with a crawl; use it with --resume, or as gossamer resume DIR --accept-loss"
            )
        self._companions = Companions(plan, options, report, has_tables=tables)
        self.last_lines: tuple[str, ...] = ()
        """The lines that were told of the end: of each seed, where none brought a document. Filled in at the end of the run."""

    @property
    def has_begun(self) -> bool:
        """An agent was at work, so that there may be something to keep, whatever came after."""
        return self._has_begun

    # -- where its agents work

    @property
    @abstractmethod
    def graph(self) -> Graph:
        """The graph of the whole crawl, with every unit's settings as they stand."""

    @property
    @abstractmethod
    def working(self) -> bool:
        """Agents are at work, so that there is progress to show."""

    @property
    @abstractmethod
    def is_aborted(self) -> bool:
        """It was torn off before its end."""

    @abstractmethod
    async def _start(self, held: contextlib.AsyncExitStack) -> None:
        """Take the crawl, so that no other process has it. Leave with `held` what ends with the work."""

    @abstractmethod
    async def _crawled(self) -> Summary:
        """The directory is this run's: let the agents go on in it until the crawl ends, or is told to stop; returns what came of
        the run."""

    @abstractmethod
    def _watches(self) -> Iterable[AbstractAsyncContextManager[None]]:
        """Looks at the crawl that last as long as its work."""

    @abstractmethod
    def _end(self, summary: Summary) -> RunEnding:
        """Note the end for every later run; the words for it."""

    @abstractmethod
    async def _steer(self, request: "ControlRequest") -> "Answered":
        """Do what is asked from outside."""

    # -- the run

    async def run(self) -> Summary:
        """Crawl to the end. Raises GossamerError: the crawl cannot run; FlowError: a unit cannot."""
        self.began = self.began or time.monotonic()
        unresolved: list[str] = []
        await check_addresses(self.seeds, self.graph, self.options, unresolved.append)
        made = self._place.make(self.kept, self.graph, self._note)
        is_vain = False
        try:
            async with contextlib.AsyncExitStack() as held:
                await self._start(held)
                for line in unresolved:  # not beside the one line of a setting that a unit refuses
                    self.report(line)
                if self.options.resume:
                    # Not before the crawl is ours: another process may be at work here, by a wiring of its own.
                    self._note()
                    self._place.write(self.kept, self.graph)
                ensure_crawl_id(self.directory, self._now())
                summary = await self._crawled()
                if self.is_handed_over:
                    return summary
                is_vain = made and came_to_nothing(summary) and not self.beside
                self.last_lines = tuple(self._end(summary).lines(summary, is_kept=not is_vain))
                for line in self.last_lines:
                    self.report(line)
        finally:
            await self._companions.feed_rest()
            if is_vain:
                self.report(self._place.told_vain)
            self._place.settle(made, self.has_begun and not is_vain)
        if self._companions.makes_tables and not self.is_aborted and not is_vain:
            # A crawl that was torn off in the middle may have rows that were never committed: those logs stay open.
            summary = summary.with_failure(await self._companions.finish())
            # The cost of the tables belongs to the crawl.
            peak = max(summary.peak_rss_bytes, peak_rss())
            summary = msgspec.structs.replace(summary, cpu_seconds=cpu_seconds(), peak_rss_bytes=peak)
        return summary

    @property
    def kept(self) -> Wiring:
        """The wiring by which a later run goes on: without the program's own subscribers."""
        return self.plan.kept(self.graph)

    def _now(self) -> float:
        return SystemClock().now()

    def _note(self) -> None:
        self._companions.register()
        for one in self.beside:
            one.register()

    @contextlib.asynccontextmanager
    async def _attended(self) -> AsyncIterator[None]:
        """While the block runs, the crawl can be steered from outside, and it is known how it stands."""
        requests = [request for one in self.beside for request in one.requests]
        control = ControlServer(self.directory, self._steer, self.report, requests=requests)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(control.stop)
            await control.start()
            for watch in self._watches():
                await stack.enter_async_context(watch)
            yield

    # -- what it tells

    def report(self, line: str) -> None:
        self._lines.tell(line)

    @property
    def warnings(self) -> Sequence[str]:
        return self._lines.warnings


class Crawl(CrawlAtWork, AnyCrawl):
    """A crawl whose only agent works in this process."""

    def __init__(
        self,
        seeds: Sequence[str],
        options: CrawlOptions | None = None,
        *,
        wiring: Wiring | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        catalog: Catalog | None = None,
        report: Callable[[str], None] = lambda line: None,
        tables: bool = True,
        subscribers: Sequence[str] = (),
        clock: Clock | None = None,
        begun: BegunAlone | None = None,
    ) -> None:
        """Check everything. `subscribers` are names of the catalog that get every record too; they belong to the program that
        runs the crawl: the wiring that is kept does not have them, so that others can go on with the crawl. `clock` is what every
        unit goes by: the machine's, unless a simulated one is given.
        """
        options = options or CrawlOptions()
        if options.is_divided:
            raise UsageError(
                f"a crawl that a program runs has one agent, in its own process; leave out {' and '.join(options.dividing)}, or "
                "run `gossamer crawl`"
            )
        self._clock = clock
        plan = CrawlPlan(seeds, options, wiring, settings or {}, catalog, subscribers)
        CrawlAtWork.__init__(self, plan.directory, self.report)
        AnyCrawl.__init__(self, plan, options, report, tables=tables, begun=begun)
        if options.resume:
            refuse_divided(self.directory)
            if not options.accept_loss:
                refuse_without_ledger(self.directory)
            refuse_unfinished_work(self.directory, plan.graph, accept=options.accept_loss)
        self.beside = works_beside(self.directory, options, plan.graph.wiring, self.report)
        self.fleet: Fleet | None = None
        self.others: Others | None = None
        """The part that lets other agents join. None where they cannot: a program runs it, in a process of its own."""
        self.told: Callable[[Record], None] | None = None
        """Called with each record (:meth:`tell_each`)."""
        self.connector_statistics: dict[str, Statistics] = {}
        """The count of every connector; filled in at the end of the run."""

    @property
    def graph(self) -> Graph:
        """The graph of all processes: the one that runs, or the one that will."""
        return self.running.whole if self.running is not None else self.plan.graph

    @property
    def wiring(self) -> Wiring:
        """The wiring of :attr:`graph`, which gives the same crawl when it is planned again."""
        return self.graph.wiring

    # -- the run

    async def _start(self, held: contextlib.AsyncExitStack) -> None:
        # Sockets need short paths (108 bytes), so they do not lie in the crawl directory (design question 13).
        folder = held.enter_context(scratch())
        self.fleet = fleet = Fleet(self.kept, self.plan.catalog, folder, self.directory, self.report)
        self.running = running = RunningGraph(
            self.plan.graph,
            clock=self._clock,
            report=self.report,
            meeting=folder,
            keep_failed=setting_aside(self.directory),
        )
        running.history = read_changes(self.directory, self.wiring)
        self.figures = RunFigures(self.directory, self.units, self, self.began)
        self.changes = KeptChanges(self.plan, running, fleet, self._place)
        if self.options.accept_loss:
            for line in begin_anew(self.directory, self.graph):
                self.report(line)
        held.push_async_callback(fleet.stop)
        held.push_async_callback(self._stop, running)
        await running.start()
        self._has_begun = True

    async def _stop(self, running: RunningGraph) -> None:
        self.connector_statistics = running.statistics()
        await running.stop()

    def _now(self) -> float:
        return self.ledger.clock.now()

    async def _crawled(self) -> Summary:
        self._go_on_with_kept(self._begun and self._begun.pages_before, accept=self.options.accept_loss)
        assert self.fleet is not None
        for lease in self.units.components(LeaseUrls):
            lease.lapsed = self.fleet.end
        for unit in self.providers(Lapsing):
            unit.lapsed = self.abort
        await self.fleet.start()
        for one in self.beside:
            await one.begin(self.units)
        if self.told is not None:
            tallies = self.units.components(Tally)
            for tally in tallies:
                tally.listener = self.told
            if not tallies:
                self.report("this wiring has no tally in the main process, so no line for each URL is told")
        async with self._companions.at_work():
            work = self.fleet.watch_over(self.graph_at_work.work())
            await self.until_done(work, self.graph_at_work, self.units.frontier, self._attended())
        if self.is_handed_over:
            return self.figures.summary()
        for one in self.beside if not self.is_aborted else ():
            await one.end(self.units)
        return self.figures.last_summary()

    def _watches(self) -> Iterable[AbstractAsyncContextManager[None]]:
        yield self.figures.pulse.beating()
        yield Sampler(self).sampling()
        for one in self.beside:
            yield one.working(self.units)

    # -- what it tells

    def tell_each(self, told: Callable[[Record], None]) -> bool:
        """Call this with the record of each URL as soon as it is committed; to be said before the run. Others keep theirs to
        themselves, so that no agent joins by itself."""
        self.told = told
        if self.others is not None:
            self.others.stay("--verbose prints each URL")
        return True

    def _end(self, summary: Summary) -> RunEnding:
        if summary.set_aside:
            from gossamer.crawls.trap_review import told

            confirmed = {family.key for unit in self.providers(LearntTraps) for family in unit.confirmed}
            rows = (row for row in self.ledger.aside() if row.family.key not in confirmed)
            self.report(told(rows, self.directory))
        self._keep_end(summary, Sampler(self))
        unsent = sum(unit.unsent for unit in self.units.components(Seeds))
        return RunEnding(
            self.directory, self.seeds, has_lingered=self.units.frontier.termination.has_lingered, unsent=unsent
        )

    async def _steer(self, request: "ControlRequest") -> "Answered":
        from gossamer.crawls.control.steering import answer  # few crawls are steered

        return await answer(self, request)

    def _torn(self) -> None:
        self._companions.abort()

    # -- what stands now, of a crawl that runs or has run

    def glance(self) -> "CrawlStanding":
        """How it stands, by what is in memory: cheap enough for every redraw of a terminal."""
        from gossamer.crawls.control.at_work import glance_at

        return glance_at(self, os.getpid())

    @property
    def troubled(self) -> int:
        return self.ledger.counters().get("troubled", 0)

    async def standing(self, *, units: bool) -> "CrawlStanding":
        """How it stands; with `units` also what every unit and connector has counted, in whichever process."""
        from gossamer.crawls.control.at_work import standing_of

        elsewhere = await self.fleet.figures() if units and self.fleet is not None else []
        alone = self.others.why_alone() if self.others is not None else "a program runs it, in a process of its own"
        return standing_of(self, os.getpid(), units=units, elsewhere=elsewhere, alone=alone)

    async def instances(self, name: str) -> "UnitInstances":
        from gossamer.crawls.control.picture import instances_of

        return instances_of(name, self.graph_at_work, await self.fleet.figures() if self.fleet is not None else [])


def run(crawl: Crawl) -> Summary:
    """Run a crawl on an event loop of its own, uvloop where it exists."""
    with coroutine_runner() as runner:
        return runner.run(crawl.run())
