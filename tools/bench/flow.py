"""What the machine room costs: provider call, connectors, filters, remote links, beside the tables 6.2 and 6.3 of Hunyadi 2007.

The thesis measured on an Athlon64 3000+ under Windows XP in 2007; its figures stand beside ours because it asks the
question, not because the machines compare. As there, remote connectors are measured over loopback.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

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
from gossamer.engine.unit import Provider

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


async def _median(measure: Callable[[], Awaitable[float]]) -> float:
    return statistics.median([await measure() for _ in range(REPEATS)])


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
    from gossamer.crawls.machine import loop_factory

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
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
        cost = await _median(measure)
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
