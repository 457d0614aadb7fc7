"""One crawl from options to summary: checked, started, watched, stopped. What command line and Python API share.

Order matters here: everything that can be refused is refused before the directory is touched (no half-made directory).
:mod:`plan` says what a crawl will be, :mod:`work` how its work ends, :mod:`figures` what it has done, and :mod:`live` changes it
while it runs.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.crawls.companions import Companions, works_beside, write_hosts
from gossamer.crawls.control.server import ControlServer
from gossamer.crawls.damage import bring_back, refuse_without_ledger, restored_lines
from gossamer.crawls.directory import CrawlPlace, begin_anew, refuse_unfinished_work
from gossamer.crawls.figures import RunFigures
from gossamer.crawls.leases import LeaseUrls
from gossamer.crawls.live import KeptChanges, read_changes
from gossamer.crawls.machine import loop_factory
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.plan import CrawlPlan
from gossamer.crawls.processes import Fleet
from gossamer.crawls.pulse import Sampler
from gossamer.crawls.seeds import check_addresses
from gossamer.crawls.subscribing import setting_aside
from gossamer.crawls.summary import ENDED, RunEnding, Summary, came_to_nothing, cpu_seconds, peak_rss
from gossamer.crawls.work import CrawlAtWork, Lapsing, RunLines
from gossamer.engine.connector import Statistics
from gossamer.engine.files import scratch
from gossamer.engine.graph import Graph
from gossamer.engine.planning import Catalog
from gossamer.engine.running import RunningGraph
from gossamer.engine.unit import Clock
from gossamer.engine.wiring import Wiring
from gossamer.frontier.frontier import Seeds
from gossamer.frontier.traps.watch import LearntTraps
from gossamer.storage.commit.commit_stage import Tally
from gossamer.storage.recovery import ensure_crawl_id, refuse_divided
from gossamer.values.errors import UsageError
from gossamer.values.visit import Record

if TYPE_CHECKING:
    from gossamer.crawls.control.picture import UnitInstances
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.crawls.control.steering import Others
    from gossamer.crawls.control.wire import Answered, ControlRequest


class Crawl(CrawlAtWork):
    """A crawl that is ready to run. Making it checks everything and touches nothing."""

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
    ) -> None:
        """Check everything. `subscribers` are names of the catalog that get every record too; they belong to the program that
        runs the crawl: the wiring that is kept does not have them, so that others can go on with the crawl. `clock` is what every
        unit goes by: the machine's, unless a simulated one is given.
        """
        self.options = options or CrawlOptions()
        self._clock = clock
        self.plan = CrawlPlan(seeds, self.options, wiring, settings or {}, catalog, subscribers)
        """Its plan."""
        self.seeds = self.plan.seeds
        super().__init__(self.plan.directory, self.report)
        self._lines = RunLines(self.directory, report, lambda: self.working)
        self._place = CrawlPlace(self.directory, self.options)
        self.beside = works_beside(self.directory, self.options, self.plan.graph.wiring, self.report)
        """The work of subjects beside it."""
        self._check_place()
        self._companions = Companions(self.plan, self.options, report, has_tables=tables)
        self.fleet: Fleet | None = None
        self.others: Others | None = None
        """The part that lets other agents join. None where they cannot: a program runs it, in a process of its own."""
        self.told: Callable[[Record], None] | None = None
        """Called with each record (:meth:`tell_each`)."""
        self.last_lines: tuple[str, ...] = ()
        """The lines that were told of the end: of each seed, where none brought a document. Filled in at the end of the run."""
        self.connector_statistics: dict[str, Statistics] = {}
        """The count of every connector; filled in at the end of the run."""

    def _check_place(self) -> None:
        self._place.check()
        if self.options.is_divided:
            raise UsageError(
                "a crawl that a program runs has one agent, in its own process; leave out `agents` and `designation`, or run "
                "`gossamer crawl`"
            )
        if self.options.resume:
            refuse_divided(self.directory)
            if not self.options.accept_loss:
                refuse_without_ledger(self.directory)
            refuse_unfinished_work(self.directory, self.plan.graph, accept=self.options.accept_loss)
        elif self.options.accept_loss:
            raise UsageError(
                "--accept-loss goes on with a crawl; use it with --resume, or as gossamer resume DIR --accept-loss"
            )

    @property
    def graph(self) -> Graph:
        """The graph of all processes: the one that runs, or the one that will."""
        return self.running.whole if self.running is not None else self.plan.graph

    @property
    def wiring(self) -> Wiring:
        """The wiring of :attr:`graph`, which gives the same crawl when it is planned again."""
        return self.graph.wiring

    @property
    def kept(self) -> Wiring:
        """The wiring by which a later run goes on: without the program's own subscribers."""
        return self.plan.kept(self.graph)

    # -- the run

    async def run(self) -> Summary:
        began = time.monotonic()
        with scratch() as folder:
            # Sockets need short paths (108 bytes), so they do not lie in the crawl directory (design question 13).
            self.fleet = Fleet(self.kept, self.plan.catalog, folder, self.directory, self.report)
            self.running = RunningGraph(
                self.plan.graph,
                clock=self._clock,
                report=self.report,
                meeting=folder,
                keep_failed=setting_aside(self.directory),
            )
            self.running.history = read_changes(self.directory, self.wiring)
            self._figures = RunFigures(self.directory, self.units, self._work, began)
            self.changes = KeptChanges(self.plan, self.running, self.fleet, self._place)
            return await self._run(self.running, self.fleet)

    async def _run(self, running: RunningGraph, fleet: Fleet) -> Summary:
        unresolved: list[str] = []
        await check_addresses(self.seeds, self.graph, self.options, unresolved.append)
        made = self._place.make(self.kept, self.graph, self._note)
        if self.options.accept_loss:
            for line in begin_anew(self.directory, self.graph):
                self.report(line)
        has_begun = is_vain = False
        try:
            await running.start()
            has_begun = True
            for line in unresolved:  # not beside the one line of a setting that a unit refuses
                self.report(line)
            await self._begin(running, fleet)
            async with self._companions.making_tables():
                work = fleet.watch_over(running.work())
                await self._work.until_done(work, running, self.units.frontier, self._attended())
            if self.is_handed_over:
                return self.figures.summary()
            for one in self.beside if not self._work.is_aborted else ():
                await one.end(self.units)
            summary = self.figures.last_summary()
            is_vain = made and came_to_nothing(summary) and not self.beside
            self._tell_end(summary, is_kept=not is_vain)
            if not self._work.is_aborted:
                Sampler(self).take(ended=summary.state)
                write_hosts(running)
            self.ledger.put_meta(ENDED, msgspec.json.encode(summary))
        finally:
            self.connector_statistics = running.statistics()
            await running.stop()
            await fleet.stop()
            await self._companions.feed_rest()
            if is_vain:
                self.report(self._place.told_vain)
            self._place.settle(made, has_begun and not is_vain)
        if self._companions.makes_tables and not self._work.is_aborted and not is_vain:
            # What was torn off in the middle may have rows that were never committed: those logs stay open.
            summary = summary.with_failure(await self._companions.finish())
            # What the tables cost belongs to the crawl.
            summary = msgspec.structs.replace(summary, cpu_seconds=cpu_seconds(), peak_rss_bytes=peak_rss())
        return summary

    async def _begin(self, running: RunningGraph, fleet: Fleet) -> None:
        """The units are up: the directory is brought to where they go on, and what works beside them begins."""
        if self.options.resume:
            # Not before the ledger is ours: another process may be at work here, by a wiring of its own.
            self._note()
            self._place.write(self.kept, self.graph)
        ensure_crawl_id(self.directory, self.ledger.clock.now())
        restored, accepted = bring_back(running, self.directory, accept=self.options.accept_loss)
        for line in restored_lines(restored, accepted, self.directory):
            self.report(line)
        if accepted.again:
            self.units.frontier.recount()
        self.figures.begin()
        for lease in self.units.components(LeaseUrls):
            lease.lapsed = fleet.end
        for unit in self.providers(Lapsing):
            unit.lapsed = self.abort
        await fleet.start()
        self.ledger.put_meta(ENDED, b"")
        for one in self.beside:
            await one.begin(self.units)
        await self._companions.start()
        self._tell_records()

    def _note(self) -> None:
        self._companions.register()
        for one in self.beside:
            one.register()

    @contextlib.asynccontextmanager
    async def _attended(self) -> AsyncIterator[None]:
        """While the block runs, the crawl can be steered from outside, its pulse is taken, and so are samples."""
        requests = [request for one in self.beside for request in one.requests]
        control = ControlServer(self.directory, self._steer, self.report, requests=requests)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(control.stop)
            await control.start()
            await stack.enter_async_context(self.figures.pulse.beating())
            await stack.enter_async_context(Sampler(self).sampling())
            for one in self.beside:
                await stack.enter_async_context(one.working(self.units))
            yield

    async def _steer(self, request: "ControlRequest") -> "Answered":
        """Do what is asked from outside: few crawls are, so what it takes is imported then."""
        from gossamer.crawls.control.steering import answer

        return await answer(self, request)

    # -- what it tells

    def report(self, line: str) -> None:
        self._lines.tell(line)

    @property
    def warnings(self) -> Sequence[str]:
        return self._lines.warnings

    def tell_each(self, told: Callable[[Record], None]) -> bool:
        """Call this with the record of each URL as soon as it is committed; to be said before the run. Others keep theirs to
        themselves, so that no agent joins by itself."""
        self.told = told
        if self.others is not None:
            self.others.stay("--verbose prints each URL")
        return True

    def _tell_records(self) -> None:
        """Let the tally tell each record; a wiring may have none, or have it in another process."""
        if self.told is None:
            return
        tallies = self.units.components(Tally)
        for tally in tallies:
            tally.told = self.told
        if not tallies:
            self.report("this wiring has no tally in the main process, so no line for each URL is told")

    def _tell_end(self, summary: Summary, *, is_kept: bool) -> None:
        if summary.set_aside:
            from gossamer.crawls.trap_review import told

            confirmed = {family.key for unit in self.providers(LearntTraps) for family in unit.confirmed}
            rows = (row for row in self.ledger.aside() if row.family.key not in confirmed)
            self.report(told(rows, self.directory))
        unsent = sum(unit.unsent for unit in self.units.components(Seeds))
        ending = RunEnding(
            self.directory, self.seeds, has_lingered=self.units.frontier.termination.has_lingered, unsent=unsent
        )
        self.last_lines = tuple(ending.lines(summary, is_kept=is_kept))
        for line in self.last_lines:
            self.report(line)

    # -- steering

    def _torn(self) -> None:
        self._companions.abort()

    # -- what stands now, of a crawl that runs or has run

    def glance(self) -> "CrawlStanding":
        """How it stands, by what is in memory: cheap enough for every redraw of a terminal."""
        from gossamer.crawls.control.standing import glance_at

        return glance_at(self, os.getpid())

    @property
    def troubled(self) -> int:
        return self.figures.troubled

    async def standing(self, *, units: bool) -> "CrawlStanding":
        """How it stands; with `units` also what every unit and connector has counted, in whichever process."""
        from gossamer.crawls.control.standing import standing_of

        elsewhere = await self.fleet.figures() if units and self.fleet is not None else []
        alone = self.others.why_alone() if self.others is not None else "a program runs it, in a process of its own"
        return standing_of(self, os.getpid(), units=units, elsewhere=elsewhere, alone=alone)

    async def instances(self, name: str) -> "UnitInstances":
        from gossamer.crawls.control.picture import instances_of

        return instances_of(name, self.graph_at_work, await self.fleet.figures() if self.fleet is not None else [])


def run(crawl: Crawl) -> Summary:
    """Run a crawl on an event loop of its own, uvloop where it exists."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(crawl.run())
