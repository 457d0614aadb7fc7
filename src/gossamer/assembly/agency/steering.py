"""Steering of a crawl of several agents: what is asked of the crawl is asked of all, and their supervisor keeps what lasts.

Place in the flow: :mod:`gossamer.assembly.agency.crawl` serves the crawl's control socket, as any crawl does, and answers here.
So commands need not know how many agents there are.
"""

import asyncio
from typing import TYPE_CHECKING

from gossamer.assembly.agency.checkpoints import checkpoint
from gossamer.assembly.agency.line import AgentLine, AgentRefused, AgentSilent
from gossamer.assembly.control import resting, steering
from gossamer.assembly.control.adding import added_standing
from gossamer.assembly.control.host_facts import HostNow, HostsNow
from gossamer.assembly.control.messages import (
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
    Rewire,
    SetHost,
    Status,
    Stop,
    Undo,
    Why,
)
from gossamer.assembly.control.picture import graph_picture
from gossamer.assembly.control.problems import problems_of
from gossamer.assembly.control.standing import CrawlStanding, limits_of
from gossamer.assembly.control.wire import Answered, ControlRequest, Done, Listed, Told, tag_of
from gossamer.assembly.suspicions import rows_aside
from gossamer.flow.difference import Difference, changed
from gossamer.model.agents import at_work
from gossamer.model.errors import UsageError
from gossamer.model.url import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec

    from gossamer.assembly.agency.crawl import DividedCrawl
    from gossamer.flow.wiring import Wiring


async def answer(crawl: "DividedCrawl", request: ControlRequest) -> Answered:
    """Do what is asked, and note what was changed.

    Raises:
        GossamerError: it was not done, and nothing has changed.
        FlowError: likewise.
    """
    answered = await _answered(crawl, request)
    if request.steers:
        steering.note_steering(crawl.directory, request.noted(crawl, answered))
    return answered


async def _answered(crawl: "DividedCrawl", request: ControlRequest) -> Answered:
    match request:
        case Pause():
            await crawl.spread(request)
            return Done("paused: nothing more is asked for, what is in flight is finished; `gossamer continue` goes on")
        case Continue():
            await crawl.spread(request)
            return Done("the crawl goes on")
        case Stop(now=True):
            crawl.abort()
            return Done("stopping at once: what is in flight is asked for again when the crawl is resumed")
        case Stop():
            crawl.stop()
            return Done("stopping: what is in flight is finished first")
        case Change():
            return Done(await steering.change_values(crawl, request.values))
        case SetHost():
            return Done(await steering.set_host(crawl, request.name, request.values))
        case BlockHosts():
            return Done(await steering.block(crawl, request.names))
        case Rewire():
            return _begun_again(await crawl.rewire(_change_of(request)))
        case Undo():
            return _begun_again(await crawl.undo())
        case Checkpoint():
            return Done(f"checkpoint {await checkpoint(crawl, request.name)} is kept")
        case _:
            return await _decided(crawl, request)


async def _decided(crawl: "DividedCrawl", request: ControlRequest) -> Answered:
    """What a person has decided about a part of the crawl."""
    match request:
        case Assign():
            return Done(crawl.assign(request.agents))
        case Decide():
            told = await asyncio.to_thread(rows_aside, crawl.directory)
            return Done(await steering.decide(crawl, told, request.confirm, request.release))
        case _:
            return await _looked(crawl, request)


async def _looked(crawl: "DividedCrawl", request: ControlRequest) -> Answered:
    """The answer to a request that changes nothing."""
    match request:
        case Status():
            return _told(await crawl.standing(units=request.units))
        case Checkpoints():
            return Listed(resting.checkpoints(crawl.directory))
        case CheckRewire():
            return Done(crawl.foreseen(_change_of(request)).told)
        case CheckChange():
            steering.check_all_values(crawl, request.values)
            return Done("these values do")
        case ReadGraph():
            return _told(graph_picture(crawl.graph, at_work(crawl.roster.members)))
        case Why():
            return await crawl.line_to(host_of(request.url)).ask(request)
        case ReadHost():
            return await crawl.line_to(request.name).ask(request)
        case ReadHosts():
            return await _hosts_of_all(crawl, request.names)
        case _:
            raise UsageError(
                f"a crawl of several agents cannot do this while it runs ({tag_of(type(request))}); stop it first: "
                f"gossamer stop {crawl.directory}"
            )


def _change_of(request: Rewire | CheckRewire) -> "Callable[[Wiring], Wiring]":
    return lambda wiring: changed(wiring, request.change, request.source)


def _begun_again(difference: Difference) -> Done:
    return Done(f"{difference.told} (all agents rest for some seconds, and begin again with it)")


async def standing_of_all(crawl: "DividedCrawl", process: int, *, units: bool) -> CrawlStanding:
    """How the crawl stands, by all agents that answer."""
    import msgspec

    supervisor = crawl.supervisor
    is_changing = supervisor.is_resting or not any(agent.has_begun for agent in supervisor.agents.values())
    if is_changing and crawl.working:
        return crawl.glance()
    lines = [agent.line for agent in supervisor.agents.values()]
    found = [one for one in await asyncio.gather(*(_asked(line, units) for line in lines)) if one is not None]
    state = "stopping" if supervisor.is_stopping else "paused" if supervisor.is_paused else "running"
    added = added_standing(crawl.directory, [*found, *crawl.roster.left])
    seconds, before = crawl.pace
    now = msgspec.structs.replace(
        added,
        seconds=round(seconds, 3),
        pages_per_second=round(max(0, added.pages - before) / seconds, 2),
        state=state,
        process=process,
        agents=len(lines),
        limits=limits_of(crawl.graph),
    )
    return msgspec.structs.replace(now, problems=problems_of(now))


async def _asked(line: AgentLine, units: bool) -> CrawlStanding | None:  # one value for all lines
    try:
        standing: CrawlStanding = await line.told(Status(units), CrawlStanding)
    except (AgentSilent, AgentRefused):
        return None
    return standing


async def _hosts_of_all(crawl: "DividedCrawl", names: "Sequence[str]") -> Told:
    """How hosts stand, each by the word of the agent that has it; without those of agents that do not answer."""
    division = crawl.roster.division(crawl.graph)
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(division.owner(name), []).append(name)
    lines = {agent: one.line for agent, one in crawl.supervisor.agents.items()}
    asked = (_hosts_of(lines[agent], part) for agent, part in parts.items() if agent in lines)
    found: dict[str, HostNow] = {}
    for told in await asyncio.gather(*asked):
        found |= told
    return _told(HostsNow(found))


async def _hosts_of(line: AgentLine, names: "Sequence[str]") -> dict[str, HostNow]:
    try:
        found: HostsNow = await line.told(ReadHosts(list(names)), HostsNow)
    except (AgentSilent, AgentRefused):
        return {}
    return found.hosts


def _told(value: "msgspec.Struct") -> Told:
    import msgspec

    return Told(msgspec.Raw(msgspec.json.encode(value)))
