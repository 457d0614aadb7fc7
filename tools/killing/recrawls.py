"""A crawl that comes back to its pages and is killed again and again: none comes before its time, and none is forgotten.

The web is a hub of pages. Some change at every answer, some never do, some are gone for a while. The server notes when each was
asked
for. A kill may bring pages a second time that were in flight; between two kills a page comes twice only after `--min-interval`.
The last life is let live for some times `--max-interval`, in which every page has to come.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.engine import processes
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

#: Pages of the web; with the hub they fill several groups of the commit.
PAGES = 120

#: Seconds between two visits of a page: at least, on the mean, at most. A crawl begins again in less than the first.
LEAST, MEAN, MOST = 3.0, 5.0, 10.0

#: Requests of a life after which it is killed, at most.
MOST_REQUESTS = 90

#: Seconds of a server's answer: requests overlap, so that a kill finds some in flight.
_LATENCY = 0.004

#: Requests in flight.
_AT_ONCE = 8

#: Seconds that a busy machine may need beyond the longest interval, from the time of a page to its request.
_LATE = 10.0

#: The clocks of server and crawl are read at different moments of a request.
_EARLY = 0.1

#: Seconds for one life, on a machine that has much else to do.
_PATIENCE = 300


class RecrawlKills(msgspec.Struct):
    """How it went."""

    kills: int = 0
    requests: int = 0
    again: int = 0
    """Requests for pages that a kill brought a second time."""
    wrong: list[str] = []

    @property
    def holds(self) -> bool:
        """It was killed as often as was asked, no page came too soon, and none was forgotten."""
        return not self.wrong


class _Pages:
    """Answers, and when they were asked for."""

    def __init__(self) -> None:
        self.asked: dict[str, list[float]] = defaultdict(list)

    def page(self, number: int) -> Callable[[FakeRequest], FakePage]:
        def answer(request: FakeRequest) -> FakePage:
            times = self.asked[request.target]
            times.append(time.monotonic())
            if number % 10 == 0 and len(times) % 5 == 4:
                return FakePage("gone", status=404, latency=_LATENCY)
            version = len(times) if number % 3 == 0 else 0
            return FakePage(f"<title>{number}</title><p>{f'word{version} ' * 50}", latency=_LATENCY)

        return answer


def run(kills: int, folder: Path, seed: int = 1, policy: str = f"adaptive={MEAN}s") -> RecrawlKills:
    """Crawl the web again and again, killing the crawl `kills` times, and judge what the server saw.

    Args:
        kills: how often.
        folder: an empty folder.
        seed: of the moments.
        policy: what is said to `--recrawl`.
    """
    chance, told, pages = random.Random(seed), RecrawlKills(), _Pages()
    names = [f"/{number}" for number in range(PAGES)]
    hub = FakePage("".join(f'<a href="{name}">{name}</a>' for name in names))
    shown = {"/": hub, **{name: pages.page(number) for number, name in enumerate(names)}}
    deaths, directory = list[float](), folder / "crawl"
    with FakeWeb(shown) as web:  # type: ignore[arg-type]  # pages and functions that make some
        while told.kills < kills:
            process = _started(web.url("/"), directory, policy)
            web.wait_for(len(web.requests) + chance.randint(1, MOST_REQUESTS), _PATIENCE)
            process.kill()
            process.communicate()
            deaths.append(time.monotonic())
            told.kills += 1
        last = time.monotonic()
        process = _started(web.url("/"), directory, policy, "--max-time", f"{MOST * 3 + _LATE}s")
        output, _ = process.communicate(timeout=_PATIENCE)
        end = time.monotonic()
    if process.returncode or not output.strip() or json.loads(output)["state"] != "limit":
        told.wrong.append(f"the last life ended with {process.returncode}: {output.decode(errors='replace')[:500]}")
    told.requests = sum(map(len, pages.asked.values()))
    judge(told, {name: pages.asked[name] for name in names}, deaths, last, end)
    _compare(told, directory)
    return told


def _started(url: str, directory: Path, policy: str, *options: str) -> subprocess.Popen[bytes]:
    is_begun = (directory / "crawl.toml").exists()
    given = ["resume", str(directory)] if is_begun else ["crawl", url, "-o", str(directory)]
    if not is_begun:
        given += ["--recrawl", policy, "--min-interval", f"{LEAST}s", "--max-interval", f"{MOST}s"]
        given += ["--delay", "0s", "--per-host", str(_AT_ONCE), "--robots", "ignore"]
    command = processes.command("gossamer", *given, "--json", "--quiet", *options)
    return subprocess.Popen(command, env=processes.environment(), stdout=subprocess.PIPE)


def judge(told: RecrawlKills, asked: dict[str, list[float]], deaths: list[float], last: float, end: float) -> None:
    """Hold what the server saw against what must hold."""
    again: dict[float, int] = defaultdict(int)
    for name, times in asked.items():
        for before, after in itertools.pairwise(times):
            if after - before >= LEAST - _EARLY:
                continue
            between = [death for death in deaths if before <= death <= after]
            if between:
                again[between[0]] += 1
            else:
                told.wrong.append(f"{name} came again after {after - before:.2f} s")
        seen = [last, *(at for at in times if at > last), end]
        longest = max(after - before for before, after in itertools.pairwise(seen))
        if longest > MOST + _LATE:
            told.wrong.append(f"{name} did not come for {longest:.1f} s")
    told.again = sum(again.values())
    # A commit may wait for as many requests again as are in flight.
    told.wrong += [f"a kill brought {count} pages again" for count in again.values() if count > 8 * _AT_ONCE]


def _compare(told: RecrawlKills, directory: Path) -> None:
    """The tables have a row for each visit that was kept, and no page was counted twice."""
    with Database(directory) as database:
        [(pages, visits)] = database.ask("SELECT count(DISTINCT url), count(*) FROM pages_all")
    if pages != PAGES + 1:
        told.wrong.append(f"the tables know {pages} pages of {PAGES + 1}")
    if (
        not told.requests - told.again - _AT_ONCE * (told.kills + 1)
        <= visits
        <= told.requests + visits // PAGES + told.kills
    ):
        told.wrong.append(f"{visits} visits were kept of {told.requests} requests")
