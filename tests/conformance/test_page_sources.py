"""Every source of a runtime keeps the promises of `mobile.contract`: files, a local server, WARC files, a crawl."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from gossamer.mobile.sources.files import FileSource
from gossamer.mobile.sources.opened import CrawlSource, ServerSource, WarcSource
from gossamer.query.archive import ArchivedDocument, ArchiveReader
from gossamer.storage.archive.reading import ArchivedRecord
from gossamer.testing import check_page_source
from gossamer.values.errors import UsageError
from gossamer.values.visit import Response

SITE = "http://example.test"
PAGE, DIRECTORY, MISSING = f"{SITE}/docs/page.html", f"{SITE}/docs", f"{SITE}/none.html"
BODY = b"<title>A page of the site</title><p>with some text"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.html").write_bytes(BODY)
    return tmp_path


class _Quiet(SimpleHTTPRequestHandler):
    def log_request(self, *_: object) -> None:
        pass

    def log_error(self, *_: object) -> None:
        pass


@pytest.fixture
def origin(root: Path) -> Iterator[str]:
    """A local server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def record(url: str, head: str, body: bytes = b"") -> bytes:
    """A record of a WARC file that is not compressed."""
    block = f"HTTP/1.1 {head}\r\n\r\n".encode() + body
    fields = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{len(url):012}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return fields.encode() + block + b"\r\n\r\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A WARC file that somebody else wrote."""
    path = tmp_path / "site.warc"
    path.write_bytes(
        record(PAGE, "200 OK\r\nContent-Type: text/html", BODY)
        + record(f"{SITE}/untyped", "200 OK\r\nServer: x", BODY)
        + record(DIRECTORY, "301 Moved\r\nLocation: /docs/")
    )
    return path


def test_files(root: Path) -> None:
    check_page_source(lambda limit: FileSource(root, limit=limit), PAGE, DIRECTORY, MISSING)


def test_a_local_server(origin: str) -> None:
    check_page_source(lambda limit: ServerSource(origin, "example.test", limit=limit), PAGE, DIRECTORY, MISSING)


def test_records_of_a_warc(recorded: Path, tmp_path: Path) -> None:
    check_page_source(lambda limit: WarcSource([recorded], limit=limit, cache=tmp_path), PAGE, DIRECTORY, MISSING)


class StoredCrawl(ArchiveReader):
    """An archive with a page and a redirect."""

    HEADS: ClassVar = {PAGE: "200 OK\r\nContent-Type: text/html", DIRECTORY: "301 Moved\r\nLocation: /docs/"}

    def document(self, url: str, at: str = "") -> ArchivedDocument:
        if url not in self.HEADS:
            raise UsageError(f"{url} is not in the archive")
        head = f"HTTP/1.1 {self.HEADS[url]}\r\n\r\n".encode()
        found = ArchivedRecord(
            {"content-type": "application/http; msgtype=response"}, b"", head, BODY if url == PAGE else b""
        )
        return ArchivedDocument(found, found)


def test_a_stored_crawl(tmp_path: Path) -> None:
    check_page_source(lambda limit: CrawlSource(StoredCrawl(tmp_path), limit=limit), PAGE, DIRECTORY, MISSING)


def test_a_local_server_is_asked_by_the_name_of_the_site_and_for_no_other(root: Path) -> None:
    asked: list[tuple[str, str | None, str | None]] = []

    class Noting(_Quiet):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Host"], self.headers["X-Forwarded-Proto"]))
            super().do_GET()

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Noting, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        origin = f"http://127.0.0.1:{server.server_address[1]}"
        source = ServerSource(origin, "example.test", limit=1 << 20, scheme="https")
        try:
            found = source.answer("https://example.test/docs/page.html?a=b")
            other = source.answer("https://other.test/docs/page.html")
        finally:
            source.close()
            server.shutdown()
            thread.join()
    assert isinstance(found, Response) and found.content == BODY
    assert asked == [("/docs/page.html?a=b", "example.test", "https")]
    assert not isinstance(other, Response) and other.reason == "not_served"


def test_a_record_without_a_media_type_leaves_it_to_the_bytes(recorded: Path, tmp_path: Path) -> None:
    source = WarcSource([recorded], limit=1 << 20, cache=tmp_path)
    found = source.answer(f"{SITE}/untyped")
    source.close()
    assert isinstance(found, Response) and found.mime == "application/octet-stream"


def test_a_damaged_record_is_refused_by_name(recorded: Path, tmp_path: Path) -> None:
    source = WarcSource([recorded], limit=1 << 20, cache=tmp_path)
    recorded.write_bytes(b"\0" * recorded.stat().st_size)
    found = source.answer(PAGE)
    source.close()
    assert not isinstance(found, Response) and found.reason == "damaged"
