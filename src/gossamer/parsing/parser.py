"""The reading of documents in a parser process: those that could stop its parent, one at a time.

Place in the flow: :mod:`gossamer.parsing.isolation` has workers (:mod:`gossamer.engine.workers`) call :func:`parse`, and kills a
late one. A worker trusts its parent, which names the classes that it runs, and no document.
"""

import importlib
import os
from pathlib import Path
from typing import Any

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.text import TextChoice
from gossamer.engine.unit import Provider
from gossamer.engine.worker import FRAME_LIMIT, Caller
from gossamer.parsing.contract import TOO_MANY_FINDINGS
from gossamer.parsing.findings import Details, Findings, read
from gossamer.values.body import BodyWriter
from gossamer.values.visit import Visit

#: Bytes of memory from which on a process reads no further document: what a large tree took is not given back, and most documents
#: need a tenth of it.
GROWN = 160 << 20


class ProcessorSpec(msgspec.Struct, frozen=True, array_like=True):
    """A processor that can be made again in another process: a class with its settings, by name."""

    module: str
    name: str
    sheet: dict[str, Any]


class Reading(msgspec.Struct, frozen=True, array_like=True):
    """How documents are read, by the settings of the stage."""

    agent: str
    details: Details
    language: bool
    """The language of the text is found, whatever the details."""
    choice: TextChoice


class ParseRequest(msgspec.Struct, frozen=True, array_like=True):
    """One document to read."""

    visit: Visit
    processors: tuple[ProcessorSpec, ...]
    reading: Reading
    trouble: str
    """Trouble that is known: empty allows a tree however the page looks, anything else allows none."""
    deadline: float
    """Seconds."""
    stored: int = 0
    """Bytes of a document that is kept on disk: they follow the request."""
    spool: str = ""
    """Where they lie while they are read; empty: the system's own place."""


class ParseReply(msgspec.Struct, frozen=True, array_like=True):
    """The findings in one document."""

    findings: Findings
    is_last: bool = False
    """The process has grown, and ends now: no processor in it keeps state that would end with it."""


_made: dict[bytes, Provider[Any]] = {}
"""Processors of this process, by their specs: each may keep state while the process lives."""


def parse(request: ParseRequest, caller: Caller) -> bytes:
    """Send an empty part when document and processors are there, and then a :class:`ParseReply`."""
    visit = _with_document(request, caller) if request.stored else request.visit
    processors = [_processor(spec) for spec in request.processors]
    caller.send(b"")  # from now on the deadline counts
    caller.limit_time(request.deadline)
    how = request.reading
    document = Document(visit, how.agent, trouble=request.trouble, choice=how.choice)
    findings = read(document, processors, how.details, language=how.language)
    if "raised:MemoryError" in findings.counts:
        raise MemoryError  # half of what the page says would pass for all of it
    is_last = _resident() > GROWN and all(getattr(one, "divisible", False) for one in _made.values())
    reply = msgspec.msgpack.encode(ParseReply(findings, is_last))
    if len(reply) < FRAME_LIMIT:
        return reply
    return msgspec.msgpack.encode(ParseReply(Findings(base=request.visit.url, trouble=TOO_MANY_FINDINGS), is_last))


def _with_document(request: ParseRequest, caller: Caller) -> Visit:
    """The visit with its document, which follows in pieces and goes to disk as it did in the parent: a processor reads all of
    it, however large, and memory holds a piece. Raises PeerGone: the parent has ended."""
    document = BodyWriter(0, request.spool)
    while document.size < request.stored:
        document.write(caller.take())
    response = msgspec.structs.replace(request.visit.response, body=document.take())
    return msgspec.structs.replace(request.visit, response=response)


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _processor(spec: ProcessorSpec) -> Any:
    """The processor of a spec, started, and made once."""
    key = msgspec.msgpack.encode(spec)
    if key not in _made:
        kind: Any = importlib.import_module(spec.module)
        for name in spec.name.split("."):
            kind = getattr(kind, name)
        provider: Provider[Any] = kind(msgspec.convert(spec.sheet, kind.sheet_type))
        if kind.start is not Provider.start:
            import asyncio  # 30 ms, and no processor that ships has anything to start

            asyncio.run(provider.start())
        _made[key] = provider
    return _made[key]
