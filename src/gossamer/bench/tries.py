"""The disk trie by itself, as Ridgway measured his (2010, table 6): so many entries written, then each checked.

Cache on or off: 1,000 chunks that have not changed, or none. Flushed: what has changed is written and waited for after every 1,000
entries; not flushed: it is written once, at the end. In a crawl the ledger's log stands behind it (:mod:`gossamer.bench.seen`).
"""

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gossamer.bench.report import BenchReport
from gossamer.labs.trie.chunks import UrlKeys
from gossamer.labs.trie.queues import TrieTurns
from gossamer.labs.trie.tree import DiskTrie

#: Entries of the seed's table, and a million.
SIZES = (1_000, 10_000, 100_000, 1_000_000)

#: Beyond these entries it is not measured with a flush after every thousand, or without a cache: either would take an hour.
MOST_FLUSHED, MOST_UNCACHED = 100_000, 10_000

#: Entries between two flushes.
FLUSHED = 1_000

CACHE = 1_000


def _urls(size: int) -> list[str]:
    urls = [f"https://www.site-{n // 100}.example/section/page-{n % 100}.html" for n in range(size)]
    random.Random(1).shuffle(urls)
    return urls


def _row(size: int, cache: int, *, flushed: bool) -> tuple[str, ...]:
    urls, keys = _urls(size), UrlKeys()
    with tempfile.TemporaryDirectory() as folder:
        trie = DiskTrie(Path(folder), cache, sync=flushed)
        cpu, wall = time.process_time(), time.perf_counter()
        for number, url in enumerate(urls, 1):
            trie.put(keys.of(url))
            if flushed and number % FLUSHED == 0:
                trie.checkpoint()
        trie.checkpoint()
        for url in urls:
            if not trie.holds(keys.of(url)):
                raise AssertionError(f"{url} was written and is not there")
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        disk = trie.files.size()
        trie.close()
    return (
        f"{size:,}",
        "on" if cache else "off",
        "every 1,000" if flushed else "at the end",
        f"{wall * 1e3:,.0f}",
        f"{cpu * 1e3:,.0f}",
        f"{cpu / size * 1e6:.1f}",
        f"{trie.loads:,}",
        f"{disk / size:.0f}",
    )


def _queue_row(size: int) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        trie = DiskTrie(Path(folder), CACHE)
        turns = TrieTurns(trie)
        began = time.process_time()
        for url in _urls(size):
            turns.push(url)
        trie.checkpoint()
        pushed = time.process_time() - began
        hosts = []
        while (taken_url := turns.take()) is not None:
            hosts.append(taken_url.split("/")[2])
            turns.done(taken_url)
        taken = time.process_time() - began - pushed
        trie.close()
    if len(hosts) != size:
        raise AssertionError(f"{size} URLs went in and {len(hosts)} came out")
    sites = size // 100
    rounds = [len(set(hosts[at : at + sites])) / sites for at in range(0, size, sites)]
    return f"{size:,}", f"{pushed / size * 1e6:.1f}", f"{taken / size * 1e6:.1f}", f"{min(rounds):.2f}"


def run(sizes: Sequence[int] = SIZES) -> BenchReport:
    """Measure, and make the report."""
    report = BenchReport("tries")
    table = report.table(
        "Entries written, then checked (the seed's table 6)",
        *("entries", "cache", "flushed", "ms", "CPU ms", "CPU us an entry", "chunks read", "disk bytes an entry"),
    )
    for size in sizes:
        for cache in (CACHE, 0):
            for flushed in (True, False):
                if size <= (MOST_FLUSHED if flushed else size) and (cache or size <= MOST_UNCACHED):
                    table.rows.append(_row(size, cache, flushed=flushed))
    queue = report.table(
        "As a queue: hosts of which a URL comes in a round of as many URLs as there are hosts",
        *("URLs", "push us", "take and finish us", "least share of hosts in a round"),
    )
    queue.rows += [_queue_row(size) for size in sizes if size <= MOST_FLUSHED]
    return report
