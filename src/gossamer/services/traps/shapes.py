"""Shapes of single URLs that traps and broken links make, and hardly anybody else: paths and queries that only grow. Pure.

A shape is a guess from the URL alone, so it sets aside at once: of each kind some are fetched, and one that brings news frees all.
"""

from collections import Counter
from functools import lru_cache

from gossamer.model.url import path_of
from gossamer.services.traps.families import most_repeated

#: How often a segment may occur in a path that grows from page to page; numbers may always.
REPEATS = 2

#: How often a parameter may occur in a query; those that end in brackets may always.
PARAMETERS = 2

#: Directories that are worked out once. A URL has 8 KB at most.
_REMEMBERED = 1_024


def shape_of(url: str, source: str) -> str:
    """The name of the shape of a URL that was found on a page; empty for nearly all.

    ============================ ===============================================================================
    `trap:repeated-segments`     the link goes deeper from its page, and a segment that repeats does so once more
    `trap:repeated-parameters`   one parameter again and again, as lists do that add every choice to the last one
    ============================ ===============================================================================

    How deep a path is says nothing. That a segment repeats is no crime by itself (`/a/a/a`, once linked to, is a page); that it
    does so once more behind every link is.
    """
    if url.count("&") >= PARAMETERS and _most_named(url) > PARAMETERS:
        return "trap:repeated-parameters"
    # Three slashes belong to no segment.
    if url.count("/") > REPEATS + 3:
        directory = source.partition("?")[0].rpartition("/")[0] + "/"
        if url.startswith(directory) and _repeated_in(directory) >= REPEATS and most_repeated(_segments(url)) > REPEATS:
            return "trap:repeated-segments"
    return ""


@lru_cache(maxsize=_REMEMBERED)
def _repeated_in(directory: str) -> int:
    """How often the most frequent segment of a directory occurs: asked for each link of each of its pages."""
    return most_repeated(_segments(directory))


def _segments(url: str) -> list[str]:
    return [one for one in path_of(url).partition("?")[0].split("/") if one]


def _most_named(url: str) -> int:
    """How often the most frequent parameter occurs. Names that end in brackets are lists by intent (PHP, Rails)."""
    names = (one.partition("=")[0] for one in url.partition("?")[2].split("&") if one)
    return max(Counter(name for name in names if not name.endswith(("[]", "%5B%5D"))).values(), default=0)
