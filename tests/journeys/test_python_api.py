"""The Python API as a program uses it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.processors import own_processors

import gossamer
from gossamer.api.crawls import SyncCrawlRun
from gossamer.documents.document import Document
from gossamer.engine.errors import SettingError
from gossamer.testing.fakeweb import FakePage, FakeWeb

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture(name="own_processors")
def fixture_own_processors() -> Iterator[None]:
    with own_processors():
        yield


def test_pages_arrive_as_an_async_iterator() -> None:
    async def crawl(seed: str) -> list[gossamer.Page]:
        return [page async for page in gossamer.crawl(seed, delay=0, per_host=4)]

    with FakeWeb.tree(2, 3) as web:
        pages = asyncio.run(crawl(web.url("/")))
        assert {page.url for page in pages} == web.expected
    assert {page.status for page in pages} == {200}
    assert {page.depth for page in pages} == {0, 1, 2}
    assert all(page.title for page in pages)


def test_a_blocking_caller_gets_a_plain_iterator_with_the_same_options() -> None:
    with FakeWeb.tree(3, 3) as web:
        assert len(list(gossamer.crawl_sync(web.url("/"), delay=0, depth=1))) == 4


def test_a_reader_that_leaves_early_ends_the_crawl() -> None:
    with FakeWeb.tree(5, 4) as web:
        pages = gossamer.crawl_sync(web.url("/"), delay=0)
        first = next(pages)
        pages.close()  # type: ignore[attr-defined]
        assert first.url == web.url("/")
        assert len(web.requests) < len(web.expected)


def test_the_summary_says_how_the_crawl_ended() -> None:
    async def crawl(seed: str) -> gossamer.CrawlRun:
        run = gossamer.crawl(seed, delay=0, max_pages=2)
        async for _ in run:
            pass
        return run

    with FakeWeb.tree(2, 3) as web:
        summary = asyncio.run(crawl(web.url("/"))).summary
    assert summary is not None
    assert (summary.state, summary.pages) == ("limit", 2)


def test_an_archive_is_kept_only_where_an_output_is_named(tmp_path: Path) -> None:
    with FakeWeb.tree(1, 2) as web:
        pages = list(gossamer.crawl_sync(web.url("/"), delay=0))
        assert all(page.location is None for page in pages)
        pages = list(gossamer.crawl_sync(web.url("/"), delay=0, output=str(tmp_path / "kept")))
    assert all(page.location is not None for page in pages)
    assert list((tmp_path / "kept" / "warc").iterdir())


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(SettingError, match="did you mean 'depth'"):
        list(gossamer.crawl_sync("http://127.0.0.1:9/", deepth=2))


@pytest.mark.usefixtures("own_processors")
def test_a_processor_of_ones_own_takes_items_out_of_pages() -> None:
    @gossamer.processor("text/html")
    def prices(document: Document) -> Iterator[gossamer.Item]:
        for node in document.css(".price"):
            yield gossamer.Item(kind="price", url=document.url, value=node.text())

    with FakeWeb({"/": '<b class="price">12.50</b><a href="/b">b</a>', "/b": '<i class="price">3</i>'}) as web:
        items = [item for page in gossamer.crawl_sync(web.url("/"), delay=0) for item in page.items]
    assert [(item.kind, item.value) for item in items] == [("price", "12.50"), ("price", "3")]


@pytest.mark.usefixtures("own_processors")
def test_a_processor_that_raises_costs_its_page_nothing_else() -> None:
    @gossamer.processor("text/html")
    def broken(document: Document) -> None:
        raise RuntimeError("no idea")

    with FakeWeb.tree(2, 2) as web:
        pages = list(gossamer.crawl_sync(web.url("/"), delay=0))
        assert {page.url for page in pages} == web.expected
    assert all("no idea" in page.record.visit.trouble for page in pages)


def test_importing_the_package_loads_no_crawler() -> None:
    import subprocess
    import sys

    script = "import sys, gossamer; sys.exit('pycurl' in sys.modules or 'selectolax' in sys.modules)"
    source = str(README.parent / "src")
    assert subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": source}, check=False).returncode == 0


def test_a_program_gets_what_it_asks_for_pages_documents_or_every_outcome() -> None:
    pages = {
        "/": '<a href="/a.txt">t</a><a href="/gone">g</a><a href="/moved">m</a>',
        "/a.txt": FakePage("text", type="text/plain"),
        "/moved": FakePage(status=301, headers=(("Location", "/"),)),
    }

    def asked(yields: Literal["pages", "documents", "outcomes"]) -> list[tuple[str, str]]:
        found = gossamer.crawl_sync(web.url("/"), delay=0, yields=yields)
        return sorted((page.url.removeprefix(web.url("/")), page.outcome.value) for page in found)

    with FakeWeb(pages) as web:
        assert asked("pages") == [("", "ok")]
        assert asked("documents") == [("", "ok"), ("a.txt", "ok")]
        assert asked("outcomes") == [("", "ok"), ("a.txt", "ok"), ("gone", "client_error"), ("moved", "redirect")]
        with pytest.raises(gossamer.UsageError, match="yields='all'"):
            gossamer.crawl_sync(web.url("/"), yields="all")  # type: ignore[arg-type]


def test_a_crawl_to_which_nothing_came_raises_and_says_why() -> None:
    with FakeWeb({}) as web:
        nowhere = web.url("/")
    with pytest.raises(gossamer.CrawlFailed, match=f"nothing came; seed {nowhere}: "):
        list(gossamer.crawl_sync(nowhere, delay=0, retries=0))


def test_the_summary_is_there_after_a_loop_was_left() -> None:
    async def leave(seed: str) -> tuple[gossamer.Summary | None, gossamer.Summary | None]:
        run = gossamer.crawl(seed, delay=0, concurrency=1)
        async for _ in run:
            break
        first = run.summary
        await run.close()
        return first, run.summary

    with FakeWeb.tree(5, 4) as web:
        pages = gossamer.crawl_sync(web.url("/"), delay=0, concurrency=1)
        for _ in pages:
            break
        assert pages.summary is not None and pages.summary.state == "stopped"
        first, last = asyncio.run(leave(web.url("/")))
    assert first is not None and first.pages >= 1
    assert last is not None and last.state == "stopped"


def test_a_crawl_runs_where_an_event_loop_runs_already_as_in_a_notebook() -> None:
    async def cell(seed: str) -> tuple[int, gossamer.Summary]:
        spider = gossamer.Spider(seed, delay=0)
        spider.page()(lambda page: page.follow_all())
        return len(list(gossamer.crawl_sync(seed, delay=0))), spider.run()

    with FakeWeb.tree(2, 2) as web:
        pages, summary = asyncio.run(cell(web.url("/")))
        assert pages == summary.pages == len(web.expected)


@pytest.mark.usefixtures("own_processors")
def test_a_cell_that_is_run_again_replaces_its_processor_and_its_handler() -> None:
    cell = """
@gossamer.processor("text/html")
def titles(document):
    yield gossamer.Item("title", document.url, "VERSION")

@spider.page()
def page(page):
    yield {"version": "VERSION"}
"""
    with FakeWeb({"/": "page"}) as web:
        names = {"gossamer": gossamer, "__name__": "__main__", "spider": gossamer.Spider(web.url("/"), delay=0)}
        for number, version in enumerate(("first", "second")):
            exec(compile(cell.replace("VERSION", version), f"<cell {number}>", "exec"), names)
        [page] = gossamer.crawl_sync(web.url("/"), delay=0)
        assert [item.value for item in page.items] == ["second"]
        [page] = list(SyncCrawlRun(names["spider"].crawl()))  # type: ignore[attr-defined]
        assert sorted(map(str, (item.value for item in page.items))) == ["second", "{'version': 'second'}"]


@pytest.mark.usefixtures("own_processors")
def test_an_error_of_a_processor_is_told_once_and_counted(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    @gossamer.processor("text/html")
    def broken(document: Document) -> Iterator[gossamer.Item]:
        yield gossamer.Item("bad", document.url, {"tree": [object()]})

    with FakeWeb.tree(1, 2) as web:
        run = gossamer.crawl_sync(web.url("/"), delay=0, output=str(tmp_path / "crawl"))
        assert [page.items for page in run] == [(), (), ()]
    assert run.summary is not None and run.summary.raised == 3
    [told] = [record.getMessage() for record in caplog.records]
    assert "test_python_api.py:" in told and "bad.tree[0]: a object cannot be written" in told
    log = (tmp_path / "crawl" / "logs" / "crawl.jsonl").read_text()
    assert log.count('"event":"error"') == 3 and "Traceback" in log


@pytest.mark.parametrize("types", [(), (5,)])
def test_a_processor_without_media_types_is_refused(types: tuple[Any, ...]) -> None:
    with pytest.raises(gossamer.UsageError, match="names the media types"):
        gossamer.processor(*types)


def test_a_processor_of_the_wrong_signature_is_refused_with_its_line() -> None:
    with pytest.raises(gossamer.UsageError, match=r"test_python_api\.py:\d+: processor 'wrong' takes \(\)"):

        @gossamer.processor("text/html")  # type: ignore[arg-type]
        def wrong() -> None:
            return None
