"""A crawl as people see it, whichever number of agents it has: the one surface for command line, dashboard and tests.

Place in the flow: a crawl is a supervisor of one agent or several. The only agent lives in the supervisor's process
(:class:`~gossamer.crawls.crawl.Crawl`) and costs nothing more; several have processes of their own
(:class:`~gossamer.agents.several.SeveralAgents`). From one to two it grows as from two to three: it comes to rest, domains change
hands, and its agents go on. Meanwhile it has the lock of a supervisor, so that no other supervisor takes it; a kill there leaves
what any kill of a crawl leaves, or of agents that join.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gossamer.agents.joining import Joining
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.summary import Summary
from gossamer.engine.connector import Statistics
from gossamer.engine.errors import FlowError
from gossamer.engine.wiring import Wiring
from gossamer.storage.recovery import members_of
from gossamer.values.errors import CrawlDirectoryError, GossamerError

if TYPE_CHECKING:
    from gossamer.agents.joining import Growth
    from gossamer.agents.several import SeveralAgents
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.storage.ledger.opening import ProcessLock
    from gossamer.values.visit import Record


def is_divided(options: CrawlOptions) -> bool:
    """Whether several agents run a crawl with these options, or have run it before. Raises CrawlDirectoryError: the names of
    its agents cannot be read."""
    return options.is_divided or bool(options.resume and options.output and members_of(Path(options.output)))


class BegunAlone(NamedTuple):
    """The work of one process in a run that several agents go on with."""

    began: float
    """The monotonic instant at which the run began."""
    pages_before: int
    """Pages of earlier runs."""
    is_paused: bool
    """A person has said so."""
    standing: "CrawlStanding"
    """How the crawl stood then."""
    lock: "ProcessLock"
    """That of the crawl's supervisor: no other may have the crawl in between."""


class SupervisedCrawl:
    """A crawl that is ready to run. Making it checks everything and touches nothing."""

    def __init__(
        self,
        seeds: Sequence[str],
        options: CrawlOptions,
        *,
        wiring: Wiring | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        report: Callable[[str], None] = lambda line: None,
        tables: bool = True,
        growth: "Growth | None" = None,
    ) -> None:
        """Check everything; without `tables`, rows stay in their logs. `growth` says how many agents there should be.

        Raises:
            UsageError: the options do not fit, or the crawl cannot be divided.
            CrawlDirectoryError: the directory is in use or damaged.
            FlowError: the graph cannot be.
        """
        self._report = report
        self._tables = tables
        self.others = Joining(self, growth)
        """Lets agents join and leave."""
        self._before: Crawl | None = None
        """The only agent, which others have joined."""
        self._begun: BegunAlone | None = None
        self._began = 0.0
        self._is_told_to_stop = self._is_torn = False
        self._part: Crawl | SeveralAgents
        if is_divided(options):
            self._part = self._with_several(seeds, options, wiring, settings)
        else:
            self._part = Crawl(seeds, options, wiring=wiring, settings=settings, report=report, tables=tables)
            self._part.others = self.others
        self.directory: Path = self._part.directory

    def _with_several(
        self,
        seeds: Sequence[str],
        options: CrawlOptions,
        wiring: Wiring | None = None,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> "SeveralAgents":
        from gossamer.agents.several import SeveralAgents

        return SeveralAgents(
            *(seeds, options, wiring, settings or {}, self._report, self.others), tables=self._tables, begun=self._begun
        )

    @property
    def lone(self) -> Crawl | None:
        return self._part if isinstance(self._part, Crawl) else None

    @property
    def several(self) -> "SeveralAgents":
        assert not isinstance(self._part, Crawl), "it has one agent"
        return self._part

    # -- the run

    async def run(self) -> Summary:
        self._began = time.monotonic()
        if (lone := self.lone) is None:
            return await self._part.run()
        watch = asyncio.create_task(self.others.watch())
        try:
            summary = await lone.run()
        finally:
            watch.cancel()
            [failure] = await asyncio.gather(watch, return_exceptions=True)
        if isinstance(failure, Exception):
            self._report(f"no agents could join: {type(failure).__name__}: {failure}")
        return await self._joined(lone) if lone.is_handed_over else summary

    async def hand_over(self, number: int) -> bool:
        """Bring the only agent to rest, so that so many go on with its crawl; False where it goes on as it is."""
        from gossamer.agents.rendezvous import supervisor_lock
        from gossamer.agents.roster import want

        lone = self.lone
        assert lone is not None
        try:
            lock = supervisor_lock(self.directory)
        except CrawlDirectoryError:
            return False  # another process looks whether it is held
        with contextlib.ExitStack() as undone:
            undone.callback(lock.close)
            want(self.directory, number)
            undone.callback(want, self.directory, None)
            standing = lone.glance()
            if not await lone.rest():
                return False
            undone.pop_all()
        self._begun = BegunAlone(self._began, lone.figures.pages_before, lone.is_paused, standing, lock)
        return True

    async def _joined(self, lone: Crawl) -> Summary:
        """Go on with several agents; where that fails before they are at work, with what the crawl has."""
        from gossamer.agents.roster import want

        assert self._begun is not None
        going_on = CrawlOptions(
            output=str(self.directory), resume=True
        )  # the crawl has its options, and what was changed of them
        self._before, lock = lone, self._begun.lock
        several: SeveralAgents | None = None
        try:
            several = self._with_several([], going_on)
            return await self._run(several)
        except (FlowError, GossamerError) as error:
            if several is not None and several.has_begun:
                raise
            lock.close()
            self._report(f"no agents could join ({error}); the crawl goes on as it is")
        self._begun = None
        want(self.directory, None)
        if is_divided(going_on):
            summary = await self._run(self._with_several([], going_on))
        else:
            summary = await self._run(Crawl([], going_on, report=self._report, tables=self._tables))
        seconds = time.monotonic() - self._began
        here = summary.pages - lone.figures.pages_before
        return msgspec.structs.replace(
            summary, seconds=round(seconds, 3), pages_per_second=round(here / seconds, 2) if seconds else 0.0
        )

    async def _run(self, part: "Crawl | SeveralAgents") -> Summary:
        self._part = part
        if self._is_told_to_stop:
            (part.abort if self._is_torn else part.stop)()
        return await part.run()

    def stop(self) -> None:
        self._is_told_to_stop = True
        self._part.stop()

    def abort(self) -> None:
        self._is_told_to_stop = self._is_torn = True
        self._part.abort()

    # -- what it tells

    def tell_each(self, told: "Callable[[Record], None]") -> bool:
        """Call this with the record of each URL; False where several agents keep theirs to themselves."""
        return self.lone is not None and self.lone.tell_each(told)

    @property
    def warnings(self) -> list[str]:
        return [*(self._before.warnings if self._before is not None else ()), *self._part.warnings]

    @property
    def last_lines(self) -> tuple[str, ...]:
        return self._part.last_lines

    @property
    def connector_statistics(self) -> dict[str, Statistics]:
        """The count of every connector of this process; of agents in other processes, `status --units` asks."""
        return self.lone.connector_statistics if self.lone is not None else {}

    @property
    def working(self) -> bool:
        return self._part.working

    @property
    def troubled(self) -> int:
        return self._part.troubled

    def glance(self) -> "CrawlStanding":
        return self._part.glance()
