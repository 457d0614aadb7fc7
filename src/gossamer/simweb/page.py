"""The graph of the web, one page at a time.

Place in the flow: `render` turns what stands here into HTML, `graph` computes the same for all
pages at once (a property test holds the two together), the auditor asks what a fetched URL was.

The pages of a host form a tree in which page i has the children b i + 1 ... b i + b, so that every
page can be reached and depth grows with the logarithm of the size. On top lie a menu that all pages
repeat, links drawn by Zipf's law (the first pages of a host, and the first hosts, are popular), and
a second tree through the hosts' home pages. Only leaves of the tree are copies, redirects or errors:
nothing hangs below them.
"""

from bisect import bisect_right
from enum import IntEnum
from itertools import accumulate
from typing import Final

from gossamer.simweb import draws
from gossamer.simweb.hosts import SimHost, SimHosts
from gossamer.simweb.spec import WebSpec

DIRECTORY: Final = 50
"""Pages in one directory of a host: page 123 is /s2/123.html."""

HOST_BRANCHING: Final = 8
"""Homes of other hosts that a host's home page links to, so that every host can be reached."""

LOCAL_BLOCK: Final = 5
"""Links to the same host come in blocks of so many, as the boxes of a real page do. A block is drawn
and rendered once and then serves many pages: that is what makes a page cheap."""

LOCAL_BLOCKS: Final = 512
"""Different blocks for hosts of about one size: 9 bits choose one."""

EXTERNAL_BLOCK: Final = 2
"""Links in a block of links to other hosts."""

EXTERNAL_BLOCKS: Final = 4096
"""Different blocks of those: 12 bits choose one."""

LOCAL_SHIFT: Final = 21
EXTERNAL_SHIFT: Final = 18
"""A block's number is what stands above these bits in a 30-bit product: its uppermost 9 and 12."""

BLOCK_LIMIT: Final = 50
"""The most local blocks of one page; a power law has no end of its own."""


class PageKind(IntEnum):
    """The answer of a page."""

    PLAIN = 0
    DUPLICATE = 1
    NEAR_DUPLICATE = 2
    REDIRECT = 3
    GONE = 4
    FLAKY = 5


class Pages:
    """The pages of one web, as functions of host and index; nothing is stored."""

    def __init__(self, spec: WebSpec, hosts: SimHosts) -> None:
        self.spec = spec
        self.hosts = hosts
        self.salt = draws.draw(spec.seed, 2)
        self._navigation, self._branching = spec.navigation, spec.branching
        leaving = spec.external_share / (1 - spec.external_share) / EXTERNAL_BLOCK
        self.external_weight = int(leaving * 65536)
        most = (101 + BLOCK_LIMIT * LOCAL_BLOCK) * leaving + 1
        salt = draws.draw(spec.seed, 3)
        self.multipliers = draws.multipliers(salt, max(BLOCK_LIMIT, int(most) + 1))
        # Besides the drawn links a page has its menu, its parent and on average one child.
        drawn = max(LOCAL_BLOCK, spec.links * (1 - spec.external_share) - spec.navigation - 2.0)
        self.degrees = draws.pareto_table(drawn / LOCAL_BLOCK, spec.link_exponent, 256, BLOCK_LIMIT)
        self.sizes = draws.lognormal_table(spec.size_median, spec.size_sigma, 4096, 500, spec.size_limit)
        shares = (
            *(spec.duplicate_share, spec.near_duplicate_share),
            *(spec.redirect_share, spec.gone_share, spec.flaky_share),
        )
        ends = accumulate(share / (1 - 1 / spec.branching) for share in shares)
        kinds = [kind for kind in PageKind if kind is not PageKind.PLAIN]
        self.thresholds = tuple((int(end * 65536), kind) for end, kind in zip(ends, kinds, strict=True))
        """The upper ends, of 65536, of each kind's part of the leaves."""
        self._ends = [end for end, _ in self.thresholds]
        self._kinds = [*(kind for _, kind in self.thresholds), PageKind.PLAIN]
        self.dead_weight = int(spec.dead_link_share * 1024)

    def bits(self, host: SimHost, index: int) -> int:
        """Return the 64 bits that decide a page's kind, size and number of links."""
        return draws.draw(self.salt, host.key + index)

    def inner(self, size: int) -> int:
        """Return how many pages of a host of `size` pages have children (at least the home page)."""
        return (size - 2) // self._branching + 1 if size > 1 else 1

    def kind(self, host: SimHost, index: int, bits: int | None = None) -> PageKind:
        """Return what a page answers; `bits` are the page's, where they are known already."""
        if index < self.inner(host.size):
            return PageKind.PLAIN
        roll = (self.bits(host, index) if bits is None else bits) & 65535
        return self._kinds[bisect_right(self._ends, roll)]

    def original(self, host: SimHost, index: int) -> int:
        """Return the page that a copy repeats, or that a redirect leads to: always a plain one."""
        return (self.bits(host, index) >> 20) % self.inner(host.size)

    def choice(self, host: SimHost, bits: int) -> tuple[int, int]:
        """Return the numbers of the chains of local blocks and of blocks to other hosts that a page shows."""
        count = self.degrees[bits >> 28 & 255] if host.size > 1 else 0
        menu = self._navigation if self._navigation < host.size else host.size - 1
        roll = bits >> 36 & 65535
        # Where a chain begins is decided by the low ends of bits that decide other things by their high ends.
        leaving = ((menu + 1 + count * LOCAL_BLOCK) * self.external_weight + roll) >> 16
        return count * LOCAL_BLOCKS + (bits >> 16 & LOCAL_BLOCKS - 1), leaving * EXTERNAL_BLOCKS + (
            roll & EXTERNAL_BLOCKS - 1
        )

    def local_chain(self, number: int) -> list[int]:
        """Return the numbers of the local blocks in a chain. A chain's number says how long it is and how it begins."""
        count, seed = number // LOCAL_BLOCKS, number % LOCAL_BLOCKS * 2 + 1
        return [seed * factor >> LOCAL_SHIFT & LOCAL_BLOCKS - 1 for factor in self.multipliers[:count]]

    def external_chain(self, number: int) -> list[int]:
        """The same for blocks of links to other hosts."""
        count, seed = number // EXTERNAL_BLOCKS, number % EXTERNAL_BLOCKS * 2 + 1
        return [seed * factor >> EXTERNAL_SHIFT & EXTERNAL_BLOCKS - 1 for factor in self.multipliers[:count]]

    def children(self, size: int, index: int) -> range:
        """Return the indexes below a page in the tree of its host."""
        first = index * self._branching + 1
        if first >= size:
            return range(0)
        last = first + self._branching
        return range(first, last if last < size else size)

    def local_block(self, group: int, number: int) -> tuple[int, ...]:
        """Return a block's links within a host: indexes by Zipf's law below the least size of the
        group, so that one block serves all hosts of about that size. The caller keeps it."""
        log_size, last = group << draws.FRACTION_BITS - 1, max(1, int(2.0 ** (group / 2)) - 1)
        seed = draws.draw(self.salt ^ 0x11, number)
        bits = (draws.draw(seed, place) & draws.MASK30 for place in range(LOCAL_BLOCK))
        return tuple(min(draws.zipf(roll, log_size), last) for roll in bits)

    def external_block(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return a block's links to other hosts: (rank, index), the host by Zipf's law, half of
        the time its home page, else a page by Zipf's law. The caller keeps it."""
        seed, found = draws.draw(self.salt ^ 0x22, number), list[tuple[int, int]]()
        for place in range(EXTERNAL_BLOCK):
            bits = draws.draw(seed, place)
            rank = min(draws.zipf(bits & draws.MASK30, self.hosts.log_count), len(self.hosts)) - 1
            host = self.hosts.host(rank)
            is_home = host.size == 1 or bits >> 60 & 1
            page = 0 if is_home else min(draws.zipf(bits >> 30 & draws.MASK30, host.log_size), host.size - 1)
            found.append((rank, page))
        return tuple(found)

    def homes_below(self, rank: int) -> range:
        first = rank * HOST_BRANCHING + 1
        count = len(self.hosts)
        return range(min(first, count), min(first + HOST_BRANCHING, count))


def size_class(log_size: int) -> int:
    """Return the group of hosts of about one size: half octaves, rounded down."""
    return log_size >> draws.FRACTION_BITS - 1


def path_of(index: int) -> str:
    return f"/s{index // DIRECTORY}/{index}.html" if index else "/"


def index_of(path: str) -> int | None:
    """Return the index that a path names, or None; only the one spelling of `path_of` counts."""
    return index_in(path.encode("ascii", "replace"))


def index_in(path: bytes) -> int | None:
    """The same for a path as it stands in a request."""
    if len(path) < 2:
        return 0 if path == b"/" else None
    try:
        index = int(path[path.rfind(b"/") + 1 : -5])
    except ValueError:
        return None
    # Written out again, because numbers have many spellings.
    return index if index > 0 and path == b"/s%d/%d.html" % (index // DIRECTORY, index) else None
