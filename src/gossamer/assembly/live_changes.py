"""Changes of a crawl at work: settings and graph, at once in every process, and for every later run; or not at all.

Place in the flow: :mod:`crawl` is steered (:mod:`~gossamer.assembly.control.steering`), and what changes it is carried out here:
first in the running graph, then in child processes, last in the directory.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gossamer.assembly.crawl_plan import CrawlPlan
from gossamer.assembly.place import CrawlPlace
from gossamer.assembly.processes import Fleet
from gossamer.assembly.protocols import with_protocols
from gossamer.assembly.rewired import write_changes
from gossamer.flow.difference import Difference
from gossamer.flow.errors import FlowError
from gossamer.flow.running import RunningGraph
from gossamer.flow.wiring import Wiring
from gossamer.model.errors import UsageError
from gossamer.query.places import CRAWL_FILE


class LiveChanges:
    """What may change a crawl while it runs."""

    def __init__(self, plan: CrawlPlan, running: RunningGraph, fleet: Fleet, place: CrawlPlace) -> None:
        self._plan = plan
        self._running = running
        self._fleet = fleet
        self._place = place

    def __repr__(self) -> str:
        return f"<LiveChanges of {self._plan.directory}>"

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a running unit.

        Raises:
            SettingError: a value that the setting cannot have, or a setting that changes only with a restart.
            UsageError: the change cannot be kept; nothing has changed.
        """
        before = msgspec.to_builtins(self._running.whole.sheet(unit))
        self._running.set(unit, settings)
        new = msgspec.to_builtins(self._running.whole.sheet(unit))
        try:
            await self._tell_children(unit, {name: new[name] for name in settings})
            self._keep()
        except (FlowError, UsageError):
            old = {name: before[name] for name in settings}
            self._running.set(unit, old)
            await self._tell_children(unit, old)
            raise

    async def _tell_children(self, unit: str, settings: dict[str, Any]) -> None:
        graph = self._running.whole
        for process in graph.wiring.processes[1:]:
            part = graph.part(process)
            if unit in part.components or unit in part.providers:
                await self._fleet.give(process, unit, settings)

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """Change the graph; returns what has changed.

        Raises:
            FlowError: the change does not fit; nothing has changed.
            UsageError: it cannot be kept; nothing has changed.
        """
        done = await self._running.apply(lambda wiring: with_protocols(change(wiring)), self._plan.planned)
        try:
            self._keep()
        except UsageError:
            await self._running.undo(self._plan.planned)
            raise
        return done

    def foreseen(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """What :meth:`rewire` would change, as far as that can be said before. Raises as it."""
        return self._running.foreseen(lambda wiring: with_protocols(change(wiring)), self._plan.planned)

    async def undo(self) -> Difference:
        """Take the last change of the graph back. Raises as :meth:`rewire`."""
        last = self._running.history[-1:]
        done = await self._running.undo(self._plan.planned)
        try:
            self._keep()
        except UsageError:
            await self._running.apply(last[0].applied, self._plan.planned)
            raise
        return done

    def _keep(self) -> None:
        """Write the wiring that runs by now: a resumed crawl goes by it."""
        graph, directory = self._running.whole, self._plan.directory
        try:
            write_changes(directory, self._running.history)
            self._place.write(kept := self._plan.kept(graph), graph)
            self._fleet.keep(kept)
        except OSError as error:
            raise UsageError(f"{directory / CRAWL_FILE} cannot be written: {error.strerror}") from None
