"""One document, read and judged as the stages of a crawl read and judge it, and the parts of it that come home.

Place in the flow: :mod:`gossamer.mobile.running` hands a response in and gets the visit back. The stages `process`, `links` and
`filter` of a stationary crawl and this module call the same functions, so that both come to the same links and the same verdicts
(decision 81). :func:`brought` then takes the parts of a relevant document by the rules of a program; every part is bounded.

Promise: nothing that a crawler says is imported. It may name processors that other packages offer and the owner of the runtime
allows; names come from the owner, and versions are compared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gossamer.documents.charset import media_type_of
from gossamer.documents.document import Document
from gossamer.documents.page import Page, folded
from gossamer.engine.sheet import nearest
from gossamer.engine.subjects import offered
from gossamer.expressions.compiling import OF_PAGES, Expression, keep_document
from gossamer.expressions.contract import Gate, UrlFilter, VisitGate, refusal
from gossamer.mobile.crawler import (
    MAX_DOCUMENT,
    MAX_SHORT,
    BringRules,
    BroughtElement,
    BroughtItem,
    BroughtLink,
    BroughtPage,
    MobileCrawler,
    NamedProcessor,
    compiled,
)
from gossamer.parsing.contract import Processor
from gossamer.parsing.feeds import FeedLinks, SitemapLinks
from gossamer.parsing.filters import NofollowFilter, judged
from gossamer.parsing.findings import before, disowned, filled, read, refresh_of, with_target
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.parsing.links import LinkResolver, LinksSheet
from gossamer.parsing.other_links import UriList
from gossamer.parsing.scope import NoiseFilter, SchemeFilter, ScopeFilter, ScopeSheet
from gossamer.values.errors import ParseSkipped, UsageError
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import DOCUMENTS, Outcome
from gossamer.values.task import Task
from gossamer.values.url import canonical
from gossamer.values.visit import Link, Record, Response, Visit

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class InstalledProcessor(msgspec.Struct, frozen=True):
    """A processor that is installed, and that the owner of a runtime allows crawlers."""

    types: tuple[str, ...]
    """Media types that it reads."""
    processor: Processor


class JudgedVisit(msgspec.Struct, frozen=True):
    """An answer, read and judged."""

    visit: Visit
    document: Document | None
    """Where the answer brought one."""
    outside: tuple[Link, ...] = ()
    """Links that lead out of scope, of a page whose links are followed."""
    is_expanded: bool = True
    """False where the page has links, and `expand` lets none be followed."""


Installed = Mapping[NamedProcessor, InstalledProcessor]


class PageJudge:
    """Reads documents and judges them by one crawler's program. Keeps no page.
    Raises CrawlerRefused: an expression cannot be read. Raises UsageError: a processor of the program is not installed."""

    def __init__(self, crawler: MobileCrawler, seeds: Sequence[str], installed: Installed) -> None:
        program = crawler.program
        gates: tuple[Gate, ...] = ("follow", "expand", "store")
        self._program = _ProgramFilter({gate: compiled(crawler, gate) for gate in gates})
        around = tuple(map(canonical, program.around)) or tuple(seeds)
        self._scope = _Noting(ScopeFilter(ScopeSheet(scope=program.scope, seeds=around)))
        self._filters: tuple[UrlFilter, ...] = (
            SchemeFilter(),
            self._scope,
            NoiseFilter(),
            self._program,
            NofollowFilter(),
        )
        self._links = LinkResolver(LinksSheet())
        # The text of links costs a microsecond each: few programs look at it.
        anchors = "links" in program.bring.parts or self._program.asks("follow", "anchor")
        self._asks_pages = any(self._program.asks(gate, fact) for gate in gates for fact in OF_PAGES)
        self._processors = _by_type(program.processors, installed, HtmlLinks(HtmlLinksSheet(anchors=anchors)))
        self.broken: Counter[str] = Counter()
        """Filters that raised, by name."""

    def judge(self, task: Task, response: Response) -> JudgedVisit:
        visit = Visit(task, response)
        document: Document | None = None
        if response.outcome is Outcome.REDIRECT:
            visit = with_target(visit)
        else:
            if response.outcome in DOCUMENTS and not response.barred:
                visit = msgspec.structs.replace(visit, mime=media_type_of(response, task.relation))
                document = Document(visit, holds_up=True)
                visit = filled(visit, read(document, self._processors.get(visit.mime, ()), "plain"), before(document))
                if self._asks_pages:
                    keep_document(visit, document)
                if visit.found and "nofollow" in visit.directives:
                    visit = disowned(visit)
            elif refresh := refresh_of(response):
                visit = msgspec.structs.replace(visit, base=visit.url, found=refresh)
        (visit,) = self._links.filter(visit)
        ruled = judged(visit, (self._program,), self._filters, lambda name: self.broken.update((name,)))
        outside = self._scope.noted()
        return JudgedVisit(ruled, document, outside or (), not visit.links or outside is not None)

    def irrelevance(self, visit: Visit) -> str:
        """The rule of `store` by which a document is not relevant; empty for one that is."""
        return refusal((self._program,), "store", visit)


class _Noting:
    """A filter that notes what it refuses. Contract: `expressions.contract.UrlFilter`."""

    def __init__(self, inner: UrlFilter) -> None:
        self._inner = inner
        self._outside: tuple[Link, ...] | None = None

    def noted(self) -> tuple[Link, ...] | None:
        """The refusals since the last call; None where it was asked about no page."""
        outside, self._outside = self._outside, None
        return outside

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        verdicts = self._inner.judge(links, source)
        self._outside = tuple(link for link, verdict in zip(links, verdicts, strict=True) if verdict)
        return verdicts


class _ProgramFilter:
    """The expressions of a program. Contracts: `expressions.contract.UrlFilter`, `expressions.contract.VisitFilter`."""

    def __init__(self, expressions: Mapping[Gate, Expression | None]) -> None:
        self._expressions = expressions

    def asks(self, gate: Gate, fact: str) -> bool:
        expression = self._expressions[gate]
        return expression is not None and fact in expression.facts

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        expression = self._expressions["follow"]
        return [""] * len(links) if expression is None else expression.judge_links(links, source)

    def judge_visit(self, gate: VisitGate, visit: Visit) -> str:
        expression = self._expressions[gate]
        return "" if expression is None else expression.judge(visit)


def _by_type(
    named: Sequence[NamedProcessor], installed: Installed, html: HtmlLinks
) -> Mapping[str, tuple[Processor, ...]]:
    """Media type -> its processors: those of the shipped wiring that find links on sites, then those of the program."""
    feeds, sitemaps = FeedLinks(), SitemapLinks()
    found: dict[str, tuple[Processor, ...]] = {
        "text/html": (html,),
        "application/xhtml+xml": (html,),
        "text/uri-list": (UriList(),),
        "application/rss+xml": (feeds,),
        "application/atom+xml": (feeds,),
        "application/feed+json": (feeds,),
        "application/xml": (feeds, sitemaps),
        "text/xml": (feeds, sitemaps),
        "text/plain": (sitemaps,),
        "application/gzip": (sitemaps,),
        "application/x-gzip": (sitemaps,),
    }
    for one in named:
        if one not in installed:
            known = ", ".join(sorted(f"{other.name} {other.version}" for other in installed))
            raise UsageError(
                f"processor {one.name!r} {one.version} is not installed here; installed: {known or 'none'}"
            )
        for media_type in installed[one].types:
            found[media_type] = (*found.get(media_type, ()), installed[one].processor)
    return found


# Processors that crawlers may name. A runtime looks for them once, before the first crawler.

#: The group of entry points. Each leads to a class with a method `process` (:class:`gossamer.parsing.contract.Processor`) and the
#: media types that it reads, in `types`; the version is that of its distribution.
GROUP = "gossamer.mobile_processors"


def allowed_processors(names: Sequence[str]) -> Installed:
    """The processors of these names, each made once.
    Raises UsageError: none of that name is installed, or it cannot be used; says what to do."""
    return processors_of(offered(GROUP), names) if names else {}


def processors_of(entries: "Iterable[EntryPoint]", names: Sequence[str]) -> Installed:
    """The same, out of these entry points. Raises UsageError: as :func:`allowed_processors`."""
    by_name = {entry.name: entry for entry in entries}
    found: dict[NamedProcessor, InstalledProcessor] = {}
    for name in names:
        if name not in by_name:
            raise UsageError(f"no processor {name!r} is installed{nearest(name, by_name)}")
        entry = by_name[name]
        try:
            made = entry.load()()
        except Exception as error:  # it is code of others, and may do anything
            raise UsageError(f"processor {name!r} cannot be made: {type(error).__name__}: {error}") from None
        types = getattr(made, "types", ())
        if not callable(getattr(made, "process", None)) or not types or isinstance(types, str):
            raise UsageError(
                f"processor {name!r} has to have a method `process` and media types in `types`: {entry.value}"
            )
        version = entry.dist.version if entry.dist is not None else "0"
        found[NamedProcessor(name, version)] = InstalledProcessor(tuple(types), made)
    return found


#: Bytes of a page's elements, and of its items: a selector such as `*` finds a page many times over.
MAX_PARTS_BYTES = 4 << 20
#: Elements, items and links of a page.
MAX_PARTS = 10_000
#: Header fields of an answer; characters of a name and of a value. Longer ones say nothing that a table holds.
MAX_FIELDS, MAX_FIELD_NAME, MAX_FIELD_VALUE = 200, 200, 16_384
_MAX_ANCHOR, _MAX_STATUS = 10_000, 999

Count = Callable[[str], None]
Part = TypeVar("Part")


def brought(
    visit: Visit, document: Document, rules: BringRules, digest: str, *, is_known: bool, count: Count
) -> BroughtPage:
    """A relevant document as it goes home. `visit` has its links judged, `document` is the same as it was read, with the `digest`
    of its bytes; `is_known` says that home has these. `count` is told the name of each part that a bound cut: `headers`,
    `elements`, `items`, `links`, `whole`."""
    parts = frozenset(rules.parts)
    content = document.content
    size = len(visit.response.document)
    if size > MAX_DOCUMENT and "whole" in parts:
        count("whole")
    page = headed(visit, digest, count)
    elements, trouble = _elements(visit, document, rules.elements, count)
    is_html = visit.media_type in HTML_TYPES
    return msgspec.structs.replace(
        page,
        is_known=is_known,
        whole=content if "whole" in parts and not is_known else None,
        text=document.text if "text" in parts and is_html else None,
        simhash=document.fingerprint if "fingerprint" in parts and is_html else 0,
        links=_links(visit, count) if "links" in parts else (),
        elements=elements,
        items=tuple(_bounded(_items(visit, count), _item_size, "items", count)) if "items" in parts else (),
        trouble=(visit.trouble or trouble)[:MAX_SHORT],
    )


def headed(visit: Visit, digest: str, count: Count) -> BroughtPage:
    response, task = visit.response, visit.task
    size = len(response.document)
    kept = tuple(
        (name, value)
        for name, value in response.headers[:MAX_FIELDS]
        if len(name) <= MAX_FIELD_NAME and len(value) <= MAX_FIELD_VALUE
    )
    if len(kept) < len(response.headers):
        count("headers")
    return BroughtPage(
        url=visit.url,
        depth=task.depth,
        source=task.source,
        relation=task.relation[:MAX_SHORT],
        status=status_of(visit),
        headers=kept,
        mime=visit.media_type[:MAX_SHORT],
        charset=visit.charset,
        language=visit.language[:MAX_SHORT],
        title=visit.title,
        truncated=response.outcome is Outcome.TRUNCATED or size > MAX_DOCUMENT,
        digest=digest,
        size=size,
    )


def status_of(visit: Visit) -> int:
    """The status code, within what the value holds."""
    return min(max(visit.response.status, 0), _MAX_STATUS)


def size_of(page: BroughtPage) -> int:
    """About as many bytes as the page takes in a batch: the counted part grows with the page, the rest is a few hundred."""
    size = 500 + len(page.url) + len(page.source) + len(page.title) + len(page.whole or b"") + _bytes(page.text or "")
    size += sum(len(name) + len(value) for name, value in page.headers)
    size += sum(20 + len(link.url) + _bytes(link.anchor) for link in page.links)
    size += sum(_element_size(element) for element in page.elements)
    return size + sum(_item_size(item) for item in page.items)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _links(visit: Visit, count: Count) -> tuple[BroughtLink, ...]:
    links = (*visit.links, *visit.refused)
    if len(links) > MAX_PARTS:
        count("links")
    return tuple(
        BroughtLink(link.url, link.relation[:MAX_SHORT], link.anchor[:_MAX_ANCHOR], link.nofollow)
        for link in links[:MAX_PARTS]
    )


def _elements(
    visit: Visit, document: Document, selectors: tuple[str, ...], count: Count
) -> tuple[tuple[BroughtElement, ...], str]:
    if not selectors or visit.media_type not in HTML_TYPES:
        return (), ""
    page = Page(Record(visit), document=document)
    try:
        found = (
            BroughtElement(selector, folded(node), node.html or "")
            for selector in selectors
            for node in page.css(selector)
        )
        return tuple(_bounded(found, _element_size, "elements", count)), ""
    except ParseSkipped:
        return (), document.missed


def _items(visit: Visit, count: Count) -> Iterator[BroughtItem]:
    for item in visit.items:
        try:
            value = msgspec.json.encode(item.value).decode()
        except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
            count("items")
            continue
        yield BroughtItem(item.kind[:MAX_SHORT], item.url, value)


def _item_size(item: BroughtItem) -> int:
    return 20 + len(item.url) + _bytes(item.value)


def _element_size(element: BroughtElement) -> int:
    return 20 + len(element.selector) + _bytes(element.text) + _bytes(element.markup)


def _bounded(parts: Iterable[Part], size: Callable[[Part], int], name: str, count: Count) -> Iterator[Part]:
    """The parts as long as all of them together are within the bounds."""
    left = MAX_PARTS_BYTES
    for place, part in enumerate(parts):
        left -= size(part)
        if left < 0 or place >= MAX_PARTS:
            count(name)
            return
        yield part
