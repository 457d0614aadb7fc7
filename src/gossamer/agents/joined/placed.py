"""A machine that has joined, as its supervisor has it: the life of an agent on it, and what agents do there while all rest; and
masters beside the supervisor.

Place in the flow: :mod:`welcoming` makes a :class:`Machine` of each that joins, and a :class:`JoinedPlaced` of each agent that
begins there or is at work there. Questions to the agent go out here, and come back as messages (:mod:`link`).

While all agents of a crawl rest, :mod:`gossamer.agents.membership` lets them do the steps of a hand-over
(:class:`~gossamer.agents.parcels.AgentsAtRest`), and each ledger is opened on the machine that has it. So each deed is sent to the
machine of its agent (:func:`done_there`), which does it as any crawl at rest (:func:`done_here`). A parcel that a giver has written
is fetched, stands in the folder of the supervisor as it would if that had all agents, and is sent to its taker. A connection that
breaks leaves a deed that is done again.
"""

import asyncio
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from gossamer.agents.cluster import LocalCluster, LocalPlaced
from gossamer.agents.ended import AgentEnd, noted_end
from gossamer.agents.handing_over import NOTE, under_way
from gossamer.agents.joined import link
from gossamer.agents.parcels import AgentsAtRest, Deed
from gossamer.engine.errors import FlowError
from gossamer.engine.files import replace_file, replace_private
from gossamer.engine.remote.addresses import LISTEN, Address, peer_place
from gossamer.engine.remote.frames import FramePipe
from gossamer.engine.sheet import show_seconds
from gossamer.engine.wiring import read
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import CrawlDirectoryError, GossamerError

#: Seconds between two looks at whether a machine was heard of.
LOOK = 0.2

#: Lines of an agent that wait to be said.
_MOST_LINES = 100


class Machine:
    """One machine, as long as it is connected and after that until it comes back."""

    def __init__(self, joining: link.MachineJoins, pipe: FramePipe) -> None:
        self.joining = joining
        self.pipe: FramePipe | None = pipe
        self.heard = time.monotonic()
        """When it was heard of last."""
        self.has_part = False
        """It had an agent when it joined, so that its folder has what that keeps."""
        self.told = link.AgentPlace("", b"")
        self.placed: JoinedPlaced | None = None
        self.is_leaving = False
        """It was told to end, and takes no agent any more."""
        self.refused = 0.0
        """Since when its agent cannot run there; 0 where it can, or nothing is known."""
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._number = 0

    @property
    def is_here(self) -> bool:
        return self.pipe is not None and not self.is_leaving

    def put(self, message: link.JoinMessage) -> None:
        if self.pipe is not None:
            link.put(self.pipe, message)

    async def ask(self, message: link.Asked) -> bytes:
        """The answer to a message, which gets a number. Raises ConnectionError: there is none."""
        if self.pipe is None:
            raise ConnectionError
        self._number += 1
        number = self._number
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self.put(msgspec.structs.replace(message, number=number))
            found: bytes = await answer
        finally:
            self._asked.pop(number, None)
        if not found:
            raise ConnectionError
        return found

    def replied(self, reply: link.MachineReply) -> None:
        self.refused = self.refused if not reply.body else 0.0
        answer = self._asked.get(reply.number)
        if answer is not None and not answer.done():
            answer.set_result(reply.body)

    def lost(self) -> None:
        self.pipe = None
        for answer in self._asked.values():
            if not answer.done():
                answer.set_result(b"")


class JoinedPlaced:
    """One life of an agent on another machine. Contract: `agents.contract.Placed`."""

    def __init__(self, name: str, machine: Machine, after: float | None) -> None:
        """`after` says after how many seconds without a word it counts as gone; None: never, since no other machine has what it
        keeps."""
        self.name = name
        self.machine = machine
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)
        self.say: Callable[[str], None] = self.lines.append
        """Takes a line that it tells people."""
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._after = after
        self._is_killed = False

    def __str__(self) -> str:
        return self.machine.joining.node

    @property
    def is_alive(self) -> bool:
        return not self._end.done()

    async def ended(self, say: Callable[[str], None]) -> int:
        self.say = say
        while self.lines:
            say(self.lines.popleft())
        while not self._end.done():
            await asyncio.wait([self._end], timeout=LOOK)
            # It counts as gone where nothing was heard of it for the lease, and a little.
            silent = time.monotonic() - self.machine.heard
            after = link.BEYOND if self._is_killed and not self.machine.is_here else self._after
            if after is not None and silent > after and not self._end.done():
                if not self._is_killed:
                    say(
                        f"{self} has not been heard of for {show_seconds(silent)}, so that another machine may go on with it"
                    )
                self._end.set_result(-signal.SIGKILL)
        return self._end.result()

    def has_ended(self, code: int) -> None:
        if not self._end.done():
            self._end.set_result(code)

    def kill(self) -> None:
        if self.is_alive:
            self._is_killed = True
            self.machine.put(link.KillAgent())


class MastersHere(LocalCluster):
    """The masters of a crawl, on the machine of its supervisor: their table is there, which says which agent has which domain."""

    def __init__(self, directory: Path, folder: Path, moved: Callable[[], None]) -> None:
        """`moved` is called when one listens elsewhere than before."""
        super().__init__(directory, folder)
        self.ports: dict[str, int] = {}
        """Where agents reach each of them, on this machine."""
        self._moved = moved
        self._names: set[str] = set()
        self._looking: asyncio.Task[None] | None = None

    async def begin(self, name: str, host: str) -> LocalPlaced:
        """Place one that listens at an address of this machine."""
        replace_file(self.folder / f"{name}{LISTEN}", str(Address("tcp", host=host)).encode())
        self._attend([name])
        return await self.place(name)

    async def living(self, names: Iterable[str]) -> dict[str, LocalPlaced]:
        found = await super().living(names)
        self._attend(found)
        return found

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await super().close()

    def _attend(self, names: Iterable[str]) -> None:
        self._names.update(names)
        if self._names and self._looking is None:
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while True:
            at = {name: peer_place(Address("peer", path=str(self.folder / name))) for name in self._names}
            if (ports := {name: one.port for name, one in at.items() if one}) != self.ports:
                self.ports = ports
                self._moved()
            await asyncio.sleep(LOOK)


# Steps of a hand-over while agents rest on machines of their own.

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
    """Let an agent do something on its machine, which gets these files of the whole crawl, by their names in its directory, and
    with `restores` brings the agent back from the store first. Raises ConnectionError: the machine has gone; CrawlDirectoryError:
    it cannot be done."""
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
