"""A crawl as people see it, whichever number of agents it has: the one surface for command line, Python API, dashboard and tests.

Place in the flow: a crawl is a supervisor of one agent or several. The only agent lives in the supervisor's process
(:class:`~gossamer.crawls.crawl.Crawl`) and costs nothing more; several have processes of their own
(:class:`~gossamer.agents.several.SeveralAgents`). From one to two it grows as from two to three: it comes to rest, domains change
hands, and its agents go on. Meanwhile it has the lock of a supervisor, so that no other supervisor takes it; a kill there leaves
what any kill of a crawl leaves, or of agents that join.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gossamer.agents.joining import Joining
from gossamer.crawls.crawl import BegunAlone, Crawl
from gossamer.crawls.directory import NameTaken
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.summary import Summary
from gossamer.engine.connector import Statistics
from gossamer.engine.errors import FlowError
from gossamer.engine.wiring import Wiring
from gossamer.storage.members import members_of
from gossamer.values.errors import CrawlDirectoryError, GossamerError

if TYPE_CHECKING:
    from gossamer.agents.joining import Growth
    from gossamer.agents.several import SeveralAgents
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.values.visit import Record


def is_divided(options: CrawlOptions) -> bool:
    """Whether several agents run a crawl with these options, or have run it before. Raises CrawlDirectoryError: the names of
    its agents cannot be read."""
    return options.is_divided or bool(options.resume and options.output and members_of(Path(options.output)))


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
        **parts: Any,
    ) -> None:
        """Check everything; without `tables`, rows stay in their logs. `growth` says how many agents there should be. `parts` of
        the program that runs the crawl are in its process alone, so that no other agent can have them: `catalog`, `subscribers`,
        and `clock` of :class:`~gossamer.crawls.crawl.Crawl`. Raises UsageError: the options do not fit, or the crawl cannot be
        divided; CrawlDirectoryError: the directory is in use or damaged; FlowError: the graph cannot be."""
        self._report = report
        self._beside: dict[str, Any] = {"report": report, "tables": tables}
        self.others = Joining(self, growth)
        """Lets agents join and leave."""
        self._before: Crawl | None = None
        """The only agent, which others have joined."""
        self._begun: BegunAlone | None = None
        self._is_told_to_stop = self._is_torn = False
        self._told: Callable[[Record], None] | None = None

        def made() -> "Crawl | SeveralAgents":
            if is_divided(options) and not parts:
                return self._with_several(seeds, options, wiring=wiring, settings=settings)
            alone = Crawl(seeds, options, wiring=wiring, settings=settings, **self._beside, **parts)
            alone.others = None if parts else self.others
            return alone

        self._made = made
        self._part: Crawl | SeveralAgents = self._placed()

    def _placed(self) -> "Crawl | SeveralAgents":
        """A new crawl, under the next free name where no directory was named and another process was quicker."""
        while True:
            with contextlib.suppress(NameTaken):
                return self._made()

    def _with_several(self, seeds: Sequence[str], options: CrawlOptions, **more: Any) -> "SeveralAgents":
        from gossamer.agents.several import SeveralAgents

        return SeveralAgents(seeds, options, self.others, **self._beside, **more)

    @property
    def lone(self) -> Crawl | None:
        return self._part if isinstance(self._part, Crawl) else None

    @property
    def several(self) -> "SeveralAgents":
        assert not isinstance(self._part, Crawl), "it has one agent"
        return self._part

    # -- the run

    async def run(self) -> Summary:
        while True:
            try:
                return await self._first_run()
            except NameTaken:
                if not self._part.plan.has_found_name:
                    raise
                self._part = self._placed()
                if self._told is not None:
                    self.tell_each(self._told)
                if self._is_told_to_stop:
                    self._part.stop()

    async def _first_run(self) -> Summary:
        if (lone := self.lone) is None or lone.others is None:
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
        from gossamer.agents.cluster import supervisor_lock
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
        self._begun = BegunAlone(lone.began, lone.figures.pages_before, lone.is_paused, standing, lock)
        return True

    async def _joined(self, lone: Crawl) -> Summary:
        """Go on with several agents; where that fails before they are at work, with what the crawl has."""
        from gossamer.agents.cluster import supervisor_lock
        from gossamer.agents.roster import want

        assert self._begun is not None
        # The crawl has its options, and what was changed of them.
        going_on = CrawlOptions(output=str(self.directory), resume=True)
        self._before, lock = lone, self._begun.lock
        several: SeveralAgents | None = None
        try:
            several = self._with_several([], going_on, begun=self._begun)
            return await self._run(several)
        except (FlowError, GossamerError) as error:
            if several is not None and several.has_begun:
                raise
            lock.close()
            self._report(f"no agents could join ({error}); the crawl goes on as it is")
        want(self.directory, None)
        if not is_divided(going_on):
            return await self._run(Crawl([], going_on, **self._beside, begun=self._begun))
        begun = self._begun._replace(lock=supervisor_lock(self.directory))
        return await self._run(self._with_several([], going_on, begun=begun))

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

    @property
    def directory(self) -> Path:
        """Known for good once the crawl works: until then another process may be quicker under a name that was found free."""
        return self._part.directory

    def tell_each(self, told: "Callable[[Record], None]") -> bool:
        """Call this with the record of each URL; False where several agents keep theirs to themselves."""
        self._told = told
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
    def kept(self) -> Wiring:
        """The wiring by which a later run goes on."""
        return self._part.kept

    @property
    def summary(self) -> Summary | None:
        """The work of the only agent so far; None before it works, and of several."""
        return lone.figures.summary() if (lone := self.lone) is not None and lone.has_begun else None

    @property
    def working(self) -> bool:
        return self._part.working

    @property
    def troubled(self) -> int:
        return self._part.troubled

    def glance(self) -> "CrawlStanding":
        return self._part.glance()
