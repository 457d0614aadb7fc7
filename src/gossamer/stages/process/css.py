"""What style sheets name: imports, pictures and fonts, by one linear scan; nothing is parsed that need not be.

Place in the flow: a processor for `text/css`, and what :mod:`gossamer.stages.process.html` asks for `style` elements and
attributes. All of it is page requisites (:mod:`gossamer.model.requisites`): without them a crawl does not want it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.requisites import CSS_IMPORT, CSS_URL
from gossamer.model.visit import Found
from gossamer.reading.document import Document

# Comments, strings, `@import "..."`, `url(...)` and `@import url(...)` (CSS Syntax 3, sections 4.3.2 to 4.3.6). Each
# alternative that begins to match goes on to its end or to the end of the sheet, so that nothing is read twice.
_STRING = r""""(?:[^"\\\n]|\\.)*+(?:"|\n|\Z)|'(?:[^'\\\n]|\\.)*+(?:'|\n|\Z)"""
_TOKEN = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    rf"|(?P<import>@import\b)"
    rf"|\burl\(\s*+(?:(?P<quoted>{_STRING})|(?P<plain>(?:[^\"'()\\\s]|\\[0-9a-f]{{1,6}}+\s?+|\\.)*+))"
    rf"|(?P<string>{_STRING})",
    re.DOTALL | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})[ \t\n\f\r]?|(\n)|(.))", re.DOTALL)
_BETWEEN = re.compile(r"(?:\s|/\*.*?\*/)*+", re.DOTALL)


class CssLinksSheet(Sheet, frozen=True):
    """Settings of :class:`CssLinks`."""

    requisites: Annotated[bool, setting("Follow links of style sheets to imports, pictures and fonts.")] = False


class CssLinks(Provider[CssLinksSheet]):
    """Finds the links of a style sheet. Contract: `processing.Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterable[Found]:
        """The sheet's URLs, where requisites are wanted."""
        if not self.sheet.requisites:
            return ()
        # The mark, then `Content-Type`, then UTF-8, as CSS says (Syntax 3, 3.2); `@charset` is left to history.
        text = document.markup.decode()
        return css_links(text)


def css_links(text: str) -> Iterator[Found]:
    """Every import and `url()` of a sheet or of a `style` attribute, in order. Linear."""
    return (found for _, _, found in css_places(text))


def css_places(text: str) -> Iterator[tuple[int, int, Found]]:
    """As :func:`css_links`, each with where it stands: from its quote, or its first character, up to the end of that. Linear."""
    after_import = -1
    for match in _TOKEN.finditer(text):
        if match["import"]:
            between = _BETWEEN.match(text, match.end())
            after_import = between.end() if between else match.end()
            continue
        token = match["quoted"] or match["string"]
        is_import = match.start() == after_import
        if match["string"] and not is_import:
            continue
        url = _unescaped(token[1:].rstrip("\n")) if token else _unescaped(match["plain"] or "")
        if token and url[-1:] == token[0]:
            url = url[:-1]
        if not url or url.startswith(("data:", "#")):
            continue
        group = "quoted" if match["quoted"] else "string" if token else "plain"
        yield match.start(group), match.end(group), Found(url, CSS_IMPORT if is_import else CSS_URL)


def _unescaped(text: str) -> str:
    """A string or `url()` without escapes; a code point that is none becomes U+FFFD."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[3] or ""
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
