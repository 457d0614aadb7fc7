"""What pages of a web state in structured data: texts that follow from the number of the page.

Place in the flow: `render` writes them into pages, the auditor knows by them which triples a crawl has to find. A page says
all of its own in one way: RDFa, JSON-LD or microdata, by turns.
"""

from __future__ import annotations

from gossamer.simweb.exact import SYNTAXES


def texts_of(shown: int, count: int) -> list[str]:
    """Return what a page states: `count` texts, each of which makes one triple.

    Args:
        shown: index of the page whose content it is; copies state what their original does.
        count: the web's `statements`.
    """
    return [f"statement {number} of page {shown}" for number in range(count)]


def markup_of(shown: int, count: int) -> bytes:
    """Return the same as a piece of a page."""
    return SYNTAXES[shown % len(SYNTAXES)](texts_of(shown, count)).encode()
