"""Processors read documents. The MIME type chooses them, and a type may have several (row M4).
Suite: `gossamer.testing.check_processor`."""

from collections.abc import Iterable
from typing import Protocol

from gossamer.model.orders import Order
from gossamer.model.visit import Found, Item, Statements
from gossamer.reading.document import Document

#: Most links and items that are taken from one page: far more than are kept, and few enough for memory.
MAX_FOUND = 50_000
MAX_ITEMS = 10_000

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
