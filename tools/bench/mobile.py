"""The cost of judging pages beside the data: a mobile crawler over pages in memory, on one core.

The source is a table of pages, so the time is that of the runner alone: reading, links, gates, parts, and packing of what
comes home. Without folders the pages are made up: prose of Zipf's law with a menu and links, 25 to 35 KB. `--site DIR` takes
the HTML files of a folder instead. Times are those of the processor in this process. A second table has the same pages
through a runtime: read from files behind the owner's gate, judged in a process that is shut in, packed. There a page costs
the processor time of both processes; starting a crawler's process is told apart.
"""

import gc
import random
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from gossamer.bench.harness import BenchReport, pages_option, site_option
from gossamer.mobile.crawler import MAX_SEEDS, BringRules, CrawlerBatch, MobileCrawler, MobileProgram, TravelLimits
from gossamer.mobile.running import CrawlerRun
from gossamer.mobile.runtime.keeper import CrawlerKeeper, MadeBatch, ProcessLimits, walls_here
from gossamer.mobile.sources.opened import Runtime
from gossamer.mobile.sources.owner import OwnerSheet
from gossamer.mobile.wire import frames_of, to_bytes
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.url import canonical
from gossamer.values.visit import Response
from tools.bench.traffic import measure

#: Pages of a run: a second or two for each row.
PAGES = 1_000

#: Links of a page: of its menu, which all pages share, and to other pages; as many as documentation has.
MENU, LINKS = 30, 30

#: Words of a page: with its markup, 25 to 35 KB.
FEWEST, MOST = 3_400, 4_800
LINE = 40

#: Bytes of the pages that are taken out of a folder.
SMALLEST, LARGEST = 25_000, 35_000
#: The largest page of a whole crawl: larger ones are few, and say more of themselves than of crawls.
LARGEST_CRAWLED = 1_000_000

#: Runs, of which the quickest counts: nothing makes a run quicker than it is.
REPEATS = 3

_HOST = "www.judged.example"
_SITE = f"http://{_HOST}"
_HEADERS = (("content-type", "text/html; charset=utf-8"), ("last-modified", "Sun, 01 Mar 2026 12:00:00 GMT"))

#: The parts of a page that are judged, and their programs; no page that is made up has the words.
_NEVER = "zyzzyva"
ROWS: Mapping[str, Mapping[str, Any]] = {
    "URL, head and links": {"store": f'path("/{_NEVER}/**") or header({_NEVER})'},
    "text": {"store": f"text({_NEVER})"},
    "keywords": {"store": f"keywords({_NEVER})"},
    "all brought home": {},
    "main text alone brought home": {"bring": BringRules(("text",))},
}


def made_pages(count: int) -> dict[str, bytes]:
    """Path -> page; every page is led to by the ones before it."""
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 10))) for _ in range(4_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    dice = random.Random(2)
    menu = "".join(f'<li><a href="/p/{at}.html">{words[at]}</a></li>' for at in range(min(MENU, count)))
    pages = {}
    for number in range(min(count, MAX_SEEDS)):
        text = dice.choices(words, weights, k=dice.randint(FEWEST, MOST))
        lines = [" ".join(text[start : start + LINE]) for start in range(0, len(text), LINE)]
        # A line in three or four ends in a link.
        for at in range(LINKS):
            target = min(count - 1, number * 2 + at)
            lines[at * len(lines) // LINKS] += f' <a class="reference" href="/p/{target}.html">{words[at]}</a>'
        body = "".join(f'<p class="paragraph">{line}.</p>\n' for line in lines)
        title = f'<meta charset="utf-8"><title>{words[number % 4000]}</title>'
        nav = f"<nav><ul>{menu}</ul></nav>"
        page = f'<!DOCTYPE html><html lang="en"><head>{title}</head><body>{nav}<main>{body}</main></body></html>'
        pages[f"/p/{number}.html"] = page.encode()
    return pages


def site_pages(folders: Sequence[Path], count: int, sizes: tuple[int, int] = (SMALLEST, LARGEST)) -> dict[str, bytes]:
    """Path -> page, of the HTML files of folders that have so many bytes; in the order of their names."""
    least, most = sizes
    found: dict[str, bytes] = {}
    for folder in folders:
        for file in sorted(folder.rglob("*.html")):
            if len(found) < min(count, MAX_SEEDS) and file.is_file() and least <= file.stat().st_size <= most:
                found[f"/{folder.name}/{file.relative_to(folder).as_posix()}"] = file.read_bytes()
    return found


@pages_option(PAGES, "Judge this many pages.")
@site_option
def run(pages: int = PAGES, sites: Sequence[Path] = ()) -> BenchReport:
    """Judge pages beside the data, several times, and take the quickest of each row; then crawl over slow lines."""
    report = BenchReport("mobile")
    site = site_pages(sites, pages) if sites else made_pages(pages)
    if not site:
        raise UsageError(f"--site: no HTML file of {SMALLEST} to {LARGEST} bytes in these folders")
    gc.freeze()
    judge(report, site)
    # A whole crawl takes pages as they are, whatever their size.
    measure(report, site_pages(sites, pages, (0, LARGEST_CRAWLED)) if sites else site)
    add_runtime(report, {quote(path): page for path, page in site.items()})
    return report


def judge(report: BenchReport, site: Mapping[str, bytes]) -> None:
    """Add the table of the runner alone to a report."""
    whole = sum(map(len, site.values()))
    title = f"{len(site):,} pages of {whole / len(site) / 1e3:.0f} kB, each judged once, on one core"
    table = report.table(title, "judged by", "pages/s", "us a page", "bytes home", "share of the pages' bytes")

    def add(name: str, seconds: float, sent: int) -> None:
        page = seconds / len(site)
        table.add(name, f"{1 / page:,.0f}", f"{page * 1e6:.0f}", f"{sent:,}", f"{sent / whole:.1%}")

    def packed() -> tuple[float, int]:
        began = time.process_time()
        sent = sum(len(zlib.compress(page, 6)) for page in site.values())
        return time.process_time() - began, sent

    for name, program in ROWS.items():
        add(name, *min(_judged(site, program) for _ in range(REPEATS)))
    add("for comparison: each page by gzip -6, nothing judged", *min(packed() for _ in range(REPEATS)))


def _judged(site: Mapping[str, bytes], program: Mapping[str, Any]) -> tuple[float, int]:
    """Seconds of the processor, and bytes that come home."""
    answers = {
        canonical(_SITE + quote(path)): Response(Outcome.OK, 200, headers=_HEADERS, body=page)
        for path, page in site.items()
    }
    # All pages are seeds, so that each is judged once whatever leads to it.
    crawler = MobileCrawler(MobileProgram(seeds=tuple(answers), **program))
    journey = CrawlerRun(crawler)

    def batches() -> Iterator[CrawlerBatch]:
        # Seeds come first: what pages lead to waits behind them, as in any journey, and is not asked for.
        for _ in answers:
            task = journey.next()
            if task is not None and (batch := journey.take(task, answers[task.url])) is not None:
                yield batch
        yield journey.finish()

    # The start of a process is no cost of a page.
    gc.collect()
    began = time.process_time()
    sent = sum(map(len, frames_of(crawler, batches())))
    return time.process_time() - began, sent


def add_runtime(report: BenchReport, site: Mapping[str, bytes]) -> None:
    """Measure the same through a runtime, several times, and add a table with the cheapest of each row to a report."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for path, content in site.items():
            file = root / unquote(path[1:])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        urls = tuple(f"{_SITE}{path}" for path in site)
        start = min(sum(_cost(root, urls[:1], {})[:2]) for _ in range(REPEATS))
        title = (
            f"The same pages as files, through a runtime ({walls_here(ProcessLimits())}); beside them, "
            f"{start:.2f} s of processor time for each crawler to start"
        )
        table = report.table(title, "judged by", "pages/s", "us a page", "of these in the runtime", "bytes home")
        for row, program in ROWS.items():
            runtime, crawler, sent = min(
                (_cost(root, urls, program) for _ in range(REPEATS)), key=lambda one: sum(one[:2])
            )
            page = (runtime + crawler - start) / len(site)
            table.add(row, f"{1 / page:,.0f}", f"{page * 1e6:.0f}", f"{runtime / len(site) * 1e6:.0f}", f"{sent:,}")


def _cost(root: Path, urls: Sequence[str], program: Mapping[str, Any]) -> tuple[float, float, int]:
    """Seconds of processor time of one journey, in the runtime and in the crawler's process with its start; bytes of its frames."""
    # All pages are seeds, and nothing else is visited: each is judged once whatever leads to it.
    crawler = MobileCrawler(MobileProgram(seeds=tuple(urls), limits=TravelLimits(urls=len(urls)), **program))
    made: list[MadeBatch] = []
    with Runtime(OwnerSheet({_HOST: str(root)})) as sources:
        gc.collect()
        began = time.process_time()
        end = CrawlerKeeper(to_bytes(crawler), ProcessLimits(is_weak=True)).run(sources.pages(), made.append)
        spent = time.process_time() - began
    if end.reason:
        raise UsageError(f"the crawler was ended: {end.reason} ({end.told})")
    return spent, end.cpu, sum(len(one.frame) for one in made)
