"""Which pages of a web matter: links that lead to each, and its PageRank.

Place in the flow: the auditor asks here whether a crawl met important pages early.
"""

from __future__ import annotations

import numpy as np

from gossamer.simweb.arrays import CHUNK, Ints, Weights
from gossamer.simweb.graph import WebGraph
from gossamer.simweb.pages import PageKind


def indegrees(graph: WebGraph) -> Ints:
    """Return how many links lead to each page, counting each link of each page."""
    shown = _copies(graph)
    result = np.zeros(graph.count, dtype=np.float64)
    _spread(graph, shown.astype(np.float64), result)
    return result.round().astype(np.int64)


def importance_of(graph: WebGraph, rounds: int = 20, damping: float = 0.85) -> Weights:
    """Return the PageRank of each page (they sum to 1), after `rounds` of power iteration.

    A redirect hands all its rank on. Brin and Page, "The anatomy of a large-scale hypertextual
    Web search engine", WWW7 (1998).
    """
    degrees = np.maximum(1, np.diff(graph.starts))
    moved = np.flatnonzero(graph.kinds == PageKind.REDIRECT)
    shows = np.flatnonzero(np.isin(graph.kinds, (PageKind.REDIRECT, PageKind.GONE), invert=True))
    rank = np.full(graph.count, 1.0 / graph.count)
    for _ in range(rounds):
        shown = np.bincount(graph.content[shows], rank[shows], minlength=graph.count)
        fresh = np.zeros(graph.count)
        fresh += np.bincount(graph.content[moved], rank[moved], minlength=graph.count)
        _spread(graph, np.asarray(shown / degrees, dtype=np.float64), fresh)
        fresh *= damping
        fresh += (1.0 - fresh.sum()) / graph.count
        rank = fresh
    return rank


def _copies(graph: WebGraph) -> Ints:
    """Return how many pages show each page's links: itself and its copies."""
    links = np.isin(graph.kinds, (PageKind.REDIRECT, PageKind.GONE), invert=True)
    return np.bincount(graph.content[links], minlength=graph.count)


def _spread(graph: WebGraph, weight: Weights, result: Weights) -> None:
    """Add each page's weight to everything that it links to, chunk by chunk."""
    for begin in range(0, graph.count, CHUNK // 8):
        end = min(begin + CHUNK // 8, graph.count)
        counts = np.diff(graph.starts[begin : end + 1])
        edges = slice(int(graph.starts[begin]), int(graph.starts[end]))
        weights = np.repeat(weight[begin:end], counts)
        result += np.bincount(graph.targets[edges], weights, minlength=graph.count)
