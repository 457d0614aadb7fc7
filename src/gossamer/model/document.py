"""A page as processors see it: bytes, and a tree that is parsed once for all of them, on first use."""

from functools import cached_property

from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.model.visit import Response, Visit


class Document:
    """One visit's document. Lives inside the process stage only; what leaves it is findings."""

    __slots__ = ("__dict__", "visit")

    def __init__(self, visit: Visit) -> None:
        self.visit = visit

    def __repr__(self) -> str:
        return f"<Document {self.url} {self.mime} {len(self.content)} bytes>"

    @property
    def url(self) -> str:
        """The canonical URL that was fetched."""
        return self.visit.task.url

    @property
    def response(self) -> Response:
        """The answer, with status and header fields."""
        return self.visit.response

    @property
    def mime(self) -> str:
        """The media type that the server claims."""
        return self.visit.response.mime

    @property
    def content(self) -> bytes:
        """The bytes without content coding, from byte 0."""
        return self.visit.response.content

    @cached_property
    def tree(self) -> LexborHTMLParser:
        """The parsed HTML tree, shared by all processors of the page."""
        return LexborHTMLParser(self.content)

    @cached_property
    def title(self) -> str:
        """The text of the first `<title>`, with runs of white space folded."""
        node = self.tree.css_first("title")
        return " ".join(node.text().split()) if node is not None else ""

    def css(self, selector: str) -> list[LexborNode]:
        """Nodes that match a CSS selector."""
        return self.tree.css(selector)
