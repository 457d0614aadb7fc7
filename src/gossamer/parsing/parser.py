"""A parser process: it reads documents that could stop its parent, one at a time, and can be killed at any time.

Started by :mod:`gossamer.parsing.isolation`; it speaks frames (a length in four bytes, then msgpack) on its standard input and
output. It trusts its parent, which names the classes that it runs, and no document: its results are typed data again, and no
pickle crosses (fault 113).
"""

import contextlib
import gc
import importlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.text import TextChoice
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import TOO_MANY_FINDINGS
from gossamer.parsing.reading import Details, Findings, read
from gossamer.values.body import PIECE, BodyWriter
from gossamer.values.visit import Visit

#: New containers until the collector looks for cycles: documents hold none, and the parent bounds the memory.
COLLECT_AFTER = 50_000

#: Bytes of the longest frame either way: a document in memory with its head, or what was found in one.
MAX_FRAME = 64 << 20

#: Bytes of memory from which on a process reads no further document: what a large tree took is not given back, and most documents
#: need a tenth of it.
GROWN = 160 << 20

#: Seconds after the deadline when the process ends by itself: its parent may be gone, and a loop never looks.
_GRACE = 2.0


class ProcessorSpec(msgspec.Struct, frozen=True, array_like=True):
    """A processor that can be made again in another process: a class with its settings, by name."""

    module: str
    name: str
    sheet: dict[str, Any]


class ParseRequest(msgspec.Struct, frozen=True, array_like=True):
    """One document to read."""

    visit: Visit
    processors: tuple[ProcessorSpec, ...]
    agent: str
    details: Details
    language: bool
    choice: TextChoice
    trouble: str
    """Trouble that is known: empty allows a tree however the page looks, anything else allows none."""
    deadline: float
    """Seconds."""
    stored: int = 0
    """Bytes of a document that is kept on disk: they follow the frame."""
    spool: str = ""
    """Where they lie while they are read; empty: the system's own place."""


class ParseReply(msgspec.Struct, frozen=True, array_like=True):
    """The findings in one document."""

    findings: Findings
    is_last: bool = False
    """The process has grown, and ends now: no processor in it keeps state that would end with it."""


class Setup(msgspec.Struct, frozen=True, array_like=True):
    """The first frame: what a process needs before its first document."""

    memory: int
    """Bytes of address space; 0 for no limit."""


def main() -> int:
    """Serve until the parent closes the pipe."""
    frames_in, frames_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    gc.set_threshold(COLLECT_AFTER, 20, 20)
    os.dup2(2, 1)  # what a processor prints must not get between the frames
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process by the pipe
    setup = _next(frames_in, msgspec.msgpack.Decoder(Setup))
    if setup is None:
        return 0
    _limit(setup.memory)
    _send(frames_out, b"")  # ready for documents
    requests = msgspec.msgpack.Decoder(ParseRequest)
    made: dict[bytes, Provider[Any]] = {}
    while (request := _next(frames_in, requests)) is not None:
        visit = _with_document(request, frames_in) if request.stored else request.visit
        try:
            processors = [_processor(spec, made) for spec in request.processors]
            _send(frames_out, b"")  # from now on the deadline counts
            signal.setitimer(signal.ITIMER_REAL, request.deadline + _GRACE)
            document = Document(visit, request.agent, trouble=request.trouble, choice=request.choice)
            findings = read(document, processors, request.details, language=request.language)
            is_last = _resident() > GROWN and all(getattr(one, "divisible", False) for one in made.values())
            reply = msgspec.msgpack.encode(ParseReply(findings, is_last))
        except MemoryError:
            return 1
        if "raised:MemoryError" in findings.counts:
            return 1  # half of what the page says would pass for all of it
        signal.setitimer(signal.ITIMER_REAL, 0)
        if len(reply) > MAX_FRAME:
            reply = msgspec.msgpack.encode(
                ParseReply(Findings(base=request.visit.url, trouble=TOO_MANY_FINDINGS), is_last)
            )
        _send(frames_out, reply)
        if is_last:
            break
    return 0


def _send(frames: BinaryIO, frame: bytes) -> None:
    frames.write(len(frame).to_bytes(4) + frame)
    frames.flush()


def _next(frames: BinaryIO, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    """The next frame, None at the end."""
    head = frames.read(4)
    if len(head) < 4:
        return None
    length = int.from_bytes(head)
    frame = frames.read(length)
    return decoder.decode(frame) if len(frame) == length else None


def _with_document(request: ParseRequest, frames: BinaryIO) -> Visit:
    """The visit with its document, which follows in the pipe and goes to disk as it did in the parent: a processor reads all of
    it, however large, and memory holds a piece.

    Raises:
        EOFError: the parent has gone.
    """
    document = BodyWriter(0, request.spool)
    while document.size < request.stored:
        piece = frames.read(min(PIECE, request.stored - document.size))
        if not piece:
            raise EOFError
        document.write(piece)
    response = msgspec.structs.replace(request.visit.response, body=document.take())
    return msgspec.structs.replace(request.visit, response=response)


def _limit(memory: int) -> None:
    """Cap the address space, where the system can; where it cannot (macOS), the deadline has to do."""
    if memory:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _processor(spec: ProcessorSpec, made: dict[bytes, Provider[Any]]) -> Any:
    """The processor of a spec, started; made once, so that it may keep state while the process lives."""
    key = msgspec.msgpack.encode(spec)
    if key not in made:
        kind: Any = importlib.import_module(spec.module)
        for name in spec.name.split("."):
            kind = getattr(kind, name)
        provider: Provider[Any] = kind(msgspec.convert(spec.sheet, kind.sheet_type))
        if kind.start is not Provider.start:
            import asyncio  # 30 ms, and no processor that ships has anything to start

            asyncio.run(provider.start())
        made[key] = provider
    return made[key]


if __name__ == "__main__":
    sys.exit(main())
