"""A spider that is killed again and again: its items are those of a clean run, and what may not be sent twice is not.

The web is a shop of listings. Each listing leads to things (labelled, with user data), to a form that is marked safe, and to one
that is not. The server notes what it is sent. A form that is not safe either brings its item, or ends as `interrupted`; it never
arrives twice. Everything is for those who are logged in, and the server ends their session now and then. Where several sessions
take turns, it ends every second one by refusing it.

*kill-recrawl*: a crawl that comes back to its pages and is killed again and again: none comes before its time, and none is
forgotten. The web is a hub of pages. Some change at every answer, some never do, some are gone for a while. The server notes when
each was asked for. A kill may bring pages again that were in flight; between two kills a page comes twice only after
`--min-interval`. The last life is let live for some times `--max-interval`, in which every page has to come.
"""

import itertools
import json
import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from gossamer.engine import processes
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb, Source
from tools.killing import Say, Told
from tools.killing.site import PATIENCE, begun, judge_last

#: Things of a listing.
THINGS = 4

#: Requests of a run after which it is killed, at most.
MOST_REQUESTS = 14

#: Pages after which the server ends the session; of several, all of them together.
SESSION = 60

#: Seconds of a server's answer: requests overlap, so that a kill finds some in flight.
_LATENCY = 0.004

_SPIDER = """
import gossamer

spider = gossamer.Spider("{seed}", delay=0, per_host=4, domain_delay=0, ip_delay=0, robots="ignore",
    sessions=gossamer.Sessions({sessions}, limit=10_000))


@spider.login("{seed}login")
async def log_in(session):
    page = await session.get()
    await session.send(page.form().submit(user="me"))


@spider.page()
async def listing(page):
    if page.css("#out"):
        raise gossamer.LoggedOut
    yield page.follow_all(".thing", label="thing", data={{"from": page.title}})
    yield page.follow_all(".next")
    if page.title:
        yield gossamer.Request("/safe", body={{"n": page.title}}, safe=True, label="form")
        yield gossamer.Request("/once", body={{"n": page.title}}, label="form", data=page.title)


@spider.page("thing")
def thing(page):
    if page.css("#out"):
        raise gossamer.LoggedOut
    yield {{"thing": page.text("h1"), "from": page.data["from"]}}


@spider.page("form")
def form(page):
    yield {{"form": page.text("h1")}}


@spider.failed
def failed(page):
    yield {{"failed": str(page.outcome), "of": page.data}}
"""


class Members:
    """Shows pages to those who bear the cookie of the session; each log-in begins another one."""

    def __init__(self, sessions: int) -> None:
        """`sessions`: that ask in turn; 0 for one alone, which is never refused."""
        self.log_ins = 0
        self._sessions = sessions
        self._left: dict[int, int] = {}
        """Pages that each session is still shown; of one alone, the last alone is valid."""

    def enter(self, request: FakeRequest) -> FakePage:
        self.log_ins += 1
        if not self._sessions:
            self._left.clear()
        self._left[self.log_ins] = SESSION // max(1, self._sessions)
        cookie = ("Set-Cookie", f"sid={self.log_ins}; Path=/; Max-Age=9000")
        return FakePage("in", headers=(cookie,))

    def only(self, page: FakePage) -> Callable[[FakeRequest], FakePage]:
        def answer(request: FakeRequest) -> FakePage:
            number = request.header("cookie").partition("sid=")[2]
            sid = int(number) if number.isdigit() else 0
            if self._left.get(sid, 0) > 0:
                self._left[sid] -= 1
                return page
            if self._sessions and sid and sid % 2 == 0:
                return FakePage("no more", status=403, latency=_LATENCY)
            return FakePage('<p id="out">', latency=_LATENCY)

        return answer


def pages_of(listings: int) -> dict[str, FakePage]:
    found = {"/": FakePage('<a class="next" href="/l0">begin</a>')}
    for number in range(listings):
        things = "".join(f'<a class="thing" href="/t{number}-{index}">x</a>' for index in range(THINGS))
        links = "".join(
            f'<a class="next" href="/l{child}">n</a>' for child in (2 * number + 1, 2 * number + 2) if child < listings
        )
        found[f"/l{number}"] = FakePage(f"<title>{number}</title>{things}{links}", latency=_LATENCY)
        for index in range(THINGS):
            found[f"/t{number}-{index}"] = FakePage(f"<h1>T{number}-{index}</h1>", latency=_LATENCY)
    return found


def run(folder: Path, say: Say, *, kills: int = 50, seed: int = 1, listings: int = 0, sessions: int = 0) -> Told:
    """Run the spider in an empty folder, killing it so often, and compare.

    Args:
        listings: of the shop; as many as so many kills need, where 0.
        sessions: of the spider that take turns; 0 for one alone.
    """
    listings = listings or max(20, kills * 2)
    arrived: Counter[str] = Counter()

    def form(request: FakeRequest) -> FakePage:
        sent = f"{request.target[1:]} {request.body.decode().partition('=')[2]}"
        arrived[sent] += 1
        return FakePage(f"<h1>{sent}</h1>", latency=_LATENCY)

    told, chance, members = Told(), random.Random(seed), Members(sessions)
    door = FakePage('<form method="post" action="/enter"><input name="user"></form>')
    pages: dict[str, Source] = {path: members.only(page) for path, page in pages_of(listings).items()}
    pages |= {"/login": door, "/enter": members.enter, "/safe": form, "/once": form}
    with FakeWeb(pages) as web:
        file, directory = folder / "spider.py", folder / "crawl"
        file.write_text(_SPIDER.format(seed=web.url("/"), sessions=sessions))
        command = processes.command("gossamer", "run", str(file), "-o", str(directory), "--json", "--quiet")
        for number in range(kills + 1):
            resumed = [*command, "--resume"] if number else command
            process = subprocess.Popen(resumed, env=processes.environment(), stdout=subprocess.PIPE)
            if number < kills:
                web.wait_for(len(web.requests) + chance.randint(1, MOST_REQUESTS), PATIENCE)
                process.kill()
                process.communicate()
        judge_last(told, process)
    with Database(directory) as database:
        rows = database.ask("SELECT data FROM items")
        items = Counter(json.dumps(json.loads(row[0]), sort_keys=True) for row in rows)
        [(interrupted,)] = database.ask("SELECT count(*) FROM pages WHERE outcome = 'interrupted'")
    told.figures |= {
        "kills": kills,
        "log_ins": members.log_ins,
        "items": items.total(),
        "interrupted": int(interrupted),
    }
    expected, lost = Counter[str](), 0
    for number in range(listings):
        things = [{"from": str(number), "thing": f"T{number}-{index}"} for index in range(THINGS)]
        expected.update(map(json.dumps, [*things, {"form": f"safe {number}"}]))
        brought = json.dumps({"form": f"once {number}"})
        is_lost = brought not in items
        lost += is_lost
        expected[json.dumps({"failed": "interrupted", "of": str(number)}) if is_lost else brought] += 1
    told.wrong += [f"{count} too few of {item}" for item, count in (expected - items).items()]
    told.wrong += [f"{count} too many of {item}" for item, count in (items - expected).items()]
    twice = [(name, count) for name, count in arrived.items() if name.startswith("once") and count > 1]
    told.wrong += [f"{name} arrived {count} times" for name, count in twice]
    if lost != interrupted:
        told.wrong.append(f"{lost} forms brought no item, and {interrupted} visits are interrupted")
    return told


#: Pages of the web; with the hub they fill several groups of the commit.
PAGES = 120

#: Seconds between two visits of a page: at least, on the mean, at most. A crawl begins again in less than the first.
LEAST, MEAN, MOST = 3.0, 5.0, 10.0

#: Requests of a life after which it is killed, at most.
MOST_REQUESTS_OF_A_LIFE = 90

#: Requests in flight.
_AT_ONCE = 8

#: Seconds that a busy machine may need beyond the longest interval, from the time of a page to its request.
_LATE = 10.0

#: The clocks of server and crawl are read at different moments of a request.
_EARLY = 0.1


def come_back(folder: Path, say: Say, *, kills: int = 30, seed: int = 1) -> Told:
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
    given = ["--recrawl", f"adaptive={MEAN:g}s", "--min-interval", f"{LEAST}s", "--max-interval", f"{MOST}s"]
    given += ["--delay", "0s", "--per-host", str(_AT_ONCE), "--robots", "ignore"]
    with FakeWeb(shown) as web:
        first = ["crawl", web.url("/"), *given]
        for _ in range(kills):
            process = begun(directory, first)
            web.wait_for(len(web.requests) + chance.randint(1, MOST_REQUESTS_OF_A_LIFE), PATIENCE)
            process.kill()
            process.communicate()
            deaths.append(time.monotonic())
        last = time.monotonic()
        judge_last(told, begun(directory, first, "--max-time", f"{MOST * 3 + _LATE}s"), "limit")
        end = time.monotonic()
    told.figures |= {"kills": kills, "requests": sum(map(len, asked.values()))}
    judge(told, {name: asked[name] for name in names}, deaths, last, end)
    # The tables have a row for each visit that was kept, and no page was counted twice.
    with Database(directory) as database:
        [(pages, visits)] = database.ask("SELECT count(DISTINCT url), count(*) FROM pages_all")
    if pages != PAGES + 1:
        told.wrong.append(f"the tables know {pages} pages of {PAGES + 1}")
    requests = told.figures["requests"]
    least = requests - told.figures["again"] - _AT_ONCE * (kills + 1)
    if not least <= visits <= requests + visits // PAGES + kills:
        told.wrong.append(f"{visits} visits were kept of {requests} requests")
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
