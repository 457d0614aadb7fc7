"""Proxies that carry https: tunnels by CONNECT and by SOCKS 5 in turn, and those that are down or let nobody in."""

import base64
import json
import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import gossamer
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakeWeb

pytest.importorskip("cryptography", reason="the package cryptography makes the certificates of this test")

LINKS = "".join(f'<a href="/{number}">{number}</a>' for number in range(8))

SITE = {"/": LINKS, **{f"/{number}": f"<h1>{number}</h1>" for number in range(8)}}


class Tunnel(socketserver.ThreadingTCPServer):
    """A proxy on loopback that leads every name to one server, and notes who wanted to go where."""

    daemon_threads = True
    scheme = ""

    def __init__(self, port: int, user: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Client)
        self.port = port
        self.user = user
        """`NAME:PASSWORD` of the only one who is let in; empty for everybody."""
        self.opened: list[str] = []
        """`HOST:PORT` of each tunnel."""
        self.refused = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, user: str = "") -> str:
        return f"{self.scheme}://{user and f'{user}@'}127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def ask(self, reader: BinaryIO, writer: BinaryIO) -> str:
        """What a client wants; empty where it was refused. What a tunnel begins with is sent."""
        raise NotImplementedError


class ConnectTunnel(Tunnel):
    """RFC 9110, section 9.3.6."""

    scheme = "http"

    def ask(self, reader: BinaryIO, writer: BinaryIO) -> str:
        lines = []
        while (line := reader.readline().strip()) != b"":
            lines.append(line.decode())
        method, target, _ = lines[0].split()
        assert method == "CONNECT", "https goes through tunnels alone"
        given = f"Basic {base64.b64encode(self.user.encode()).decode()}"
        if self.user and f"proxy-authorization: {given}".lower() not in map(str.lower, lines):
            writer.write(b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
            return ""
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        return target


class SocksTunnel(Tunnel):
    """RFC 1928, and RFC 1929 for passwords."""

    scheme = "socks5h"

    def ask(self, reader: BinaryIO, writer: BinaryIO) -> str:
        offered = reader.read(reader.read(2)[1])
        wanted = 2 if self.user else 0
        if wanted not in offered:
            writer.write(b"\x05\xff")
            return ""
        writer.write(bytes([5, wanted]))
        if wanted:
            reader.read(1)
            name, password = (reader.read(reader.read(1)[0]).decode() for _ in range(2))
            is_known = f"{name}:{password}" == self.user
            writer.write(bytes([1, 0 if is_known else 1]))
            if not is_known:
                return ""
        _, command, _, kind = reader.read(4)
        assert (command, kind) == (1, 3), "names are looked up by the proxy"
        host = reader.read(reader.read(1)[0]).decode()
        port = int.from_bytes(reader.read(2))
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        return f"{host}:{port}"


class _Client(socketserver.StreamRequestHandler):
    server: Tunnel
    rbufsize = 0  # what follows the handshake belongs to the tunnel

    def handle(self) -> None:
        wanted = self.server.ask(self.rfile, self.wfile)
        if not wanted:
            self.server.refused += 1
            return
        self.server.opened.append(wanted)
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            _carry(self.connection, there)


def _carry(one: socket.socket, other: socket.socket) -> None:
    """Bytes both ways until an end closes."""
    to = {one: other, other: one}
    while True:
        for ready in select.select([*to], [], [])[0]:
            try:
                data = ready.recv(65536)
                to[ready].sendall(data)
            except OSError:
                return
            if not data:
                return


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    from gossamer.simweb.tls import Authority  # needs cryptography

    made = Authority()
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    path.write_bytes(made.certificate)
    return made.server_context(), path


@pytest.fixture
def web(authority: tuple[Any, Path]) -> Iterator[FakeWeb]:
    with FakeWeb(SITE, tls=authority[0]) as served:
        yield served


def crawled(
    folder: Path, authority: tuple[Any, Path], *proxies: str, **options: Any
) -> tuple[Any, list[dict[str, str]]]:
    """The summary of a crawl of the site by proxies, and its items."""
    spider = gossamer.Spider(
        "https://far.test/",
        proxy=list(proxies),
        ca_file=str(authority[1]),
        contact="me@example.org",
        output=str(folder),
        delay=0,
        domain_delay=0,
        **options,
    )

    @spider.page()
    def every(page: gossamer.Page) -> list[gossamer.Result]:
        return [{"page": page.url, "by": page.text("i"), "as": page.session.name}, *page.follow_all("a")]

    summary = spider.run()
    with Database(folder) as database:
        return summary, [json.loads(row[0]) for row in database.ask("SELECT data FROM items")]


def test_https_goes_by_tunnels_of_both_kinds_in_turn_and_each_knows_its_own_user(
    tmp_path: Path, web: FakeWeb, authority: tuple[Any, Path]
) -> None:
    with ConnectTunnel(web.port, "one:1") as one, SocksTunnel(web.port, "two:2") as two, SocksTunnel(web.port) as three:
        proxies = (one.url("one:1"), two.url("two:2"), three.url())
        summary, items = crawled(tmp_path / "c", authority, *proxies)
        opened, refused = [one.opened, two.opened, three.opened], one.refused + two.refused + three.refused
    assert summary.outcomes == {"ok": 9} and len(items) == 9
    assert all(opened) and refused == 0
    assert {name for names in opened for name in names} == {"far.test:443"}, "names are for the proxies to look up"


def test_of_tunnels_those_that_are_down_or_do_not_know_us_rest_and_nothing_is_lost(
    tmp_path: Path, web: FakeWeb, authority: tuple[Any, Path]
) -> None:
    with SocksTunnel(web.port) as gone:
        down = gone.url()
    with (
        ConnectTunnel(web.port, "me:pw") as strict,
        SocksTunnel(web.port, "me:pw") as wary,
        SocksTunnel(web.port) as open_,
    ):
        proxies = (strict.url("me:no"), wary.url("me:no"), open_.url())
        summary, items = crawled(tmp_path / "c", authority, *proxies)
        refused = [strict.refused, wary.refused]
        other, others = crawled(tmp_path / "d", authority, down, open_.url())
    assert summary.outcomes == other.outcomes == {"ok": 9} and len(items) == len(others) == 9
    assert refused == [1, 1], "who refuses rests, and is not asked again and again"
    assert open_.opened and not strict.opened and not wary.opened


def test_a_session_stays_with_its_tunnel(tmp_path: Path, web: FakeWeb, authority: tuple[Any, Path]) -> None:
    signed = {path: f"{text}<i>two</i>" for path, text in SITE.items()}
    with (
        FakeWeb(signed, tls=authority[0]) as other,
        ConnectTunnel(web.port) as one,
        SocksTunnel(other.port) as two,
    ):
        _, items = crawled(tmp_path / "c", authority, one.url(), two.url(), sessions=4)
    assert len(items) == 9 and {item["by"] for item in items} == {"", "two"}
    assert len({(item["as"], item["by"]) for item in items}) == len({item["as"] for item in items}) == 4
