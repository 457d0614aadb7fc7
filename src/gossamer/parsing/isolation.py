"""Parser processes for pages that may hang, crash or eat memory, and for processors that are not trusted (faults 54, 55, 111).

Place in the flow: the process stage hands a document here instead of reading it itself. A few parser processes are started
when first needed; one that is late, dies or talks nonsense is killed, and the next document gets a new one.

The stage also marks the page that it reads in place: :class:`ReadingMarks` outlive the process, so that no page can end two.
"""

import asyncio
import fcntl
import mmap
import os
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec

from gossamer.engine.ends import declared
from gossamer.engine.unit import Provider
from gossamer.engine.worker import Use
from gossamer.engine.workers import START, Worker, WorkerFailed
from gossamer.parsing.contract import Processor
from gossamer.parsing.findings import Findings, ParseReply, ParseRequest, ProcessorSpec, Reading
from gossamer.values.body import Body, Rendered, StoredBody, pieces
from gossamer.values.visit import Response, Visit


@cache  # with the first page that is read apart
def _replies() -> msgspec.msgpack.Decoder[ParseReply]:
    return msgspec.msgpack.Decoder(ParseReply)


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
    """The part of a visit that a processor may see: its task, and the answer without content coding, or the page that a browser has
    made of it. A document on disk is left out: it follows in pieces."""
    answer, rendered = visit.response, visit.rendered
    if rendered is not None and rendered.dom:
        shown, body = Rendered(rendered.how, rendered.dom), b""
    else:
        shown, body = None, b"" if type(answer.document) is StoredBody else answer.document
    return Visit(
        visit.task,
        Response(
            answer.outcome, answer.status, headers=answer.headers, body=body, cut=answer.cut, session=answer.session
        ),
        mime=visit.mime,
        rendered=shown,
    )


class Parsers:
    """At most `most` parser processes, shared by all documents."""

    def __init__(self, most: int, deadline: float, memory: int) -> None:
        self.deadline = deadline
        self._use = Use("gossamer.parsing.findings:parse", address_space=memory)
        self._places = asyncio.Semaphore(most)
        self._idle: deque[Worker] = deque()
        self.started = 0
        self.killed = 0

    async def read(
        self,
        visit: Visit,
        processors: Iterable[ProcessorSpec],
        reading: Reading,
        trouble: str = "",
        deadline: float = 0.0,
    ) -> Findings:
        """The findings of processors in a document; `deadline` stands in the place of the usual one where it is not 0. Raises
        ParserFailed: it was not read in time, or its process died."""
        request = ParseRequest(slim(visit), tuple(processors), reading, trouble, deadline or self.deadline)
        document = visit.shown
        if isinstance(document, StoredBody):
            request = msgspec.structs.replace(request, stored=len(document), spool=document.file.directory)
        async with self._places:
            try:
                parser = self._idle.pop() if self._idle else await self._start()
                reply = await self._ask(parser, request, document)
            except (WorkerFailed, TimeoutError) as error:
                is_late = isinstance(error, TimeoutError) or error.reason == "time"
                raise ParserFailed("parse_timeout" if is_late else "parse_crashed") from error
            except (OSError, ValueError) as error:
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
                return _replies().decode(await parser.answer())
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


# -- the mark of the page that is being read

#: Where the files lie in the crawl directory.
MARKS = "state/reading"

#: How often a page may end a process before it is not read any more.
MOST_STRIKES = 2

_DIGEST = 15
#: A digest, and how often; the first record of a file is the page that is being read.
_RECORD = _DIGEST + 1
_NOTHING = bytes(_DIGEST)
#: Bytes of a file: pages that ended a process are few, and the oldest are forgotten.
_SIZE = 4096


class ReadingMarks:
    """The marks of one process: a few bytes that outlive it.

    The process stage sets a mark before it reads a page in place, and takes it away afterwards. The reader of a page may end the
    process, or hold it up until a person ends it. The next process of the crawl finds the mark: it reads that page in a parser
    process, and after the second time not at all. Anything else that ends a process while a page is read costs that page nothing.

    A mark is a digest of the URL, so a page that is deleted leaves no URL here. Each process has a file of its own, locked as long
    as it lives, and takes over the files of those that are gone.
    """

    def __init__(self) -> None:
        """Nothing is noted before it is open."""
        self._strikes: dict[bytes, int] = {}
        self._path: Path | None = None
        self._descriptor = -1
        self._memory: mmap.mmap | None = None

    def open(self, directory: str) -> None:
        """Take over what earlier processes of a crawl noted, and begin a file. Without a directory, or where the system refuses
        it, nothing is noted."""
        if not directory:
            return
        with suppress(OSError):
            folder = Path(directory) / MARKS
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in _left(folder):
                self._take(content)
                path.unlink(missing_ok=True)
            self._descriptor, name = tempfile.mkstemp(dir=folder, prefix="")
            self._path = Path(name)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(self._descriptor, self._content(), 0)
            self._memory = mmap.mmap(self._descriptor, _SIZE)

    def begin(self, url: str) -> int:
        """Set the mark: this page is being read. Returns how often a process died of it."""
        if self._memory is None:
            return 0
        digest = blake2b(url.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()
        self._memory[:_DIGEST] = digest
        return self._strikes.get(digest, 0) if self._strikes else 0

    def end(self) -> None:
        if self._memory is not None:
            self._memory[:_DIGEST] = _NOTHING

    def close(self) -> None:
        """Leave the file to the next process, if it says anything."""
        if self._memory is None or self._path is None:
            return
        self._memory.close()
        self._memory = None
        os.close(self._descriptor)
        if not self._strikes:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._path.parent.rmdir()

    def _take(self, content: bytes) -> None:
        if (current := content[:_DIGEST]) != _NOTHING:
            self._strikes[current] = self._strikes.get(current, 0) + 1
        for at in range(_RECORD, len(content) - _DIGEST, _RECORD):
            digest, strikes = content[at : at + _DIGEST], content[at + _DIGEST]
            if strikes:
                self._strikes[digest] = min(MOST_STRIKES, self._strikes.get(digest, 0) + strikes)

    def _content(self) -> bytes:
        records = [digest + bytes((strikes,)) for digest, strikes in self._strikes.items()]
        return b"".join((_NOTHING, b"\0", *records[1 - _SIZE // _RECORD :])).ljust(_SIZE, b"\0")


def _left(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """The files of processes that are gone. Each is locked until the next is asked for, so that two processes that start at once
    do not take it both."""
    for path in sorted(folder.iterdir()):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path, os.read(descriptor, _SIZE)
            finally:
                os.close(descriptor)
