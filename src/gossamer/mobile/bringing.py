"""The parts of a relevant document that come home, by the rules of a program. Pure; every part is bounded.

Place in the flow: :mod:`gossamer.mobile.running` asks here for each relevant document, and puts the result into a batch.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.page import Page, folded
from gossamer.mobile.crawler import (
    MAX_DOCUMENT,
    MAX_SHORT,
    BringRules,
    BroughtElement,
    BroughtItem,
    BroughtLink,
    BroughtPage,
)
from gossamer.values.errors import ParseSkipped
from gossamer.values.outcome import Outcome
from gossamer.values.visit import HTML_TYPES, Record, Visit

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
    """A relevant document as it goes home.

    Args:
        visit: of the document, its links judged.
        document: the same, as it was read.
        rules: of the program.
        digest: of its bytes.
        is_known: home has the bytes.
        count: told the name of each part that a bound cut: `headers`, `elements`, `items`, `links`, `whole`.
    """
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
    """Facts that come home of every relevant document."""
    response, task = visit.response, visit.task
    size = len(response.document)
    return BroughtPage(
        url=visit.url,
        depth=task.depth,
        source=task.source,
        relation=task.relation[:MAX_SHORT],
        status=status_of(visit),
        headers=_fields(response.headers, count),
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
    """About as many bytes as the page takes in a batch: what is counted grows with the page, the rest is a few hundred."""
    size = 500 + len(page.url) + len(page.source) + len(page.title) + len(page.whole or b"") + _bytes(page.text or "")
    size += sum(len(name) + len(value) for name, value in page.headers)
    size += sum(20 + len(link.url) + _bytes(link.anchor) for link in page.links)
    size += sum(_element_size(element) for element in page.elements)
    return size + sum(_item_size(item) for item in page.items)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _fields(headers: tuple[tuple[str, str], ...], count: Count) -> tuple[tuple[str, str], ...]:
    kept = tuple(
        (name, value)
        for name, value in headers[:MAX_FIELDS]
        if len(name) <= MAX_FIELD_NAME and len(value) <= MAX_FIELD_VALUE
    )
    if len(kept) < len(headers):
        count("headers")
    return kept


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
    """The elements, and the trouble where the page has no tree."""
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
