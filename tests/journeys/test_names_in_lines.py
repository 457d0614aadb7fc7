"""URLs, titles and headers may hold anything: every file of lines is read as it was written, by every command."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.query.archive import ArchiveReader
from gossamer.testing.fakeweb import FakePage, FakeWeb

#: Links as pages write them: all that a parser of a URL lets pass, and all that ends a line or begins JSON somewhere.
LINKS = [
    "/{a}", "/{b}", "/{{x}}", "/z", "/a{", '/"}', "/{%22url%22:1}", "/[{]", "/?{a}={b}", "/?a=\\b", "/a b{", "/~|^`'()[]?[]|^`~",
    "/%7B%7d", "/%0A%0D%09", "/?%0a{", "/\u2028?\u2028{", "/\x85?\x85", "/{\x1b}", "/#!{x}", "/;{;", "/*{*}?*",
]  # fmt: skip

TITLE = '<title>{ "a": } \u2028 \x85 \x0b \x1c \\ </title>'
HEADERS = (("ETag", '"{}"'), ("Link", "</{c}>; rel=next"), ("X-Json", '{"url":"http://a.test/", "warc_file":1}'))


@pytest.fixture(scope="module")
def web() -> Iterator[FakeWeb]:
    page = FakePage(body=TITLE + "".join(f'<a href="{link}">{{{link}</a>' for link in LINKS), headers=HEADERS)
    with FakeWeb({"/": page}, otherwise=FakePage(body=TITLE, headers=HEADERS)) as served:
        yield served


@pytest.fixture
def crawl(web: FakeWeb, tmp_path: Path) -> Path:
    assert crawled(web, tmp_path / "crawl").exit_code == 0
    return tmp_path / "crawl"


def crawled(web: FakeWeb, directory: Path, **options: object) -> Summary:
    settings = {"output": str(directory), "delay": 0, "linger": 0, **options}
    return run(Crawl([web.url("/")], build(CrawlOptions, settings)))


def urls(crawl: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["query", str(crawl), "SELECT url FROM pages", "-f", "jsonl"]) == 0
    return [json.loads(line)["url"] for line in capsys.readouterr().out.split("\n") if line]


def test_no_name_breaks_tables_index_or_export(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = urls(crawl, capsys)
    assert len(found) > len(LINKS) - 4, "some are the same URL"
    told = verify(crawl, deep=True)
    assert told.findings == []
    assert [url for url in found if ArchiveReader(crawl).document(url).record.fields["warc-target-uri"] != url] == []
    for form in ("cdxj", "wacz", "folder"):
        assert main(["export", str(crawl), "--to", form, "-o", str(tmp_path / f"out-{form}")]) == 0
    lines = (tmp_path / "out-cdxj").read_bytes().splitlines()
    assert {json.loads(line.split(b" ", 2)[2])["url"] for line in lines} >= set(found)
    assert main(["index", str(crawl)]) == 0


@pytest.mark.long
def test_what_has_such_a_name_is_deleted_and_the_crawl_goes_on(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for url in urls(crawl, capsys):
        assert main(["delete", str(crawl), url]) == 0
        assert verify(crawl, deep=True).findings == []
        log = [json.loads(line) for line in (crawl / "logs/crawl.jsonl").read_bytes().split(b"\n") if line]
        assert all(row.get("url") != url for row in log)
    assert main(["trim", str(crawl), "--keep-versions", "1"]) == 0
    assert main(["resume", str(crawl), "--quiet"]) == 0


def test_tables_that_cannot_be_made_are_an_error_of_the_crawl_until_they_are(
    web: FakeWeb, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "crawl"
    assert crawled(web, directory, max_pages=1).exit_code == 0
    shutil.rmtree(directory / "tables/pages")
    (directory / "tables/pages").write_text("in the way")
    (directory / "state/made.json").unlink()
    summary = crawled(web, directory, max_pages=3, resume=True)
    assert (summary.exit_code, summary.state) == (4, "incomplete")
    assert summary.failure
    assert main(["status", str(directory)]) == 0
    shown = capsys.readouterr().out
    assert "incomplete" in shown
    assert "tables and index could not be made" in shown
    assert main(["verify", str(directory)]) == 5
    assert "tables and index could not be made" in capsys.readouterr().err
    (directory / "tables/pages").unlink()
    assert main(["resume", str(directory), "--quiet"]) == 0
    assert main(["verify", str(directory), "--deep"]) == 0
    assert main(["status", str(directory)]) == 0
    assert f"{directory}: limit" in capsys.readouterr().out
