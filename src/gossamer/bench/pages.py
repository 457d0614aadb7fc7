"""Where the time of a page goes: a whole crawl of a simulated web, its processor time by part, adding up to the kernel's figure."""

import tempfile
from pathlib import Path

from gossamer.bench.report import BenchReport
from gossamer.bench.web import PLAIN, at, simulated, subject

#: Pages of the crawl: enough that its start is a small part, and that it ends within a minute.
PAGES = 8_000

#: Hosts of the web, so many that hosts are seldom waited for.
HOSTS = 200


def run(pages: int = PAGES) -> BenchReport:
    """Crawl and account for it."""
    report = BenchReport("pages")
    # A quarter of the pages redirect, are gone or are never linked: some more are served than are asked for.
    web = simulated(pages * 2, min(HOSTS, pages), *PLAIN)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder, web as port:
        told = subject("profile", Path(folder, "crawl"), resolve=at(port), max_pages=pages)
    seconds: dict[str, float] = told["seconds"]
    crawled, size = told["summary"]["pages"], told["summary"]["bytes"] / max(told["summary"]["fetched"], 1)
    table = report.table(
        f"{crawled:,} pages of {size / 1000:.0f} KB, {told['summary']['fetched']:,} answers, {HOSTS} hosts",
        *("part", "us a page", "share"),
    )
    total = told["cpu"]
    for part, spent in sorted(seconds.items(), key=lambda pair: -pair[1]):
        table.add(part, f"{spent / crawled * 1e6:.1f}", f"{spent / total:.1%}")
    rest = total - sum(seconds.values())
    table.add("not accounted for", f"{rest / crawled * 1e6:.1f}", f"{rest / total:.1%}")
    table.add("all, as the kernel counts", f"{total / crawled * 1e6:.1f}", "100.0%")
    return report
