"""Table 8 of Ridgway 2010 on a simulated web: crawls to depth 5 and 6 by each way to share a crawl, and by each kind of seen set.

Crawls run as commands, on all processors, beside the server of the simulated web. The *tail* is the last tenth of the pages of a
crawl: Ridgway's crawls slowed down there.
"""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from gossamer.bench.harness import ALONE, PLAIN, accounted, begun, pages_option, simulated
from gossamer.bench.report import BenchReport
from gossamer.crawls.compiling import shipped
from gossamer.engine.wiring import changed, write

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


@pages_option(PAGES, "Crawl a web of this many pages.")
def run(pages: int = PAGES) -> BenchReport:
    """Crawl to two depths in each way to share a crawl, and with each kind of seen set."""
    report = BenchReport("sharing")
    table = report.table(
        "Table 8 of Ridgway 2010, on a simulated web",
        *("depth", "processes", "seen set", "seconds", "pages", "pages/s", "MB fetched", "tail, pages/s"),
    )

    def add(depth: str, name: str, kind: str, directory: Path, options: Sequence[str]) -> None:
        run, _ = accounted([begun(directory, port, options)])
        lines = (directory / "logs/crawl.jsonl").read_bytes().splitlines()
        rows = [row for row in map(msgspec.json.decode, lines) if row["event"] == "page" and row["outcome"] == "ok"]
        times = sorted(datetime.fromisoformat(row["fetched_at"]).timestamp() for row in rows)
        seconds, last = times[-1] - times[0], times[-max(2, round(TAIL * len(times))) :]
        table.add(
            *(depth, name, kind, f"{seconds:.1f}", f"{run.pages:,}", f"{run.pages / seconds:,.0f}"),
            *(f"{run.bytes / 1e6:,.1f}", f"{(len(last) - 1) / max(1e-3, last[-1] - last[0]):,.0f}"),
        )

    with (
        tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder,
        simulated(pages, pages // EACH, *PLAIN, *DEEP) as port,
    ):
        for depth in DEPTHS:
            for name, options in WAYS.items():
                add(str(depth), name, "ledger", Path(folder, f"{depth}-{name}"), [*options, "--depth", str(depth)])
        for kind, text in SETS.items():
            wiring = Path(folder, f"{kind}.toml")
            write(wiring, changed(shipped("default"), text))
            add("any", "one process", kind, Path(folder, kind), [*ALONE, "--wiring", str(wiring)])
    return report
