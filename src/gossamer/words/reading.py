"""The words of a document, HTML, plain text or PDF, as Markdown, and what was lost on the way; and the processors of a crawl that
yield them: facts, text and Markdown of each page as an item, links of PDF, and links of `llms.txt`.

Place in the flow: `gossamer cat --markdown`, `gossamer inspect --markdown` and the server for models (:mod:`gossamer.words.tools`)
read single documents here; :mod:`gossamer.words.exporting` reads those of whole crawls. :func:`gossamer.words.options.wire` binds
the processors to the types that they read. PDFium is native code, so a document of PDF is read in a parser process, which can be
killed, whatever the wiring says. An item of words is one of the kind `words`, so views, files and `reprocess` treat it as they
treat those of a person's own processors.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gossamer.documents import charset
from gossamer.documents.content_coding import undone
from gossamer.documents.document import Document
from gossamer.documents.language import detect
from gossamer.documents.markdown import MAX_MARKDOWN, PageMetadata, as_markdown, needs
from gossamer.documents.text import MAX_TEXT, TEXT_CUT
from gossamer.engine.sheet import NoSettings, Sheet
from gossamer.engine.unit import Provider
from gossamer.values.body import beginning
from gossamer.values.errors import ReadApart, UsageError
from gossamer.values.media_type import HTML_TYPES, sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import path_of
from gossamer.values.visit import Found, Item, Response, Visit
from gossamer.words.options import PDF, TYPES, WordsColumns
from gossamer.words.pdf import MAX_BYTES, PdfReading, PdfText, content_of, read_pdf

if TYPE_CHECKING:
    from gossamer.query.archive import ArchivedDocument

#: Troubles of documents, in words behind "it" or "they".
TROUBLES = {
    "plain": "came as plain paragraphs: too many blocks, or elements too deep in each other",
    "cut": f"cut after {MAX_MARKDOWN:,} characters",
    "pdf_damaged": "damaged PDF",
    "pdf_encrypted": "PDF that needs a password",
    "pdf_timeout": "PDF that took too long to read",
    "pdf_large": f"PDF of more than {MAX_BYTES >> 20} MiB",
    "pdf_unavailable": "PDF, whose text needs the package pypdfium2",
    "pdf_cut": "PDF of which only the first pages were read",
    "no_body": "no body in the archive",
    "no_words": "no words",
}


class Words(NamedTuple):
    """The words of a document."""

    title: str = ""
    markdown: str = ""
    metadata: PageMetadata = PageMetadata()
    canonical: str = ""
    trouble: str = ""
    """Why not all of it is there: a word of :data:`TROUBLES`; empty if it is."""


def words_of(
    document: Document,
    mime: str,
    pdf: Callable[[Document], PdfText],
    *,
    images: bool = False,
    anchors: bool = False,
    markdown: bool = True,
) -> Words:
    """The words of a document.

    Args:
        document: any.
        mime: its media type, one of :data:`TYPES`.
        pdf: reads PDF.
        images: whether images stay, as links.
        anchors: whether headings carry their ids, for chunks.
        markdown: whether the Markdown of a page is wanted, not only its facts.

    Raises:
        UsageError: a package is missing.
    """
    if mime in HTML_TYPES:
        facts = document.metadata
        if not markdown:
            return Words(document.title, "", facts, document.canonical)
        made = as_markdown(document.markup, document.base, document.main_part, images=images, anchors=anchors)
        found = Words(document.title, made.text, facts, document.canonical, "plain" if made.is_plain else "")
    elif mime == PDF:
        read = pdf(document)
        if read.trouble == "pdf_unavailable":
            raise needs("words", "pypdfium2", "Text of PDF")
        facts = PageMetadata(author=read.author, published=read.created)
        found = Words(read.title, f"{read.markdown}\n" if read.markdown else "", facts, "", read.trouble)
    else:
        text = charset.to_utf8(document.content, document.charset).decode("utf-8", "replace")
        found = Words("", text)
    if len(found.markdown) > MAX_MARKDOWN:
        found = found._replace(markdown=found.markdown[:MAX_MARKDOWN], trouble="cut")
    if not found.markdown.strip():
        return found._replace(markdown="", trouble=found.trouble or "no_words")
    return found


def words_of_answer(url: str, response: Response, *, images: bool = False) -> Words:
    """The words of an answer. Raises UsageError: its type has none, or a package is missing."""
    content = beginning(response.document, 1 << 16)
    mime = sniff_media_type(content, response.content_type)
    if mime not in TYPES:
        raise UsageError(f"{url} is {mime or 'of no known type'}: only HTML, plain text and PDF have words")
    pdf = PdfReading()
    try:
        return words_of(Document(Visit(Task(url, ""), response, mime=mime)), mime, pdf, images=images)
    finally:
        pdf.close()


def archived_words(url: str, document: "ArchivedDocument", *, images: bool = False) -> Words:
    """The words of an archived document.
    Raises UsageError: its content coding cannot be undone, its type has no words, or a package is missing."""
    if document.rendered is not None:
        body = document.rendered.body
        kind = ("content-type", "text/html; charset=utf-8")
        return words_of_answer(url, Response(Outcome.OK, 200, headers=(kind,), body=body), images=images)
    source = document.source
    found = undone(source.headers, source.body, MAX_BYTES + 1)
    if not found.is_readable:
        raise UsageError(f"{url}: {found.error}; `gossamer cat` writes the body as it came")
    response = Response(Outcome.OK, 200, headers=source.headers, body=source.body, decoded=found.data)
    return words_of_answer(url, response, images=images)


class LeftOut:
    """Documents without words, or with less than all of them, by trouble: how many, and the URL of the first."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._firsts: dict[str, str] = {}

    def add(self, trouble: str, url: str) -> None:
        """Count a document; one without a trouble is none."""
        if trouble:
            self._counts[trouble] += 1
            self._firsts.setdefault(trouble, url)

    def told(self) -> list[str]:
        """The same in words."""
        return [
            f"1 document: {TROUBLES[trouble]}: {self._firsts[trouble]}"
            if number == 1
            else f"{number:,} documents: {TROUBLES[trouble]}; the first is {self._firsts[trouble]}"
            for trouble, number in sorted(self._counts.items())
        ]


# Processors.

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
    columns: WordsColumns = ("facts", "text", "markdown")


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
