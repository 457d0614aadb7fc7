"""The clusters by their names, and the one that ships as `local`: the processes of a crawl run on this machine, as children of the
supervisor, or of one before it that is gone.

Place in the flow: :mod:`several` has one cluster (:func:`cluster_of`), and :mod:`supervisor` lets it place agents and masters.
Nothing above it knows the number of a process: a process is placed, it ends, and it can be killed. What it is to run lies in the
folder where the processes of a crawl meet (:mod:`process`). Contract: `agents.contract.Cluster`.
"""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from gossamer.agents.contract import Cluster, ClusterNeeds, ClusterNode
from gossamer.agents.ended import noted_end
from gossamer.engine import processes
from gossamer.engine.files import joined, scratch
from gossamer.engine.sheet import nearest
from gossamer.engine.subjects import found_at, subjects
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import ProcessLock
from gossamer.storage.members import holder_of, write_kept
from gossamer.storage.tables.places import check_is_here
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: The word that lets a process begin. Without it, it ends as soon as its supervisor does.
WORD = b"\n"

#: Seconds between two looks at a process that another supervisor has started: no parent is told when it ends.
_LOOK = 0.1

#: Seconds that it has between letting go of its ledger and its end: it writes one small file.
_LAST_WORDS = 10.0

#: The supervisor's folder in the crawl's state, and the note in it of where agents meet.
_SUPERVISOR = "supervisor"
_NOTE = f"{_SUPERVISOR}/meeting.json"


class _Note(msgspec.Struct, frozen=True):
    folder: str


#: The cluster of crawls that name none.
LOCAL = "local"


def cluster_of(needs: ClusterNeeds) -> Cluster:
    """The cluster that the options name. Raises UsageError: no installed package has one of this name; FlowError: it cannot be
    loaded."""
    places = {name: place for one in subjects() for name, place in one.clusters.items()}
    name = needs.options.cluster or LOCAL
    if name not in places:
        raise UsageError(f"no cluster is called {name!r}{nearest(name, places)}")
    if needs.options.agent_wheel and name in (LOCAL, "joined"):
        raise UsageError("--agent-wheel lets Ray bring code to its machines; also give --cluster ray, or leave it out")
    made: Cluster = found_at(places[name])(needs)
    return made


def supervisor_lock(directory: Path) -> ProcessLock:
    """The lock by which a crawl has one supervisor. Raises CrawlDirectoryError: it has another one."""
    return ProcessLock(directory / STATE_DIRECTORY / _SUPERVISOR / "lock")


def living(directory: Path, agents: Iterable[str]) -> dict[str, int]:
    """The agents that are at work, with the numbers of their processes."""
    return {agent: process for agent in agents if (process := _process_of(directory, agent))}


def _process_of(directory: Path, agent: str) -> int:
    process = holder_of(directory / STATE_DIRECTORY / agent / "lock")
    return int(process) if process.isdecimal() else 0


@contextlib.contextmanager
def meeting(directory: Path, agents: Sequence[str]) -> Iterator[Path]:
    """The folder in which agents meet: that of the agents at work, if there are any; else a new one. Each process at work holds
    the folder, so that it is not swept away. The caller is the supervisor of the crawl, whose `agents` may be at work. Raises
    OSError: none can be made."""
    path, known = directory / STATE_DIRECTORY / _NOTE, None
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, ValueError):
        known = Path(msgspec.json.decode(path.read_bytes(), type=_Note).folder)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(joined(known)) if known and living(directory, agents) else None
        if folder is None:
            folder = Path(stack.enter_context(scratch(shared=True)))
            write_kept(path, _Note(str(folder)))
        yield folder


class LocalPlaced:
    """One life of an agent or a master on this machine. Contract: `agents.contract.Placed`."""

    def __init__(self, number: int, process: asyncio.subprocess.Process | None = None) -> None:
        self.number = number
        """The system's number of the process."""
        self._process = process

    def __str__(self) -> str:
        return f"process {self.number}"

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def ended(self, say: Callable[[str], None]) -> int:
        """Wait for its end; returns its exit status, or the signal below zero. Each line that it tells people is said meanwhile."""
        assert self._process is not None and self._process.stderr is not None
        while line := await _line(self._process.stderr):
            say(line)
        return await self._process.wait()

    def kill(self) -> None:
        if self._process is not None:
            processes.kill(self._process)


class FoundRunning(LocalPlaced):
    """One that another supervisor has placed, which is gone: it keeps its lines for the next question."""

    def __init__(self, number: int, directory: Path, name: str) -> None:
        super().__init__(number)
        self._directory, self._name = directory, name

    @property
    def is_alive(self) -> bool:
        return _process_of(self._directory, self._name) == self.number

    async def ended(self, say: Callable[[str], None]) -> int:
        while self.is_alive:
            await asyncio.sleep(_LOOK)
        # Its exit status is not ours to have: the note of its end says how it ended, once it has let go of its ledger.
        until = time.monotonic() + _LAST_WORDS
        while (
            (end := noted_end(self._directory, self._name)) is None
            and processes.is_alive(self.number)
            and time.monotonic() < until
        ):
            await asyncio.sleep(_LOOK)
        return 0 if end is not None and end.is_clean else -signal.SIGKILL

    def kill(self) -> None:
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.number, signal.SIGKILL)


class LocalCluster:
    """The processes of one crawl on this machine. Contract: `agents.contract.Cluster`.

    Those that are needed soon are started ahead, load the program, and wait for a word, since loading the program takes longer than
    a change of hands, and nothing is fetched meanwhile.
    """

    is_shared = True

    def __init__(self, directory: Path, folder: Path) -> None:
        """`folder` is where the processes of the crawl in `directory` meet."""
        self.directory = directory
        self.folder = folder
        self._prepared: dict[str, asyncio.Task[asyncio.subprocess.Process]] = {}
        self._placed: dict[str, LocalPlaced] = {}

    async def place(self, name: str) -> LocalPlaced:
        """Let an agent or a master begin: the process that was prepared, or a new one. Raises OSError."""
        process = await self._waiting(name) or await self._started(name)
        assert process.stdin is not None
        process.stdin.write(WORD)
        placed = self._placed[name] = LocalPlaced(process.pid, process)
        return placed

    async def living(self, names: Iterable[str]) -> dict[str, LocalPlaced]:
        return {
            name: FoundRunning(number, self.directory, name) for name, number in living(self.directory, names).items()
        }

    async def nodes(self) -> list[ClusterNode]:
        """This machine, with those that were placed here."""
        here = tuple(name for name, one in self._placed.items() if one.is_alive)
        return [ClusterNode(socket.gethostname(), processes=here)]

    def prepare(self, names: Iterable[str]) -> None:
        """Let processes load the program that are to begin soon."""
        for name in names:
            if name not in self._prepared:
                self._prepared[name] = asyncio.create_task(self._started(name))

    async def close(self) -> None:
        """End those that wait and were not needed."""
        for name in list(self._prepared):
            if process := await self._waiting(name):
                processes.kill(process)
                await process.wait()

    async def _waiting(self, name: str) -> asyncio.subprocess.Process | None:
        """The process that was prepared, once; None where there is none, or it has ended."""
        if (task := self._prepared.pop(name, None)) is None:
            return None
        try:
            process = await task
        except OSError:
            return None  # who needs it tries again, and says why it fails
        return process if process.returncode is None else None

    async def _started(self, name: str) -> asyncio.subprocess.Process:
        return await processes.begun(
            "gossamer.agents.process", str(self.folder), name, stdout=asyncio.subprocess.DEVNULL
        )


def local_cluster(needs: ClusterNeeds) -> LocalCluster:
    """The cluster of this machine. Raises UsageError: the agents of the crawl, with all that they keep, are elsewhere, or others
    are to join, which this one does not let in."""
    if needs.options.listen:
        raise UsageError("--listen lets agents on other machines join; also give --cluster joined")
    try:
        check_is_here(needs.directory)
    except CrawlDirectoryError:
        raise UsageError(
            f"the agents of {needs.directory} keep their parts on machines of their own; go on with --cluster joined --listen "
            "HOST:PORT and the secret, or bring the crawl here from its store: gossamer resume STORE -o DIR"
        ) from None
    return LocalCluster(needs.directory, needs.folder)


async def _line(reader: asyncio.StreamReader) -> str:
    """The next line, without its end; a very long one is cut. Empty at the end."""
    while True:
        try:
            data = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            data = error.partial
            if not data:
                return ""
        except asyncio.LimitOverrunError as error:
            data = await reader.read(error.consumed or 1)
        if text := data.decode("utf-8", "replace").strip():
            return text
