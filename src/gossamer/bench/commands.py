"""Crawls as people run them: commands with processes of their own, beside the server of the simulated web.

Place in the flow: benchmarks that compare whole crawls begin them here. CPU time is that of all processes of a crawl, without the
server's.
"""

import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gossamer.bench.web import PLAIN, SEED, at, simulated
from gossamer.engine import processes
from gossamer.values.errors import UsageError

#: A crawl that stays in one process, also where others would join by themselves.
ALONE = ("--agents", "1")


class BenchedCrawl(msgspec.Struct, frozen=True):
    """One or more crawls that ran beside each other."""

    pages: int
    seconds: float
    cpu: float

    @property
    def pace(self) -> float:
        """Pages a second, from the first process' start to the last one's end."""
        return self.pages / self.seconds

    @property
    def cpu_each(self) -> float:
        """Milliseconds of CPU a page."""
        return 1e3 * self.cpu / self.pages


def crawled(pages: int, hosts: int, crawls: Sequence[Sequence[str]], *, web: int | None = None) -> BenchedCrawl:
    """Crawl a simulated web, by several commands at once.

    Args:
        pages: that each command fetches.
        hosts: of the web.
        crawls: the options of each command, beside those that make it quick; without any it has one agent.
        web: pages of the web, where there are more; else each command crawls it whole.

    Raises:
        UsageError: one of them failed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder,
        simulated(web or pages, hosts, *PLAIN) as port,
    ):
        part = ["--max-pages", str(pages)] if web else []
        began, before = time.monotonic(), cpu_of_children()
        running = [
            begun(Path(folder, str(number)), port, [*(more or ALONE), *part]) for number, more in enumerate(crawls)
        ]
        told = [(process.communicate()[0], process.returncode) for process in running]
        run = BenchedCrawl(0, time.monotonic() - began, cpu_of_children() - before)
    for out, code in told:
        if code:
            raise UsageError(f"a crawl ended with status {code}")
        run = msgspec.structs.replace(run, pages=run.pages + msgspec.json.decode(out)["pages"])
    return run


def begun(directory: Path, port: int, more: Sequence[str], seeds: Sequence[str] = (SEED,)) -> "subprocess.Popen[bytes]":
    """Begin a crawl that waits for no host, and writes its summary as JSON."""
    quick = [
        "--scope",
        "any",
        "--delay",
        "0",
        "--domain-delay",
        "0",
        "--ip-delay",
        "0",
        "--allow-network",
        "127.0.0.0/8",
    ]
    command = ["crawl", *seeds, *quick, "--resolve", *at(port), "--json", "-o", str(directory), *more]
    return subprocess.Popen(
        processes.command("gossamer", *command), env=processes.environment(), stdout=subprocess.PIPE
    )


def cpu_of_children() -> float:
    """Seconds of CPU of all processes that were begun here and have ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
