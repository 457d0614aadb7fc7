"""Work in processes of their own, as the process sees it that wants it done: start, ask, limit, kill.

Place in the flow: work goes to another process because it may hang, crash or eat memory, or because its libraries should not be
loaded here. :mod:`gossamer.engine.worker` is the program of that process, and says what a use is.
"""

import asyncio
import contextlib
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator

import msgspec

from gossamer.engine import processes
from gossamer.engine.worker import (
    ANSWER,
    END,
    FAILED,
    FRAME_LIMIT,
    READY,
    Failure,
    Reason,
    Use,
    failure_by,
    function_of,
)

#: Seconds that a worker gets to load its function: imports on a loaded machine.
START = 30.0

#: Seconds that a process which has closed its end gets to end by itself, so that its status says why.
_LAST_WORDS = 5.0

#: Statuses of a process that could not get memory: a library gives up, or the system kills it.
_OUT_OF_MEMORY = {-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV}

#: Bytes that are read ahead.
_AHEAD = 1 << 20

_failures = msgspec.msgpack.Decoder(Failure)


class WorkerFailed(Exception):
    """There is no answer. The text says why in one line, for a person where the reason is `refused`."""

    def __init__(self, reason: Reason, text: str, exit_code: int = 1) -> None:
        super().__init__(text)
        self.reason = reason
        self.exit_code = exit_code
        """Of the error, where it was `refused`."""


class Worker:
    """One process that does one kind of work."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._input, self._output = process, process.stdin, process.stdout

    @classmethod
    async def start(cls, use: Use, *, stderr: int | None = DEVNULL, own: bool = False) -> "Worker":
        """A process that loads the function of a use.

        Args:
            use: the work.
            stderr: takes what code of others prints; None for this process' own standard error.
            own: it may need modules of the person's own.

        Raises:
            OSError: the system starts no process.
        """
        process = await processes.begun("gossamer.engine.worker", stderr=stderr, own=own, limit=_AHEAD)
        worker = cls(process)
        worker._write(msgspec.msgpack.encode(use))
        return worker

    async def ready(self) -> None:
        """Wait until it has loaded its function. Raises WorkerFailed: it could not."""
        try:
            async with asyncio.timeout(START):
                await self._frame()
        except TimeoutError:
            raise WorkerFailed("time", f"it did not start within {START:g} s") from None

    async def put(self, request: object) -> None:
        """Send a request, or bytes that follow one, and wait until there is room for more.

        Where the process has ended, :meth:`part` says why.
        """
        self._write(request if isinstance(request, bytes) else msgspec.msgpack.encode(request))
        with contextlib.suppress(ConnectionError):
            await self._input.drain()

    def close_input(self) -> None:
        self._input.close()

    async def part(self) -> bytes | None:
        """The next part of the answer to the last request; None at its end. Raises WorkerFailed: there is none."""
        frame = await self._frame()
        while frame[:1] == READY:
            frame = await self._frame()
        return None if frame[:1] == END else frame[1:]

    async def answer(self) -> bytes:
        """The answer to the last request, whole; empty where it has none. Raises WorkerFailed: there is none."""
        parts = []
        while (part := await self.part()) is not None:
            parts.append(part)
        return b"".join(parts)

    @property
    def is_suspended(self) -> bool:
        """A signal has stopped its process."""
        return self._process.returncode is None and processes.is_suspended(self._process.pid)

    async def _frame(self) -> bytes:
        try:
            length = int.from_bytes(await self._output.readexactly(4))
            if not 0 < length <= FRAME_LIMIT:
                raise WorkerFailed("crashed", f"its process sent a frame of {length} bytes")
            frame = await self._output.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise await self._why() from None
        if frame[:1] == FAILED:
            failure = _failures.decode(frame[1:])
            raise WorkerFailed(failure.reason, failure.text, failure.exit_code)
        if frame[:1] not in (READY, ANSWER, END):
            raise WorkerFailed("crashed", "its process sent no frame")
        return frame

    async def _why(self) -> WorkerFailed:
        try:
            async with asyncio.timeout(_LAST_WORDS):
                status = await self._process.wait()
        except TimeoutError:
            return WorkerFailed("crashed", "its process broke off")
        if status in (-signal.SIGXCPU, -signal.SIGALRM):
            return WorkerFailed("time", "it took more time than it may")
        if status in _OUT_OF_MEMORY:
            return WorkerFailed("memory", "it needs more memory than it may use")
        return WorkerFailed("crashed", f"its process ended with {status}")

    def _write(self, data: bytes) -> None:
        self._input.writelines((len(data).to_bytes(4), data))

    def kill(self) -> None:
        """End it, whatever it does. Safe to call at any time."""
        processes.kill(self._process)

    async def end(self) -> None:
        self.kill()
        await self._process.wait()


@contextlib.asynccontextmanager
async def working(use: Use) -> AsyncIterator[Worker]:
    """A worker for as long as the block runs. Raises as :meth:`Worker.start`."""
    worker = await Worker.start(use)
    try:
        yield worker
    finally:
        await worker.end()


async def answered(use: Use, request: object, seconds: float | None = None) -> bytes:
    """The answer of a process of its own to one request.

    Args:
        use: the work.
        request: of the type that its function takes.
        seconds: after these it is killed; None to wait for it.

    Raises:
        WorkerFailed: there is none, or not in time.
        OSError: the system starts no process.
    """
    try:
        async with asyncio.timeout(seconds), working(use) as worker:
            await worker.put(request)
            return await worker.answer()
    except TimeoutError:
        raise WorkerFailed("time", f"there was no answer within {seconds:g} seconds") from None


async def answered_here(use: Use, request: object) -> object:
    """The answer of the function of a use to one request, made in a thread of this process.

    It is for work that costs less than the start of a process. The function is given no caller, so it sends no parts; the limits of
    the use are not held, and nothing ends it. Raises WorkerFailed: there is no answer.
    """

    def answer() -> object:
        try:
            return function_of(use)(request, None)
        except Exception as error:
            failure = failure_by(error)
            raise WorkerFailed(failure.reason, failure.text, failure.exit_code) from error

    return await asyncio.to_thread(answer)
