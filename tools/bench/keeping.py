"""What it costs to keep a page: content-seen, seen set and commit with archive, tables and ledger, on visits that are made up.

Pages are random words, each with as many links as a real one has. Nothing is fetched or parsed; services that decide
nothing here are stand-ins. Times are those of the processor in this thread.
"""

import asyncio
import gc
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec

from gossamer.bench.harness import Spent, pages_option
from gossamer.bench.report import BenchReport
from gossamer.frontier.order import BreadthFirst, WeightedPrioritizer
from gossamer.parsing.duplicates import ContentSeen
from gossamer.storage.archive.warc import WarcArchive, WarcSheet
from gossamer.storage.commit.component import Commit
from gossamer.storage.ledger.providers import LedgerContents, LedgerSeen
from gossamer.storage.seen.memory import MemoryFlights
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.values.outcome import Outcome
from gossamer.values.task import DONE, RetryDecision, Task
from gossamer.values.visit import Link, Response, Visit
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
    """The same, and its time is counted."""

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
