"""What it costs to know pages and to come back to them: a crawl with `--recrawl adaptive` beside one without, and known pages.

Known pages lie on hosts of a thousand pages. Each is visited once, with and without a schedule; then time passes until the schedule
has looked at many of them: CPU for a visit that leaves a time and for a page whose time has come, memory and disk for each known
page. Every measurement has a process of its own: memory that another one took would count.
"""

import random
import tempfile
import time
from functools import partial

from gossamer.bench.harness import apart, by_turns, crawled, middle, pages_option
from gossamer.bench.report import BenchReport
from gossamer.engine import processes
from gossamer.engine.unit import SystemClock
from gossamer.frontier.contract import Outlook
from gossamer.recrawl.ledger import RevisitLedger
from gossamer.recrawl.policies import GreedyPolicy, RevisitSheet
from gossamer.recrawl.schedule import RevisitSchedule
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import KnownPage
from gossamer.values.task import Task
from gossamer.values.visit import Location, Response, Visit
from tools.bench.ledger import opened

#: Known pages at the small and the large end.
SIZES = (100_000, 1_000_000)

#: Pages that each crawl fetches, some ten seconds; pages and hosts of the web.
CRAWLED, WEB, HOSTS = 10_000, 15_000, 100

#: Pages of one host, and of one commit.
HOST, GROUP = 1_000, 32

#: Pages that the schedule looks at in one measurement, and steps of time at most: a hundred days.
DECIDED, LONGEST = 50_000, 10_000

_DAY = 86_400.0
_AT = Location("warc/gossamer-20261121000000-00000.warc.gz", 1_000, 500)


class _CountingPolicy(GreedyPolicy):
    """The policy of `--recrawl adaptive`, which counts how often it is asked."""

    asked = 0

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        self.asked += 1
        return super().interval(page, outlook)


class _Clock(SystemClock):
    """Stands where it is put."""

    at = 1e9

    def steady(self) -> float:
        return self.at


def scheduled(store: RocksLedger, clock: SystemClock, sheet: RevisitSheet) -> RevisitLedger:
    """A ledger in front of a store, by which its pages are visited again as with `--recrawl adaptive`."""
    schedule, ledger = RevisitSchedule(sheet), RevisitLedger()
    schedule.policy = GreedyPolicy()
    schedule.ledger = schedule.store = store
    schedule.open()
    ledger.behind, ledger.revisits, ledger.clock = store, schedule, clock
    return ledger


def measured(size: int, is_scheduled: bool) -> list[str]:
    """Microseconds of CPU for a visit that is kept, MB at the end, bytes on the disk for a page; then those of :func:`_woken`."""
    chance, hosts, spent = random.Random(1), max(size // HOST, 1), 0.0
    with tempfile.TemporaryDirectory() as folder:
        clock = _Clock()
        store, queues = opened(folder)
        sheet = RevisitSheet(rate=1.0, mean_interval=_DAY, min_interval=60.0)
        into = scheduled(store, clock, sheet) if is_scheduled else store
        for first in range(0, size, GROUP):
            visits = []
            for number in range(
                first, min(first + GROUP, size)
            ):  # the pages of some hosts in turn, as a crawl commits them
                host = f"www.site-{number % hosts}.example"
                task = Task(
                    f"https://{host}/section/page-{number // hosts}.html", host, 3, f"https://{host}/", "a href"
                )
                response = Response(Outcome.OK, 200, body=b"x", started=1e9, headers=(("etag", f'"{number:x}"'),))
                digest, simhash = f"{chance.getrandbits(160):040x}", chance.getrandbits(64)
                visits.append(Visit(task, response, digest=digest, mime="text/html", simhash=simhash))
            with store.group() as group:
                group.offer([visit.url for visit in visits])
                group.push(visit.task for visit in visits)
            for state in queues.admit(clock.at):
                while queues.pop(state.host):
                    pass
            began = time.process_time()
            with into.group() as group:
                kept = sum(group.visited(visit, _AT) for visit in visits)
            spent += time.process_time() - began
            assert kept == len(visits), "a visit that no task waits for is not kept"
        words = [f"{spent / size * 1e6:.1f}", f"{processes.resident() / 1e6:.0f}", f"{store.size() / size:.0f}"]
        if isinstance(into, RevisitLedger):
            words += _woken(into, clock, size)
        store.close()
    return words


def _woken(ledger: RevisitLedger, clock: _Clock, size: int) -> list[str]:
    """Time passes until many pages have been looked at: microseconds for each, the share of them that was queued, MB after that."""
    schedule, policy = ledger.revisits, _CountingPolicy()
    schedule.policy = policy
    woken, began = 0, time.process_time()
    for _ in range(LONGEST):
        clock.at += _DAY / 100
        woken += schedule.wake(clock.at, 0)
        if policy.asked >= min(DECIDED, size):
            break
    spent = time.process_time() - began
    asked = max(policy.asked, 1)
    return [f"{spent / asked * 1e6:.1f}", f"{woken / asked:.0%}", f"{processes.resident() / 1e6:.0f}"]


@pages_option(SIZES[-1], "Know this many pages at the most.")
def run(pages: int = SIZES[-1], repeats: int = 5) -> BenchReport:
    """Measure crawls with and without a schedule, then known pages, few and so many."""
    report = BenchReport("revisits")
    # A crawl that comes back never ends by itself.
    limit = ["--max-pages", str(CRAWLED)]
    kinds = {"without": limit, "--recrawl adaptive": [*limit, "--recrawl", "adaptive"]}
    runs = by_turns({name: partial(crawled, WEB, HOSTS, [options]) for name, options in kinds.items()}, repeats)
    title = f"A crawl of {CRAWLED:,} new pages on {HOSTS} hosts, median of {repeats} runs"
    table = report.table(title, "what", "pages/s", "ms of CPU a page", "pace beside one without")
    for name, of in runs.items():
        pace, cpu = middle(of, "pace"), middle(of, "cpu_each")
        table.add(name, f"{pace:,.0f}", f"{cpu:.3f}", f"{pace / middle(runs['without'], 'pace'):.0%}")
    table = report.table(
        "Known pages: CPU for a visit that is kept, memory of the process, disk; then their time comes",
        *(
            "pages",
            "us a visit without a schedule",
            "with one",
            "MB without",
            "MB with",
            "bytes a page without",
            "with",
        ),
        *("us a page whose time has come", "of them queued", "MB after"),
    )
    for size in sorted({min(SIZES[0], pages), pages}):
        plain, ours = (apart("tools.bench.revisits:measured", size, is_scheduled) for is_scheduled in (False, True))
        table.add(f"{size:,}", plain[0], ours[0], plain[1], ours[1], plain[2], ours[2], *ours[3:])
    return report
