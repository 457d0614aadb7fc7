"""What it costs to exchange URLs by files: a million that one agent found, written into files, and merged by the other.

Both are crawls that have fetched nothing. The first one is given links of pages, as hosts take turns in a crawl; its outbox writes
them into files, where they stand by hosts. CPU time is that of the commands `gossamer exchange` and `gossamer merge`, from start to
end.
"""

import asyncio
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from gossamer.agents.merging import at_rest
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.bench.commands import cpu_of_children
from gossamer.bench.report import BenchReport
from gossamer.engine import processes
from gossamer.storage.mailbox.exchange_files import OUT
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, SUFFIX
from gossamer.values.errors import UsageError
from gossamer.values.task import Task

#: URLs.
PAGES = 1_000_000

#: URLs for each host, and for each page that links to them.
OF_HOST, OF_PAGE = 50, 10

#: URLs that the first agent is given at once.
_AT_ONCE = 2_000

#: Runs of the merge, each with a crawl of its own.
REPEATS = 3

_ONE, _TWO = "agent-01", "agent-02"


def run(pages: int = PAGES) -> BenchReport:
    """Measure it.

    Raises:
        UsageError: a command failed.
    """
    report = BenchReport("merge")
    runs: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        one, two = _agents(Path(folder), pages)
        runs["written into files"] = [_measured("exchange", str(one))]
        files = [str(path) for path in (one / OUT).glob(f"*{SUFFIX}")]
        size = sum(Path(file).stat().st_size for file in files)
        for number in range(REPEATS):
            copy = shutil.copytree(two, Path(folder, f"copy-{number}"))
            runs.setdefault("merged", []).append(_measured("merge", str(copy), *files))
            runs.setdefault("the same files once more", []).append(_measured("merge", str(copy), *files))
            shutil.rmtree(copy)
    table = report.table(
        f"{pages:,} URLs on {_hosts(pages):,} hosts, {len(files)} files, {size / 1e6:.1f} MB",
        *("what", "s of CPU, median", "us a URL", "all runs", "seconds"),
    )
    for what, found in runs.items():
        middle = statistics.median(cpu for cpu, _ in found)
        table.add(
            *(what, f"{middle:.1f}", f"{1e6 * middle / pages:.1f}", " ".join(f"{cpu:.1f}" for cpu, _ in found)),
            f"{statistics.median(seconds for _, seconds in found):.1f}",
        )
    return report


def _measured(*command: str) -> tuple[float, float]:
    began, before = time.monotonic(), cpu_of_children()
    _do(*command)
    return cpu_of_children() - before, time.monotonic() - began


def _do(*command: str) -> None:
    done = subprocess.run(
        processes.command("gossamer", *command),
        env=processes.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UsageError(f"gossamer {command[0]} ended with status {done.returncode}: {done.stderr.strip()}")


def _agents(folder: Path, urls: int) -> tuple[Path, Path]:
    """Two agents that have fetched nothing; the first one owes the second so many URLs."""
    ring = RingDesignation(RingSheet(members=(_ONE, _TWO)))
    seeds = {ring.owner(host): f"http://{host}/" for host in (f"seed{number}.example" for number in range(50))}
    one, two = folder / "1", folder / "2"
    quiet = ["--exchange", "files", "--contact", "me@example.org", "--quiet"]
    _do("crawl", seeds[_TWO], *quiet, "--agents", "2", "--agent", "1", "-o", str(one))
    _do("crawl", seeds[_ONE], *quiet, "--agent", "2", "--exchange-key", str(one / EXCHANGE_KEY), "-o", str(two))

    async def given() -> None:
        tasks = islice(_tasks(ring, _hosts(urls)), urls)
        async with at_rest(one, print) as (_, intake):
            while part := list(islice(tasks, _AT_ONCE)):
                await intake.receive(part)

    asyncio.run(given())
    return one, two


def _hosts(urls: int) -> int:
    return max(1, urls // OF_HOST)


def _tasks(ring: RingDesignation, count: int) -> Iterator[Task]:
    """Pages of so many hosts of the second agent, which take turns."""
    names = (f"www.h{number}.example" for number in range(10 * count))
    hosts = list(islice((host for host in names if ring.owner(host) == _TWO), count))
    number = 0
    while True:
        host = hosts[number % len(hosts)]
        source = f"http://www.s{number // OF_PAGE % 997}.example/from/{number // OF_PAGE}.html"
        yield Task(f"http://{host}/articles/page-{number}.html", host, 3, source, "a href")
        number += 1
