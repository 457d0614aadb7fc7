"""Where the time of a page goes: a whole crawl of a simulated web, its processor time by part, adding up to the kernel's
figure.

The crawl runs in a process of its own and is measured from inside: a timer fires each `TICK` of the process' processor time; the
handler looks at the stack, finds the stage, and books to it all the time of the main thread since it last looked; what other
threads used in the meantime is booked to them. So the parts add up to what the kernel counts, whatever the timer misses.
"""

import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from gossamer.bench.harness import PLAIN, SEED, BenchReport, apart, at, cpu_of_children, pages_option, pinned, simulated
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.machine import coroutine_runner, tune_collector
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build

#: Seconds of processor time between looks at the stack: a page takes a few milliseconds, a crawl thousands of pages.
TICK = 0.001

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


def quick_crawl(
    seeds: Sequence[str], asked: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]] | None = None
) -> Crawl:
    """A crawl of hosts on this machine by these options, without delays unless they name some, that is measured from inside."""
    options: dict[str, Any] = dict.fromkeys(("delay", "domain_delay", "ip_delay"), 0.0)
    options |= {"scope": "any", "allow_network": ("127.0.0.0/8",), **asked}
    tune_collector()
    return Crawl(seeds, build(all_options(), options), settings=settings or {})


def crawl_inside(seeds: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """Crawl in this process; what was measured."""
    crawl = quick_crawl(seeds, options)
    with coroutine_runner() as runner:
        profile = Profile()
        profile.start()
        summary = runner.run(crawl.run())
    return {
        "summary": msgspec.structs.asdict(summary),
        "seconds": profile.stop(),
        "cpu": time.process_time(),
        "children": cpu_of_children(),
    }


def profiled(directory: Path, seeds: Sequence[str] = (SEED,), **options: Any) -> dict[str, Any]:
    """Crawl in a process of its own, on a processor of its own. Raises UsageError: it failed."""
    with pinned(min):
        told: dict[str, Any] = apart("gossamer.bench.pages:crawl_inside", seeds, {"output": str(directory), **options})
    return told


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
        told = profiled(Path(folder, "crawl"), resolve=at(port), max_pages=pages)
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
