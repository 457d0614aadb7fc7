"""A single-page application: every route has the same shell, and nothing can be read without a browser. The crawl says so."""

from pathlib import Path

import pytest

from gossamer.analysis.why import story_of
from gossamer.cli.main import main
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.problems import problems_of
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakeRequest, FakeWeb

ROUTES = 40

SHELL = (
    "<!doctype html><title>{}</title><script type=module src=/assets/index.js></script>"
    "<body><noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>"
)


@pytest.mark.parametrize("has_title", [False, True], ids=["one shell", "own titles"])
def test_pages_of_one_shell_are_told_and_are_no_traps_and_no_near_duplicates(tmp_path: Path, has_title: bool) -> None:
    def route(request: FakeRequest) -> str:
        return SHELL.format(f"Route {request.target}" if has_title else "Shop")

    with FakeWeb({}, otherwise=route) as web:
        seeds = [web.url(f"/shop/{number:x}{'ab' * number}") for number in range(ROUTES)]
        given = {"output": str(tmp_path / "c"), "delay": 0, "min_free_disk": 0, "near_duplicates": "report"}
        summary = run(Crawl(seeds, build(CrawlOptions, given)))
    assert (summary.pages, summary.needs_browser, summary.set_aside) == (ROUTES, ROUTES, 0)
    told = problems_of(standing_at_rest(tmp_path / "c"))
    assert [(one.what, one.evidence) for one in told] == [
        ("needs_browser", f"{ROUTES} of {ROUTES} pages hold scripts, few words and hardly a link")
    ]
    log = (tmp_path / "c" / "logs" / "crawl.jsonl").read_text()
    assert log.count('"needs_browser":true') == ROUTES and "near_duplicate_of" not in log
    with Database(tmp_path / "c") as database:
        assert list(database.ask("SELECT count(*), count(duplicate_of) FROM pages")) == [(ROUTES, 0)]
    told = story_of(tmp_path / "c", seeds[-1]).told
    assert ("byte for byte: the shell of pages that need a browser" in told) is not has_title
    assert main(["cat", str(tmp_path / "c"), seeds[-1]]) == 0 and main(["verify", str(tmp_path / "c"), "--deep"]) == 0


def test_the_last_lines_of_a_crawl_say_that_pages_seem_to_need_a_browser(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeWeb({}, otherwise=lambda request: SHELL.format("Shop")) as web:
        main(["crawl", web.url("/"), "-o", str(tmp_path / "c"), "--delay", "0"])
    assert "1 of 1 pages seem to need a browser" in capsys.readouterr().out
