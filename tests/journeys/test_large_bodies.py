"""Bodies far larger than memory is meant to be: archived whole, and memory does not follow them (row M2)."""

import asyncio
import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.processes import divide
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import build
from gossamer.storage.archive.warc import WarcArchive
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.body import sha1_base32
from gossamer.values.visit import Location, Visit

#: What memory may rise by for a body of any size.
RISE = 64 << 20

MEGABYTE = 1 << 20


def piece(number: int) -> bytes:
    """A megabyte that no other is like, and that does not compress to nothing."""
    return hashlib.shake_128(number.to_bytes(4)).digest(1 << 16) * 16


class _Pages(BaseHTTPRequestHandler):
    """`/` links to what a test asks for; `/N/M` is a body of M megabytes that begins with the N-th piece."""

    protocol_version = "HTTP/1.1"
    links: tuple[str, ...] = ()

    def do_GET(self) -> None:
        if self.path == "/":
            page = "".join(f'<a href="{link}">x</a>' for link in self.links).encode()
            self._head("text/html", len(page))
            self.wfile.write(page)
            return
        if self.path == "/robots.txt":
            self.send_error(404)
            return
        first, size = map(int, self.path.strip("/").split("/"))
        self._head("application/octet-stream", size * MEGABYTE)
        for number in range(first, first + size):
            self.wfile.write(piece(number))

    def _head(self, kind: str, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        pass


@contextmanager
def serving(*links: str) -> Iterator[str]:
    """A site whose root links to these."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Pages", (_Pages,), {"links": links}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(HUNG_AFTER)


def responses(folder: Path) -> Iterator[ArcWarcRecord]:
    """The response records of all archive files."""
    for archive in sorted(folder.glob("warc/*.gz")):
        with archive.open("rb") as stream:
            yield from (record for record in ArchiveIterator(stream) if record.rec_type == "response")


def crawl(seed: str, folder: Path, *options: str) -> dict[str, int]:
    """Crawl in a process of its own, whose memory is its own; returns the summary."""
    command = [
        sys.executable,
        "-m",
        "gossamer",
        "crawl",
        seed,
        "-o",
        str(folder),
        "--json",
        "--quiet",
        "--delay",
        "0",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG_AFTER, env=os.environ)
    assert done.returncode == 0, done.stderr
    summary: dict[str, int] = json.loads(done.stdout)
    return summary


@pytest.mark.parametrize(
    ("links", "size"),
    [pytest.param(["/0/300"], 300, marks=pytest.mark.long), ([f"/{n}/2" for n in range(0, 200, 2)], 200)],
)
def test_memory_does_not_follow_the_size_of_bodies(links: list[str], size: int, tmp_path: Path) -> None:
    with serving("/0/0") as small:
        plain = crawl(small, tmp_path / "plain")
    with serving(*links) as large:
        summary = crawl(large, tmp_path / "large", "--max-page-size", "1GB", "--per-host", "8")
    assert summary["bytes"] > size * MEGABYTE
    assert summary["peak_rss_bytes"] - plain["peak_rss_bytes"] <= RISE
    found = 0
    for record in responses(tmp_path / "large"):
        if record.rec_headers["WARC-Target-URI"].rpartition("/")[2].isdigit():
            content, hashed = record.content_stream(), hashlib.sha1()
            while data := content.read(MEGABYTE):
                hashed.update(data)
                found += len(data)
            digest = base64.b32encode(hashed.digest()).decode()
            assert record.rec_headers["WARC-Payload-Digest"] == f"sha1:{digest}"
    assert found == size * MEGABYTE


class WaitsForSmall(WarcArchive):
    """Lays nothing down before ten small pages are archived: where these wait for it, the crawl never ends."""

    small = 0

    async def lay(self, visit: Visit) -> None:
        async with asyncio.timeout(HUNG_AFTER):
            while self.small < 10:
                await asyncio.sleep(0.001)
        await super().lay(visit)

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        self.small += sum(visit.url.endswith("/0") for visit in visits)
        return super().append(visits)


def test_small_pages_are_kept_while_large_bodies_are_laid_down(tmp_path: Path) -> None:
    known = catalog()
    known.add("warc", WaitsForSmall)
    small, large = [f"/{n}/0" for n in range(1, 11)], ["/0/2", "/2/3", "/9/2"]
    with serving(*large, *small) as seed:
        options = build(all_options(), {"output": str(tmp_path / "c"), "delay": 0, "per_host": 8})
        summary = run(Crawl([seed], options, catalog=known, tables=False))
    assert summary.fetched == 14
    archived = Counter(record.rec_headers["WARC-Target-URI"].removeprefix(seed) for record in responses(tmp_path / "c"))
    assert {path[1:]: archived[path[1:]] for path in large} == dict.fromkeys((path[1:] for path in large), 1)


def test_the_digest_of_a_body_on_disk_is_that_of_its_bytes(tmp_path: Path) -> None:
    with serving("/7/2") as seed:
        crawl(seed, tmp_path / "crawl")
    rows = [json.loads(line) for line in (tmp_path / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines()]
    [row] = [row for row in rows if row["url"] == f"{seed}7/2"]
    assert row["digest"] == sha1_base32(piece(7) + piece(8))
    assert row["sha256"] == hashlib.sha256(piece(7) + piece(8)).hexdigest()


def test_a_body_that_could_not_cross_to_another_process_is_refused_before_anything_starts(tmp_path: Path) -> None:
    wiring = divide(shipped("default"), ["process"], "elsewhere")
    options = CrawlOptions(output=str(tmp_path / "crawl"), max_page_size=1_000_000_000)
    with pytest.raises(WiringError, match="lower --max-page-size"):
        Crawl(["http://127.0.0.1/"], options, wiring=wiring, tables=False)
    Crawl(
        ["http://127.0.0.1/"], msgspec.structs.replace(options, max_page_size=30_000_000), wiring=wiring, tables=False
    )
