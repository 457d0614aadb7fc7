"""What several agents gain and cost: a crawl of one, a crawl of two, and two crawls that know nothing of each other; a host
that moves; a thousand slow hosts in one agent; URLs exchanged by files.

Crawls run as commands, on all processors, beside the server of the simulated web: as people run them. Runs of a kind take
turns, and the median counts. CPU time is of all processes of a crawl, without the server's. *merge* writes a million URLs
that one agent found into files, and the other merges them: both are crawls that have fetched nothing, and the first one is
given links of pages, as hosts take turns in a crawl.
"""

import asyncio
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from gossamer.agents.membership import change_members
from gossamer.agents.merging import at_rest
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.bench.harness import (
    ALONE,
    BenchedCrawl,
    accounted,
    begun,
    by_turns,
    cpu_of_children,
    crawled,
    middle,
    nginx,
    pages_option,
    repeats_option,
    site_option,
)
from gossamer.bench.report import BenchReport
from gossamer.crawls.compiling import shipped
from gossamer.crawls.summary import Summary
from gossamer.engine import processes
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.mailbox.exchange_files import OUT
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, SUFFIX
from gossamer.storage.members import write_members
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.agents import agent_name
from gossamer.values.errors import UsageError
from gossamer.values.task import Task

#: Pages of a crawl, and its hosts: some twenty seconds.
PAGES, HOSTS = 20_000, 400

#: How much larger the web is of which a part is crawled: no agent runs out of work before the others.
LARGER = 3

#: Names under which a site is served.
NAMES = 32

#: Slow hosts, the seconds that each takes for an answer, and the pages of theirs that are fetched.
SLOW, LATENCY = 1_000, 1.0
SLOW_PAGES = 30

#: Hosts and queued URLs of which a new agent takes a third. The table also says how long ten times as many take.
MOVED_HOSTS, MOVED_URLS = 10_000, 1_000_000

#: URLs that are queued in one group.
_AT_ONCE = 10_000


@pages_option(PAGES, "Use this many pages in each crawl.")
@repeats_option
@site_option
def agents(pages: int = PAGES, repeats: int = 5, sites: Sequence[Path] = ()) -> BenchReport:
    """Measure what several agents gain and cost; with --site, only what two agents gain on a site under many host names.

    nginx serves the site.
    """
    report = BenchReport("agents")
    if sites:
        _documentation(report, sites[0], pages, repeats)
        return report
    _crawls(report, pages, repeats, web=LARGER * pages)
    _crawls(report, pages, repeats, web=None)
    _moving(report, MOVED_HOSTS, MOVED_URLS * pages // PAGES)
    _slow(report, SLOW, max(2, SLOW_PAGES * pages // PAGES))
    return report


def _crawls(report: BenchReport, pages: int, repeats: int, *, web: int | None) -> None:
    """A part of a web, where every agent has work to the end, or a whole one, where one of them ends first."""
    kinds = {
        "one agent": partial(crawled, pages, HOSTS, [[]], web=web),
        "two agents": partial(crawled, pages, HOSTS, [["--agents", "2"]], web=web),
        "two crawls": partial(crawled, pages // 2, HOSTS, [[], []], web=web),
    }
    runs = by_turns(kinds, repeats)
    table = report.table(
        f"{pages:,} pages{f' of {web:,}' if web else ''} on {HOSTS} hosts, median of {repeats} runs",
        *("what", "pages/s", "ms of CPU a page", "pages/s, all runs"),
    )
    for name, of in runs.items():
        every = " ".join(f"{one.pace:,.0f}" for one in of)
        table.add(name, f"{middle(of, 'pace'):,.0f}", f"{middle(of, 'cpu_each'):.2f}", every)
    ratios = report.table(
        f"two agents beside, {'a part of the web' if web else 'the whole web'}", "what", "pace", "CPU a page"
    )
    for name in ("one agent", "two crawls"):
        two, other = runs["two agents"], runs[name]
        ratios.add(name, *(f"{middle(two, what) / middle(other, what):.2f}" for what in ("pace", "cpu_each")))


def _documentation(report: BenchReport, site: Path, pages: int, repeats: int) -> None:
    """The same pages on many hosts, each of a domain of its own, behind a server that costs little."""
    names = [f"http://www.docs{number}.sim/" for number in range(NAMES)]
    with nginx(site) as port:
        # Links that leave the site would cost look-ups of names, which this does not measure.
        more = ["--scope", "host", "--max-pages", str(pages)]
        runs = by_turns(
            {
                "one agent": lambda: _from(names, port, [*ALONE, *more])[0],
                "two agents": lambda: _from(names, port, ["--agents", "2", *more])[0],
            },
            repeats,
        )
    table = report.table(f"{pages:,} pages of {site} under {NAMES} host names", "what", "pages/s", "ms of CPU a page")
    for name, of in runs.items():
        table.add(name, f"{middle(of, 'pace'):,.0f}", f"{middle(of, 'cpu_each'):.2f}")
    pairs = list(zip(*runs.values(), strict=True))
    ratios = report.table("two agents beside one, median of pairs", "pace", "CPU a page")
    ratios.add(
        f"{statistics.median(two.pace / one.pace for one, two in pairs):.2f}",
        f"{statistics.median(two.cpu_each / one.cpu_each for one, two in pairs):.2f}",
    )


def _from(seeds: Sequence[str], port: int, more: Sequence[str]) -> tuple[BenchedCrawl, list[Summary]]:
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        listed = Path(folder, "seeds.txt")
        listed.write_text("\n".join(seeds))
        return accounted([begun(Path(folder, "crawl"), port, more, ["--seeds", str(listed)])])


# -- hosts that move


def _moving(report: BenchReport, hosts: int, urls: int) -> None:
    """A third of all hosts moves to an agent that joins two."""
    members = tuple(agent_name(index) for index in range(3))
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        directory = Path(folder)
        share_secret(directory / STATE_DIRECTORY)
        write_members(directory, members[:2])
        ring = RingDesignation(RingSheet(members=members[:2]))
        for agent in members[:2]:
            ledger = RocksLedger(LedgerSheet(directory=folder, agent=agent))
            ledger.open()
            tasks = (task for task in _moved_tasks(hosts, urls) if ring.owner(task.host) == agent)
            while part := list(islice(tasks, _AT_ONCE)):
                with ledger.group() as group:
                    group.push(group.meet(part).new)
            ledger.close()
        told: list[str] = []
        began, before = time.monotonic(), cpu_of_children()
        asyncio.run(change_members(directory, shipped("default"), members, told.append))
        seconds, cpu = time.monotonic() - began, cpu_of_children() - before
    table = report.table("an agent joins two", "what", "figure")
    table.add("hosts, and queued URLs, of all", f"{hosts:,}, {urls:,}")
    table.add("moved", told[0])
    table.add("seconds, and of CPU", f"{seconds:.1f}, {cpu:.1f}")
    table.add("seconds for ten times as many", f"{10 * seconds:.0f}")


def _moved_tasks(hosts: int, urls: int) -> Iterator[Task]:
    for number in range(urls):
        host = f"www.h{number % hosts}.example"
        yield Task(f"http://{host}/page/{number}", host, 2, f"http://{host}/", "a href")


# -- slow hosts


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


#: URLs.
MERGED = 1_000_000

#: URLs for each host, and for each page that links to them.
OF_HOST, OF_PAGE = 50, 10

#: URLs that the first agent is given at once.
_GIVEN_AT_ONCE = 2_000

#: Runs of the merge, each with a crawl of its own.
REPEATS = 3

_ONE, _TWO = "agent-01", "agent-02"


@pages_option(MERGED, "Exchange this many URLs.")
def merge(pages: int = MERGED) -> BenchReport:
    """Write a million URLs into exchange files, and merge them."""
    report = BenchReport("merge")
    runs: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        one, two = _two_agents(Path(folder), pages)
        runs["written into files"] = [_timed("exchange", str(one))]
        files = [str(path) for path in (one / OUT).glob(f"*{SUFFIX}")]
        size = sum(Path(file).stat().st_size for file in files)
        for number in range(REPEATS):
            copy = shutil.copytree(two, Path(folder, f"copy-{number}"))
            runs.setdefault("merged", []).append(_timed("merge", str(copy), *files))
            runs.setdefault("the same files once more", []).append(_timed("merge", str(copy), *files))
            shutil.rmtree(copy)
    table = report.table(
        f"{pages:,} URLs on {_hosts(pages):,} hosts, {len(files)} files, {size / 1e6:.1f} MB",
        *("what", "s of CPU, median", "us a URL", "all runs", "seconds"),
    )
    for what, found in runs.items():
        middle = statistics.median(cpu for cpu, _ in found)
        table.add(
            *(what, f"{middle:.1f}", f"{1e6 * middle / pages:.1f}", " ".join(f"{cpu:.1f}" for cpu, _ in found)),
            f"{statistics.median(seconds for _, seconds in found):.1f}",
        )
    return report


def _timed(*command: str) -> tuple[float, float]:
    began, before = time.monotonic(), cpu_of_children()
    _do(*command)
    return cpu_of_children() - before, time.monotonic() - began


def _do(*command: str) -> None:
    done = subprocess.run(
        processes.command("gossamer", *command),
        env=processes.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UsageError(f"gossamer {command[0]} ended with status {done.returncode}: {done.stderr.strip()}")


def _two_agents(folder: Path, urls: int) -> tuple[Path, Path]:
    """Two agents that have fetched nothing; the first one owes the second so many URLs."""
    ring = RingDesignation(RingSheet(members=(_ONE, _TWO)))
    seeds = {ring.owner(host): f"http://{host}/" for host in (f"seed{number}.example" for number in range(50))}
    one, two = folder / "1", folder / "2"
    quiet = ["--exchange", "files", "--contact", "me@example.org", "--quiet"]
    _do("crawl", seeds[_TWO], *quiet, "--agents", "2", "--agent", "1", "-o", str(one))
    _do("crawl", seeds[_ONE], *quiet, "--agent", "2", "--exchange-key", str(one / EXCHANGE_KEY), "-o", str(two))

    async def given() -> None:
        tasks = islice(_tasks(ring, _hosts(urls)), urls)
        async with at_rest(one, print) as (_, intake):
            while part := list(islice(tasks, _GIVEN_AT_ONCE)):
                await intake.receive(part)

    asyncio.run(given())
    return one, two


def _hosts(urls: int) -> int:
    return max(1, urls // OF_HOST)


def _tasks(ring: RingDesignation, count: int) -> Iterator[Task]:
    """Pages of so many hosts of the second agent, which take turns."""
    names = (f"www.h{number}.example" for number in range(10 * count))
    hosts = list(islice((host for host in names if ring.owner(host) == _TWO), count))
    number = 0
    while True:
        host = hosts[number % len(hosts)]
        source = f"http://www.s{number // OF_PAGE % 997}.example/from/{number // OF_PAGE}.html"
        yield Task(f"http://{host}/articles/page-{number}.html", host, 3, source, "a href")
        number += 1
