"""Steps of a hand-over while agents rest on machines of their own: each ledger is opened on the machine that has it.

Place in the flow: while all agents of a crawl rest, :mod:`gossamer.agents.membership` lets them do the steps of a hand-over
(:class:`~gossamer.agents.parcels.AgentsAtRest`). :class:`~gossamer.agents.joined.welcoming.JoinedCluster` sends each deed to the
machine of its agent (:func:`done_there`), which does it as any crawl at rest (:func:`done_here`). A parcel that a giver has written
is fetched, stands in the folder of the supervisor as it would if that had all agents, and is sent to its taker. A connection that
breaks leaves a deed that is done again.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from gossamer.agents.ended import AgentEnd, noted_end
from gossamer.agents.handing_over import NOTE, under_way
from gossamer.agents.joined import link
from gossamer.agents.joined.placed import Machine
from gossamer.agents.parcels import AgentsAtRest, Deed
from gossamer.engine.errors import FlowError
from gossamer.engine.files import replace_private
from gossamer.engine.wiring import read
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import CrawlDirectoryError, GossamerError

#: Bytes of a file that cross in one message.
_PART = 4 << 20

_encode = msgspec.msgpack.Encoder().encode


class DeedDone(msgspec.Struct, frozen=True):
    """The end of what a machine was asked for."""

    answer: bytes = b""
    error: str = ""
    """Why it was not done; empty where it was."""
    end: AgentEnd | None = None
    """How the agent stands since then."""


_done = msgspec.msgpack.Decoder(DeedDone)
_deed = msgspec.msgpack.Decoder(Deed)


# On the machine.


async def done_here(directory: Path, asked: link.Asked, has: Callable[[str, bool], Awaitable[None]]) -> bytes:
    """Do what an agent whose ledger is in this directory is asked for at rest; returns how that ended. It may be done again. `has`
    lets the directory have an agent, out of the store where it is to."""
    try:
        match asked:
            case link.ReadPart():
                done = DeedDone(_part_of(directory / asked.name, asked.at))
            case link.WritePart():
                _write_part(directory / asked.name, asked.at, asked.data)
                done = DeedDone()
            case link.AtRest():
                write_files(directory, asked.files)
                deed = msgspec.structs.replace(_deed.decode(asked.deed), directory=str(directory))
                await has(deed.agent, asked.restores)
                async with AgentsAtRest(directory, read(directory / CRAWL_FILE)) as agents:
                    answer = await agents.done(deed)
                end = noted_end(directory, deed.agent)
                done = DeedDone(answer, end=end and msgspec.structs.replace(end, opening=0))
            case _:
                done = DeedDone(error="it is no deed of an agent at rest")
    except (GossamerError, FlowError, OSError, ValueError) as error:
        done = DeedDone(error=str(error) or type(error).__name__)
    (directory / NOTE).unlink(missing_ok=True)  # the supervisor has it
    return _encode(done)


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of the whole crawl. Raises OSError."""
    for name, data in files.items():
        if name == CRAWL_FILE or name.startswith("state/"):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            replace_private(directory / name, data)


def _part_of(path: Path, at: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(_PART)


def _write_part(path: Path, at: int, data: bytes) -> None:
    """Write a part of a file, which is there when its last part is: that is shorter than others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("r+b" if at else "wb") as file:
        file.seek(at)
        file.truncate()
        file.write(data)
    if len(data) < _PART:
        fresh.replace(path)


# In the supervisor.


async def done_there(
    directory: Path, machine: Machine, deed: Deed, files: dict[str, bytes], *, restores: bool
) -> DeedDone:
    """Let an agent do something on its machine.

    Args:
        files: those of the whole crawl, by their names in its directory.
        restores: the machine brings the agent back from the store first.

    Raises:
        ConnectionError: the machine has gone.
        CrawlDirectoryError: it cannot be done.
    """
    work = under_way(directory)
    parcels = (work.hand_overs or ()) if work is not None else ()
    if work is not None:
        files = {**files, NOTE: (directory / NOTE).read_bytes()}
    for name in [one.parcel for one in parcels if deed.deed == "take" and one.taker == deed.agent]:
        at = 0
        while at % _PART == 0:
            data = _part_of(directory / name, at)
            await _asked(machine, deed.agent, link.WritePart(0, name, at, data))
            at += len(data) or 1
    done = await _asked(machine, deed.agent, link.AtRest(0, _encode(deed), files, restores))
    for name in [one.parcel for one in parcels if deed.deed == "give" and one.giver == deed.agent]:
        at = 0
        while at % _PART == 0:
            data = (await _asked(machine, deed.agent, link.ReadPart(0, name, at))).answer
            _write_part(directory / name, at, data)
            at += len(data) or 1
    return done


async def _asked(machine: Machine, agent: str, message: link.Asked) -> DeedDone:
    done = _done.decode(await machine.ask(message))
    if done.error:
        raise CrawlDirectoryError(f"{agent}: {done.error}")
    return done
