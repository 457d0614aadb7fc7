"""What hostile servers do to the others: the pace of healthy hosts and the memory, while every case of a chapter is under way.

Healthy hosts are asked at a pace that leaves the processor mostly idle, so that what is lost is lost to the hostile ones
and not to the neighbours of this machine. The pace is counted in the healthy server's own log. Each hostile case has a
host of its own.
"""

import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from gossamer.bench.report import Report
from gossamer.bench.web import SEED, at, served, simulated, subject

#: Healthy hosts, and seconds between two requests to one: 80 requests a second in all, a fifth of a processor.
HOSTS, DELAY = 40, 0.5

#: Seconds of a run that count, after those in which the hosts are found.
WINDOW, WARM = 8.0, 4.0

#: FAULTS, section 2: healthy hosts keep this much of their pace, and memory rises by so many bytes at most.
KEPT, RISE = 0.95, 64 << 20


def run() -> Report:
    """Measure each chapter beside nothing hostile at all."""
    report = Report("hostile")
    table = report.table(
        f"{HOSTS} healthy hosts, a request each {DELAY} s to each; kept >= {KEPT:.0%}, memory <= {RISE >> 20} MiB more",
        *("beside", "cases", "healthy requests/s", "of the pace alone", "MiB more", "held"),
    )
    with served("--hostile") as (port, said):
        chapters = _chapters(said, port)
        alone, level = _measure([], port)
        table.add("nothing", 0, f"{alone:.1f}", "100 %", "", "")
        for chapter, seeds in chapters.items():
            pace, peak = _measure(seeds, port)
            more = max(0, peak - level)
            held = "yes" if pace >= KEPT * alone and more <= RISE else "NO"
            table.add(chapter, len(seeds), f"{pace:.1f}", f"{pace / alone:.0%}", f"{more / (1 << 20):.0f}", held)
    return report


def _chapters(said: Any, port: int) -> dict[str, list[str]]:
    """The cases by chapter, each at a host of its own, from what the hostile server says of itself."""
    found: dict[str, list[str]] = defaultdict(list)
    # The line that told the port was the first case's.
    lines = [f"_ http://hostile.sim:{port}/A1/gzip-bomb"]
    while not (line := said.readline()).startswith("All of them"):
        lines.append(line)
    for line in lines:
        case = re.search(r"http://hostile\.sim:\d+(/([A-Z])\w+/\S+)", line)
        if case is not None:
            found[case[2]].append(f"http://{case[1].split('/')[1].lower()}.hostile.sim{case[1]}")
    return dict(found)


def _measure(hostile: list[str], port: int) -> tuple[float, int]:
    """Crawl healthy and hostile hosts at once: requests a second to the healthy, and the most bytes of memory."""
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        log = Path(folder, "requests.log")
        with simulated(HOSTS * 400, HOSTS, "host_exponent=10", "plain_robots=true", "trap_share=0", log=log) as healthy:
            told = subject(
                "watch",
                Path(folder, "crawl"),
                [SEED, *hostile],
                WARM + WINDOW,
                delay=DELAY,
                resolve=(f"*.hostile.sim=127.0.0.1:{port}", *at(healthy)),
            )
        # The first column is microseconds of the clock at the start of each request.
        starts = sorted(int(line.partition(b"\t")[0]) for line in log.read_bytes().splitlines()[1:])
    end = starts[-1]
    counted = sum(end - WINDOW * 1e6 < start for start in starts)
    return counted / WINDOW, max(int(look["rss"]) for look in told["looks"])
