"""A page as a program's own code sees it: the committed record, with the names that people expect."""

from functools import cached_property
from typing import TYPE_CHECKING

from gossamer.model.visit import Item, Link, Location, Record
from gossamer.reading.document import Document

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode


class Page:
    """One fetched and archived HTML document."""

    def __init__(self, record: Record) -> None:
        self.record = record
        visit = record.visit
        self.url: str = visit.url
        self.status: int = visit.response.status
        self.title: str = visit.title
        self.mime: str = visit.media_type
        self.depth: int = visit.task.depth
        self.source: str = visit.task.source
        self.content: bytes = visit.response.content
        self.links: tuple[Link, ...] = visit.links
        self.items: tuple[Item, ...] = visit.items
        self.duplicate_of: str = visit.duplicate_of
        self.location: Location | None = record.location

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url} {self.title!r}>"

    @cached_property
    def document(self) -> Document:
        """The page with its tree, parsed on first use."""
        return Document(self.record.visit)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Header fields of the answer in order, names in lower case."""
        return self.record.visit.response.headers

    def css(self, selector: str) -> "list[LexborNode]":
        """Nodes that match a CSS selector."""
        return self.document.css(selector)
