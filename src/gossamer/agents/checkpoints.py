"""Acts of all agents at one instant: a checkpoint of the whole crawl, and a change of its graph.

Place in the flow: :mod:`steering` makes a checkpoint when people ask, and :mod:`several` keeps one object for changes of the graph.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gossamer.agents.masters import MAIL
from gossamer.agents.parcels import AgentsAtRest
from gossamer.agents.supervision import SetAgent
from gossamer.agents.wiring import OUTBOX
from gossamer.crawls.builder import with_protocols
from gossamer.crawls.control import resting
from gossamer.crawls.control.line import AgentSilent, place_of
from gossamer.crawls.control.messages import Checkpoint
from gossamer.crawls.control.wire import RequestRefused
from gossamer.crawls.directory import CrawlPlace
from gossamer.crawls.live import read_changes, write_changes
from gossamer.crawls.plan import CrawlPlan
from gossamer.engine.errors import WiringError
from gossamer.engine.graph import Graph
from gossamer.engine.wiring import Difference, Wiring
from gossamer.storage.ledger.opening import Places, checkpoint_name
from gossamer.storage.mailbox.shared_state import copy_shared, forget_copy
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.agents import at_work, member
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.agents.several import SeveralAgents
    from gossamer.agents.supervised import AgentProcess, MasterProcess, SupervisedProcess

# A checkpoint of all agents while they work: one state of the whole crawl, in which no URL is lost between two of them.
#
# A URL is owed at its sender until the other agent has committed it. So it can be lost between two snapshots only if its sender
# forgets it after the other agent's snapshot and before its own. While a checkpoint is made no sender forgets anything: the agents
# fetch on, but bring each other nothing. An agent that dies on the way comes back and may forget, so the checkpoint is made once
# more. A URL that both snapshots have is sent again after the crawl has gone back to them, which does no harm.


#: How often a checkpoint is begun anew, since an agent died while it was made, and seconds before the next time.
_TRIES = 5
_PAUSE = 1.0

#: Seconds for one agent: it flushes what its store has in memory.
_PATIENCE = 60.0


async def checkpoint(crawl: "SeveralAgents", name: str) -> str:
    """Keep the state of all agents under a name; returns the name. An empty one stands for the time. Raises UsageError: the
    name cannot be used or is taken, or agents do not stay at work for long enough; RequestRefused: an agent cannot make its
    part."""
    name = name or checkpoint_name()
    directory, members = crawl.directory, crawl.roster.members
    resting.check_is_free_everywhere(directory, name)
    agents, masters = list(crawl.supervisor.agents.values()), crawl.supervisor.masters_at_work
    for attempt in range(_TRIES):
        if attempt:
            await asyncio.sleep(_PAUSE)
        if crawl.supervisor.is_resting or crawl.supervisor.is_stopping:
            raise UsageError("the agents are about to end, or to begin again; make the checkpoint in some seconds")
        if await _made(agents, masters, directory, name):
            left = sorted({member(text).agent for text in members} - set(at_work(members)))
            if left:
                async with AgentsAtRest(directory, crawl.graph.wiring) as at_rest:
                    await at_rest.told("checkpoint", left, words=[name])
            resting.note_members(directory, name, members)
            return name
    raise UsageError("agents died while the checkpoint was made, so it was not kept; try again")


async def _made(agents: list["AgentProcess"], masters: list["MasterProcess"], directory: Path, name: str) -> bool:
    """Let each agent make its part; False, with nothing left of it, where one of them was not there all the time."""
    is_made = False
    everybody: list[SupervisedProcess] = [*agents, *masters]
    try:
        before = await _lives(everybody)
        await _hold(agents, masters, is_held=True)
        with contextlib.suppress(AgentSilent):
            await asyncio.gather(*(one.line.do(Checkpoint(name), _PATIENCE) for one in agents))
            if masters:
                # Last: it has every domain that an agent holds by then.
                await asyncio.to_thread(copy_shared, directory, name)
            is_made = before is not None and await _lives(everybody) == before
    except AgentSilent:
        pass
    finally:
        with contextlib.suppress(AgentSilent):
            await _hold(agents, masters, is_held=False)
        if not is_made:
            for one in agents:
                shutil.rmtree(Places(place_of(directory, one.name)).checkpoints / name, ignore_errors=True)
            forget_copy(directory, name)
    return is_made


async def _lives(processes: Sequence["SupervisedProcess"]) -> list[str] | None:
    news = await asyncio.gather(*(one.ask_news() for one in processes))
    return None if None in news else [one.report.life for one in news if one is not None]


async def _hold(agents: list["AgentProcess"], masters: list["MasterProcess"], *, is_held: bool) -> None:
    """Let all senders forget nothing, or let them go on. Raises AgentSilent: one does not answer; the others have heard it."""
    if len(agents) == 1 and not masters:
        return  # it owes nothing, and has no outbox
    asked = [*((one, OUTBOX) for one in agents), *((one, MAIL) for one in masters)]
    told = await asyncio.gather(
        *(one.line.do(SetAgent(unit, {"holds": is_held})) for one, unit in asked), return_exceptions=True
    )
    for error in told:
        if isinstance(error, BaseException) and not (isinstance(error, RequestRefused) and not is_held):
            raise error


# Changes of the graph while agents work. An agent becomes another graph by beginning again: all agents rest for a moment, and begin
# with the new wiring. So no URL is on its way between an agent of the old graph and one of the new.


class GraphChanges:
    """The changes of one crawl's graph."""

    def __init__(self, plan: CrawlPlan, place: CrawlPlace, check: Callable[[Graph], None], *, goes_on: bool) -> None:
        """`check` refuses a graph that the crawl's agents cannot run; changes of a crawl that `goes_on` are known."""
        self._plan = plan
        self._place = place
        self._check = check
        self._history = read_changes(plan.directory, plan.graph.wiring) if goes_on else []
        self._before: GraphBefore | None = None

    def planned(self, now: Graph, change: Callable[[Wiring], Wiring]) -> Graph:
        """The graph that a change makes. Nothing is changed. Raises FlowError: it cannot be; UsageError: several agents cannot
        run it, or state that agents keep would be left out."""
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
        """Note a change for this run and every later one; returns what it is. Raises UsageError: it cannot be written; nothing
        has changed."""
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
    """The agents before changes: all changes of one rest are taken back together."""

    graph: Graph
    history: list[Difference]
