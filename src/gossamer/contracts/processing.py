"""Processors read documents. The MIME type chooses them, and a type may have several (row M4).
Suite: `gossamer.testing.check_processor`."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from gossamer.model.orders import Order
from gossamer.model.requesting import identity_of
from gossamer.model.visit import Found, Item, Statements
from gossamer.reading.document import Document

#: Most spellings of links and most items that are taken from one page: far more than are kept, and few enough for memory.
MAX_FOUND = 50_000
MAX_ITEMS = 10_000

#: Most links of one page that a processor is asked for. It ends what yields without end; no page of 16 MiB has more.
MAX_YIELDED = 3_000_000

#: The trouble of a page that yields more than is taken from one.
TOO_MANY_FINDINGS = "too_many_findings"

#: Most orders that are taken from one page. Only a hostile page makes a processor yield more.
MAX_ORDERS = 100


class Processor(Protocol):
    """Reads one document, and yields the links, items, triples and orders that it finds.

    Promises:
        1. It reads the document and nothing else. Every processor sees the document from byte 0.
        2. One instance sees all documents of its types, and may keep state across them. A class with `divisible = True` gives
           up that guarantee: other instances, in processes that can be killed, read documents that are large or could
           hang the crawl, and the tree of such a page is available only there.
        3. Its orders take effect with the commit of its document, in a wiring that accepts orders; other wirings only count them.
        4. It may raise an exception. The error is counted, and the page loses only this processor's findings. If it raises
           :class:`gossamer.model.request.Retry`, the page is fetched once more, and its findings of this time are dropped.
        5. A class with `finds_links = True` yields nothing but links. It is not called for pages whose handler chooses the
           links to follow.
    """

    def process(self, document: Document) -> Iterable[Found | Item | Statements | Order]:
        """Yield the links, items and triples of this document, and orders to the crawl.

        Orders are declared in :mod:`gossamer.model.orders`.
        """
        ...


class FoundLinks:
    """The links of one page as they are found, in bounded memory: of too many, each spelling once, up to :data:`MAX_FOUND`."""

    def __init__(self) -> None:
        self.links: list[Found] = []
        """In document order. Whoever adds to it calls :meth:`bound` now and then."""
        self.left_out = 0
        """How many were left out, each spelling once as far as that is known."""

    def __repr__(self) -> str:
        return f"<FoundLinks {len(self.links)}, {self.left_out} left out>"

    def take(self, found: Iterable[Found]) -> None:
        """Add these, which one tag or one style sheet can have a million of."""
        links = self.links
        for one in found:
            links.append(one)
            if len(links) > 2 * MAX_FOUND:
                self.bound()

    def bound(self, most: int = 2 * MAX_FOUND) -> None:
        """Keep the bound where there are more than `most`: with twice as many as are kept, the cost is linear."""
        if len(self.links) > most:
            once = _each_once(self.links)
            self.left_out += max(0, len(once) - MAX_FOUND)
            self.links[:] = once[:MAX_FOUND]


def _each_once(found: Iterable[Found]) -> list[Found]:
    """Those that differ in more than a fragment, each at its first place; one is `nofollow` only if each occurrence is."""
    kept: dict[str, Found] = {}
    for one in found:
        href, request = one.href, one.request
        cut = href.find("#")
        # The parser drops white space at the end, and keeps it before a fragment.
        spelling = href if cut < 0 or href[:cut][-1:].isspace() else href[:cut]
        identity = spelling if request is None else identity_of(spelling, request.mark)
        first = kept.setdefault(identity, one)
        if first.nofollow and not one.nofollow:
            kept[identity] = msgspec.structs.replace(first, nofollow=False)
    return list(kept.values())
