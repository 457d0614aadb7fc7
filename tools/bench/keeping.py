"""What it costs to keep a page, to know it, and to come back to it.

*keeping*: content-seen, seen set and commit with archive, tables and ledger, on visits that are made up. Pages are random words,
each with as many links as a real one has. Nothing is fetched or parsed; services that decide nothing here are stand-ins. Times are
those of the processor in this thread.

*revisits*: a crawl with `--recrawl adaptive` beside one without; CPU for a visit that leaves a time and for a page whose time has
come; memory and disk for each known page. Known pages lie on hosts of a thousand pages. Each is visited once, with and without a
schedule; then time passes until the schedule has looked at many of them. Every measurement has a process of its own: memory that
another one took would count.
"""

import asyncio
import gc
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from types import SimpleNamespace
from typing import Any

import msgspec

from gossamer.bench.harness import Spent, apart, by_turns, crawled, middle, pages_option
from gossamer.bench.report import BenchReport
from gossamer.engine import processes
from gossamer.engine.unit import SystemClock
from gossamer.frontier.contract import Outlook
from gossamer.frontier.order import BreadthFirst, WeightedPrioritizer
from gossamer.parsing.duplicates import ContentSeen
from gossamer.recrawl.ledger import RevisitLedger
from gossamer.recrawl.policies import GreedyPolicy, RevisitSheet
from gossamer.recrawl.schedule import RevisitSchedule
from gossamer.storage.archive.warc import WarcArchive, WarcSheet
from gossamer.storage.commit.commit_stage import Commit
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.providers import LedgerContents, LedgerFrontier, LedgerSeen
from gossamer.storage.seen.memory import MemoryFlights
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import KnownPage
from gossamer.values.task import DONE, RetryDecision, Task
from gossamer.values.visit import Link, Location, Response, Visit
from tools.bench.ledger import opened
from tools.bench.mobile import zipf_words

#: Pages, those of one commit, links of a page, and how many of these are new.
PAGES, GROUP, LINKS, NEW = 2_000, 8, 58, 5

#: Words of a page and of a paragraph.
WORDS, LINE = 4_000, 20

#: Runs, of which the quickest counts: nothing makes a run quicker than it is.
REPEATS = 3

_HOST = "www.kept.example"


class _Nobody:
    """Takes what the commit sends; rules that every page is done."""

    async def send_many(self, items: object) -> None: ...

    def ruling(self, answer: object) -> RetryDecision:
        return DONE

    def received(self, url: str, size: int) -> None: ...

    def note(self, host: str) -> bytes:
        return bytes(60)

    def delay(self, host: str) -> float:
        return 1.0

    def delay_reason(self, host: str) -> str:
        return "setting"


def _bodies(count: int) -> list[bytes]:
    """Pages of some 35 KB that pack to a third: words by Zipf's law, in paragraphs."""
    dice, (words, weights) = random.Random(1), zipf_words()
    pages = []
    for _ in range(count):
        text = dice.choices(words, weights, k=WORDS)
        lines = (" ".join(text[start : start + LINE]) for start in range(0, WORDS, LINE))
        pages.append("".join(f'<p class="paragraph"><span>{line}</span></p>\n' for line in lines).encode())
    return pages


def _visits(bodies: list[bytes]) -> Iterator[list[Visit]]:
    """Groups of visits as they come from the fetchers, with the links that a page has."""
    fields = (("content-type", "text/html; charset=utf-8"), ("last-modified", "Sun, 01 Mar 2026 12:00:00 GMT"))
    head = "HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    for start in range(0, len(bodies), GROUP):
        group = []
        for number, body in enumerate(bodies[start : start + GROUP], start):
            url = f"https://{_HOST}/section/page-{number}.html"
            links = [f"https://{_HOST}/menu/{entry}.html" for entry in range(LINKS - NEW)]
            links += [f"https://{_HOST}/section/{number}/{entry}.html" for entry in range(NEW)]
            response = Response(
                Outcome.OK,
                status=200,
                request_head=f"GET /section/page-{number}.html HTTP/1.1\r\nHost: {_HOST}\r\n\r\n".encode(),
                response_head=head.encode(),
                headers=fields,
                body=body,
                address="192.0.2.1",
                started=1.77e9 + number / 100,
                elapsed=0.1,
            )
            found = tuple(Link(link) for link in links)
            group.append(Visit(Task(url, _HOST, 3, f"https://{_HOST}/", "a href"), response, links=found))
        yield group


def _timed(spent: Spent, act: Callable[..., Any]) -> Callable[..., Any]:

    def counted(*arguments: Any) -> Any:
        with spent:
            return act(*arguments)

    return counted


def _bound(unit: Any, **providers: Any) -> Any:
    for role, provider in providers.items():
        setattr(unit, role, provider)
    return unit


async def _kept(folder: str, bodies: list[bytes]) -> dict[str, float]:
    """Keep every page once; seconds by part."""
    spent, nobody, flights = defaultdict[str, Spent](Spent), _Nobody(), MemoryFlights()
    ledger, queues = opened(folder)
    seen, contents = (_bound(unit, ledger=ledger) for unit in (LedgerSeen(), LedgerContents()))
    archive, log = WarcArchive(WarcSheet(directory=folder)), TableLog(TableLogSheet(directory=folder))
    stores = {"archive": archive, "ledger": ledger, "seen": seen, "flights": flights, "keepers": {"visits": [log]}}
    ways = {"traversal": BreadthFirst(), "prioritizer": WeightedPrioritizer(), "politeness": nobody}
    none = {"watchers": {}, "gates": {}, "task_gates": {}, "goals": {}, "robots": SimpleNamespace()}
    commit = _bound(Commit(), **stores, **ways, **none, committed=nobody, records=nobody)
    filter_ = _timed(spent["content seen"], _bound(ContentSeen(), contents=contents).filter)
    unseen = _timed(spent["URL seen"], seen.unseen)
    _bound(archive, append=_timed(spent["archive"], archive.append))
    _bound(log, append=_timed(spent["tables and log"], log.append))
    for group in _visits(bodies):
        with ledger.group() as staged:
            staged.push(visit.task for visit in group)
        queues.admit(time.time())
        while ledger.queues.in_flight < len(group):
            queues.pop(_HOST, len(group))
        came = []
        for fetched in group:
            flights.depart(fetched.url)
            [visit] = filter_(fetched)
            new = unseen([link.url for link in visit.links])
            tasks = tuple(Task(url, _HOST, 4, visit.url, "a href") for url in new[-NEW:])
            came.append(msgspec.structs.replace(visit, new=tasks))
        with spent["commit"]:
            await commit.filter_many(came)
    for unit in (archive, log):
        await unit.stop()
    ledger.close()
    return {part: one.thread for part, one in spent.items()}


@pages_option(PAGES, "Keep this many pages.")
def run(pages: int = PAGES) -> BenchReport:
    """Measure, several times, and take the quickest of each part."""
    report = BenchReport("keeping")
    bodies = _bodies(pages)
    gc.freeze()
    runs = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
            runs.append(asyncio.run(_kept(folder, bodies)))
    least = {part: min(run[part] for run in runs) / pages * 1e6 for part in runs[0]}
    size = sum(map(len, bodies)) / pages / 1e3
    title = f"{pages:,} pages of {size:.0f} kB with {LINKS} links, {NEW} new, in groups of {GROUP}: us of CPU a page"
    table = report.table(title, "part", "us a page")
    inside = least["archive"] + least["tables and log"]
    table.add("content seen: SHA-1, look-up", f"{least['content seen']:.0f}")
    table.add("URL seen: look-up", f"{least['URL seen']:.0f}")
    table.add("archive: three records, packed and written", f"{least['archive']:.0f}")
    table.add("tables and log: row, SHA-256", f"{least['tables and log']:.0f}")
    table.add("commit and ledger: all else", f"{least['commit'] - inside:.0f}")
    table.add("all", f"{least['content seen'] + least['URL seen'] + least['commit']:.0f}")
    return report


#: Known pages at the small and the large end.
SIZES = (100_000, 1_000_000)

#: Pages that each crawl fetches, some ten seconds; pages and hosts of the web.
CRAWLED, WEB, HOSTS = 10_000, 15_000, 100

#: Pages of one host, and of one commit.
HOST, IN_A_GROUP = 1_000, 32

#: Pages that the schedule looks at in one measurement, and steps of time at most: a hundred days.
DECIDED, LONGEST = 50_000, 10_000

_DAY = 86_400.0
_AT = Location("warc/gossamer-20261121000000-00000.warc.gz", 1_000, 500)


class _CountingPolicy(GreedyPolicy):
    """The policy of `--recrawl adaptive`, which counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        self.asked += 1
        return super().interval(page, outlook)


class _Clock(SystemClock):
    """Stands where it is put."""

    at = 1e9

    def steady(self) -> float:
        return self.at


def _first_visits(count: int) -> Iterator[Visit]:
    """First visits of so many pages, the pages of some hosts in turn, as a crawl commits them."""
    chance, hosts = random.Random(1), max(count // HOST, 1)
    for number in range(count):
        host = f"www.site-{number % hosts}.example"
        url = f"https://{host}/section/page-{number // hosts}.html"
        response = Response(Outcome.OK, 200, body=b"x", started=1e9, headers=(("etag", f'"{number:x}"'),))
        task = Task(url, host, 3, f"https://{host}/", "a href")
        yield Visit(
            task, response, digest=f"{chance.getrandbits(160):040x}", mime="text/html", simhash=chance.getrandbits(64)
        )


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
    with tempfile.TemporaryDirectory() as folder:
        clock = _Clock()
        store, queues = opened(folder)
        sheet = RevisitSheet(rate=1.0, mean_interval=_DAY, min_interval=60.0)
        into = scheduled(store, clock, sheet) if is_scheduled else store
        visits, spent = _first_visits(size), 0.0
        while part := list(islice(visits, IN_A_GROUP)):
            with store.group() as group:
                group.offer([visit.url for visit in part])
                group.push(visit.task for visit in part)
            _popped(queues, clock.at)
            began = time.process_time()
            with into.group() as group:
                kept = sum(group.visited(visit, _AT) for visit in part)
            spent += time.process_time() - began
            assert kept == len(part), "a visit that no task waits for is not kept"
        words = [f"{spent / size * 1e6:.1f}", f"{processes.resident() / 1e6:.0f}", f"{store.size() / size:.0f}"]
        if isinstance(into, RevisitLedger):
            words += _woken(into, clock, size)
        store.close()
    return words


def _popped(queues: LedgerFrontier, now: float) -> None:
    for state in queues.admit(now):
        while queues.pop(state.host):
            pass


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


def _beside(report: BenchReport, repeats: int) -> None:
    """A crawl of pages that are new, with a schedule and without."""
    # A crawl that comes back never ends by itself.
    limit = ["--max-pages", str(CRAWLED)]
    kinds = {"without": limit, "--recrawl adaptive": [*limit, "--recrawl", "adaptive"]}
    runs = by_turns({name: partial(crawled, WEB, HOSTS, [options]) for name, options in kinds.items()}, repeats)
    title = f"A crawl of {CRAWLED:,} new pages on {HOSTS} hosts, median of {repeats} runs"
    table = report.table(title, "what", "pages/s", "ms of CPU a page", "pace beside one without")
    for name, of in runs.items():
        pace = middle(of, "pace")
        table.add(
            *(name, f"{pace:,.0f}", f"{middle(of, 'cpu_each'):.3f}", f"{pace / middle(runs['without'], 'pace'):.0%}")
        )


@pages_option(SIZES[-1], "Know this many pages at the most.")
def revisits(pages: int = SIZES[-1], repeats: int = 5) -> BenchReport:
    """Measure crawls with and without a schedule, then known pages, few and so many."""
    report = BenchReport("revisits")
    _beside(report, repeats)
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
        plain, ours = (apart("tools.bench.keeping:measured", size, is_scheduled) for is_scheduled in (False, True))
        table.add(f"{size:,}", plain[0], ours[0], plain[1], ours[1], plain[2], ours[2], *ours[3:])
    return report
