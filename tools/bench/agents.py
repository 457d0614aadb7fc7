"""The gains and costs of several agents: a crawl of one, a crawl of two, and two crawls that know nothing of each other; a
thousand slow hosts in one agent; table 8 of Ridgway 2010.

Crawls run as commands, on all processors, beside the server of the simulated web: as people run them. Runs of a kind take
turns, and the median counts. CPU time is of all processes of a crawl, without the server's. *sharing*
crawls to depth 5 and 6 by each way to share a crawl, and with each kind of seen set; the *tail* is the last tenth of the pages
of a crawl: Ridgway's crawls slowed down there.
"""

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from gossamer.bench.harness import (
    ALONE,
    PLAIN,
    BenchedCrawl,
    BenchReport,
    accounted,
    begun,
    by_turns,
    crawled,
    middle,
    nginx,
    pages_option,
    repeats_option,
    simulated,
    site_option,
)
from gossamer.crawls.compiling import shipped
from gossamer.crawls.summary import Summary
from gossamer.engine.wiring import changed, write
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

#: Pages of a crawl, and its hosts: some twenty seconds.
PAGES, HOSTS = 20_000, 400

#: How much larger the web is of which a part is crawled: no agent runs out of work before the others.
LARGER = 3

#: Names under which a site is served.
NAMES = 32

#: Slow hosts, the seconds that each takes for an answer, and the pages of theirs that are fetched.
SLOW, LATENCY = 1_000, 1.0
SLOW_PAGES = 30


@pages_option(PAGES, "Use this many pages in each crawl.")
@repeats_option
@site_option
def agents(pages: int = PAGES, repeats: int = 5, sites: Sequence[Path] = ()) -> BenchReport:
    """Measure what several agents gain and cost; with --site, only what two agents gain on a site under many host names.

    nginx serves the site.
    """
    report = BenchReport("agents")
    if sites:
        # The same pages on many hosts, each of a domain of its own, behind a server that costs little. Links that leave the site
        # would cost look-ups of names, which this does not measure.
        names, more = [f"http://www.docs{n}.sim/" for n in range(NAMES)], ["--scope", "host", "--max-pages", str(pages)]
        with nginx(sites[0]) as port:
            kinds = {
                "one agent": lambda: _from(names, port, [*ALONE, *more])[0],
                "two agents": lambda: _from(names, port, ["--agents", "2", *more])[0],
            }
            _compare(report, f"{pages:,} pages of {sites[0]} under {NAMES} host names", by_turns(kinds, repeats))
        return report
    for web in (
        LARGER * pages,
        None,
    ):  # a part of a web, where every agent has work to the end; a whole one, where one ends first
        crawls = {
            "one agent": partial(crawled, pages, HOSTS, [[]], web=web),
            "two agents": partial(crawled, pages, HOSTS, [["--agents", "2"]], web=web),
            "two crawls": partial(crawled, pages // 2, HOSTS, [[], []], web=web),
        }
        title = f"{pages:,} pages{f' of {web:,}' if web else ''} on {HOSTS} hosts"
        _compare(report, title, by_turns(crawls, repeats))
    _slow(report, SLOW, max(2, SLOW_PAGES * pages // PAGES))
    return report


def _compare(report: BenchReport, title: str, runs: Mapping[str, Sequence[BenchedCrawl]]) -> None:
    table = report.table(f"{title}, medians", "what", "pages/s", "ms of CPU a page", "pages/s, all runs")
    for name, of in runs.items():
        every = " ".join(f"{one.pace:,.0f}" for one in of)
        table.add(name, f"{middle(of, 'pace'):,.0f}", f"{middle(of, 'cpu_each'):.2f}", every)
    ratios = report.table("two agents beside others, medians of pairs", "beside", "pace", "CPU a page")
    for name in (name for name in runs if name != "two agents"):
        pairs = list(zip(runs["two agents"], runs[name], strict=True))
        pace = statistics.median(two.pace / other.pace for two, other in pairs)
        ratios.add(
            name, f"{pace:.2f}", f"{statistics.median(two.cpu_each / other.cpu_each for two, other in pairs):.2f}"
        )


def _from(seeds: Sequence[str], port: int, more: Sequence[str]) -> tuple[BenchedCrawl, list[Summary]]:
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        listed = Path(folder, "seeds.txt")
        listed.write_text("\n".join(seeds))
        return accounted([begun(Path(folder, "crawl"), port, more, ["--seeds", str(listed)])])


def _slow(report: BenchReport, hosts: int, each: int) -> None:
    """As many requests in flight as there are slow hosts, in one agent; each page leads to the next one of its host."""
    answered: list[float] = []

    def page(request: FakeRequest) -> FakePage:
        answered.append(time.monotonic() + LATENCY)
        number = request.target[1:]
        if not number.isdecimal():
            return FakePage(status=404, latency=LATENCY)
        return FakePage(f'<p>{number}<a href="/{int(number) + 1}">on</a>', latency=LATENCY)

    seeds = [f"http://h{number}.slow{number}.sim/0" for number in range(hosts)]
    with FakeWeb({}, otherwise=page) as web:
        more = [*ALONE, "--concurrency", str(hosts), "--max-pages", str(hosts * each)]
        run, [told] = _from(seeds, web.port, more)
    # The server's clock has neither start nor end of the crawl.
    middle_half = answered[len(answered) // 4 : 3 * len(answered) // 4]
    pace = (len(middle_half) - 1) / (middle_half[-1] - middle_half[0])
    table = report.table(f"{hosts:,} hosts that take {LATENCY:g} s for each answer, in one agent", "what", "figure")
    table.add("pages", f"{run.pages:,}")
    table.add("pages/s, with start and robots.txt", f"{run.pages / told.seconds:,.0f}")
    table.add(
        "pages/s between a quarter and three quarters of them, of the best there can be",
        f"{pace:,.0f} of {hosts / LATENCY:,.0f}",
    )
    table.add("ms of CPU a page, and memory", f"{run.cpu_each:.2f}, {told.peak_rss_bytes / 1e6:.0f} MB")


#: Pages of a simulated web, and pages of one of its hosts.
SHARED, EACH = 4_000, 50

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


@pages_option(SHARED, "Crawl a web of this many pages.")
def sharing(pages: int = SHARED) -> BenchReport:
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
