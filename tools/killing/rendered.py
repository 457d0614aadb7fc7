"""A crawl that renders pages, killed in mid-page: the agent, the guard of its browser, or the browser, again and again.

The web is an application: each route is a shell with one script, which asks for the data of the route and links to two others. So
a page that is lost takes all behind it along, and one that is shown with the data of another has another title. Each round crawls
an application of its own to its end, through kills that come while pages wait for their data. After the kill of a browser the crawl
goes on with another; after that of the agent it is resumed.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from tools.killing import Say, Told
from tools.killing.site import PATIENCE, begun, judge_last, send
from tools.verifying import verify

SHELL = "<!doctype html><title>Shop</title><script src=/app.js></script><body><div id=root></div>"
SCRIPT = """
const route = location.pathname.split('/').pop();
fetch('/api/' + route).then(answer => answer.json()).then(item => {
  document.title = 'Item ' + route;
  const links = item.links.map(link => `<a href="/item/${link}">item ${link}</a>`).join(' ');
  document.getElementById('root').innerHTML = `<h1>Item ${route}</h1><p>${item.text}</p>${links}`;
});
"""

#: Kills of one round, and routes of its application for each.
KILLS_OF_A_ROUND, ROUTES = 20, 20

#: Requests between two kills, at least and less than.
FEWEST, MOST = 10, 40

#: Seconds of an answer: with two requests a page, each kill finds pages that wait for their data.
LATENCY = 0.02

#: Requests in flight to the host.
AT_ONCE = 4

#: How often of ten each process is killed.
MIX = {"agent": 5, "guard": 2, "browser": 3}


class Shop(FakeWeb):
    """An application of so many routes; each links to two others, and has words of its own."""

    def __init__(self, routes: int, robots: str = "", latency: float = 0.0) -> None:
        self.routes, self.latency = routes, latency
        self.times: list[tuple[float, str]] = []
        pages = {"/app.js": FakePage(SCRIPT, type="text/javascript")}
        pages |= {"/robots.txt": FakePage(robots, type="text/plain")} if robots else {}
        super().__init__(pages, otherwise=self.other)

    def other(self, request: FakeRequest) -> FakePage:
        if not request.target.startswith("/api/"):
            return FakePage(SHELL)
        number = int(request.target.rpartition("/")[2])
        words = " ".join(f"word{number}x{one}" for one in range(50))
        links = [(2 * number + 1) % self.routes, (2 * number + 2) % self.routes]
        body = f'{{"text": "{words}", "links": {links}}}'
        return FakePage(body, type="application/json", latency=self.latency)

    def note(self, request: FakeRequest) -> None:
        self.times.append((time.monotonic(), request.target))
        super().note(request)


def run(folder: Path, say: Say, *, kills: int = 50, seed: int = 1) -> Told:
    """Kill crawls until there were so many kills; each round is crawled to its end and judged, and removed where all was right."""
    told, chance = Told(), random.Random(seed)
    while told.figures["kills"] < kills:
        number, before, most = told.figures["rounds"], len(told.wrong), kills - told.figures["kills"]
        place, most = folder / f"round-{number}", min(KILLS_OF_A_ROUND, most)
        place.mkdir(parents=True)
        with Shop(ROUTES * most, latency=LATENCY) as shop:
            deaths = _killed(shop, place / "crawl", most, chance, told)
            _judge(told, shop, place / "crawl", deaths, f"round {number}: ")
        told.figures["rounds"] += 1
        say(f"round {number}: {dict(deaths)}, {len(shop.requests)} requests for {shop.routes} pages")
        if len(told.wrong) == before:
            shutil.rmtree(place)
    return told


def _killed(shop: Shop, directory: Path, kills: int, chance: random.Random, told: Told) -> Counter[str]:
    """Crawl to the end through so many kills; how many there were of each process."""
    given = ["--delay", "0", "--per-host", str(AT_ONCE), "--concurrency", str(AT_ONCE), "--render", "auto"]
    first, deaths = ["crawl", shop.url("/item/0"), *given], Counter[str]()
    child = begun(directory, first, apart=True)
    while deaths.total() < kills:
        shop.wait_for(len(shop.requests) + chance.randrange(FEWEST, MOST), PATIENCE)
        [way] = chance.choices(list(MIX), list(MIX.values()))
        if way == "agent":
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            child = begun(directory, first, apart=True)
        elif not _kill_browser(child.pid, guard=way == "guard"):
            continue  # there is none yet
        deaths[way] += 1
        told.figures["kills"] += 1
        told.figures[f"{way}_kills"] += 1
    judge_last(told, child)
    return deaths


def _kill_browser(agent: int, *, guard: bool) -> bool:
    """Kill the guard of an agent's browser, or what it guards; whether there was one."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    processes = [line.split(None, 2) for line in listed.splitlines()]
    guards = [pid for pid, parent, *args in processes if parent == str(agent) and "guard.py" in "".join(args)]
    found = guards if guard else [pid for pid, parent, *_ in processes if parent in guards]
    send(signal.SIGKILL, map(int, found))
    return bool(found)


def _judge(told: Told, shop: Shop, directory: Path, deaths: Counter[str], where: str) -> None:
    """Every route is there once, with its own data, and only requests in flight of an agent that died were sent again."""
    with Database(directory) as database:
        rows = database.ask(
            "SELECT url, title, render FROM pages WHERE contains(url, '/item/') AND relation NOT LIKE 'render %'"
        )
        found = [(str(url), str(title), render) for url, title, render in rows]
    expected = {(shop.url(f"/item/{route}"), f"Item {route}", "done") for route in range(shop.routes)}
    told.wrong += [f"{where}lost: {one}" for one in sorted(expected - set(found), key=str)[:10]]
    told.wrong += [f"{where}doubled: {one}" for one, count in Counter(found).items() if count > 1]
    told.wrong += [f"{where}not as it is: {one}" for one in sorted(set(found) - expected, key=str)[:10]]
    asked = Counter(target for _, target in shop.times)
    again = {target: count - 1 for target, count in asked.items() if count > 1 and target != "/robots.txt"}
    told.figures["requests"] += asked.total()
    told.figures["again"] += sum(again.values())
    most = deaths["agent"] * 2 * AT_ONCE  # a page, and what it waits for
    if sum(again.values()) > most:
        told.wrong.append(f"{where}{sum(again.values())} requests were sent again, at most {most} may be: {again}")
    told.wrong_of({"verify": verify(directory).findings}, where)
