"""A limit of depth that changes while the crawl runs: it ends with the pages of a crawl begun so (Hunyadi 2007, 4.7)."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.waiting import until

from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import build
from gossamer.engine.wiring import read
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb
from tools.killing.site import Round, resume_command, served

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}


def chain(length: int, width: int = 4) -> dict[str, list[str]]:
    """Levels of pages, each of which links to two of the next level and to one of a level above, with some short cuts."""
    chance = random.Random(length)
    links: dict[str, list[str]] = {"/": [f"/1/{n}" for n in range(width)]}
    for level in range(1, length):
        for n in range(width):
            below = [f"/{level + 1}/{(n + step) % width}" for step in (0, 1)] if level + 1 < length else []
            links[f"/{level}/{n}"] = [*below, f"/{chance.randrange(1, level + 1)}/{chance.randrange(width)}"]
    links["/1/0"].append("/4/3")
    return links


def within(links: dict[str, list[str]], depth: int) -> set[str]:
    found, border = {"/"}, ["/"]
    for _ in range(depth):
        border = [target for page in border for target in links[page] if target not in found]
        found.update(border)
    return found


def crawl(web: FakeWeb, folder: Path, changes: list[tuple[int, str]], **options: object) -> tuple[Summary, Crawl]:
    """Crawl; whenever so many requests have come in, another limit of depth is set as `gossamer set` does."""
    job = Crawl(
        [web.url("/")],
        build(all_options(), {"delay": 0, "output": str(folder), "per_host": 4, **options}),
        tables=False,
    )
    left = list(changes)
    done: list[asyncio.Task[None]] = []

    async def body() -> Summary:
        loop = asyncio.get_running_loop()
        note, count = web.note, 0

        def change(depth: str) -> None:
            done.append(asyncio.ensure_future(job.set("ledger", {"depth": depth})))

        def noting(request: object) -> None:
            nonlocal count
            count += 1
            if left and count == left[0][0]:
                loop.call_soon_threadsafe(change, left.pop(0)[1])
            note(request)  # type: ignore[arg-type]

        web.note = noting  # type: ignore[method-assign]
        summary = await job.run()
        for one in done:
            await one
        return summary

    with asyncio.Runner() as runner:
        return runner.run(body()), job


@pytest.mark.parametrize(
    ("begun", "changes", "ended"),
    [
        (3, [(8, "7")], 7),
        (2, [(6, "3"), (10, "9")], 9),
        (3, [(6, "none")], 11),
        (9, [(6, "3"), (9, "7")], 7),
        (9, [(5, "2"), (7, "5"), (9, "2"), (11, "11")], 11),
    ],
)
def test_a_limit_that_is_raised_ends_with_the_pages_of_a_crawl_begun_so(
    begun: int, changes: list[tuple[int, str]], ended: int, tmp_path: Path
) -> None:
    links = chain(12)
    with FakeWeb.graph(links) as web:
        summary, _ = crawl(web, tmp_path, changes, depth=begun)
        assert Counter(web.targets()) == Counter(within(links, ended)), "each page once, whenever it was cut"
    assert (summary.state, summary.queued, summary.pages) == ("finished", 0, len(within(links, ended)))


def test_a_limit_that_is_lowered_drops_what_is_queued_deeper_and_counts_it(tmp_path: Path) -> None:
    to = 2
    links = chain(12)
    with FakeWeb.graph(links) as web:
        summary, job = crawl(web, tmp_path, [(10, str(to))], depth=11, per_host=1)
        asked = Counter(web.targets())
    assert set(asked) == within(links, to), "nothing as deep had been fetched"
    assert set(asked.values()) == {1}
    assert (summary.state, summary.queued) == ("finished", 0)
    assert read(tmp_path / "crawl.toml").providers["ledger"].settings["depth"] == to
    assert summary.discovered == len(asked), "what was given up counts as never met"
    assert job.ledger.counters()["dropped:depth"] > 0


def test_a_crawl_that_knows_no_depths_refuses_a_limit_and_goes_on(tmp_path: Path) -> None:
    links = chain(6)
    with FakeWeb.graph(links) as web:
        with pytest.raises(SettingError, match="began without a limit of depth"):
            crawl(web, tmp_path, [(3, "2")])
        assert set(web.targets()) == set(links), "nothing has changed"
    assert "depth" not in read(tmp_path / "crawl.toml").providers["ledger"].settings


# -- a simulated web, by the command line, and killed


def at(depth: int) -> Round:
    """A web of 200 hosts with redirects, errors that heal and a host without an end, crawled so deep."""
    return Round(seed=11, pages=400, delay=0.0, depth=depth, concurrency=16, per_host=4)


def rows_of(folder: Path) -> dict[str, int]:
    """URL and depth of what was fetched; robots.txt apart."""
    lines = (folder / "logs" / "crawl.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["event"] == "page" and row["relation"] != "robots"]
    return {row["url"]: row["depth"] for row in rows}


def gossamer(*arguments: str) -> str:
    command = [sys.executable, "-m", "gossamer", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def reach(lines: int, log: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait for so many lines of a log, or for the end of the process."""
    until(lambda: process.poll() is not None or (log.exists() and log.read_bytes().count(b"\n") >= lines))


def killed_and_resumed(first: int, then: int, folder: Path, port: int, *, kills: int) -> None:
    """A crawl of depth `first` that is told to go as deep as `then`, is killed right after it, and goes on to its end."""
    process = subprocess.Popen(at(first).command(folder, port), stdout=subprocess.PIPE, env=ENVIRONMENT)
    log = folder / "logs" / "crawl.jsonl"
    reach(12, log, process)
    assert process.poll() is None
    gossamer("set", str(folder), f"depth={then}")
    for number in range(kills):
        process.send_signal(signal.SIGKILL)
        process.communicate()
        process = subprocess.Popen(resume_command(folder), stdout=subprocess.PIPE, env=ENVIRONMENT)
        lines = log.read_bytes().count(b"\n")
        if number + 1 < kills:
            reach(lines + 20, log, process)
    out, _ = process.communicate(timeout=HUNG_AFTER)
    summary = json.loads(out)
    assert (summary["state"], summary["queued"]) == ("finished", 0)


@pytest.mark.long
@pytest.mark.parametrize(("first", "then"), [(2, 4), (6, 2)])
def test_a_kill_in_between_changes_no_page_of_it(first: int, then: int, tmp_path: Path) -> None:
    with served(at(then), tmp_path / "requests.log") as port:
        begun_so = subprocess.run(at(then).command(tmp_path / "whole", port), capture_output=True, env=ENVIRONMENT)
        assert begun_so.returncode == 0, begun_so.stderr
        killed_and_resumed(first, then, tmp_path / "changed", port, kills=2)
    whole, found = rows_of(tmp_path / "whole"), rows_of(tmp_path / "changed")
    assert at(then).expected() <= set(whole)
    assert {url for url, depth in found.items() if url in whole or depth <= then} == set(whole)
    deeper = set(found) - set(whole)
    assert len(deeper) <= (0 if then > first else 12 + 2 * 16), "only what had been fetched, or was on its way"
