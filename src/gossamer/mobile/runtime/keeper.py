"""The runtime's end of a crawler's process: starts it, answers its questions, takes its batches, and ends it.

Place in the flow: a runtime runs one keeper in a thread for each crawler. It blocks there; :meth:`CrawlerKeeper.kill` ends it
from any other thread. Runtime and process speak through a pipe: a length of four bytes, then msgpack.

Promise: the runtime believes nothing that the process says. Lengths, types and URLs are checked, since the process reads pages of
strangers by a program that another stranger sent.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gossamer.engine import processes
from gossamer.engine.confinement import LAYERS, Layer, Walls
from gossamer.engine.worker import Frames
from gossamer.mobile.contract import MAX_FRAME, FailureReason
from gossamer.mobile.running import Fetch
from gossamer.values.body import pieces
from gossamer.values.errors import UnreadableUrl
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import MAX_URL_BYTES, canonical, host_of
from gossamer.values.visit import Response

# Messages through the pipe.

#: Bytes of a message from the process: a batch, and its head.
MAX_MESSAGE = MAX_FRAME + 4_096

_Url = Annotated[str, Meta(max_length=MAX_URL_BYTES)]
_Told = Annotated[str, Meta(max_length=1_000)]


class ConfinedSetup(msgspec.Struct, frozen=True):
    """First to the process: what to run, and how it is shut in."""

    crawler: bytes
    """As it was sent; empty: say only which walls hold."""
    memory: int
    seconds: int
    processors: tuple[str, ...] = ()
    """Names that the owner allows."""
    layers: tuple[Layer, ...] = LAYERS
    cuts: tuple[int, ...] = ()
    """Of each batch that an earlier run made, after how many answers."""


class GivenPage(msgspec.Struct, frozen=True, array_like=True):
    """The answer to :class:`WantedPage`: a response, with its document without content coding."""

    outcome: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    cut: str
    error: str


class WallsStand(msgspec.Struct, frozen=True, array_like=True, tag="walls"):
    """First from the process: it is shut in."""

    walls: Walls


class WantedPage(msgspec.Struct, frozen=True, array_like=True, tag="wanted"):
    """The process wants the answer for a URL."""

    url: _Url
    depth: Annotated[int, Meta(ge=0, le=65_535)]
    source: _Url
    relation: _Told


class MadeBatch(msgspec.Struct, frozen=True, array_like=True, tag="made"):
    """A batch is full, or is the last."""

    frame: Annotated[bytes, Meta(max_length=MAX_FRAME)]
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """SHA-256 of the batch before it was packed."""
    is_last: bool
    late: Annotated[tuple[_Told, ...], Meta(max_length=100)] = ()
    """Modules that were wanted after the walls stood, and could not be had."""


class GaveUp(msgspec.Struct, frozen=True, array_like=True, tag="gave-up"):
    """The process ends without a last batch."""

    reason: Literal["memory", "processors", "invalid", "crashed"]
    told: _Told


FromProcess = WallsStand | WantedPage | MadeBatch | GaveUp


@contextlib.contextmanager
def frames_of(pipe: socket.socket, longest: int) -> Iterator[Frames]:
    with pipe.makefile("rb") as reader, pipe.makefile("wb") as writer:
        yield Frames(reader, writer, longest)


#: Of the runtime's environment the process gets these alone: the rest may hold secrets.
_VARIABLES = (
    *(processes.PATH_VARIABLE, "PYTHONPATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("TMPDIR", "HOME", "VIRTUAL_ENV"),
)
#: A second thread would make namespaces impossible, and stand outside of Landlock.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

#: Seconds until the process is shut in, on a loaded machine.
_START = 60.0
#: Seconds that a process which has closed its pipe gets to end by itself.
_LAST_WORDS = 2.0

#: The unit in which the system counts memory.
_MAXRSS = 1 if sys.platform == "darwin" else 1_024

_MESSAGES = msgspec.msgpack.Decoder(FromProcess)


class ProcessLimits(msgspec.Struct, frozen=True):
    """Limits of the process of one crawler."""

    memory: int = 512 << 20
    """Bytes beside those that any such process takes, some 100 MB."""
    cpu: int = 3_600
    """Seconds of processor time."""
    layers: tuple[Layer, ...] = LAYERS
    is_weak: bool = False
    """Run, whichever walls hold."""


class ConfinedEnd(msgspec.Struct, frozen=True):
    """How a crawler ended, and what it cost."""

    reason: FailureReason | str = ""
    """Empty where it came to its end; `walls` where it was not let run."""
    told: str = ""
    cpu: float = 0.0
    """Seconds of processor time of its process."""
    peak: int = 0
    """Bytes of memory that its process had at most."""
    late: tuple[str, ...] = ()
    """Modules that it could not have."""


class _Stopped(Exception):
    def __init__(self, reason: str, told: str) -> None:
        super().__init__(told)
        self.reason = reason
        self.told = told


Keep = Callable[[MadeBatch], None]
"""Takes a batch, and blocks as long as there is no room for it."""


class CrawlerKeeper:
    """One crawler in a process of its own."""

    def __init__(
        self,
        crawler: bytes,
        limits: ProcessLimits,
        processors: tuple[str, ...] = (),
        command: Sequence[str] | None = None,
        cuts: Sequence[int] = (),
    ) -> None:
        """Start nothing yet. `crawler` is empty where only the walls are to be learned; `processors` are names that the owner
        allows; `command` starts another program in the place of the process; `cuts` says of each batch that an earlier run made,
        after how many answers."""
        self._command = command or processes.command("gossamer.mobile.runtime.confined")
        self._setup = ConfinedSetup(crawler, limits.memory, limits.cpu, processors, limits.layers, tuple(cuts))
        self._limits = limits
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed: _Stopped | None = None
        self.walls = Walls()

    def kill(self, reason: str, told: str) -> None:
        """End it; from any thread, at any time. The first reason stands."""
        with self._lock:
            self._killed = self._killed or _Stopped(reason, told)
            if self._process is not None and self._process.returncode is None:
                _kill(self._process.pid)

    def run(self, fetch: Fetch, keep: Keep) -> ConfinedEnd:
        """Run it to its end: `fetch` is the source of its pages, behind the owner's gate, and `keep` gets its batches in order.
        An error in `keep` ends the crawler, and is raised here."""
        ours, theirs = socket.socketpair()
        with ours:
            try:
                with theirs:
                    process = self._started(theirs)
            except _Stopped as stopped:
                return ConfinedEnd(stopped.reason, stopped.told)
            try:
                last = self._talked(ours, fetch, keep)
            except _Stopped as stopped:
                return self._ended(process, ConfinedEnd(stopped.reason, stopped.told))
            except (EOFError, OSError) as error:
                # It said nothing of its end: the system's word stands for it, where the end was its own.
                has_ended = _wait(process.pid, 0.0 if self._killed else _LAST_WORDS)
                end = self._ended(process, ConfinedEnd("crashed", f"its process broke off: {error}"[:300]))
                if self._killed is not None:
                    return msgspec.structs.replace(end, reason=self._killed.reason, told=self._killed.told)
                if has_ended and (said := _said(process.returncode)):
                    return msgspec.structs.replace(end, reason=said[0], told=said[1])
                return end
            except ValueError as error:  # msgspec's errors are such
                return self._ended(process, ConfinedEnd("crashed", f"its process broke off: {error}"[:300]))
            except BaseException:
                self._ended(process, ConfinedEnd())
                raise
            return self._ended(process, ConfinedEnd(late=last.late if last is not None else ()))

    def _started(self, pipe: socket.socket) -> "subprocess.Popen[bytes]":
        given = processes.environment()
        variables = {name: given[name] for name in _VARIABLES if name in given} | _ONE_THREAD
        with self._lock:
            if self._killed is not None:
                raise self._killed
            self._process = subprocess.Popen(
                self._command,
                stdin=pipe.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=variables,
                start_new_session=True,  # an interrupt of the terminal is for the runtime alone
            )
            return self._process

    def _talked(self, pipe: socket.socket, fetch: Fetch, keep: Keep) -> MadeBatch | None:
        """Answer until the last batch; None where only the walls were wanted."""
        with frames_of(pipe, MAX_MESSAGE) as frames:
            frames.put(msgspec.msgpack.encode(self._setup))
            pipe.settimeout(_START)
            message = _MESSAGES.decode(frames.take())
            pipe.settimeout(None)
            if isinstance(message, GaveUp):
                raise _Stopped(message.reason, message.told)
            if not isinstance(message, WallsStand):
                raise _Stopped("crashed", "its process did not shut itself in")
            self.walls = message.walls
            if not (self.walls.is_whole or self._limits.is_weak):
                raise _Stopped("walls", f"the crawler is not shut in: {self.walls}")
            if not self._setup.crawler:
                return None
            while True:
                message = _MESSAGES.decode(frames.take())
                if isinstance(message, WantedPage):
                    given = fetch(_task(message))
                    body = given.document if isinstance(given.document, bytes) else b"".join(pieces(given.document))
                    page = GivenPage(str(given.outcome), given.status, given.headers, body, given.cut, given.error)
                    frames.put(msgspec.msgpack.encode(page))
                elif isinstance(message, MadeBatch):
                    keep(message)
                    if message.is_last:
                        return message
                elif isinstance(message, GaveUp):
                    raise _Stopped(message.reason, message.told)
                else:
                    raise _Stopped("crashed", "its process began twice")

    def _ended(self, process: "subprocess.Popen[bytes]", end: ConfinedEnd) -> ConfinedEnd:
        _kill(process.pid)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            # From here on the number may be another process'.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        return msgspec.structs.replace(end, cpu=usage.ru_utime + usage.ru_stime, peak=usage.ru_maxrss * _MAXRSS)


def _kill(process: int) -> None:
    """By its number: `Popen.kill` would take the status away that tells what the process has cost."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _wait(process: int, seconds: float) -> bool:
    """Wait for the end of a process for so long, without taking its status away; whether it has come."""
    until = time.monotonic() + seconds
    while os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() >= until:
            return False
        time.sleep(0.01)
    return True


def _said(status: int) -> tuple[FailureReason, str] | None:
    if status == -signal.SIGXCPU:
        return "cpu", "it took more processor time than a crawler may have"
    if status == -signal.SIGKILL:
        return "memory", "the system killed it, as it does when memory runs out"
    return ("crashed", f"its process died by {signal.Signals(-status).name}") if status < 0 else None


def _task(wanted: WantedPage) -> Task:
    """The task, whatever the process wrote into it."""
    try:
        url = canonical(wanted.url)
    except UnreadableUrl as error:
        raise _Stopped("crashed", f"its process asks for no URL: {error}"[:300]) from None
    return Task(url, host_of(url), depth=wanted.depth, source=wanted.source, relation=wanted.relation)


def walls_here(limits: ProcessLimits | None = None) -> Walls:
    keeper = CrawlerKeeper(b"", msgspec.structs.replace(limits or ProcessLimits(), is_weak=True))
    end = keeper.run(lambda task: Response(Outcome.BLOCKED), lambda batch: None)
    return (
        msgspec.structs.replace(keeper.walls, missing=(*keeper.walls.missing, end.told)) if end.reason else keeper.walls
    )
