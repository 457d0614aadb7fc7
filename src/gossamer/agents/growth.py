"""Agents that join a crawl by themselves: the rule that decides how many there should be, and the crawl that grows from one
process to several.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.agents.crawlers import crawlers_of
from gossamer.agents.wiring import has_application, ring_rule
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.machine import cores, free_memory, room_for_agents
from gossamer.crawls.options import MOST_AGENTS, CrawlOptions
from gossamer.crawls.summary import Summary
from gossamer.crawls.work import BegunAlone
from gossamer.engine.connector import Statistics
from gossamer.engine.errors import FlowError
from gossamer.engine.graph import Graph
from gossamer.engine.wiring import Wiring
from gossamer.frontier.limits import FrontierSheet
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError
from gossamer.values.hosts import domain_rule

if TYPE_CHECKING:
    from gossamer.agents.agent import AgentRun
    from gossamer.agents.crawl import DividedCrawl
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.storage.ledger.opening import ProcessLock
    from gossamer.values.visit import Record


# When agents join a crawl by themselves: a rule that is told how loaded the crawl is, and says how many agents it should have.
#
# Place in the flow: a crawl of one process asks it (:mod:`growing`), and so does the supervisor of several
# (:mod:`~gossamer.agents.crawl`). The rule is pure; :class:`LoadGauge` looks at a crawl for it.
#
# A crawl that waits for servers uses little of its core, so it never grows, however many sites wait. One that grows rests
# for some seconds, so it must have had no core left for a while, and must have work for longer than that.

#: Shares of a core. At the first one a crawl has none left: the system and other programs take the rest. Below the second one it
#: has; between the two nothing is decided anew, so that a crawl at the border does not come and go.
BUSY, CALM = 0.85, 0.7

#: Seconds for which a crawl must be busy. What it tells is a mean of ten seconds already.
LASTING = 10.0

#: Assignable domains with work that there must be for each agent: they are divided by hashing, which is uneven among fewer.
EACH = 4

#: Seconds of work that must be left: several times what it takes until all agents are at work.
WORTH = 20.0

#: Seconds after a crawl could not come to rest, or domains changed hands, before it rests again; twice as long each time.
AGAIN = 60.0

#: Seconds between two looks at how loaded a crawl is.
LOOK = 1.0


class Load(msgspec.Struct, frozen=True):
    """How loaded an agent is, or several on the average."""

    busy: float = 0.0
    """Share of a core that its process used over the last ten seconds."""
    domains: int = 0
    """Assignable domains with queued URLs that may be asked now."""
    seconds_left: float = 0.0
    """Seconds in which its queue would be fetched at the pace of the last ten seconds, within the limits of the crawl."""


def together(loads: Iterable[Load]) -> Load:
    """The load of several agents: their domains are different ones, and the one that has most to do is the last to end."""
    found = list(loads)
    return Load(
        sum(load.busy for load in found) / len(found),
        sum(load.domains for load in found),
        max(load.seconds_left for load in found),
    )


def bounded(sheet: FrontierSheet, working: int) -> int:
    """How many agents may work on this machine, with those that do, by the settings of the crawl's frontier."""
    return min(sheet.max_agents or MOST_AGENTS, room_for_agents(working, cores(), free_memory()), MOST_AGENTS)


def why_fixed(graph: Graph) -> str:
    """Why nobody joins a crawl by himself, though a person may let others join; empty where somebody may."""
    http = graph.providers.get("http")
    if http is not None and getattr(http.sheet, "cookies", "off") != "off":
        return "cookies are in the memory of its process"
    if crawlers_of(graph.wiring):
        return "crawlers share its queue already"
    if any(plan.use == "crawlers" for plan in graph.wiring.components.values()):
        return "mobile crawlers come home to its process"
    if has_application(graph.wiring):
        return "a program of its own chooses the URLs, and expects the number of agents that it was told"
    return ""


class RestSpacing:
    """Says how often a crawl may rest of itself, whatever for. Pure: it is told the time, in monotonic seconds."""

    def __init__(self) -> None:
        self._not_before = -math.inf
        self._pause = AGAIN

    def __repr__(self) -> str:
        return f"<RestSpacing, not before {self._not_before:g}>"

    def may_rest(self, now: float) -> bool:
        """Whether the last time was long enough ago."""
        return now >= self._not_before

    def rested(self, now: float) -> None:
        """It has rested, or could not come to rest: it waits twice as long as the last time before it tries again."""
        self._not_before = now + self._pause
        self._pause *= 2


class Growth:
    """Says how many agents a crawl should have. Pure: it is told the time, in monotonic seconds."""

    def __init__(self, spacing: RestSpacing | None = None) -> None:
        """`spacing` says how often the crawl may rest of itself."""
        self._spacing = spacing or RestSpacing()
        self._since = math.inf

    def __repr__(self) -> str:
        return f"<Growth, busy since {self._since:g}>"

    def hear(self, now: float, agents: int, most: int, load: Load) -> int:
        """How many agents there should be.

        Args:
            now: monotonic seconds.
            agents: those that there are.
            most: as many as there may be.
            load: how loaded they are.
        """
        if load.busy < CALM:
            self._since = math.inf
        elif load.busy >= BUSY:
            self._since = min(self._since, now)
        if now - self._since < LASTING or load.seconds_left < WORTH or not self._spacing.may_rest(now):
            return agents
        return max(agents, min(most, load.domains // EACH))

    def postpone(self, now: float) -> None:
        """The crawl could not grow, or has just grown: say nothing for a while."""
        self._since = math.inf
        self._spacing.rested(now)


class LoadGauge:
    """Looks at a crawl, or at an agent, now and then; in between it tells the last look."""

    def __init__(self, crawl: "Crawl | AgentRun") -> None:
        self._crawl = crawl
        self._rule = domain_rule(**{"division": "domain", "together": (), **ring_rule(crawl.graph.wiring)})
        self._last = Load()
        self._next = -math.inf

    def __repr__(self) -> str:
        return f"<LoadGauge {self._last}>"

    def read(self, now: float) -> Load:
        """How loaded it is, or was at the last look; `now` is monotonic seconds."""
        if now >= self._next:
            self._next = now + LOOK
            busy = self._crawl.figures.pulse.busy
            # Who is not busy does not grow: the hosts of a crawl that waits are not counted.
            self._last = Load(busy, self._domains(), self._seconds_left(now)) if busy >= CALM else Load(busy)
        return self._last

    def _domains(self) -> int:
        found = set[str]()
        for host in self._crawl.units.frontier.hosts_due():
            found.add(self._rule.assignable(host))
            if len(found) >= EACH * MOST_AGENTS:
                break
        return len(found)

    def _seconds_left(self, now: float) -> float:
        frontier = self._crawl.units.frontier
        pages, fetched = self._crawl.figures.pulse.speeds
        left = [len(frontier.queues) / fetched if fetched else 0.0, frontier.ends_at() - now]
        if frontier.sheet.max_pages is not None and pages:
            left.append((frontier.sheet.max_pages - self._crawl.ledger.counters().get("pages", 0)) / pages)
        return min(left)


# A crawl that one process begins, and that several agents go on with as soon as one core is too little for it.
#
# Place in the flow: the command line runs it where nobody has said how many agents there are. It has the surface of the two crawls
# that it consists of, one after the other: :class:`~gossamer.crawls.crawl.Crawl` in this process, then
# :class:`~gossamer.agents.crawl.DividedCrawl` under the supervision of this process. Between them the crawl is at rest, with
# the lock of a supervisor, so that nobody else takes it; a kill there leaves what any kill of a crawl leaves, or of agents
# that join.


class GrowingCrawl:
    """A crawl of one process, and then of several agents, if it comes to that. Making it checks everything and touches nothing."""

    def __init__(
        self,
        seeds: Sequence[str],
        options: CrawlOptions,
        *,
        wiring: Wiring | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        report: Callable[[str], None] = lambda line: None,
        growth: Growth | None = None,
    ) -> None:
        """Check everything; `growth` says how many agents there should be. Raises as :class:`Crawl`."""
        self._report = report
        self._lone = Crawl(seeds, options, wiring=wiring, settings=settings, report=report)
        self._lone.others = self
        self._part: Crawl | DividedCrawl = self._lone
        self.directory: Path = self._lone.directory
        self._growth = growth or Growth()
        self._gauge: LoadGauge | None = None
        self._began = 0.0
        self._wish = 0
        self._lock: ProcessLock | None = None
        self._standing: CrawlStanding | None = None
        self._stays = "it exchanges URLs by files" if self._lone.exchange.is_on else ""
        self._stirred = asyncio.Event()
        self._is_told_to_stop = self._is_torn = False

    def __repr__(self) -> str:
        return f"<GrowingCrawl: {self._part!r}>"

    async def run(self) -> Summary:
        """Crawl to the end, or to :meth:`stop`, with as many agents as there is work for."""
        self._began = time.monotonic()
        watch = asyncio.create_task(self._watch())
        try:
            summary = await self._lone.run()
        finally:
            watch.cancel()
            [failure] = await asyncio.gather(watch, return_exceptions=True)
        if isinstance(failure, Exception):
            self._report(f"no agents could join: {type(failure).__name__}: {failure}")
        return await self._divided() if self._lone.handing_over.is_done else summary

    # -- one process

    async def _watch(self) -> None:
        """Let others go on with the crawl as soon as it needs them, or somebody wants them."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._stirred.wait()
            self._stirred.clear()
            if self._lone.working and (number := self._wish or self._wanted()) > 1:
                if await self._handed_over(number):
                    return
                self._growth.postpone(time.monotonic())
                if self._wish:
                    self._report(
                        f"the crawl did not come to rest, so {number} agents cannot share it yet; it tries again in {AGAIN:g} s"
                    )
                    await asyncio.sleep(AGAIN)

    def _wanted(self) -> int:
        """How many agents there should be, by the rule."""
        if self._stays:
            return 1
        if self._gauge is None:
            self._gauge = LoadGauge(self._lone)
        now = time.monotonic()
        number = self._growth.hear(now, 1, self._bound, self._gauge.read(now))
        if number > 1 and (why := self._why_not(number)):
            self._report(
                f"the processor is busy, and others could take a part of the hosts, but one agent works: {why}"
            )
            self._stays = why
            return 1
        return number

    @property
    def _bound(self) -> int:
        return bounded(self._lone.units.frontier.sheet, 1)

    async def _handed_over(self, number: int) -> bool:
        """Bring the crawl to rest for so many agents; False where it goes on as it is."""
        from gossamer.agents.rendezvous import supervisor_lock
        from gossamer.agents.roster import want

        try:
            lock = supervisor_lock(self.directory)
        except CrawlDirectoryError:
            return False  # somebody looks whether it is held
        with contextlib.ExitStack() as undone:
            undone.callback(lock.close)
            want(self.directory, number)
            undone.callback(want, self.directory, None)
            self._standing = self._lone.glance()
            if not await self._lone.handing_over.rest():
                return False
            undone.pop_all()
        self._lock = lock
        return True

    # -- several

    async def _divided(self) -> Summary:
        """Go on with several agents; where that fails before they are at work, with what the crawl has."""
        from gossamer.agents.crawl import DividedCrawl

        lone, standing, lock = self._lone, self._standing, self._lock
        assert standing is not None and lock is not None
        begun = BegunAlone(self._began, lone.figures.pages_before, lone.handing_over.is_paused, standing, lock)
        job: DividedCrawl | None = None
        try:
            job = DividedCrawl([], self._going_on, report=self._report, begun=begun)
            return await self._run(job)
        except (FlowError, GossamerError) as error:
            if job is not None and job.has_begun:
                raise
            lock.close()
            self._report(f"no agents could join ({error}); the crawl goes on as it is")
        return await self._as_it_is()

    async def _as_it_is(self) -> Summary:
        from gossamer.agents.crawl import DividedCrawl
        from gossamer.agents.roster import want
        from gossamer.storage.recovery import members_of

        want(self.directory, None)
        kind = DividedCrawl if members_of(self.directory) else Crawl
        summary = await self._run(kind([], self._going_on, report=self._report))
        seconds = time.monotonic() - self._began
        here = summary.pages - self._lone.figures.pages_before
        return msgspec.structs.replace(
            summary, seconds=round(seconds, 3), pages_per_second=round(here / seconds, 2) if seconds else 0.0
        )

    @property
    def _going_on(self) -> CrawlOptions:
        """The crawl has its options, and what was changed of them since: it goes on by these."""
        return CrawlOptions(output=str(self.directory), resume=True)

    async def _run(self, job: "Crawl | DividedCrawl") -> Summary:
        self._part = job
        if self._is_told_to_stop:
            (job.abort if self._is_torn else job.stop)()
        return await job.run()

    # -- who may join

    def stay(self, why: str) -> None:
        """Let nobody join but where a person says so, for this reason."""
        self._stays = why

    def why_alone(self) -> str:
        """Why nobody joins by himself; empty where somebody may."""
        if not self._stays and self._lone.units.frontier.sheet.max_agents == 1:
            return "no more are allowed"
        if not self._stays and self._bound <= 1:
            return "the machine has no core or no memory for another one"
        return self._stays or self._why_not(2)

    def _why_not(self, number: int) -> str:
        """Why nobody can join so that there are this many; empty where somebody can."""
        if why := why_fixed(self._lone.graph):
            return why
        try:
            self.check_number(number)
        except (FlowError, GossamerError) as error:
            return str(error)
        return ""

    def check_number(self, number: int) -> None:
        """Refuse a number of agents that the crawl cannot have.

        Raises:
            UsageError: that is so, or it is about to end.
            WiringError: likewise.
        """
        from gossamer.agents.membership import check_can_change
        from gossamer.agents.orders import check_can_divide
        from gossamer.values.agents import agent_name

        if self._lone.is_stopping:
            raise UsageError("the crawl is about to end; its agents stay as they are")
        if number > 1:
            check_can_divide(self._lone.graph, list(map(agent_name, range(number))), self.directory)
            check_can_change(self._lone.wiring, self.directory)

    def resize(self, number: int) -> None:
        """Let the crawl have so many agents, in some seconds. Raises as :meth:`check_number`."""
        self.check_number(number)
        self._wish = number
        self._stirred.set()

    # -- as a crawl, whichever it is

    def tell_each(self, told: "Callable[[Record], None]") -> None:
        """Call this with the record of each URL. Several agents keep theirs to themselves, so nobody joins by himself."""
        self._lone.told = told
        self.stay("--verbose prints each URL")

    @property
    def warnings(self) -> list[str]:
        """The lines that were told while the crawl was at work; they are said once more at the end."""
        return [*self._lone.warnings, *(self._part.warnings if self._part is not self._lone else ())]

    @property
    def last_lines(self) -> tuple[str, ...]:
        """What was told of the end."""
        return self._part.last_lines

    @property
    def connector_statistics(self) -> dict[str, Statistics]:
        """What every connector of the process passed that ended last."""
        return self._part.connector_statistics

    @property
    def working(self) -> bool:
        """There is progress to show."""
        return self._part.working

    @property
    def troubled(self) -> int:
        """Pages that were kept but could not be processed in full; each row of the log says why."""
        return self._part.troubled

    def glance(self) -> "CrawlStanding":
        """How it stands, cheap enough for every redraw of a terminal."""
        return self._part.glance()

    def stop(self) -> None:
        """Hand out nothing more; what is in flight is fetched and committed, if it comes soon. Safe to call at any time."""
        self._is_told_to_stop = True
        self._part.stop()

    def abort(self) -> None:
        """Stop at once: what is in flight is dropped, what is committed is kept. Safe to call at any time."""
        self._is_told_to_stop = self._is_torn = True
        self._part.abort()
