"""Changes of the graph of a crawl of several agents while it works: judged as a whole, kept, and run by all agents from then on.

Place in the flow: :mod:`gossamer.assembly.agency.crawl` keeps one object of this. An agent becomes another graph by beginning
again: all agents rest for a moment, as where domains change hands, and begin with the new wiring. So no URL is on its way between
an agent of the old graph and one of the new.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from gossamer.assembly.crawl_plan import CrawlPlan
from gossamer.assembly.place import CrawlPlace
from gossamer.assembly.protocols import with_protocols
from gossamer.assembly.rewired import read_changes, write_changes
from gossamer.flow.difference import Difference
from gossamer.flow.errors import WiringError
from gossamer.flow.graph import Graph
from gossamer.flow.wiring import Wiring
from gossamer.model.errors import UsageError
from gossamer.query.places import CRAWL_FILE


class GraphChanges:
    """The changes of one crawl's graph."""

    def __init__(self, plan: CrawlPlan, place: CrawlPlace, check: Callable[[Graph], None], *, goes_on: bool) -> None:
        """`check` refuses a graph that the crawl's agents cannot run; changes of a crawl that `goes_on` are known."""
        self._plan = plan
        self._place = place
        self._check = check
        self._history = read_changes(plan.directory, plan.graph.wiring) if goes_on else []
        self._before: GraphBefore | None = None

    def __repr__(self) -> str:
        return f"<GraphChanges of {self._plan.directory}, {len(self._history)} changes>"

    def planned(self, now: Graph, change: Callable[[Wiring], Wiring]) -> Graph:
        """The graph that a change makes. Nothing is changed.

        Raises:
            FlowError: it cannot be.
            UsageError: several agents cannot run it, or state that agents keep would be left out.
        """
        source = now.wiring.source
        graph = self._plan.planned(with_protocols(change(now.wiring)))
        self._check(graph)
        return msgspec.structs.replace(graph, wiring=msgspec.structs.replace(graph.wiring, source=source))

    def undone(self, now: Graph) -> Graph:
        """The graph without the last change. Raises as :meth:`planned`, and WiringError: there is none."""
        if not self._history:
            raise WiringError("there is nothing to undo: the graph has not been changed since the crawl began")
        return self.planned(now, self._history[-1].opposite.applied)

    def keep(self, now: Graph, then: Graph, *, is_undone: bool = False) -> Difference:
        """Note a change for this run and every later one; returns what it is.

        Raises:
            UsageError: it cannot be written; nothing has changed.
        """
        difference = Difference.between(now.wiring, then.wiring)
        before = self._before or GraphBefore(now, self._history)
        self._write(then, self._history[:-1] if is_undone else [*self._history, difference])
        self._before = before
        return difference

    def take_before(self) -> "GraphBefore | None":
        """What agents ran before the changes that they are about to begin with, once; None where there are none."""
        before, self._before = self._before, None
        return before

    def take_back(self, before: "GraphBefore") -> Graph:
        """Note what ran before, since no agent can begin with what came after. Raises UsageError: it cannot be written."""
        self._write(before.graph, before.history)
        return before.graph

    def _write(self, graph: Graph, history: list[Difference]) -> None:
        directory: Path = self._plan.directory
        try:
            write_changes(directory, history)
            self._place.write(self._plan.kept(graph), graph)
        except OSError as error:
            raise UsageError(f"{directory / CRAWL_FILE} cannot be written: {error.strerror}") from None
        self._history = history


class GraphBefore(NamedTuple):
    """What ran before changes: all changes of one rest are taken back together."""

    graph: Graph
    history: list[Difference]
