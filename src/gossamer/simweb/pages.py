"""What a page is and where its links go: the graph of the web, one page at a time.

Place in the flow: `render` turns what stands here into HTML, `graph` computes the same for all
pages at once (a property test holds the two together), the auditor asks what a fetched URL was.

The pages of a host form a tree in which page i has the children b i + 1 ... b i + b, so that every
page can be reached and depth grows with the logarithm of the size. On top lie a menu that all pages
repeat, links drawn by Zipf's law (the first pages of a host, and the first hosts, are popular), and
a second tree through the hosts' home pages. Only leaves of the tree are copies, redirects or errors:
nothing hangs below them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from gossamer.simweb import draws
from gossamer.simweb.hosts import Host, Hosts
from gossamer.simweb.spec import WebSpec

DIRECTORY: Final = 50
"""Pages in one directory of a host: page 123 is /s2/123.html."""

HOST_BRANCHING: Final = 8
"""Homes of other hosts that a host's home page links to, so that every host can be reached."""

LINK_LIMIT: Final = 250
"""The most local links drawn for one page; a power law has no end of its own."""

EXTERNAL_LIMIT: Final = (LINK_LIMIT + 102) * 9 + 1
"""The most external links that can follow: at most 90 % of links are external."""


class Kind(IntEnum):
    """What a page answers."""

    PLAIN = 0
    DUPLICATE = 1
    NEAR_DUPLICATE = 2
    REDIRECT = 3
    GONE = 4
    FLAKY = 5


class Links(msgspec.Struct, frozen=True):
    """Where a page's links go. Local targets are indexes within the page's own host."""

    menu: range
    parent: int | None
    children: range
    local: list[int]
    external: list[tuple[int, int]]
    """Pairs of host rank and index within that host."""
    homes: range
    """Ranks of the hosts that hang below this one; only on home pages."""
    dead: bool
    """Whether one more link leads to a page that does not exist."""


class Pages:
    """The pages of one web, as functions of host and index; nothing is stored."""

    def __init__(self, spec: WebSpec, hosts: Hosts) -> None:
        self.spec = spec
        self.hosts = hosts
        self.salt = draws.draw(spec.seed, 2)
        self.multipliers = draws.multipliers(draws.draw(spec.seed, 3), LINK_LIMIT + 2 * EXTERNAL_LIMIT)
        self.external_weight = int(spec.external_share / (1 - spec.external_share) * 65536)
        fixed = spec.navigation + 2.0
        drawn = max(1.0, spec.links * (1 - spec.external_share) - fixed)
        self.degrees = draws.pareto_table(drawn, spec.link_exponent, 256, LINK_LIMIT)
        self.sizes = draws.lognormal_table(
            spec.size_median, spec.size_sigma, 4096, 500, spec.size_limit
        )
        self.thresholds = self._kind_thresholds()
        self.dead_weight = int(spec.dead_link_share * 1024)

    def _kind_thresholds(self) -> tuple[tuple[int, Kind], ...]:
        """Return the upper ends, of 65536, of each kind's part of the leaves."""
        spec = self.spec
        leaves = 1 - 1 / spec.branching
        total = 0.0
        ends: list[tuple[int, Kind]] = []
        for share, kind in (
            (spec.duplicate_share, Kind.DUPLICATE),
            (spec.near_duplicate_share, Kind.NEAR_DUPLICATE),
            (spec.redirect_share, Kind.REDIRECT),
            (spec.gone_share, Kind.GONE),
            (spec.flaky_share, Kind.FLAKY),
        ):
            total += share / leaves
            ends.append((int(total * 65536), kind))
        return tuple(ends)

    def bits(self, host: Host, index: int) -> int:
        """Return the 64 bits that decide a page's kind, size and number of links."""
        return draws.draw(self.salt, host.key + index)

    def inner(self, size: int) -> int:
        """Return how many pages of a host of `size` pages have children (at least the home page)."""
        return max(1, (size - 2) // self.spec.branching + 1)

    def kind(self, host: Host, index: int, bits: int | None = None) -> Kind:
        """Return what a page answers; `bits` are the page's, where they are known already."""
        if index < self.inner(host.size):
            return Kind.PLAIN
        roll = (self.bits(host, index) if bits is None else bits) & 65535
        if roll >= self.thresholds[-1][0]:
            return Kind.PLAIN
        for end, kind in self.thresholds:
            if roll < end:
                return kind
        return Kind.PLAIN

    def original(self, host: Host, index: int) -> int:
        """Return the page that a copy repeats, or that a redirect leads to: always a plain one."""
        return (self.bits(host, index) >> 20) % self.inner(host.size)

    def content(self, host: Host, index: int) -> int:
        """Return the index of the page whose text and links a page shows: its own or another's."""
        kind = self.kind(host, index)
        copied = kind in (Kind.DUPLICATE, Kind.NEAR_DUPLICATE)
        return self.original(host, index) if copied else index

    def byte_size(self, bits: int) -> int:
        """Return the bytes that a page aims at, from its bits."""
        return self.sizes[bits >> 16 & 4095]

    def links(self, host: Host, index: int, bits: int) -> Links:
        """Return the links of a page with content of its own; `bits` are those of the page."""
        size = host.size
        first = index * self.spec.branching + 1
        drawn = self.degrees[bits >> 28 & 255] if size > 1 else 0
        last = first + self.spec.branching
        shown = self.spec.navigation if self.spec.navigation < size else size - 1
        menu = range(1, shown + 1)
        leaving = ((shown + 1 + drawn) * self.external_weight + (bits >> 36 & 65535)) >> 16
        seeds = draws.mix(bits)
        return Links(
            menu=menu,
            parent=(index - 1) // self.spec.branching if index else None,
            children=range(first if first < size else size, last if last < size else size),
            local=self._local(size, host.log_size, seeds & draws.MASK30, drawn),
            external=self._external(seeds >> 30 & draws.MASK30, leaving),
            homes=self.homes_below(host.source) if index == 0 else range(0),
            dead=(bits >> 52 & 1023) < self.dead_weight,
        )

    def _local(self, size: int, log_size: int, seed: int, count: int) -> list[int]:
        """Draw `count` indexes 1..size-1 by Zipf's law. The loop is `draws.zipf`, unrolled: a page
        spends most of its time here."""
        table, jitter, last = draws.EXP2, draws.JITTER, size - 1
        found: list[int] = []
        add = found.append
        for factor in self.multipliers[:count]:
            bits = (seed * factor & 0xFFFFFFFFFFFFFFF) >> 30
            scaled = bits * log_size >> 30
            octave = scaled >> 24
            rank = (table[scaled >> 12 & 4095] << octave >> 20) + (bits & jitter[octave])
            add(rank if rank < last else last)
        return found

    def _external(self, seed: int, count: int) -> list[tuple[int, int]]:
        """Draw `count` pages of any host: the host by Zipf's law, half of them its home page."""
        hosts, factors = self.hosts, self.multipliers
        total, log_total = len(hosts), hosts.log_count
        found: list[tuple[int, int]] = []
        for place in range(LINK_LIMIT, LINK_LIMIT + count):
            bits = (seed * factors[place] & draws.MASK60) >> 30
            rank = draws.zipf(bits, log_total)
            rank = rank - 1 if rank < total else total - 1
            index = 0
            if bits & 64:
                host = hosts.host(rank)
                inside = (seed * factors[place + EXTERNAL_LIMIT] & draws.MASK60) >> 30
                index = draws.zipf(inside, host.log_size)
                index = index if index < host.size else host.size - 1
            found.append((rank, index))
        return found

    def homes_below(self, rank: int) -> range:
        """Return the ranks of the hosts whose home pages a host's home page links to."""
        first = rank * HOST_BRANCHING + 1
        count = len(self.hosts)
        return range(min(first, count), min(first + HOST_BRANCHING, count))


def path_of(index: int) -> str:
    """Return the path of a page within its host."""
    return f"/s{index // DIRECTORY}/{index}.html" if index else "/"


def index_of(path: str) -> int | None:
    """Return the index that a path names, or None; only the one spelling of `path_of` counts."""
    if path == "/":
        return 0
    if not path.startswith("/s") or not path.endswith(".html"):
        return None
    digits = path[path.rfind("/") + 1 : -5]
    if not digits.isdecimal() or len(digits) > 12:
        return None
    index = int(digits)
    return index if index and path == path_of(index) else None
