"""A crawl of a single-page application with `--render`: every route is a page, fetched politely, archived, and resumable."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from tests.commands import gave
from warcio.archiveiterator import ArchiveIterator

from gossamer import Action, Page, Request, Spider
from gossamer.browser.chromium import PROGRAMS
from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.documents.document import MAX_HERE
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from tools.killing import programs
from tools.killing.programs import SCRIPT, SHELL, Shop

pytestmark = pytest.mark.skipif(not any(map(shutil.which, PROGRAMS)), reason="there is no Chromium on this machine")


def crawled(shop: Shop, directory: Path, **options: object) -> object:
    given = {"output": str(directory), "delay": 0, "min_free_disk": 0, "render": "auto", **options}
    return run(Crawl([shop.url("/item/0")], build(all_options(), given)))


def rows(directory: Path, question: str) -> list[tuple[object, ...]]:
    with Database(directory) as database:
        return list(database.ask(question))


@pytest.mark.parametrize(("routes", "delay"), [(60, 0.0), pytest.param(200, 0.1, marks=pytest.mark.long)])
def test_each_route_of_an_application_is_a_page_and_the_script_is_fetched_once(
    routes: int, delay: float, tmp_path: Path
) -> None:
    directory = tmp_path / "c"
    with Shop(routes) as shop:
        summary = crawled(shop, directory, near_duplicates="report", delay=delay)
        moments = sorted(moment for moment, _ in shop.times)
        asked = Counter(target for _, target in shop.times)
    assert (summary.pages, summary.needs_browser, summary.set_aside) == (routes, 0, 0)  # type: ignore[attr-defined]
    assert asked == {"/robots.txt": 1, "/app.js": 1} | {
        f"/{kind}/{n}": 1 for n in range(routes) for kind in ("item", "api")
    }
    # The server may write a request down late on a busy machine, so two of them may seem nearer than they were.
    assert min(after - before for before, after in pairwise(moments)) >= 0.8 * delay
    assert moments[-1] - moments[0] >= (len(moments) - 1.5) * delay
    assert rows(
        directory, "SELECT count(*), count(duplicate_of), count(DISTINCT title) FROM pages WHERE render = 'done'"
    ) == [(routes, 0, routes)]
    assert rows(directory, "SELECT count(*) FROM pages WHERE answer_of IS NOT NULL") == [(routes - 1,)]
    assert main(["verify", str(directory), "--deep"]) == 0


def test_what_a_browser_made_stands_beside_the_answer_and_is_no_capture_of_the_page(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with Shop(5) as shop:
        crawled(shop, directory, screenshot=True, render_places=1)
        url = shop.url("/item/3")
    kinds = Counter[str]()
    for path in directory.glob("warc/*.warc.gz"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                target = record.rec_headers.get_header("WARC-Target-URI") or ""
                if target.endswith(url):
                    kinds[f"{record.rec_type} {target.removesuffix(url)}".strip()] += 1
    assert kinds == {"request": 1, "metadata": 1, "resource urn:view:": 1, "resource urn:dom:": 1, "revisit": 1}
    index = (directory / "index.cdxj").read_text()
    assert index.count("/item/3") == 2  # in the key and in the line of one capture
    (directory / "index.cdxj").unlink()
    assert main(["cat", str(directory), url, "--rendered"]) == 0
    made = [line for line in (directory / "index.cdxj").read_text().splitlines() if "robots.txt" not in line]
    assert made == [line for line in index.splitlines() if "robots.txt" not in line]
    assert main(["delete", str(directory), url]) == 0
    assert b"word3x7" not in b"".join(path.read_bytes() for path in directory.rglob("*") if path.suffix == ".jsonl")
    assert main(["verify", str(directory), "--deep"]) == 0


def test_search_and_markdown_read_the_rendered_page(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    directory = tmp_path / "c"
    with Shop(3) as shop:
        crawled(shop, directory)
        url = shop.url("/item/2")
    capsysbinary.readouterr()
    assert main(["cat", str(directory), url, "--markdown"]) == 0
    assert b"word2x7" in capsysbinary.readouterr().out
    assert main(["cat", str(directory), url]) == 0
    assert capsysbinary.readouterr().out.decode() == SHELL
    assert main(["index", str(directory)]) == 0
    capsysbinary.readouterr()
    assert main(["search", str(directory), "word2x7"]) == 0
    assert url.encode() in capsysbinary.readouterr().out


@pytest.mark.slow
def test_a_large_page_is_read_apart_as_the_browser_showed_it(tmp_path: Path) -> None:
    script = (
        f"document.title = 'whole'; document.body.innerHTML = '<a href=/last>x</a>' + '<b>x</b>'.repeat({MAX_HERE})"
    )
    pages = {"/item/0": f"<title>shell</title><body><script>{script}</script>", "/last": "<title>last</title>"}
    with FakeWeb(pages) as web:
        seed = web.url("/item/0")
        run(Crawl([seed], build(all_options(), {"output": str(tmp_path / "c"), "delay": 0, "render": "always"})))
    assert rows(tmp_path / "c", "SELECT title FROM pages ORDER BY depth") == [("whole",), ("last",)]


def test_processors_read_the_rendered_page_again_without_a_browser(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with Shop(4) as shop:
        crawled(shop, directory)
    questions = ("SELECT * FROM pages", "SELECT * FROM links")
    before = [sorted(map(str, rows(directory, one))) for one in questions]
    assert main(["reprocess", str(directory)]) == 0
    assert [sorted(map(str, rows(directory, one))) for one in questions] == before


def test_pages_are_rendered_again_from_the_archive_alone_and_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "c"
    with Shop(4) as shop:
        crawled(shop, directory)
        asked = len(shop.requests)
        questions = ("SELECT * EXCLUDE (render_seconds) FROM pages", "SELECT * FROM links")
        before = [sorted(map(str, rows(directory, one))) for one in questions]
        capsys.readouterr()
        assert main(["reprocess", str(directory), "--render"]) == 0
        assert "rendered 4 pages, 4 of them as the archive has them" in capsys.readouterr().out
        assert len(shop.requests) == asked
    assert [sorted(map(str, rows(directory, one))) for one in questions] == before


def test_parts_of_a_page_that_its_rendering_has_fetched_are_not_fetched_again(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with Shop(3) as shop:
        crawled(shop, directory, page_requisites=True)
        assert Counter(target for _, target in shop.times)["/app.js"] == 1
    found = rows(directory, "SELECT url, gained_links FROM pages WHERE render = 'done'")
    assert [gained for _, gained in found] == [2, 2, 2]


def test_pages_that_no_browser_has_shown_are_rendered_from_the_archive_as_far_as_it_has_their_scripts(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "c"
    with Shop(3) as shop:
        script = "fetch('/x'); onload = () => { document.body.innerHTML = '<a href=/item/9>nine</a>' }"
        shop.pages["/app.js"] = FakePage(script, type="text/javascript")
        crawled(shop, directory, render="never", page_requisites=True)
        asked = len(shop.requests)
        question = "SELECT render, needs_browser FROM pages WHERE url LIKE '%/item/0'"
        assert rows(directory, question) == [(None, True)]
        assert main(["reprocess", str(directory), "--render"]) == 0
        assert len(shop.requests) == asked
    question = "SELECT render, wants, needs_browser FROM pages WHERE url LIKE '%/item/0'"
    assert rows(directory, question) == [("done", '{"asked":2,"refused:not_archived":1}', False)]
    assert rows(directory, "SELECT count(*) FROM links WHERE target LIKE '%/item/9'") != [(0,)]


def test_requests_of_pages_wait_for_the_delay_of_their_host_and_the_page_does_not_see_it(tmp_path: Path) -> None:
    with Shop(3) as shop:
        summary = crawled(shop, tmp_path / "c", delay=0.4)
        moments = sorted(moment for moment, _ in shop.times)
    assert summary.pages == 3  # type: ignore[attr-defined]
    assert min(after - before for before, after in pairwise(moments)) > 0.35
    assert rows(tmp_path / "c", "SELECT count(*) FROM pages WHERE render = 'done'") == [(3,)]


def test_a_page_whose_script_is_denied_is_rendered_as_far_as_it_goes_and_says_so(tmp_path: Path) -> None:
    with Shop(3, robots="User-agent: *\nDisallow: /app.js\n") as shop:
        summary = crawled(shop, tmp_path / "c")
        assert not [target for _, target in shop.times if target == "/app.js"]
    [(how, wants)] = rows(tmp_path / "c", "SELECT render, wants FROM pages WHERE render IS NOT NULL")
    assert (how, wants) == ("done", '{"asked":1,"refused:robots_denied":1}')
    assert summary.needs_browser == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("sent", [False, True])
def test_a_page_may_post_to_its_own_host_by_choice(tmp_path: Path, sent: bool) -> None:
    script = SCRIPT.replace("fetch('/api/' + route)", "fetch('/api/' + route, {method: 'POST', body: 'x'})")
    with Shop(2) as shop:
        shop.pages["/app.js"] = FakePage(script, type="text/javascript")
        crawled(shop, tmp_path / "c", render_post=sent)
        methods = {request.method for request in shop.requests if request.target.startswith("/api/")}
    assert methods == ({"POST"} if sent else set())


def test_with_every_slot_taken_by_pages_that_wait_their_requests_still_go_out(tmp_path: Path) -> None:
    with Shop(40, latency=0.05) as shop:
        summary = crawled(shop, tmp_path / "c", concurrency=2, per_host=4, max_pages=12)
    assert summary.pages == 12  # type: ignore[attr-defined]
    assert rows(tmp_path / "c", "SELECT count(*) FROM pages WHERE render = 'done'") == [(12,)]


@pytest.mark.long
def test_pages_that_reach_a_limit_leave_no_requests_behind_and_the_crawl_goes_on(tmp_path: Path) -> None:
    # It asks for too much once its links are there: at a limit a page is read as it is.
    greedy = "setTimeout(() => { for (let one = 0; one < 600; one++) fetch('/left/' + route + '/' + one).catch(() => 0) }, 0);"
    with Shop(6) as shop:
        script = SCRIPT.replace("document.title =", f"{greedy} document.title =")
        shop.pages["/app.js"] = FakePage(script, type="text/javascript")
        summary = crawled(shop, tmp_path / "c", delay=0.05)
        left = [target for _, target in shop.times if target.startswith("/left/")]
    assert (summary.pages, summary.queued) == (6, 0)  # type: ignore[attr-defined]
    assert rows(tmp_path / "c", "SELECT count(*) FROM pages WHERE render = 'limited'") == [(6,)]
    assert len(left) < 6 * 498 // 2


def test_a_request_of_a_page_that_fails_for_a_moment_is_sent_again_and_the_page_is_whole(tmp_path: Path) -> None:
    class Busy(Shop):
        def note(self, request: FakeRequest) -> None:
            super().note(request)
            if request.target == "/app.js":
                script = FakePage(SCRIPT, type="text/javascript")
                self.pages["/app.js"] = script if len(self.times) > 3 else FakePage("busy", status=503)

    with Busy(3) as shop:
        summary = crawled(shop, tmp_path / "c")
        asked = Counter(target for _, target in shop.times)
    assert (summary.pages, asked["/app.js"]) == (3, 2)  # type: ignore[attr-defined]


def test_a_page_does_not_wait_for_an_hour_because_a_host_has_asked_for_a_pause(tmp_path: Path) -> None:
    asking = "for (const one of ['pause', 1, 2]) fetch('/api/' + one).catch(() => 0); document.body.append('shown')"
    with Shop(3) as shop:
        shop.pages["/app.js"] = FakePage(asking, type="text/javascript")
        shop.pages["/api/pause"] = FakePage("later", status=429, headers=(("Retry-After", "3600"),))
        summary = crawled(shop, tmp_path / "c")
    assert (summary.pages, summary.queued) == (1, 0)  # type: ignore[attr-defined]
    [(how, wants)] = rows(tmp_path / "c", "SELECT render, wants FROM pages WHERE render IS NOT NULL")
    assert (how, wants) == ("done", '{"asked":4,"refused:blocked":2}')


def test_documents_are_not_rendered_and_no_browser_is_started(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 6) as web:
        given = {
            "output": str(tmp_path / "c"),
            "delay": 0,
            "min_free_disk": 0,
            "render": "auto",
            "browser": sys.executable,
        }
        summary = run(Crawl([web.url("/")], build(all_options(), given)))
        assert summary.pages == len(web.expected)
    assert rows(tmp_path / "c", "SELECT count(*) FROM pages WHERE render IS NOT NULL") == [(0,)]


@pytest.mark.parametrize("script", ["exit 1", "cat /dev/zero >&4"])
def test_a_browser_that_does_not_start_is_found_before_anything_is_fetched(script: str, tmp_path: Path) -> None:
    program = tmp_path / "browser"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o011)  # a browser of root's is another user
    with Shop(1) as shop:
        seed = shop.url("/item/0")
        words = ("crawl", seed, "-o", str(tmp_path / "c"), "--render", "always", "--browser", str(program))
        status, _, said = gave(*words)
        assert (status, shop.times) == (2, [])
    assert f"the browser {program} does not start" in said and said.count("\n") == 1


def test_without_a_browser_always_is_refused_and_auto_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Shop(2) as shop:
        common = ["crawl", shop.url("/item/0"), "--delay", "0", "--browser", "/nowhere/chromium"]
        assert main([*common, "-o", str(tmp_path / "a"), "--render", "always"]) == 2
        assert "/nowhere/chromium" in capsys.readouterr().err
        assert not shop.times
        assert main([*common, "-o", str(tmp_path / "b"), "--render", "auto"]) == 0
    assert rows(tmp_path / "b", "SELECT render FROM pages WHERE render IS NOT NULL") == [("no_browser",)]


def start(directory: Path, seed: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-P", "-m", "gossamer", "crawl", seed, "-o", str(directory), "--delay", "0"]
    resume = ["--resume"] if (directory / "crawl.toml").exists() else []
    return subprocess.Popen(
        [*command, "--render", "auto", "--quiet", *resume], stderr=subprocess.PIPE, start_new_session=True
    )


@pytest.mark.long
@pytest.mark.parametrize("kills", [3, 60])
def test_kills_of_agent_and_browser_lose_no_page_and_double_none(kills: int, tmp_path: Path) -> None:
    told = programs.render(tmp_path, print, kills=kills, seed=5)
    assert told.wrong == []
    assert told.figures["kills"] == kills


def test_a_crawl_that_is_stopped_renders_its_pages_again_in_the_next_run_and_fetches_no_script_twice(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "c"
    with Shop(30, latency=0.2) as shop:
        child = start(directory, shop.url("/item/0"))
        shop.wait_for(12)
        os.kill(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=HUNG_AFTER)
        assert child.returncode in (0, 3), said.decode()
        done = start(directory, shop.url("/item/0"))
        _, said = done.communicate(timeout=HUNG_AFTER)
        assert done.returncode == 0, said.decode()
    found = rows(directory, "SELECT count(*), count(DISTINCT url) FROM pages WHERE render = 'done'")
    assert found == [(30, 30)]
    assert Counter(target for _, target in shop.times)["/app.js"] == 1


LIST = """<!doctype html><title>List</title><body style="height: 3000px"><div id=cookie-notice><button>Accept all</button></div>
<ul></ul><button id=load>Load more</button><input name=word><p id=said></p><script src=/list.js></script>"""
LISTING = """
let page = 0;
const list = document.querySelector('ul');
document.querySelector('#cookie-notice button').onclick = () => document.querySelector('#cookie-notice').remove();
document.querySelector('#load').onclick = () => {
  fetch('/more/' + page++).then(answer => answer.json()).then(numbers => {
    for (const number of numbers) { list.insertAdjacentHTML('beforeend', `<li><a href="/p/${number}">${number}</a>`); }
    if (page === 3) { document.querySelector('#load').remove(); }
  });
};
document.querySelector('input').addEventListener('input', event => {
  document.querySelector('#said').textContent = 'typed ' + event.target.value;
});
addEventListener('scroll', () => { if (page < 9) { document.body.style.height = 3000 + 1000 * ++page + 'px'; } });
setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<b id=late>late</b>'), 15000);
"""


def listing(request: FakeRequest) -> FakePage:
    if request.target.startswith("/more/"):
        number = 10 * int(request.target.rpartition("/")[2])
        return FakePage(str([*range(number, number + 3)]), type="application/json")
    return FakePage("<p>words")


def test_actions_of_a_request_are_done_in_their_order_and_again_in_a_run_over_the_archive(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    with FakeWeb(
        {"/": FakePage(LIST), "/list.js": FakePage(LISTING, type="text/javascript")}, otherwise=listing
    ) as web:
        spider = Spider(Request(web.url("/"), label="list", actions=[
            Action.cookies(), Action.more(), Action.fill("input", "wörd"), Action.wait("#late"), Action.click("#not-there"),
        ]), delay=0, min_free_disk=0)  # fmt: skip

        @spider.page("list", render=True)
        def read(page: Page) -> dict[str, object]:
            return {
                "said": page.text("#said"),
                "late": page.text("#late"),
                "links": page.texts("li"),
                "notice": page.text("button"),
            }

        spider.run(output=str(directory))
        asked = len(web.requests)
        [(data,)] = rows(directory, "SELECT data FROM items")
        found = json.loads(str(data))
        assert found == {
            "said": "typed wörd",
            "late": "late",
            "links": [str(10 * a + b) for a in range(3) for b in range(3)],
            "notice": "",
        }
        [(how, wants)] = rows(directory, "SELECT render, wants FROM pages WHERE label = 'list'")
        counts = json.loads(str(wants))
        assert (how, counts["did:more"], counts["failed:click"]) == ("done", 3, 1)
        done = spider.reprocess(str(directory), render=True)
        assert (done.rendered, done.rendered_alike, len(web.requests)) == (1, 1, asked)


def test_rules_say_which_pages_are_rendered(tmp_path: Path) -> None:
    with Shop(3) as shop:
        shop.pages["/plain"] = FakePage("<p>words <a href=/item/0>first</a>")
        rule = ["never: path(/item/1)", "always: path(/plain)"]
        given = {"output": str(tmp_path / "c"), "delay": 0, "min_free_disk": 0, "render": "auto", "render_rule": rule}
        run(Crawl([shop.url("/plain")], build(all_options(), given)))
    question = "SELECT url, render FROM pages WHERE render IS NOT NULL OR relation = 'a href'"
    found = {
        str(url).partition("/")[2].partition("/")[2].partition("/")[2]: how
        for url, how in rows(tmp_path / "c", question)
    }
    assert found == {"plain": "done", "item/0": "done", "item/1": None, "item/2": "done"}


def test_pages_are_scrolled_to_their_end_by_choice(tmp_path: Path) -> None:
    with FakeWeb(
        {"/": FakePage(LIST), "/list.js": FakePage(LISTING, type="text/javascript")}, otherwise=listing
    ) as web:
        given = {
            "output": str(tmp_path / "c"),
            "delay": 0,
            "min_free_disk": 0,
            "render": "always",
            "render_actions": ["scroll"],
            "depth": 0,
        }
        run(Crawl([web.url("/")], build(all_options(), given)))
    [(wants,)] = rows(tmp_path / "c", "SELECT wants FROM pages WHERE render = 'done'")
    assert json.loads(str(wants))["did:scroll"] > 3
