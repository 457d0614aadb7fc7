"""Sessions and proxies in turn: each session has cookies, log-ins and a proxy of its own, and what fails is rested or replaced."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import gossamer
from gossamer.agents.crawl import SupervisedCrawl
from gossamer.engine.errors import SettingError
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.errors import UsageError

LINKS = "".join(f'<a href="/{number}">x</a>' for number in range(8))


class Counter:
    """A site that numbers its visitors by a cookie, and lets some of them in no more."""

    def __init__(self, patience: int = 10**6) -> None:
        self.patience = patience
        """Pages that a visitor gets."""
        self.visitors: dict[str, int] = {}
        self.seen: list[tuple[str, str]] = []

    def page(self, request: FakeRequest) -> FakePage:
        sid = request.header("cookie").partition("sid=")[2].partition(";")[0]
        cookies: tuple[tuple[str, str], ...] = ()
        if not sid:
            sid = f"v{len(self.visitors) + 1}"
            cookies = (("Set-Cookie", f"sid={sid}; Path=/"),)
        self.visitors[sid] = self.visitors.get(sid, 0) + 1
        self.seen.append((request.target, sid))
        if self.visitors[sid] > self.patience:
            return FakePage("blocked", status=403)
        return FakePage(f"<h1>{request.target}</h1>{LINKS if request.target == '/' else ''}", headers=cookies)

    @property
    def pages(self) -> dict[str, Any]:
        return dict.fromkeys(("/", *(f"/{number}" for number in range(8))), self.page)


def items_of(directory: Path) -> list[Any]:
    with Database(directory) as database:
        return sorted((json.loads(row[0]) for row in database.ask("SELECT data FROM items")), key=json.dumps)


def watched(web: FakeWeb, **options: Any) -> gossamer.Spider:
    spider = gossamer.Spider(web.url("/"), delay=0, **options)

    @spider.page()
    def every(page: gossamer.Page) -> list[gossamer.Result]:
        return [{"page": page.text("h1")}, *page.follow_all("a")]

    return spider


def test_pages_go_from_session_to_session_and_each_keeps_its_own_cookies(tmp_path: Path) -> None:
    site = Counter()
    with FakeWeb(site.pages) as web:
        watched(web, sessions=3).run(output=str(tmp_path / "mine"))
    assert sorted(site.visitors.values()) == [3, 3, 3]
    with Database(tmp_path / "mine") as database:
        [told] = database.ask("SELECT list(n ORDER BY n) FROM (SELECT count(*) n FROM pages GROUP BY session)")
    assert told[0] == [3, 3, 3]


def test_a_blocked_session_is_retired_and_its_page_is_asked_for_by_another(tmp_path: Path) -> None:
    site = Counter(patience=2)
    with FakeWeb(site.pages) as web:
        spider = watched(web, sessions=2)
        summary = spider.run(output=str(tmp_path / "mine"))
    assert [one["page"] for one in items_of(tmp_path / "mine")] == sorted(["/", *(f"/{n}" for n in range(8))])
    assert summary.outcomes["client_error"] == sum(count - 2 for count in site.visitors.values() if count > 2) > 0


def test_no_more_sessions_are_replaced_than_the_limit_and_then_the_answer_is_what_it_is(tmp_path: Path) -> None:
    site = Counter(patience=0)
    with FakeWeb(site.pages) as web:
        spider = gossamer.Spider(web.url("/"), delay=0, sessions=gossamer.Sessions(2, limit=2))
        failed = []

        @spider.failed
        def lost(page: gossamer.Page) -> None:
            failed.append((page.outcome, page.status))

        spider.run(output=str(tmp_path / "mine"))
    assert len(site.visitors) <= 4 and failed == [("client_error", 403)]


def test_who_asks_can_be_named_and_a_redirect_and_a_form_stay_with_whoever_got_them(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def told(request: FakeRequest) -> FakePage:
        seen.append((request.target, request.header("cookie")))
        form = '<form method=post action="/form"><input name=q></form>' if request.target == "/there" else ""
        return FakePage(f"<h1>{request.target}</h1>{form}")

    def first(request: FakeRequest) -> FakePage:
        who = request.target[1:]
        return FakePage("", status=302, headers=(("Location", "/there"), ("Set-Cookie", f"who={who}")))

    with FakeWeb({"/": "x", "/anna": first, "/there": told, "/form": told, "/next": told}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0, sessions=3)

        @spider.page()
        def start(page: gossamer.Page) -> gossamer.Results:
            return gossamer.Request("/anna", session="anna", label="in")

        @spider.page("in")
        def inside(page: gossamer.Page) -> list[gossamer.Result]:
            return [
                {"who": page.session.name},
                page.form().submit(q="x", label="done"),
                gossamer.Request("/next", session=page.session, label="done"),
            ]

        @spider.page("done")
        def done(page: gossamer.Page) -> gossamer.Results:
            return {"who": page.session.name}

        spider.run(output=str(tmp_path / "mine"))
    assert items_of(tmp_path / "mine") == [{"who": "anna"}] * 3
    assert sorted(seen) == [("/form", "who=anna"), ("/next", "who=anna"), ("/there", "who=anna")]


@pytest.mark.parametrize("run", [None, "process"])
def test_a_handler_gives_up_the_session_whose_page_is_no_page(tmp_path: Path, run: Any) -> None:
    site = Counter()
    inside = site.page

    def puzzled(request: FakeRequest) -> FakePage:
        page = inside(request)
        puzzle = site.seen[-1][1] == "v1" and len(site.seen) > 1
        return FakePage("<b class=puzzle>are you human?</b>") if puzzle else page

    with FakeWeb(dict.fromkeys(site.pages, puzzled)) as web:
        if run is None:
            spider = gossamer.Spider(web.url("/"), delay=0, sessions=2)

            @spider.page()
            def every(page: gossamer.Page) -> list[gossamer.Result]:
                if page.css(".puzzle"):
                    page.session.retire()
                    raise gossamer.Retry(after=0)
                return [{"page": page.text("h1")}, *page.follow_all("a")]

        else:
            from gossamer.spiders.loading import load

            file = tmp_path / "spider.py"
            file.write_text(
                "import gossamer\n"
                f"spider = gossamer.Spider({web.url('/')!r}, delay=0, sessions=2)\n"
                "@spider.page(run='process')\n"
                "def every(page):\n"
                "    if page.css('.puzzle'):\n"
                "        page.session.retire()\n"
                "        raise gossamer.Retry(after=0)\n"
                "    yield {'page': page.text('h1')}\n"
                "    yield page.follow_all('a')\n"
            )
            spider, _ = load(str(file))
        spider.run(output=str(tmp_path / "mine"))
    assert len(items_of(tmp_path / "mine")) == 9
    assert len(site.visitors) == 3, "what it asked before it was given up gives up nobody else"


def test_each_session_logs_in_for_itself_and_again_when_it_is_replaced(tmp_path: Path) -> None:
    users: list[str] = []

    def form(request: FakeRequest) -> FakePage:
        users.append(request.target.rpartition("=")[2])
        return FakePage("in", headers=(("Set-Cookie", f"in={len(users)}; Path=/"),))

    def page(request: FakeRequest) -> FakePage:
        if "in=1" in request.header("cookie") and request.target != "/":
            return FakePage("no more", status=401)
        if "in=" not in request.header("cookie"):
            return FakePage("who are you?", status=500)
        return FakePage(f"<h1>{request.target}</h1>{LINKS if request.target == '/' else ''}")

    targets = ["/", *(f"/{number}" for number in range(8))]
    pages: dict[str, Any] = dict.fromkeys(targets, page)
    with FakeWeb({**pages, "/in?user=1": form, "/in?user=2": form}) as web:
        spider = watched(web, sessions=2)

        @spider.login(web.url("/in"))
        async def log_in(session: gossamer.Session) -> bool:
            return (await session.get(f"/in?user={session.name}")).status == 200

        summary = spider.run(output=str(tmp_path / "mine"))
    assert len(items_of(tmp_path / "mine")) == 9 and summary.state == "finished"
    assert users == ["1", "2", "1"]


def test_the_cookies_of_sessions_outlive_the_run(tmp_path: Path) -> None:
    site = Counter()
    with FakeWeb(site.pages) as web:
        watched(web, sessions=3, max_pages=4).run(output=str(tmp_path / "mine"))
        watched(web, sessions=3, max_pages=20).run(output=str(tmp_path / "mine"), resume=True)
    assert len(site.visitors) == 3 and len(items_of(tmp_path / "mine")) == 9


def test_a_session_that_nobody_keeps_is_refused_with_the_users_line(tmp_path: Path) -> None:
    with FakeWeb({"/": "x"}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page()
        def named(page: gossamer.Page) -> gossamer.Results:
            return gossamer.Request("/x", session="anna")

        @spider.page(url="never")
        def retired(page: gossamer.Page) -> None:
            page.session.retire()

        assert spider.run(output=str(tmp_path / "mine")).raised == 1
    with Database(tmp_path / "mine") as database:
        [(error,)] = database.ask("SELECT error FROM errors")
    assert "keeps no sessions" in error and "sessions=10" in error
    for wrong in (-1, 10**6, True, "ten", gossamer.Sessions(2, blocked=(4,)), gossamer.Sessions(2, limit=-1)):
        with pytest.raises(UsageError, match="sessions"):
            gossamer.Spider("http://a.test/", sessions=wrong)  # type: ignore[arg-type]


# -- proxies


def named_web(name: str) -> dict[str, FakePage | str]:
    """What a proxy brings of a site, signed by it."""
    pages = {f"http://far.test/{number}": f"<h1>{number}</h1><i>{name}</i>" for number in range(8)}
    return {"http://far.test/": LINKS + f"<h1>start</h1><i>{name}</i>", "http://far.test/robots.txt": "", **pages}


def place_of(web: FakeWeb) -> str:
    return web.url("/").removeprefix("http://").rstrip("/")


def nobody() -> str:
    """A place where nobody listens any more."""
    with FakeWeb({}) as down:
        return place_of(down)


def by_proxies(proxies: list[str] | str, folder: Path, **options: Any) -> gossamer.Spider:
    spider = gossamer.Spider(
        "http://far.test/",
        delay=0,
        domain_delay=0,
        proxy=proxies,
        contact="me@example.org",
        output=str(folder),
        **options,
    )

    @spider.page()
    def every(page: gossamer.Page) -> list[gossamer.Result]:
        return [{"page": page.text("h1"), "by": page.text("i"), "as": page.session.name}, *page.follow_all("a")]

    return spider


def test_requests_go_from_proxy_to_proxy_and_one_that_is_down_rests(tmp_path: Path) -> None:
    with FakeWeb(named_web("one")) as one, FakeWeb(named_web("two")) as two:
        gone = nobody()
        file = tmp_path / "proxies"
        file.write_text(f"# mine\nhttp://me:s3cret@{place_of(one)}\nhttp://{gone}\nhttp://{place_of(two)}\n")
        file.chmod(0o600)
        summary = by_proxies(f"@{file}", tmp_path / "mine").run()
    found = items_of(tmp_path / "mine")
    assert summary.state == "finished" and len(found) == 9
    assert {item["by"] for item in found} == {"one", "two"}
    assert summary.outcomes == {"ok": 9}, "nothing was lost by the proxy that is down"
    kept = b"".join(path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file())
    assert b"s3cret" not in kept and str(file).encode() in (tmp_path / "mine" / "crawl.toml").read_bytes()


def test_a_proxy_that_does_not_know_us_rests_and_nothing_is_lost(tmp_path: Path) -> None:
    refused = {url: FakePage("who are you?", status=407) for url in named_web("")}
    with FakeWeb(named_web("one")) as one, FakeWeb(refused) as two:
        summary = by_proxies([two.url("/"), one.url("/")], tmp_path / "mine").run()
    assert summary.outcomes == {"ok": 9} and {item["by"] for item in items_of(tmp_path / "mine")} == {"one"}
    assert len(two.requests) == 1


def test_a_session_stays_with_its_proxy(tmp_path: Path) -> None:
    with FakeWeb(named_web("one")) as one, FakeWeb(named_web("two")) as two:
        by_proxies([one.url("/"), two.url("/")], tmp_path / "mine", sessions=4).run()
    found = items_of(tmp_path / "mine")
    assert len({(item["as"], item["by"]) for item in found}) == len({item["as"] for item in found}) == 4
    assert {item["by"] for item in found} == {"one", "two"}


@pytest.mark.parametrize("given", ["nonsense", ["http://a.test:1", "b.test:2"], "@/nowhere/file", "$GOSSAMER_NO_SUCH"])
def test_proxies_that_cannot_be_read_are_refused_before_anything_is_touched(tmp_path: Path, given: Any) -> None:
    with pytest.raises((SettingError, UsageError), match=r"proxy|cannot be read"):
        by_proxies(given, tmp_path / "mine").run()
    assert not (tmp_path / "mine").exists()


def test_status_says_how_sessions_and_proxies_do(tmp_path: Path) -> None:
    from gossamer.cli.status import lines_of
    from gossamer.crawls.control.at_work import standing_of

    told: list[str] = []
    with FakeWeb(named_web("one")) as one:
        gone = nobody()
        spider = by_proxies([f"http://{gone}", one.url("/")], tmp_path / "mine", sessions=2)
        jobs: list[SupervisedCrawl] = []

        @spider.page(url="/7$")
        async def last(page: gossamer.Page) -> None:
            page.session.retire()
            await asyncio.sleep(0)
            assert jobs[0].lone is not None
            told.extend(lines_of(standing_of(jobs[0].lone, 1, units=False), 0.0))

        jobs.append(spider.job(spider.seeds, spider.options))
        asyncio.run(jobs[0].run())
    [sessions] = [line for line in told if line.startswith("sessions:")]
    [proxies] = [line for line in told if line.startswith("proxies:")]
    assert sessions == "sessions: 2, 0 of at most 20 retired"
    assert proxies.startswith(f"proxies:  2, 1 resting: {gone} ") and "failed, rests" in proxies
