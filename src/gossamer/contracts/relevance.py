"""How relevant a page is to what a focused crawl is about (row C8). Suite: `gossamer.testing.check_relevance`."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

#: Characters of a page's text, and of what stands around a link, that are shown.
MOST_TEXT, MOST_AROUND = 50_000, 200

#: Counters of the ledger: pages that were judged, and those of them that are relevant.
JUDGED, RELEVANT = "focus:judged", "focus:relevant"


class PageWords(msgspec.Struct, frozen=True):
    """A page, as far as its relevance can depend on it."""

    url: str
    title: str = ""
    text: str = ""
    """Its prose, :data:`MOST_TEXT` characters at most."""
    language: str = ""


class LinkWords(msgspec.Struct, frozen=True):
    """A link, as far as its relevance can depend on it."""

    url: str
    anchor: str = ""
    """Its own text."""
    around: str = ""
    """What stands before and behind it on the page, :data:`MOST_AROUND` characters at most."""


class Relevance(Protocol):
    """Scores pages and links.

    Promises:
        1. A score is a number from 0 (not at all) to 1; one for each link, in order.
        2. The time is linear in the text, and memory is bounded, whatever is shown.
        3. It raises on no page and no link.
    """

    def page(self, page: PageWords) -> float:
        """How relevant a page is that was fetched."""
        ...

    def links(self, links: Sequence[LinkWords], source: PageWords, score: float) -> Sequence[float]:
        """How relevant the pages are likely to be that `source` links to; `score` is that of `source`, less what tunnelling
        costs.
        """
        ...
