"""What a crawl has learnt outlives a kill: traps stay cut, near-duplicates are still known."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from gossamer.analysis.why import story_of
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.engine.wiring import read, write
from gossamer.frontier.termination import LAST
from gossamer.frontier.traps.judging import WINDOW
from gossamer.frontier.traps.likeness import NEEDED
from gossamer.query.database import Database
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.task import Task

SOURCE = str(Path(__file__).resolve().parents[2] / "src")

#: Months of a calendar: more than anybody should fetch.
MONTHS = 200

#: Pages of an honest part of the same site.
PAGES = 70


def start(*arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-m", "gossamer", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def counters(directory: Path) -> dict[str, int]:
    with RocksLedger(LedgerSheet(directory=str(directory))).looking() as ledger:
        return dict(ledger.counters())


def month(number: int) -> str:
    return f"/events/{1970 + number // 12}/{number % 12 + 1:02}.html"


def test_a_trap_that_was_found_is_still_cut_after_a_kill(tmp_path: Path) -> None:
    """The calendar is found out, the crawl is killed in an honest part of the site, and then led into the calendar again."""
    later = [month(number) for number in range(12, MONTHS)]

    def calendar(request: FakeRequest) -> str | FakePage:
        if not request.target.startswith("/events/"):
            return FakePage("", status=404)
        _, _, year, name = request.target.split("/")
        number = (int(year) - 1970) * 12 + int(name.removesuffix(".html")) - 1
        links = "".join(f'<a href="{month(number + step)}">x</a>' for step in range(1, 13))
        return f"<h1>Events of the month</h1>{links}"

    pages: dict[str, str | FakePage] = {"/robots.txt": FakePage("", status=404)}
    pages["/"] = f'<a href="{month(0)}">x</a><a href="/page/0">y</a>'
    for number in range(PAGES):
        links = [f"/page/{number + 1}", *(later if number == PAGES - 1 else ())]
        pages[f"/page/{number}"] = FakePage("".join(f'<a href="{link}">x</a>' for link in links), latency=0.01)
    directory = tmp_path / "c"
    options = ("-o", str(directory), "--delay", "0", "--json")
    with FakeWeb(pages, otherwise=calendar) as web:
        process = start("crawl", web.url("/"), *options)
        web.wait_for(PAGES)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before, asked = counters(directory), web.targets()
        process = start("crawl", "--resume", *options)
        _, err = process.communicate(timeout=HUNG_AFTER)
        assert process.returncode == 0, err
        targets = web.targets()
    assert before["found:trap:calendar"] >= 1 and f"/page/{PAGES - 1}" not in asked, "killed at another moment"
    assert f"/page/{PAGES - 1}" in targets
    # Who begins to learn anew needs more pages of the calendar again; what else is fetched are the last probes.
    assert len([one for one in targets[len(asked) :] if one.startswith("/events/")]) < LAST + WINDOW // 2
    aside = [month(number) for number in range(MONTHS) if month(number) not in targets]
    told = [story_of(directory, web.url(target)) for target in (aside[len(aside) // 2], "/page/1")]
    assert [story.state for story in told] == ["set_aside", "done"]


def test_a_crawl_of_a_version_that_forgot_goes_on(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with FakeWeb.tree(3, 3) as web:
        run(Crawl([web.url("/")], build(all_options(), {"output": str(directory), "delay": 0, "max_pages": 10})))
        wiring = read(directory / "crawl.toml")
        plans = {
            name: msgspec.structs.replace(plan, providers={}) if name in ("traps", "aliases") else plan
            for name, plan in wiring.providers.items()
        }
        write(directory / "crawl.toml", msgspec.structs.replace(wiring, providers=plans))
        job = Crawl([], build(all_options(), {"resume": True, "output": str(directory), "max_pages": 1_000}))
        assert run(job).state == "finished"


TEXT = " ".join(
    f"Paragraph {number} of a long page about bridges, rivers and the people who cross them." for number in range(80)
)


def alike(number: int) -> str:
    """A text that differs from its like in a word."""
    return f"<html><p>{TEXT.replace('Paragraph 40', f'Paragraph {chr(97 + number)}')}</p>"


def test_a_page_is_known_by_its_likeness_after_a_kill(tmp_path: Path) -> None:
    """The likes of the first page come before and after the kill, and all of them name the first."""
    pages: dict[str, str | FakePage] = {"/": '<a href="/like/0">x</a><a href="/page/0">y</a><a href="/like/1">z</a>'}
    pages |= {f"/like/{number}": alike(number) for number in range(4)}
    for number in range(PAGES):
        link = f"/page/{number + 1}" if number < PAGES - 1 else "/like/2"
        pages[f"/page/{number}"] = FakePage(f'<a href="{link}">x</a>', latency=0.01)
    pages["/like/2"] = alike(2) + '<a href="/like/3">x</a>'
    directory = tmp_path / "c"
    options = ("-o", str(directory), "--delay", "0", "--near-duplicates", "report", "--json")
    with FakeWeb(pages) as web:
        process = start("crawl", web.url("/"), *options)
        web.wait_for(PAGES // 2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        asked = web.targets()
        process = start("crawl", "--resume", *options)
        _, err = process.communicate(timeout=HUNG_AFTER)
        assert process.returncode == 0, err
        first = web.url("/like/0")
    assert "/like/1" in asked and "/like/2" not in asked, "killed at another moment"
    with Database(directory) as tables:
        question = "SELECT url, near_duplicate_of FROM pages WHERE url LIKE '%/like/%' ORDER BY url"
        named = [(url[-1], original) for url, original in tables.ask(question)]
    assert named == [("0", None), ("1", first), ("2", first), ("3", first)]


def test_a_robots_txt_that_is_known_is_asked_for_again_with_its_validators(tmp_path: Path) -> None:
    """It is forgotten at once here, as otherwise after a day; another process has its validators."""
    asked = []

    def robots(request: FakeRequest) -> FakePage:
        asked.append((request.header("if-none-match"), request.header("if-modified-since")))
        known = request.header("if-none-match") == '"a"'
        fields = (("ETag", '"a"'), ("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT"))
        return FakePage("" if known else "User-agent: *\nDisallow: /no", status=304 if known else 200, headers=fields)

    pages = {"/": '<a href="/yes">x</a><a href="/no">x</a><a href="/more">x</a>', "/yes": "y", "/no": "n", "/more": "m"}
    settings = {"robots": {"keep": 0.001}}
    with FakeWeb({**pages, "/robots.txt": robots}) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "max_pages": 1}
        run(Crawl([web.url("/")], build(all_options(), options), settings=settings))
        before = len(asked)
        assert asked[0] == ("", "")
        run(Crawl([], build(all_options(), {**options, "resume": True, "max_pages": 9}), settings=settings))
        assert "/yes" in web.targets() and "/no" not in web.targets()
    assert set(asked[before:]) == {('"a"', "Mon, 02 Nov 2026 10:00:00 GMT")}
    with RocksLedger(LedgerSheet(directory=str(tmp_path / "c"))).looking() as ledger:
        assert ledger.counters()["outcome:robots_denied"] == 1


def test_a_task_that_waits_keeps_its_validators(tmp_path: Path) -> None:
    """Whoever sends tasks with validators, as an application does, gets 304 also where a kill or a retry came between."""
    known = Task("http://a.test/1", "a.test", etag='"a"', last_modified="yesterday")
    plain = Task("http://a.test/2", "a.test")
    later = Task("http://a.test/3", "a.test", attempt=2, etag='"b"')
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    with ledger.group() as group:
        group.push([plain, known, plain])
        group.later(later, 5.0)
    ledger.abandon()
    ledger.open()
    queues = LedgerFrontier()
    queues.ledger = ledger
    assert queues.wake(6.0) == 1
    [host] = queues.admit(0.0)
    assert queues.pop(host.host, 9) == [plain, known, plain, later]
    ledger.close()


def test_the_other_name_of_a_host_is_told_and_proved_by_two_runs_together(tmp_path: Path) -> None:
    pages = {f"/{number}": f"<p>{f'This is page {number}. ' * 60}" for number in range(NEEDED + 1)}
    links = "".join(f'<a href="http://{host}{path}">x</a>' for host in ("a.test", "www.a.test") for path in pages)
    options = {"output": str(tmp_path / "c"), "delay": 0, "scope": "any", "allow_network": ["127.0.0.0/8"]}
    with FakeWeb({**pages, "http://a.test/": links}, root="http://a.test/") as web:
        given = {**options, "resolve": [web.resolve]}
        first = run(Crawl(["http://a.test/"], build(all_options(), {**given, "max_pages": NEEDED + 3})))
        assert first.state == "limit"
        assert (story_of(tmp_path / "c", "http://a.test/0").host or {})["aliases"] == []
        run(Crawl([], build(all_options(), {**given, "resume": True, "max_pages": 99})))
    assert (story_of(tmp_path / "c", "http://a.test/0").host or {})["aliases"] == ["www.a.test"]
