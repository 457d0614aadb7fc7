"""Whole crawls whose gates are kept by expressions and constraints: what passes each gate, and what does not."""

import json
from pathlib import Path

import pytest

from gossamer.analysis.why import story_of
from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.errors import FlowError
from gossamer.engine.sheet import build
from gossamer.frontier.termination import LAST
from gossamer.query.database import Database
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.fakeweb import FakePage, FakeWeb

SITE = {
    "/": '<a href="/a.html">a</a> <a href="/b.pdf">b</a> <a href="/deep/c.html">c</a>',
    "/a.html": '<title>A</title><a href="/from-a">x</a>',
    "/b.pdf": FakePage(b"%PDF", headers=(("Content-Type", "application/pdf"),)),
    "/deep/c.html": '<title>C</title><a href="/deep/d.html">d</a>',
    "/deep/d.html": "d",
    "/from-a": "x",
}


def crawl(folder: Path, *filters: str, **options: object) -> tuple[Summary, list[str], list[dict[str, object]]]:
    with FakeWeb(SITE) as web:
        given = {"output": str(folder / "crawl"), "delay": 0, "per_host": 4, "filter": list(filters), **options}
        summary = run(Crawl([web.url("/")], build(all_options(), given), tables=False))
        fetched = sorted(target for target in web.targets() if target != "/robots.txt")
    lines = (folder / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines()
    return summary, fetched, [row for row in map(json.loads, lines) if row["event"] == "page"]


def test_links_that_the_expression_does_not_hold_for_are_not_followed_and_are_counted(tmp_path: Path) -> None:
    summary, fetched, rows = crawl(tmp_path, "not extension(pdf) and not path(/deep/d*)", "not path(/from-*)")
    assert summary.state == "finished"
    assert fetched == ["/", "/a.html", "/deep/c.html"]
    rejected = [row["rejected"] for row in rows if row.get("rejected")]
    assert sorted(map(str, rejected)) == sorted(
        map(str, [{f"filter: not {part}": 1} for part in ("extension(pdf)", "path(/deep/d*)", "path(/from-*)")])
    )


def test_a_document_that_may_not_be_parsed_leads_nowhere(tmp_path: Path) -> None:
    _, fetched, _ = crawl(tmp_path, "parse: not path(/deep/*)")
    assert fetched == ["/", "/a.html", "/b.pdf", "/deep/c.html", "/from-a"]


def test_a_document_that_may_not_be_expanded_is_parsed_and_leads_nowhere(tmp_path: Path) -> None:
    _, fetched, rows = crawl(tmp_path, "expand: not title matches ^A")
    assert fetched == ["/", "/a.html", "/b.pdf", "/deep/c.html", "/deep/d.html"]
    assert "A" in {row.get("title") for row in rows}


def test_a_document_that_may_not_be_stored_has_no_body_in_the_archive(tmp_path: Path) -> None:
    _, fetched, _rows = crawl(tmp_path, "store: mime(text/html)")
    assert "/b.pdf" in fetched
    archived = b"".join(path.read_bytes() for path in (tmp_path / "crawl" / "warc").glob("*"))
    import gzip

    text = gzip.decompress(archived)
    assert b"%PDF" not in text
    assert b"filter: mime(text/html)" in text
    assert b"<title>C</title>" in text


def test_a_body_that_a_rule_kept_out_of_the_archive_is_told_by_table_story_and_cat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeWeb(SITE) as web:
        given = {"output": str(tmp_path / "crawl"), "delay": 0, "filter": ["store: mime(text/html)"]}
        assert run(Crawl([web.url("/")], build(CrawlOptions, given))).state == "finished"
    crawled = str(tmp_path / "crawl")
    for name in ("/b.pdf", "/a.html"):
        rule = "filter: mime(text/html)" if name == "/b.pdf" else ""
        capsys.readouterr()
        assert main(["query", crawled, f"SELECT kept_out FROM pages WHERE url = '{web.url(name)}'", "-f", "jsonl"]) == 0
        assert json.loads(capsys.readouterr().out)["kept_out"] == (rule or None)
        assert main(["why", crawled, web.url(name)]) == 0
        assert (f"kept out of the archive: {rule}" in capsys.readouterr().out) is bool(rule)
        assert main(["cat", crawled, web.url(name)]) == (2 if rule else 0)
        assert (f"its body was kept out of the archive: {rule}" in capsys.readouterr().err) is bool(rule)
        assert main(["cat", crawled, web.url(name), "--headers"]) == 0


def test_no_page_that_is_kept_refers_to_one_whose_body_a_rule_kept_out(tmp_path: Path) -> None:
    twin = "<title>Twin</title><p>The same words on each of them."
    links = "".join(f'<a href="/{name}">x</a>' for name in ("out-1", "out-2", "in-1", "in-2"))
    crawled = tmp_path / "crawl"
    with FakeWeb({"/": links, **dict.fromkeys(("/out-1", "/out-2", "/in-1", "/in-2"), twin)}) as web:
        given = {"output": str(crawled), "delay": 0, "filter": ["store: not path(/out-*)"], "per_host": 1}
        assert run(Crawl([web.url("/")], build(CrawlOptions, given))).state == "finished"
        urls = [web.url(path) for path in ("/out-1", "/out-2", "/in-1", "/in-2")]
    assert [main(["cat", str(crawled), url]) for url in urls] == [2, 2, 0, 0]
    with Database(crawled) as database:
        found = {str(url): original for url, original in database.ask("SELECT url, duplicate_of FROM pages")}
    assert [found[url] for url in urls] == [None, urls[0], None, urls[2]]
    assert main(["verify", str(crawled), "--deep"]) == 0
    assert main(["export", str(crawled), "--to", "folder", "-o", str(tmp_path / "folder")]) == 0
    assert not [path.name for path in (tmp_path / "folder").rglob("out-*")]
    assert main(["reprocess", str(crawled)]) == 0
    with Database(crawled) as database:
        assert list(database.ask("SELECT count(*) FROM pages WHERE title = 'Twin'")) == [(4,)], "rows stay"


def test_constraints_hold_hosts_in_and_out_and_never_wins(tmp_path: Path) -> None:
    _, fetched, _ = crawl(tmp_path / "in", only=["1.0.0.127"])
    assert fetched == sorted(SITE)
    _, fetched, rows = crawl(tmp_path / "out", only=["1.0.0.127"], never=["1.0.0.127"])
    assert fetched == []
    assert [(row["outcome"], row["error"]) for row in rows] == [("blocked", "never")], "seeds are judged, too"


def test_a_crawl_does_not_begin_with_a_filter_that_means_nothing(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="mime' is not known at gate 'fetch'"):
        crawl(tmp_path, "fetch: mime(text/html)")


def test_a_page_under_thousands_of_spellings_is_fetched_once(tmp_path: Path) -> None:
    spellings = (
        f"/%7{'eE'[n % 2]}x/./l%69st{';jsessionid=' + hex(n) if n % 3 else ''}?a=1&utm_source={n}&b=2#{n}"
        for n in range(5_000)
    )
    pages = {
        "/": "".join(f'<a href="{one}">x</a>' for one in spellings),
        "/~x/list?a=1&b=2": "the page",
    }
    with FakeWeb(pages) as web:
        options = build(all_options(), {"output": str(tmp_path / "crawl"), "delay": 0})
        assert run(Crawl([web.url("/")], options, tables=False)).pages == 2
        assert [target for target in web.targets() if target != "/robots.txt"] == ["/", "/~x/list?a=1&b=2"]


@pytest.mark.parametrize("gate", ["follow", "schedule", "fetch"])
def test_what_a_gate_refused_is_told_by_its_name(tmp_path: Path, gate: str) -> None:
    with FakeWeb({"/": '<a href="/x">x</a>', "/x": "x"}) as web:
        options = build(
            CrawlOptions, {"output": str(tmp_path / "crawl"), "delay": 0, "filter": [f"{gate}: not path(/x)"]}
        )
        run(Crawl([web.url("/")], options, tables=False))
        story = story_of(tmp_path / "crawl", web.url("/x"))
    assert [one.gate for one in story.filters if one.verdict] == [gate]


def test_a_trap_is_set_aside_and_can_be_asked_about(tmp_path: Path) -> None:
    def month(target: str) -> FakePage:
        year, number = map(int, target.removesuffix(".html").split("/")[2:])
        later = f"{year + number // 12}/{number % 12 + 1:02}"
        return FakePage(
            f'<h1>Events</h1><a href="/events/{later}.html">next</a><a href="/events/{year + 1}/{number:02}.html">year</a>'
        )

    pages = {"/": '<a href="/events/2026/01.html">events</a><a href="/a">a</a>', "/a": "a"}
    with FakeWeb(pages) as web:
        for year in range(2026, 2126):
            for number in range(1, 13):
                target = f"/events/{year}/{number:02}.html"
                web.pages[target] = month(target)
        options = build(all_options(), {"output": str(tmp_path / "crawl"), "delay": 0, "per_host": 4})
        summary = run(Crawl([web.url("/")], options, tables=False))
        trapped = [target for target in web.targets() if target.startswith("/events/")]
        assert summary.state == "finished"
        assert 32 <= len(trapped) <= 50 + 2 * LAST
        assert summary.set_aside > 0
        assert "/a" in web.targets()
        with RocksLedger(LedgerSheet(directory=str(tmp_path / "crawl"))).looking() as ledger:
            aside = [task.url for row in ledger.aside() for task in ledger.aside_tasks(row.family)]
        story, elsewhere = (story_of(tmp_path / "crawl", url) for url in (aside[0], web.url("/nowhere")))
    assert len(aside) == summary.set_aside
    assert story.state == "set_aside"
    assert "looks like a trap (trap:calendar: " in story.told and "--release" in story.told
    assert (elsewhere.state, elsewhere.told) == (
        "unknown",
        "it was not found: no page that was processed so far links to it; its host has likely traps (trap:calendar)",
    )


def test_a_body_of_a_type_that_is_not_wanted_is_refused_when_its_head_is_known(tmp_path: Path) -> None:
    """The server would send 40 MB; it is let go of after its head, and what was refused is told with its bytes."""
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 40000000\r\n\r\n" + bytes(1000)
    page = b"<title>Unnamed</title><a href='/found'>x</a>"
    site = {
        "/": "".join(f'<a href="{target}">x</a>' for target in ("/film", "/moved", "/unnamed", "/a.html")),
        "/film": FakePage(raw=endless, stay=True),
        "/moved": FakePage(b"x" * 100, status=302, type="image/png", headers=(("Location", "/a.html"),)),
        "/unnamed": FakePage(page, type="application/octet-stream"),
        "/a.html": "<title>A</title>",
        "/found": "<title>Found</title>",
    }
    with FakeWeb(site) as web:
        options = {"output": str(tmp_path / "crawl"), "delay": 0, "filter": ["body: mime(text/*)"]}
        job = Crawl([web.url("/")], build(all_options(), options), tables=False)
        summary = run(job)
        assert sorted(web.targets()) == sorted(site)
    assert (summary.state, summary.pages) == ("finished", 4)
    lines = (tmp_path / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines()
    rows = {row["url"].rpartition("/")[2]: row for row in map(json.loads, lines) if row["event"] == "page"}
    film = rows["film"]
    assert (film["outcome"], film["status"], film["bytes"]) == ("truncated", 200, 0)
    assert film["error"] == "filter: mime(text/*): 40000000 bytes not fetched"
    assert rows["moved"]["outcome"] == "redirect"
    assert rows["unnamed"]["title"] == "Unnamed", "a type that says nothing is no reason to refuse"


def test_the_gate_of_bodies_keeps_everything_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/x">x</a>', "/x": FakePage(b"x" * 10, type="application/x-unheard-of")}) as web:
        run(Crawl([web.url("/")], build(all_options(), {"output": str(tmp_path / "crawl"), "delay": 0}), tables=False))
    rows = map(json.loads, (tmp_path / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines())
    assert [row["bytes"] for row in rows if row["url"].endswith("/x")] == [10]
