"""A page as processors see it: bytes, and a tree that is parsed once for all of them, on first use."""

from functools import cached_property
from typing import BinaryIO

import re2
from selectolax.lexbor import LexborHTMLParser, LexborNode

from gossamer.model import charset, markup
from gossamer.model.errors import ParseSkipped, UnreadableUrl
from gossamer.model.url import canonical, scheme_of
from gossamer.model.visit import Response, Visit

#: Characters of the longest title that is kept: no index shows more, and a page can send megabytes (FAULTS 76).
MAX_TITLE = 1_000

#: Schemes that a `base` must not have (HTML, 4.2.3, "frozen base URL").
_NO_BASE = frozenset({"data", "javascript"})

# Asked before the tree is: one such search is a third of a walk for an element that hardly any page has.
_BASE = re2.compile(rb"(?i)<base")


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

    @cached_property
    def content(self) -> bytes:
        """The bytes without content coding, from byte 0; of a document on disk the first 16 MiB, which parsers get."""
        return self.visit.response.content

    def open(self) -> BinaryIO:
        """A new stream over the whole document, however large, from byte 0, without content coding."""
        return self.visit.response.open()

    @cached_property
    def charset(self) -> str:
        """The encoding of `content`, by the Encoding standard's name in lower case."""
        return charset.sniff(self.content, self.response.header("content-type"))

    @cached_property
    def markup(self) -> bytes:
        """The content as well-formed UTF-8: what the tree is parsed from."""
        return charset.to_utf8(self.content, self.charset)

    @cached_property
    def trouble(self) -> str:
        """`parse_skipped` where the page would cost the parser too much and has no tree (FAULTS 54, 55); or empty."""
        return "parse_skipped" if markup.suspicion(self.markup) else ""

    @cached_property
    def tree(self) -> LexborHTMLParser:
        """The parsed HTML tree, shared by all processors of the page.

        Raises:
            ParseSkipped: the page is in :attr:`trouble`.
        """
        if self.trouble:
            raise ParseSkipped(f"{markup.suspicion(self.markup)}: {self.url}")
        return LexborHTMLParser(self.markup)

    @cached_property
    def title(self) -> str:
        """The text of the first `<title>`, with runs of white space folded; empty without a tree."""
        if self.trouble:
            return ""
        node = self.tree.css_first("title")
        return " ".join(node.text().split())[:MAX_TITLE] if node is not None else ""

    @cached_property
    def base(self) -> str:
        """What relative links are resolved against: the first `<base href>` where there is one, otherwise the URL."""
        if _BASE.search(self.markup) is None:
            return self.url
        href = self._base_href()
        if href is None:
            return self.url
        try:
            base = canonical(href, self.url)
        except UnreadableUrl:
            return self.url
        scheme = scheme_of(base)
        # What stands on the web does not get to speak of this machine's files by calling one of them its base.
        foreign = scheme == "file" and scheme_of(self.url) != "file"
        return self.url if foreign or scheme in _NO_BASE else base

    def _base_href(self) -> str | None:
        if not self.trouble:
            node = self.tree.css_first("base[href]")
            return None if node is None else node.attributes.get("href") or ""
        for tag in markup.tags(self.markup):
            if tag.name == b"base" and not tag.closing:
                href = markup.attributes(tag).get("href")
                if href is not None:
                    return href
        return None

    def css(self, selector: str) -> list[LexborNode]:
        """Nodes that match a CSS selector.

        Raises:
            ParseSkipped: the page is in :attr:`trouble`.
        """
        return self.tree.css(selector)
