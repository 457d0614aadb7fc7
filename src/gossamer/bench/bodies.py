"""Bodies far larger than pages: what memory a gigabyte takes, what it costs the other hosts, and what thousands leave behind.

A server of its own sends bodies of any size, `/N/M` M megabytes that no other number has; the crawl that is measured keeps
archive, ledger and tables as a plain command does. The peak of memory is the kernel's, of the crawl's process over its whole
life and of the process that makes tables; it stands beside that of a crawl without such a body.
"""

import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

from gossamer.bench.peers import pinned
from gossamer.bench.report import BenchReport, FigureTable
from gossamer.bench.web import PLAIN, SEED, at, simulated, subject
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: Megabytes of the one large body, and what memory may rise by for it (issue: large bodies).
LARGE, RISE = 1_000, 64 << 20

#: Bodies of a megabyte, one after the other: whatever each of them left behind would show.
BODIES = 10_000

#: Healthy hosts beside the large body, seconds between two requests to one, and the share of their pace that they keep.
HOSTS, DELAY, KEPT = 40, 0.5, 0.95

#: Seconds of a run that count, after those in which the hosts are found.
WINDOW, WARM = 12.0, 4.0

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
    command = processes.command("gossamer.bench.bodies", str(links), str(pace))
    with pinned(max):
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=processes.environment())
    assert server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        if not port.isdigit():
            raise UsageError("the server of bodies did not start; see above")
        yield int(port)
    finally:
        server.terminate()
        server.communicate()


def _crawled(folder: str, seeds: Sequence[str], seconds: float | None = None, **options: Any) -> dict[str, Any]:
    return subject("watch", Path(folder, "crawl"), seeds, seconds, max_page_size=2 * LARGE * MEGABYTE, **options)


def run(bodies: int = BODIES) -> BenchReport:
    """Measure one large body, its neighbours, and many bodies."""
    report = BenchReport("bodies")
    _one(report.table(f"One body, kept whole; memory <= {RISE >> 20} MiB more", "body", "peak MB", "MiB more", "held"))
    columns = ("beside", "healthy requests/s", "of the pace alone", "longest pause ms", "held")
    title = (
        f"{HOSTS} healthy hosts beside a body of {LARGE:,} MB that comes at {PACE / 1e6:.0f} MB/s; kept >= {KEPT:.0%}"
    )
    _beside(report.table(title, *columns))
    _many(report, bodies)
    return report


def _one(table: FigureTable) -> None:
    level = 0
    for megabytes in (0, 1, 10, 100, LARGE):
        with _serving() as port, tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
            told = _crawled(folder, [f"http://127.0.0.1:{port}/0/{megabytes}"])
        peak = told["summary"]["peak_rss_bytes"]
        level = level or peak
        held = "yes" if peak - level <= RISE and told["summary"]["bytes"] >= megabytes * MEGABYTE else "NO"
        more = f"{(peak - level) / (1 << 20):.0f}"
        table.add(f"{megabytes:,} MB" if megabytes else "none", f"{peak / 1e6:.0f}", more, held)


def _beside(table: FigureTable) -> None:
    alone, pause = _pace(0)
    table.add("nothing", f"{alone:.1f}", "100 %", f"{pause * 1e3:.0f}", "")
    pace, pause = _pace(LARGE)
    share = pace / alone
    table.add("the body", f"{pace:.1f}", f"{share:.0%}", f"{pause * 1e3:.0f}", "yes" if share >= KEPT else "NO")


def _pace(megabytes: int) -> tuple[float, float]:
    """Requests a second to healthy hosts, and the longest time without any, by their server's own log."""
    with _serving(pace=PACE) as port, tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        log = Path(folder, "requests.log")
        settings = ("host_exponent=10", *PLAIN)
        with simulated(HOSTS * 400, HOSTS, *settings, log=log) as healthy:
            seeds = [SEED, *([f"http://127.0.0.1:{port}/0/{megabytes}"] if megabytes else [])]
            _crawled(folder, seeds, WARM + WINDOW, delay=DELAY, resolve=at(healthy))
        # The first column is microseconds of the clock at the start of each request.
        starts = sorted(int(line.partition(b"\t")[0]) / 1e6 for line in log.read_bytes().splitlines()[1:])
    counted = [start for start in starts if start > starts[-1] - WINDOW]
    return len(counted) / WINDOW, max((later - earlier for earlier, later in pairwise(counted)), default=WINDOW)


def _many(report: BenchReport, bodies: int) -> None:
    with _serving(links=bodies) as port, tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        told = _crawled(folder, [f"http://127.0.0.1:{port}/"], per_host=8)
    summary, looks = told["summary"], told["looks"]
    cpu = summary["cpu_seconds"] / max(1, summary["fetched"]) * 1e3
    title = f"{bodies:,} bodies of 1 MB, {summary['seconds']:.0f} s, {cpu:.1f} ms of CPU each"
    table = report.table(title, "seconds", "in flight or queued", "MB")
    for look in [*looks[:: -(-len(looks) // ROWS) or 1], looks[-1]]:
        table.add(f"{look['seconds']:.0f}", f"{look['queued']:,.0f}", f"{look['rss'] / 1e6:.0f}")
    growth = looks[-1]["rss"] - looks[len(looks) // 2]["rss"]
    table.add("the second half", "", f"{growth / 1e6:+.1f}")


def _serve() -> None:
    links, pace = map(int, sys.argv[1:3])
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bodies", (_Bodies,), {"links": links, "pace": pace}))
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _serve()
