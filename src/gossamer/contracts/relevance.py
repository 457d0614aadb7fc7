"""A relevance scores how well a page fits the subject of a focused crawl (row C8). Suite: `gossamer.testing.check_relevance`."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

#: Most characters of a page's text, and of the text around a link, that a relevance gets.
MOST_TEXT, MOST_AROUND = 50_000, 200

#: Counters of the ledger: pages that were judged, and those of them that are relevant.
JUDGED, RELEVANT = "focus:judged", "focus:relevant"


class PageWords(msgspec.Struct, frozen=True):
    """The parts of a page that its relevance can depend on."""

    url: str
    title: str = ""
    text: str = ""
    """The prose of the page, :data:`MOST_TEXT` characters at most."""
    language: str = ""


class LinkWords(msgspec.Struct, frozen=True):
    """The parts of a link that its relevance can depend on."""

    url: str
    anchor: str = ""
    """The text of the link itself."""
    around: str = ""
    """The text before and after the link on the page, :data:`MOST_AROUND` characters at most."""


class Relevance(Protocol):
    """Scores pages and links.

    Promises:
        1. A score is a number from 0 (not relevant) to 1. Links get one score each, in order.
        2. Its time is linear in the text and its memory is bounded, for every page.
        3. It never raises an exception, for any page and link.
    """

    def page(self, page: PageWords) -> float:
        """Return how relevant a fetched page is."""
        ...

    def links(self, links: Sequence[LinkWords], source: PageWords, score: float) -> Sequence[float]:
        """Return how relevant the pages that `source` links to are likely to be.

        Args:
            links: links of `source`.
            source: the page with the links.
            score: the score of `source`, reduced by the cost of tunnelling.
        """
        ...
