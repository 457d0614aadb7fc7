"""Options of `gossamer crawl` about words, and what they change in its wiring."""

import importlib.util
from typing import TYPE_CHECKING, Annotated

from gossamer.crawls.options import CHANGES_GRAPH, part_of
from gossamer.engine.sheet import Sheet, setting
from gossamer.values.url import scheme_of, site_of

if TYPE_CHECKING:
    from gossamer.crawls.builder import Builder

#: The names of the processors, as wirings and the stage's `isolated` have them, and the type that one reads.
PDF_LINKS, LLMS_LINKS, PDF = "pdf-links", "llms-links", "application/pdf"


class WordsOptions(Sheet, frozen=True):
    """What of documents beside HTML is followed."""

    llms_txt: Annotated[
        bool,
        setting(
            "Also fetch the llms.txt of each seed's site, and follow the pages that it lists.", restart=CHANGES_GRAPH
        ),
    ] = False
    follow_pdf: Annotated[
        bool,
        setting("Follow the links in PDF documents; this needs gossamer[words].", restart=CHANGES_GRAPH),
    ] = False


def wire(builder: "Builder") -> None:
    """Have the crawl follow what was asked for."""
    options = part_of(builder.options, WordsOptions)
    if options.llms_txt:
        _follow_llms_txt(builder)
    if options.follow_pdf:
        _follow_pdf(builder)


def _follow_llms_txt(builder: "Builder") -> None:
    from gossamer.words.llms import NAMES

    builder.add_provider(LLMS_LINKS, LLMS_LINKS, {})
    for mime in ("text/plain", "text/markdown"):
        builder.bind_also("process", "processors", mime, LLMS_LINKS)
    urls = builder.wiring.components["seeds"].settings.get("urls", ())
    lists = [f"{site_of(url)}{NAMES[0]}" for url in urls if scheme_of(url) in ("http", "https")]
    builder.set("llms_txt", "seeds", {"urls": list(dict.fromkeys([*urls, *lists]))})


def _follow_pdf(builder: "Builder") -> None:
    if importlib.util.find_spec("pypdfium2") is None:  # better missed now than with each document
        from gossamer.documents.markdown import needs

        raise needs("words", "pypdfium2", "--follow-pdf")
    builder.add_provider(PDF_LINKS, PDF_LINKS, {})
    builder.bind_also("process", "processors", PDF, PDF_LINKS)
    isolated = builder.wiring.components["process"].settings.get("isolated", ())
    if PDF_LINKS not in isolated:
        builder.set("follow_pdf", "process", {"isolated": [*isolated, PDF_LINKS]})
