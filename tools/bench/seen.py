"""The cost of knowing which URLs are new, by the URL: in memory, in a trie, by a Bloom filter, in the ledger, and in bulk
by the sieve.

Two measurements at each size. *Filling*: so many new URLs, as pages of many hosts bring them in turn (popular hosts bring
most, after Zipf), a page's at once. *A page*: whole pages of a crawl that has come so far, 58 links of which 5 are new, the
others navigation of the site, pages of it, popular pages elsewhere. Only the sets' own time counts, making URLs does not;
what another thread does for a set counts as well. *Lost* are new URLs that a filter took for seen; *hits* are links of pages
that a table of recent URLs in front of the ledger knew (Mercator's figure is 85 %, Broder, Najork and Wiener 2003).
"""

import array
import asyncio
import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import numpy as np

from gossamer.bench.harness import BenchReport, Spent, apart
from gossamer.engine import processes
from gossamer.labs.bloom import BloomSeen, BloomSeenSheet
from gossamer.labs.trie.queues import TrieSeen, TrieSeenSheet
from gossamer.storage.seen.memory import MemorySeen
from gossamer.storage.seen.providers import SieveSeen, SieveSheet
from tools.bench.ledger import opened

#: Distinct links of a page, how many of them are new, lead elsewhere, are on every page of the site.
LINKS, NEW, OUTWARD, NAVIGATION = 58, 5, 8, 30

#: New URLs of a page while a set is filled: more than in a crawl's course, to come so far.
FILLED = 20

#: URLs of a host, on the average; the most popular has a thousand times as many.
SITE = 100

#: Exponent of the popularity of hosts: the Zipf law of links to hosts (Broder et al., WWW9, 2000: in-degrees go by 2.1).
EXPONENT = 1.1

#: Pages of the second measurement, and of the time before it, in which the set gets used to the sites in turn.
PAGES = 10_000

#: Sites that are in turn at once, as in a crawl of some hundred pages a second.
ACTIVE = 1_000

#: Pages of a commit.
GROUP = 32

#: URLs, unless told otherwise.
SIZES = (1_000_000, 10_000_000)

Pages = Sequence[list[str]]


class _Set:
    """A seen set as the benchmark uses it: the one in memory."""

    def __init__(self, folder: str, size: int) -> None:
        self._seen = MemorySeen()

    def offer(self, pages: Pages) -> int:
        """The links of a group of pages: how many are new at once."""
        return sum(len(self._seen.offer(urls)) for urls in pages)

    def end(self) -> int:
        """Decide what is not; how many of it are new."""
        return 0

    def disk(self) -> int:
        return 0

    def begin(self) -> None:
        """Questions from here on count among the hits."""

    def hits(self) -> str:
        """Share of all questions that a table in front answered."""
        return ""


class _Logged(_Set):
    """A trie or a filter, with the ledger that its log commits with, as in a crawl."""

    def __init__(self, folder: str, seen: TrieSeen | BloomSeen) -> None:
        self._ledger, _ = opened(folder)
        self._log = seen
        seen.ledger = self._ledger
        seen.open()

    def offer(self, pages: Pages) -> int:
        with self._ledger.group():
            return sum(len(self._log.offer(urls)) for urls in pages)

    def end(self) -> int:
        self._log.unseen([])
        return 0

    def disk(self) -> int:
        return self._log.trie.files.size() if isinstance(self._log, TrieSeen) else _size(self._log.home)


class _Ledger(_Set):
    def __init__(self, folder: str, size: int) -> None:
        self._ledger, _ = opened(folder)

    def offer(self, pages: Pages) -> int:
        with self._ledger.group() as group:
            return sum(len(group.offer(urls)) for urls in pages)

    def disk(self) -> int:
        return sum(self._ledger.sizes().values())

    def begin(self) -> None:
        self._ledger.seen.asked = self._ledger.seen.missed = 0

    def hits(self) -> str:
        seen = self._ledger.seen
        return f"{1 - seen.missed / max(1, seen.asked):.1%}"


class _Sieve(_Set):
    """Drained as soon as something has come out."""

    def __init__(self, folder: str, size: int) -> None:
        self._sieve = SieveSeen(SieveSheet(directory=folder))
        self._sieve.open()

    def offer(self, pages: Pages) -> int:
        self._sieve.offer([url for urls in pages for url in urls])
        return self._drained() if self._sieve.ready else 0

    def _drained(self) -> int:
        return sum(map(len, iter(lambda: self._sieve.drain(10_000), [])))

    def end(self) -> int:
        asyncio.run(self._sieve.settle())
        return self._drained()

    def disk(self) -> int:
        return _size(self._sieve.home)


def _size(home: Path) -> int:
    return sum(path.stat().st_size for path in home.iterdir())


#: Sets, how they are made for a size, and the sizes beyond which they are not asked for more: they would not fit, or take an hour.
SETS: dict[str, tuple[Callable[[str, int], _Set], int]] = {
    "memory": (_Set, 20_000_000),
    "trie": (lambda folder, size: _Logged(folder, TrieSeen(TrieSeenSheet(directory=folder))), 1_000_000),
    "bloom": (
        lambda folder, size: _Logged(folder, BloomSeen(BloomSeenSheet(directory=folder, capacity=size))),
        20_000_000,
    ),
    "ledger": (_Ledger, 10_000_000),
    "sieve": (_Sieve, 1_000_000_000),
}


class _Web:
    """URLs with the locality of links: which hosts, how many pages of each are known."""

    def __init__(self, urls: int) -> None:
        self._known = array.array("I", bytes(4 * (urls // SITE)))
        self._draws = np.random.default_rng(1)
        ranks = np.arange(1, len(self._known) + 1, dtype=np.float64) ** -EXPONENT
        self._shares = np.cumsum(ranks) / ranks.sum()

    def _hosts(self, count: int) -> list[int]:
        found = np.searchsorted(self._shares, self._draws.random(count))
        return [int(rank) for rank in found]

    def _fresh(self, host: int, count: int) -> list[str]:
        first = self._known[host]
        self._known[host] = first + count
        return [f"https://www.site-{host}.example/section/page-{n}.html" for n in range(first, first + count)]

    def new(self, urls: int) -> Iterator[list[str]]:
        """So many new URLs, page by page."""
        while urls > 0:
            for host in self._hosts(min(10_000, -(-urls // FILLED))):
                yield self._fresh(host, min(FILLED, urls))
                urls -= FILLED

    def pages(self, count: int) -> Iterator[list[str]]:
        """The links of whole pages."""
        chance = random.Random(2)
        active = self._hosts(ACTIVE)
        elsewhere = self._hosts(OUTWARD * count)
        for number in range(count):
            if chance.random() < 0.05:
                active[number % ACTIVE] = self._hosts(1)[0]
            host = active[number % ACTIVE]
            known = max(self._known[host], LINKS)
            inward = {chance.randrange(known) for _ in range(LINKS - NEW - OUTWARD - NAVIGATION)}
            links = [f"https://www.site-{host}.example/section/page-{n}.html" for n in {*range(NAVIGATION), *inward}]
            outward = elsewhere[number * OUTWARD : (number + 1) * OUTWARD]
            links += [f"https://www.site-{other}.example/section/page-0.html" for other in outward]
            yield links + self._fresh(host, NEW)


def measure(name: str, size: int) -> tuple[str, ...]:
    """One row: a set at one size. The work of other threads for a set is all theirs."""
    web = _Web(size)
    with tempfile.TemporaryDirectory() as folder:
        before = processes.resident() / 1e6
        seen = SETS[name][0](folder, size)
        peak, new = before, 0
        filling, others = Spent(), _others()
        for number, pages in enumerate(_groups(web.new(size))):
            with filling:
                new += seen.offer(pages)
            if number % 100 == 0:
                peak = max(peak, processes.resident() / 1e6)
        with filling:
            new += seen.end()
        filled = filling.thread + _others() - others
        if new != size and name != "bloom":
            raise AssertionError(f"{name} let {new} of {size} new URLs out")
        for pages in _groups(web.pages(PAGES)):
            seen.offer(pages)
        seen.end()
        seen.begin()
        asking, others, asked = Spent(), _others(), 0
        for pages in _groups(web.pages(PAGES)):
            asked += sum(map(len, pages))
            with asking:
                seen.offer(pages)
        longest = asking.longest
        with asking:
            seen.end()
        spent = asking.thread + _others() - others
        peak, disk = max(peak, processes.resident() / 1e6), seen.disk()
    return (
        *(name, f"{size:,}", f"{filled / size * 1e6:.2f}", f"{size / filled / 1e3:,.0f}k"),
        *(f"{spent / asked * 1e6:.2f}", f"{asked / spent / 1e3:,.0f}k", f"{longest * 1e3:.0f}"),
        *(f"{peak - before:.0f}", f"{(peak - before) * 1e6 / size:.1f}", f"{disk / size:.1f}"),
        *(f"{size - new:,}" if name == "bloom" else "", seen.hits()),
    )


def _others() -> float:
    return time.process_time() - time.thread_time()


def _groups(pages: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    while group := list(itertools.islice(pages, GROUP)):
        yield group


@click.option("--urls", type=click.IntRange(1), multiple=True, default=SIZES, help="Use this many URLs (repeatable).")
@click.option("--set", "sets", type=click.Choice(list(SETS)), multiple=True, help="Measure only this set (repeatable).")
def run(urls: Sequence[int] = SIZES, sets: Sequence[str] = ()) -> BenchReport:
    """Measure each set of seen URLs at each size that it can take, each in a process of its own."""
    report = BenchReport("seen")
    table = report.table(
        "Seen sets, CPU time (aim of the sieve: 500k/s while it is filled, 8-16 bytes on the disk)",
        *("set", "URLs", "filling us a URL", "1/s", f"page of {LINKS} us a URL", "1/s"),
        *("longest group ms", "MB more", "bytes a URL", "disk a URL", "lost", "hits"),
    )
    for size in urls:
        for name, (_, most) in SETS.items():
            if size <= most and (not sets or name in sets):
                table.add(*apart("tools.bench.seen:measure", name, size))
    return report
