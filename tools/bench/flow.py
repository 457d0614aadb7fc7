"""What the machine room costs: provider call, connectors, filters, remote links, beside the tables 6.2 and 6.3 of Hunyadi 2007.

The thesis measured on an Athlon64 3000+ under Windows XP in 2007; its figures stand beside ours because it asks the
question, not because the machines compare. As there, remote connectors are measured over loopback.

Parts by choice, by themselves: the disk trie as Ridgway measured his (2010, table 6), and how evenly hosts come out of
task queues with and without a diversity threshold (his table 2).

*tries*: so many entries are written, then each is checked. Cache on or off: 1,000 chunks that have not changed, or none.
Flushed: what has changed is written and waited for after every 1,000 entries; not flushed: it is written once, at the end.
In a crawl the ledger's log stands behind it.

*diversity*: so many tasks of a thousand hosts, popped by a frontier that stays with a host as long as it gives something
(the worst case), and by one that takes hosts in turn, as politeness does. No network, no delays. A page's *diversity* is the
share of its most common host, as in the seed. A second table is the seed's own: the threshold tuned to five rates of
requests, and the share of the most common host in any second.
"""

import asyncio
import random
import statistics
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gossamer.bench.harness import Spent
from gossamer.bench.report import BenchReport
from gossamer.engine.component import Filter, SynchronousFilter
from gossamer.engine.connector import Connector
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.errors import EndOfItems
from gossamer.engine.local import LocalConnector
from gossamer.engine.remote.links import Exchange
from gossamer.engine.runner import Runner
from gossamer.engine.sheet import NoSettings
from gossamer.engine.transports import Opening, open_connector
from gossamer.engine.unit import Provider, SystemClock
from gossamer.labs.diverse import DiverseQueues, DiverseQueuesSheet
from gossamer.labs.trie.chunks import key_of
from gossamer.labs.trie.queues import TrieTurns
from gossamer.labs.trie.tree import DiskTrie
from gossamer.storage.ledger.contract import TaskQueues
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.values.task import Task
from tools.bench.ledger import opened

#: Runs of each measurement; the median is printed, because a shared machine has bad moments.
REPEATS = 5

#: Items of one measurement: long enough to drown the start, short enough for a coffee-free benchmark.
ITEMS = 100_000

URLS = [f"https://www.example-{n % 97}.org/section/{n // 97}/page-{n}.html?lang=en" for n in range(10_000)]


class _Lookup(Provider[NoSettings]):
    """A provider with one method, for the price of a call."""

    def get(self, key: str) -> str:
        return key


class _Simple(Filter[NoSettings]):
    """One item in, one item out."""

    inbox: In[str]
    outbox: Out[str]

    def filter(self, item: str) -> Iterable[str]:
        return (item,)


class _Complex(SynchronousFilter[NoSettings]):
    """One item from each of two inputs in, one out."""

    left: In[str]
    right: In[str]
    outbox: Out[str]

    def filter(self, left: str, right: str) -> Iterable[str]:
        return (left,)


class _Caller(Filter[NoSettings]):
    lookup: Uses[_Lookup]


#: Batch sizes of table 6.2 and the thesis' microseconds a URL.
THESIS_REMOTE = ((1, 921), (5, 628), (10, 419), (50, 408), (75, 359), (100, 359), (500, 372), (1000, 367))


async def provider_call() -> float:
    """One call of a bound provider, microseconds."""
    caller = _Caller()
    caller.lookup = _Lookup()
    began = time.perf_counter()
    for _ in range(ITEMS):
        caller.lookup.get("x")
    return (time.perf_counter() - began) / ITEMS * 1e6


async def local_single() -> float:
    """One item through a local connector, microseconds: put in, taken out."""
    connector = LocalConnector("bench", str)
    out, inlet = Out("out", connector), In("in", connector)
    began = time.perf_counter()
    for _ in range(ITEMS):
        await out.send("x")
        await inlet.receive()
    return (time.perf_counter() - began) / ITEMS * 1e6


async def local_bulk() -> float:
    """The same in bulks of 100, microseconds an item."""
    connector = LocalConnector("bench", str)
    out, inlet = Out("out", connector), In("in", connector)
    bulk = URLS[:100]
    began = time.perf_counter()
    for _ in range(ITEMS // 100):
        await out.send_many(bulk)
        await inlet.receive_many(100)
    return (time.perf_counter() - began) / ITEMS * 1e6


async def _through(component: Any, inputs: list[str]) -> float:
    """Items one by one through a running component between local connectors, microseconds an item."""
    feeds = {role: LocalConnector(role, str) for role in inputs}
    result = LocalConnector("result", str)
    component.bind({role: In(role, c) for role, c in feeds.items()}, {"outbox": Out("outbox", result)})
    sources, sink = [Out("source", connector) for connector in feeds.values()], In("sink", result)

    async def feed(source: Out[str]) -> None:
        for _ in range(ITEMS):
            await source.send("x")
        source.close()

    began = time.perf_counter()
    await asyncio.gather(Runner(component).run(), _count(sink), *(feed(source) for source in sources))
    return (time.perf_counter() - began) / ITEMS * 1e6


async def _count(sink: In[str]) -> int:
    count = 0
    try:
        while True:
            await sink.receive()
            count += 1
    except EndOfItems:
        return count


async def simple_filter() -> float:
    """One item through a simple filter, with both its connectors, microseconds."""
    return await _through(_Simple(), ["inbox"])


async def complex_filter() -> float:
    """One item from each of two inputs through a synchronous filter, with its three connectors, microseconds."""
    return await _through(_Complex(), ["left", "right"])


async def remote(scheme: str, batch: int, items: int) -> float:
    """URLs through a remote connector, both ends in this process as in the thesis: microseconds a URL."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{Path(folder) / 'bench.sock'}" if scheme == "unix" else "tcp:127.0.0.1:0"
        exchange = Exchange()
        connector: Connector[str] = open_connector(
            Opening(
                name="bench",
                item_type=str,
                address=address,
                capacity=4 * max(batch, 256),
                options={"batch": batch},
                exchange=exchange,
            )
        )
        await connector.start()
        out, inlet = Out("out", connector), In("in", connector)
        began = time.perf_counter()
        await asyncio.gather(_send(out, batch, items), _drain(inlet))
        seconds = time.perf_counter() - began
        await connector.stop()
        return seconds / items * 1e6


async def _send(out: Out[str], batch: int, items: int) -> None:
    for start in range(0, items, batch):
        offset = start % len(URLS)
        await out.send_many(URLS[offset : offset + batch])
    out.close()


async def _drain(inlet: In[str]) -> None:
    try:
        while True:
            await inlet.receive_many(1000)
    except EndOfItems:
        return


def run() -> BenchReport:
    """Measure everything and make the report."""
    from gossamer.crawls.machine import coroutine_runner

    with coroutine_runner() as runner:
        return runner.run(_measure())


async def _measure() -> BenchReport:
    report = BenchReport("flow")
    table = report.table(
        "Building blocks (Hunyadi 2007, table 6.3)", "action", "thesis us", "bound us", "here us", "here 1/s"
    )
    for action, thesis, bound, measure in (
        ("calling a provider method", "6", "0.5", provider_call),
        ("one item through a local connector", "12", "3", local_single),
        ("the same in bulks of 100, an item", "12", "0.3", local_bulk),
        ("one item through a simple filter", "32", "8", simple_filter),
        ("one item through a complex filter", "58", "15", complex_filter),
    ):
        cost = statistics.median([await measure() for _ in range(REPEATS)])
        table.add(action, thesis, bound, f"{cost:.2f}", f"{1e6 / cost:,.0f}")
    table = report.table(
        "Remote connector, one URL (Hunyadi 2007, table 6.2)", "link", "batch", "thesis us", "here us", "here 1/s"
    )
    for batch, told in THESIS_REMOTE:
        items = 20_000 if batch == 1 else 300_000
        costs = [await remote("unix", batch, items) for _ in range(REPEATS)]
        cost = statistics.median(costs)
        table.add("unix:", batch, told, f"{cost:.2f}", f"{1e6 / cost:,.0f}")
    return report


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


def _trie_row(size: int, cache: int, *, flushed: bool) -> tuple[str, ...]:
    urls = _urls(size)
    with tempfile.TemporaryDirectory() as folder:
        trie = DiskTrie(Path(folder), cache, sync=flushed)
        with Spent() as spent:
            for number, url in enumerate(urls, 1):
                trie.put(key_of(url))
                if flushed and number % FLUSHED == 0:
                    trie.checkpoint()
            trie.checkpoint()
            for url in urls:
                if not trie.holds(key_of(url)):
                    raise AssertionError(f"{url} was written and is not there")
        disk = trie.files.size()
        trie.close()
    return (
        *(f"{size:,}", "on" if cache else "off", "every 1,000" if flushed else "at the end"),
        *(f"{spent.wall * 1e3:,.0f}", f"{spent.cpu * 1e3:,.0f}", f"{spent.cpu / size * 1e6:.1f}"),
        *(f"{trie.loads:,}", f"{disk / size:.0f}"),
    )


def _queue_row(size: int) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        trie = DiskTrie(Path(folder), CACHE)
        turns, pushing, taking, hosts = TrieTurns(trie), Spent(), Spent(), list[str]()
        with pushing:
            for url in _urls(size):
                turns.push(url)
            trie.checkpoint()
        with taking:
            while (taken := turns.take()) is not None:
                hosts.append(taken.split("/")[2])
                turns.done(taken)
        trie.close()
    if len(hosts) != size:
        raise AssertionError(f"{size} URLs went in and {len(hosts)} came out")
    sites = size // 100
    rounds = [len(set(hosts[at : at + sites])) / sites for at in range(0, size, sites)]
    return f"{size:,}", f"{pushing.cpu / size * 1e6:.1f}", f"{taking.cpu / size * 1e6:.1f}", f"{min(rounds):.2f}"


def tries(sizes: Sequence[int] = SIZES) -> BenchReport:
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
                    table.rows.append(_trie_row(size, cache, flushed=flushed))
    queue = report.table(
        "As a queue: hosts of which a URL comes in a round of as many URLs as there are hosts",
        *("URLs", "push us", "take and finish us", "least share of hosts in a round"),
    )
    queue.rows += [_queue_row(size) for size in sizes if size <= MOST_FLUSHED]
    return report


HOSTS = 1_000

#: Tasks of a page, and the share that a host may have of it.
PAGE, THRESHOLD = 1_000, 0.01

#: Tasks that are in flight before they are committed together.
FLYING = 320

#: URLs and requests a second of the seed's table 2.
RATES = ((100, 10), (1_000, 50), (10_000, 100), (100_000, 1_000), (1_000_000, 1_000))


class _SteadyPace(SystemClock):
    """So many requests a second, whatever time it takes to find them."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def _pushed(ledger: RocksLedger, tasks: int, among: int = HOSTS) -> None:
    """As many tasks of each host, in no order."""
    chance = random.Random(1)
    numbers = [number % among for number in range(tasks)]
    chance.shuffle(numbers)
    for start in range(0, tasks, 10_000):
        hosts = [f"www.site-{number}.example" for number in numbers[start : start + 10_000]]
        with ledger.group() as group:
            group.push(Task(f"https://{host}/{start + n}", host) for n, host in enumerate(hosts))


def _popped(ledger: RocksLedger, queues: TaskQueues, *, in_turn: bool) -> Iterator[str]:
    """The host of each task, in the order in which they come."""
    ready: deque[str] = deque()
    flying: list[str] = []
    while len(queues):
        if not ready:
            ready.extend(state.host for state in queues.admit(0.0))
        while ready:
            tasks = queues.pop(ready[0])
            if not tasks:
                ready.popleft()
                continue
            yield tasks[0].host
            flying.append(tasks[0].url)
            if in_turn:
                ready.rotate(-1)
            if len(flying) >= FLYING:
                break
        with ledger.group() as group:
            for url in flying:
                group.done(url)
        flying.clear()


def _at_a_rate(tasks: int, rate: int) -> tuple[str, ...]:
    """A row of the seed's table: as many domains as are asked in a second, so that each can come once."""
    clock, queues = _SteadyPace(), DiverseQueues(DiverseQueuesSheet(page=PAGE))
    with tempfile.TemporaryDirectory() as folder:
        queues.ledger, queues.behind = opened(folder)
        queues.clock = clock
        _pushed(queues.ledger, tasks, rate)
        second: Counter[str] = Counter()
        peak = out = 0
        for host in _popped(queues.ledger, queues, in_turn=False):
            out += 1
            clock.seconds = out / rate
            second[host] += 1
            if out % rate == 0:
                peak = max(peak, *second.values())
                second.clear()
        queues.ledger.abandon()
    return f"{tasks:,}", f"{out:,}", f"{rate:,}", f"{1 / rate:g}", f"{peak / rate:g}"


def _diversity_row(name: str, tasks: int, *, in_turn: bool) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        ledger, own = opened(folder)
        queues: TaskQueues = own
        if name == "by pages":
            queues = diverse = DiverseQueues(DiverseQueuesSheet(page=PAGE, threshold=THRESHOLD))
            diverse.behind, diverse.ledger = own, ledger
        _pushed(ledger, tasks)
        with Spent() as spent:
            hosts = list(_popped(ledger, queues, in_turn=in_turn))
        ledger.abandon()
    pages = [Counter(hosts[at : at + PAGE]) for at in range(0, len(hosts) - PAGE + 1, PAGE)]
    shares = sorted(max(page.values()) / PAGE for page in pages)
    return (
        *(name, "in turn" if in_turn else "host by host", f"{tasks:,}", f"{len(hosts):,}"),
        *(f"{shares[len(shares) // 2]:.3f}", f"{shares[-1]:.3f}", f"{spent.thread / len(hosts) * 1e6:.1f}"),
    )


def diversity() -> BenchReport:
    """Measure both, and make the report."""
    report = BenchReport("diversity")
    table = report.table(
        f"Pages of {PAGE:,} tasks of {HOSTS:,} hosts; threshold {THRESHOLD}",
        *("queues", "frontier", "tasks in", "out", "diversity, median", "peak", "us a task"),
    )
    seed = report.table(
        "Threshold tuned to the pace, as in the seed's table 2",
        *("URLs in", "URLs out", "requests a second", "expected diversity", "peak diversity of a second"),
    )
    seed.rows += [_at_a_rate(tasks, rate) for tasks, rate in RATES]
    for tasks in (10_000, 100_000):
        for in_turn in (False, True):
            table.rows += [_diversity_row(name, tasks, in_turn=in_turn) for name in ("the ledger's", "by pages")]
    return report
