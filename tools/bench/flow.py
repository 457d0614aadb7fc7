"""The cost of the machine room: provider call, connectors, filters, remote links, beside the tables 6.2 and 6.3 of Hunyadi 2007.

The thesis measured on an Athlon64 3000+ under Windows XP in 2007; its figures stand beside ours because it asks the
question, not because the machines compare. As there, remote connectors are measured over loopback.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from gossamer.bench.harness import BenchReport
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


async def provider_call() -> None:
    """Call a bound provider."""
    caller = _Caller()
    caller.lookup = _Lookup()
    for _ in range(ITEMS):
        caller.lookup.get("x")


async def local_single() -> None:
    """Put items into a local connector and take them out, one by one."""
    connector = LocalConnector("bench", str)
    out, inlet = Out("out", connector), In("in", connector)
    for _ in range(ITEMS):
        await out.send("x")
        await inlet.receive()


async def local_bulk() -> None:
    """The same in bulks of 100."""
    connector = LocalConnector("bench", str)
    out, inlet = Out("out", connector), In("in", connector)
    bulk = URLS[:100]
    for _ in range(ITEMS // 100):
        await out.send_many(bulk)
        await inlet.receive_many(100)


async def _through(component: Any, inputs: list[str]) -> None:
    """Send items one by one through a running component between local connectors."""
    feeds = {role: LocalConnector(role, str) for role in inputs}
    result = LocalConnector("result", str)
    component.bind({role: In(role, c) for role, c in feeds.items()}, {"outbox": Out("outbox", result)})
    sources, sink = [Out("source", connector) for connector in feeds.values()], In("sink", result)

    async def feed(source: Out[str]) -> None:
        for _ in range(ITEMS):
            await source.send("x")
        source.close()

    async def drain() -> None:
        with suppress(EndOfItems):
            while True:
                await sink.receive()

    await asyncio.gather(Runner(component).run(), drain(), *(feed(source) for source in sources))


#: The building blocks of table 6.3: what is done, microseconds of the thesis, our bound, and how it is done with all items.
BLOCKS: tuple[tuple[str, str, str, Callable[[], Awaitable[None]]], ...] = (
    ("calling a provider method", "6", "0.5", provider_call),
    ("one item through a local connector", "12", "3", local_single),
    ("the same in bulks of 100, an item", "12", "0.3", local_bulk),
    ("one item through a simple filter", "32", "8", lambda: _through(_Simple(), ["inbox"])),
    ("one item through a complex filter", "58", "15", lambda: _through(_Complex(), ["left", "right"])),
)

#: Batch sizes of table 6.2 and the thesis' microseconds a URL.
THESIS_REMOTE = ((1, 921), (5, 628), (10, 419), (50, 408), (75, 359), (100, 359), (500, 372), (1000, 367))


async def remote(batch: int, items: int) -> float:
    """URLs through a remote connector, both ends in this process as in the thesis: microseconds a URL."""
    with tempfile.TemporaryDirectory() as folder:
        connector: Connector[str] = open_connector(
            Opening(
                name="bench",
                item_type=str,
                address=f"unix:{folder}/bench.sock",
                capacity=4 * max(batch, 256),
                options={"batch": batch},
                exchange=Exchange(),
            )
        )
        await connector.start()
        out, inlet = Out("out", connector), In("in", connector)

        async def send() -> None:
            for start in range(0, items, batch):
                offset = start % len(URLS)
                await out.send_many(URLS[offset : offset + batch])
            out.close()

        async def drain() -> None:
            with suppress(EndOfItems):
                while True:
                    await inlet.receive_many(1000)

        began = time.perf_counter()
        await asyncio.gather(send(), drain())
        seconds = time.perf_counter() - began
        await connector.stop()
        return seconds / items * 1e6


async def _timed(act: Callable[[], Awaitable[None]]) -> float:
    """Microseconds an item."""
    began = time.perf_counter()
    await act()
    return (time.perf_counter() - began) / ITEMS * 1e6


async def _measure(report: BenchReport) -> None:
    title = "Building blocks (Hunyadi 2007, table 6.3)"
    table = report.table(title, "action", "thesis us", "bound us", "here us", "here 1/s")
    for action, thesis, bound, act in BLOCKS:
        cost = statistics.median([await _timed(act) for _ in range(REPEATS)])
        table.add(action, thesis, bound, f"{cost:.2f}", f"{1e6 / cost:,.0f}")
    title = "Remote connector, one URL (Hunyadi 2007, table 6.2)"
    table = report.table(title, "link", "batch", "thesis us", "here us", "here 1/s")
    for batch, told in THESIS_REMOTE:
        cost = statistics.median([await remote(batch, 20_000 if batch == 1 else 300_000) for _ in range(REPEATS)])
        table.add("unix:", batch, told, f"{cost:.2f}", f"{1e6 / cost:,.0f}")


def run() -> BenchReport:
    """Measure everything and make the report."""
    from gossamer.crawls.machine import coroutine_runner

    report = BenchReport("flow")
    with coroutine_runner() as runner:
        runner.run(_measure(report))
    return report
