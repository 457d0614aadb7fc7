"""A crawl that waits says why, and until when: on the terminal, in `status`, and in JSON; while it runs, and when it rests."""

import asyncio
import errno
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from gossamer.cli.progress import line_of, panel_lines
from gossamer.cli.status import lines_of
from gossamer.crawls.catalog import catalog
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.at_work import glance_at
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.waits import Wait
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.planning import Catalog
from gossamer.engine.sheet import build
from gossamer.fetcher.contract import Endpoint
from gossamer.fetcher.dns import SystemResolver
from gossamer.storage.archive.warc import WarcArchive
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import ResolutionFailed
from gossamer.values.visit import Location, Visit

#: A name that has no address.
NOWHERE = "nowhere.invalid"


def watched(
    seeds: list[str],
    folder: Path,
    until: Callable[[CrawlStanding], bool],
    *,
    known: Catalog | None = None,
    **options: object,
) -> tuple[CrawlStanding, Crawl]:
    """Crawl until its standing is as wanted, then stop it; returns that standing."""
    job = Crawl(
        seeds,
        build(all_options(), {"output": str(folder), "delay": 0, "linger": "forever", **options}),
        catalog=known,
        tables=False,
    )

    async def story() -> CrawlStanding:
        running = asyncio.ensure_future(job.run())
        while not running.done():
            await asyncio.sleep(0.01)
            if job.working and until(now := glance_at(job, os.getpid())):
                job.abort()
                await running
                return now
        raise AssertionError(f"it ended as {running.result()}")

    return asyncio.run(asyncio.wait_for(story(), 60)), job


def waiting(*reasons: str) -> Callable[[CrawlStanding], bool]:
    return lambda now: {wait.why for wait in now.waits} >= set(reasons) and now.in_flight == 0


def of(now: CrawlStanding, why: str) -> Wait:
    [found] = [wait for wait in now.waits if wait.why == why]
    return found


def told(now: CrawlStanding) -> list[str]:
    """All that people are shown of it."""
    at = time.time()
    return [line_of(now, at), "\n".join(panel_lines(now, 200, at)), "\n".join(lines_of(now, at))]


def test_pages_that_are_tried_again_are_told_with_their_number_hosts_and_next_instant(tmp_path: Path) -> None:
    pages = {"/": '<a href="/1">x</a><a href="/2">x</a>', "/1": FakePage(status=500), "/2": FakePage(status=503)}
    with FakeWeb(pages) as web:
        now, _ = watched([web.url("/")], tmp_path / "c", lambda now: of_urls(now) == 2)
    wait = of(now, "retries")
    assert (wait.urls, wait.hosts, wait.names) == (2, 1, ["127.0.0.1"])
    assert 0 < wait.until - time.time() < 120
    assert all("retries of 2 URLs of 1 host, next in" in text for text in told(now))
    assert (now.outcomes["server_error"], now.errors) == (2, 2)
    assert [(one.host, one.errors) for one in now.failing] == [("127.0.0.1", 2)]
    rest = standing_at_rest(tmp_path / "c")
    assert of(rest, "retries") == wait
    assert (rest.errors, rest.failing, rest.queued) == (now.errors, now.failing, now.queued)


def of_urls(now: CrawlStanding) -> int:
    return sum(wait.urls for wait in now.waits if wait.why == "retries")


class Nameless(SystemResolver):
    """Knows no address of one name, and asks nobody."""

    async def resolve(self, host: str, port: int) -> Endpoint:
        if host == NOWHERE:
            raise ResolutionFailed("no such name")
        return await super().resolve(host, port)


def test_a_name_without_an_address_is_told_as_such(tmp_path: Path) -> None:
    known = catalog()
    known.add("dns", Nameless)
    with FakeWeb({"/": f'<a href="http://{NOWHERE}/">x</a>'}) as web:
        now, _ = watched([web.url("/")], tmp_path / "c", waiting("dns_failed"), known=known, scope="any")
    assert (of(now, "dns_failed").hosts, of(now, "dns_failed").names) == (1, [NOWHERE])
    assert all("without an address, next look-up in" in text and NOWHERE in text for text in told(now))


def test_a_host_that_asks_for_a_pause_is_told_with_its_end(tmp_path: Path) -> None:
    page = FakePage(status=429, headers=(("Retry-After", "90"),))
    with FakeWeb({"/": '<a href="/1">x</a>', "/1": page}) as web:
        now, _ = watched([web.url("/")], tmp_path / "c", waiting("refusals"))
    assert 60 < of(now, "refusals").until - time.time() < 150
    assert all("1 host asked for a pause, over in 1 min" in text for text in told(now))
    assert of(standing_at_rest(tmp_path / "c"), "refusals").names == ["127.0.0.1"]


def test_a_robots_txt_out_of_reach_is_told(tmp_path: Path) -> None:
    with FakeWeb({"/": "x", "/robots.txt": FakePage(status=503)}) as web:
        now, _ = watched([web.url("/")], tmp_path / "c", waiting("robots_unreachable"))
    assert all("robots.txt of 1 host out of reach, next try in" in text for text in told(now))


def test_a_pause_is_told_and_how_it_ends(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 4, latency=0.005) as web:
        job = Crawl([web.url("/")], build(all_options(), {"output": str(tmp_path / "c"), "delay": 0}), tables=False)

        async def story() -> CrawlStanding:
            running = asyncio.ensure_future(job.run())
            while not (job.working and job.figures.summary().fetched):
                await asyncio.sleep(0.005)
            job.pause()
            now = glance_at(job, os.getpid())
            job.abort()
            await running
            return now

        now = asyncio.run(asyncio.wait_for(story(), 60))
    assert (now.state, now.waits[0].why) == ("paused", "paused")
    assert all("gossamer continue" in text for text in told(now))


class Full(WarcArchive):
    """Has no room for anything."""

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        raise OSError(errno.ENOSPC, "No space left on device")


def is_disk_full(now: CrawlStanding) -> bool:
    return any(wait.why == "disk_full" for wait in now.waits)


def test_a_full_disk_is_told_as_long_as_it_lasts(tmp_path: Path) -> None:
    known = catalog()
    known.add("warc", Full)
    with FakeWeb({"/": "x"}) as web:
        now, _ = watched([web.url("/")], tmp_path / "c", is_disk_full, known=known)
    assert [wait.why for wait in now.waits] == ["disk_full"]
    assert all("the disk is full" in text for text in told(now))


def test_status_and_the_line_of_json_have_one_name_for_one_figure(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 3) as web:
        job = Crawl([web.url("/")], build(all_options(), {"output": str(tmp_path / "c"), "delay": 0}), tables=False)
        summary = asyncio.run(job.run())
    rest = msgspec.to_builtins(standing_at_rest(tmp_path / "c"))
    named = msgspec.to_builtins(summary)
    assert named.keys() <= rest.keys()
    assert {name: rest[name] for name in named if not name.startswith(("cpu", "peak"))} == {
        name: value for name, value in named.items() if not name.startswith(("cpu", "peak"))
    }
    sizes = {one["name"]: one for one in rest["sizes"]}
    assert set(sizes) == {"seen", "frontier", "ledger", "archive", "tables"}
    assert sizes["seen"]["items"] == summary.discovered
    archive = sum(path.stat().st_size for path in (tmp_path / "c" / "warc").iterdir())
    assert sizes["archive"]["bytes"] == archive
    tables = [path for place in ("tables", "state/agent-00/rows") for path in (tmp_path / "c" / place).rglob("*")]
    assert sizes["tables"]["bytes"] == sum(path.stat().st_size for path in tables if path.is_file())


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gossamer", *arguments]


def test_verbose_tells_a_line_for_each_url_with_outcome_status_bytes_and_depth(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    pages = {"/": '<a href="/1">x</a><a href="/gone">x</a>', "/1": "here", "/gone": FakePage(status=404)}
    with FakeWeb(pages) as web:
        line = command("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--delay", "0", "--verbose", "--quiet")
        done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=HUNG_AFTER)
        rows = {words[-1]: words for words in map(str.split, done.stderr.splitlines()) if words[-1].startswith("http")}
        assert set(rows) == {web.url(path) for path in ("/", "/1", "/gone", "/robots.txt")}
        assert rows[web.url("/1")][:4] == ["ok", "200", "4", "B"]
        assert rows[web.url("/1")][5:8] == ["ms", "depth", "1"]
        assert rows[web.url("/gone")][:2] == ["client_error", "404"]


def test_a_crawl_on_a_terminal_leaves_nothing_of_its_panel_behind(tmp_path: Path, environment: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    with FakeWeb.tree(2, 3, latency=0.3) as web:
        line = command("crawl", web.url("/"), "-o", str(tmp_path / "c"), "--delay", "0")
        process = subprocess.Popen(line, stderr=theirs, stdout=subprocess.DEVNULL, env=environment)
        os.close(theirs)
        shown = read_all(ours)
        assert process.wait(HUNG_AFTER) == 0
    assert b"in flight" in shown
    assert b"gossamer status" in shown
    assert shown.endswith(b"\x1b[J"), "the last thing it does is to erase the panel"


def read_all(terminal: int) -> bytes:
    found = b""
    with os.fdopen(terminal, "rb", buffering=0) as stream:
        while True:
            try:
                part = stream.read(65_536)
            except OSError:  # the other end is closed
                return found
            if not part:
                return found
            found += part
