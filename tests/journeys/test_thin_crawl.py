"""Whole crawls of a small web on loopback, in this process: the page set, what is left on disk, what every arrow counted."""

import json
from collections import Counter
from pathlib import Path

import pytest

from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.engine.wiring import parse, to_toml
from gossamer.testing.fakeweb import FakePage, FakeWeb


def crawl(web: FakeWeb, folder: Path, **options: object) -> tuple[Summary, Crawl]:
    """Crawl a fake web from its root into a folder."""
    job = Crawl(
        [web.url(web.root)],
        build(all_options(), {"delay": 0, "output": str(folder / "crawl"), "per_host": 4, **options}),
        tables=False,
    )
    return run(job), job


def rows(folder: Path) -> list[dict[str, object]]:
    """The crawl's log, row by row."""
    lines = (folder / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["event"] == "page"]


def test_a_crawl_fetches_every_reachable_page_once(tmp_path: Path) -> None:
    with FakeWeb.tree(4, 3) as web:
        summary, _ = crawl(web, tmp_path)
        assert summary.state == "finished"
        assert summary.pages == len(web.expected) == 121
        assert Counter(map(web.url, web.targets())) == Counter(web.expected)


def test_every_arrow_counts_the_items_of_the_crawl(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 4) as web:
        summary, job = crawl(web, tmp_path)
    passed = {name: figures.passed for name, figures in job.connector_statistics.items()}
    assert passed.pop("seeds") == 1
    assert set(passed.values()) == {summary.fetched + len(web.errands)}
    assert set(passed) == set(shipped("default").connectors) - {"seeds"}
    assert all(figures.waiting == 0 for figures in job.connector_statistics.values())


def test_depth_counts_links_from_the_seed_and_a_redirect_costs_none(tmp_path: Path) -> None:
    pages = {
        "/": '<a href="/moved">x</a>',
        "/moved": FakePage(status=302, headers=(("Location", "/one"),)),
        "/one": '<a href="/two">x</a>',
        "/two": '<a href="/three">x</a>',
        "/three": "end",
    }
    with FakeWeb(pages) as web:
        summary, _ = crawl(web, tmp_path, depth=2)
        assert web.targets() == ["/", "/moved", "/one", "/two"]
    assert summary.outcomes == {"ok": 3, "redirect": 1}


def test_max_pages_is_never_exceeded(tmp_path: Path) -> None:
    with FakeWeb.tree(4, 4) as web:
        summary, _ = crawl(web, tmp_path, max_pages=17, per_host=8)
        assert (summary.state, summary.exit_code) == ("limit", 0)
        assert summary.pages == len(web.requests) == 17


def test_only_links_in_scope_are_followed(tmp_path: Path) -> None:
    pages = {
        "http://a.test/docs/": '<a href="/docs/in">x</a><a href="/out">y</a><a href="http://b.test/">z</a>',
        "http://a.test/docs/in": "in",
        "http://a.test/out": "out",
        "http://b.test/": "elsewhere",
    }
    for scope, asked in (("prefix", 2), ("host", 3), ("any", 4), ("page", 1)):
        with FakeWeb(pages) as web:
            given = {"delay": 0, "scope": scope, "resolve": [web.resolve], "allow_network": ["127.0.0.0/8"]}
            summary = run(
                Crawl(
                    ["http://a.test/docs/"],
                    build(all_options(), {"delay": 0, "output": str(tmp_path / scope), **given}),
                    tables=False,
                )
            )
            assert summary.pages == len(web.requests) == asked, scope


def test_a_duplicate_is_a_revisit_and_its_links_are_followed(tmp_path: Path) -> None:
    same = '<a href="child">same bytes, two places</a>'
    pages = {"/": '<a href="/a/">a</a><a href="/b/">b</a>', "/a/": same, "/b/": same, "/a/child": "1", "/b/child": "2"}
    with FakeWeb(pages) as web:
        summary, _ = crawl(web, tmp_path)
        assert sorted(web.targets()) == sorted(pages)
    assert (summary.pages, summary.unique_documents) == (5, 4)
    assert sum(1 for row in rows(tmp_path) if row.get("duplicate_of")) == 1


def test_archive_and_log_agree_record_by_record(tmp_path: Path) -> None:
    warcio = pytest.importorskip("warcio.archiveiterator")
    with FakeWeb.tree(3, 3) as web:
        summary, _ = crawl(web, tmp_path)
    archived = {}
    for file in (tmp_path / "crawl" / "warc").glob("*.warc.gz"):
        with file.open("rb") as stream:
            records = warcio.ArchiveIterator(stream, check_digests="raise")
            for record in records:
                body = record.content_stream().read()
                if record.rec_type == "response":
                    where = (f"warc/{file.name}", records.get_record_offset(), records.get_record_length())
                    archived[record.rec_headers.get_header("WARC-Target-URI")] = (where, len(body))
    logged = {
        row["url"]: ((row["warc_file"], row["warc_offset"], row["warc_length"]), row["bytes"]) for row in rows(tmp_path)
    }
    assert archived.pop(web.url("/robots.txt"))
    assert archived == logged
    assert len(logged) == summary.pages


def test_the_printed_wiring_repeats_the_crawl(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 3) as web:
        first, job = crawl(web, tmp_path, depth=2)
        again = parse(to_toml(job.wiring))
        second = run(
            Crawl([], build(all_options(), {"delay": 0, "output": str(tmp_path / "again")}), wiring=again, tables=False)
        )
    assert (second.pages, second.outcomes, second.bytes) == (first.pages, first.outcomes, first.bytes)


def test_dead_links_leave_a_crawl_finished_and_broken_servers_incomplete(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/gone">x</a>', "/gone": FakePage(status=404)}) as web:
        summary, _ = crawl(web, tmp_path / "dead")
        assert (summary.state, summary.outcomes) == ("finished", {"ok": 1, "client_error": 1})
    with FakeWeb({"/": '<a href="/broken">x</a>', "/broken": FakePage(status=500)}) as web:
        summary, _ = crawl(web, tmp_path / "broken", retries=0)
        assert (summary.state, summary.exit_code) == ("incomplete", 4)


def test_a_seed_that_nobody_answers_leaves_no_directory(tmp_path: Path) -> None:
    with FakeWeb({}) as web:
        seed = web.url("/")
    summary = run(Crawl([seed], build(all_options(), {"delay": 0, "output": str(tmp_path / "crawl")}), tables=False))
    assert (summary.exit_code, summary.outcomes) == (4, {"connect_failed": 1})
    assert not (tmp_path / "crawl").exists()


def test_a_link_opens_no_loopback_address_that_no_seed_named(tmp_path: Path) -> None:
    with FakeWeb({"http://a.test/": '<a href="http://b.test/">z</a>', "http://b.test/": "inside"}) as web:
        options = build(
            CrawlOptions, {"delay": 0, "output": str(tmp_path / "c"), "scope": "any", "resolve": [web.resolve]}
        )
        summary = run(Crawl(["http://a.test/"], options, tables=False))
        assert len(web.requests) == 1
    assert summary.outcomes == {"ok": 1, "address_refused": 1}


def test_a_link_off_loopback_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="http://192.0.2.1/">x</a>'}) as web:
        summary, _ = crawl(web, tmp_path, scope="any")
    assert summary.outcomes == {"ok": 1, "address_refused": 1}


def test_stop_finishes_what_is_in_flight(tmp_path: Path) -> None:
    with FakeWeb.tree(5, 3) as web:
        job = Crawl(
            [web.url("/")],
            build(all_options(), {"delay": 0, "output": str(tmp_path / "crawl"), "per_host": 4}),
            tables=False,
        )
        answer = web.pages["/0"]
        assert isinstance(answer, FakePage)

        def stop_then_answer(_: object) -> FakePage:
            assert job.running is not None
            loop.call_soon_threadsafe(job.stop)
            return answer

        web.pages["/0"] = stop_then_answer
        import asyncio

        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            summary = runner.run(job.run())
        assert (summary.state, summary.exit_code) == ("stopped", 3)
        assert len(web.requests) == summary.fetched < len(web.expected)
        assert len(rows(tmp_path)) == summary.fetched
