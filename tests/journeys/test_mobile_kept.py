"""What mobile crawlers brought home as parts can be exported, read elsewhere, deleted and verified like any other document."""

import json
import shutil
import time
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from tests.journeys.test_crawl_mobile import Unreliable, crawled, fetching, found, web
from warcio.archiveiterator import ArchiveIterator

from gossamer.analysis.removals import delete, target_of
from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.engine.errors import ComponentFailed
from gossamer.mobile.manager.links import HomeRuntime
from gossamer.query.archive import ArchiveReader
from gossamer.testing.fakeweb import FakeWeb

PAGE, OTHER = "http://a.test/p/8", "http://b.test/p/8"
TEXT = b"About kidney, a 8."


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that ended well, with texts, links and titles of relevant pages."""
    folder = tmp_path_factory.mktemp("sound") / "crawl"
    with FakeWeb(web()) as served:
        parts = {"mobile_content": ("text", "links"), "mobile_elements": ("title",)}
        crawled(served, folder, HomeRuntime(fetching(served, [])), **parts)
    return folder


@pytest.fixture
def crawl(sound: Path, tmp_path: Path) -> Path:
    """A copy."""
    return Path(shutil.copytree(sound, tmp_path / "crawl"))


def exported(crawl: Path) -> tuple[list[tuple[str, str, str, bytes]], dict[str, list[str]]]:
    """Kind, URL, type and body of each record of the crawl's WACZ file, as another reader has them; and its lists of pages."""
    target = crawl.parent / "crawl.wacz"
    assert main(["export", str(crawl), "--to", "wacz", "-o", str(target)]) == 0
    records: list[tuple[str, str, str, bytes]] = []
    with zipfile.ZipFile(target) as package:
        assert package.testzip() is None
        for name in package.namelist():
            if name.startswith("archive/"):
                for record in ArchiveIterator(BytesIO(package.read(name)), check_digests="raise"):
                    fields = record.rec_headers
                    told = (fields.get_header(field) or "" for field in ("WARC-Target-URI", "Content-Type"))
                    records.append((record.rec_type, *told, record.content_stream().read()))
        lists = [name for name in package.namelist() if name.startswith("pages/")]
        lines = {name: package.read(name).decode().splitlines()[1:] for name in lists}
    target.unlink()
    return records, lines


def test_a_wacz_file_has_parts_as_conversions_and_lists_their_pages(sound: Path) -> None:
    records, lists = exported(sound)
    conversions = {url: (kind, body) for what, url, kind, body in records if what == "conversion"}
    assert conversions[PAGE] == ("text/plain; charset=utf-8", ArchiveReader(sound).document(PAGE).source.body)
    assert TEXT in conversions[PAGE][1]
    pages = [json.loads(line) for lines in lists.values() for line in lines]
    copies = {url for what, url, _, _ in records if what == "revisit"}
    assert {page["url"] for page in pages} == set(conversions) | copies and len(conversions) > 15
    assert {page["title"] for page in pages if page["url"] == PAGE} == {"8"}


@pytest.mark.parametrize("name", [PAGE, "a.test"])
def test_deleted_parts_are_nowhere_and_the_others_are_whole(crawl: Path, name: str) -> None:
    [note] = delete(crawl, target_of(name), time.time())
    assert note.records >= 2 and note.rows >= 2
    assert not verify(crawl, deep=True).findings
    records, lists = exported(crawl)
    assert not any(url.startswith(f"{PAGE}\0") or url == PAGE or TEXT in body for _, url, _, body in records)
    assert any(url == OTHER and b"About kidney, b 8." in body for _, url, _, body in records)
    assert not any(json.loads(line)["url"] == PAGE for lines in lists.values() for line in lines)
    tables = "SELECT url FROM pages_all UNION ALL SELECT url FROM items UNION ALL SELECT source FROM links"
    urls = {url for (url,) in found(crawl, tables)}
    assert PAGE not in urls and OTHER in urls


class Stopping(Unreliable):
    """A link to a runtime that takes crawlers; home's process ends while it waits for what they bring."""

    async def _broken(self) -> None:
        if self.calls > 1:
            raise OSError("home ends here")
        self.calls += 1


@pytest.mark.parametrize("name", ["http://a.test/", "a.test"])
def test_what_crawlers_have_with_them_can_be_deleted_and_the_crawl_ends(tmp_path: Path, name: str) -> None:
    crawl, asked = tmp_path / "crawl", list[str]()
    with FakeWeb(web()) as served:
        with pytest.raises(ComponentFailed, match="home ends here"):
            crawled(served, crawl, Stopping(HomeRuntime(fetching(served, []))))
        [note] = delete(crawl, target_of(name), time.time())
        assert note.tasks == 1
        summary = crawled(served, crawl, HomeRuntime(fetching(served, asked)), resume=True)
    assert summary.state == "finished" and summary.queued == 0 and "http://b.test/" in asked
    # Other sites lead to the deleted one. A URL is not brought again, and a host is blocked, so no crawler goes there.
    urls = {url for (url,) in found(crawl, "SELECT url FROM pages")}
    assert "http://a.test/" not in urls and "http://b.test/" in urls
    assert any("a.test" in url for url in asked) is (name != "a.test")
    assert not verify(crawl, deep=True).findings


def test_no_crawler_goes_to_a_host_that_is_blocked(tmp_path: Path) -> None:
    asked: list[str] = []
    with FakeWeb(web()) as served:
        summary = crawled(served, tmp_path / "crawl", HomeRuntime(fetching(served, asked)), blocked=("a.test",))
    assert {url.split("/")[2] for url in asked} == {"b.test", "c.test"} and not served.requests
    assert summary.state == "finished" and summary.outcomes["blocked"] > 0
