"""Stored records served as a web: a crawl of them finds what the crawl that made them found."""

import asyncio
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.summary import Summary
from gossamer.query.database import Database
from gossamer.simweb.replay import Replay, ReplayError, ReplayIndex
from gossamer.storage.archive.others import stored
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb


def crawled(directory: Path, *seeds: str, **options: Any) -> Summary:
    job = Crawl(seeds, CrawlOptions(output=str(directory), delay=0.0, **options), tables=False)
    return asyncio.run(job.run())


async def crawled_from(index: ReplayIndex, directory: Path, seed: str, **options: Any) -> Summary:
    async with Replay(index) as replay:
        ca_file = directory.with_suffix(".pem")
        ca_file.write_bytes(replay.certificate)
        chosen = CrawlOptions(
            output=str(directory), delay=0.0, resolve=(f"*=127.0.0.1:{replay.port}",), allow_network=("127.0.0.0/8",),
            ca_file=str(ca_file), scope="any", **options,
        )  # fmt: skip
        return await Crawl([seed], chosen, tables=False).run()


def told(directory: Path) -> set[tuple[str, str, str]]:
    with Database(directory) as database:
        return set(
            database.ask("SELECT regexp_replace(url, ':[0-9]+/', '/'), outcome, coalesce(sha256, '') FROM pages")
        )


SITE = {
    "/": '<a href="/a">a</a> <a href="/gone">gone</a> <a href="/moved">moved</a> <a href="/twin">twin</a>',
    "/a": FakePage(b"<title>\xe9</title>", type="text/html; charset=iso-8859-1"),
    "/moved": FakePage(status=302, headers=(("Location", "/a"),)),
    "/twin": '<a href="/a">a</a> <a href="/gone">gone</a> <a href="/moved">moved</a> <a href="/twin">twin</a>',
    "/gone": FakePage("no", status=404),
}


def test_a_crawl_of_stored_records_finds_what_the_first_crawl_found(tmp_path: Path) -> None:
    with FakeWeb(SITE) as web:
        crawled(tmp_path / "one", web.url("/"))
        seed = web.url("/")
    files = sorted((tmp_path / "one" / "warc").glob("*.warc.gz"))
    with ReplayIndex(files, cache=tmp_path / "cache") as index:
        # Loopback names are addresses here: the records' own port is what the second crawl asks for.
        host = f"http://records.test:{seed.split(':')[2]}"
        assert index.place(seed) is not None
        assert index.place(f"{host}/") is None
    with FakeWeb(SITE) as web:
        options = {"resolve": (web.resolve,), "allow_network": ("127.0.0.0/8",)}
        crawled(tmp_path / "two", "http://records.test/", **options)
    files = sorted((tmp_path / "two" / "warc").glob("*.warc.gz"))
    with ReplayIndex(files, cache=tmp_path / "cache") as index:
        asyncio.run(crawled_from(index, tmp_path / "three", "http://records.test/"))
    assert told(tmp_path / "three") == told(tmp_path / "two")
    assert len(told(tmp_path / "two")) >= 5


def archive(path: Path, *records: tuple[str, str, list[tuple[str, str]], bytes], packed: bool = True) -> Path:
    """A file of responses: URL, status line, fields, body."""
    written = []
    for number, (url, status, fields, body) in enumerate(records):
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        block = f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body
        record = (
            (
                f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-01T00:00:{number:02}Z\r\n"
                f"WARC-Record-ID: <urn:uuid:0-{number}>\r\nContent-Type: application/http;msgtype=response\r\n"
                f"Content-Length: {len(block)}\r\n\r\n"
            ).encode()
            + block
            + b"\r\n\r\n"
        )
        written.append(gzip.compress(record) if packed else record)
    path.write_bytes(b"".join(written))
    return path


HTML = [("Content-Type", "text/html")]


@pytest.mark.parametrize("packed", [True, False])
def test_answers_over_https_and_http_come_from_one_port(tmp_path: Path, packed: bool) -> None:
    one = archive(
        tmp_path / "1.warc", ("https://a.test/", "200 OK", HTML, b'<a href="http://b.test/x">x</a>'), packed=packed
    )
    two = archive(tmp_path / "2.warc", ("http://b.test/x", "200 OK", HTML, b'<a href="/missing">m</a>'), packed=packed)
    with ReplayIndex([one, two], cache=tmp_path / "cache") as index:
        assert len(index) == 2
        summary = asyncio.run(crawled_from(index, tmp_path / "c", "https://a.test/"))
    assert summary.outcomes["ok"] == 2
    assert summary.outcomes["client_error"] == 1


def test_chunks_of_the_wire_are_taken_out_and_codings_stay(tmp_path: Path) -> None:
    fields = [*HTML, ("Transfer-Encoding", "chunked"), ("X-Kept", "yes")]
    path = archive(
        tmp_path / "a.warc.gz", ("http://a.test/", "200 OK", fields, b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
    )
    with ReplayIndex([path], cache=tmp_path / "cache") as index:
        answer = stored(index, "http://a.test/")
    assert answer is not None
    assert answer.body == b"abcde"
    assert dict(answer.fields) == {b"Content-Type": b"text/html", b"X-Kept": b"yes"}


def test_an_index_is_made_once_and_again_when_a_file_changes(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.warc.gz", ("http://a.test/", "200 OK", HTML, b"1"))
    for _ in range(2):
        with ReplayIndex([path], cache=tmp_path / "cache") as index:
            assert len(index) == 1
    assert len(list((tmp_path / "cache").iterdir())) == 1
    archive(path, ("http://a.test/", "200 OK", HTML, b"1"), ("http://a.test/2", "200 OK", HTML, b"22"))
    with ReplayIndex([path], cache=tmp_path / "cache") as index:
        assert len(index) == 2


def test_recorded_times_are_kept(tmp_path: Path) -> None:
    with FakeWeb({"/": '<a href="/slow">slow</a>', "/slow": FakePage("slow", latency=0.2)}) as web:
        crawled(tmp_path / "c", web.url("/"))
        slow = web.url("/slow")
    with ReplayIndex(sorted((tmp_path / "c" / "warc").glob("*.warc.gz")), cache=tmp_path / "cache") as index:
        assert index.seconds(slow) >= 0.2


@pytest.mark.parametrize(("content", "says"), [(b"not an archive\n", "cannot be served"), (None, "cannot be read")])
def test_what_is_no_archive_is_refused_in_one_line(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "a.warc.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReplayError, match=says), ReplayIndex([path], cache=tmp_path / "cache"):
        pass
    assert not list((tmp_path / "cache").glob("*")) if (tmp_path / "cache").exists() else True


def test_archives_of_others_are_served(tmp_path: Path) -> None:
    data = os.environ.get("GOSSAMER_TEST_DATA")
    if not data:
        pytest.skip("GOSSAMER_TEST_DATA names no corpora")
    folder = Path(data, "warc-warcio")
    files = [
        folder / name for name in ("example.warc", "example.warc.gz", "example.arc", "example-iana.org-chunked.warc")
    ]
    with ReplayIndex(files, cache=tmp_path / "cache") as index:
        for url in ("http://example.com/", "http://www.iana.org/"):
            answer = stored(index, url)
            assert answer is not None
            assert answer.status.startswith(b"200")
            assert answer.body


def test_the_command_serves_files_and_says_how_to_crawl_them(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.warc.gz", ("http://a.test/", "200 OK", HTML, b"1"))
    process = subprocess.Popen(
        [sys.executable, "-m", "gossamer", "simweb", "--port", "0", "--warc", str(path)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Serving 1 URLs of 1 files at 127.0.0.1:")
    assert "gossamer crawl http://a.test/ --scope any --resolve '*=127.0.0.1:" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=HUNG_AFTER)
    assert process.returncode == 0


def test_files_without_the_option_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simweb", "a.warc.gz"]) == 2
    assert "--warc" in capsys.readouterr().err
