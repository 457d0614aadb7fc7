"""How a crawl ends, as a person meets it: exit statuses, what is told, and what is still owed."""

import asyncio
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.commands import gave
from tests.names import FakeDns, Zone
from tests.waiting import until

from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.frontier.limits import CrawlTotals, FrontierSheet
from gossamer.testing.fakeweb import FakePage, FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def closed_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_a_dead_second_seed_ends_the_crawl_with_one_line_that_names_it_and_the_command(tmp_path: Path) -> None:
    directory, dead = str(tmp_path / "c"), f"http://127.0.0.1:{closed_port()}/"
    with FakeWeb.tree(1, 2) as web:
        status, out, err = gave(
            "crawl", dead, web.url("/"), "-o", directory, "--delay", "0", "--linger", "1s", "--json"
        )
        told = json.loads(out)
        assert (status, told["state"], told["pages"], told["queued"]) == (4, "incomplete", 3, 1)
        assert told["waiting"]["hosts"] == {dead.rstrip("/"): "connect_failed"}
        [line] = [line for line in err.splitlines() if "wait" in line]
        assert f"{dead.rstrip('/')} (connect_failed; Failed to connect to 127.0.0.1" in line, (
            "as `gossamer fetch` says it"
        )
        assert dead.rstrip("/") in line and f"gossamer resume {directory}" in line
        again, out, _ = gave("resume", directory, "--json", "--linger", "0s")
    assert again == 4
    assert json.loads(out)["queued"] == 1, "what it owes is the same"


def test_a_seed_of_a_server_without_tls_is_told_in_the_words_of_one_fetch(tmp_path: Path) -> None:
    class Plain(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Plain) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        seed = f"https://127.0.0.1:{server.server_address[1]}/"
        _, _, err = gave("crawl", seed, "-o", str(tmp_path / "c"), "--linger", "0s")
        _, fetched, _ = gave("fetch", seed)
        server.shutdown()
    [reason] = [line.removeprefix("reason").strip() for line in fetched.splitlines() if line.startswith("reason")]
    assert reason.endswith("the server speaks no TLS at this port, perhaps plain http")
    assert f"tls_failed; {reason}" in err


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (FakePage(status=403), "status 403"),
        (None, "status 404"),
    ],
)
def test_where_no_seed_brings_a_document_each_is_told_with_its_reason(
    tmp_path: Path, page: FakePage | None, why: str
) -> None:
    with FakeWeb({"/a": page} if page else {}) as web:
        status, out, err = gave("crawl", web.url("/a"), "-o", str(tmp_path / "c"), "--delay", "0")
    assert status == 4
    assert f"seed {web.url('/a')}: {why}" in err
    assert out.startswith("incomplete: no document came: 0 pages")


def test_a_seed_that_robots_deny_is_told_with_the_line(tmp_path: Path) -> None:
    robots = FakePage(b"User-agent: *\nDisallow: /a\n", headers=(("content-type", "text/plain"),))
    with FakeWeb({"/robots.txt": robots, "/a": FakePage(b"<p>a")}) as web:
        status, _, err = gave("crawl", web.url("/a"), "-o", str(tmp_path / "c"), "--delay", "0")
    assert status == 4
    assert f"seed {web.url('/a')}: robots.txt denies it, line 2" in err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--only", "org.example"), "--only excludes it"),
        (("--never", "test.*"), "--never excludes it"),
        (("--filter", "fetch: depth > 3"), "--filter excludes it (depth > 3)"),
        (("--set", "politeness.blocked=a.test"), "a.test is blocked"),
    ],
)
def test_a_seed_that_the_users_own_options_exclude_is_told_with_the_option(
    options: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    with FakeWeb({"/": FakePage("<p>here")}) as web:
        seed = f"http://a.test:{web.port}/"
        place = ("-o", str(tmp_path / "c"), "--delay", "0", "--resolve", web.resolve)
        status, _, err = gave("crawl", seed, *place, *options)
    assert status == 4
    assert f"seed {seed}: {why}" in err


def test_a_lone_pdf_is_a_success(tmp_path: Path) -> None:
    pdf = FakePage(b"%PDF-1.4\n", headers=(("content-type", "application/pdf"),))
    with FakeWeb({"/a.pdf": pdf}) as web:
        status, out, err = gave("crawl", web.url("/a.pdf"), "-o", str(tmp_path / "c"), "--delay", "0")
    assert (status, err) == (0, "")
    assert out.startswith("finished: no page, 1 other document")


def test_keep_trying_is_refused_with_what_stands_in_its_place() -> None:
    status, _, err = gave("crawl", "http://127.0.0.1:9/", "--keep-trying")
    assert status == 2
    assert err.strip() == "gossamer: --keep-trying no longer exists; write --linger forever"


def test_a_limit_is_named_with_the_command_that_goes_on(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    with FakeWeb.tree(2, 3) as web:
        status, out, _ = gave("crawl", web.url("/"), "-o", directory, "--delay", "0", "--max-pages", "2")
        assert status == 0
        assert f"gossamer resume {directory} --max-pages MORE" in out
        _, out, _ = gave("resume", directory, "--max-pages", "3", "--json")
    assert json.loads(out)["limit"] == "max_pages"


def crawl_with_names(seeds: Sequence[str], folder: Path, zones: dict[str, Zone], **more: float) -> tuple[Summary, int]:
    """A crawl that asks a name server of its own and retries soon; also how often `gone.test` was asked for."""

    async def body() -> tuple[Summary, int]:
        async with FakeDns(zones) as names:
            settings: dict[str, dict[str, object]] = {
                "dns": {"servers": [names.server], "negative_ttl": 0.05},
                "politeness": {"retries": [0.3, 600.0], "delay": 0.0},
                "frontier": more,
            }
            done = await Crawl(
                seeds, build(all_options(), {"output": str(folder)}), settings=settings, tables=False
            ).run()
            return done, names.asked["gone.test"]

    return asyncio.run(body())


def test_a_name_that_does_not_exist_is_looked_up_once_more_and_then_is_a_dead_link(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        done, asked = crawl_with_names([web.url("/"), "http://gone.test/"], tmp_path / "c", {})
    assert (done.state, done.exit_code, done.pages, done.queued) == ("finished", 0, 3, 0)
    assert asked == 3, "once before the crawl begins, and twice in it"
    assert done.waiting is None


def test_a_name_that_does_not_exist_as_the_only_seed_is_incomplete(tmp_path: Path) -> None:
    done, _ = crawl_with_names(["http://gone.test/"], tmp_path / "c", {}, linger=31.0)
    assert (done.state, done.exit_code, done.queued) == ("incomplete", 4, 0)


def test_a_failing_resolver_is_no_dead_link(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        seeds = [web.url("/"), "http://gone.test/"]
        done, _ = crawl_with_names(seeds, tmp_path / "c", {"gone.test": Zone(fails=True)})
    assert (done.state, done.exit_code, done.pages, done.queued) == ("incomplete", 4, 3, 1)
    assert done.waiting is not None and done.waiting.hosts == {"http://gone.test": "dns_failed"}


def test_of_what_is_queued_at_a_limit_only_what_failed_waits_for_a_retry(tmp_path: Path) -> None:
    links = "".join(f'<a href="/{page}">x</a>' for page in range(20))
    fine = {f"/{page}": "page" for page in range(20)}
    for name, pages, urls in (("a", fine, None), ("b", {**fine, "/0": FakePage("", status=500)}, 1)):
        with FakeWeb({"/": links, **pages}) as web:
            options = {"output": str(tmp_path / name), "delay": 0, "max_pages": 4, "concurrency": 1}
            done = run(Crawl([web.url("/")], build(CrawlOptions, options), tables=False))
        assert (done.state, done.limit) == ("limit", "max_pages")
        assert done.queued > 10
        assert (done.waiting and done.waiting.urls) == urls


def test_seeds_that_are_queued_still_are_not_said_to_have_brought_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    with FakeWeb({}) as web:
        seeds = [web.url(f"/{page}") for page in range(100)]
        options = {"output": str(tmp_path / "c"), "delay": "100ms", "max_time": "1s"}
        run(Crawl(seeds, build(CrawlOptions, options), tables=False, report=told.append))
    [line] = [line for line in told if "more seeds" in line]
    assert "more seeds were still queued" in line
    assert "80 more seeds brought no document" not in line


def test_a_host_that_asked_for_a_pause_is_left_alone_by_the_run_after_a_kill(tmp_path: Path) -> None:
    busy = FakePage("busy", status=503, headers=(("Retry-After", "900"),))
    with FakeWeb({"/": '<a href="/busy">b</a><a href="/other">o</a>', "/busy": busy, "/other": "o"}) as web:
        line = [sys.executable, "-m", "gossamer", "crawl", web.url("/"), "-o", str(tmp_path / "c"), "--delay", "0"]
        process = subprocess.Popen(
            [*line, "--linger", "forever"],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": os.environ.get("HOME", "/")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            web.wait_for(2)
            until(lambda: json.loads(gave("status", str(tmp_path / "c"), "--json")[1]).get("fetched") == 2)  # committed
        finally:
            process.kill()
            process.wait()
        before = web.targets()
        status, out, _ = gave("resume", str(tmp_path / "c"), "--linger", "0s", "--json")
        assert web.targets() == before == ["/", "/busy"]
    told = json.loads(out)
    assert (status, told["state"], told["queued"]) == (4, "incomplete", 2)


def test_the_time_of_a_run_and_of_all_runs_are_limits_of_their_own() -> None:
    rules = FrontierSheet(max_time=60.0, total_time=100.0)
    stopping = CrawlTotals(rules)
    stopping.begin({"elapsed_ms": 70_000}, now=1_000.0)
    assert (stopping.ends_at(), stopping.time_limit) == (1_030.0, "total_time")
    assert not stopping.allows(0, has_work=True, now=1_030.0) and stopping.reached == "total_time"
    stopping = CrawlTotals(rules)
    stopping.begin({"elapsed_ms": 10_000}, now=1_000.0)
    assert (stopping.ends_at(), stopping.time_limit) == (1_060.0, "max_time")
    assert stopping.allows(0, has_work=True, now=1_059.0)


@pytest.mark.long
def test_what_is_in_flight_when_the_time_is_up_is_cut(tmp_path: Path) -> None:
    with FakeWeb({"/": FakePage('<a href="/silent">'), "/silent": FakePage(silent=True)}) as web:
        options = build(all_options(), {"output": str(tmp_path / "c"), "max_time": "1s", "delay": "0"})
        job = Crawl([web.url("/")], options, tables=False)
        done = asyncio.run(job.run())
    assert (done.state, done.limit, done.exit_code, done.pages) == ("limit", "max_time", 0, 1)
    assert 10.0 < done.seconds < 25.0, "ten seconds, and not the server's patience"
    assert any("were cut" in line for line in job.warnings)


def test_a_crawl_ends_at_the_first_page_that_until_holds_for(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    pages: dict[str, FakePage] = {f"/{n}": FakePage(f'<title>{n}</title><a href="/{n + 1}">') for n in range(9)}
    with FakeWeb(pages) as web:
        options = ("-o", directory, "--delay", "0", "--until", "title matches '^[3 6]$' and status(200)")
        status, out, _ = gave("crawl", web.url("/0"), *options)
        assert status == 0
        assert out.startswith("limit: 4 pages")
        assert f"until:    {web.url('/3')}" in out
        assert f"go on:    gossamer resume {directory}\n" in out
        status, out, _ = gave("resume", directory, "--json")
        told = json.loads(out)
        assert (status, told["state"], told["limit"], told["goal"]) == (0, "limit", "until", web.url("/6"))
        assert told["pages"] == 7, "the crawl that goes on looks for the next such page"
        _, out, _ = gave("resume", directory, "--json")
    assert [json.loads(out)[name] for name in ("state", "limit", "goal", "pages")] == ["finished", "", "", 9]


def test_an_expression_of_until_that_cannot_be_read_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    status, _, err = gave("crawl", "http://127.0.0.1:9/", "-o", str(tmp_path / "c"), "--until", "titel matches x")
    assert status == 2
    assert "until" in err and "did you mean 'title'" in err and "Traceback" not in err
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("tell", [Crawl.stop, Crawl.abort])
def test_a_crawl_that_is_told_to_end_while_it_starts_ends(tell: Callable[[Crawl], None], tmp_path: Path) -> None:
    with FakeWeb.tree(4, 4) as web:
        job = Crawl([web.url("/")], build(all_options(), {"output": str(tmp_path / "c"), "delay": "0"}), tables=False)
        tell(job)
        done = asyncio.run(job.run())
    assert (done.state, done.exit_code) == ("stopped", 3)
    assert done.pages < 10
