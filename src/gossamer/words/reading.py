"""The words of one document: HTML, plain text or PDF, as Markdown, and what was lost on the way.

Place in the flow: `gossamer cat --markdown`, `gossamer inspect --markdown` and the server for models (:mod:`gossamer.words.tools`)
read single documents here; :mod:`gossamer.words.exporting` reads those of whole crawls.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gossamer.documents import charset
from gossamer.documents.content_coding import undone
from gossamer.documents.document import Document
from gossamer.documents.markdown import MAX_MARKDOWN, PageMetadata, as_markdown, needs
from gossamer.values.body import beginning
from gossamer.values.errors import UsageError
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import HTML_TYPES, Response, Visit
from gossamer.words.options import PDF, TYPES
from gossamer.words.pdf import MAX_BYTES, PdfReading, PdfText

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
    "pdf_unavailable": "PDF, whose text needs pypdfium2, which is in gossamer[words]",
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
        made = as_markdown(document.markup, document.base, images=images, anchors=anchors)
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
    source = document.source
    found = undone(source.headers, source.body, MAX_BYTES + 1)
    if not found.is_readable:
        raise UsageError(f"{url}: {found.error}; `gossamer cat` writes the body as it came")
    response = Response(Outcome.OK, 200, headers=source.headers, body=source.body, decoded=found.data)
    return words_of_answer(url, response, images=images)


def told(left_out: Mapping[str, int]) -> list[str]:
    """Counts of documents by trouble, in words."""
    return [
        f"{number:,} {'document' if number == 1 else 'documents'}: {TROUBLES[trouble]}"
        for trouble, number in sorted(left_out.items())
        if number
    ]
