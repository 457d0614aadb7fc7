"""The description of a web, counted, beside its specification: so that the generator need not be believed.

Place in the flow: the command line prints it (`gossamer simweb --describe`), a test holds each figure to its parameter.
Links and kinds are counted over the whole graph, bytes over a sample of pages that is really made. Needs NumPy.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from gossamer.simweb.graph import WebGraph, indegrees
from gossamer.simweb.hosts import LANGUAGES, ROBOTS, UTF8_SHARE, VALIDATORS, SimHost
from gossamer.simweb.page import PageKind, path_of
from gossamer.simweb.site import DAY, INTERVALS, Conditions, SimWeb

SAMPLE: Final = 2_000
"""Pages whose bytes are made: their median is then within 4 % of the truth 19 times of 20 at the default spread."""

FEW: Final = 10
"""A host of so few pages, or a bin of so few links, says nothing about an exponent."""

Floats = npt.NDArray[np.float64]


class Fact(msgspec.Struct, frozen=True):
    """One figure of a web."""

    what: str
    asked: float
    found: float
    """NaN where this web is too small to tell."""


def describe(web: SimWeb) -> list[Fact]:
    """Count a web; raises GraphError if it is too large to be held as a graph."""
    graph = WebGraph(web)
    return [*_hosts(web), *_pages(graph)]


def _hosts(web: SimWeb) -> Iterator[Fact]:
    spec = web.spec
    hosts = [web.hosts.host(rank) for rank in range(len(web.hosts))]
    own = hosts[: spec.hosts]
    yield Fact("pages, mirrors apart", spec.pages, sum(host.size for host in own))
    yield Fact("hosts, mirrors apart", spec.hosts, len(own))
    yield Fact("mirror hosts a host", spec.mirror_share, (len(hosts) - len(own)) / len(own))
    # Of the power law of sizes: 1 + 1/s where the size of the r-th host falls as r^-s. The largest few stand off the line: the
    # closed form of `Hosts` counts ranks from one.
    sizes = np.array([host.size for host in own if host.size >= FEW], dtype=np.float64)
    slope = _slope(np.arange(1, len(sizes) + 1)[FEW:], sizes[FEW:])
    yield Fact("exponent of pages a host", spec.host_exponent, 1 - 1 / slope if slope else float("nan"))
    yield Fact("hosts an address", spec.hosts_per_address, len(hosts) / len({host.address for host in hosts}))
    # The first host is kept plain, and mirrors repeat their source: neither is drawn.
    drawn = own[1:] or own
    yield from _shares("hosts in", LANGUAGES, [host.language for host in drawn])
    yield Fact("hosts in UTF-8", UTF8_SHARE, _share(drawn, lambda host: host.charset == "utf-8"))
    yield Fact("hosts with a trap", spec.trap_share, _share(drawn, lambda host: host.trap != ""))
    if not spec.plain_robots:
        found = [host.robots for host in hosts[1:] or hosts]
        yield from _shares("robots.txt of kind", {kind: one.share for kind, one in ROBOTS.items()}, found)
    yield from _shares("hosts that send validators:", VALIDATORS, [host.validators for host in drawn])


def _share(hosts: list[SimHost], holds: Callable[[SimHost], bool]) -> float:
    return sum(map(holds, hosts)) / len(hosts)


def _shares(what: str, asked: dict[str, float], found: list[str]) -> Iterator[Fact]:
    counts, total = Counter(found), sum(asked.values())
    for name, weight in asked.items():
        yield Fact(f"{what} {name}", weight / total, counts[name] / len(found))


def _slope(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    logs = np.log(np.asarray(x, dtype=np.float64)), np.log(np.asarray(y, dtype=np.float64))
    return float(np.polyfit(*logs, 1)[0]) if len(logs[0]) > 2 else float("nan")


def _links(graph: WebGraph) -> Iterator[Fact]:
    spec = graph.web.spec
    counts = np.diff(graph.starts)
    sources = np.repeat(np.arange(graph.count, dtype=np.int32), counts)
    leaving = graph.host_of[sources] != graph.host_of[graph.targets]
    own = counts > 0
    yield Fact("links a page", spec.links, float(counts[own].mean()))
    yield Fact("links that leave their host", spec.external_share, float(leaving.mean()))
    # Menu, home and parent are on every page; the power law is that of the links besides.
    yield Fact("exponent of links a page", spec.link_exponent, _tail_exponent(counts[own] - spec.navigation - 2))
    # How fast the links to the k-th page of the largest host fall with k: the tree's links left out, in bins of octaves.
    size = int(graph.sizes[0])
    below = np.clip(size - 1 - np.arange(size) * spec.branching, 0, spec.branching)
    drawn = indegrees(graph)[:size] - 1 - below
    first = int(np.log2(spec.navigation + 2)) + 1
    octaves = [(1 << k, 1 << k + 1) for k in range(first, int(np.log2(size)) - 1)]
    means = [(low * 1.5, drawn[low:high].mean()) for low, high in octaves if drawn[low:high].sum() > FEW * FEW]
    slope = _slope([middle for middle, _ in means], [mean for _, mean in means])
    yield Fact("exponent of a page's popularity", 1.0, -slope)


def _tail_exponent(values: npt.NDArray[np.int64]) -> float:
    """Hill's estimate of the exponent of a power law's density, from the upper tenth of the values."""
    upper = np.sort(values)[-(len(values) // 10) :]
    if len(upper) < FEW:
        return float("nan")
    return float(1 + 1 / np.log(upper / upper[0]).mean()) if upper[-1] > upper[0] else float("nan")


def _pages(graph: WebGraph) -> Iterator[Fact]:
    web, spec = graph.web, graph.web.spec
    shares = {kind: float((graph.kinds == kind).mean()) for kind in PageKind}
    yield Fact("pages that are exact duplicates", spec.duplicate_share, shares[PageKind.DUPLICATE])
    yield Fact("pages that are near-duplicates", spec.near_duplicate_share, shares[PageKind.NEAR_DUPLICATE])
    yield Fact("pages that redirect", spec.redirect_share, shares[PageKind.REDIRECT])
    yield Fact("pages that are gone", spec.gone_share, shares[PageKind.GONE])
    yield Fact("pages that fail at first", spec.flaky_share, shares[PageKind.FLAKY])
    dead = (graph.bits >> np.uint64(52) & np.uint64(1023)) < web.pages.dead_weight
    yield Fact("pages with a dead link", spec.dead_link_share, float(dead.mean()))
    yield from _links(graph)
    plain = np.flatnonzero(graph.kinds == PageKind.PLAIN)
    sizes: list[int] = []
    for page in plain[:: max(1, len(plain) // SAMPLE)]:
        host = web.hosts.host(int(graph.host_of[page]))
        door = web.door(host.name)
        if door is not None:
            sizes.append(web.answer(door, path_of(int(page) - host.base), Conditions(), spec.epoch).size)
    yield Fact("median bytes of a page", spec.size_median, float(np.median(sizes)))
    # Small pages cannot be smaller than their menu, so the spread shows above the median only.
    upper = np.percentile(sizes, 84.13) / np.median(sizes)
    yield Fact("spread of bytes (sigma of the logarithm)", spec.size_sigma, float(np.log(upper)))
    intervals = np.array([web.changes.interval(int(bits)) for bits in graph.bits[:: max(1, graph.count // 10_000)]])
    for share, low, high in INTERVALS:
        within = ((intervals >= low) & (intervals < high)).mean()
        yield Fact(f"pages that change every {low / DAY:g} to {high / DAY:g} days", share, float(within))


def to_text(facts: list[Fact]) -> str:
    """Return the facts as a table to read."""
    width = max(len(fact.what) for fact in facts)
    lines = [f"{'':{width}}  {'asked for':>12}  {'found':>12}"]
    lines += (f"{fact.what:{width}}  {_shown(fact.asked):>12}  {_shown(fact.found):>12}" for fact in facts)
    return "\n".join(lines) + "\n"


def _shown(value: float) -> str:
    if np.isnan(value):
        return "too small"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def to_json(facts: list[Fact]) -> str:
    """Return the facts as one line of JSON; a fact that cannot be told is null."""
    return msgspec.json.encode(facts).decode()
