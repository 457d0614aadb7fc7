"""Documents come back by URL, from wherever their rows are at the time."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gossamer.query.archive import ArchiveReader
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.search.asking import Search
from gossamer.search.indexing import index_crawl
from gossamer.testing.storage import visit
from gossamer.values import body as bodies
from gossamer.values.body import PIECE, THRESHOLD, StoredBody
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Visit

Open = Callable[..., Any]
Make = Callable[..., Visit]


@pytest.mark.parametrize("state", ["open", "closed", "ended"])
def test_a_document_is_found_in_logs_runs_and_index(kept: Open, page: Make, state: str) -> None:
    crawl = kept(segment_bytes=1 if state == "closed" else 1 << 20)
    for number in range(3):
        crawl.commit(page(number, f"body {number}".encode()))
    convert(crawl.directory, ended=state == "ended")
    for number in range(3):
        document = ArchiveReader(crawl.directory).document(f"http://a.test/{number}")
        assert document.source.body == f"body {number}".encode()
        assert document.record.status == 200
        assert document.record.header("content-type") == "text/html"
        assert next(document.record.raw()).startswith(b"WARC/1.1\r\n")


def test_what_is_not_there_is_said_in_one_line(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1))
    with pytest.raises(UsageError, match="is not in the archive of"):
        ArchiveReader(crawl.directory).document("http://a.test/")


def test_the_last_capture_counts_or_that_of_a_time(kept: Open) -> None:
    crawl = kept()
    for second, body in ((1, b"old"), (2, b"new")):
        one = visit("http://a.test/", body)
        response = msgspec.structs.replace(one.response, started=1_700_000_000.0 + second)
        crawl.commit(msgspec.structs.replace(one, response=response))
    reader = ArchiveReader(crawl.directory)
    assert reader.document("http://a.test/").source.body == b"new"
    assert reader.document("http://a.test/", "20231114221321").source.body == b"old"
    assert len(reader.captures("http://a.test/")) == 2
    assert reader.document("http://a.test/", "20231115").source.body == b"new", "that stood then, too"
    assert reader.document("http://a.test/", "20231114").source.body == b"new"
    with pytest.raises(UsageError, match="as it was at 2022"):
        reader.document("http://a.test/", "2022")


def test_archive_links_and_index_show_the_same_visit(kept: Open, page: Make) -> None:
    crawl, url = kept(), "http://a.test/1"
    made = {}
    for number, (outcome, status) in enumerate(
        (
            (Outcome.OK, 200),
            (Outcome.SERVER_ERROR, 503),
            (Outcome.OK, 200),
            (Outcome.NOT_MODIFIED, 304),
            (Outcome.RATE_LIMITED, 429),
        )
    ):
        one = page(1, f"<p>version {number}".encode(), id=f"v{number}", title=f"Version {number}")
        head = f"HTTP/1.1 {status} x\r\n\r\n".encode()
        seen = {"outcome": outcome, "status": status, "started": 1_700_000_000.0 + number, "response_head": head}
        body = b"" if outcome is Outcome.NOT_MODIFIED else one.response.body
        made[number] = msgspec.structs.replace(
            one,
            response=msgspec.structs.replace(one.response, **seen, body=body),
            links=one.links if outcome is Outcome.OK else (),
        )
    for number, stands in ((0, 0), (1, 0), (2, 2), (3, 2), (4, 2)):
        crawl.commit(made[number])
        crawl.rows.committed(crawl.rows.ends())
        index_crawl(crawl.directory)
        [hit] = Search(crawl.directory).ask("version").hits
        with Database(crawl.directory) as database:
            links = set(database.ask("SELECT DISTINCT visit FROM links"))
        source = ArchiveReader(crawl.directory).document(url).source
        assert (hit.visit, links, source.body) == (f"v{stands}", {(f"v{stands}",)}, f"<p>version {stands}".encode())


@pytest.mark.parametrize("ended", [False, True])
def test_a_revisit_brings_the_first_document(kept: Open, page: Make, ended: bool) -> None:
    crawl = kept()
    crawl.commit(page(1, b"same"))
    crawl.commit(page(2, b"same", duplicate_of="http://a.test/1"))
    unchanged = visit("http://a.test/1", b"", outcome=Outcome.NOT_MODIFIED, head=b"HTTP/1.1 304 Not Modified\r\n\r\n")
    later = msgspec.structs.replace(unchanged.response, started=1_700_000_900.0, status=304)
    crawl.commit(msgspec.structs.replace(unchanged, response=later))
    if ended:
        convert(crawl.directory, ended=True)
    reader = ArchiveReader(crawl.directory)
    for url, status in (("http://a.test/2", 200), ("http://a.test/1", 304)):
        document = reader.document(url)
        assert (document.record.kind, document.record.status) == ("revisit", status)
        assert document.source.body == b"same"


def test_a_revisit_whose_original_is_elsewhere_says_so(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(2, duplicate_of="http://elsewhere.test/"))
    with pytest.raises(UsageError, match="is not in this archive"):
        ArchiveReader(crawl.directory).document("http://a.test/2")


def test_what_may_not_be_kept_is_not_found(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1, directives=("noarchive",)))
    with pytest.raises(UsageError):
        ArchiveReader(crawl.directory).document("http://a.test/1")


def test_a_damaged_archive_says_where(kept: Open, page: Make) -> None:
    crawl = kept()
    crawl.commit(page(1))
    [path] = crawl.directory.glob("warc/*")
    path.write_bytes(b"\x00" * path.stat().st_size)
    with pytest.raises(CrawlDirectoryError, match="has no whole record at byte"):
        ArchiveReader(crawl.directory).document("http://a.test/1")


def test_a_document_without_a_header_block_comes_back(kept: Open, page: Make) -> None:
    crawl = kept()
    one = page(1)
    response = msgspec.structs.replace(one.response, response_head=b"", body=b"a\r\n\r\nb")
    crawl.commit(msgspec.structs.replace(one, response=response))
    document = ArchiveReader(crawl.directory).document("http://a.test/1")
    assert (document.source.body, document.source.head) == (b"a\r\n\r\nb", b"")
    assert document.source.header("content-type") == "text/html"


@pytest.mark.parametrize("filler", [b"x", bytes(range(256))])
@pytest.mark.parametrize("more", [-400, -1, 0, 1, 3 * PIECE])
def test_a_record_is_read_piece_by_piece_and_comes_back_whole(kept: Open, filler: bytes, more: int) -> None:
    crawl = kept()
    body = (filler * (4 * PIECE))[: 4 * PIECE + more]
    crawl.commit(visit("http://a.test/large", body))
    document = ArchiveReader(crawl.directory).document("http://a.test/large")
    assert b"".join(bodies.pieces(document.source.body)) == body
    assert document.source.head == visit().response.response_head
    assert b"".join(document.record.raw()).endswith(document.source.head + body)
    assert (type(document.source.body) is StoredBody) == (len(body) > THRESHOLD), "a large one is not held in memory"


@pytest.mark.parametrize("missing", [1, 8, 100])
def test_a_record_that_was_cut_is_no_document(kept: Open, page: Make, missing: int) -> None:
    crawl = kept()
    crawl.commit(page(1, bytes(range(256)) * 8))
    [path] = crawl.directory.glob("warc/*")
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises(CrawlDirectoryError, match="has no whole record at byte"):
        ArchiveReader(crawl.directory).document("http://a.test/1")
