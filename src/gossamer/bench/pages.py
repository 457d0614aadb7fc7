"""Where the time of a page goes: a whole crawl of a simulated web, its processor time by part, adding up to the kernel's
figure.

The crawl runs in a process of its own and is measured from inside. `profile` says where processor time goes: a timer fires
each `TICK` of the process' processor time; the handler looks at the stack, finds the stage, and books to it all the time of
the main thread since it last looked; what other threads used in the meantime is booked to them. So the parts add up to what
the kernel counts, whatever the timer misses. `watch` notes what the crawl holds and how much memory it takes, every so
often; further seeds may join the crawl once it has found its pace.
"""

import asyncio
import signal
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import msgspec

from gossamer.bench.harness import PLAIN, at, cpu_of_children, pages_option, simulated, watched
from gossamer.bench.report import BenchReport
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.machine import coroutine_runner, tune_collector
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine import processes
from gossamer.engine.sheet import build
from gossamer.values.task import Task
from gossamer.values.url import host_of

#: Seconds of processor time between looks at the stack: a page takes a few milliseconds, a crawl thousands of pages.
TICK = 0.001

#: Seconds between looks at the memory.
LOOK = 0.5

#: Where the modules of a part lie -> its name in the table. The longest that fits counts.
PARTS = {
    "gossamer.fetcher": "fetch",
    "gossamer.parsing.duplicates": "content seen, URL seen",
    "gossamer.parsing": "process: parse and find links",
    "gossamer.documents.skim": "skim: head and links in the bytes",
    "gossamer.documents.charset": "charset",
    "gossamer.parsing.links": "links: resolve",
    "gossamer.parsing.filters": "filter",
    "gossamer.parsing.scope": "filter",
    "gossamer.expressions": "filter",
    "gossamer.frontier": "frontier",
    "gossamer.frontier.robots": "robots",
    "gossamer.frontier.politeness": "politeness",
    "gossamer.frontier.traps": "traps",
    "gossamer.storage.commit": "commit",
    "gossamer.storage.ledger": "ledger",
    "gossamer.storage.archive": "archive",
    "gossamer.storage.tables": "tables",
    "gossamer.storage.logs": "tables",
    "gossamer.storage": "other stores",
    "importlib": "start: imports",
}

#: Shared helpers: what they cost belongs to their caller.
HELPERS = ("gossamer.values", "gossamer.engine")


class CrawlJob(msgspec.Struct, frozen=True):
    """The crawl of a benchmark, and how it is looked at."""

    how: Literal["profile", "watch"]
    seeds: list[str]
    options: dict[str, Any]
    """Options of the crawl, by their names in the Python API; lists stand for tuples."""
    seconds: float | None = None
    """watch: break the crawl off after so long."""
    later: list[str] = []
    """watch: seeds that join the crawl while it runs."""
    later_at: float = 0.0
    """Seconds of the crawl at which they do."""
    settings: dict[str, dict[str, Any]] = {}
    """Settings of units, by their names."""


def part_of(module: str) -> str | None:
    """The part that a module belongs to; None for one that belongs to its caller."""
    while module:
        if module in PARTS:
            return PARTS[module]
        module = module.rpartition(".")[0]
    return None


class Profile:
    """Processor time by part of the crawler."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._known: dict[str, str | None] = {}
        self._all, self._main = time.process_time(), time.thread_time()

    def start(self) -> None:
        """Look at every tick from now on; call it in the main thread."""
        self.seconds["start: before the profile"] = self._all
        signal.signal(signal.SIGPROF, lambda _, frame: self._book(self._part(frame)))
        signal.setitimer(signal.ITIMER_PROF, TICK, TICK)

    def stop(self) -> dict[str, float]:
        """Look no more; the seconds of each part."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._book("end")
        return dict(self.seconds)

    def _book(self, part: str) -> None:
        everything, main = time.process_time(), time.thread_time()
        self.seconds[part] += main - self._main
        self.seconds["other threads"] += everything - self._all - (main - self._main)
        self._all, self._main = everything, main

    def _part(self, frame: FrameType | None) -> str:
        """The innermost part on the stack; what runs for none of them is the machine room, or the event loop."""
        helped = False
        while frame is not None:
            module: str = frame.f_globals.get("__name__") or ""
            if module not in self._known:
                self._known[module] = part_of(module)
            part = self._known[module]
            if part is not None:
                return part
            helped = helped or module.startswith(HELPERS)
            frame = frame.f_back
        return "machine room: connectors, runners" if helped else "event loop"


class Samples:
    """The figures of a crawl over time."""

    def __init__(self, crawl: Crawl, job: CrawlJob) -> None:
        nothing = dict.fromkeys(("seconds", "pages", "queued", "seen", "hosts"), 0.0)
        self.looks: list[dict[str, float]] = [{**nothing, "rss": processes.resident()}]
        self.joined = 0.0
        """When further seeds joined, in seconds of the monotonic clock; 0 where they have not."""
        self._crawl, self._job = crawl, job

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            if self._crawl.working:
                now = self._crawl.figures.summary()
                self.look(now)
                if not self.joined and now.seconds >= self._job.later_at:
                    self.joined = time.monotonic()
                    self._crawl.units.frontier.on_seeds_many([Task(url, host_of(url)) for url in self._job.later])
                if self._job.seconds is not None and now.seconds > self._job.seconds:
                    self._crawl.abort()

    def look(self, now: Summary) -> None:
        """Write down what there is."""
        held = {"pages": now.pages, "queued": now.queued, "seen": now.discovered, "hosts": now.hosts}
        self.looks.append({"seconds": round(now.seconds, 2), **held, "rss": processes.resident()})


def crawl_inside(asked: dict[str, Any]) -> dict[str, Any]:
    """Run a :class:`CrawlJob` of hosts on this machine, without delays unless the job names some; what was measured."""
    job = msgspec.convert(asked, CrawlJob)
    options: dict[str, Any] = dict.fromkeys(("delay", "domain_delay", "ip_delay"), 0.0)
    options |= {"scope": "any", "allow_network": ("127.0.0.0/8",), **job.options}
    crawl = Crawl(job.seeds, build(all_options(), options), settings=job.settings)
    tune_collector()
    with coroutine_runner() as runner:
        if job.how == "watch":
            watch = Samples(crawl, job)

            async def followed() -> Summary:
                task = asyncio.create_task(watch.follow())
                try:
                    summary = await crawl.run()
                    watch.look(summary)
                    return summary
                finally:
                    task.cancel()

            summary = runner.run(followed())
            return {"summary": msgspec.structs.asdict(summary), "looks": watch.looks, "joined": watch.joined}
        profile = Profile()
        profile.start()
        summary = runner.run(crawl.run())
    return {
        "summary": msgspec.structs.asdict(summary),
        "seconds": profile.stop(),
        "cpu": time.process_time(),
        "children": cpu_of_children(),
    }


#: Pages of the crawl: enough that its start is a small part, and that it ends within a minute.
PAGES = 8_000

#: Hosts of the web, so many that hosts are seldom waited for.
HOSTS = 200


@pages_option(PAGES, "Crawl this many pages.")
def run(pages: int = PAGES) -> BenchReport:
    """Crawl a simulated web, and account for each microsecond of a page, by part of the crawl."""
    report = BenchReport("pages")
    # A quarter of the pages redirect, are gone or are never linked: some more are served than are asked for.
    web = simulated(pages * 2, min(HOSTS, pages), *PLAIN)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder, web as port:
        told = watched("profile", Path(folder, "crawl"), resolve=at(port), max_pages=pages)
    account(report, told, HOSTS)
    return report


def account(report: BenchReport, told: dict[str, Any], hosts: int) -> None:
    """The table of a profile: where processor time went, by stage; start and tables stand by themselves."""
    seconds: dict[str, float] = told["seconds"]
    seconds["tables, index and parsers: processes of their own"] = told["children"]
    crawled, size = told["summary"]["pages"], told["summary"]["bytes"] / max(told["summary"]["fetched"], 1)
    table = report.table(
        f"{crawled:,} pages of {size / 1000:.0f} KB, {told['summary']['fetched']:,} answers, {hosts} hosts; "
        f"{told['summary']['discovered']:,} URLs met",
        *("part", "us a page", "share"),
    )
    total = told["cpu"] + told["children"]
    for part, spent in sorted(seconds.items(), key=lambda pair: -pair[1]):
        table.add(part, f"{spent / crawled * 1e6:.1f}", f"{spent / total:.1%}")
    rest = total - sum(seconds.values())
    table.add("not accounted for", f"{rest / crawled * 1e6:.1f}", f"{rest / total:.1%}")
    table.add("all, as the kernel counts", f"{total / crawled * 1e6:.1f}", "100.0%")
