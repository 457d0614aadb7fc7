"""What the Python API and handlers cost a page, beside the command line, and beside Scrapy and Crawlee with the same spider.

The site is a folder as for :mod:`gossamer.bench.peers`; what is compared is CPU a page, in pairs of one round: the figures
of one machine swing from hour to hour.
"""

import compileall
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from gossamer.bench.peers import PER_HOST, Crawler, PeerRun, environment, gossamer, measured, nginx
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


def _program(seed: str, folder: Path, way: str) -> PeerRun:
    command = processes.command("gossamer.bench.spider_program", way, seed, str(PER_HOST), str(folder / "crawl"))
    return measured(command, folder, **processes.environment())


def _scrapy(seed: str, folder: Path) -> PeerRun:
    script = Path(__file__).with_name("scrapy_items.py")
    return measured([str(environment("scrapy", "scrapy")), str(script), seed, str(PER_HOST)], folder)


def _crawlee(seed: str, folder: Path, kind: str) -> PeerRun:
    script = Path(__file__).with_name("crawlee_items.py")
    own = environment("crawlee-items", "crawlee[parsel,beautifulsoup]")
    return measured([str(own), str(script), seed, str(PER_HOST), kind], folder)


#: Other crawlers with the same spider; each is compared with an async handler.
OTHERS: dict[str, Crawler] = {
    "Scrapy": _scrapy,
    "Crawlee's ParselCrawler": partial(_crawlee, kind="parsel"),
    "Crawlee's BeautifulSoupCrawler": partial(_crawlee, kind="soup"),
}


def run(roots: Sequence[Path], repeats: int = 3, *, peers: bool = True) -> BenchReport:
    """Crawl each folder in every way in turn, several times, and compare.

    Raises:
        UsageError: Scrapy or Crawlee cannot be set up, or a crawl failed.
    """
    report = BenchReport("spiders")
    compileall.compile_dir(str(Path(__file__).parents[1]), quiet=1)
    chosen: dict[str, Crawler] = {"command line": partial(gossamer, profile="plain")}
    chosen |= {way: partial(_program, way=way) for way in WAYS}
    if peers:
        chosen |= OTHERS
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        for root in roots:
            with served(root) as port:
                _compare(report, root, f"http://127.0.0.1:{port}/", chosen, Path(name), repeats)
    return report


def _compare(
    report: BenchReport, root: Path, seed: str, chosen: dict[str, Crawler], folder: Path, repeats: int
) -> None:
    runs: dict[str, list[PeerRun]] = {name: [] for name in chosen}
    for number in range(repeats):
        for index, (name, crawler) in enumerate(chosen.items()):
            own = folder / f"{root.name}-{number}-{index}"
            own.mkdir()
            runs[name].append(crawler(seed, own))
            if not runs[name][-1].pages:
                raise UsageError(f"{name} found no page at {seed}; nothing can be compared")
            shutil.rmtree(own)
    table = report.table(
        f"{root.name}, {PER_HOST} live requests, medians of {repeats}",
        *("way", "pages", "ms CPU a page", "compared with", "times as much", "pages a CPU second"),
    )
    for name, done in runs.items():
        other, words = WAYS.get(name, ("async" if name in OTHERS else "", name))
        cost = _median([_cost(one) for one in done]) * 1000
        pairs = zip(done, runs[other] if other else done, strict=True)
        ratio = _median([_cost(one) / _cost(base) for one, base in pairs])
        table.add(words, done[0].pages, f"{cost:.2f}", other, f"{ratio:.2f}" if other else "", f"{1000 / cost:.0f}")


def _cost(run: PeerRun) -> float:
    return run.cpu / run.pages


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
