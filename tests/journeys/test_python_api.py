"""The Python API as a program uses it: the README's own examples among them."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gossamer
from gossamer import api
from gossamer.flow.errors import SettingError
from gossamer.reading.document import Document
from gossamer.testing.fakeweb import FakeWeb

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
def own_processors() -> Iterator[None]:
    """Whatever a test registers is gone after it."""
    before = list(api._registered)
    yield
    api._registered[:] = before


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
    async def crawl(seed: str) -> gossamer.api.CrawlRun:
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


@pytest.mark.usefixtures("own_processors")
def test_the_examples_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    with FakeWeb({"/": '<title>Shop</title><b class="price">12.50</b>'}) as web:
        body = code[1].replace("http://localhost:8000/", web.url("/"))
        loop, _, rest = body.partition("@gossamer.processor")
        lines = [line for line in loop.splitlines() if line and not line.startswith("import")]
        names: dict[str, object] = {"gossamer": gossamer}
        exec(f"@gossamer.processor{rest}", names)
        exec("async def main():\n" + "\n".join(f"    {line}" for line in lines), names)
        asyncio.run(names["main"]())  # type: ignore[operator]
        assert f"{web.url('/')} 200 Shop" in capsys.readouterr().out
        assert [item.value for page in gossamer.crawl_sync(web.url("/"), delay=0) for item in page.items] == ["12.50"]


def test_importing_the_package_loads_no_crawler() -> None:
    import subprocess
    import sys

    script = "import sys, gossamer; sys.exit('pycurl' in sys.modules or 'selectolax' in sys.modules)"
    source = str(README.parent / "src")
    assert subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": source}, check=False).returncode == 0
