"""A checkpoint of all agents while they work: one state of the whole crawl, in which no URL is lost between two of them.

Place in the flow: :mod:`gossamer.assembly.agency.steering` makes one when people ask.

A URL is owed at its sender until the other agent has committed it. So it can be lost between two snapshots only if its sender
forgets it after the other agent's snapshot and before its own. While a checkpoint is made no sender forgets anything: the agents
fetch on, but bring each other nothing. An agent that dies on the way comes back and may forget, so the checkpoint is made once
more. A URL that both snapshots have is sent again after the crawl has gone back to them, which does no harm.
"""

import asyncio
import contextlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.assembly.agency.line import AgentRefused, AgentSilent, place_of
from gossamer.assembly.agents import OUTBOX
from gossamer.assembly.control import resting
from gossamer.assembly.control.agent_messages import SetAgent
from gossamer.assembly.control.messages import Checkpoint
from gossamer.assembly.control.standing import checkpoint_name
from gossamer.assembly.masters import MAIL
from gossamer.model.agents import at_work, member
from gossamer.model.errors import UsageError
from gossamer.stores.ledger.checkpoints import Places
from gossamer.stores.shared_state import copy_shared, forget_copy

if TYPE_CHECKING:
    from gossamer.assembly.agency.agent_process import AgentProcess
    from gossamer.assembly.agency.crawl import DividedCrawl
    from gossamer.assembly.agency.master_process import MasterProcess
    from gossamer.assembly.agency.supervised import SupervisedProcess

#: How often a checkpoint is begun anew, since an agent died while it was made, and seconds before the next time.
_TRIES = 5
_PAUSE = 1.0

#: Seconds for one agent: it flushes what its store has in memory.
_PATIENCE = 60.0


async def checkpoint(crawl: "DividedCrawl", name: str) -> str:
    """Keep the state of all agents under a name; returns the name. An empty one stands for the time.

    Raises:
        UsageError: the name cannot be used or is taken, or agents do not stay at work for long enough.
        AgentRefused: an agent cannot make its part.
    """
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
            left = {member(text).agent for text in members} - set(at_work(members))
            await asyncio.to_thread(resting.checkpoint_those, directory, sorted(left), name)
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
            _remove(directory, (one.name for one in agents), name)
            forget_copy(directory, name)
    return is_made


async def _lives(processes: Sequence["SupervisedProcess"]) -> list[str] | None:
    """Who is at work, as this very process; None where one does not answer."""
    news = await asyncio.gather(*(one.ask_news() for one in processes))
    return None if None in news else [one.report.life for one in news if one is not None]


async def _hold(agents: list["AgentProcess"], masters: list["MasterProcess"], *, is_held: bool) -> None:
    """Let all senders forget nothing, or let them go on. Raises AgentSilent: one does not answer; the others have heard it."""
    if len(agents) == 1 and not masters:
        return  # it owes nobody anything, and has no outbox
    asked = [*((one, OUTBOX) for one in agents), *((one, MAIL) for one in masters)]
    told = await asyncio.gather(
        *(one.line.do(SetAgent(unit, {"holds": is_held})) for one, unit in asked), return_exceptions=True
    )
    for error in told:
        if isinstance(error, BaseException) and not (isinstance(error, AgentRefused) and not is_held):
            raise error


def _remove(directory: Path, agents: Iterable[str], name: str) -> None:
    for agent in agents:
        shutil.rmtree(Places(place_of(directory, agent)).checkpoints / name, ignore_errors=True)
