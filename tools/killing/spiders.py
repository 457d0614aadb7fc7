"""A spider that is killed again and again: its items are those of a clean run, and what may not be sent twice is not.

The web is a shop of listings. Each listing leads to things (labelled, with user data), to a form that is marked safe, and to one
that is not. The server notes what it is sent. A form that is not safe either brings its item, or ends as `interrupted`; it never
arrives twice. Everything is for those who are logged in, and the server ends their session now and then. Where several sessions
take turns, it ends every second one by refusing it.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from gossamer.engine import processes
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb, Source
from tools.killing.campaigns import Say, Told
from tools.killing.site import PATIENCE, judge_last

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
    told.figures |= {"kills": kills, "log_ins": members.log_ins}
    _compare(told, directory, listings, arrived)
    return told


def _compare(told: Told, directory: Path, listings: int, arrived: Counter[str]) -> None:
    with Database(directory) as database:
        items = Counter(
            json.dumps(json.loads(row[0]), sort_keys=True) for row in database.ask("SELECT data FROM items")
        )
        [(interrupted,)] = database.ask("SELECT count(*) FROM pages WHERE outcome = 'interrupted'")
    told.figures |= {"items": sum(items.values()), "interrupted": int(interrupted)}
    expected: Counter[str] = Counter()
    lost = 0
    for number in range(listings):
        for index in range(THINGS):
            expected[json.dumps({"from": str(number), "thing": f"T{number}-{index}"})] += 1
        expected[json.dumps({"form": f"safe {number}"})] += 1
        brought = json.dumps({"form": f"once {number}"})
        is_lost = brought not in items
        lost += is_lost
        expected[json.dumps({"failed": "interrupted", "of": str(number)}) if is_lost else brought] += 1
    told.wrong += [f"{count} too few of {item}" for item, count in (expected - items).items()]
    told.wrong += [f"{count} too many of {item}" for item, count in (items - expected).items()]
    told.wrong += [
        f"{name} arrived {count} times" for name, count in arrived.items() if name.startswith("once") and count > 1
    ]
    if lost != interrupted:
        told.wrong.append(f"{lost} forms brought no item, and {interrupted} visits are interrupted")
