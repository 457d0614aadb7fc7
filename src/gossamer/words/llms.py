"""Links of `llms.txt`, in which sites list their pages for models as Markdown, for crawls with `--llms-txt`.

Place in the flow: :func:`gossamer.words.options.wire` makes `/llms.txt` of each seed's site a seed, and binds this processor to the
types of plain text. What is no `llms.txt` yields nothing. The format is that of llmstxt.org: Markdown, whose links are the list.
"""

import re
from collections.abc import Iterable, Iterator

from gossamer.documents.document import Document
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.values.url import path_of
from gossamer.values.visit import Found

#: Names of the list, and of the one that has the pages themselves beside their links.
NAMES = ("/llms.txt", "/llms-full.txt")

#: Relation of a page that it lists.
LISTED = "llms.txt link"

# A link of Markdown: its text, and its URL with parentheses in pairs; each part is bounded, so the search is linear.
_LINK = re.compile(r"\[([^\[\]\n]{0,500})\]\(\s*<?((?:[^()\s<>]|\([^()\s]{0,200}\)){1,2000})>?[^()\n]{0,300}\)")


class LlmsLinks(Provider[NoSettings]):
    """Finds the links of an `llms.txt`. Contract: `processing.Processor`. Keeps no state."""

    divisible = True
    finds_links = True

    def process(self, document: Document) -> Iterable[Found]:
        """Yield the pages that it lists."""
        if not path_of(document.url).partition("?")[0].endswith(NAMES):
            return ()
        return links_of(document.markup.decode("utf-8", "replace"))


def links_of(text: str) -> Iterator[Found]:
    """The links of a text in Markdown."""
    for match in _LINK.finditer(text):
        yield Found(match[2], LISTED, " ".join(match[1].split()))
