"""Processing modules, chosen by MIME type, several for each (row M4). Suite: `gossamer.testing.check_processor`."""

from collections.abc import Iterable
from typing import Protocol

from gossamer.model.orders import Order
from gossamer.model.visit import Found, Item, Statements
from gossamer.reading.document import Document

#: Links and items of one page that are taken; far more than are kept, and few enough to hold.
MAX_FOUND = 50_000
MAX_ITEMS = 10_000

#: Orders of one page that are taken: a page that names more hosts has filled a processor's list by itself.
MAX_ORDERS = 100


class Processor(Protocol):
    """Reads one document and yields what it found.

    Promises:
        1. It reads the document and nothing else; every processor sees the document from byte 0.
        2. There is one instance of it, which sees all documents of its types and may keep state across them. A class that says
           `divisible = True` does without that: documents that are large or could hang the crawl are then read by further
           instances, in processes that can be killed, and the tree of such a page can be had there alone.
        3. What it orders takes effect with the commit of its document, in a wiring that takes orders; elsewhere it is counted.
        4. It may raise: that costs its own findings on this page, is counted, and nothing else. By
           :class:`gossamer.model.request.Retry` it asks for the page once more, and what it found does not count.
        5. A class that says `finds_links = True` yields nothing but links: it is not asked for pages whose handler decides what
           is followed.
    """

    def process(self, document: Document) -> Iterable[Found | Item | Statements | Order]:
        """Links and items of this document, what it states in triples, and what it asks of the crawl.

        Orders are declared in :mod:`gossamer.model.orders`.
        """
        ...
