"""What hostile servers do to the others: the pace of healthy hosts and the memory, while every case of a chapter is under way.

Healthy hosts are asked at a pace that leaves the processor mostly idle, so that what is lost is lost to the hostile ones
and not to the neighbours of this machine. Each hostile case has a host of its own. They are there from the start, when the
healthy hosts must still be found, or join when those have their pace; what counts is the time from the moment of joining
on, in the healthy server's own log.
"""

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import msgspec

from gossamer.bench.report import BenchReport, FigureTable
from gossamer.bench.web import PLAIN, SEED, at, served, subject
from gossamer.values.errors import UsageError

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
_PLAIN = tuple(word for rule in ("host_exponent=10", *PLAIN) for word in ("--set", rule))


class Measured(msgspec.Struct, frozen=True):
    """One crawl of healthy hosts beside hostile ones."""

    pace: float
    """Requests a second to the healthy hosts."""
    worst: int
    """The same in the slowest second."""
    peak: int
    """Bytes of memory at the most, processes that parse included."""


def run(chapters: Sequence[str] = ()) -> BenchReport:
    """Measure each chapter (A to G, SLOW; none: all of them) beside nothing hostile at all, which is measured twice.

    Raises:
        UsageError: there is no such chapter.
    """
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
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        trusted = Path(folder, "ca.pem")
        with served("--hostile", "--ca-file", str(trusted)) as (port, said):
            found = _chapters(said, port)
            found[MANY] = [f"http://slow{number}.test/B11/slow-body" for number in range(SLOW)]
            if unknown := set(chapters) - found.keys():
                raise UsageError(f"chapter {min(unknown)} has no cases; there are {', '.join(found)}")
            alone = _measure([], [], port, trusted)
            _add(table, "nothing", [], alone, alone)
            for chapter in chapters or found:
                seeds = found[chapter]
                if chapter != MANY:  # what a person lists before all others comes before all others
                    _add(table, f"{chapter}, from the start", seeds, _measure(seeds, [], port, trusted), alone)
                _add(table, f"{chapter}, joining", seeds, _measure([], seeds, port, trusted), alone)
            _add(table, "nothing, again", [], _measure([], [], port, trusted), alone)
    return report


def _add(table: FigureTable, beside: str, seeds: Sequence[str], one: Measured, alone: Measured) -> None:
    more = max(0, one.peak - alone.peak)
    held = "yes" if one.pace >= KEPT * alone.pace and more <= RISE else "NO"
    share = f"{one.pace / alone.pace:.0%}"
    load = f"{os.getloadavg()[0]:.1f}"
    table.add(beside, len(seeds), f"{one.pace:.1f}", one.worst, share, f"{more / (1 << 20):.0f}", held, load)


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


def _name_server(said: IO[str]) -> str:
    """The name server of a simulated web, from what it says of itself."""
    while line := said.readline():
        if found := re.search(r"by DNS +(\S+)", line):
            return found[1]
    raise UsageError("the simulated web has no name server")


def _measure(first: Sequence[str], later: Sequence[str], port: int, trusted: Path) -> Measured:
    """Crawl healthy hosts, and hostile ones from the start and from :data:`WARM` on."""
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        log = Path(folder, "requests.log")
        web = "--pages", str(HOSTS * 400), "--hosts", str(HOSTS), "--log", str(log), "--dns-port", "0", *_PLAIN
        with served(*web) as (healthy, said_by):
            told = subject(
                "watch",
                Path(folder, "crawl"),
                [SEED, *first],
                WARM + WINDOW + 1.0,
                later=(WARM, later),
                # Names that pages make up are asked for here, and no name server of the machine's hears of them.
                settings={"http": {"ca_file": str(trusted)}, "dns": {"servers": [_name_server(said_by)]}},
                delay=DELAY,
                domain_delay=DOMAIN_DELAY,
                resolve=("*.hostile.sim=127.0.0.1", f"*.test=127.0.0.1:{port}", *at(healthy)),
            )
        # The first column is the start of each request, in microseconds of the monotonic clock.
        starts = (int(line.partition(b"\t")[0]) / 1e6 - told["joined"] for line in log.read_bytes().splitlines()[1:])
    seconds = [0] * int(WINDOW)
    for start in starts:
        if 0 <= start < WINDOW:
            seconds[int(start)] += 1
    return Measured(sum(seconds) / WINDOW, min(seconds), told["summary"]["peak_rss_bytes"])
