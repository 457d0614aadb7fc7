"""What the Python API and handlers cost a page, beside the command line, and beside Scrapy and Crawlee with the same spider.

The site is a folder as for :mod:`gossamer.bench.peers`; what is compared is CPU a page, in pairs of one round: the figures
of one machine swing from hour to hour.
"""

import statistics
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from gossamer.bench.harness import BenchedCrawl, measured, nginx, pages_option, repeats_option, site_option
from gossamer.bench.peers import PER_HOST, Crawler, folders, gossamer, in_turn, other, times
from gossamer.bench.report import BenchReport
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: Way -> what it is compared with, and how it is called in the table.
WAYS = {
    "read": ("command line", "gossamer.crawl() on asyncio's own loop, pages read"),
    "sync": ("command line", "gossamer.crawl_sync(), pages read"),
    "processor": ("command line", "a processor takes the item"),
    "async": ("processor", "an async handler takes the item and follows"),
    "labelled": ("processor", "the same, each link with a label"),
    "thread": ("processor", "the same handler with def, in threads"),
}


class _Handler(SimpleHTTPRequestHandler):
    """Serves a folder on connections that stay open, and says nothing."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def served(root: Path) -> Iterator[int]:
    """Serve a folder: by nginx where it is installed, otherwise by Python's own server, whose CPU nobody counts."""
    try:
        with nginx(root) as port:
            yield port
        return
    except UsageError:
        pass
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _program(seed: str, folder: Path, way: str) -> BenchedCrawl:
    command = processes.command("tools.bench.spider_program", way, seed, str(PER_HOST), str(folder / "crawl"))
    return measured(command, folder, processes.environment())


#: Other crawlers with the same spider; each is compared with an async handler.
OTHERS: dict[str, Crawler] = {
    "Scrapy": partial(other, name="scrapy", takes="item"),
    "Crawlee's ParselCrawler": partial(other, name="parsel", takes="item"),
    "Crawlee's BeautifulSoupCrawler": partial(other, name="soup", takes="item"),
}


@site_option
@repeats_option
@pages_option(2_000, "Make a site of this many pages, where none is named.")
def run(sites: Sequence[Path] = (), repeats: int = 3, pages: int = 2_000, *, peers: bool = True) -> BenchReport:
    """Crawl the same site in every way to write a spider, and with Scrapy and Crawlee, in turn, and compare CPU a page."""
    report = BenchReport("spiders")
    chosen: dict[str, Crawler] = {"command line": partial(gossamer, profile="plain")}
    chosen |= {way: partial(_program, way=way) for way in WAYS}
    chosen |= OTHERS if peers else {}
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name, folders(sites, pages) as roots:
        for root in roots:
            with served(root) as port:
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
