"""The harm that bad neighbours do to the others: hostile servers, bodies far larger than pages, and a long crawl's own memory.

*hostile*: the pace of healthy hosts and the memory, while every case of a chapter is under way. Healthy hosts are asked at a
pace that leaves the processor mostly idle, so that what is lost is lost to the hostile ones and not to the neighbours of
this machine. Each hostile case has a host of its own. They are there from the start, when the healthy hosts must still be
found, or join when those have their pace; the time from the moment of joining on counts, in the healthy server's own log.

*bodies*: the memory that a gigabyte takes, what it costs the other hosts, and what thousands leave behind. A server of its own
sends bodies of any size, `/N/M` M megabytes that no other number has; the crawl that is measured keeps archive, ledger and
tables as a plain command does. The peak of memory is the kernel's, of the crawl's process over its whole life and of the
process that makes tables; it stands beside that of a crawl without such a body.

*memory*: what a crawl holds as it goes on: a curve over a long crawl of a simulated web.
"""

import asyncio
import hashlib
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from gossamer.bench.harness import PLAIN, SEED, BenchReport, apart, at, pages_option, pinned, served, serving, simulated
from gossamer.bench.pages import quick_crawl
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.machine import coroutine_runner
from gossamer.crawls.summary import Summary
from gossamer.engine import processes
from gossamer.values.errors import UsageError
from gossamer.values.task import Task
from gossamer.values.url import host_of

#: Healthy hosts, and seconds between two requests to one: 80 requests a second in all, a fifth of a processor.
HOSTS, DELAY = 40, 0.5

#: Seconds between two requests to one registered domain: what holds off loopback, unless a person says otherwise.
DOMAIN_DELAY = 0.25

#: Seconds in which the healthy hosts are found, and those that count after it, in which the hostile ones are there too.
WARM, WINDOW = 4.0, 10.0

#: Hosts that answer a byte a second, all at once (fault 11), and what they are called beside the chapters.
SLOW, MANY = 500, "SLOW"

#: docs/design/faults.md: healthy hosts keep this much of their pace, and memory rises by so many bytes at most.
KEPT, RISE = 0.95, 64 << 20


#: Healthy hosts: all of one size, without delays and traps of their own.
_HEALTHY = ("host_exponent=10", *PLAIN)


@click.option(
    "--chapter", "chapters", metavar="NAME", multiple=True, help="Play only chapter A to G, or SLOW (repeatable)."
)
def hostile(chapters: Sequence[str] = ()) -> BenchReport:
    """Measure the pace of healthy hosts beside each chapter of hostile ones, and twice beside nothing hostile."""
    chapters = [chapter.upper() for chapter in chapters]
    report = BenchReport("hostile")
    table = report.table(
        f"{HOSTS} healthy hosts, a request each {DELAY} s to each; kept >= {KEPT:.0%}, memory <= {RISE >> 20} MiB more",
        *(
            "beside",
            "cases",
            "healthy requests/s",
            "in the worst second",
            "of the pace alone",
            "MiB more",
            "held",
            "load",
        ),
    )
    alone: tuple[float, int] | None = None

    def add(beside: str, first: Sequence[str], later: Sequence[str]) -> None:
        nonlocal alone
        pace, worst, peak = _measure(first, later, port, trusted)
        alone = alone or (pace, peak)
        more = max(0, peak - alone[1])
        held = "yes" if pace >= KEPT * alone[0] and more <= RISE else "NO"
        share, load = f"{pace / alone[0]:.0%}", f"{os.getloadavg()[0]:.1f}"
        table.add(beside, len([*first, *later]), f"{pace:.1f}", worst, share, f"{more / (1 << 20):.0f}", held, load)

    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        trusted = Path(folder, "ca.pem")
        with served("--hostile", "--ca-file", str(trusted)) as (port, said):
            found = _chapters(said, port)
            found[MANY] = [f"http://slow{number}.test/B11/slow-body" for number in range(SLOW)]
            if unknown := set(chapters) - found.keys():
                raise UsageError(f"chapter {min(unknown)} has no cases; there are {', '.join(found)}")
            add("nothing", [], [])
            for chapter in chapters or found:
                seeds = found[chapter]
                if chapter != MANY:  # what a person lists before all others comes before all others
                    add(f"{chapter}, from the start", seeds, [])
                add(f"{chapter}, joining", [], seeds)
            add("nothing, again", [], [])
    return report


def _chapters(said: IO[str], port: int) -> dict[str, list[str]]:
    """The cases by chapter, each at a host of its own, from what the hostile server says of itself."""
    found: dict[str, list[str]] = defaultdict(list)
    # The line that told the port was the first case's.
    lines = [f"_ http://hostile.sim:{port}/A1/gzip-bomb"]
    while not (line := said.readline()).startswith("All of them"):
        lines.append(line)
    for line in lines:
        case = re.search(r"(https?)://hostile\.sim(:\d+)(/([A-Z])(\w+)/\S+)", line)
        if case is not None:
            scheme, listens, path, chapter, number = case.groups()
            # The plain port is in the table of names; a case of TLS has one of its own, and a name that is certified.
            place = f"{number}.hostile.sim{listens}" if scheme == "https" else f"{number}.test"
            found[chapter].append(f"{scheme}://{chapter.lower()}{place}{path}")
    return dict(found)


def _starts(log: Path) -> list[float]:
    """When each request began, by the server's log: its first column is microseconds of the monotonic clock."""
    return sorted(int(line.partition(b"\t")[0]) / 1e6 for line in log.read_bytes().splitlines()[1:])


def _measure(first: Sequence[str], later: Sequence[str], port: int, trusted: Path) -> tuple[float, int, int]:
    """Crawl healthy hosts, and hostile ones from the start and from :data:`WARM` on: requests a second to the healthy hosts, those
    in the slowest second, and bytes of memory at the most, processes that parse included."""
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        log = Path(folder, "requests.log")
        plain = [word for rule in _HEALTHY for word in ("--set", rule)]
        web = "--pages", str(HOSTS * 400), "--hosts", str(HOSTS), "--log", str(log), "--dns-port", "0", *plain
        with served(*web) as (healthy, said):
            names = next((found[1] for line in said if (found := re.search(r"by DNS +(\S+)", line))), "")
            told = _watched(
                Path(folder, "crawl"),
                [SEED, *first],
                WARM + WINDOW + 1.0,
                later,
                # Names that pages make up are asked for here, and no name server of the machine's hears of them.
                {"http": {"ca_file": str(trusted)}, "dns": {"servers": [names]}},
                delay=DELAY,
                domain_delay=DOMAIN_DELAY,
                resolve=("*.hostile.sim=127.0.0.1", f"*.test=127.0.0.1:{port}", *at(healthy)),
            )
        seconds = [0] * int(WINDOW)
        for start in _starts(log):
            if 0 <= start - told["joined"] < WINDOW:
                seconds[int(start - told["joined"])] += 1
    return sum(seconds) / WINDOW, min(seconds), told["summary"]["peak_rss_bytes"]


# -- a crawl that is watched from inside: what it holds, and how much memory it takes, every so often

#: Seconds between looks at the memory.
LOOK = 0.5


class Samples:
    """The figures of a crawl over time. Further seeds join it at :data:`WARM`; it may be broken off after some seconds."""

    def __init__(self, crawl: Crawl, later: Sequence[str], seconds: float | None) -> None:
        nothing = dict.fromkeys(("seconds", "pages", "queued", "seen", "hosts"), 0.0)
        self.looks: list[dict[str, float]] = [{**nothing, "rss": processes.resident()}]
        self.joined = 0.0
        """When further seeds joined, in seconds of the monotonic clock; 0 where they have not."""
        self._crawl, self._later, self._seconds = crawl, later, seconds

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            if self._crawl.working:
                now = self._crawl.figures.summary()
                self.look(now)
                if not self.joined and now.seconds >= WARM:
                    self.joined = time.monotonic()
                    self._crawl.units.frontier.on_seeds_many([Task(url, host_of(url)) for url in self._later])
                if self._seconds is not None and now.seconds > self._seconds:
                    self._crawl.abort()

    def look(self, now: Summary) -> None:
        """Write down what there is."""
        held = {"pages": now.pages, "queued": now.queued, "seen": now.discovered, "hosts": now.hosts}
        self.looks.append({"seconds": round(now.seconds, 2), **held, "rss": processes.resident()})


def crawl_inside(
    seeds: list[str], options: dict[str, Any], settings: dict[str, Any], later: list[str], seconds: float | None
) -> dict[str, Any]:
    """Crawl in this process; what was seen."""
    crawl = quick_crawl(seeds, options, settings)
    watch = Samples(crawl, later, seconds)

    async def followed() -> Summary:
        task = asyncio.create_task(watch.follow())
        try:
            summary = await crawl.run()
            watch.look(summary)
            return summary
        finally:
            task.cancel()

    with coroutine_runner() as runner:
        summary = runner.run(followed())
    return {"summary": msgspec.structs.asdict(summary), "looks": watch.looks, "joined": watch.joined}


def _watched(
    directory: Path,
    seeds: Sequence[str] = (SEED,),
    seconds: float | None = None,
    later: Sequence[str] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Crawl in a process of its own, on a processor of its own; `settings` are those of units, by their names."""
    options["output"] = str(directory)
    with pinned(min):
        told: dict[str, Any] = apart("tools.bench.hostile:crawl_inside", seeds, options, settings or {}, later, seconds)
    return told


# -- large bodies

#: Megabytes of the one large body.
LARGE = 1_000

#: Bodies of a megabyte, one after the other: whatever each of them left behind would show.
BODIES = 10_000

#: Seconds of a run that count, after those in which the hosts are found.
COUNTED = 12.0

#: Bytes a second at which the body beside healthy hosts comes: it ends, and is packed, inside the window.
PACE = 150_000_000

MEGABYTE = 1_000_000

#: Rows of the table of many bodies.
ROWS = 8


class _Bodies(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    links = 0
    pace = 0
    block = hashlib.shake_128(b"gossamer").digest(10_000) * (MEGABYTE // 10_000)
    """Compresses to a few hundredths: the disk is not what is measured."""

    def do_GET(self) -> None:
        if self.path == "/robots.txt":
            self.send_error(404)
            return
        if self.path == "/":
            page = "".join(f'<a href="/{number}/1">x</a>' for number in range(self.links)).encode()
            self._head("text/html", len(page))
            self.wfile.write(page)
            return
        number, megabytes = map(int, self.path.strip("/").split("/"))
        self._head("application/octet-stream", megabytes * MEGABYTE)
        began = time.monotonic()
        for sent in range(megabytes):
            mark = number.to_bytes(8) + sent.to_bytes(8)
            self.wfile.write(mark + self.block[len(mark) :])
            if self.pace:
                time.sleep(max(0.0, began + (sent + 1) * MEGABYTE / self.pace - time.monotonic()))

    def _head(self, kind: str, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        pass


@contextmanager
def _serving(links: int = 0, pace: int = 0) -> Iterator[int]:
    """Serve bodies in a process of its own; gives the port."""
    call = msgspec.json.encode([links, pace]).decode()
    with serving(processes.command("gossamer.bench.harness", "tools.bench.hostile:serve", call)) as (said, _):
        yield int(said)


def _crawled(folder: str, seeds: Sequence[str], seconds: float | None = None, **options: Any) -> dict[str, Any]:
    return _watched(Path(folder, "crawl"), seeds, seconds, max_page_size=2 * LARGE * MEGABYTE, **options)


@pages_option(BODIES, "Send this many bodies of a megabyte.")
def bodies(pages: int = BODIES) -> BenchReport:
    """Measure one large body, its neighbours, and many bodies."""
    report, level = BenchReport("bodies"), 0
    table = report.table(
        f"One body, kept whole; memory <= {RISE >> 20} MiB more", "body", "peak MB", "MiB more", "held"
    )
    for megabytes in (0, 1, 10, 100, LARGE):
        with _serving() as port, tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
            summary = _crawled(folder, [f"http://127.0.0.1:{port}/0/{megabytes}"])["summary"]
        peak = summary["peak_rss_bytes"]
        level = level or peak
        held = "yes" if peak - level <= RISE and summary["bytes"] >= megabytes * MEGABYTE else "NO"
        more = f"{(peak - level) / (1 << 20):.0f}"
        table.add(f"{megabytes:,} MB" if megabytes else "none", f"{peak / 1e6:.0f}", more, held)
    table = report.table(
        f"{HOSTS} healthy hosts beside a body of {LARGE:,} MB that comes at {PACE / 1e6:.0f} MB/s; kept >= {KEPT:.0%}",
        *("beside", "healthy requests/s", "of the pace alone", "longest pause ms", "held"),
    )
    alone, pause = _pace(0)
    table.add("nothing", f"{alone:.1f}", "100 %", f"{pause * 1e3:.0f}", "")
    pace, pause = _pace(LARGE)
    held = "yes" if pace >= KEPT * alone else "NO"
    table.add("the body", f"{pace:.1f}", f"{pace / alone:.0%}", f"{pause * 1e3:.0f}", held)
    with _serving(links=pages) as port, tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        told = _crawled(folder, [f"http://127.0.0.1:{port}/"], per_host=8)
    summary, looks = told["summary"], told["looks"]
    cpu = summary["cpu_seconds"] / max(1, summary["fetched"]) * 1e3
    title = f"{pages:,} bodies of 1 MB, {summary['seconds']:.0f} s, {cpu:.1f} ms of CPU each"
    table = report.table(title, "seconds", "in flight or queued", "MB")
    for look in [*looks[:: -(-len(looks) // ROWS) or 1], looks[-1]]:
        table.add(f"{look['seconds']:.0f}", f"{look['queued']:,.0f}", f"{look['rss'] / 1e6:.0f}")
    growth = looks[-1]["rss"] - looks[len(looks) // 2]["rss"]
    table.add("the second half", "", f"{growth / 1e6:+.1f}")
    return report


def _pace(megabytes: int) -> tuple[float, float]:
    """Requests a second to healthy hosts, and the longest time without any, by their server's own log."""
    with _serving(pace=PACE) as port, tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        log = Path(folder, "requests.log")
        with simulated(HOSTS * 400, HOSTS, *_HEALTHY, log=log) as healthy:
            seeds = [SEED, *([f"http://127.0.0.1:{port}/0/{megabytes}"] if megabytes else [])]
            _crawled(folder, seeds, WARM + COUNTED, delay=DELAY, resolve=at(healthy))
        starts = _starts(log)
    counted = [start for start in starts if start > starts[-1] - COUNTED]
    return len(counted) / COUNTED, max((later - earlier for earlier, later in pairwise(counted)), default=COUNTED)


def serve(links: int, pace: int) -> None:
    """Serve bodies, and say at which port, until the process is ended."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bodies", (_Bodies,), {"links": links, "pace": pace}))
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


# -- memory of a long crawl

#: Pages of the crawl: a minute or two.
PAGES = 30_000

#: Hosts of the web: a frontier that holds something for each of them shows it.
WEB_HOSTS = 2_000

#: Rows of the table, and points of the curve.
LOOKS = 20

#: Columns of the longest bar.
WIDTH = 50


@pages_option(PAGES, "Crawl this many pages.")
def memory(pages: int = PAGES) -> BenchReport:
    """Crawl a simulated web, and draw what the crawl holds as it goes on."""
    report = BenchReport("memory")
    web = simulated(pages * 4, min(WEB_HOSTS, pages), *PLAIN)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder, web as port:
        told = _watched(Path(folder, "crawl"), resolve=at(port), max_pages=pages)
    looks: list[dict[str, float]] = told["looks"]
    step = max((look["rss"] for look in looks), default=1.0) / WIDTH
    table = report.table(
        f"a crawl of {told['summary']['pages']:,} pages on {WEB_HOSTS:,} hosts",
        *("seconds", "pages", "queued", "seen", "hosts", "MB", f"one # for {step / 1e6:.0f} MB"),
    )
    for look in looks[:: -(-len(looks) // LOOKS) or 1]:
        held = (f"{look[name]:,.0f}" for name in ("seconds", "pages", "queued", "seen", "hosts"))
        table.add(*held, f"{look['rss'] / 1e6:.0f}", "#" * round(look["rss"] / step))
    if len(looks) > 1:
        growth = report.table("growth over the second half", "what", "figure")
        middle, end = looks[len(looks) // 2], looks[-1]
        more = end["seen"] - middle["seen"]
        growth.add("memory", f"{(end['rss'] - middle['rss']) / 1e6:+.1f} MB")
        growth.add("URLs seen", f"{more:+,.0f}")
        growth.add("bytes for each of them", f"{(end['rss'] - middle['rss']) / more:.0f}" if more else "-")
    return report
