"""A crawl that comes back to its pages and is killed again and again: none comes before its time, and none is forgotten.

The web is a hub of pages. Some change at every answer, some never do, some are gone for a while. The server notes when each was
asked for. A kill may bring pages again that were in flight; between two kills a page comes twice only after `--min-interval`. The
last life is let live for some times `--max-interval`, in which every page has to come.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from pathlib import Path

from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb, Source
from tools.killing.campaigns import Say, Told
from tools.killing.site import PATIENCE, begun, judge_last

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


def run(folder: Path, say: Say, *, kills: int = 30, seed: int = 1, recrawl: str = f"adaptive={MEAN:g}s") -> Told:
    """Crawl the web again and again, killing the crawl so often, and judge what the server saw."""
    chance, told, asked = random.Random(seed), Told(), defaultdict[str, list[float]](list)
    names = [f"/{number}" for number in range(PAGES)]

    def page(request: FakeRequest) -> FakePage:
        number, times = int(request.target[1:]), asked[request.target]
        times.append(time.monotonic())
        if number % 10 == 0 and len(times) % 5 == 4:
            return FakePage("gone", status=404, latency=_LATENCY)
        version = len(times) if number % 3 == 0 else 0
        return FakePage(f"<title>{number}</title><p>{f'word{version} ' * 50}", latency=_LATENCY)

    hub = FakePage("".join(f'<a href="{name}">{name}</a>' for name in names))
    shown: dict[str, Source] = {"/": hub, **dict.fromkeys(names, page)}
    deaths, directory = list[float](), folder / "crawl"
    given = ["--recrawl", recrawl, "--min-interval", f"{LEAST}s", "--max-interval", f"{MOST}s"]
    given += ["--delay", "0s", "--per-host", str(_AT_ONCE), "--robots", "ignore"]
    with FakeWeb(shown) as web:
        first = ["crawl", web.url("/"), *given]
        for _ in range(kills):
            process = begun(directory, first)
            web.wait_for(len(web.requests) + chance.randint(1, MOST_REQUESTS), PATIENCE)
            process.kill()
            process.communicate()
            deaths.append(time.monotonic())
        last = time.monotonic()
        judge_last(told, begun(directory, first, "--max-time", f"{MOST * 3 + _LATE}s"), "limit")
        end = time.monotonic()
    told.figures |= {"kills": kills, "requests": sum(map(len, asked.values()))}
    judge(told, {name: asked[name] for name in names}, deaths, last, end)
    _compare(told, directory)
    return told


def judge(told: Told, asked: dict[str, list[float]], deaths: list[float], last: float, end: float) -> None:
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
    told.figures["again"] = sum(again.values())
    # A commit may wait for as many requests again as are in flight.
    told.wrong += [f"a kill brought {count} pages again" for count in again.values() if count > 8 * _AT_ONCE]


def _compare(told: Told, directory: Path) -> None:
    """The tables have a row for each visit that was kept, and no page was counted twice."""
    with Database(directory) as database:
        [(pages, visits)] = database.ask("SELECT count(DISTINCT url), count(*) FROM pages_all")
    if pages != PAGES + 1:
        told.wrong.append(f"the tables know {pages} pages of {PAGES + 1}")
    if (
        not told.figures["requests"] - told.figures["again"] - _AT_ONCE * (told.figures["kills"] + 1)
        <= visits
        <= told.figures["requests"] + visits // PAGES + told.figures["kills"]
    ):
        told.wrong.append(f"{visits} visits were kept of {told.figures['requests']} requests")
