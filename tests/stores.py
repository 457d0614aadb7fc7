"""Crawls of a simulated web with a store, and what must hold of them by the server's log."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.commands import gave
from tests.s3 import BUCKET, s3_server, variables
from tests.waiting import until

from gossamer.agents.cluster import living
from gossamer.backup.contract import ObjectMissing
from gossamer.backup.opening import FolderStore
from tools.killing.loop import hits_of
from tools.killing.site import Round, served

CONCURRENCY, DELAY = 16, 0.25

ROUND = Round(seed=11, pages=500, delay=DELAY, depth=None, concurrency=CONCURRENCY)

LEASE = 3.0

PUBLISHING = ["--checkpoint-every", "1s", "--lease", f"{LEASE:g}s"]

AGENTS = ("agent-00", "agent-01")
"""Those with which a crawl begins that has several."""
SEVERAL = ["--agents", "2"]

GOSSAMER = [sys.executable, "-P", "-m", "gossamer"]


class Site:
    """A simulated web, a store, and the crawls of it."""

    def __init__(self, folder: Path, port: int, store: str, environment: dict[str, str]) -> None:
        self.folder, self.port, self.store = folder, port, store
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **environment}

    def begin(self, name: str, command: list[str]) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{name}.said").open("wb") as said:
            return subprocess.Popen(
                command, stdout=said, stderr=said, env=self.environment, start_new_session=True, cwd=self.folder
            )

    def crawl(self, name: str, *more: str) -> "subprocess.Popen[bytes]":
        command = ROUND.command(self.folder / name, self.port)
        return self.begin(name, [*command, "--store", self.store, *PUBLISHING, *more])

    def lose(self, name: str, process: "subprocess.Popen[bytes]") -> None:
        """Kill a crawl with all its agents, and take its folder away."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        everybody = (*AGENTS, "agent-02", "master-00")
        for number in living(self.folder / name, everybody).values():
            os.kill(number, signal.SIGKILL)
        until(lambda: not living(self.folder / name, everybody))
        shutil.rmtree(self.folder / name)

    def resume(self, name: str, *more: str) -> "subprocess.Popen[bytes]":
        return self.begin(name, [*GOSSAMER, "resume", self.store, "-o", str(self.folder / name), "--json", *more])

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.said").read_text()

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        status, out, said = gave(*words, cwd=self.folder, environment=self.environment)
        return subprocess.CompletedProcess(words, status, out, said)

    def all_have_published(self) -> bool:
        """Each of two agents has published a checkpoint, by a store in a folder."""
        return all(self.head(agent).get("checkpoint") for agent in AGENTS)

    def head(self, agent: str) -> dict[str, Any]:
        """The head of an agent, by a store in a folder; nothing where it has none."""
        with suppress(ObjectMissing):
            found: dict[str, Any] = json.loads(FolderStore(Path(self.store)).get(f"agents/{agent}/head.json"))
            return found
        return {}

    def pages_of_store(self) -> set[str]:
        """The pages of the last checkpoint; none before the first."""
        told = self.run("query", self.store, "select url from pages", "--format", "csv")
        return set(told.stdout.split()[1:]) if told.returncode == 0 else set()

    def pages(self, name: str, log_of: str = "crawl") -> set[str]:
        """The pages in the log of a crawl directory, or of one of its agents."""
        log = self.folder / name / "logs" / f"{log_of}.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        rows = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return {row["url"] for row in rows if row["event"] == "page"}


@contextmanager
def site(folder: Path, store: str, environment: dict[str, str]) -> Iterator[Site]:
    with served(ROUND, folder / "requests.log") as port:
        yield Site(folder, port, store, environment)


@contextmanager
def on(kind: str, folder: Path) -> Iterator[Site]:
    if kind == "folder":
        with site(folder, str(folder / "store"), {}) as one:
            yield one
        return
    with s3_server() as url, site(folder, f"s3://{BUCKET}/x", variables(url)) as one:
        yield one


def check_web(one: Site, name: str) -> dict[str, list[float]]:
    """All pages are there, once, and the server saw no host asked too early; returns when each URL was asked for."""
    counted = one.run(
        "query", str(one.folder / name), "select count(*), count(distinct url) from pages", "--format", "csv"
    )
    total, distinct = counted.stdout.splitlines()[1].split(",")
    assert total == distinct, "each page once"
    assert ROUND.expected() - one.pages(name) == set()
    asked: dict[str, list[float]] = defaultdict(list)
    hosts: dict[str, list[float]] = defaultdict(list)
    for hit in hits_of(one.folder / "requests.log"):
        asked[hit.url].append(hit.start)
        hosts[hit.host].append(hit.start)
    gaps = [later - before for starts in map(sorted, hosts.values()) for before, later in itertools.pairwise(starts)]
    assert min(gaps) >= DELAY * 0.98
    return asked
