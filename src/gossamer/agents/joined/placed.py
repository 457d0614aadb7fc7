"""A machine that has joined, as its supervisor has it, and the life of an agent on it; and masters beside the supervisor.

Place in the flow: :mod:`welcoming` makes a :class:`Machine` of each that joins, and a :class:`JoinedPlaced` of each agent that
begins there or is at work there. Questions to the agent go out here, and come back as messages (:mod:`link`).
"""

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from gossamer.agents.cluster import LocalCluster, LocalPlaced
from gossamer.agents.joined import link
from gossamer.engine.files import replace_file
from gossamer.engine.remote.addresses import LISTEN, Address, peer_place
from gossamer.engine.remote.frames import FramePipe
from gossamer.engine.sheet import show_seconds

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
        self._say: Callable[[str], None] = self.lines.append
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._after = after
        self._is_killed = False

    def __str__(self) -> str:
        return self.machine.joining.node

    @property
    def is_alive(self) -> bool:
        return not self._end.done()

    async def ended(self, say: Callable[[str], None]) -> int:
        self._say = say
        while self.lines:
            say(self.lines.popleft())
        while not self._end.done():
            await asyncio.wait([self._end], timeout=LOOK)
            self._look()
        return self._end.result()

    def _look(self) -> None:
        """Count it as gone where nothing was heard of it for the lease, and a little."""
        silent = time.monotonic() - self.machine.heard
        after = link.BEYOND if self._is_killed and not self.machine.is_here else self._after
        if after is not None and silent > after and not self._end.done():
            if not self._is_killed:
                self._say(
                    f"{self} has not been heard of for {show_seconds(silent)}, so that another machine may go on with it"
                )
            self._end.set_result(-signal.SIGKILL)

    def said(self, line: str) -> None:
        self._say(line)

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
