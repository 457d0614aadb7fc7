"""What is counted in several places is counted alike: `status`, `--json`, the tables and the metrics of one crawl."""

import asyncio
from pathlib import Path

from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeWeb

#: A page by its header; a page by its bytes alone; a dead link; a server's error; a picture; a page that says it is a picture.
PAGES = {
    "/": "".join(f'<a href="/{name}">x</a>' for name in ("bare", "dead", "broken", "picture", "liar", "moved")),
    "/bare": FakePage(b"<!doctype html><p>no header says so", headers=(("Content-Type", ""),)),
    "/dead": FakePage(status=404),
    "/broken": FakePage(status=500),
    "/picture": FakePage(b"\x89PNG\r\n\x1a\n", headers=(("Content-Type", "image/png"),)),
    "/liar": FakePage(b"PK\x03\x04", headers=(("Content-Type", "text/html"),)),
    "/moved": FakePage(status=302, headers=(("Location", "/bare"),)),
}


def crawled(seeds: list[str], directory: Path) -> tuple[Summary, CrawlStanding, list[int], float]:
    """Crawl; returns the summary, the status at rest, pages and errors by SQL, and the metric `pages` of the commit."""
    job = Crawl(seeds, build(all_options(), {"output": str(directory), "delay": 0, "retries": 0, "linger": 0}))
    summary = asyncio.run(job.run())
    with Database(directory) as database:
        [row] = database.ask("SELECT sum(pages), sum(errors) FROM hosts")
    return summary, standing_at_rest(directory), list(map(int, row)), job.graph_at_work.metrics("commit")["pages"]


def test_status_json_tables_and_metrics_count_pages_and_errors_alike(tmp_path: Path) -> None:
    with FakeWeb(PAGES) as web:
        summary, status, by_sql, metric = crawled([web.url("/")], tmp_path / "c")
    assert summary.pages == status.pages == metric == 2
    assert status.errors == 1
    assert by_sql == [status.pages, status.errors]
    with Database(tmp_path / "c") as database:
        outcomes = dict(database.ask("SELECT outcome, count(*) FROM pages GROUP BY outcome"))
        kinds = dict(database.ask("SELECT url, media_type FROM pages WHERE status = 200"))
    assert summary.outcomes == status.outcomes == outcomes
    assert kinds[web.url("/bare")] == "text/html"
    assert kinds[web.url("/liar")] == "application/zip"


def test_a_robots_txt_that_nobody_answers_is_an_error_of_its_host_wherever_errors_are_shown(tmp_path: Path) -> None:
    with FakeWeb({}) as gone:
        nobody = gone.url("/").replace("127.0.0.1", "localhost")
    with FakeWeb({"/": "here"}) as web:
        _, status, by_sql, _ = crawled([web.url("/"), nobody], tmp_path / "c")
    assert status.errors >= 1
    assert by_sql == [1, status.errors]
