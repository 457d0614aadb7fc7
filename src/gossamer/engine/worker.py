"""The program of every process that does work for another one: requests come in, answers go out, and limits hold meanwhile.

Place in the flow: :mod:`gossamer.engine.workers` starts it. A *use* of it is a function and the type of its requests: the function
is named by its module, takes a request and the :class:`Caller`, and returns its answer, or None where it has sent all itself. The
parent is trusted, since it names the function; nothing else is, so typed data crosses and no pickle (fault 113).

Standard input and output carry frames: a length in four bytes, then that many bytes. Each frame of the worker begins with one byte
that says what it is. The worker ends when the parent closes its input, which the death of the parent does as well. Nothing here
imports an event loop: it takes 30 ms, and few uses need one.
"""

import contextlib
import gc
import importlib
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, Literal

import msgspec

#: Bytes of the longest frame either way: a document in memory with its head, or everything that was found in one.
FRAME_LIMIT = 64 << 20

#: The kinds of a worker's frames: it has loaded its function; an answer, or a part of one; the end of the answers to a request; a
#: :class:`Failure`, after which the worker ends.
READY, ANSWER, END, FAILED = b"r", b"a", b"e", b"f"

#: New containers until the collector looks for cycles: more than there are when all is imported. Rows and documents hold no cycles,
#: and memory is bounded.
_COLLECT_AFTER = 100_000

#: Characters of the line that says why there is no answer.
_LONGEST_COMPLAINT = 1_000

#: Seconds that a worker gets beyond its deadline: its parent ends it before, unless the parent is gone.
_GRACE = 2.0


class Use(msgspec.Struct, frozen=True, array_like=True):
    """One kind of work, and what a process may take for it. 0 stands for no limit."""

    function: str
    """Its module and name, as `gossamer.query.convert:make_tables`. Its first parameter has the type of the requests."""
    niceness: int = 0
    """Steps by which it gives way to crawls."""
    memory: int = 0
    """Bytes of data."""
    address_space: int = 0
    """Bytes of address space, which counts what libraries map and never touch."""
    seconds: int = 0
    """Processor time, of all requests together."""


Reason = Literal["refused", "memory", "time", "crashed"]
"""`refused`: the request cannot be answered, and the text is for a person."""


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """Why there is no answer, in one line."""

    reason: Reason
    text: str
    exit_code: int = 1
    """Of the error, where it was `refused`."""


class PeerGone(EOFError):
    """The other end of the pipe is closed: there is nothing more to do."""


class Frames:
    """Both directions of a pipe, for code that may block."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO, longest: int = FRAME_LIMIT) -> None:
        """`longest` is the limit for frames that are read."""
        self._reader = reader
        self._writer = writer
        self._longest = longest

    def put(self, *parts: bytes) -> None:
        """Write a frame. Raises PeerGone: nothing reads it any more."""
        try:
            self._writer.write(sum(map(len, parts)).to_bytes(4) + b"".join(parts))
            self._writer.flush()
        except OSError as error:
            raise PeerGone("the other end is gone") from error

    def take(self) -> bytes:
        """The next frame.

        Raises:
            PeerGone: there is none, or it is cut.
            ValueError: it is longer than it may be.
        """
        head = self._reader.read(4)
        length = int.from_bytes(head)
        if len(head) == 4 and length > self._longest:
            raise ValueError(f"a message of {length} bytes")
        data = self._reader.read(length) if len(head) == 4 else b""
        if len(head) < 4 or len(data) < length:
            raise PeerGone("the other end is gone")
        return data


class Caller:
    """The process that asks, as the function of a use sees it."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames

    def send(self, answer: object) -> None:
        """Send an answer, or a part of one: bytes go as they are, anything else as MessagePack.

        Raises:
            PeerGone: the parent has ended, or wants no more.
            ValueError: it is longer than a frame may be.
        """
        data = answer if isinstance(answer, bytes) else msgspec.msgpack.encode(answer)
        if len(data) >= FRAME_LIMIT:
            raise ValueError(f"an answer of {len(data)} bytes is longer than a worker may send")
        self._frames.put(ANSWER, data)

    def take(self) -> bytes:
        """Bytes that follow the request. Raises PeerGone: there are none."""
        return self._frames.take()

    def has_closed(self, patience: float) -> bool:
        """Whether the parent says within so many seconds that everything is done, or ends. No bytes may follow the request."""
        return bool(select.select([0], [], [], patience)[0])

    def limit_time(self, seconds: float) -> None:
        """End this process soon after so many seconds of this request, whatever it does then: the parent that would kill it may be
        gone, and a loop never looks."""
        signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)


def main() -> int:
    frames = Frames(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # nothing that is printed gets between the frames
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process by the pipe
    gc.set_threshold(_COLLECT_AFTER, 20, 20)
    with contextlib.suppress(PeerGone):
        use = msgspec.msgpack.decode(frames.take(), type=Use)
        os.nice(use.niceness)
        if failure := _served(use, frames):
            frames.put(FAILED, msgspec.msgpack.encode(failure))
            return 1
    return 0


def _served(use: Use, frames: Frames) -> Failure | None:
    """Answer requests until one fails. Raises PeerGone."""
    try:
        function = function_of(use)
        # As far as the system can see to it; macOS cannot limit memory, so there the deadlines have to do.
        limits = (
            (resource.RLIMIT_DATA, use.memory),
            (resource.RLIMIT_AS, use.address_space),
            (resource.RLIMIT_CPU, use.seconds),
        )
        for what, most in limits:
            if most:
                _, hard = resource.getrlimit(what)
                with contextlib.suppress(OSError, ValueError):
                    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        frames.put(READY)
        requests = msgspec.msgpack.Decoder(next(iter(function.__annotations__.values())))
        caller = Caller(frames)
        while True:
            answer = function(requests.decode(frames.take()), caller)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if answer is not None:
                caller.send(answer)
            frames.put(END)
    except PeerGone:
        raise
    except Exception as error:
        failure = failure_by(error)
        if failure.reason == "crashed":
            traceback.print_exc()
        return failure


def failure_by(error: Exception) -> Failure:
    """The failure of a request that an error of the function stands for."""
    if isinstance(error, MemoryError):
        return Failure("memory", "it needs more memory than it may use")
    text = " ".join(str(error).split())
    if (exit_code := getattr(error, "exit_code", None)) is not None:
        return Failure("refused", text[:_LONGEST_COMPLAINT], exit_code)
    return Failure("crashed", f"{type(error).__name__}: {text}"[:_LONGEST_COMPLAINT])


def function_of(use: Use) -> Callable[[Any, Any], object]:
    """The function of a use. Loads its module."""
    module, _, name = use.function.partition(":")
    found: Callable[[Any, Any], object] = getattr(importlib.import_module(module), name)
    return found


if __name__ == "__main__":
    sys.modules["gossamer.engine.worker"] = sys.modules["__main__"]  # functions import this one, and not a second
    status = main()
    # Leave at once: everything has been sent, and threads of libraries must not have a say in how long the end takes.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
