"""Processors of words: the facts, text and Markdown of each page as an item, links of PDF, and links of `llms.txt`.

Place in the flow: :func:`gossamer.words.options.wire` binds them to the types that they read. PDFium is native code, so a document
of PDF is read in a parser process, which can be killed, whatever the wiring says. An item of words is one of the kind `words`, so
views, files and `reprocess` treat it as they treat those of a person's own processors.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.language import detect
from gossamer.documents.text import MAX_TEXT, TEXT_CUT
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.values.errors import ReadApart
from gossamer.values.url import path_of
from gossamer.values.visit import HTML_TYPES, Found, Item
from gossamer.words.options import TYPES, WordsColumn
from gossamer.words.pdf import PdfText, content_of, read_pdf
from gossamer.words.reading import words_of

#: Names of the list of pages for models, and of the one that has the pages themselves beside their links.
NAMES = ("/llms.txt", "/llms-full.txt")

#: Relation of a page that it lists.
LISTED = "llms.txt link"

# A link of Markdown: its text, and its URL with parentheses in pairs; each part is bounded, so the search is linear.
_LINK = re.compile(r"\[([^\[\]\n]{0,500})\]\(\s*<?((?:[^()\s<>]|\([^()\s]{0,200}\)){1,2000})>?[^()\n]{0,300}\)")

#: The kind of an item of words.
KIND = "words"

#: Characters of the Markdown of one item: a line of rows has to hold it.
MOST_MARKDOWN = 500_000


def read_apart(document: Document) -> PdfText:
    """A document of PDF, read here where nothing else waits; several processors share it.
    Raises ReadApart: something does."""
    if document.holds_up:
        raise ReadApart
    found: PdfText | None = document.__dict__.get("pdf")
    if found is None:
        found = document.__dict__["pdf"] = read_pdf(content_of(document))
        document.missed = document.missed or found.trouble
    return found


class WordColumnsSheet(Sheet, frozen=True):
    """Settings of :class:`WordColumns`."""

    columns: Annotated[
        tuple[WordsColumn, ...],
        setting("Keep these parts: `facts` that a page states of itself, its `text`, and its `markdown`."),
    ] = ("facts", "text", "markdown")


class WordColumns(Provider[WordColumnsSheet]):
    """Yields an item of words for each HTML page, plain text and PDF. Contract: `parsing.contract.Processor`. Keeps no state."""

    divisible = True

    def process(self, document: Document) -> Iterator[Item]:
        """The words of the document, by the columns that are kept."""
        columns, mime = self.sheet.columns, document.mime
        if mime not in TYPES:
            return
        is_page = mime in HTML_TYPES
        found = words_of(document, mime, read_apart, markdown="markdown" in columns or not is_page)
        if not is_page:
            text = found.markdown
        else:
            text = document.text if "text" in columns else ""
        language = document.language if is_page else detect(text)
        row: dict[str, object] = {"title": found.title, "language": language, "media_type": mime}
        if "facts" in columns:
            row |= msgspec.structs.asdict(found.metadata) | {"canonical": found.canonical}
        if "text" in columns:
            row["text"] = text[:MAX_TEXT]
        if "markdown" in columns:
            row["markdown"] = found.markdown[:MOST_MARKDOWN]
        if len(text) > MAX_TEXT or len(found.markdown) > MOST_MARKDOWN or found.trouble in ("plain", "cut"):
            document.missed = document.missed or TEXT_CUT
        if is_page or found.markdown:
            yield Item(KIND, document.url, row)


class PdfLinks(Provider[NoSettings]):
    """Finds the links of a PDF. Contract: `parsing.contract.Processor`. Keeps no state."""

    divisible = True
    finds_links = True

    def process(self, document: Document) -> Iterable[Found]:
        """The links of its pages, and the URLs that stand in its text."""
        return [Found(link, "pdf link") for link in read_apart(document).links]


class LlmsLinks(Provider[NoSettings]):
    """Finds the links of an `llms.txt`, which is Markdown by llmstxt.org. Keeps no state.

    Contract: `parsing.contract.Processor`.
    """

    divisible = True
    finds_links = True

    def process(self, document: Document) -> Iterable[Found]:
        """Yield the pages that it lists; what is no `llms.txt` yields nothing."""
        if not path_of(document.url).partition("?")[0].endswith(NAMES):
            return ()
        return links_of(document.markup.decode("utf-8", "replace"))


def links_of(text: str) -> Iterator[Found]:
    """The links of a text in Markdown."""
    for match in _LINK.finditer(text):
        yield Found(match[2], LISTED, " ".join(match[1].split()))
