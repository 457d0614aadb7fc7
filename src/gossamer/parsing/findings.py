"""Reading one document: its processors, one after the other, what is known of a page apart from them, and where its answer
leads.

Place in the flow: the process stage (:mod:`~gossamer.parsing.process_stage`) calls :func:`read` in its own process. For a page that
may cost too much, :mod:`gossamer.parsing.isolation` has workers (:mod:`gossamer.engine.workers`) call :func:`parse`, and kills
a late one; so the result is one plain value that crosses a pipe. A worker trusts its parent, which names the classes that it
runs, and no document. The targets of redirects, `Refresh` and `Link` fields are links of their own kinds, which every later
stage judges like any other; so does :mod:`gossamer.mobile.judging`.
"""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.language import primary
from gossamer.documents.terms import seems_empty
from gossamer.documents.text import TextChoice
from gossamer.engine import processes
from gossamer.engine.unit import Provider
from gossamer.engine.worker import FRAME_LIMIT, Caller
from gossamer.parsing.contract import (
    MAX_FOUND,
    MAX_ITEMS,
    MAX_ORDERS,
    MAX_YIELDED,
    TOO_MANY_FINDINGS,
    Processor,
)
from gossamer.parsing.html import FoundLinks, HtmlLinksSheet, found_in_fields, refresh_target
from gossamer.values.body import BodyWriter
from gossamer.values.errors import ParseSkipped, ReadApart, UnreadableUrl
from gossamer.values.items import as_item, raised
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.request_identity import Requested, redirected, requested
from gossamer.values.task import redirect_of
from gossamer.values.url import canonical, of_field, site_of
from gossamer.values.visit import (
    TOO_MANY_LINKS,
    Block,
    Delay,
    Found,
    Item,
    Order,
    Raised,
    Response,
    Statements,
    Triple,
    Visit,
)

#: How much is made of a page: `plain` title, base, charset, directives, canonical URL and the language that it says it is
#: in; `full` also the language that it is in, and its fingerprint, which need its text.
Details = Literal["plain", "full"]

_ARE_LINKS = frozenset((Found,))

#: Characters of an error's text that are kept.
_MAX_TROUBLE = 200


class Findings(msgspec.Struct, frozen=True):
    """The findings in one document."""

    found: tuple[Found, ...] = ()
    items: tuple[Item, ...] = ()
    triples: tuple[Triple, ...] = ()
    orders: tuple[Order, ...] = ()
    title: str = ""
    base: str = ""
    charset: str = ""
    canonical: str = ""
    directives: tuple[str, ...] = ()
    language: str = ""
    simhash: int = 0
    needs_browser: bool = False
    frequency: str = ""
    trouble: str = ""
    errors: tuple[Raised, ...] = ()
    """Exceptions of a user's code."""
    again: float | None = None
    """Seconds after which a handler wants the page once more."""
    is_out: bool = False
    """It wants it once more since the session was logged out."""
    is_retired: bool = False
    """It gives up the session that asked for the page."""
    counts: dict[str, int] = {}
    """Errors and omissions, as counters: `raised:ValueError`, `rdf:too_many_triples`."""
    rejected: dict[str, int] = {}
    """How many links each limit of reading left out."""


class _Gathered(msgspec.Struct, eq=False):
    """Everything that the processors of one document have yielded so far."""

    _document: Document
    _apart: list[Processor]
    _found: FoundLinks = msgspec.field(default_factory=FoundLinks)
    _yielded: int = 0
    _items: list[Item] = []
    _triples: list[Triple] = []
    _orders: list[Order] = []
    _counts: dict[str, int] = {}
    _errors: list[Raised] = []
    _again: float | None = None
    _is_out: bool = False
    _is_retired: bool = False
    _trouble: str = ""

    def ask(self, processor: Processor) -> None:
        """Take what a processor yields. One that raises costs its own findings on this page, and nothing else."""
        try:
            made = processor.process(self._document)
            if type(made) is list and _ARE_LINKS.issuperset(map(type, made)):
                self._found.links += cast("list[Found]", made)
                self._found.bound()
                return
            for thing in made:
                self._take(thing)
                if self._is_full:
                    self._count("cut")
                    self._document.missed = self._document.missed or TOO_MANY_FINDINGS
                    break
        except Exception as error:
            self._fail(processor, error)

    def _fail(self, processor: Processor, error: Exception) -> None:
        from gossamer.values.request import LoggedOut, Retry  # pages of a spider alone have them

        if isinstance(error, Retry):
            self._again, self._is_out = error.after, isinstance(error, LoggedOut)
            return
        if isinstance(error, ReadApart):
            self._apart.append(processor)
            return
        self._count(f"raised:{type(error).__name__}")
        told = f"{type(error).__name__}: {error}"[:_MAX_TROUBLE]
        if isinstance(error, ParseSkipped):  # the page's fault, and told as its trouble
            self._trouble = self._trouble or self._document.missed or told
        else:
            self._trouble = told
            self._errors.append(raised(_named(processor), error, str(getattr(processor, "place", ""))))

    def _take(self, thing: object) -> None:
        if type(thing) is Found:
            self._found.links.append(thing)
            self._found.bound()
            self._yielded += 1
        elif type(thing) is Statements:
            self._triples += thing.triples
            for kind, count in thing.counts.items():
                self._count(f"rdf:{kind}", count)
        elif isinstance(thing, (Block, Delay)):
            self._orders.append(thing)
        else:
            from gossamer.values.request import PageSession  # as above

            if isinstance(thing, PageSession):
                self._is_retired = True
            else:
                self._items.append(as_item(thing, self._document.url))

    @property
    def _is_full(self) -> bool:
        return self._yielded >= MAX_YIELDED or len(self._items) >= MAX_ITEMS or len(self._orders) >= MAX_ORDERS

    def _count(self, name: str, number: int = 1) -> None:
        self._counts[name] = self._counts.get(name, 0) + number

    def findings(self) -> Findings:
        self._found.bound(MAX_FOUND)
        if self._found.left_out:
            self._document.leave_out(TOO_MANY_LINKS, self._found.left_out)
        return Findings(
            tuple(self._found.links),
            tuple(self._items),
            tuple(self._triples),
            tuple(self._orders),
            trouble=self._trouble,
            errors=tuple(self._errors),
            again=self._again,
            is_out=self._is_out,
            is_retired=self._is_retired,
            counts=self._counts,
            rejected=self._document.left_out,
        )


def read(
    document: Document,
    processors: Iterable[Processor],
    details: Details,
    *,
    language: bool = False,
    apart: list[Processor] | None = None,
) -> Findings:
    """Everything that processors and the page itself say.

    Args:
        document: the page.
        processors: asked one after the other.
        details: what is found of the page itself.
        language: also find the language of its text.
        apart: takes processors that may not read this page here. Without, their part is left out and counted.
    """
    left_out: list[Processor] = [] if apart is None else apart
    gathered = _Gathered(document, left_out)
    for processor in processors:
        gathered.ask(processor)
    findings = gathered.findings()
    if apart is None and left_out:
        findings = without(findings, left_out)
    if document.mime not in HTML_TYPES:
        trouble = findings.trouble or document.missed
        return msgspec.structs.replace(
            findings,
            base=document.url,
            canonical=document.canonical,
            directives=document.field_directives,
            trouble=trouble,
        )
    full, said = details == "full", document.declared_language
    is_empty = seems_empty(document.skim, findings.found)
    return msgspec.structs.replace(
        findings,
        title=document.title,
        base=document.base,
        charset=document.charset,
        canonical=document.canonical,
        directives=document.directives,
        language=document.language if full or language else said and primary(said),
        simhash=document.fingerprint if full and not is_empty else 0,
        needs_browser=is_empty and not document.is_rendered,
        frequency=document.frequency,
        trouble=findings.trouble or document.missed,
    )


def without(findings: Findings, processors: Sequence[Processor]) -> Findings:
    """The findings of a page that some of its processors could not read, which is counted and told as its trouble."""
    counts = {**findings.counts, "read_skipped": findings.counts.get("read_skipped", 0) + len(processors)}
    return msgspec.structs.replace(findings, counts=counts, trouble=findings.trouble or "parse_skipped")


def filled(visit: Visit, findings: Findings, before: Sequence[Found] = ()) -> Visit:
    """The visit with what was found; `before` are links that came before the document's own."""
    facts = msgspec.structs.asdict(findings)
    del facts["is_out"], facts["is_retired"], facts["counts"]
    if visit.rejected:
        facts["rejected"] = _added(visit.rejected, findings.rejected)
    if before:
        facts["found"] = (*before, *findings.found)
    return msgspec.structs.replace(visit, **facts)


def joined(one: Findings, more: Findings) -> Findings:
    """Both, with the page's own properties of the first."""
    return msgspec.structs.replace(
        one,
        found=(*one.found, *more.found),
        items=(*one.items, *more.items),
        triples=(*one.triples, *more.triples),
        orders=(*one.orders, *more.orders),
        trouble=one.trouble or more.trouble,
        errors=(*one.errors, *more.errors),
        again=one.again if more.again is None else more.again,
        counts=_added(one.counts, more.counts),
        rejected=_added(one.rejected, more.rejected),
    )


def _added(one: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + more.get(name, 0) for name in (*one, *(more.keys() - one.keys()))}


def _named(processor: Processor) -> str:
    """A processor as a person knows it: by its name in the wiring, or its class."""
    return str(getattr(processor, "name", "") or type(processor).__name__)


# Where answers lead apart from their documents.


def refresh_of(response: Response) -> tuple[Found, ...]:
    """The target of a `Refresh` field: a link like any other, never obeyed in place (fault 33)."""
    field = response.header("refresh")
    target = refresh_target(of_field(field)) if field else None
    return (Found(target, "header refresh"),) if target else ()


def before(document: Document) -> tuple[Found, ...]:
    """The links that came with a document, before its own. Those in `Link` fields of a page are among its own."""
    refresh = refresh_of(document.response)
    if document.mime in HTML_TYPES or not document.field_links:
        return refresh
    return (*refresh, *found_in_fields(document.field_links, HtmlLinksSheet()))


def with_target(visit: Visit) -> Visit:
    """The target of a redirect as the one link of the visit; a redirect without one is only its status."""
    task = visit.task
    target = of_field(visit.response.header("location"))
    if not target or (task.request is not None and task.request.redirects == "keep"):
        return visit
    request = task.request
    if session := visit.response.session:  # the session that was redirected asks for the target
        request = msgspec.structs.replace(request or requested(), session=session)
    if request is not None:
        request = _led_on(request, visit.url, visit.response.status, target)
    if visit.response.way is not None:
        request = msgspec.structs.replace(request or requested(), way=visit.response.way)
    found = (Found(target, redirect_of(task.found_by), request=request),)
    return msgspec.structs.replace(visit, base=visit.url, found=found)


def disowned(visit: Visit) -> Visit:
    """The visit of a page that says `nofollow` of itself: none of its links is to be followed."""
    found = tuple(Found(one.href, one.relation, one.anchor, True, one.request) for one in visit.found)
    return msgspec.structs.replace(visit, found=found)


def _led_on(request: Requested, url: str, status: int, target: str) -> Requested:
    try:
        is_same_site = site_of(canonical(target, url)) == site_of(url)
    except UnreadableUrl:
        is_same_site = False  # the links stage will say that it is no URL
    return redirected(request, status, is_same_site=is_same_site)


#: Bytes of memory from which on a process reads no further document: memory of a large tree is not given back, and most documents
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
    is_last = processes.resident() > GROWN and all(getattr(one, "divisible", False) for one in _made.values())
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
