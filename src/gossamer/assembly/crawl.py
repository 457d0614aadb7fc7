"""One crawl from options to summary: checked, started, watched, stopped. What command line and Python API share.

Order matters here: everything that can be refused is refused before the directory is touched (no half-made directory).
"""

import asyncio
import contextlib
import datetime
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gossamer.assembly.catalog import catalog as shipped_catalog
from gossamer.assembly.compiling import compile_wiring
from gossamer.assembly.control.server import ControlServer
from gossamer.assembly.control.sizes import sizes_of, walked_sizes
from gossamer.assembly.damage import Accepted, bring_back, refuse_without_ledger
from gossamer.assembly.ending import RunEnding, has_documents, option_name
from gossamer.assembly.following import Following
from gossamer.assembly.given_seeds import default_directory, read_seeds
from gossamer.assembly.mirrors import MirrorFolder
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.place import CrawlPlace, kept_wiring
from gossamer.assembly.placing import with_directory, with_durability, with_told_tls
from gossamer.assembly.processes import Fleet, check_bodies_cross, check_children_can_import, with_pre_filters
from gossamer.assembly.protocols import hostless, with_protocols
from gossamer.assembly.pulse import WATCHED, Counts, Pulse
from gossamer.assembly.rewired import read_changes, write_changes
from gossamer.assembly.sampling import Sampler
from gossamer.assembly.seeds import check_addresses, check_schemes
from gossamer.assembly.skipped import setting_aside
from gossamer.assembly.subscribing import with_subscribers, without_subscribers
from gossamer.assembly.summary import ENDED, Summary, cpu_seconds, cuts_of, peak_rss
from gossamer.assembly.tables import TableMaker, write_hosts
from gossamer.assembly.tuning import loop_factory
from gossamer.flow.catalog import Catalog
from gossamer.flow.clock import Clock, SystemClock
from gossamer.flow.connector import Statistics
from gossamer.flow.difference import Difference
from gossamer.flow.errors import FlowError, WiringError
from gossamer.flow.graph import Graph
from gossamer.flow.planning import plan
from gossamer.flow.quantities import show_seconds
from gossamer.flow.running import RunningGraph
from gossamer.flow.wiring import Wiring, with_settings
from gossamer.model.errors import UsageError
from gossamer.model.outcome import Outcome
from gossamer.model.visit import Record
from gossamer.query.places import CRAWL_FILE, TRIPLES
from gossamer.services.politeness.provider import HostPoliteness
from gossamer.services.traps.provider import LearntTraps
from gossamer.stages.frontier.component import Frontier
from gossamer.stages.seeds import SeedsSheet
from gossamer.stages.tally import Tally
from gossamer.stores.crawl_identity import ensure_crawl_id
from gossamer.stores.deletions import refuse_unfinished
from gossamer.stores.flights import MemoryFlights
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.recovery import QUARANTINE, Restored
from gossamer.stores.scratch import scratch
from gossamer.stores.tablelog import TableLogSheet

if TYPE_CHECKING:
    from gossamer.assembly.control.messages import Answered, ControlRequest
    from gossamer.assembly.control.standing import CrawlStanding

U = TypeVar("U")

#: Seconds that a stopped crawl waits for what is in flight: a stop takes ten at most (fault 116).
GRACE = 8.0

#: Lines that are said once more at the end of a crawl: the latest.
WARNINGS = 10

#: Seconds that a page in flight has to come in when the time of a crawl is up.
BEYOND = 10.0

#: Seconds between two looks at the limits of time, which may be changed while a crawl runs.
LOOK_AT_LIMITS = 5.0


class Crawl:
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
        self.warnings: deque[str] = deque(maxlen=WARNINGS)
        """What was told while the crawl was at work, to be said once more at the end."""
        self._report = report
        if self.options.resume:
            wiring = wiring or kept_wiring(self.options.output)
        self._hostless = hostless(wiring)
        compiled = compile_wiring(read_seeds(seeds, self._hostless), self.options, wiring)
        for unit, values in (settings or {}).items():
            compiled = with_settings(compiled, unit, dict(values))
        self.directory = self._choose_directory(compiled)
        if self.options.release:
            compiled = self._released(compiled)
        self.catalog = catalog or shipped_catalog()
        compiled = with_pre_filters(with_directory(compiled, str(self.directory)))
        self._subscribers = tuple(subscribers)
        self._planned = self._plan(with_subscribers(with_told_tls(with_durability(compiled)), self._subscribers))
        self.running: RunningGraph | None = None
        self.seeds = self._seeds()
        if not self.seeds:
            raise UsageError("there is nothing to crawl: give a seed URL, or --seeds FILE with one on each line")
        check_schemes(self.seeds, self.graph)
        self._place = CrawlPlace(self.directory, self.options)
        self._place.check()
        if self.options.resume:
            refuse_without_ledger(self.directory)
            refuse_unfinished(self.directory)
        elif self.options.accept_loss:
            raise UsageError(
                "--accept-loss goes on with a crawl; use it with --resume, or as gossamer resume DIR --accept-loss"
            )
        self.tables = TableMaker(self.directory, report) if tables else None
        self.following = Following(self.directory, self.options, report, triples=self._keeps_triples())
        self.following.check(overwrite=self.options.overwrite)
        self.mirror = MirrorFolder(self.directory, self.options, report)
        self.mirror.check()
        self.fleet: Fleet | None = None
        self.last_lines: tuple[str, ...] = ()
        """What was told of the end: of each seed, where none brought a document. Filled in at the end of the run."""
        self._state = ""
        self._is_torn = False
        self._cut_by = ""
        self._began = 0.0
        self._pages_before = 0
        self._work: asyncio.Future[None] | None = None
        self.pulse = Pulse(self._count, self._measure, self._survey, SystemClock())
        """What it does over the last seconds, while it works; by the machine's clock, since people look at it."""
        self.told: Callable[[Record], None] | None = None
        """Called with the record of each URL as soon as it is committed; to be set before the run."""
        self.connector_statistics: dict[str, Statistics] = {}
        """What every connector passed; filled in at the end of the run."""

    def __repr__(self) -> str:
        return f"<Crawl of {', '.join(self.seeds)} into {self.directory}>"

    @property
    def graph(self) -> Graph:
        """The graph of all processes: the one that runs, or the one that will."""
        return self.running.whole if self.running is not None else self._planned

    @property
    def wiring(self) -> Wiring:
        """The wiring of :attr:`graph`, which gives the same crawl when it is planned again."""
        return self.graph.wiring

    @property
    def kept(self) -> Wiring:
        """The wiring by which a later run goes on: without the program's own subscribers."""
        return without_subscribers(self.wiring, self._subscribers)

    def _plan(self, wiring: Wiring) -> Graph:
        graph = plan(wiring, self.catalog)
        check_bodies_cross(graph)
        check_children_can_import(graph, self.catalog)
        return graph

    # -- before anything is touched

    def _seeds(self) -> tuple[str, ...]:
        return tuple(
            url
            for node in self.graph.components.values()
            if isinstance(node.sheet, SeedsSheet)
            for url in read_seeds(node.sheet.urls, self._hostless)
        )

    def _keeps_triples(self) -> bool:
        sheets = (node.sheet for node in self.graph.providers.values())
        return any(isinstance(sheet, TableLogSheet) and TRIPLES in sheet.tables for sheet in sheets)

    def _released(self, wiring: Wiring) -> Wiring:
        from gossamer.assembly.suspicions import with_released

        if not self.options.resume:
            raise UsageError("--release fetches what an earlier run has set aside; give it to `gossamer resume DIR`")
        return with_released(wiring, self.directory, self.options.release)

    def _choose_directory(self, wiring: Wiring) -> Path:
        if self.options.output:
            return Path(self.options.output)
        stores = [node.settings.get("directory") for node in wiring.providers.values()]
        kept = next((text for text in stores if text), None)
        if kept is not None:
            return Path(str(kept))
        seeds = [url for node in wiring.components.values() for url in node.settings.get("urls", ())]
        return Path(default_directory(seeds, datetime.datetime.now().astimezone().date()))

    # -- the run

    async def run(self) -> Summary:
        """Crawl to the end, or to :meth:`stop`."""
        self._began = time.monotonic()
        with scratch() as folder:
            # Sockets need short paths (108 bytes), so they do not lie in the crawl directory (design question 13).
            self.fleet = Fleet(self.wiring, self.catalog, folder, self.directory, self.report)
            self.running = RunningGraph(
                self._planned,
                clock=self._clock,
                report=self.report,
                meeting=folder,
                aside=setting_aside(self.directory),
            )
            self.running.history = read_changes(self.directory, self.wiring)
            return await self._run(self.running, self.fleet)

    def report(self, line: str) -> None:
        """Tell a line; one of while the crawl was at work is said once more at the end."""
        if self.working:
            self.warnings.append(line)
        self._report(line)

    async def _run(self, running: RunningGraph, fleet: Fleet) -> Summary:
        await check_addresses(self.seeds, self.graph, self.options, self.report)
        made = self._place.make(self.kept, self.graph)
        has_begun = is_vain = False
        try:
            await running.start()
            has_begun = True
            if self.options.resume:
                # Not before the ledger is ours: another process may be at work here, by a wiring of its own.
                self._place.write(self.kept, self.graph)
            ensure_crawl_id(self.directory, self.ledger.clock.now())
            self._tell_restored(*bring_back(running, self.directory, accept=self.options.accept_loss))
            self._pages_before = self._counters().get("pages", 0)
            await fleet.start()
            self.ledger.put_meta(ENDED, b"")
            await self.following.start()
            self.mirror.start()
            self._tell_records()
            async with self.tables.watching() if self.tables else contextlib.nullcontext():
                await self._until_done(fleet.watch_over(running.work()))
            summary = self._last_summary()
            if summary.set_aside:
                self._tell_aside()
            is_vain = (
                made
                and summary.state == "incomplete"
                and not summary.fetched
                and not summary.limit
                and self._is_unfinished(summary)
            )
            self.last_lines = tuple(self._ending().lines(summary, is_kept=not is_vain))
            for line in self.last_lines:
                self.report(line)
            if not self._aborted:
                Sampler(self).take(ended=summary.state)
                write_hosts(running)
            self.ledger.put_meta(ENDED, msgspec.json.encode(summary))
        finally:
            self.connector_statistics = running.statistics()
            await running.stop()
            await fleet.stop()
            await self.following.finish()
            if is_vain:
                self._tell_vain()
            self._place.settle(made, has_begun and not is_vain)
        if self.tables is not None and not self._aborted and not is_vain:
            # What was torn off in the middle may have rows that were never committed: those logs stay open.
            await self.tables.finish()
            await self.mirror.finish()
            # What the tables cost belongs to the crawl.
            summary = msgspec.structs.replace(summary, cpu_seconds=cpu_seconds(), peak_rss_bytes=peak_rss())
        return summary

    def _tell_records(self) -> None:
        """Let the tally tell each record; a wiring may have none, or have it in another process."""
        if self.told is None:
            return
        tallies = self.components(Tally)
        for tally in tallies:
            tally.told = self.told
        if not tallies:
            self.report("this wiring has no tally in the main process, so no line for each URL is told")

    def _tell_aside(self) -> None:
        from gossamer.assembly.suspicions import told

        confirmed = {family.key for unit in self._traps() for family in unit.confirmed}
        self.report(told((row for row in self.ledger.aside() if row.family.key not in confirmed), self.directory))

    def _tell_vain(self) -> None:
        rest = "what it held stays" if self._place.holds_another else f"{self.directory} is removed"
        self.report(f"nothing came, so nothing is kept: {rest}")

    def _tell_restored(self, done: Restored, accepted: Accepted) -> None:
        for loss in accepted.what:
            self.report(f"gone on without: {loss}")
        if accepted.again:
            urls = "1 URL whose record is" if accepted.again == 1 else f"{accepted.again} URLs whose records are"
            self.report(f"fetching again {urls} lost")
        if files := len(done.cut) + len(done.removed):
            self.report(
                f"{files} {'file' if files == 1 else 'files'} held what was never committed; "
                f"it is in {self.directory / QUARANTINE}, and fetched again"
            )
        if done.lost:
            self.report(
                f"{len(done.lost)} archive files lie on a disk that is not there; the crawl goes on without them"
            )

    async def _until_done(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for the end of the work, or for :meth:`abort`. Meanwhile it can be steered from outside."""
        self._work = asyncio.ensure_future(work)
        if self.is_stopping:
            # It was told so while it started: it ends as soon as it has begun.
            asyncio.get_running_loop().call_soon(self._tear if self._is_torn else self._drain)
        control = ControlServer(self.directory, self._steer, self.report)
        watch = asyncio.create_task(self._cut_in_time(self._work))
        try:
            await control.start()
            async with self.pulse.beating(), Sampler(self).sampling():
                await self._work
        except asyncio.CancelledError:
            if not self._aborted:
                raise
        finally:
            watch.cancel()
            await control.stop()

    async def _cut_in_time(self, work: "asyncio.Future[None]") -> None:
        """What is in flight when the time is up has :data:`BEYOND` to come in; then it is cut. Limits may change meanwhile."""
        while not work.done():
            left = self.frontier.ends_at() + BEYOND - self.frontier.clock.monotonic()
            if left <= 0.0:
                self._cut_by = self.frontier.time_limit
                self.report(
                    f"what was in flight {BEYOND:g} s after the end of {option_name(self._cut_by)} is cut; "
                    "it is fetched when the crawl goes on"
                )
                self._tear()
                return
            await self.frontier.clock.sleep(min(left, LOOK_AT_LIMITS))

    async def _steer(self, request: "ControlRequest") -> "Answered":
        """Do what is asked from outside: few crawls are, so what it takes is imported then."""
        from gossamer.assembly.control.steering import answer

        return await answer(self, request)

    @property
    def _aborted(self) -> bool:
        return self._is_torn and self._work is not None and self._work.cancelled()

    def abort(self) -> None:
        """Stop at once: what is in flight is dropped, what is committed is kept."""
        self._state = "stopped"
        self._tear()

    def _tear(self) -> None:
        self._is_torn = True
        if self.tables is not None:
            self.tables.abort()
        if self._work is not None:
            self._work.cancel()

    def stop(self) -> None:
        """Hand out nothing more; what is in flight is fetched and committed, as far as :data:`GRACE` allows.

        Safe to call at any time.
        """
        self._state = "stopped"
        if self._work is not None:
            self._drain()

    def _drain(self) -> None:
        self._running.drain()
        asyncio.get_running_loop().call_later(GRACE, self._lose_patience)

    def _lose_patience(self) -> None:
        if self._work is not None and not self._work.done():
            self.report(f"what is in flight did not end within {GRACE:g} s; it is fetched again when the crawl goes on")
            self.abort()

    # -- steering

    @property
    def is_stopping(self) -> bool:
        """It was told to end."""
        return self._state == "stopped"

    @property
    def state_at_work(self) -> str:
        """`running`, `paused` or `stopping`."""
        return "stopping" if self.is_stopping else "paused" if self.frontier.is_paused else "running"

    def pause(self) -> None:
        """Ask for nothing more until :meth:`go_on`; what is in flight is finished and kept."""
        self.frontier.pause()

    def go_on(self) -> None:
        """Go on after :meth:`pause`."""
        self.frontier.go_on()

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a running unit, at once and for every later run.

        Raises:
            SettingError: a value that the setting cannot have, or a setting that changes only with a restart.
            UsageError: the change cannot be kept; nothing has changed.
        """
        running = self.graph_at_work
        before = msgspec.to_builtins(running.whole.sheet(unit))
        running.set(unit, settings)
        new = msgspec.to_builtins(running.whole.sheet(unit))
        try:
            await self._tell_children(unit, {name: new[name] for name in settings})
            self._keep()
        except (FlowError, UsageError):
            old = {name: before[name] for name in settings}
            running.set(unit, old)
            await self._tell_children(unit, old)
            raise
        self.frontier.signal("tasks")

    async def _tell_children(self, unit: str, settings: dict[str, Any]) -> None:
        graph = self.graph
        for process in graph.wiring.processes[1:]:
            part = graph.part(process)
            if self.fleet is not None and (unit in part.components or unit in part.providers):
                await self.fleet.give(process, unit, settings)

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """Change the graph while it runs, and for every later run; returns what has changed.

        Raises:
            FlowError: the change does not fit; nothing has changed.
            UsageError: it cannot be kept; nothing has changed.
        """
        done = await self.graph_at_work.apply(lambda wiring: with_protocols(change(wiring)), self._plan)
        try:
            self._keep()
        except UsageError:
            await self.graph_at_work.undo(self._plan)
            raise
        return done

    async def undo(self) -> Difference:
        """Take the last change of the graph back. Raises as :meth:`rewire`."""
        last = self.graph_at_work.history[-1:]
        done = await self.graph_at_work.undo(self._plan)
        try:
            self._keep()
        except UsageError:
            await self.graph_at_work.apply(last[0].applied, self._plan)
            raise
        return done

    def _keep(self) -> None:
        """Write the wiring that runs by now: a resumed crawl goes by it."""
        try:
            write_changes(self.directory, self.graph_at_work.history)
            self._place.write(self.kept, self.graph)
            if self.fleet is not None:
                self.fleet.keep(self.wiring)
        except OSError as error:
            raise UsageError(f"{self.directory / CRAWL_FILE} cannot be written: {error.strerror}") from None

    # -- what stands now

    async def standing(self, *, units: bool) -> "CrawlStanding":
        """How it stands; with `units` also what every unit and connector has counted, in whichever process."""
        from gossamer.assembly.control.standing import standing_of

        elsewhere = await self.fleet.figures() if units and self.fleet is not None else []
        return standing_of(self, os.getpid(), units=units, elsewhere=elsewhere)

    @property
    def graph_at_work(self) -> RunningGraph:
        """The graph that runs."""
        return self._running

    @property
    def frontier(self) -> Frontier:
        """The component that hands out."""
        frontier: Frontier = self._component(Frontier)
        return frontier

    @property
    def ledger(self) -> RocksLedger:
        """What keeps what the crawl must not forget."""
        ledger = next(iter(self.providers(RocksLedger)), None)
        if ledger is None:
            raise WiringError("the wiring has no ledger; a crawl needs one")
        return ledger

    def providers(self, kind: type[U]) -> list[U]:
        """The providers of this class at work in the main process."""
        return [unit for unit in self._running.providers.values() if isinstance(unit, kind)]

    def components(self, kind: type[U]) -> list[U]:
        """The components of this class, likewise."""
        found = (runner.component for runner in self._running.runners.values())
        return [component for component in found if isinstance(component, kind)]

    @property
    def _running(self) -> RunningGraph:
        assert self.running is not None
        return self.running

    def _component(self, kind: type[Any]) -> Any:
        for component in self.components(kind):
            return component
        raise WiringError(f"the wiring has no component of class {kind.__name__}; a crawl needs one")

    def _summary(self) -> Summary:
        counters = self._counters()
        frontier = self.frontier
        queued = len(frontier.queues) + counters.get("owed", 0)
        if self._state != "stopped":
            lost = queued or counters.get(f"outcome:{Outcome.GONE_AFTER_RETRIES}") or not has_documents(counters)
            self._state = "limit" if frontier.limit or self._cut_by else "incomplete" if lost else "finished"
        ended_by = frontier.limit or self._cut_by
        ended_by = f"limit:{ended_by}" if ended_by else "stopped" if self._state == "stopped" else ""
        set_aside = self._set_aside(counters)
        seconds = time.monotonic() - self._began
        pages = counters.get("pages", 0)
        here = pages - self._pages_before
        outcomes = {name.partition(":")[2]: n for name, n in counters.items() if name.startswith("outcome:")}
        return Summary(
            crawl=str(self.directory),
            state=self._state,
            pages=pages,
            fetched=counters.get("fetched", 0),
            unique_documents=counters.get("documents", 0),
            bytes=counters.get("bytes", 0),
            outcomes=outcomes,
            discovered=counters.get("discovered", 0),
            queued=queued,
            hosts=counters.get("hosts", 0),
            seconds=round(seconds, 3),
            pages_per_second=round(here / seconds, 2) if seconds else 0.0,
            cpu_seconds=cpu_seconds(),
            peak_rss_bytes=peak_rss(),
            set_aside=set_aside,
            cuts=cuts_of(counters, ended_by, queued, set_aside),
            limit=(frontier.limit or self._cut_by) if self._state == "limit" else "",
            raised=counters.get("raised", 0),
            goal=frontier.goal if self._state == "limit" else "",
        )

    def _last_summary(self) -> Summary:
        """The summary of the end: it also says what waits, which takes a look at every host that has tasks."""
        summary = self._summary()
        if summary.state == "limit" and not has_documents(self._counters()):
            summary = msgspec.structs.replace(summary, state="incomplete")
        return msgspec.structs.replace(summary, waiting=self.frontier.waiting() if summary.queued else None)

    @staticmethod
    def _is_unfinished(summary: Summary) -> bool:
        return bool(summary.queued or summary.outcomes.get(Outcome.GONE_AFTER_RETRIES))

    def _ending(self) -> RunEnding:
        return RunEnding(self.directory, self.seeds, has_lingered=self.frontier.has_lingered)

    def _set_aside(self, counters: Mapping[str, int]) -> int:
        """URLs that are set aside by a guess: what a person has confirmed to be a trap is refused."""
        confirmed = [family for unit in self._traps() for family in unit.confirmed]
        return counters.get("set_aside", 0) - sum(self.ledger.set_aside(family).count for family in confirmed)

    def _traps(self) -> list[LearntTraps]:
        return self.providers(LearntTraps)

    def _count(self) -> Counts:
        counters = self._counters()
        flights = [url for unit in self.providers(MemoryFlights) for url in unit.oldest(WATCHED)]
        return Counts(counters.get("pages", 0), counters.get("fetched", 0), flights, time.process_time())

    def _measure(self) -> Mapping[str, int]:
        return sizes_of(self.ledger)

    def _survey(self) -> Mapping[str, int]:
        return walked_sizes(self.directory)

    def _counters(self) -> Mapping[str, int]:
        return self.ledger.counters()

    @property
    def working(self) -> bool:
        """Units are up, so that there is progress to show."""
        return self._work is not None and not self._work.done()

    def time_left(self, now: Summary) -> str:
        """How long until a limit of time or pages is reached at this pace; empty where there is none."""
        frontier = self.frontier
        limits = []
        if frontier.sheet.max_time is not None:
            limits.append(frontier.sheet.max_time - now.seconds)
        if frontier.sheet.max_pages is not None and now.pages_per_second > 0:
            limits.append((frontier.sheet.max_pages - now.pages) / now.pages_per_second)
        return show_seconds(max(0.0, min(limits))) if limits else ""

    @property
    def troubled(self) -> int:
        """Pages that were kept but could not be processed in full; each row of the log says why."""
        return self._counters().get("troubled", 0)

    def slowest_hosts(self, count: int) -> list[tuple[str, float]]:
        """The hosts that answer slowest, with their mean seconds an answer."""
        return sorted(
            (pair for tally in self.components(Tally) for pair in tally.slowest.items()), key=lambda pair: -pair[1]
        )[:count]

    def slowed_hosts(self, count: int) -> list[tuple[str, float, str]]:
        """The hosts that are left alone for longest because of their errors or refusals: name, seconds, reason."""
        return [one for unit in self.providers(HostPoliteness) for one in unit.slowed(count)][:count]

    def progress(self) -> Summary:
        """The summary as of now; its state is that of a crawl that would end here."""
        kept = self._state
        try:
            return self._summary()
        finally:
            self._state = kept


def run(crawl: Crawl) -> Summary:
    """Run a crawl on an event loop of its own, uvloop where it exists."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(crawl.run())
