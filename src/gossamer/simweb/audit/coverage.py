"""The pages that a crawl found, their order and freshness, its requests in vain, and whether its triples are those of its
pages.

Place in the flow: the rest of the auditor's judges; they compare a `RequestTrace` with the `WebGraph`. The log tells which pages
the crawler was given; what each of them states follows from the web.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from gossamer.simweb.audit.trace import FLAG_CONDITIONAL, ROLES, RequestTrace
from gossamer.simweb.graph import ExpectedPages, GraphError, WebGraph, importance_of
from gossamer.simweb.log import LogError
from gossamer.simweb.page import PageKind
from gossamer.simweb.site import Role
from gossamer.simweb.text import SAID, texts_of

EXAMPLES: Final = 10
CURVE_POINTS: Final = 100
FRESHNESS_SAMPLE: Final = 2_000
"""Pages whose freshness is followed: their share is within 2 points of the truth 19 times of 20."""
FRESHNESS_MOMENTS: Final = 20


class Coverage(msgspec.Struct, frozen=True):
    """Which pages were found, against those that the crawl should have found."""

    expected: int
    found: int
    missed: int
    extra: int
    """Pages fetched that were not expected: out of scope, or forbidden."""
    missed_flaky: int
    """Of the missed, those that answered 503 at first: the crawler did not try again."""
    missed_examples: list[str]
    extra_examples: list[str]


class Repeats(msgspec.Struct, frozen=True):
    """URLs fetched again although they had been answered."""

    pages: int
    """Pages fetched in full more than once."""
    requests: int
    """Requests beyond the first for those."""
    aliases: int
    """Requests for a page under its second URL."""
    conditional: int
    """Conditional requests: they ask again without fetching again."""
    not_modified: int


class Order(msgspec.Struct, frozen=True):
    """Importance gathered over the crawl; each curve has the share gathered at equal steps."""

    pages: int
    crawl: list[float]
    breadth_first: list[float]
    oracle: list[float]
    crawl_area: float
    """Area under the curve, as a share of the oracle's."""
    breadth_first_area: float


class Freshness(msgspec.Struct, frozen=True):
    """The share of the pages fetched so far whose copy was still current, over time."""

    seconds: list[float]
    """Seconds since the first request, by our clock."""
    fresh: list[float]


class Spending(msgspec.Struct, frozen=True):
    """The cost of a part of the requests."""

    what: str
    requests: int
    bytes: int


def judge_coverage(trace: RequestTrace, graph: WebGraph, expected: ExpectedPages) -> Coverage:
    """Compare the pages that were fetched with those that should have been."""
    found = np.unique(trace.page[trace.answered()])
    wanted = np.sort(expected.pages).astype(np.int64)
    missed = np.setdiff1d(wanted, found, assume_unique=True)
    extra = np.setdiff1d(found, wanted, assume_unique=True)
    return Coverage(
        expected=len(wanted),
        found=len(wanted) - len(missed),
        missed=len(missed),
        extra=len(extra),
        missed_flaky=int((graph.kinds[missed] == PageKind.FLAKY).sum()),
        missed_examples=[graph.url(int(page)) for page in missed[:EXAMPLES]],
        extra_examples=[graph.url(int(page)) for page in extra[:EXAMPLES]],
    )


def judge_repeats(trace: RequestTrace) -> Repeats:
    """Count what was fetched in full more often than once."""
    full = trace.answered() & (trace.status == 200)
    own = trace.is_role(Role.PAGE)
    _, counts = np.unique(trace.page[full & own], return_counts=True)
    return Repeats(
        pages=int((counts > 1).sum()),
        requests=int((counts - 1).sum()),
        aliases=int((full & ~own).sum()),
        conditional=int(trace.has_flag(FLAG_CONDITIONAL).sum()),
        not_modified=int((trace.status == 304).sum()),
    )


def judge_order(trace: RequestTrace, graph: WebGraph, expected: ExpectedPages) -> Order:
    """Compare the order of the crawl with a breadth-first one and with one that knows all."""
    importance = importance_of(graph)
    wanted = np.zeros(graph.count, dtype=np.bool_)
    wanted[expected.pages] = True
    pages = trace.page[trace.answered()]
    pages = pages[np.sort(np.unique(pages, return_index=True)[1])]  # in the order of their first fetch
    pages = pages[wanted[pages]]
    count = len(pages)
    best = np.sort(importance[expected.pages])[::-1]
    total = float(best.sum()) or 1.0
    crawl = np.cumsum(importance[pages]) / total
    breadth = np.cumsum(importance[expected.pages[:count]]) / total
    oracle = np.cumsum(best[:count]) / total
    area = float(oracle.sum()) or 1.0
    return Order(
        pages=count,
        crawl=_thin(crawl),
        breadth_first=_thin(breadth),
        oracle=_thin(oracle),
        crawl_area=float(crawl.sum()) / area,
        breadth_first_area=float(breadth.sum()) / area,
    )


def _thin(curve: npt.NDArray[np.float64]) -> list[float]:
    """Return a curve at `CURVE_POINTS` equal steps, from nothing to its end."""
    if not curve.size:
        return []
    places = np.linspace(0, curve.size - 1, CURVE_POINTS).round().astype(np.int64)
    return [0.0, *(round(float(value), 6) for value in curve[places])]


def judge_freshness(trace: RequestTrace, graph: WebGraph) -> Freshness:
    """Follow a sample of the pages through the crawl: was the copy current at each moment?"""
    answered = trace.answered()
    pages, starts = trace.page[answered], trace.start[answered]
    distinct = np.unique(pages)
    step = max(1, len(distinct) // FRESHNESS_SAMPLE)
    sample = distinct[::step]
    chosen = np.isin(pages, sample)
    order = np.lexsort((starts[chosen], pages[chosen]))
    page, start = pages[chosen][order], starts[chosen][order]
    begin, end = int(trace.start[0]), int(trace.end.max())
    moments = np.linspace(begin, end, FRESHNESS_MOMENTS + 1)[1:].astype(np.int64)
    edges = np.searchsorted(page, sample, side="left")
    limits = np.searchsorted(page, sample, side="right")
    fresh = np.zeros(len(moments))
    held = np.zeros(len(moments))
    for number, first, last in zip(sample, edges, limits, strict=True):
        fetches = start[first:last]
        seen = np.searchsorted(fetches, moments, side="right")
        copied = trace.moment(fetches[np.maximum(seen - 1, 0)])
        for place in np.flatnonzero(seen):
            held[place] += 1
            moment = int(trace.moment(moments[place : place + 1])[0])
            at = int(number)
            host = graph.web.hosts.host(int(graph.host_of[at]))
            changed = graph.web.changed(host, at - host.base, PageKind(graph.kinds[at]), moment)
            fresh[place] += changed <= copied[place]
    shares = fresh / np.maximum(held, 1)
    seconds = [round(float(value), 3) for value in (moments - begin) / 1e6]
    return Freshness(seconds, [round(float(share), 4) for share in shares])


def judge_spending(trace: RequestTrace, graph: WebGraph) -> list[Spending]:
    """Add up requests and bytes by what they were spent on."""
    kinds = np.full(len(trace), -1, dtype=np.int64)
    paged = trace.is_role(Role.PAGE)
    kinds[paged] = graph.kinds[trace.page[paged]]
    parts: list[tuple[str, npt.NDArray[np.bool_]]] = [
        ("pages of their own", np.isin(kinds, (PageKind.PLAIN, PageKind.FLAKY))),
        ("exact duplicates", kinds == PageKind.DUPLICATE),
        ("near-duplicates", kinds == PageKind.NEAR_DUPLICATE),
        ("redirects", kinds == PageKind.REDIRECT),
        ("linked pages that are gone", kinds == PageKind.GONE),
    ]
    mirrored = paged & (trace.rank >= graph.web.spec.hosts)
    parts = [(what, which & ~mirrored) for what, which in parts]
    parts.append(("mirror hosts", mirrored))
    rest = [role for role in ROLES if role is not Role.PAGE]
    parts += ((str(role), trace.is_role(role)) for role in rest)
    return [Spending(what, int(which.sum()), int(trace.size[which].sum())) for what, which in parts if which.any()]


#: Columns that a file of triples has to have; others do not matter.
COLUMNS: Final = ("graph", "predicate", "object")


class StatedTriples(msgspec.Struct, frozen=True):
    """The triples that a crawl found of those that its pages state."""

    expected: int
    found: int
    missed: int
    extra: int
    """Triples that no page states, or that a page was said to state twice."""
    missed_examples: list[str]
    extra_examples: list[str]


def read_triples(path: Path) -> Iterator[tuple[str, str, str]]:
    """Read graph, predicate and object of the lines of a CSV file.
    Raises LogError: it has no such columns, or is no CSV. Raises OSError: it cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if not set(COLUMNS) <= set(lines.fieldnames or ()):
            raise LogError(f"{path} has no columns {', '.join(COLUMNS)}")
        try:
            for line in lines:
                yield line["graph"] or "", line["predicate"] or "", line["object"] or ""
        except csv.Error as error:
            raise LogError(f"{path}, line {lines.line_num}: {error}") from None


def judge_statements(trace: RequestTrace, graph: WebGraph, triples: Iterable[tuple[str, str, str]]) -> StatedTriples:
    """Compare triples with what the pages state that the trace says were answered.

    Args:
        triples: URL of the page, predicate, and text.
    """
    count = graph.web.spec.statements
    pages = np.unique(trace.page[trace.answered()])
    shown = graph.index_of[graph.content[pages]]
    expected = {
        (int(page), text) for page, index in zip(pages, shown, strict=True) for text in texts_of(int(index), count)
    }
    found: set[tuple[int, str]] = set()
    extra: Counter[str] = Counter()
    met: set[tuple[str, str]] = set()
    for url, predicate, text in triples:
        try:
            page = graph.page(url)
        except GraphError:
            page = -1
        told = (page, text)
        # A page under a second URL states the same there.
        if predicate != SAID or told not in expected or (url, text) in met:
            extra[f"{url} {predicate} {text}"] += 1
        else:
            met.add((url, text))
            found.add(told)
    missed = sorted(expected - found)
    return StatedTriples(
        expected=len(expected),
        found=len(expected) - len(missed),
        missed=len(missed),
        extra=extra.total(),
        missed_examples=[f"{graph.url(page)} {text}" for page, text in missed[:EXAMPLES]],
        extra_examples=list(extra)[:EXAMPLES],
    )
