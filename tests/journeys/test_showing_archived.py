"""Archived documents as the dashboard shows them: text in bounded pieces, whatever a site wrote."""

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.query.archive import SHOWN, SHOWN_HEAD, ArchivedView, view_archived
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import UsageError

LATIN = "<html><head><title>t</title></head><body><p>Grüße &lt;b&gt;</p><script>window.pwned=1</script></body></html>"
PAGES = {
    "/": FakePage(
        '<a href="/latin">a</a><a href="/long">a</a><a href="/image">a</a><a href="/bomb">a</a><a href="/bad">a</a>'
    ),
    "/latin": FakePage(
        LATIN.encode("latin-1"),
        type="text/html; charset=iso-8859-1",
        headers=(("Set-Cookie", "session=hunter2; Path=/"), ("X-Odd", "<script>")),
    ),
    "/long": FakePage("<p>" + "x " * SHOWN, type="text/html"),
    "/image": FakePage(b"\x89PNG\r\n\x1a\n" + bytes(64), type="image/png"),
    "/bomb": FakePage(gzip.compress(b"<p>" + b"a" * 20_000_000), headers=(("Content-Encoding", "gzip"),)),
    "/bad": FakePage(b"<p>no gzip at all", headers=(("Content-Encoding", "gzip"),)),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, FakeWeb]]:
    folder = tmp_path_factory.mktemp("archived") / "crawl"
    with FakeWeb(PAGES) as web:
        asyncio.run(
            Crawl([web.url("/")], build(all_options(), {"output": str(folder), "delay": 0, "retries": 0})).run()
        )
        yield folder, web


def view(crawled: tuple[Path, FakeWeb], path: str) -> ArchivedView:
    folder, web = crawled
    return view_archived(folder, web.url(path))


def test_a_page_is_shown_as_text_source_fields_and_record(crawled: tuple[Path, FakeWeb]) -> None:
    shown = view(crawled, "/latin")
    assert shown.text.strip() == "Grüße <b>"
    assert shown.source == LATIN
    assert (shown.media_type, shown.charset, shown.is_cut, shown.trouble) == ("text/html", "windows-1252", False, "")
    assert shown.head.startswith("HTTP/1.1 200")
    assert "X-Odd: <script>" in shown.head
    assert shown.record["warc-type"] == "response"
    assert shown.record["warc-target-uri"] == shown.url
    assert shown.size == len(LATIN.encode("latin-1"))


def test_the_value_of_a_cookie_is_not_shown(crawled: tuple[Path, FakeWeb]) -> None:
    head = view(crawled, "/latin").head
    assert "hunter2" not in head
    assert "set-cookie: session=(not shown)" in head.lower()


def test_what_is_long_is_cut_and_says_so(crawled: tuple[Path, FakeWeb]) -> None:
    shown = view(crawled, "/long")
    assert shown.is_cut
    assert len(shown.source) == SHOWN
    assert len(shown.text) <= SHOWN
    bomb = view(crawled, "/bomb")
    assert bomb.is_cut
    assert len(bomb.source) <= SHOWN and len(bomb.text) <= SHOWN and len(bomb.head) <= SHOWN_HEAD


def test_what_is_no_text_shows_none_and_what_cannot_be_decoded_says_so(crawled: tuple[Path, FakeWeb]) -> None:
    image = view(crawled, "/image")
    assert (image.text, image.source, image.charset, image.media_type) == ("", "", "", "image/png")
    assert view(crawled, "/bad").trouble


def test_a_version_is_named_by_its_time_and_nothing_else(crawled: tuple[Path, FakeWeb]) -> None:
    folder, web = crawled
    [version] = view(crawled, "/latin").versions
    assert view_archived(folder, web.url("/latin"), version).source == LATIN
    for bad in ("1999", "../../etc", "٢٠٢٦", "1" * 15):
        with pytest.raises(UsageError):
            view_archived(folder, web.url("/latin"), bad)
    for url in (web.url("/nowhere"), "file:///etc/passwd", "no url"):
        with pytest.raises(UsageError):
            view_archived(folder, url)
