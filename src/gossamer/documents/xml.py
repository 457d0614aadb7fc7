"""XML without a parser: tags and texts of a feed or sitemap, in order, by one linear scan.

There is no entity to expand and nothing to fetch: of references only the five of XML and numbers are resolved, a DTD is
skipped whole (fault 60). What is not well-formed is read as far as it goes, since half of the feeds of the web are not.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from gossamer.documents import markup

_TOKEN = re.compile(
    rb"<!--.*?(?:-->|\Z)"
    rb"|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    rb"|<!DOCTYPE[^\[>]*+(?:\[.*?(?:\]\s*+>|\Z)|>|\Z)"
    rb"|<\?.*?(?:\?>|\Z)"
    rb"|<(?P<closing>/?)(?P<name>[A-Za-z_][^\s/<>]*+)(?P<attributes>(?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+)>"
    rb"|(?P<text>[^<]++|<)",
    re.DOTALL | re.IGNORECASE,
)
_REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")


class XmlTag(NamedTuple):
    """A tag with the text right behind it."""

    name: str
    """Without its prefix, in lower case."""
    prefix: str
    closing: bool
    attributes: bytes
    text: str
    """References resolved, CDATA included, ends stripped."""

    def attribute(self, name: str) -> str:
        """An attribute's value; empty where there is none."""
        return markup.attributes(self.attributes).get(name, "")


def events(content: bytes) -> Iterator[XmlTag]:
    """Every tag, in order. `content` is well-formed UTF-8."""
    tag: re.Match[bytes] | None = None
    texts: list[bytes] = []
    for match in _TOKEN.finditer(content):
        if match["name"] is not None:
            if tag is not None:
                yield _event(tag, texts)
            tag, texts = match, []
        elif match["text"] is not None:
            texts.append(match["text"])
        elif match["cdata"] is not None:
            texts.append(match["cdata"].replace(b"&", b"&amp;"))
    if tag is not None:
        yield _event(tag, texts)


def _event(tag: re.Match[bytes], texts: list[bytes]) -> XmlTag:
    prefix, _, name = tag["name"].decode("utf-8", "replace").lower().rpartition(":")
    text = b"".join(texts).strip().decode("utf-8", "replace") if texts else ""
    if "&" in text:
        text = _REFERENCE.sub(lambda reference: html.unescape(reference[0]), text)
    return XmlTag(name, prefix, bool(tag["closing"]), tag["attributes"], text)
