"""The whole web as a value: every page and link in arrays, the importance of each page, and the pages that a crawl should ask for.

Place in the flow: tests and the auditor hold what a crawl asked for, breadth first, by scope, depth and robots.txt, against this.
The draws are those of :mod:`page`, over whole arrays; a property test compares the two link by link. Needs NumPy (the extra
`simweb`).
"""

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from gossamer.simweb.draws import CHUNK, Ints, Mask, Numbers, Weights, draw_all, first_of_each, low_bits, put_rows
from gossamer.simweb.hosts import ROBOTS, SimHost, allowed, group_for
from gossamer.simweb.page import (
    DIRECTORY,
    EXTERNAL_BLOCK,
    EXTERNAL_BLOCKS,
    EXTERNAL_SHIFT,
    LOCAL_BLOCK,
    LOCAL_BLOCKS,
    LOCAL_SHIFT,
    PageKind,
    path_of,
    size_class,
)
from gossamer.simweb.site import Role, SimWeb

# A page is a number here: the first page of its host plus its index. Copies share the links of their
# original, so links are stored for pages with content of their own only.


PAGE_LIMIT: Final = 20_000_000
"""The largest web whose graph fits into the memory of a common machine."""


class GraphError(ValueError):
    """A question that the graph cannot answer: the caller's mistake, said in one line."""


class WebGraph:
    """All pages and links of a web of at most `PAGE_LIMIT` pages."""

    def __init__(self, web: SimWeb) -> None:
        if web.hosts.pages > PAGE_LIMIT:
            raise GraphError(f"a graph holds at most {PAGE_LIMIT:,} pages; this web has {web.hosts.pages:,}")
        self.web = web
        self.count = web.hosts.pages
        ranks = range(len(web.hosts))
        self.bases: Ints = np.array([web.hosts.base(rank) for rank in ranks], dtype=np.int64)
        ends = np.append(self.bases[1:], self.count)
        self.sizes: Ints = ends - self.bases
        self.host_of: Numbers = np.repeat(np.arange(len(ranks), dtype=np.int32), self.sizes)
        self.index_of: Numbers = (np.arange(self.count, dtype=np.int64) - self.bases[self.host_of]).astype(np.int32)
        self.sites: list[SimHost] = [web.hosts.host(rank) for rank in ranks]
        self.keys: Ints = np.array([host.key for host in self.sites], dtype=np.int64)
        self.bits = draw_all(web.pages.salt, (self.keys[self.host_of] + self.index_of).astype(np.uint64))
        ends = np.array([end for end, _ in web.pages.thresholds], dtype=np.int64)
        table = np.array([kind for _, kind in web.pages.thresholds] + [PageKind.PLAIN], np.uint8)
        self.kinds: npt.NDArray[np.uint8] = table[np.searchsorted(ends, low_bits(self.bits, 0, 65535), side="right")]
        inner = np.maximum(1, (self.sizes - 2) // web.spec.branching + 1)[self.host_of]
        self.kinds[self.index_of < inner] = PageKind.PLAIN
        self.content: Numbers = np.arange(self.count, dtype=np.int32)
        """For each page the page that it copies or redirects to, else itself."""
        other = np.isin(self.kinds, (PageKind.DUPLICATE, PageKind.NEAR_DUPLICATE, PageKind.REDIRECT))
        original = (self.bits[other] >> np.uint64(20)) % inner[other].astype(np.uint64)
        self.content[other] = self.bases[self.host_of[other]] + original.astype(np.int64)
        self.starts, self.targets = self._link()

    def _link(self) -> tuple[Ints, Numbers]:
        """Return where each page's links start (one entry more than pages), and their targets in
        the order in which the page shows them: menu, parent, children, local, external, homes."""
        pages, spec = self.web.pages, self.web.spec
        own = (self.content == np.arange(self.count)) & (self.kinds != PageKind.GONE)
        size, index = self.sizes[self.host_of], self.index_of
        menu = np.where(own, np.minimum(spec.navigation, size - 1) + 1, 0)
        first = index.astype(np.int64) * spec.branching + 1
        children = np.where(own, np.clip(size - first, 0, spec.branching), 0)
        degrees = np.array(pages.degrees, dtype=np.int64)
        blocks = np.where(own & (size > 1), degrees[low_bits(self.bits, 28, 255)], 0)
        linked = menu + blocks * LOCAL_BLOCK
        leaving = (linked * pages.external_weight + low_bits(self.bits, 36, 65535)) >> 16
        leaving = np.where(own, leaving, 0)
        # Home pages alone link to those of other hosts.
        homes = np.zeros(self.count, dtype=np.int64)
        homes[self.bases] = [len(pages.homes_below(host.source)) for host in self.sites]
        homes = np.where(own, homes, 0)
        parent = (own & (index > 0)).astype(np.int64)
        counts = menu + parent + children + blocks * LOCAL_BLOCK + leaving * EXTERNAL_BLOCK + homes
        starts = np.zeros(self.count + 1, dtype=np.int64)
        np.cumsum(counts, out=starts[1:])
        targets = np.empty(int(starts[-1]), dtype=np.int32)
        place = starts[:-1].copy()
        base = self.bases[self.host_of]
        for number in range(int(menu.max(initial=0))):
            self._put(targets, place, menu > number, base + number)
        self._put(targets, place, parent > 0, base + (index - 1) // spec.branching)
        for number in range(spec.branching):
            self._put(targets, place, children > number, base + first + number)
        del menu, children, linked, parent
        self._put_blocks(targets, place, blocks, leaving)
        for number in range(int(homes.max(initial=0))):
            source = np.array([host.source for host in self.sites], dtype=np.int64)
            rank = source[self.host_of] * 8 + 1 + number
            rank = np.minimum(rank, len(self.sites) - 1)
            self._put(targets, place, homes > number, self.bases[rank])
        return starts, targets

    @staticmethod
    def _put(targets: Numbers, place: Ints, which: Mask, values: Ints) -> None:
        chosen = np.flatnonzero(which)
        targets[place[chosen]] = values[chosen]
        place[chosen] += 1

    def _put_blocks(self, targets: Numbers, place: Ints, blocks: Ints, leaving: Ints) -> None:
        """Write the links that come in blocks, as `Pages.choice` chooses them."""
        first = low_bits(self.bits, 16, LOCAL_BLOCKS - 1) * 2 + 1
        second = low_bits(self.bits, 36, EXTERNAL_BLOCKS - 1) * 2 + 1
        groups = np.array([size_class(host.log_size) for host in self.sites], dtype=np.int64)
        group, base, pages = groups[self.host_of], self.bases[self.host_of], self.web.pages
        local = np.zeros((int(groups.max()) + 1, LOCAL_BLOCKS, LOCAL_BLOCK), dtype=np.int64)
        for one in np.unique(groups):
            for number in range(LOCAL_BLOCKS):
                local[one, number] = pages.local_block(int(one), number)
        pairs = np.array([pages.external_block(number) for number in range(EXTERNAL_BLOCKS)], dtype=np.int64)
        external = np.asarray(self.bases[pairs[..., 0]] + pairs[..., 1], dtype=np.int64)
        for number, factor in enumerate(pages.multipliers):
            chosen = np.flatnonzero(blocks > number)
            if not chosen.size:
                break
            block = first[chosen] * factor >> LOCAL_SHIFT & LOCAL_BLOCKS - 1
            found = local[group[chosen], block] + base[chosen][:, None]
            put_rows(targets, place, chosen, found)
        for number, factor in enumerate(pages.multipliers):
            chosen = np.flatnonzero(leaving > number)
            if not chosen.size:
                break
            block = second[chosen] * factor >> EXTERNAL_SHIFT & EXTERNAL_BLOCKS - 1
            put_rows(targets, place, chosen, external[block])

    def links_of(self, page: int) -> list[int]:
        content = int(self.content[page])
        if self.kinds[page] == PageKind.REDIRECT:
            return [content]
        return [int(n) for n in self.targets[self.starts[content] : self.starts[content + 1]]]

    def page(self, url: str) -> int:
        """Return the number of a page by its URL, under a name or an own address; the port does not
        matter. Raises GraphError if it is none of this web."""
        scheme, _, rest = url.partition("://")
        authority, slash, path = rest.partition("/")
        door = self.web.door(authority) if scheme in ("http", "https") else None
        if door is None:
            raise GraphError(f"{url} is not on this web: its first page is {self.url(0)}")
        role, index = self.web.locate(door.host, slash + path or "/")
        if role not in (Role.PAGE, Role.ALIAS):
            raise GraphError(f"{url} is not a page of this web")
        return door.host.base + index

    def url(self, page: int) -> str:
        """Return the URL of a page, with its host's name and without a port."""
        rank = int(self.host_of[page])
        return f"http://{self.sites[rank].name}{path_of(int(self.index_of[page]))}"


# Which pages of a web matter: links that lead to each, and its PageRank. The auditor asks here whether a crawl met important
# pages early.


def indegrees(graph: WebGraph) -> Ints:
    """Return how many links lead to each page, counting each link of each page."""
    links = np.isin(graph.kinds, (PageKind.REDIRECT, PageKind.GONE), invert=True)
    shown = np.bincount(graph.content[links], minlength=graph.count)
    result = np.zeros(graph.count, dtype=np.float64)
    _spread(graph, shown.astype(np.float64), result)
    return result.round().astype(np.int64)


def importance_of(graph: WebGraph) -> Weights:
    """Return the PageRank of each page (they sum to 1), after 20 rounds of power iteration.

    A redirect hands all its rank on. Brin and Page, "The anatomy of a large-scale hypertextual
    Web search engine", WWW7 (1998).
    """
    degrees = np.maximum(1, np.diff(graph.starts))
    moved = np.flatnonzero(graph.kinds == PageKind.REDIRECT)
    shows = np.flatnonzero(np.isin(graph.kinds, (PageKind.REDIRECT, PageKind.GONE), invert=True))
    rank = np.full(graph.count, 1.0 / graph.count)
    for _ in range(20):
        shown = np.bincount(graph.content[shows], rank[shows], minlength=graph.count)
        fresh = np.zeros(graph.count)
        fresh += np.bincount(graph.content[moved], rank[moved], minlength=graph.count)
        _spread(graph, np.asarray(shown / degrees, dtype=np.float64), fresh)
        fresh *= 0.85  # the damping
        fresh += (1.0 - fresh.sum()) / graph.count
        rank = fresh
    return rank


def _spread(graph: WebGraph, weight: Weights, result: Weights) -> None:
    """Add each page's weight to everything that it links to, chunk by chunk."""
    for begin in range(0, graph.count, CHUNK // 8):
        end = min(begin + CHUNK // 8, graph.count)
        counts = np.diff(graph.starts[begin : end + 1])
        edges = slice(int(graph.starts[begin]), int(graph.starts[end]))
        weights = np.repeat(weight[begin:end], counts)
        result += np.bincount(graph.targets[edges], weights, minlength=graph.count)


SCOPES: Final = ("page", "prefix", "host", "domain", "any")


class ExpectedPages(msgspec.Struct, frozen=True):
    """The pages that a crawl should ask for: their numbers in the order of a breadth-first crawl."""

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
        # All that this level links to and no level before had, in the order of the links.
        content = graph.content[front[graph.kinds[front] != PageKind.REDIRECT]]
        found: list[Numbers] = [np.empty(0, dtype=np.int32)]
        for begin in range(0, content.size, CHUNK // 16):
            some = content[begin : begin + CHUNK // 16]
            # The places in `targets` of all links of these pages, in order.
            starts, counts = graph.starts[some], graph.starts[some + 1] - graph.starts[some]
            offsets = np.repeat(starts - np.cumsum(counts) + counts, counts)
            targets = graph.targets[offsets + np.arange(int(counts.sum()))]
            found.append(_arrive(graph, targets, len(levels), depths, open_))
        levels.append(front := np.concatenate(found))
    requests = np.concatenate(levels)
    ends_in_page = ~np.isin(graph.kinds[requests], (PageKind.REDIRECT, PageKind.GONE))
    return ExpectedPages(requests, depths[requests], requests[ends_in_page])


def _arrive(graph: WebGraph, found: Numbers, level: int, depths: Numbers, open_: Mask) -> Numbers:
    """Mark pages met at a level, and those they redirect to; return the ones that are new."""
    fresh = first_of_each(found[(depths[found] < 0) & open_[found]])
    depths[fresh] = level
    moved = first_of_each(graph.content[fresh[graph.kinds[fresh] == PageKind.REDIRECT]])
    moved = moved[(depths[moved] < 0) & open_[moved]]
    depths[moved] = level
    return np.concatenate((fresh, moved))


def allowed_pages(graph: WebGraph, agent: str) -> Mask:
    """Return which pages robots.txt lets a crawler ask for; `agent` is its User-Agent."""
    result = np.ones(graph.count, dtype=np.bool_)
    for host in graph.sites:
        manner = ROBOTS[host.robots]
        if manner.status >= 500 or group_for(manner, agent) is not None:
            result[host.base : host.base + host.size] = _allowed_on(host, agent)
    return result


def _allowed_on(host: SimHost, agent: str) -> Mask:
    """Return which pages of a host a crawler may ask for, judged by representatives: the rules of
    `hosts` look at nothing but the directory and the last digit of a page's number."""
    result = np.zeros(host.size, dtype=np.bool_)
    index = np.arange(host.size)
    for directory in range(min(5, -(-host.size // DIRECTORY))):
        for digit in range(10):
            sample = path_of(directory * DIRECTORY + digit + (10 if digit == 0 else 0))
            verdict = allowed(host.robots, agent, sample)
            # Directories from 4 on are all alike: no rule names them.
            near = index // DIRECTORY == directory if directory < 4 else index >= 4 * DIRECTORY
            result[near & (index % 10 == digit)] = verdict
    result[0] = allowed(host.robots, agent, "/")
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
            host, index = graph.sites[int(graph.host_of[number])], int(graph.index_of[number])
            first = index // DIRECTORY * DIRECTORY if index else 0
            last = min(first + DIRECTORY, host.size) if index else host.size
            # The home page is not in /s0/, though its index would put it there.
            result[host.base + (max(1, first) if index else 0) : host.base + last] = True
    elif scope in ("host", "domain"):
        hosts = [graph.sites[int(graph.host_of[number])] for number in numbers]
        wanted = {getattr(host, "rank" if scope == "host" else "domain") for host in hosts}
        for host in graph.sites:
            if (host.rank if scope == "host" else host.domain) in wanted:
                result[host.base : host.base + host.size] = True
    else:
        raise GraphError(f"there is no scope {scope!r}: choose one of {', '.join(SCOPES)}")
    return result
