"""The dashboard of crawls that run and rest: the numbers of `status`, orders, events, and nothing that a crawl would notice."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.assembly.control.at_rest import standing_at_rest
from gossamer.assembly.crawl import Crawl
from gossamer.assembly.options import CrawlOptions
from gossamer.cli.beside import parted
from gossamer.dashboard.crawls import key_of
from gossamer.flow.sheet import build
from gossamer.testing.fakeweb import FakePage, FakeWeb

#: A page, one that is tried again much later, and a title that would like to be a script.
PAGES = {
    "/": '<title><img src=x onerror=alert(1)></title><a href="/1">x</a><a href="/%3Cscript%3Ealert(1)%3C/script%3E">x</a>',
    "/1": FakePage(status=500),
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", "XDG_STATE_HOME": str(tmp_path / "state")}


class Browser:
    """Asks a dashboard, as a program with a key does."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/\?token=(.+)", address)
        assert found, address
        self.host, self.key = found.groups()

    def ask(self, path: str, method: str = "GET", body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=30)
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
        assert process.wait(30) == 0
    finally:
        process.kill()
        _, said = process.communicate()
    assert said == ""


def rested(web: FakeWeb, folder: Path) -> Path:
    options = {"output": str(folder), "delay": 0, "retries": 0}
    asyncio.run(Crawl([web.url("/")], build(CrawlOptions, options)).run())
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
        process.communicate(timeout=60)


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
        hosts = read.json(f"/api/crawls/{one['key']}/hosts?search=127&sort=pages&descending=1")
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
        time_out = time.monotonic() + 30
        while browser.json(f"/api/crawls/{key}?units=1")["state"] != "paused" and time.monotonic() < time_out:
            time.sleep(0.05)
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
        out, _ = crawl.communicate(timeout=60)
    assert json.loads(out)["state"] == "stopped"


def test_a_host_is_told_whole_and_changed_for_itself_alone(tmp_path: Path, environment: dict[str, str]) -> None:
    rules = "User-agent: *\nDisallow: /no\n"
    pages = {"/": '<a href="/1">x</a>', "/1": FakePage(status=500), "/robots.txt": FakePage(rules, type="text/plain")}
    with FakeWeb(pages) as web, crawling(environment, web, tmp_path / "c", "--dashboard", "0") as crawl:
        assert crawl.stderr is not None
        address = next(line for line in crawl.stderr if "dashboard: " in line).partition("dashboard: ")[2].strip()
        browser, key = Browser(address), key_of(tmp_path / "c")
        path = f"/api/crawls/{key}/host?name=127.0.0.1"
        deadline = time.monotonic() + 30
        while not browser.json(path)["errors"] and time.monotonic() < deadline:
            time.sleep(0.05)
        told = browser.json(path)
        errors = [(one["url"], one["outcome"], one["status"]) for one in told["errors"]]
        assert errors == [(web.url("/1"), "server_error", 500)]
        assert [(one["url"], one["attempt"]) for one in told["known"]["later"]] == [(web.url("/1"), 2)]
        assert (told["known"]["given"], told["known"]["state"]["robots_state"]) == ({}, "qualified")
        assert [(one["url"], one["text"]) for one in told["robots"]] == [(web.url("/robots.txt"), rules)]
        assert [(one["status"], one["is_changed"]) for one in told["robots"][0]["versions"]] == [("200", True)]
        assert browser.order(key, "set-host", name="127.0.0.1", values={"delay": "7s", "max-pages": "5"})[0] == 200
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
        assert (told["kind"], told["bounds"], told["restart"]) == ("a whole number", ">= 1", "")
        assert setting("frontier.directory")["restart"]
        assert "hush" not in json.dumps(units), "what is secret is shown nowhere"
        good = {"politeness.delay": "3s", "frontier.concurrency": "4"}
        assert browser.order(key, "check-set", values=good)[0] == 200
        assert setting("politeness.delay")["value"] == 0.0, "what is only checked changes nothing"
        for bad in ({"frontier.concurrency": "0"}, {"frontier.directory": "/tmp/x"}, {"nowhere.x": "1"}):
            for word in ("check-set", "set"):
                assert browser.order(key, word, values={**good, **bad})[0] == 409
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
            {"connectors": {"alike": {"address": "unix:/tmp/x"}}},
            {"connectors": {"alike": {"address": "tcp:10.0.0.1:80"}}},
            {"remove": ["components.frontier"]},
        ]
        for one in bad:
            for applied in (False, True):
                assert browser.order(key, "rewire", change=one, apply=applied)[0] in (400, 409), one
        assert browser.order(key, "undo")[0] == 200
        assert carriers() == before


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
        deadline = time.monotonic() + 30
        while is_there(child) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_there(child)


def is_there(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_events_tell_a_browser_what_has_changed(tmp_path: Path, environment: dict[str, str]) -> None:
    with FakeWeb(PAGES) as web, crawling(environment, web, tmp_path / "c") as crawl:
        while not (tmp_path / "c" / "crawl.toml").exists():
            time.sleep(0.05)
        with dashboard(environment, tmp_path / "c") as (full, read):
            key = key_of(tmp_path / "c")
            connection = http.client.HTTPConnection(read.host, timeout=30)
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

    from gossamer.dashboard.app import application
    from gossamer.dashboard.asking import ORDERS
    from gossamer.dashboard.crawls import Crawls
    from gossamer.dashboard.describing import openapi

    told = set(openapi()["paths"])
    routes = {one.path for one in application(Crawls([])).routes if isinstance(one, Route)} - {"/", "/api/openapi.json"}
    orders = {f"/api/crawls/{{key}}/{word}" for word in ORDERS}
    assert told == (routes - {"/api/crawls/{key}/{order}"}) | orders
    text = json.dumps(openapi())
    parts = openapi()["components"]["schemas"]
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
