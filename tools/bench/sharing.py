"""What each way to share a crawl costs, and table 8 of Ridgway 2010 on a simulated web.

Crawls run as commands, on all processors, beside the server of the simulated web. Two tables: one process, agents with a queue
each, and crawlers that share one queue by leases, on the same pages; and crawls to depth 5 and 6, as in table 8, by each of
these, and by each kind of seen set. The *tail* is the last tenth of the pages of a crawl: Ridgway's crawls slowed down there.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from gossamer.bench.harness import ALONE, PLAIN, SEED, accounted, at, begun, by_turns, middle, pages_option, simulated
from gossamer.bench.report import BenchReport
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.engine.wiring import changed, write
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.values.errors import UsageError

#: Pages of a simulated web, and pages of one of its hosts.
PAGES, EACH = 4_000, 50

#: A web in which depth says how much is fetched: pages have few links, most of them to the pages below.
DEEP = ("links=6", "branching=2", "navigation=2")

#: Depths of table 8.
DEPTHS = (5, 6)

#: The ways to run a crawl: name -> options.
WAYS: Mapping[str, Sequence[str]] = {
    "one process": ALONE,
    "2 agents, a queue each": ("--agents", "2"),
    "1 crawler by leases": ("--crawlers", "1"),
    "2 crawlers by leases": ("--crawlers", "2"),
}

#: Kinds of seen set: name -> what is changed in the shipped wiring. Without a limit of depth, since with one the ledger's is asked.
SETS: Mapping[str, str] = {
    "ledger": "",
    "url-trie": '[providers.seen]\nuse = "url-trie"\nproviders = { ledger = "ledger" }\n',
    "bloom-seen": '[providers.seen]\nuse = "bloom-seen"\nproviders = { ledger = "ledger" }\n',
    "sieve": """
[providers.sieve]
use = "sieve"
providers = { ledger = "ledger" }
[providers.sieved-ledger]
use = "sieve-ledger"
providers = { behind = "ledger", sieve = "sieve" }
[providers.ledger-queues]
use = "ledger-frontier"
providers = { ledger = "ledger" }
[providers.queues]
use = "sieve-queues"
providers = { behind = "ledger-queues", ledger = "ledger", sieve = "sieve" }
[providers.seen]
use = "sieve-hint"
providers = { sieve = "sieve" }
[components.frontier.providers]
ledger = "sieved-ledger"
[components.commit.providers]
ledger = "sieved-ledger"
""",
}

#: Part of the pages of a crawl that is its tail.
TAIL = 0.1


class SharedCrawl(msgspec.Struct, frozen=True):
    """One crawl that was run to its end."""

    pages: int
    seconds: float
    """From the first page to the last."""
    cpu: float
    bytes: int
    tail: float
    """Pages a second among the last of :data:`TAIL`."""
    received: int
    """URLs that agents sent each other."""

    @property
    def pace(self) -> float:
        return self.pages / self.seconds


@pages_option(PAGES, "Crawl a web of this many pages.")
def run(pages: int = PAGES, repeats: int = 3) -> BenchReport:
    """Measure each way to share a crawl; each row of the first table is the median of so many runs in turn."""
    report = BenchReport("sharing")
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        _ways(report, Path(folder), pages, repeats)
        _table_8(report, Path(folder), pages)
    return report


def _ways(report: BenchReport, folder: Path, pages: int, repeats: int) -> None:
    numbers = count()
    with simulated(pages, pages // EACH, *PLAIN) as port:
        kinds = {
            name: lambda options=options: _crawled(folder / f"{next(numbers)}", port, options)
            for name, options in WAYS.items()
        }
        runs = by_turns(kinds, repeats)
        told = _told(folder / "told", port)
    if len({run.pages for those in runs.values() for run in those}) > 1:
        raise UsageError(
            f"crawls of one web have different pages: { {name: those[0].pages for name, those in runs.items()} }"
        )
    alone = runs["one process"]
    had = alone[0].pages
    table = report.table(
        f"{had:,} pages on {pages // EACH} hosts, median of {repeats} runs",
        *("what", "pages/s", "ms of CPU a page", "of one process, median of pairs", "sent between processes, a page"),
    )
    for name, those in runs.items():
        sent = {"2 agents, a queue each": f"{those[0].received / had:.2f} URLs", "2 crawlers by leases": told}
        table.add(
            name,
            f"{middle(those, 'pace'):,.0f}",
            f"{statistics.median(1e3 * run.cpu / run.pages for run in those):.2f}",
            f"{statistics.median(run.cpu / other.cpu for run, other in zip(those, alone, strict=True)):.2f}",
            sent.get(name, ""),
        )


def _table_8(report: BenchReport, folder: Path, pages: int) -> None:
    table = report.table(
        "Table 8 of Ridgway 2010, on a simulated web",
        *("depth", "processes", "seen set", "seconds", "pages", "pages/s", "MB fetched", "tail, pages/s"),
    )

    def add(depth: str, name: str, kind: str, run: SharedCrawl) -> None:
        table.add(
            *(depth, name, kind, f"{run.seconds:.1f}", f"{run.pages:,}", f"{run.pace:,.0f}"),
            *(f"{run.bytes / 1e6:,.1f}", f"{run.tail:,.0f}"),
        )

    with simulated(pages, pages // EACH, *PLAIN, *DEEP) as port:
        for depth in DEPTHS:
            for name, options in WAYS.items():
                run = _crawled(folder / f"{depth}-{name}", port, [*options, "--depth", str(depth)])
                add(str(depth), name, "ledger", run)
        for kind, text in SETS.items():
            wiring = folder / f"{kind}.toml"
            write(wiring, changed(shipped("default"), text))
            run = _crawled(folder / kind, port, [*ALONE, "--wiring", str(wiring)])
            add("any", "one process", kind, run)


def _crawled(directory: Path, port: int, options: Sequence[str]) -> SharedCrawl:
    run, _ = accounted([begun(directory, port, options)])
    times = sorted(_times(directory))
    last = times[-max(2, round(TAIL * len(times))) :]
    tail = (len(last) - 1) / max(1e-3, last[-1] - last[0])
    received = 0
    for ledger in ledgers_of(directory):
        with ledger.looking():
            received += ledger.counters().get("received", 0)
    return SharedCrawl(run.pages, times[-1] - times[0], run.cpu, run.bytes, tail, received)


def _times(directory: Path) -> list[float]:
    found = []
    with (directory / "logs/crawl.jsonl").open("rb") as lines:
        for line in lines:
            row: dict[str, Any] = msgspec.json.decode(line)
            if row["event"] == "page" and row["outcome"] == "ok":
                found.append(datetime.fromisoformat(row["fetched_at"]).timestamp())
    return found


def _told(directory: Path, port: int) -> str:
    """What crosses between the keeper of the queue and its crawlers, for a page: leases, answers, visits; and renewals a second."""
    quick = {"delay": 0, "domain_delay": 0, "ip_delay": 0, "scope": "any", "allow_network": ["127.0.0.0/8"]}
    given = {"output": str(directory), "resolve": list(at(port)), "crawlers": 2, **quick}
    job = Crawl([SEED], build(all_options(), given), tables=False)
    began = time.monotonic()
    summary = asyncio.run(job.run())
    passed: dict[str, int] = {}
    for name, seen in job.connector_statistics.items():
        kind = name.partition("-crawler-")[0]
        passed[kind] = passed.get(kind, 0) + seen.passed * ("-crawler-" in name)
    each = {kind: passed[kind] / summary.pages for kind in ("leased", "answers", "filtered")}
    words = ", ".join(
        f"{value:.2f} {word}" for value, word in zip(each.values(), ("URLs", "answers", "visits"), strict=True)
    )
    return f"{words}; {passed['renewals'] / (time.monotonic() - began):.1f} renewals/s"
