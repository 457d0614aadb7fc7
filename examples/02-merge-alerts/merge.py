"""Alerts about a crawl: a semi-synchronous filter merges two kinds of events into one stream, as they come.

    python examples/02-merge-alerts/merge.py CRAWL/logs/crawl.jsonl

`Merge` does not wait for its inputs to pair up: an item of either is handled when it comes, and what it makes is out
before the next one. It keeps count over both, so that a host is reported once however it misbehaves.
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.engine.component import Consumer, Filter, Producer, SemiSynchronousFilter
from gossamer.engine.ends import In, Out
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.wiring import read, with_settings

HERE = Path(__file__).parent

#: Outcomes that a person should look at when there are many.
FAILURES = {"server_error", "dns_failed", "connect_failed", "tls_failed", "timed_out", "too_slow", "protocol_failed"}


class Row(msgspec.Struct, frozen=True):
    """What the log says of a visit."""

    url: str
    host: str
    outcome: str
    elapsed_ms: float = 0.0


class Alert(msgspec.Struct, frozen=True):
    """Something about a host."""

    host: str
    text: str


class LogSheet(Sheet, frozen=True):
    """Which log."""

    path: Annotated[str, setting("The crawl's log.")]


class CrawlLog(Producer[LogSheet]):
    """The pages of a crawl, in the order of their commits."""

    outbox: Out[Row]

    def produce(self) -> Iterator[Row]:
        """One for each page."""
        with Path(self.sheet.path).open("rb") as lines:
            for line in lines:
                row = msgspec.json.decode(line)
                if row["event"] == "page":
                    yield msgspec.convert(row, Row)


class SortSheet(Sheet, frozen=True):
    """What counts as slow."""

    slow: Annotated[float, setting("Answers that take longer are slow.", unit="s", gt=0)] = 5.0


class Sort(Filter[SortSheet]):
    """Two outputs: plain code says by name where an item goes."""

    inbox: In[Row]
    failures: Out[Row]
    slow: Out[Row]

    def filter(self, row: Row) -> None:
        """A row may be of both kinds."""
        if row.outcome in FAILURES:
            self.failures.emit(row)
        if row.elapsed_ms > self.sheet.slow * 1000:
            self.slow.emit(row)


class Merge(SemiSynchronousFilter[NoSettings]):
    """One stream of alerts; each host once."""

    failures: In[Row]
    slow: In[Row]
    outbox: Out[Alert]

    async def start(self) -> None:
        """No host has been reported yet."""
        self._reported: set[str] = set()

    def on_failures(self, row: Row) -> list[Alert]:
        """A request that failed."""
        return self._alert(row, f"{row.outcome} at {row.url}")

    def on_slow(self, row: Row) -> list[Alert]:
        """An answer that took long."""
        return self._alert(row, f"{row.elapsed_ms / 1000:.1f} s for {row.url}")

    def _alert(self, row: Row, text: str) -> list[Alert]:
        if row.host in self._reported:
            return []
        self._reported.add(row.host)
        return [Alert(row.host, text)]


class Show(Consumer[NoSettings]):
    """Prints."""

    inbox: In[Alert]

    def consume(self, item: Alert) -> None:
        """One line for each alert."""
        print(f"{item.host}: {item.text}")


CATALOG = Catalog({"crawl-log": CrawlLog, "sort": Sort, "merge": Merge, "show": Show})


async def main(log: str) -> None:
    """Show the alerts of a log."""
    wiring = with_settings(read(HERE / "wiring.toml"), "log", {"path": log})
    await RunningGraph(plan(wiring, CATALOG)).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
