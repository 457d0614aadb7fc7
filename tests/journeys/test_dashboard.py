"""The dashboard of crawls that run and rest: the numbers of `status`, orders, events, and nothing that a crawl would notice."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from tests.waiting import until

from gossamer.cli.progress import parted
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.dashboard.crawls import key_of
from gossamer.dashboard.questions import Questions
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import UsageError

#: A page, one that is tried again much later, and a title that would like to be a script.
PAGES = {
    "/": '<title><img src=x onerror=alert(1)></title><a href="/1">x</a><a href="/%3Cscript%3Ealert(1)%3C/script%3E">x</a>',
    "/1": FakePage(status=500),
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return {**os.environ, "PYTHONUNBUFFERED": "1", **own}


class Browser:
    """Asks a dashboard, as a program with a key does."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/\?token=(.+)", address)
        assert found, address
        self.host, self.key = found.groups()

    def ask(self, path: str, method: str = "GET", body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=HUNG_AFTER)
        headers = {"Authorization": f"Bearer {self.key}"}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        with contextlib.closing(connection):
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def json(self, path: str) -> Any:
        status, body = self.ask(path)
        assert status == 200, body
        return json.loads(body)

    def order(self, key: str, word: str, **fields: Any) -> tuple[int, Any]:
        status, body = self.ask(f"/api/crawls/{key}/{word}", "POST", fields)
        return status, json.loads(body) if status != 403 else body.decode()


@contextlib.contextmanager
def dashboard(environment: dict[str, str], *places: Path) -> Iterator[tuple[Browser, Browser]]:
    """Browsers with the full and with the reading key of a dashboard."""
    line = [sys.executable, "-m", "gossamer", "dashboard", *map(str, places)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        full, read = process.stdout.readline().strip(), process.stdout.readline().strip()
        yield Browser(full), Browser(read)
        process.send_signal(signal.SIGINT)
        assert process.wait(HUNG_AFTER) == 0
    finally:
        process.kill()
        _, said = process.communicate()
    assert said == ""


def listed(browser: Browser, key: str, asked: str) -> Any:
    """A part of the list of hosts, when it is made."""

    def made() -> Any:
        found = browser.json(f"/api/crawls/{key}/hosts?{asked}")
        return None if found["is_being_made"] else found

    return until(made)


def rested(web: FakeWeb, folder: Path) -> Path:
    options = {"output": str(folder), "delay": 0, "retries": 0}
    asyncio.run(Crawl([web.url("/")], build(all_options(), options)).run())
    return folder


@contextlib.contextmanager
def crawling(environment: dict[str, str], web: FakeWeb, folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A crawl at work in a process of its own, which waits for a retry."""
    line = [sys.executable, "-m", "gossamer", "crawl", web.url("/"), "-o", str(folder), "--delay", "0"]
    line += ["--linger", "forever", "--json", *options]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=HUNG_AFTER)


def test_a_crawl_at_rest_is_shown_with_the_numbers_of_status(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web:
        folder = rested(web, tmp_path / "crawls" / "it's <b>mine")
        url = web.url("/")
    with dashboard(environment, tmp_path / "crawls") as (full, read):
        [one] = read.json("/api/crawls")
        assert one["standing"] == msgspec.to_builtins(standing_at_rest(folder))
        assert one["key"] == key_of(folder)
        assert re.fullmatch(r"[A-Za-z0-9.-]+", one["key"])
        assert read.json(f"/api/crawls/{one['key']}") == one["standing"]
        samples = read.json(f"/api/crawls/{one['key']}/samples")
        assert samples["pages"] == [one["standing"]["pages"]] == [1]
        story = read.json(f"/api/crawls/{one['key']}/story?url={url}")
        assert story["state"] == "done"
        assert read.ask(f"/api/crawls/{one['key']}/story")[0] == 400
        assert read.ask(f"/api/crawls/{one['key']}/samples?hours=nan")[0] == 400
        archived = read.json(f"/api/crawls/{one['key']}/document?url={url}")
        assert archived["source"] == PAGES["/"]
        for bad in ("", f"?url={url}nowhere", "?url=file:///etc/passwd", f"?url={url}&at=../x"):
            assert read.ask(f"/api/crawls/{one['key']}/document{bad}")[0] == 400
        hosts = listed(read, one["key"], "search=127&sort=pages&descending=1")
        assert (hosts["total"], [(row["host"], row["pages"]) for row in hosts["rows"]]) == (1, [("127.0.0.1", 1)])
        assert read.json(f"/api/crawls/{one['key']}/hosts?offset=1")["rows"] == []
        for bad in ("sort=nonsense", "limit=0", "limit=501", "offset=-1", "offset=x"):
            assert read.ask(f"/api/crawls/{one['key']}/hosts?{bad}")[0] == 400
        assert read.ask("/api/crawls/elsewhere")[0] == 404
        assert read.json("/api/session") == {"can_change": False}
        assert full.json("/api/session") == {"can_change": True}
        status, told = full.order(one["key"], "pause")
        assert (status, "no crawl is running" in told["error"]) == (400, True)
        assert full.order(one["key"], "block", names=["no.test"])[0] == 200
    assert "no.test" in (folder / "crawl.toml").read_text()


def test_a_running_crawl_is_shown_steered_and_outlives_its_dashboard(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c", "--dashboard", "0") as crawl:
        assert crawl.stderr is not None
        address = next(line for line in crawl.stderr if "dashboard: " in line).partition("dashboard: ")[2].strip()
        browser, key = Browser(address), key_of(tmp_path / "c")
        status, _ = browser.order(key, "pause")
        assert status == 200
        until(lambda: browser.json(f"/api/crawls/{key}?units=1")["state"] == "paused")
        now = browser.json(f"/api/crawls/{key}?units=1")
        assert (now["state"], now["problems"][0]["what"]) == ("paused", "paused")
        assert now["units"]
        assert browser.order(key, "set", values={"delay": "2s"})[0] == 200
        status, told = browser.order(key, "set", values={"nonsense": "2s"})
        assert (status, "no option" in told["error"]) == (409, True)
        assert browser.order(key, "set", values={"delay": "2s"}, do="stop")[0] == 200, (
            "the address says what is ordered"
        )
        assert browser.ask(f"/api/crawls/{key}/rewire", "POST", {"change": "x"})[0] == 400, "a form is no change file"
        [child] = children(crawl.pid)
        os.kill(child, signal.SIGKILL)
        assert any("the dashboard has ended" in line for line in crawl.stderr)
        assert crawl.poll() is None
        crawl.send_signal(signal.SIGINT)
        out, _ = crawl.communicate(timeout=HUNG_AFTER)
    assert json.loads(out)["state"] == "stopped"


def test_a_host_is_told_whole_and_changed_for_itself_alone(tmp_path: Path, environment: dict[str, str]) -> None:
    rules = "User-agent: *\nDisallow: /no\n"
    pages = {"/": '<a href="/1">x</a>', "/1": FakePage(status=500), "/robots.txt": FakePage(rules, type="text/plain")}
    with FakeWeb(pages) as web, crawling(environment, web, tmp_path / "c", "--dashboard", "0") as crawl:
        assert crawl.stderr is not None
        address = next(line for line in crawl.stderr if "dashboard: " in line).partition("dashboard: ")[2].strip()
        browser, key = Browser(address), key_of(tmp_path / "c")
        path = f"/api/crawls/{key}/host?name=127.0.0.1"
        until(lambda: bool(browser.json(path)["errors"]))
        told = browser.json(path)
        errors = [(one["url"], one["outcome"], one["status"]) for one in told["errors"]]
        assert errors == [(web.url("/1"), "server_error", 500)]
        assert [(one["url"], one["attempt"]) for one in told["known"]["later"]] == [(web.url("/1"), 2)]
        assert (told["known"]["given"], told["known"]["state"]["robots_state"]) == ({}, "qualified")
        assert [(one["url"], one["text"]) for one in told["robots"]] == [(web.url("/robots.txt"), rules)]
        assert [(one["status"], one["is_changed"]) for one in told["robots"][0]["versions"]] == [("200", True)]
        assert browser.order(key, "set-host", name="127.0.0.1", values={"delay": "7s", "max-pages": "5"})[0] == 200
        live = listed(browser, key, "live=1")
        assert live["now"]["127.0.0.1"]["delay"] == 7.0
        assert "now" not in live["rows"][0]
        told = browser.json(path)
        assert told["known"]["given"] == {"delay": 7.0, "max_pages": 5}
        assert (told["known"]["state"]["delay"], told["known"]["state"]["delay_reason"]) == (7.0, "setting")
        for values in ({"delay": "9s", "max_pages": "0"}, {"header": "A: b", "x": "y"}, {"delay": "soon"}):
            assert browser.order(key, "set-host", name="127.0.0.1", values=values)[0] in (400, 409)
        assert browser.json(path)["known"]["given"] == {"delay": 7.0, "max_pages": 5}, "all of it, or nothing"
        line = [sys.executable, "-m", "gossamer", "set", str(tmp_path / "c"), "--host", "127.0.0.1", "delay=none"]
        assert subprocess.check_output(line, text=True, env=environment) == "127.0.0.1: delay = none\n"
        assert browser.json(path)["known"]["given"] == {"max_pages": 5}
        for bad in ("", "?name=", "?name=a/b", "?name=a%20b"):
            assert browser.ask(f"/api/crawls/{key}/host{bad}")[0] == 400
    with dashboard(environment, tmp_path / "c") as (_, read):
        told = read.json(path)
        assert (told["known"]["given"], told["known"]["state"]["counters"]["pages"]) == ({"max_pages": 5}, 1)
        assert told["robots"][0]["text"] == rules


def test_every_setting_says_what_it_takes_and_several_change_together_or_not_at_all(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    options = ("--dashboard", "0", "--auth", "127.0.0.1=me:hush")
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c", *options) as crawl:
        assert crawl.stderr is not None
        address = next(line for line in crawl.stderr if "dashboard: " in line).partition("dashboard: ")[2].strip()
        browser, key = Browser(address), key_of(tmp_path / "c")

        def setting(name: str) -> dict[str, Any]:
            unit, _, bare = name.partition(".")
            [found] = [one for one in browser.json(f"/api/crawls/{key}/graph")["units"] if one["name"] == unit]
            return next(one for one in found["settings"] if one["name"] == bare)

        units = browser.json(f"/api/crawls/{key}/graph")["units"]
        assert [f"{unit['name']}.{one['name']}" for unit in units for one in unit["settings"] if not one["doc"]] == []
        told = setting("frontier.concurrency")
        assert (told["kind"], told["bounds"], told["restart"]) == ("a whole number", ">= 1, <= 4096", "")
        assert setting("frontier.directory")["restart"]
        assert "hush" not in json.dumps(units), "what is secret is shown nowhere"
        good = {"politeness.delay": "3s", "frontier.concurrency": "4"}
        assert browser.order(key, "check-set", values=good)[0] == 200
        assert setting("politeness.delay")["value"] == 0.0, "what is only checked changes nothing"
        named = [{"noise": "/etc/passwd"}, {"links.parameters": "/etc/passwd"}, {"http.proxy": '["$HOME"]'}]
        for bad in ({"frontier.concurrency": "0"}, {"frontier.directory": "/tmp/x"}, {"nowhere.x": "1"}, *named):
            for word in ("check-set", "set"):
                assert browser.order(key, word, values={**good, **bad}, by_form=False)[0] == 409
        assert setting("politeness.delay")["value"] == 0.0
        assert browser.order(key, "layout", places={"frontier": [1, 2]})[0] == 200
        assert browser.json(f"/api/crawls/{key}/layout") == {"places": {"frontier": [1.0, 2.0]}, "is_still": False}
        assert browser.order(key, "layout", places={"frontier": "x"})[0] == 400
        assert browser.order(key, "set", values=good)[0] == 200
        assert (setting("politeness.delay")["value"], setting("frontier.concurrency")["value"]) == (3.0, 4)
    with dashboard(environment, tmp_path / "c") as (_, read):
        browser = read
        assert read.order(key, "layout", places={})[0] == 403
        assert setting("politeness.delay")["value"] == 3.0, "a crawl at rest shows what it would go on with"


def test_a_form_changes_the_graph_by_names_alone_and_takes_it_back(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c", "--dashboard", "0") as crawl:
        assert crawl.stderr is not None
        address = next(line for line in crawl.stderr if "dashboard: " in line).partition("dashboard: ")[2].strip()
        browser, key = Browser(address), key_of(tmp_path / "c")

        def carriers() -> dict[str, list[str]]:
            found = browser.json(f"/api/crawls/{key}/graph")["connectors"]
            return {one["name"]: [*one["producers"], *one["consumers"]] for one in found}

        before = carriers()
        assert "near-duplicates" in browser.json("/api/catalog")["components"]
        change = {
            "connectors": {"alike": {"address": "local:"}},
            "components": {
                "near": {"use": "near-duplicates", "ports": {"inbox": "processed", "outbox": "alike"},
                         "providers": {"index": "prints"}},
                "links": {"ports": {"inbox": "alike"}},
            },
            "providers": {"prints": {"use": "memory-fingerprints"}},
        }  # fmt: skip
        status, told = browser.order(key, "rewire", change=change)
        assert (status, told["is_done"], "adds component 'near'" in told["told"]) == (200, False, True), told
        assert 'use = "near-duplicates"' in told["text"]
        (tmp_path / "change.toml").write_text(told["text"])
        line = [
            sys.executable,
            "-m",
            "gossamer",
            "rewire",
            str(tmp_path / "c"),
            str(tmp_path / "change.toml"),
            "--check",
        ]
        assert subprocess.check_output(line, text=True, env=environment).strip() == told["told"]
        assert carriers() == before, "a difference that is only shown changes nothing"
        assert browser.order(key, "rewire", change=change, apply=True)[0] == 200
        assert carriers()["alike"] == ["near", "links"]
        bad: list[dict[str, Any]] = [
            {},
            {"components": {"x": {"use": "os:system"}}},
            {"components": {"x": {"use": "nowhere"}}},
            {"components": {"links": {"process": "elsewhere"}}},
            {"components": {"links": {"settings": {"parameters": "/etc/passwd"}}}},
            {"providers": {"files": {"use": "file", "settings": {"roots": ["/"]}}}},
            {"connectors": {"alike": {"address": "unix:/tmp/x"}}},
            {"connectors": {"alike": {"address": "tcp:10.0.0.1:80"}}},
            {"remove": ["components.frontier"]},
        ]
        for one in bad:
            for applied in (False, True):
                assert browser.order(key, "rewire", change=one, apply=applied)[0] in (400, 409), one
        assert browser.order(key, "undo")[0] == 200
        assert carriers() == before


@pytest.mark.long
def test_fifty_changes_by_form_leave_the_pages_and_counters_of_a_crawl_as_without(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    site: dict[str, str | FakePage] = {
        f"/{n}": FakePage(f'<p>page {n}</p><a href="/{2 * n + 1}">x</a><a href="/{2 * n + 2}">x</a>', latency=0.1)
        for n in range(2_000)
    }
    site["/"] = '<a href="/0">x</a>'
    near = {
        "use": "near-duplicates",
        "ports": {"inbox": "processed", "outbox": "alike"},
        "providers": {"index": "prints"},
    }
    forms = [
        {
            "connectors": {"alike": {"address": "local:"}},
            "components": {"near": near, "links": {"ports": {"inbox": "alike"}}},
            "providers": {"prints": {"use": "memory-fingerprints"}},
        },
        {"connectors": {"alike": {"capacity": 7}}},
        {"components": {"near": {"on_error": "skip"}}},
    ]
    told, sets = [], []
    with FakeWeb(site) as web:
        for name in ("without", "with"):
            folder = tmp_path / name
            options = (
                "--dashboard",
                "0",
                "--linger",
                "0",
                "--traps",
                "report",
                "--concurrency",
                "64",
                "--per-host",
                "64",
            )
            with crawling(environment, web, folder, *options) as crawl:
                assert crawl.stderr is not None and crawl.stdout is not None
                address = next(line for line in crawl.stderr if "dashboard: " in line).partition("dashboard: ")[2]
                if name == "with":
                    changed(Browser(address.strip()), key_of(folder), forms)
                told.append(json.loads(crawl.stdout.read()))
                assert crawl.wait(HUNG_AFTER) in (0, 3)
            with Database(folder) as database:
                sets.append(sorted(database.ask("SELECT url, outcome, status, bytes FROM pages_all")))
    assert len(sets[0]) > 2_000
    assert sets[0] == sets[1], "each page once, and with the same answer"
    counted = ("pages", "fetched", "unique_documents", "bytes", "outcomes", "discovered")
    assert {name: told[0][name] for name in counted} == {name: told[1][name] for name in counted}


def changed(browser: Browser, key: str, forms: list[dict[str, Any]]) -> None:
    """Fifty changes of a crawl that runs: of its graph and back, and of settings."""
    done = 0

    def order(word: str, **fields: Any) -> None:
        nonlocal done
        status, said = browser.order(key, word, **fields)
        assert status == 200, (said, done)
        done += 1

    order("set", values={"frontier.concurrency": "2"})
    while done < 50:
        for form in forms:
            order("rewire", change=form, apply=True)
            order("set", values={"frontier.concurrency": str(3 + done % 3)})
        for _ in forms:
            order("undo")
        order("pause")
        order("continue")
    standing = browser.json(f"/api/crawls/{key}")
    assert (standing["state"], standing["queued"] > 0) == ("running", True), "all changes were made while it crawled"
    order("set", values={"frontier.concurrency": "64"})


def test_a_question_reads_the_tables_of_this_crawl_and_nothing_else(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with FakeWeb(PAGES) as web:
        folder = rested(web, tmp_path / "c")
    with dashboard(environment, folder) as (full, read):
        key = key_of(folder)

        def asked(**query: str) -> tuple[int, Any]:
            status, body = read.ask(f"/api/crawls/{key}/tables?{urlencode(query)}")
            return status, json.loads(body)

        status, [answer] = asked(sql="SELECT outcome, count(*) AS n FROM pages GROUP BY 1 ORDER BY 1 LIMIT 1")
        assert (status, answer["columns"], answer["rows"]) == (200, ["outcome", "n"], [["client_error", 1]]), answer
        _, [many] = asked(sql="SELECT range, repeat('x', 5000) AS long FROM range(5000)")
        assert (len(many["rows"]), many["is_more"], len(many["rows"][0][1])) == (1_000, True, 2_000)
        for sql in (
            f"SELECT * FROM '{tmp_path}/secret.csv'",
            f"COPY pages TO '{tmp_path}/out.csv'",
            "SET enable_external_access = true",
            "SELECT 1; SELECT 2",
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT nonsense FROM pages",
            "",
        ):
            assert asked(sql=sql)[0] == 400, sql
        assert not (tmp_path / "out.csv").exists()
        names = read.json("/api/reports")
        assert "errors" in [one["name"] for one in names["reports"]]
        assert asked(report="errors")[0] == 200
        assert asked(report="nowhere")[0] == 400
        plot = {"kind": "bars", "x": "outcome", "y": "n"}
        saved = [{"name": "mine", "sql": "SELECT 1"}, {"name": "drawn", "sql": "SELECT 2", "plot": plot}]
        status, body = full.ask("/api/reports", "POST", {"saved": saved})
        assert (status, json.loads(body)["saved"]) == (200, saved)
        assert full.ask("/api/reports", "POST", {"saved": [{**saved[1], "plot": {"kind": "module:Class"}}]})[0] == 400
        assert read.ask("/api/reports", "POST", {"saved": []})[0] == 403
        assert read.json("/api/reports")["saved"] == saved
        place = {"name": "there", "place": f"http://{full.host}/?token=SECRET"}
        status, body = full.ask("/api/sites", "POST", {"sites": [place, {"name": "here", "place": str(tmp_path)}]})
        assert status == 200 and b"SECRET" not in body
        assert read.json("/api/sites") == json.loads(body), "who only reads sees the list, without keys"
        assert read.ask("/api/sites", "POST", {"sites": []})[0] == 403
        assert full.ask("/api/sites/open?name=there")[0] == 303
        assert read.ask("/api/sites/open?name=there")[0] == 403
        assert read.ask("/api/sites/crawls")[0] == 403
        assert full.ask("/api/sites/open?name=here")[0] == 400
    for name in ("reports", "sites"):
        assert stat.S_IMODE((tmp_path / f"config/gossamer/{name}.json").stat().st_mode) == 0o600


def test_a_question_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with FakeWeb(PAGES) as web:
        folder = rested(web, tmp_path / "c")
    endless = "SELECT count(*) FROM range(10000000000) a, range(1000) b WHERE a.range % 7 = b.range % 5"
    with pytest.raises(UsageError, match="there was no answer within 1 seconds"):
        asyncio.run(Questions(1.0).tables(folder, endless))


def test_a_crawl_at_rest_goes_on_and_back_from_the_browser(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb({"/": '<a href="/1">x</a>', "/1": "one"}) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "max_pages": 1}
        asyncio.run(Crawl([web.url("/")], build(all_options(), options)).run())
        with dashboard(environment, tmp_path / "c") as (full, read):
            key = key_of(tmp_path / "c")
            assert read.order(key, "resume")[0] == read.order(key, "restore", name="x")[0] == 403
            assert full.order(key, "checkpoint", name="first")[0] == 200
            assert full.order(key, "restore", name="nowhere")[0] in (400, 409)
            assert full.order(key, "restore", name="../x")[0] in (400, 409)
            assert full.order(key, "restore", name="first")[0] == 200
            (tmp_path / "c" / "crawl.toml").write_text(
                (tmp_path / "c" / "crawl.toml").read_text().replace("max_pages = 1\n", "max_pages = 2\n")
            )
            assert full.order(key, "resume")[0] == 200
            until(lambda: read.json(f"/api/crawls/{key}")["pages"] == 2)
            until(lambda: bool(read.json(f"/api/crawls/{key}/log")["said"]))
            log = read.json(f"/api/crawls/{key}/log")
            assert log["visits"][0]["url"] == web.url("/1")
            assert log["said"], "what the crawl said to its person is not lost"


def test_a_form_starts_a_crawl_below_the_folder_that_is_shown_as_the_command_would(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    environment.pop("GOSSAMER_CONTACT", None)
    folder = tmp_path / "crawls"
    folder.mkdir()
    with FakeWeb({"/": "one"}) as web, dashboard(environment, folder) as (full, read):
        assert read.json("/api/options")["folders"] == [str(folder)]

        def start(**fields: Any) -> tuple[int, Any]:
            form = {"folder": str(folder), "seeds": [web.url("/")], "options": {"max_pages": "1", "sitemaps": True}}
            status, body = full.ask("/api/crawls", "POST", {**form, **fields})
            return status, json.loads(body)

        assert read.ask("/api/crawls", "POST", {"folder": str(folder), "seeds": [web.url("/")]})[0] == 403
        status, told = start(name="mine")
        assert (status, told["key"]) == (200, key_of(folder / "mine")), told
        at = f"/api/crawls/{told['key']}"
        until(lambda: read.ask(at)[0] == 200 and not read.json(at)["process"])
        assert read.json(at)["pages"] == 1
        until(
            lambda: any("1 page" in line for line in read.json(f"{at}/log")["said"])
        )  # it keeps what it tells its person
        status, told = start(name="secret", seeds=[web.url("/").replace("://", "://me:s3cret@")])
        assert status == 200 and web.url("/").replace("://", "://USER:PASSWORD@") in told["command"]
        assert "s3cret" not in json.dumps(told)
        waiting = {"delay": "60s", "header": ["X-Api-Key: s3cret"], "scope": "host"}
        status, told = start(name="seen", seeds=[web.url("/").replace("://", "://me:s3cret@")], options=waiting)
        process = int(told["done"].rpartition(" ")[2])
        seen = Path(f"/proc/{process}/cmdline").read_bytes()
        os.kill(process, signal.SIGTERM)
        assert b"seen" in seen and b"s3cret" not in seen, "every user of the machine sees the arguments of a process"
        ended = f"/api/crawls/{told['key']}"
        until(lambda: read.ask(ended)[0] != 409 and not json.loads(read.ask(ended)[1]).get("process"))
        refused = {
            "holds a crawl": {"name": "mine"},
            "contact": {"name": "other", "seeds": ["http://192.0.2.1/"]},
            "write it in full": {"seeds": ["file:///etc/"]},
            "in no other": {"folder": str(tmp_path)},
            "take letters": {"name": "../up"},
            "no option": {"options": {"output": str(tmp_path / "x")}},
            "max_pages": {"options": {"max_pages": "many"}},
            "true or false": {"options": {"sitemaps": "yes"}},
        }
        for words, fields in refused.items():
            status, told = start(**fields)
            assert status == 400 and words in told["error"], (fields, told)
    assert sorted(path.name for path in folder.iterdir()) == ["mine", "secret", "seen"], (
        "what was refused leaves nothing"
    )


def test_exports_are_made_by_a_form_downloaded_and_removed(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web:
        folder = rested(web, tmp_path / "c")
    with dashboard(environment, folder) as (full, read):
        at = f"/api/crawls/{key_of(folder)}"
        assert read.ask(f"{at}/exports", "POST", {"to": "csv"})[0] == 403
        for bad in ({"to": "nowhere"}, {"to": "csv", "table": "../x"}, {"to": "csv", "output": "/tmp/x"}, {}):
            assert full.ask(f"{at}/exports", "POST", bad)[0] == 400, bad
        for form in ({"to": "csv"}, {"to": "jsonl", "table": "nowhere"}):
            assert full.ask(f"{at}/exports", "POST", form)[0] == 200
        until(lambda: all(one["state"] != "being made" for one in read.json(f"{at}/exports")["exports"]), 0.1)
        made = {one["state"]: one for one in read.json(f"{at}/exports")["exports"]}
        assert "no table 'nowhere'" in made["failed"]["said"]
        name = made["ready"]["name"]
        status, body = read.ask(f"{at}/exports/{name}")
        assert (status, body) == (200, (tmp_path / "c-exports" / name).read_bytes())
        assert web.url("/").encode() in body
        (tmp_path / "c-exports" / "link").symlink_to("/etc/passwd")
        for other in ("link", "..%2Fc%2Fcrawl.toml", "nowhere"):
            assert read.ask(f"{at}/exports/{other}")[0] in (400, 404)
        assert read.ask(f"{at}/remove-export", "POST", {"name": name})[0] == 403
        assert full.ask(f"{at}/remove-export", "POST", {"name": "../c/crawl.toml"})[0] == 400
        for one in made.values():
            assert full.ask(f"{at}/remove-export", "POST", {"name": one["name"]})[0] == 200
        assert read.json(f"{at}/exports")["exports"] == []
    assert [path.name for path in (tmp_path / "c-exports").iterdir()] == ["link"]


def children(process: int) -> list[int]:
    """The processes that this one has started and that run a dashboard."""
    found = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in found.splitlines()]
    return [int(pid) for pid, parent, command in rows if int(parent) == process and "gossamer.dashboard" in command]


def test_a_dashboard_that_was_started_with_a_crawl_ends_with_it(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c", "--dashboard") as crawl:
        assert crawl.stderr is not None
        next(line for line in crawl.stderr if "dashboard: " in line)
        [child] = children(crawl.pid)
        crawl.kill()
        until(lambda: not is_there(child), 0.05)


def is_there(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_events_tell_a_browser_what_has_changed(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c") as crawl:
        until((tmp_path / "c" / "crawl.toml").exists)
        with dashboard(environment, tmp_path / "c") as (full, read):
            key = key_of(tmp_path / "c")
            connection = http.client.HTTPConnection(read.host, timeout=HUNG_AFTER)
            with contextlib.closing(connection):
                connection.request("GET", f"/api/crawls/{key}/events", headers={"Authorization": f"Bearer {read.key}"})
                answer = connection.getresponse()
                assert answer.headers["Content-Type"].startswith("text/event-stream")
                seen = set()
                while "running" not in seen:
                    seen.add(state_of(answer))
                assert full.order(key, "pause")[0] == 200
                while "paused" not in seen:
                    seen.add(state_of(answer))
        assert crawl.poll() is None


def state_of(answer: http.client.HTTPResponse) -> str:
    while True:
        line = answer.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: "):
            return str(json.loads(line[6:]).get("state", ""))


def test_prometheus_reads_figures_whose_labels_no_web_site_chooses(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web:
        folder = rested(web, tmp_path / 'cr"awl\\{}')
    with dashboard(environment, folder) as (_, read):
        status, body = read.ask("/metrics")
    lines = body.decode().splitlines()
    assert status == 200
    key = key_of(folder)
    assert f'gossamer_pages_total{{crawl="{key}"}} 1' in lines
    assert f'gossamer_requests_total{{crawl="{key}",outcome="ok"}} 1' in lines
    form = re.compile(r'gossamer_[a-z_]+\{crawl="[A-Za-z0-9.-]+"(,(outcome|store)="[a-z_]+")?\} -?[0-9.e+]+')
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if not form.fullmatch(line)] == []
    assert "127.0.0.1" not in body.decode()


def test_the_description_of_the_interface_names_every_address(tmp_path: Path, environment: dict[str, str]) -> None:
    from starlette.routing import Route

    from gossamer.dashboard.app import addresses
    from gossamer.dashboard.crawls import Crawls, Streams
    from gossamer.dashboard.exporting import Exporter
    from gossamer.dashboard.of_crawl import ORDERS
    from gossamer.dashboard.questions import Replays

    at = addresses(Crawls([]), Streams(), Replays(), Exporter())
    told = at.openapi()
    routes = {one.path.replace(":path", "") for one in at.routes if isinstance(one, Route)}
    routes -= {"/", "/static/{name}", "/api/openapi.json"}
    orders = {f"/api/crawls/{{key}}/{word}" for word in ORDERS}
    assert set(told["paths"]) == (routes - {"/api/crawls/{key}/{order}"}) | orders
    text = json.dumps(told)
    parts = told["components"]["schemas"]
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= set(parts)


def test_the_front_end_is_small_and_loads_nothing_from_elsewhere() -> None:
    from gossamer.dashboard.app import STATIC

    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 300_000
    for path in files:
        text = path.read_text()
        assert not re.findall(r"""(?:src|href|import|from|url)[=( ]*["'(]\s*(?:https?:)?//""", text), path.name
        assert "innerHTML" not in text and "outerHTML" not in text and "insertAdjacentHTML" not in text
        assert "eval(" not in text and "document.write" not in text
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)|\son\w+=|style=", page) == []


@pytest.mark.parametrize(
    ("given", "address", "seeds"),
    [
        (None, None, []),
        ("", "", []),
        ("8080", "8080", []),
        ("localhost:8080", "localhost:8080", []),
        ("[::1]:80", "[::1]:80", []),
        ("https://example.org/", "", ["https://example.org/"]),
        ("example.org", "", ["example.org"]),
    ],
)
def test_a_seed_behind_the_option_is_a_seed(given: str | None, address: str | None, seeds: list[str]) -> None:
    assert parted(given) == (address, seeds)


def test_an_address_that_others_can_reach_is_refused_before_the_crawl_begins(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "gossamer", "crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "c")]
    done = subprocess.run([*line, "--dashboard", "0.0.0.0:80"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "in the clear" in done.stderr
    assert not (tmp_path / "c").exists()
