"""Crawls that need another program, a triple store or a browser, and are killed together with it again and again.

*kill-triples* compares the stores of a crawl with `--rdf` with what the pages say. Each round crawls a site whose every triple is
known, until the crawl was killed a few times, and then to its end. It feeds a store elsewhere, a server of SPARQL updates, which is
killed at some of the kills too and comes back later. At the end the table, the crawl's own store and the store elsewhere must hold
every triple of every page once, and nothing else.

*kill-rendering* kills a crawl in mid-page: the agent, the guard of its browser, or the browser. The web is an application: each
route is a shell with one script, which asks for the data of the route and links to two others. So a page that is lost takes all
behind it along, and one that is shown with the data of another has another title. After the kill of a browser the crawl goes on
with another; after that of the agent it is resumed.
"""

import contextlib
import html
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pyoxigraph as oxigraph

from gossamer.query.database import Database
from gossamer.rdf.store.asking import current_copy
from gossamer.simweb.text import SAID, SYNTAXES
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.url import path_of
from tools.killing import Say, Told
from tools.killing.site import PATIENCE, begun, judge_last, rounds, send
from tools.verifying import verify

#: Kills of one round, before its crawl may end.
KILLS_OF_A_ROUND = 5

#: Seconds that a page takes: a crawl of the 341 pages lasts some six seconds, so that kills meet it at work.
LATENCY = 0.06

#: Seconds from a start to its kill, at least and at most: from the first page to a store that is being fed.
SOONEST, LATEST = 0.6, 3.5

#: The SPARQL server of others that is fed; None where it is not installed.
PROGRAM = shutil.which("oxigraph", path=str(Path(sys.executable).parent))

#: Seconds in which it has to answer after its start, and to answer a question.
_START, _ANSWER = 30.0, 60.0


class TripleServer:
    """Oxigraph's server on loopback. Its folder keeps its triples while the server is down."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<TripleServer {self.update}>"

    @property
    def update(self) -> str:
        return f"http://127.0.0.1:{self._port}/update"

    def start(self) -> None:
        """Start the server, unless it runs.

        Raises:
            TimeoutError: the server does not answer.
        """
        if self._process is not None:
            return
        assert PROGRAM is not None, "Oxigraph's server is not installed"
        command = [PROGRAM, "serve", "--location", str(self._folder), "--bind", f"127.0.0.1:{self._port}"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        patience = time.monotonic() + _START
        while time.monotonic() < patience:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return
            time.sleep(0.05)  # it is a real process, which has no other way to say that it listens
        raise TimeoutError("the server does not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ask(self, query: str) -> list[dict[str, str]]:
        """Return the solutions of a query, each as the texts of its terms by variable."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER)) as connection:
            fields = {"Accept": "application/sparql-results+json"}
            connection.request("GET", f"/query?{urlencode({'query': query})}", headers=fields)
            rows = json.loads(connection.getresponse().read())["results"]["bindings"]
        return [{name: term["value"] for name, term in row.items()} for row in rows]


Said = list[tuple[str, str]]
"""Path of a page, and a text that it says."""


def run(folder: Path, say: Say, *, kills: int = 50, seed: int = 1) -> Told:
    """Kill crawls until there were so many kills; each round is crawled to its end and judged."""
    told, chance = Told(), random.Random(seed)
    site = powers(4, 3)
    pages = {path: FakePage(body=body, latency=LATENCY) for path, body in site.pages.items()}
    for place, most in rounds(folder, told, kills, KILLS_OF_A_ROUND):
        server = TripleServer(place / "endpoint")
        with FakeWeb(pages) as web:
            try:
                _round(web, server, place / "crawl", most, chance, told)
                told.wrong += _wrong(place / "crawl", server, sorted(site.said), told.figures["rounds"])
            finally:
                server.kill()
        told.figures["triples"] += len(site.said)
    return told


def _round(web: FakeWeb, server: TripleServer, crawl: Path, kills: int, chance: random.Random, told: Told) -> None:
    first = ["crawl", web.url("/"), "--rdf", "--delay", "0", "--per-host", "4", "--triple-store", server.update]
    for _ in range(kills):
        # A server that was killed stays away for a life of the crawl, or comes back within it.
        server.start()
        child = begun(crawl, first, apart=True)
        moment = chance.uniform(SOONEST, LATEST)
        if chance.random() < 0.4:
            time.sleep(moment / 2)
            server.kill()
            told.figures["server_kills"] += 1
            moment /= 2
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        told.figures["kills"] += 1
    server.start()
    judge_last(told, begun(crawl, first, apart=True))


def _wrong(crawl: Path, server: TripleServer, expected: Said, number: int) -> list[str]:
    """The triples that table and stores lack, or have too much."""
    with Database(crawl) as database:
        table = list(database.ask("SELECT graph, object FROM triples"))
    with current_copy(crawl, 60.0) as copy:
        store = [(quad.graph_name.value, quad.object.value) for quad in oxigraph.Store.read_only(str(copy))]
    rows = server.ask(f"SELECT ?g ?o {{ GRAPH ?g {{ ?s <{SAID}> ?o }} }}")
    wrong = []
    for name, found in (
        ("table", table),
        ("store", store),
        ("store elsewhere", [(row["g"], row["o"]) for row in rows]),
    ):
        said = sorted((path_of(graph), text) for graph, text in found)
        if said != expected:
            wrong.append(
                f"round {number}: the {name} has {len(said)} triples instead of {len(expected)}, "
                f"lacks {len(set(expected) - set(said))} and has {len(set(said) - set(expected))} that no page says"
            )
    return wrong


SHELL = "<!doctype html><title>Shop</title><script src=/app.js></script><body><div id=root></div>"
SCRIPT = """
const route = location.pathname.split('/').pop();
fetch('/api/' + route).then(answer => answer.json()).then(item => {
  document.title = 'Item ' + route;
  const links = item.links.map(link => `<a href="/item/${link}">item ${link}</a>`).join(' ');
  document.getElementById('root').innerHTML = `<h1>Item ${route}</h1><p>${item.text}</p>${links}`;
});
"""

#: Kills of a round that renders, and routes of its application for each.
RENDERED_KILLS, ROUTES = 20, 20

#: Requests between two kills, at least and less than.
FEWEST, MOST = 10, 40

#: Seconds of an answer: with two requests a page, each kill finds pages that wait for their data.
ANSWER = 0.02

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


def render(folder: Path, say: Say, *, kills: int = 50, seed: int = 1) -> Told:
    """Kill crawls that render until there were so many kills; each round is crawled to its end and judged."""
    told, chance = Told(), random.Random(seed)
    for place, most in rounds(folder, told, kills, RENDERED_KILLS):
        where = f"round {told.figures['rounds']}: "
        with Shop(ROUTES * most, latency=ANSWER) as shop:
            deaths = _killed(shop, place / "crawl", most, chance, told)
            _judge(told, shop, place / "crawl", deaths, where)
        say(f"{where}{dict(deaths)}, {len(shop.requests)} requests for {shop.routes} pages")
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
        else:  # the guard of the agent's browser, or what it guards
            listed = subprocess.run(
                ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
            ).stdout
            processes = [line.split(None, 2) for line in listed.splitlines()]
            agent = str(child.pid)
            guards = [pid for pid, parent, *args in processes if parent == agent and "guard.py" in "".join(args)]
            found = guards if way == "guard" else [pid for pid, parent, *_ in processes if parent in guards]
            if not found:
                continue  # there is none yet
            send(signal.SIGKILL, map(int, found))
        deaths[way] += 1
        told.figures["kills"] += 1
        told.figures[f"{way}_kills"] += 1
    judge_last(told, child)
    return deaths


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


# Sites whose pages are known one by one: journeys crawl them too.


class KnownSite(msgspec.Struct, frozen=True):
    """A site of one host. Paths are as they stand in canonical URLs."""

    pages: dict[str, str]
    """HTML by path. A path that stands nowhere here is a 404."""
    redirects: dict[str, str]
    """Location by path; it may be relative."""
    expected: frozenset[str]
    """The paths of the pages that a crawl from `/` has to find."""
    said: frozenset[tuple[str, str]] = frozenset()
    """The triples that a crawl with `--rdf` has to find: path of a page, and the text of a :data:`SAID`."""


def powers(width: int, triples: int = 0) -> KnownSite:
    """A tree with as many levels below its root as children a page: 1 + w + w^2 + ... + w^w pages.

    Widths 1 to 5 are the sites of Ridgway 2010, section 6.3, table 7: 2, 7, 40, 341 and 3,906 pages (it prints 8 for 7).

    Args:
        triples: how many each page says, by turns in RDFa, JSON-LD and microdata; table 7 has 0 to 3.
    """
    pages: dict[str, str] = {}
    said: set[tuple[str, str]] = set()
    level = ["/"]
    for depth in range(width + 1):
        for path in level:
            children = _children(path, width) if depth < width else []
            texts = [f"text {number} of {path}" for number in range(triples)]
            said.update((path, text) for text in texts)
            body = [SYNTAXES[len(pages) % len(SYNTAXES)](texts)] if texts else []
            pages[path] = page_of(path, [*body, *(f'<a href="{child}">{child}</a>' for child in children)])
        level = [child for path in level for child in _children(path, width)]
    return KnownSite(pages, {}, frozenset(pages), frozenset(said))


def _children(path: str, width: int) -> list[str]:
    return [f"{path.rstrip('/')}/{number}" for number in range(width)]


def page_of(title: str, links: list[str]) -> str:
    return f"<!doctype html><html><head><title>{html.escape(title)}</title></head><body>{''.join(links)}</body></html>"
