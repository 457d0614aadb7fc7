"""Options of `gossamer crawl` about words, and what they change in its wiring."""

import importlib.util
from typing import TYPE_CHECKING, Annotated, Literal

from gossamer.crawls.options import part_of
from gossamer.engine.sheet import Sheet, setting

if TYPE_CHECKING:
    from gossamer.crawls.builder import Builder

#: The names of the processors, as wirings and the stage's `isolated` have them, and the type that one reads.
PDF_LINKS, LLMS_LINKS, PAGE_WORDS, PDF = "pdf-links", "llms-links", "words", "application/pdf"

#: Types of plain text, which is its own Markdown; and everything that has words.
TEXT_TYPES = ("text/plain", "text/markdown", "text/x-markdown")
TYPES = ("application/xhtml+xml", "text/html", *TEXT_TYPES, PDF)

#: Parts of the words of a page that a table can have as columns.
WordsColumn = Literal["facts", "text", "markdown"]


#: A setting of the processor, too (:mod:`gossamer.words.reading`).
WordsColumns = Annotated[
    tuple[WordsColumn, ...],
    setting(
        "Keep the words of each page as an item of the kind `words`, with these columns: `facts` (author, dates, "
        "description, ...), `text`, `markdown`; this needs the package html-to-markdown."
    ),
]


class WordsOptions(Sheet, frozen=True):
    """The kinds of documents beside HTML that are followed."""

    llms_txt: Annotated[
        bool,
        setting("Also fetch the llms.txt of each seed's site, and follow the pages that it lists."),
    ] = False
    follow_pdf: Annotated[
        bool,
        setting("Follow the links in PDF documents; this needs the package pypdfium2."),
    ] = False
    keep_words: WordsColumns = ()


def wire(builder: "Builder") -> None:
    """Have the crawl follow and keep what was asked for."""
    options = part_of(builder.options, WordsOptions)
    if options.llms_txt:
        from gossamer.values.url import scheme_of, site_of
        from gossamer.words.reading import NAMES

        builder.add_provider(LLMS_LINKS, LLMS_LINKS, {})
        for mime in ("text/plain", "text/markdown"):
            builder.bind_also("process", "processors", mime, LLMS_LINKS)
        urls = builder.wiring.components["seeds"].settings.get("urls", ())
        lists = [f"{site_of(url)}{NAMES[0]}" for url in urls if scheme_of(url) in ("http", "https")]
        builder.set("llms_txt", "seeds", {"urls": list(dict.fromkeys([*urls, *lists]))})
    for is_wanted, package, option in (
        (options.follow_pdf, "pypdfium2", "--follow-pdf"),
        (options.keep_words, "html_to_markdown", "--keep-words"),
    ):
        if is_wanted and importlib.util.find_spec(package) is None:  # better missed now than with each document
            from gossamer.documents.markdown import needs

            raise needs("words", package.replace("_", "-"), option)
    if options.follow_pdf:
        builder.add_provider(PDF_LINKS, PDF_LINKS, {})
        builder.bind_also("process", "processors", PDF, PDF_LINKS)
    if options.keep_words:
        builder.add_provider(PAGE_WORDS, PAGE_WORDS, {"columns": list(dict.fromkeys(options.keep_words))})
        for mime in TYPES:
            builder.bind_also("process", "processors", mime, PAGE_WORDS)
