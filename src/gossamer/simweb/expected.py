"""The pages that a crawl should ask for, breadth first, by scope, depth and robots.txt.

Place in the flow: tests and the auditor hold what a crawl asked for against this.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from gossamer.simweb import robots
from gossamer.simweb.draws import CHUNK, Ints, Mask, Numbers, first_of_each
from gossamer.simweb.graph import GraphError, WebGraph
from gossamer.simweb.hosts import SimHost
from gossamer.simweb.pages import DIRECTORY, PageKind, path_of

SCOPES: Final = ("page", "prefix", "host", "domain", "any")


class ExpectedPages(msgspec.Struct, frozen=True):
    """What a crawl should ask for: page numbers in the order of a breadth-first crawl."""

    requests: Numbers
    """All pages to be asked for, also those that redirect or are gone."""
    depths: Numbers
    """For each of `requests` its least number of clicks from a seed; a redirect costs none."""
    pages: Numbers
    """Those of `requests` that end in a page (status 200)."""


def expected_pages(
    graph: WebGraph,
    seeds: list[str] | None = None,
    scope: str = "any",
    depth: int | None = None,
    agent: str = "Gossamer",
    obey_robots: bool = True,
) -> ExpectedPages:
    """Return what a crawl from `seeds` (the first page, if none) has to ask for.

    `depth` is the most clicks from a seed. Traps, dead links, images and pages that only a
    sitemap names are not part of it. Raises GraphError for seeds or a scope unknown here.
    """
    seeds = seeds or [graph.url(0)]
    open_ = _in_scope(graph, seeds, scope)
    if obey_robots:
        open_ &= allowed_pages(graph, agent)
    depths = np.full(graph.count, -1, dtype=np.int32)
    numbers = np.array([graph.page(seed) for seed in seeds], dtype=np.int32)
    levels = [front := _arrive(graph, numbers, 0, depths, open_)]
    while front.size and (depth is None or len(levels) <= depth):
        front = _next_level(graph, front, len(levels), depths, open_)
        levels.append(front)
    requests = np.concatenate(levels)
    ends_in_page = ~np.isin(graph.kinds[requests], (PageKind.REDIRECT, PageKind.GONE))
    return ExpectedPages(requests, depths[requests], requests[ends_in_page])


def _next_level(graph: WebGraph, front: Numbers, level: int, depths: Numbers, open_: Mask) -> Numbers:
    """Return what a level links to and no level before had, in the order of the links."""
    content = graph.content[front[graph.kinds[front] != PageKind.REDIRECT]]
    found: list[Numbers] = [np.empty(0, dtype=np.int32)]
    for begin in range(0, content.size, CHUNK // 16):
        some = content[begin : begin + CHUNK // 16]
        targets = graph.targets[_positions(graph, some)]
        found.append(_arrive(graph, targets, level, depths, open_))
    return np.concatenate(found)


def _arrive(graph: WebGraph, found: Numbers, level: int, depths: Numbers, open_: Mask) -> Numbers:
    """Mark pages met at a level, and those they redirect to; return the ones that are new."""
    fresh = first_of_each(found[(depths[found] < 0) & open_[found]])
    depths[fresh] = level
    moved = first_of_each(graph.content[fresh[graph.kinds[fresh] == PageKind.REDIRECT]])
    moved = moved[(depths[moved] < 0) & open_[moved]]
    depths[moved] = level
    return np.concatenate((fresh, moved))


def _positions(graph: WebGraph, content: Numbers) -> Ints:
    """Return the places in `targets` of all links of some pages, in order."""
    starts, ends = graph.starts[content], graph.starts[content + 1]
    counts = ends - starts
    offsets = np.repeat(starts - np.cumsum(counts) + counts, counts)
    return np.asarray(offsets + np.arange(int(counts.sum())), dtype=np.int64)


def allowed_pages(graph: WebGraph, agent: str) -> Mask:
    """Return which pages robots.txt lets a crawler ask for; `agent` is its User-Agent."""
    result = np.ones(graph.count, dtype=np.bool_)
    for host in graph.sites:
        manner = robots.KINDS[host.robots]
        if manner.status >= 500 or robots.group_for(manner, agent) is not None:
            result[host.base : host.base + host.size] = _allowed_on(host, agent)
    return result


def _allowed_on(host: SimHost, agent: str) -> Mask:
    """Return which pages of a host a crawler may ask for, judged by representatives: the rules of
    `robots` look at nothing but the directory and the last digit of a page's number."""
    result = np.zeros(host.size, dtype=np.bool_)
    index = np.arange(host.size)
    for directory in range(min(5, -(-host.size // DIRECTORY))):
        for digit in range(10):
            sample = path_of(directory * DIRECTORY + digit + (10 if digit == 0 else 0))
            verdict = robots.allowed(host.robots, agent, sample)
            # Directories from 4 on are all alike: no rule names them.
            near = index // DIRECTORY == directory if directory < 4 else index >= 4 * DIRECTORY
            result[near & (index % 10 == digit)] = verdict
    result[0] = robots.allowed(host.robots, agent, "/")
    return result


def _in_scope(graph: WebGraph, seeds: list[str], scope: str) -> Mask:
    """Return which pages a crawl from `seeds` may go to, under one of `SCOPES`."""
    numbers = [graph.page(seed) for seed in seeds]
    if scope == "any":
        return np.ones(graph.count, dtype=np.bool_)
    result = np.zeros(graph.count, dtype=np.bool_)
    if scope == "page":
        result[numbers] = True
    elif scope == "prefix":
        for number in numbers:
            _mark_directory(graph, result, number)
    elif scope in ("host", "domain"):
        hosts = [graph.sites[int(graph.host_of[number])] for number in numbers]
        wanted = {getattr(host, "rank" if scope == "host" else "domain") for host in hosts}
        for host in graph.sites:
            if (host.rank if scope == "host" else host.domain) in wanted:
                result[host.base : host.base + host.size] = True
    else:
        raise GraphError(f"there is no scope {scope!r}: choose one of {', '.join(SCOPES)}")
    return result


def _mark_directory(graph: WebGraph, result: Mask, page: int) -> None:
    """Mark all pages whose path begins with the directory of a page."""
    host = graph.sites[int(graph.host_of[page])]
    index = int(graph.index_of[page])
    first, last = 0, host.size
    if index:
        first = index // DIRECTORY * DIRECTORY
        last = min(first + DIRECTORY, host.size)
        # The home page is not in /s0/, though its index would put it there.
        first = max(1, first)
    result[host.base + first : host.base + last] = True
