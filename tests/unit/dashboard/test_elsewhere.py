"""Crawls of dashboards elsewhere are shown as those tell them, and nothing that a stranger answers does harm."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gossamer.dashboard import sites
from gossamer.dashboard.sites import SHOWN, SiteElsewhere, look_elsewhere, save_sites

CRAWL = {"key": "c", "directory": "/srv/c", "standing": {"state": "running", "pages": 7, "queued": 3, "hosts": 2}}


@contextmanager
def dashboard(status: int, body: bytes) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that answers so; its address, and what it was asked with which token."""
    asked: list[tuple[str, str | None]] = []

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()
        thread.join()


@pytest.fixture
def look(tmp_path: Path) -> Callable[[str], SiteElsewhere]:
    def looked(place: str) -> SiteElsewhere:
        path = tmp_path / "sites.json"
        sites = [{"name": "there", "place": place}, {"name": "here", "place": str(tmp_path)}]
        save_sites(path, json.dumps({"sites": sites}).encode())
        [found] = asyncio.run(look_elsewhere(path))
        return found

    return looked


def test_crawls_elsewhere_are_told_with_the_key_that_is_kept(look: Callable[[str], SiteElsewhere]) -> None:
    with dashboard(200, json.dumps([CRAWL] * (SHOWN + 1)).encode()) as (place, asked):
        found = look(f"{place}?token=SECRET")
    assert asked == [("/api/crawls", "Bearer SECRET")]
    assert (found.name, found.trouble, len(found.crawls)) == ("there", "", SHOWN)
    one = found.crawls[0]
    assert one.standing is not None
    assert (one.directory, one.standing.state, one.standing.pages, one.standing.queued) == ("/srv/c", "running", 7, 3)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"", "token is not valid"),
        (302, b"", "status 302"),
        (200, b"<html>", "as a dashboard does"),
        (200, b'[{"directory": 3}]', "as a dashboard does"),
        (200, b"[" + b" " * 2_000_000 + b"]", "too long"),
    ],
)
def test_what_is_no_answer_of_a_dashboard_is_told(
    look: Callable[[str], SiteElsewhere], status: int, body: bytes, said: str
) -> None:
    with dashboard(status, body) as (place, _):
        found = look(place)
    assert said in found.trouble and found.crawls == []


def test_a_dashboard_that_is_away_is_told(look: Callable[[str], SiteElsewhere]) -> None:
    assert "refused" in look("http://127.0.0.1:1/").trouble
    assert sites.PATIENCE < 10, "sites are looked at every ten seconds"
