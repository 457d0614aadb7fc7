"""A crawl that one process begins, and that several agents go on with as soon as one core is too little for it.

Place in the flow: the command line runs it where nobody has said how many agents there are. It has the surface of the two crawls
that it consists of, one after the other: :class:`~gossamer.assembly.crawl.Crawl` in this process, then
:class:`~gossamer.assembly.agency.crawl.DividedCrawl` under the supervision of this process. Between them the crawl is at rest, with
the lock of a supervisor, so that nobody else takes it; a kill there leaves what any kill of a crawl leaves, or of agents that join.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.assembly.crawl import Crawl
from gossamer.assembly.growth import AGAIN, LOOK, Growth, LoadGauge, bounded, why_fixed
from gossamer.assembly.handing_over import BegunAlone
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.summary import Summary
from gossamer.flow.connector import Statistics
from gossamer.flow.errors import FlowError
from gossamer.flow.wiring import Wiring
from gossamer.model.errors import CrawlDirectoryError, GossamerError, UsageError

if TYPE_CHECKING:
    from gossamer.assembly.agency.crawl import DividedCrawl
    from gossamer.assembly.control.standing import CrawlStanding
    from gossamer.model.visit import Record
    from gossamer.stores.ledger.lock import ProcessLock


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
        from gossamer.assembly.agency.meeting import supervisor_lock
        from gossamer.assembly.agency.roster import want

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
        from gossamer.assembly.agency.crawl import DividedCrawl

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
        from gossamer.assembly.agency.crawl import DividedCrawl
        from gossamer.assembly.agency.roster import want
        from gossamer.stores.members import members_of

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
        from gossamer.assembly.agency.membership import check_can_change
        from gossamer.assembly.agency.orders import check_can_divide
        from gossamer.model.agents import agent_name

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
