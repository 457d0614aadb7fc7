"""Options of `gossamer crawl` for crawls that look for a topic; :mod:`gossamer.labs.strategies` reads them."""

from typing import Annotated

from gossamer.crawls.basic_options import CHANGES_GRAPH
from gossamer.engine.sheet import Sheet, setting


class FocusOptions(Sheet, frozen=True):
    """The words that a focused crawl looks for."""

    topic: Annotated[
        tuple[str, ...],
        setting(
            "Look for pages with these words, and follow the most relevant links first.",
            restart=CHANGES_GRAPH,
        ),
    ] = ()
    topic_page: Annotated[
        tuple[str, ...],
        setting(
            "Look for pages that are about the same topic as this file (HTML or text).",
            restart=CHANGES_GRAPH,
            names="a file",
        ),
    ] = ()
    relevance: Annotated[
        str,
        setting(
            "Judge the relevance of pages with the installed part of this name, instead of by words.",
            restart=CHANGES_GRAPH,
            names="code",
        ),
    ] = ""
    irrelevant_hops: Annotated[
        int,
        setting(
            "If the crawl has a topic, follow links through at most this many irrelevant pages in a row.",
            unit="pages",
            was="tunnel",
            restart=CHANGES_GRAPH,
            ge=0,
            le=200,
        ),
    ] = 2
