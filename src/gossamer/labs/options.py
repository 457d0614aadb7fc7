"""Options of `gossamer crawl` for crawls that look for a topic; :mod:`gossamer.labs.strategies` reads them."""

from typing import Annotated

from gossamer.engine.sheet import Sheet, setting

# Settings of the units, too (:mod:`gossamer.labs.focus`).

Topic = Annotated[
    tuple[str, ...],
    setting("Look for pages with these words, and follow the most relevant links first; a text counts as its words."),
]

TopicPages = Annotated[
    tuple[str, ...],
    setting("Look for pages that are about the same topic as this file (HTML or text).", names="a file"),
]

IrrelevantHops = Annotated[
    int,
    setting(
        "If the crawl has a topic, follow links through at most this many irrelevant pages in a row; with 0, follow only links "
        "of relevant pages.",
        unit="pages",
        ge=0,
        le=200,
    ),
]


class FocusOptions(Sheet, frozen=True):
    """The words that a focused crawl looks for."""

    topic: Topic = ()
    topic_page: TopicPages = ()
    relevance: Annotated[
        str,
        setting(
            "Judge the relevance of pages with the installed part of this name, instead of by words.",
            names="code",
        ),
    ] = ""
    irrelevant_hops: Annotated[IrrelevantHops, setting(was="tunnel")] = 2
