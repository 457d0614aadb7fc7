"""What a crawl holds in memory as it goes on: a curve over a long crawl of a simulated web."""

import tempfile
from pathlib import Path

from gossamer.bench.report import BenchReport
from gossamer.bench.web import PLAIN, at, simulated, subject

#: Pages of the crawl: a minute or two.
PAGES = 30_000

#: Hosts of the web: a frontier that holds something for each of them shows it.
HOSTS = 2_000

#: Rows of the table, and points of the curve.
ROWS = 20

#: Columns of the longest bar.
WIDTH = 50


def run(pages: int = PAGES) -> BenchReport:
    report = BenchReport("memory")
    web = simulated(pages * 4, min(HOSTS, pages), *PLAIN)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder, web as port:
        told = subject("watch", Path(folder, "crawl"), resolve=at(port), max_pages=pages)
    looks: list[dict[str, float]] = told["looks"]
    table = report.table(
        f"a crawl of {told['summary']['pages']:,} pages on {HOSTS:,} hosts",
        *("seconds", "pages", "queued", "seen", "hosts", "MB", f"one # for {_step(looks) / 1e6:.0f} MB"),
    )
    for look in looks[:: -(-len(looks) // ROWS) or 1]:
        held = (f"{look[name]:,.0f}" for name in ("seconds", "pages", "queued", "seen", "hosts"))
        table.add(*held, f"{look['rss'] / 1e6:.0f}", "#" * round(look["rss"] / _step(looks)))
    if len(looks) > 1:
        growth = report.table("growth over the second half", "what", "figure")
        middle, end = looks[len(looks) // 2], looks[-1]
        more = end["seen"] - middle["seen"]
        growth.add("memory", f"{(end['rss'] - middle['rss']) / 1e6:+.1f} MB")
        growth.add("URLs seen", f"{more:+,.0f}")
        growth.add("bytes for each of them", f"{(end['rss'] - middle['rss']) / more:.0f}" if more else "-")
    return report


def _step(looks: list[dict[str, float]]) -> float:
    return max((look["rss"] for look in looks), default=1.0) / WIDTH
