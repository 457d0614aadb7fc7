"""Sessions of spiders: a log-in before everything else, cookies that outlive the run, and what the archive has of them."""

import asyncio
import gzip
import json
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest

import gossamer
from gossamer.engine.errors import ComponentFailed
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

TOKEN = "s3ss10n"
FORM = (
    '<form id="login" method="post" action="/session">'
    "<input type=hidden name=t value=7><input name=user><input name=word></form>"
)


class Club:
    """A site whose pages are for members. Each log-in makes a new session; `end` ends those that there are."""

    def __init__(self) -> None:
        self.log_ins = 0
        self.valid = ""

    def end(self) -> None:
        self.valid = ""

    def is_in(self, request: FakeRequest) -> bool:
        return bool(self.valid) and f"sid={self.valid}" in request.header("cookie")

    def session(self, request: FakeRequest) -> FakePage:
        fields = parse_qs(request.body.decode())
        if fields != {"t": ["7"], "user": ["me"], "word": ["pa55word"]}:
            return FakePage("wrong", status=403)
        self.log_ins += 1
        self.valid = f"{TOKEN}{self.log_ins}"
        cookie = ("Set-Cookie", f"sid={self.valid}; Path=/; Max-Age=9000; HttpOnly")
        return FakePage("", status=303, headers=(cookie, ("Location", "/home")))

    def members(self, markup: str) -> Callable[[FakeRequest], FakePage]:
        return lambda request: FakePage(markup if self.is_in(request) else "<h1>please log in</h1>" + FORM)

    @property
    def pages(self) -> dict[str, FakePage | str | Callable[[FakeRequest], FakePage]]:
        return {
            "/login": FORM,
            "/session": self.session,
            "/home": self.members('<h1>home</h1><a href="/1">1</a><a href="/2">2</a>'),
            "/1": self.members("<h1>one</h1>"),
            "/2": self.members("<h1>two</h1>"),
        }


def member(web: FakeWeb, word: str = "pa55word") -> gossamer.Spider:
    spider = gossamer.Spider(web.url("/home"), delay=0)

    @spider.login(web.url("/login"))
    async def log_in(session: gossamer.Session) -> bool:
        page = await session.get()
        answer = await session.send(page.form("#login").submit(user="me", word=word))
        return answer.text("h1") == "home"

    @spider.page()
    async def pages(page: gossamer.Page) -> list[gossamer.Result]:
        if page.css("#login"):
            raise gossamer.LoggedOut
        return [{"name": page.text("h1")}, *page.follow_all("a")]

    return spider


def kept_bytes(directory: Path) -> dict[str, bytes]:
    found = {}
    for path in directory.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found[str(path.relative_to(directory))] = gzip.decompress(data) if path.suffix == ".gz" else data
    return found


def test_a_log_in_comes_before_every_page_and_is_run_once_for_all_runs_of_a_crawl(tmp_path: Path) -> None:
    club = Club()
    with FakeWeb(club.pages) as web:
        summary = member(web).run(output=str(tmp_path / "crawl"), max_pages=1)
        assert summary.pages == 1
        asked = [request.target for request in web.requests if request.target != "/robots.txt"]
        assert asked[:3] == ["/login", "/session", "/home"]
        summary = member(web).run(output=str(tmp_path / "crawl"), resume=True, max_pages=10)
        assert summary.pages == 3
    assert club.log_ins == 1
    kept = kept_bytes(tmp_path / "crawl")
    assert [name for name, data in kept.items() if TOKEN.encode() in data] == ["state/cookies"]
    assert stat.S_IMODE((tmp_path / "crawl/state/cookies").stat().st_mode) == 0o600
    assert b"sid=(not kept)" not in b"".join(kept.values()), "the log-in itself is in no archive"
    assert not any(b"pa55word" in data for data in kept.values())


def test_a_password_that_a_handler_sends_is_refused_since_ledger_and_archive_would_keep_it(tmp_path: Path) -> None:
    form = "<form id=f method=post action=/in><input name=user><input type=password name=word></form>"
    with FakeWeb({"/": form, "/in": "x"}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.page()
        def page(page: gossamer.Page) -> gossamer.Results:
            return page.form("#f").submit(user="me", word="pa55word")

        summary = spider.run(output=str(tmp_path / "crawl"))
        assert "/in" not in web.targets()
    assert summary.raised == 1
    kept = kept_bytes(tmp_path / "crawl")
    told = b"".join(data for name, data in kept.items() if "errors" in name)
    assert b"@spider.login" in told and b"test_sessions.py" in told
    assert not [name for name, data in kept.items() if b"pa55word" in data]


def test_what_a_spider_asks_for_waits_where_its_owner_alone_can_read_it(tmp_path: Path) -> None:
    with FakeWeb({"/": "x"}) as web:
        spider = gossamer.Spider(gossamer.Request(web.url("/"), headers={"Authorization": "Bearer t0ken"}), delay=0)
        spider.page()(lambda page: None)
        spider.run(output=str(tmp_path / "crawl"))
        assert web.requests[-1].header("authorization") == "Bearer t0ken"
    [state] = (path.parent for path in tmp_path.rglob("ledger"))
    assert [stat.S_IMODE((state / name).stat().st_mode) for name in ("ledger", "checkpoints")] == [0o700, 0o700]
    holders = [name for name, data in kept_bytes(tmp_path / "crawl").items() if b"t0ken" in data]
    assert all("/ledger/" in name for name in holders), holders


def test_a_log_in_is_run_again_when_a_page_says_that_nobody_is_logged_in(tmp_path: Path) -> None:
    club = Club()
    with FakeWeb(club.pages) as web:
        member(web).run(output=str(tmp_path / "crawl"), max_pages=1)
        club.end()
        summary = member(web).run(output=str(tmp_path / "crawl"), resume=True, max_pages=10)
    assert club.log_ins == 2
    assert summary.state == "finished" and summary.outcomes["ok"] >= 3
    archive = b"".join(data for name, data in kept_bytes(tmp_path / "crawl").items() if ".warc" in name)
    assert b"<h1>one</h1>" in archive and b"<h1>two</h1>" in archive


FILE = """
import gossamer

class Members(gossamer.Spider):
    @gossamer.page({run})
    def home(self, page):
        if page.css("#login"):
            raise gossamer.LoggedOut
        yield {{"name": page.text("h1")}}
        yield page.follow_all("a")

spider = Members({home!r}, delay=0)

@spider.login({login!r})
async def log_in(session):
    page = await session.get()
    answer = await session.send(page.form("#login").submit(user="me", word={word!r}))
    {after}
    return answer.text("h1") == "home"
"""


def gossamer_run(file: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "gossamer", "run", str(file), "-o", str(file.with_suffix("")), *more]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def written(web: FakeWeb, folder: Path, run: str = "", word: str = "pa55word", after: str = "") -> Path:
    file = folder / "members.py"
    text = FILE.format(run=run, home=web.url("/home"), login=web.url("/login"), word=word, after=after)
    file.write_text(text)
    return file


@pytest.mark.parametrize("run", ["", "run='process'"])
def test_a_method_in_whatever_place_can_say_that_nobody_is_logged_in(tmp_path: Path, run: str) -> None:
    club = Club()
    with FakeWeb(club.pages) as web:
        file = written(web, tmp_path, run)
        assert gossamer_run(file, "--max-pages", "1").returncode == 0
        club.end()
        went_on = gossamer_run(file, "--resume", "--max-pages", "10")
        assert went_on.returncode == 0, went_on.stderr
    assert club.log_ins == 2
    with Database(tmp_path / "members") as database:
        rows = list(database.ask("SELECT data FROM items"))
    assert sorted(json.loads(row[0])["name"] for row in rows) == ["home", "one", "two"]


def test_a_kill_during_a_log_in_leaves_nobody_logged_in_and_the_next_run_logs_in(tmp_path: Path) -> None:
    club = Club()
    with FakeWeb(club.pages) as web:
        file = written(web, tmp_path, after="import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        assert gossamer_run(file).returncode == -signal.SIGKILL
        assert club.log_ins == 1 and "/1" not in web.targets()
        went_on = gossamer_run(written(web, tmp_path), "--resume")
        assert went_on.returncode == 0, went_on.stderr
    assert club.log_ins == 2
    kept = kept_bytes(tmp_path / "members")
    assert [name for name, data in kept.items() if TOKEN.encode() in data] == ["state/cookies"]


def test_a_failing_log_in_costs_one_line_and_exit_code_4_at_the_command_line(tmp_path: Path) -> None:
    club = Club()
    with FakeWeb(club.pages) as web:
        file = written(web, tmp_path, word="wrong")
        failed = gossamer_run(file)
    assert failed.returncode == 4, failed.stderr
    lines = [line for line in failed.stderr.splitlines() if "log-in" in line]
    assert "Traceback" not in failed.stderr and "pa55word" not in failed.stderr
    assert "members.py:" in lines[-1] and "it says that no user is logged in" in lines[-1]


def test_a_failing_log_in_ends_the_crawl_with_one_line_that_leads_to_it(tmp_path: Path) -> None:
    club = Club()
    with FakeWeb(club.pages) as web:
        with pytest.raises(ComponentFailed) as caught:
            member(web, word="wrong").run(output=str(tmp_path / "crawl"))
        assert "/home" not in web.targets()
    told = str(caught.value)
    assert "\n" not in told and "test_sessions.py:" in told
    assert f"the log-in at {web.url('/login')} failed: it says that no user is logged in" in told


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://elsewhere.test/in", "a log-in asks its own host alone"),
        ("http://[", "is not a URL"),
        ("/round", "redirect"),
    ],
)
def test_a_log_in_that_leaves_its_host_or_goes_round_is_named(tmp_path: Path, url: str, reason: str) -> None:
    with FakeWeb({"/": "x", "/round": FakePage("", status=302, headers=(("Location", "/round"),))}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.login(web.url("/"))
        async def log_in(session: gossamer.Session) -> None:
            await session.get(url)

        @spider.page()
        def page(page: gossamer.Page) -> None:
            return None

        with pytest.raises(ComponentFailed, match=reason):
            spider.run(output=str(tmp_path / "crawl"))


def test_a_log_in_that_hangs_is_ended_by_its_deadline(tmp_path: Path) -> None:
    with FakeWeb({"/": "x"}) as web:
        spider = gossamer.Spider(web.url("/"), delay=0)

        @spider.login(web.url("/"), deadline=0.01)
        async def log_in(session: gossamer.Session) -> None:
            await asyncio.Event().wait()

        @spider.page()
        def page(page: gossamer.Page) -> None:
            return None

        with pytest.raises(ComponentFailed, match=r"it took longer than its deadline of 0\.01 s"):
            spider.run(output=str(tmp_path / "crawl"))


def test_what_is_no_log_in_is_refused_with_file_and_line() -> None:
    spider = gossamer.Spider("http://a.test/")

    def plain(session: gossamer.Session) -> None: ...

    async def empty() -> None: ...

    async def first(session: gossamer.Session) -> None: ...

    async def second(session: gossamer.Session) -> None: ...

    spider.login("http://a.test/in")(first)
    for url, function, reason in (
        ("http://a.test/", plain, "a log-in is written with async def"),
        ("http://a.test/", empty, "a log-in takes one argument, the session"),
        ("ftp://a.test/", first, "is not an http or https URL"),
        ("http://a.test/", second, "a.test has a log-in already, at "),
    ):
        with pytest.raises(gossamer.UsageError, match=rf"test_sessions\.py:\d+: .*{reason}"):
            spider.login(url)(function)  # type: ignore[type-var]
    with pytest.raises(gossamer.UsageError, match=r"test_sessions\.py:\d+: write @spider.login\(URL\)"):
        spider.login(first)  # type: ignore[arg-type]
