"""Parser processes for pages that may hang, crash or eat memory, and for processors that are not trusted (faults 54, 55, 111).

Place in the flow: the process stage hands a document here instead of reading it itself. A few parser processes are started
when first needed; one that is late, dies or talks nonsense is killed, and the next document gets a new one.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from gossamer.documents.text import TextChoice
from gossamer.engine.ends import declared
from gossamer.engine.unit import Provider
from gossamer.engine.worker import Use
from gossamer.engine.workers import START, Worker, WorkerFailed
from gossamer.parsing.contract import Processor
from gossamer.parsing.findings import Findings
from gossamer.parsing.parser import ParseReply, ParseRequest, ProcessorSpec
from gossamer.values.body import Body, StoredBody, pieces
from gossamer.values.visit import Response, Visit

_replies = msgspec.msgpack.Decoder(ParseReply)


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
        self._use = Use("gossamer.parsing.parser:parse", address_space=memory)
        self._places = asyncio.Semaphore(most)
        self._idle: deque[Worker] = deque()
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
        async with self._places:
            try:
                parser = self._idle.pop() if self._idle else await self._start()
                reply = await self._ask(parser, request, document)
            except (WorkerFailed, TimeoutError) as error:
                is_late = isinstance(error, TimeoutError) or error.reason == "time"
                raise ParserFailed("parse_timeout" if is_late else "parse_crashed") from error
            except (OSError, msgspec.DecodeError) as error:
                raise ParserFailed("parse_crashed") from error
            if reply.is_last:
                await parser.end()
            else:
                self._idle.append(parser)
            return reply.findings

    async def _ask(self, parser: Worker, request: ParseRequest, document: Body) -> ParseReply:
        """The findings of a process in a document; it is killed unless it answers, also when no caller waits any more.

        The deadline counts from when all of the document and its processors are there, and for each piece on the way.
        """
        try:
            async with asyncio.timeout(START):
                await parser.put(request)
            if isinstance(document, StoredBody):
                for piece in pieces(document):
                    async with asyncio.timeout(request.deadline):
                        await parser.put(piece)
            async with asyncio.timeout(START):
                await parser.part()  # it has its processors
            async with asyncio.timeout(request.deadline):
                return _replies.decode(await parser.answer())
        except BaseException:
            await self._kill(parser)
            raise

    async def _kill(self, parser: Worker) -> None:
        self.killed += 1
        await parser.end()

    async def _start(self) -> Worker:
        parser = await Worker.start(self._use, stderr=None, own=True)
        self.started += 1
        try:
            await parser.ready()
        except BaseException:
            await self._kill(parser)
            raise
        return parser

    async def close(self) -> None:
        """End all processes that wait for work."""
        while self._idle:
            await self._idle.pop().end()
