"""Parser processes for pages that may hang, crash or eat memory, and for processors that are not trusted (faults 54, 55, 111).

Place in the flow: the process stage hands a document here instead of reading it itself. A few parser processes are started
when first needed; one that is late, dies or talks nonsense is killed, and the next document gets a new one.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from gossamer.documents.text import TextChoice
from gossamer.engine import processes
from gossamer.engine.ends import declared
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import Processor
from gossamer.parsing.parser import MAX_FRAME, ParseReply, ParseRequest, ProcessorSpec, Setup
from gossamer.parsing.reading import Findings
from gossamer.values.body import Body, StoredBody, pieces
from gossamer.values.visit import Response, Visit

#: Seconds that starting a process, and making a processor in it, may take each: imports on a loaded machine.
_START = 30.0


class ParserFailed(Exception):
    """A document that did not come back; the message is a word for `trouble`: `parse_timeout`, `parse_crashed`."""


def spec_of(processor: Processor) -> ProcessorSpec | None:
    """How another process makes the same processor; None where it cannot: no class of a module, or it uses providers."""
    kind = type(processor)
    if not isinstance(processor, Provider) or kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
        return None
    uses = declared(kind)
    if uses.uses or uses.uses_many:
        return None
    return ProcessorSpec(kind.__module__, kind.__qualname__, msgspec.to_builtins(processor.sheet))


def slim(visit: Visit) -> Visit:
    """The part of a visit that a processor may see: its task, and the answer without content coding. A document on disk is left
    out: it follows in pieces."""
    answer = visit.response
    body = b"" if type(answer.document) is StoredBody else answer.document
    return Visit(
        visit.task,
        Response(answer.outcome, answer.status, headers=answer.headers, body=body, session=answer.session),
        mime=visit.mime,
    )


class Parsers:
    """At most `most` parser processes, shared by all documents."""

    def __init__(self, most: int, deadline: float, memory: int) -> None:
        self.deadline = deadline
        self._memory = memory
        self._places = asyncio.Semaphore(most)
        self._idle: deque[_Parser] = deque()
        self._encoder = msgspec.msgpack.Encoder()
        self.started = 0
        self.killed = 0

    async def read(
        self,
        visit: Visit,
        processors: Iterable[ProcessorSpec],
        agent: str,
        details: Any,
        *,
        language: bool,
        trouble: str,
        choice: TextChoice,
        deadline: float = 0.0,
    ) -> Findings:
        """The findings of processors in a document; `deadline` stands in the place of the usual one where it is not 0.

        Raises:
            ParserFailed: it was not read in time, or its process died.
        """
        deadline = deadline or self.deadline
        request = ParseRequest(slim(visit), tuple(processors), agent, details, language, choice, trouble, deadline)
        document = visit.response.document
        if isinstance(document, StoredBody):
            request = msgspec.structs.replace(request, stored=len(document), spool=document.file.directory)
        frame = self._encoder.encode(request)
        async with self._places:
            try:
                parser = self._idle.pop() if self._idle else await self._start()
                reply = await self._ask(parser, frame, document, deadline)
            except TimeoutError as error:
                raise ParserFailed("parse_timeout") from error
            except (OSError, EOFError, msgspec.DecodeError) as error:
                raise ParserFailed("parse_crashed") from error
            if reply.is_last:
                await parser.kill()
            else:
                self._idle.append(parser)
            return reply.findings

    async def _ask(self, parser: "_Parser", frame: bytes, document: Body, deadline: float) -> ParseReply:
        """The findings of a process in a document; it is killed unless it answers, also when no caller waits any more.

        The deadline counts from when all of the document and its processors are there, and for each piece on the way.
        """
        try:
            parser.write(frame)
            if isinstance(document, StoredBody):
                for piece in pieces(document):
                    async with asyncio.timeout(deadline):
                        await parser.hand_over(piece)
            async with asyncio.timeout(_START):
                await parser.read()  # it has its processors
            async with asyncio.timeout(deadline):
                return msgspec.msgpack.decode(await parser.read(), type=ParseReply)
        except BaseException:
            await self._kill(parser)
            raise

    async def _kill(self, parser: "_Parser") -> None:
        self.killed += 1
        await parser.kill()

    async def _start(self) -> "_Parser":
        process = await processes.begun("gossamer.parsing.parser", stderr=None, own=True)
        self.started += 1
        parser = _Parser(process)
        try:
            async with asyncio.timeout(_START):
                parser.write(self._encoder.encode(Setup(self._memory)))
                await parser.read()
        except BaseException:
            await self._kill(parser)
            raise
        return parser

    async def close(self) -> None:
        """End all processes that wait for work."""
        while self._idle:
            await self._idle.pop().kill()


class _Parser:
    """One process, as its parent sees it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def write(self, frame: bytes) -> None:
        """Put a frame into the pipe. One document is under way at a time, so the pipe holds no more than that."""
        assert self._process.stdin is not None
        self._process.stdin.writelines((len(frame).to_bytes(4), frame))

    async def hand_over(self, piece: bytes) -> None:
        """Put a piece of a document into the pipe, and wait until there is room for more."""
        assert self._process.stdin is not None
        self._process.stdin.write(piece)
        await self._process.stdin.drain()

    async def read(self) -> bytes:
        """The next frame.

        Raises:
            EOFError: the process has gone, or what it says is no frame.
        """
        assert self._process.stdout is not None
        length = int.from_bytes(await self._process.stdout.readexactly(4))
        if length > MAX_FRAME:
            raise EOFError(f"a frame of {length} bytes")
        return await self._process.stdout.readexactly(length)

    async def kill(self) -> None:
        """End it, whatever it does, and wait for its end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
