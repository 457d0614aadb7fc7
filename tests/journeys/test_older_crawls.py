"""Crawls that older versions began go on, whatever has changed since in wirings and ledgers.

`older_crawls.tar.xz` holds crawls of three hosts with eight pages each, one for each shape of a wiring or ledger that a version has
written, named after the commit whose code began it and the options that it was given. Each was stopped by `--max-pages`.
"""

import json
import os
import subprocess
import sys
import tarfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.sampling import sampled

from gossamer.testing.clock import HUNG_AFTER

_CRAWLS = Path(__file__).parent / "older_crawls.tar.xz"

#: The pages that each of these crawls has in the end.
_PAGES = {f"http://127.0.0.{host}/{page or ''}" for host in (80, 81, 82) for page in range(8) if page != 0} | {
    f"http://127.0.0.{host}/" for host in (80, 81, 82)
}


def names() -> list[str]:
    """The crawls of the archive."""
    with tarfile.open(_CRAWLS) as archive:
        return sorted({member.name.partition("/")[0] for member in archive})


class _Proxy(ThreadingHTTPServer):
    """Answers for the three hosts, which have no servers here, as their proxy; keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.asked: list[str] = []


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Page N links to the pages 2N+1 and 2N+2."""
        assert isinstance(self.server, _Proxy)
        self.server.asked.append(self.path)
        name = self.path.rpartition("/")[2]
        number = int(name) if name.isdigit() else 0
        links = "".join(f'<a href="/{n}">{n}</a>' for n in (2 * number + 1, 2 * number + 2) if n < 8)
        body = f"<title>{number}</title><p>Page {number} of this site has words of its own {number}{links}".encode()
        if name == "robots.txt":
            body = b"User-agent: *\nAllow: /\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain" if name == "robots.txt" else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def proxy() -> Iterator[_Proxy]:
    with _Proxy() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def visited(directory: Path) -> list[str]:
    """Pages that the log of a crawl tells of."""
    rows = map(json.loads, (directory / "logs" / "crawl.jsonl").read_text(encoding="utf-8").splitlines())
    return [row["url"] for row in rows if row.get("outcome") == "ok" and not row["url"].endswith("robots.txt")]


@pytest.mark.parametrize("name", sampled(names(), 3))
def test_a_crawl_of_every_older_version_goes_on_and_has_each_page_once(
    name: str, tmp_path: Path, proxy: _Proxy
) -> None:
    with tarfile.open(_CRAWLS) as archive:
        archive.extractall(tmp_path, [one for one in archive if one.name.startswith(f"{name}/")], filter="data")
    directory = tmp_path / name
    assert 0 < len(visited(directory)) < len(_PAGES)
    more = ["--recrawl", "never"] if name.endswith("recrawl") else []
    found = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "gossamer", "resume", str(directory), "--max-pages", "100"),
            *("--linger", "1s", "--proxy", f"http://127.0.0.1:{proxy.server_port}", *more),
        ],
        capture_output=True,
        text=True,
        timeout=HUNG_AFTER,
        env={**os.environ, "GOSSAMER_CONTACT": ""},
    )
    assert found.returncode == 0, found.stderr
    assert Counter(visited(directory)) == Counter(_PAGES)
    assert _PAGES & {*proxy.asked}
