"""The web of a kill loop: a simulated one, whose server outlives every crawler and writes down each request.

200 hosts on loopback, 20 ms of latency with jitter, 5 % redirects, 5 % errors that heal, pages of up to 2 MB, and for some
rounds a host without an end. Everything follows from the round's seed, so the expected pages are known.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine import processes
from gossamer.simweb import ServeOptions, SimWeb, WebSpec, beside
from gossamer.simweb.graph import WebGraph, expected_pages
from gossamer.storage.logs import LOG_PATH
from gossamer.storage.tables.places import CRAWL_FILE
from tools.killing import Told

#: Hosts of each round.
HOSTS = 200

#: Median seconds before the first byte.
LATENCY = 0.02

#: Seconds for one life, on a machine that has much else to do.
PATIENCE = 600


class Round(msgspec.Struct, frozen=True):
    """One web, and how it is crawled."""

    seed: int
    pages: int
    delay: float
    """Seconds between two requests to a host."""
    depth: int | None
    """Links from the seed; then there is a host without an end, too."""
    concurrency: int
    per_host: int = 1
    """Live requests to a host."""

    @property
    def spec(self) -> WebSpec:
        return WebSpec(
            seed=self.seed,
            pages=self.pages,
            hosts=HOSTS,
            latency=LATENCY,
            redirect_share=0.05,
            flaky_share=0.05,
            # With 503 and its Retry-After each such page would make its host wait for minutes, as it should.
            flaky_status=500,
            trap_share=0.0 if self.depth is None else 1 / HOSTS,
            # Crawl delays of 1 to 30 s would make a round take an hour; robots.txt is asked for all the same.
            plain_robots=True,
        )

    @property
    def first_page(self) -> str:
        return f"http://{SimWeb(self.spec).hosts.name(0)}/"

    def expected(self) -> set[str]:
        """Every page that the crawl must fetch."""
        graph = WebGraph(SimWeb(self.spec))
        return {graph.url(int(page)) for page in expected_pages(graph, None, "any", self.depth).pages}

    def command(self, directory: Path, port: int) -> list[str]:
        options = {
            "scope": "any",
            "allow-network": "127.0.0.0/8",
            "resolve": f"*.sim=127.0.0.1:{port}",
            "delay": f"{self.delay}s",
            "agents": "1",
            "concurrency": str(self.concurrency),
            "per-host": str(self.per_host),
            **({} if self.depth is None else {"depth": str(self.depth)}),
        }
        given = [part for name, value in options.items() for part in (f"--{name}", value)]
        # Errors that heal are tried again after a moment instead of minutes.
        given += ["--set", "politeness.retries=[0.2, 0.2, 0.2]", "--json", "-o", str(directory)]
        return [sys.executable, "-P", "-m", "gossamer", "crawl", self.first_page, *given]


def resume_command(directory: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "gossamer", "resume", str(directory), "--json"]


def send(number: signal.Signals, to: Iterable[int]) -> None:
    """Send a signal to processes, some of which may be gone."""
    for process in to:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def started(command: Sequence[str], said: Path, **more: Any) -> subprocess.Popen[bytes]:
    """A process that writes all that it says behind what a file has, unless `more` leads it elsewhere."""
    with said.open("ab") as file:
        return subprocess.Popen(command, **{"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, **more})


def rounds(folder: Path, told: Told, kills: int, most: int) -> Iterator[tuple[Path, int]]:
    """Rounds until there were so many kills, `most` in each: a folder, and how many kills there may be.

    The caller counts the kills. The folder of a round in which everything held is removed.
    """
    while (left := kills - told.figures["kills"]) > 0:
        place, before = folder / f"round-{told.figures['rounds']}", len(told.wrong)
        place.mkdir(parents=True)
        yield place, min(most, left)
        told.figures["rounds"] += 1
        if len(told.wrong) == before:
            shutil.rmtree(place, ignore_errors=True)


def pages_of(directory: Path) -> list[dict[str, Any]]:
    """The rows of pages in the log of a crawl."""
    log = directory / LOG_PATH
    rows = map(json.loads, log.read_bytes().splitlines() if log.exists() else [])
    return [row for row in rows if row["event"] == "page"]


def size_of(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def unlike(kept: Iterable[str], expected: Set[str]) -> Iterator[str]:
    """How the pages that a crawl has kept differ from those that are expected, each once."""
    counts = Counter(kept)
    if missing := expected - counts.keys():
        yield f"{len(missing)} pages are missing, as {min(missing)}"
    if doubled := [url for url, times in counts.items() if times > 1]:
        yield f"{len(doubled)} pages are kept twice, as {min(doubled)}"


def begun(
    directory: Path,
    first: Sequence[str],
    *always: str,
    environment: Mapping[str, str] | None = None,
    apart: bool = False,
) -> subprocess.Popen[bytes]:
    """A crawl that tells its summary: begun by the words of `first`, or resumed where it has begun.

    With `apart` it has a session of its own, so that a kill may take all of it.
    """
    words = ["resume", str(directory)] if (directory / CRAWL_FILE).exists() else [*first, "-o", str(directory)]
    command = processes.command("gossamer", *words, "--json", "--quiet", *always)
    place = {**processes.environment(), **(environment or {})}
    return subprocess.Popen(
        command, env=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=apart
    )


def judge_last(told: Told, process: subprocess.Popen[bytes], state: str = "finished") -> None:
    """Wait for the end of the last life, which has to come by itself and to be told."""
    output, _ = process.communicate(timeout=PATIENCE)
    if process.returncode or not output.strip() or json.loads(output)["state"] != state:
        told.wrong.append(f"the last life ended with {process.returncode}: {output.decode(errors='replace')[:500]}")


def round_of(number: int, seed: int, pages: int, concurrency: int) -> Round:
    """The rounds take turns, each with kills of its own kind to survive.

    Hosts with several requests in flight, so that some of a queue are kept and some are not; quick hosts; hosts that want a
    second between requests, which a restart must not shorten; a depth that bounds the crawl, where nearer ways count.
    """
    match number % 4:
        case 0:
            return Round(seed + number, pages, 0.0, None, concurrency, per_host=4)
        case 1:
            return Round(seed + number, pages, 0.05, None, concurrency)
        case 2:
            return Round(seed + number, max(300, pages // 8), 1.0, None, concurrency)
        case _:
            return Round(seed + number, pages, 0.05, 4, concurrency)


def served(round_: Round, log: Path) -> AbstractContextManager[int]:
    """Serve the web of a round while a block runs; gives its port."""
    return beside(round_.spec, ServeOptions(log=log))
