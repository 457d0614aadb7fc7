"""The actor in Ray that begins `gossamer agent --join`, or another command, as a process of its node, and ends with it.

Place in the flow: :mod:`gossamer.ray.cluster` asks Ray for one of these for each agent, and :mod:`gossamer.ray.connecting` for the
supervisor. Ray puts the folder of the program that asks first on the import path of its workers, whatever `-P` said there. So each
command is a process of its own, which begins with the import path of a fresh Python, and this module loads nothing but the standard
library. The system ends that process, and all that it begins, when their parents end: Ray does not where a node or a worker is
killed.
"""

import asyncio
import contextlib
import json
import os
import runpy
import secrets
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL
from typing import NamedTuple, Unpack

from gossamer.engine.processes import ENDS_WITH, ChildStreams, child, end_with_parent

#: Lines of the process that are kept for the supervisor, which has them only where the process cannot join.
_LINES = 20

#: Seconds between two looks at whether it has ended, or has said something.
_LOOK = 0.2

#: Pieces of at most 64 KiB of what a command has said that wait for who follows it.
_PIECES = 256

#: Seconds in which who follows a command asks again; one that has ended waits so long for the last question.
_AWAY = 10.0

#: The files of a folder that a command begins with.
ENVIRONMENT, INPUT = "environment.json", "input"

#: Set in the environment of a command that supervises a crawl on Ray: the name of its actor.
SUPERVISES = "GOSSAMER_RAY_SUPERVISES"


class _Host(ABC):
    """A process of this node that ends with this worker."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._has_ended = False
        self._process: asyncio.subprocess.Process | None = None

    def _begin(self, words: Sequence[str], environment: dict[str, str], **streams: Unpack[ChildStreams]) -> None:
        command = [sys.executable, "-P", "-m", __name__, *words]
        environment = {**environment, ENDS_WITH: str(os.getpid())}

        async def run() -> None:
            try:
                process = self._process = await child(*command, env=environment, **streams)
                await self._hear(process)
                await process.wait()
            except (OSError, ValueError) as error:
                self._lines.append(str(error))
            self._has_ended = True

        threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()

    @abstractmethod
    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        """Take what it says, until it says no more."""

    def _send(self, number: int) -> None:
        if self._process is not None and not self._has_ended:
            os.kill(self._process.pid, number)

    async def ready(self) -> str:
        """Say that there is room; returns the id of the node."""
        import ray

        return str(ray.get_runtime_context().get_node_id())


class AgentHost(_Host):
    """One agent's place on a node."""

    def __init__(self, parent: str, folder: str, to: str, variables: dict[str, str], place: str = "") -> None:
        """Begin the process.

        Args:
            parent: the folder on the node that has the folders of agents.
            folder: the name that its folder has given itself; empty, or unknown on this node: a new one is made.
            to: where the supervisor listens.
            variables: added to its environment.
            place: where the node stands, for an agent that is bound to that.
        """
        super().__init__()
        self._folder = _own_folder(Path(parent), folder)
        words = ["agent", "--join", to, "-o", str(self._folder), *(["--place", place] if place else [])]
        # Not what Ray has put on this worker's path: the variables of the node, and those of the crawl.
        self._begin(words, {**os.environ, **variables}, stdin=DEVNULL, stdout=DEVNULL)

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self._lines.append(line.decode("utf-8", "replace").strip()[:1_000])

    async def leave(self) -> None:
        """Let the agent hand back what it has, and end, as its node is to go away."""
        self._send(signal.SIGTERM)

    async def ended(self) -> list[str]:
        """Wait until the process has ended; returns its last lines."""
        while not self._has_ended:
            await asyncio.sleep(_LOOK)
        return list(self._lines)


class CommandSaid(NamedTuple):
    """The output of a command since its caller asked last."""

    number: int
    """Of the last piece: the next question has it."""
    pieces: list[tuple[bool, bytes]]
    """Each with whether it came on standard error."""
    status: int | None
    """With which it has ended, when all is told; a signal is below zero."""


class CommandHost(_Host):
    """A command on a node. The caller may go away from one that is detached: it goes on, and what it says is dropped then."""

    def __init__(self, words: Sequence[str], beginning: str = "", folder: str | None = None) -> None:
        """Begin the process.

        Args:
            words: those of the command.
            beginning: a folder on this node with its environment and its standard input, which are read once; without one, it has
                the environment of the node, and no input.
            folder: where it is at work.

        Raises:
            OSError: another user of this machine has made `beginning`.
        """
        super().__init__()
        self._pieces: deque[tuple[int, bool, bytes]] = deque()
        """Each with its number; one thread puts them, and another one takes them."""
        self._number = 0
        self._asked = time.monotonic()
        self._crawl = ""
        self._is_detached = bool(beginning)
        environment, given = dict(os.environ), DEVNULL
        if beginning:
            environment = json.loads(Path(beginning, ENVIRONMENT).read_bytes())
            given = os.open(Path(beginning, INPUT), os.O_RDONLY)
        self._begin(words, environment, stdin=given, cwd=folder)

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        async def heard(reader: asyncio.StreamReader | None, *, is_error: bool) -> None:
            assert reader is not None
            while piece := await reader.read(1 << 16):
                while len(self._pieces) == _PIECES and not self._is_alone:
                    await asyncio.sleep(_LOOK)
                if len(self._pieces) == _PIECES:
                    self._pieces.popleft()
                self._number += 1
                self._pieces.append((self._number, is_error, piece))

        await asyncio.gather(heard(process.stdout, is_error=False), heard(process.stderr, is_error=True))

    @property
    def _is_alone(self) -> bool:
        return self._is_detached and time.monotonic() - self._asked > _AWAY

    async def said(self, number: int) -> CommandSaid:
        """The output behind the piece of this number; it waits for a second at most until there is something."""
        self._asked = time.monotonic()
        while self._number == number and not self._has_ended and time.monotonic() < self._asked + 1:
            await asyncio.sleep(_LOOK / 4)
        has_ended = self._has_ended  # asked first: all is there by then
        while self._pieces and self._pieces[0][0] <= number:
            self._pieces.popleft()
        told = list(self._pieces)
        pieces = [(is_error, piece) for _, is_error, piece in told]
        status = None
        if has_ended:
            pieces += [(True, f"{line}\n".encode()) for line in self._lines]
            status = 1 if self._process is None else self._process.returncode
        return CommandSaid(told[-1][0] if told else number, pieces, status)

    async def send(self, number: int) -> None:
        """Send the process a signal."""
        self._send(number)

    async def name(self, crawl: str) -> None:
        """Note which crawl it supervises: its directory on this node."""
        self._crawl = crawl

    async def crawl(self) -> str:
        return self._crawl

    async def outlive(self) -> None:
        """End this actor once the command has ended and nothing asks for its last words."""
        while not (self._has_ended and self._is_alone):
            await asyncio.sleep(_LOOK)
        import ray

        ray.actor.exit_actor()


def _own_folder(parent: Path, known: str) -> Path:
    """The folder on this node that calls itself so; else a new one. Others are out of date, and stay as they are."""
    for note in parent.glob("*/state/machine.json"):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if known and json.loads(note.read_bytes()).get("folder") == known:
                return note.parents[1]
    return parent / secrets.token_hex(4)


if __name__ == "__main__":
    end_with_parent()
    runpy.run_module("gossamer", run_name="__main__", alter_sys=True)
