"""Steering of a crawl of several agents: what is asked of the crawl is asked of all, and their supervisor keeps what lasts.

Place in the flow: :mod:`gossamer.agents.several` serves the crawl's control socket, as any crawl does, and answers here.
So commands need not know how many agents there are.
"""

import asyncio
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import msgspec

from gossamer.agents.checkpoints import checkpoint
from gossamer.agents.supervised import AgentProcess, MasterProcess
from gossamer.agents.supervision import ReadAside, ReadMaster, SetAsideRows
from gossamer.crawls.control import resting, steering
from gossamer.crawls.control.at_rest import added_standing
from gossamer.crawls.control.at_work import limits_of, time_left_of
from gossamer.crawls.control.facts import HostNow, HostsNow
from gossamer.crawls.control.line import PATIENCE, AgentLine, AgentSilent
from gossamer.crawls.control.messages import (
    GOES_ON,
    PAUSED,
    Assign,
    BlockHosts,
    Change,
    CheckChange,
    Checkpoint,
    Checkpoints,
    CheckRewire,
    Continue,
    Decide,
    Pause,
    ReadGraph,
    ReadHost,
    ReadHosts,
    ReadUnit,
    Rewire,
    SetHost,
    Status,
    Stop,
    Suspend,
    Undo,
    Unsuspend,
    Why,
)
from gossamer.crawls.control.picture import UnitInstance, UnitInstances, check_unit, graph_picture
from gossamer.crawls.control.problems import problems_of
from gossamer.crawls.control.standing import (
    SILENT,
    AgentStanding,
    CrawlStanding,
    MasterStanding,
    agent_standing,
)
from gossamer.crawls.control.wire import Answered, ControlRequest, Done, Listed, RequestRefused, Told, tag_of, told
from gossamer.engine.sheet import nearest
from gossamer.values.agents import at_work
from gossamer.values.errors import UsageError
from gossamer.values.url import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gossamer.agents.several import SeveralAgents

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
        case Stop() | Change() | SetHost() | BlockHosts() | Status() | CheckRewire() | CheckChange():
            return await request.act(cast(Any, crawl))  # it has what these ask for, as a crawl of one agent has
        case Rewire() | Undo():
            done = await request.act(cast(Any, crawl))
            return Done(f"{cast(Done, done).text} (all agents rest for some seconds, and begin again with it)")
        case Pause() | Continue():
            await crawl.supervisor.pause(request)
            return Done(PAUSED if isinstance(request, Pause) else GOES_ON)
        case Suspend() | Unsuspend():
            return await _of_each(crawl, request)
        case Checkpoint() if not crawl.is_shared:
            raise UsageError(
                "agents on machines of their own make no checkpoint together; a store has one of each (--store)"
            )
        case Checkpoint():
            return Done(f"checkpoint {await checkpoint(crawl, request.name)} is kept")
        case Assign():
            return Done(await crawl.assign(request.agents))
        case Decide():
            lines = [agent.line for agent in crawl.supervisor.agents.values()]
            parts = await asyncio.gather(*(line.told(ReadAside(), SetAsideRows) for line in lines))
            rows = chain.from_iterable(one.rows for one in parts)
            return Done(await steering.decide(crawl, rows, request.confirm, request.release))
        case _:
            return await _looked(crawl, request)


async def _looked(crawl: "SeveralAgents", request: ControlRequest) -> Answered:
    """The answer to a request that changes nothing."""
    match request:
        case Checkpoints():
            return Listed(resting.checkpoints(crawl.directory))
        case ReadGraph():
            return told(graph_picture(crawl.graph, at_work(crawl.roster.members)))
        case Why():
            return await crawl.line_to(host_of(request.url)).ask(request)
        case ReadHost():
            return await crawl.line_to(request.name).ask(request)
        case ReadHosts():
            return await _hosts_of_all(crawl, request.names)
        case ReadUnit():
            return await _instances_of_all(crawl, request)
        case _:
            raise UsageError(
                f"a crawl of several agents cannot do this while it runs ({tag_of(type(request))}); stop it first: "
                f"gossamer stop {crawl.directory}"
            )


async def _of_one(crawl: "SeveralAgents", request: ControlRequest) -> Answered:
    """The answer of one agent. What it changes holds until it begins again; what is to last is changed for the whole crawl.

    Raises:
        UsageError: there is no such agent, or it does not work now.
        AgentSilent: it does not answer.
        RequestRefused: it was not done.
    """
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
    line = AgentLine(crawl.directory, agent)
    try:
        return await line.ask(msgspec.structs.replace(request, agent=""), LONGEST if request.steers else PATIENCE)
    finally:
        line.close()


async def _of_each(crawl: "SeveralAgents", request: Suspend | Unsuspend) -> Done:
    """The figures of each agent at work. Raises as :func:`_of_one`."""
    check_unit(crawl.graph, request.unit)
    names = list(crawl.supervisor.agents)
    done = await asyncio.gather(*(_at_one(crawl, request, name) for name in names))
    return Done(f"{'; '.join(sorted({one.text for one in done if isinstance(one, Done)}))} (all agents)")


async def _instances_of_all(crawl: "SeveralAgents", request: ReadUnit) -> Told:
    check_unit(crawl.graph, request.name)
    lines = [agent.line for agent in crawl.supervisor.agents.values()]
    found = await asyncio.gather(*(_instances(line, request) for line in lines))
    return told(UnitInstances(request.name, list(chain.from_iterable(found))))


async def _instances(line: AgentLine, request: ReadUnit) -> list[UnitInstance]:
    try:
        found: UnitInstances = await line.told(request, UnitInstances)
    except (AgentSilent, RequestRefused):
        return []
    return found.instances


async def standing_of_all(crawl: "SeveralAgents", process: int, *, units: bool) -> CrawlStanding:
    """How the crawl stands, by all agents that answer."""
    supervisor = crawl.supervisor
    is_changing = supervisor.is_resting or not supervisor.has_begun
    if is_changing and crawl.working:
        return msgspec.structs.replace(crawl.glance(), seconds=round(crawl.pace[0], 3))
    names = list(supervisor.agents)
    answers = await asyncio.gather(*(_asked(supervisor.agents[name].line, units) for name in names))
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
        agents=len(names),
        limits=limits_of(crawl.graph),
        each_agent=[
            _with_beat(supervisor.agents[name], one, nodes.get(name, ""))
            for name, one in zip(names, answers, strict=True)
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
    try:
        standing: MasterStanding = await master.line.told(ReadMaster(), MasterStanding)
    except (AgentSilent, RequestRefused):
        return MasterStanding(master.name, SILENT)
    return standing


def _with_beat(agent: AgentProcess, told: CrawlStanding | None, node: str) -> AgentStanding:
    beat = agent.beat
    return msgspec.structs.replace(
        agent_standing(agent.name, told),
        silent_seconds=round(beat.seconds, 1) if beat.is_silent else 0.0,
        silences=beat.silences,
        restarts=agent.restarts.count,
        node=node,
    )


async def _asked(line: AgentLine, units: bool) -> CrawlStanding | None:  # one value for all lines
    try:
        standing: CrawlStanding = await line.told(Status(units), CrawlStanding)
    except (AgentSilent, RequestRefused):
        return None
    return standing


async def _hosts_of_all(crawl: "SeveralAgents", names: "Sequence[str]") -> Told:
    """How hosts stand, each by the word of the agent that has it; without those of agents that do not answer."""
    division = crawl.roster.division(crawl.graph)
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(division.owner(name), []).append(name)
    lines = {agent: one.line for agent, one in crawl.supervisor.agents.items()}
    asked = (_hosts_of(lines[agent], part) for agent, part in parts.items() if agent in lines)
    found: dict[str, HostNow] = {}
    for part in await asyncio.gather(*asked):
        found |= part
    return told(HostsNow(found))


async def _hosts_of(line: AgentLine, names: "Sequence[str]") -> dict[str, HostNow]:
    try:
        found: HostsNow = await line.told(ReadHosts(list(names)), HostsNow)
    except (AgentSilent, RequestRefused):
        return {}
    return found.hosts
