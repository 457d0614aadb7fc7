"""Processing modules, chosen by MIME type, several for each (MISSION M4). Suite: `gossamer.testing.check_processor`."""

from collections.abc import Iterable
from typing import Protocol

from gossamer.model.document import Document
from gossamer.model.visit import Found, Item


class Processor(Protocol):
    """Reads one document and yields what it found.

    Promises:
        1. It reads the document and nothing else; every processor sees the document from byte 0.
        2. What it yields does not depend on other documents, unless it says that it keeps state.
        3. It may raise: that costs its own findings on this page, is counted, and nothing else.
    """

    def process(self, document: Document) -> Iterable[Found | Item]:
        """Links and items of this document."""
        ...
