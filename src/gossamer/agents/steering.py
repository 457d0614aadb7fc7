"""Steering of a crawl of several agents: a request to the crawl goes to all of them, and their supervisor keeps what lasts; and
what all agents do at one instant: a checkpoint of the whole crawl, and a change of its graph.

Place in the flow: :mod:`gossamer.agents.several` serves the crawl's control socket, as any crawl does, and answers here, so that
commands need not know how many agents there are. Each crawl has one :class:`GraphChanges`.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from gossamer.agents.masters import MAIL
from gossamer.agents.parcels import AgentsAtRest
from gossamer.agents.supervised import AgentProcess, MasterProcess, SupervisedProcess
from gossamer.agents.supervision import ReadAside, ReadMaster, SetAgent, SetAsideRows
from gossamer.agents.wiring import OUTBOX
from gossamer.crawls.builder import with_protocols
from gossamer.crawls.control import messages as ask
from gossamer.crawls.control import resting, steering
from gossamer.crawls.control.at_rest import added_standing
from gossamer.crawls.control.at_work import limits_of, time_left_of
from gossamer.crawls.control.facts import HostNow, HostsNow
from gossamer.crawls.control.picture import UnitInstances, check_unit, graph_picture
from gossamer.crawls.control.problems import problems_of
from gossamer.crawls.control.server import LINE_PATIENCE, AgentLine, AgentSilent, place_of
from gossamer.crawls.control.standing import SILENT, CrawlStanding, MasterStanding, agent_standing
from gossamer.crawls.control.wire import Answered, ControlRequest, Done, Listed, RequestRefused, Told, tag_of, told
from gossamer.crawls.directory import CrawlPlace
from gossamer.crawls.live import read_changes, write_changes
from gossamer.crawls.plan import CrawlPlan
from gossamer.engine.errors import WiringError, refusing
from gossamer.engine.graph import Graph
from gossamer.engine.sheet import nearest
from gossamer.engine.wiring import Difference, Wiring
from gossamer.storage.ledger.opening import Places, checkpoint_name
from gossamer.storage.mailbox.shared_state import copy_shared, forget_copy
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.agents import at_work, member
from gossamer.values.errors import UsageError
from gossamer.values.url import host_of

if TYPE_CHECKING:
    from gossamer.agents.several import SeveralAgents

T = TypeVar("T")

#: Seconds for a change of one agent: what leaves its graph finishes what it fetches first.
LONGEST = 300.0


async def answer(crawl: "SeveralAgents", request: ControlRequest) -> Answered:
    """Do what is asked, and note what was changed. Raises GossamerError: it was not done, and nothing has changed; FlowError:
    likewise."""
    answered = await (_of_one if getattr(request, "agent", "") else _answered)(crawl, request)
    if request.steers:
        steering.note_steering(crawl.directory, request.noted(crawl, answered))
    return answered


async def _answered(crawl: "SeveralAgents", request: ControlRequest) -> Answered:
    match request:
        case ask.Stop() | ask.Change() | ask.SetHost() | ask.BlockHosts():
            return await request.act(cast(Any, crawl))  # it has what these ask for, as a crawl of one agent has
        case ask.Rewire() | ask.Undo():
            done = await request.act(cast(Any, crawl))
            return Done(f"{cast(Done, done).text} (all agents rest for some seconds, and begin again with it)")
        case ask.Pause() | ask.Continue():
            await crawl.supervisor.pause(request)
            return Done(ask.PAUSED if isinstance(request, ask.Pause) else ask.GOES_ON)
        case ask.Suspend() | ask.Unsuspend():
            check_unit(crawl.graph, request.unit)
            each = await asyncio.gather(*(_at_one(crawl, request, name) for name in list(crawl.supervisor.agents)))
            return Done(f"{'; '.join(sorted({one.text for one in each if isinstance(one, Done)}))} (all agents)")
        case ask.Checkpoint() if not crawl.is_shared:
            raise UsageError(
                "agents on machines of their own make no checkpoint together; a store has one of each (--store)"
            )
        case ask.Checkpoint():
            return Done(f"checkpoint {await checkpoint(crawl, request.name)} is kept")
        case ask.Assign():
            return Done(await crawl.assign(request.agents))
        case ask.Decide():
            lines = [agent.line for agent in crawl.supervisor.agents.values()]
            parts = await asyncio.gather(*(line.told(ReadAside(), SetAsideRows) for line in lines))
            rows = chain.from_iterable(one.rows for one in parts)
            return Done(await steering.decide(crawl, rows, request.confirm, request.release))
        case _:
            return await _looked(crawl, request)


async def _looked(crawl: "SeveralAgents", request: ControlRequest) -> Answered:
    """The answer to a request that changes nothing."""
    match request:
        case ask.Status() | ask.CheckRewire() | ask.CheckChange():
            return await request.act(cast(Any, crawl))
        case ask.Checkpoints():
            return Listed(resting.checkpoints(crawl.directory))
        case ask.ReadGraph():
            return told(graph_picture(crawl.graph, at_work(crawl.roster.members)))
        case ask.Why():
            return await crawl.line_to(host_of(request.url)).ask(request)
        case ask.ReadHost():
            return await crawl.line_to(request.name).ask(request)
        case ask.ReadHosts():
            return await _hosts_of_all(crawl, request.names)
        case ask.ReadUnit():
            check_unit(crawl.graph, request.name)
            lines = [agent.line for agent in crawl.supervisor.agents.values()]
            found = await asyncio.gather(*(_told_by(line, request, UnitInstances) for line in lines))
            instances = [one for each in found if each is not None for one in each.instances]
            return told(UnitInstances(request.name, instances))
        case _:
            raise UsageError(
                f"a crawl of several agents cannot do this while it runs ({tag_of(type(request))}); stop it first: "
                f"gossamer stop {crawl.directory}"
            )


async def _of_one(crawl: "SeveralAgents", request: ControlRequest) -> Answered:
    """The answer of one agent. Its changes hold until it begins again; lasting ones are made for the whole crawl.
    Raises UsageError: there is no such agent, or it does not work now; AgentSilent: it does not answer; RequestRefused: it was
    not done."""
    agent = str(getattr(request, "agent", ""))
    answered = await _at_one(crawl, request, agent)
    if isinstance(answered, Done) and request.steers:
        return Done(f"{answered.text} ({agent} alone, until it begins again)")
    return answered


async def _at_one(crawl: "SeveralAgents", request: ControlRequest, agent: str) -> Answered:
    """The answer of this agent. Raises as :func:`_of_one`."""
    working = crawl.supervisor.agents
    if agent not in working:
        raise UsageError(f"no agent {agent!r} is at work{nearest(agent, working)}")
    if crawl.supervisor.is_resting:
        raise UsageError("all agents rest for some seconds; ask again")
    # A line of its own: the supervisor goes on asking for news while a unit that leaves finishes what it fetches.
    with contextlib.closing(AgentLine(crawl.directory, agent)) as line:
        return await line.ask(msgspec.structs.replace(request, agent=""), LONGEST if request.steers else LINE_PATIENCE)


async def _told_by(line: AgentLine, request: ControlRequest, form: type[T]) -> T | None:
    """The answer of an agent or a master; None where there is none."""
    try:
        found: T = await line.told(request, form)
    except (AgentSilent, RequestRefused):
        return None
    return found


async def standing_of_all(crawl: "SeveralAgents", process: int, *, units: bool) -> CrawlStanding:
    """How the crawl stands, by all agents that answer."""
    supervisor = crawl.supervisor
    is_changing = supervisor.is_resting or not supervisor.has_begun
    if is_changing and crawl.working:
        return msgspec.structs.replace(crawl.glance(), seconds=round(crawl.pace[0], 3))
    agents = list(supervisor.agents.values())
    answers = await asyncio.gather(*(_told_by(one.line, ask.Status(units), CrawlStanding) for one in agents))
    found = [one for one in answers if one is not None]
    nodes = await crawl.nodes()
    state = "stopping" if supervisor.is_stopping else "paused" if supervisor.is_paused else "running"
    added = added_standing(crawl.directory, [*found, *crawl.roster.left])
    seconds, before = crawl.pace
    now = msgspec.structs.replace(
        added,
        seconds=round(seconds, 3),
        pages_per_second=round(max(0, added.pages - before) / seconds, 2),
        state=state,
        process=process,
        agents=len(agents),
        limits=limits_of(crawl.graph),
        each_agent=[
            msgspec.structs.replace(
                agent_standing(one.name, answer),
                silent_seconds=round(one.beat.seconds, 1) if one.beat.is_silent else 0.0,
                silences=one.beat.silences,
                restarts=one.restarts.count,
                node=nodes.get(one.name, ""),
            )
            for one, answer in zip(agents, answers, strict=True)
        ],
        each_master=list(await asyncio.gather(*map(_master_standing, supervisor.masters.values()))),
    )
    # Agents may have begun later than the crawl, and each knows its own pages alone.
    frontier: Any = crawl.graph.sheet("frontier")
    left = time_left_of(frontier, now)
    return msgspec.structs.replace(now, problems=problems_of(now), time_left=left)


async def _master_standing(master: MasterProcess) -> MasterStanding:
    if master.is_gone:
        return MasterStanding(master.name, "gone")
    return await _told_by(master.line, ReadMaster(), MasterStanding) or MasterStanding(master.name, SILENT)


async def _hosts_of_all(crawl: "SeveralAgents", names: Sequence[str]) -> Told:
    """How hosts stand, each by the word of the agent that has it; without those of agents that do not answer."""
    division = crawl.roster.division(crawl.graph)
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(division.owner(name), []).append(name)
    lines = {agent: one.line for agent, one in crawl.supervisor.agents.items()}
    asked = (_told_by(lines[agent], ask.ReadHosts(part), HostsNow) for agent, part in parts.items() if agent in lines)
    found: dict[str, HostNow] = {}
    for answer in await asyncio.gather(*asked):
        found |= answer.hosts if answer is not None else {}
    return told(HostsNow(found))


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


async def _made(agents: list[AgentProcess], masters: list[MasterProcess], directory: Path, name: str) -> bool:
    """Let each agent make its part; False, with nothing left of it, where one of them was not there all the time."""
    is_made = False
    everybody: list[SupervisedProcess] = [*agents, *masters]
    try:
        before = await _lives(everybody)
        await _hold(agents, masters, is_held=True)
        with contextlib.suppress(AgentSilent):
            await asyncio.gather(*(one.line.do(ask.Checkpoint(name), _PATIENCE) for one in agents))
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


async def _lives(processes: Sequence[SupervisedProcess]) -> list[str] | None:
    news = await asyncio.gather(*(one.ask_news() for one in processes))
    return None if None in news else [one.report.life for one in news if one is not None]


async def _hold(agents: list[AgentProcess], masters: list[MasterProcess], *, is_held: bool) -> None:
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

#: The graph that agents ran before changes, and its history: all changes of one rest are taken back together.
GraphBefore = tuple[Graph, list[Difference]]


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
        before = self._before or (now, self._history)
        self._write(then, self._history[:-1] if is_undone else [*self._history, difference])
        self._before = before
        return difference

    def take_before(self) -> GraphBefore | None:
        """The graph that agents ran before the changes that they are about to begin with, once; None where there is none."""
        before, self._before = self._before, None
        return before

    def take_back(self, before: GraphBefore) -> Graph:
        """Note what ran before, since no agent can begin with what came after. Raises UsageError: it cannot be written."""
        self._write(*before)
        return before[0]

    def _write(self, graph: Graph, history: list[Difference]) -> None:
        directory: Path = self._plan.directory
        with refusing(UsageError, f"{directory / CRAWL_FILE} cannot be written"):
            write_changes(directory, history)
            self._place.write(self._plan.kept(graph), graph)
        self._history = history
