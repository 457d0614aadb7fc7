"""A supervisor comes to a crawl whose agents are at work: it takes over those that another supervisor has left behind.

Place in the flow: :mod:`gossamer.assembly.agency.crawl` calls :func:`take_over` before it lets a supervisor work. What the other
supervisor knew is asked of the agents: pages that they were lent they say in each round, turns at addresses here.
"""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.assembly.agency.line import AgentRefused, AgentSilent, place_of
from gossamer.assembly.agency.meeting import living
from gossamer.assembly.control.messages import Continue
from gossamer.model.errors import CrawlDirectoryError

if TYPE_CHECKING:
    from gossamer.assembly.agency.agent import AgentNews
    from gossamer.assembly.agency.supervised import SupervisedProcess
    from gossamer.assembly.agency.supervisor import Supervisor

#: Seconds in which an agent that holds its ledger has to answer, since it may have been started an instant ago; and between two
#: questions.
_PATIENCE = 30.0
_PAUSE = 0.1


async def take_over(supervisor: "Supervisor", directory: Path) -> list[str]:
    """Take over the agents that are at work; returns their names.

    Args:
        supervisor: the new one, which does not work yet.
        directory: of the crawl.

    Raises:
        CrawlDirectoryError: somebody has the ledger of an agent, and is no agent.
    """
    news: list[AgentNews] = []
    everybody: dict[str, SupervisedProcess] = {**supervisor.agents, **supervisor.masters}
    for name, process in living(directory, list(everybody)).items():
        agent = everybody[name]
        agent.take_over(process)
        told = await _first_news(agent, directory, process)
        if told is None:
            continue
        agent.is_ending = told.is_ending
        if name in supervisor.masters:
            continue
        news.append(told)
        with contextlib.suppress(AgentSilent, AgentRefused):
            await agent.line.do(Continue())  # the other supervisor may have held it
    if news:
        supervisor.lending.begin_with(news)
    return [one.report.agent for one in news]


async def _first_news(agent: "SupervisedProcess", directory: Path, process: int) -> "AgentNews | None":
    """What an agent says of itself; None where it ends before it has said anything."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if (told := await agent.ask_news(first=True)) is not None:
            return told
        if agent.name not in living(directory, [agent.name]):
            return None
        await asyncio.sleep(_PAUSE)
    raise CrawlDirectoryError(
        f"{place_of(directory, agent.name)} is in use by process {process}, which does not answer; check the process "
        f"before you end it"
    )
