"""The cost of the Python API and handlers for a page, beside the command line, and beside Scrapy and Crawlee with the same spider.

The site is a folder as for :mod:`gossamer.bench.peers`; what is compared is CPU a page, in pairs of one round: the figures
of one machine swing from hour to hour. Each way is a program: this module, with a way, a seed URL, a number of live requests and a
folder; it prints one line of JSON. All have the same links, and the same item of each page.
"""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gossamer.api.crawls import crawl, crawl_sync
from gossamer.api.processors import Result, processor
from gossamer.api.spider import Spider
from gossamer.bench.harness import BenchedCrawl, BenchReport, measured, nginx, pages_option, repeats_option, site_option
from gossamer.bench.peers import PER_HOST, Crawler, folders, gossamer, in_turn, other, times
from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.engine import processes
from gossamer.values.visit import Item

#: Way -> what it is compared with, and how it is called in the table.
WAYS = {
    "read": ("command line", "gossamer.crawl() on asyncio's own loop, pages read"),
    "sync": ("command line", "gossamer.crawl_sync(), pages read"),
    "processor": ("command line", "a processor takes the item"),
    "async": ("processor", "an async handler takes the item and follows"),
    "labelled": ("processor", "the same, each link with a label"),
    "thread": ("processor", "the same handler with def, in threads"),
}


#: Other crawlers with the same spider; each is compared with an async handler.
OTHERS: dict[str, Crawler] = {
    "Scrapy": partial(other, name="scrapy", takes="item"),
    "Crawlee's ParselCrawler": partial(other, name="parsel", takes="item"),
    "Crawlee's BeautifulSoupCrawler": partial(other, name="soup", takes="item"),
}


def program(seed: str, folder: Path, way: str) -> BenchedCrawl:
    """A crawl in one way."""
    command = processes.command("tools.bench.spiders", way, seed, str(PER_HOST), str(folder / "crawl"))
    return measured(command, folder, processes.environment())


@site_option
@repeats_option
@pages_option(2_000, "Make a site of this many pages, where none is named.")
def run(sites: Sequence[Path] = (), repeats: int = 3, pages: int = 2_000) -> BenchReport:
    """Crawl the same site in every way to write a spider, and with Scrapy and Crawlee, in turn, and compare CPU a page.

    nginx serves it.
    """
    report = BenchReport("spiders")
    chosen: dict[str, Crawler] = {"command line": partial(gossamer, profile="plain")}
    chosen |= {way: partial(program, way=way) for way in WAYS} | OTHERS
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name, folders(sites, pages) as roots:
        for root in roots:
            with nginx(root) as port:
                runs = in_turn(chosen, f"http://127.0.0.1:{port}/", Path(name), repeats)
            table = report.table(
                f"{root.name}, {PER_HOST} live requests, medians of {repeats}",
                *("way", "pages", "ms CPU a page", "compared with", "times as much", "pages a CPU second"),
            )
            for way, done in runs.items():
                compared, words = WAYS.get(way, ("async" if way in OTHERS else "", way))
                cost = statistics.median(one.cpu_each for one in done)
                ratio = f"{times(done, runs[compared]):.2f}" if compared else ""
                table.add(words, done[0].pages, f"{cost:.2f}", compared, ratio, f"{1000 / cost:.0f}")
    return report


#: Elements whose links are followed.
LINKS = "a, area, iframe, frame"


def processed(seed: str, options: dict[str, Any]) -> Any:
    """Default links, and a processor that takes the item out."""

    @processor("text/html")
    def take(document: Document) -> Iterator[Item]:
        title = document.css("title")
        text = " ".join(title[0].text().split()) if title else ""
        yield Item("item", document.url, {"title": text, "links": len(document.css(LINKS))})

    return Spider(seed, **options).run()


def handled(seed: str, options: dict[str, Any], *, is_async: bool, label: str) -> Any:
    """A handler that follows the links and takes the item out."""
    spider = Spider(seed, **options)

    def things(page: Page) -> Iterator[Result]:
        links = page.css(LINKS)
        yield {"title": page.text("title"), "links": len(links)}
        yield page.follow_all(links, label=label)

    async def listing(page: Page) -> AsyncIterator[Result]:
        for thing in things(page):
            yield thing

    handler = listing if is_async else things
    spider.page()(handler)
    if label:
        spider.page(label)(handler)
    return spider.run()


def main(way: str, seed: str, per_host: str, folder: str) -> None:
    """Crawl in one way, and say how much came."""
    options: dict[str, Any] = {"output": folder, "per_host": int(per_host), "robots": "ignore", "no_warc": True}
    options |= dict.fromkeys(("delay", "domain_delay", "ip_delay"), 0)

    async def read() -> Any:
        run = crawl(seed, **options)
        async for _ in run:
            pass
        return run.summary

    def read_in_turn() -> Any:
        """The same without `async`, on the loop that the package chooses."""
        run = crawl_sync(seed, **options)
        for _ in run:
            pass
        return run.summary

    programs: dict[str, Callable[[], Any]] = {
        "read": lambda: asyncio.run(read()),
        "sync": read_in_turn,
        "processor": lambda: processed(seed, options),
        "async": lambda: handled(seed, options, is_async=True, label=""),
        "labelled": lambda: handled(seed, options, is_async=True, label="page"),
        "thread": lambda: handled(seed, options, is_async=False, label=""),
    }
    summary = programs[way]()
    sys.stdout.write(json.dumps({"pages": summary.pages, "bytes": summary.bytes}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
