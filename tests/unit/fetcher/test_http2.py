"""HTTP/2, where it is switched on: spoken by libcurl, kept and judged as 1.1 (design question 10; fault 23)."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task

h2 = pytest.importorskip("h2", reason="the package h2 is the other side of this test")
pytest.importorskip("h2.exceptions")
h2_config = pytest.importorskip("h2.config")
h2_connection = pytest.importorskip("h2.connection")
h2_events = pytest.importorskip("h2.events")
tls = pytest.importorskip("gossamer.simweb.tls")

Answer = Callable[[Any, int, asyncio.StreamWriter], None]
HTML = b"<!doctype html><title>two</title>"


class Server:
    """A server that speaks HTTP/2 alone, and answers each path as it is told."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.port = 0
        self.connections = 0
        self.requests: list[dict[str, str]] = []
        self.under_way: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.under_way.add(asyncio.current_task())
        connection = h2_connection.H2Connection(h2_config.H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        try:
            while data := (writer.write(connection.data_to_send()) or await reader.read(65536)):
                for event in connection.receive_data(data):
                    if isinstance(event, h2_events.RequestReceived):
                        fields = dict(event.headers)
                        self.requests.append(fields)
                        self.answers[fields[":path"]](connection, event.stream_id, writer)
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            writer.close()


def page(body: bytes = HTML, status: str = "200", *fields: tuple[str, str]) -> Answer:
    def answer(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
        head = [(":status", status), ("content-type", "text/html"), *fields]
        connection.send_headers(stream, head, end_stream=not body)
        if body:
            connection.send_data(stream, body, end_stream=True)

    return answer


def early(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
    connection.send_headers(stream, [(":status", "103"), ("link", "</x>")])
    page()(connection, stream, writer)


def cut(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
    connection.send_headers(stream, [(":status", "200"), ("content-type", "text/html")])
    connection.send_data(stream, HTML)
    connection.reset_stream(stream, 2)


def silent(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
    for _ in range(2000):
        connection.ping(b"a ping..")


def continuations(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
    """A head in a hundred thousand frames, none of them the last (CVE-2024-27316 and its kin)."""
    writer.write(connection.data_to_send())
    writer.write(b"\0\0\1\1\0" + struct.pack("!I", stream) + b"\x88")
    writer.write((b"\0\0\0\x09\0" + struct.pack("!I", stream)) * 100_000)


def settings(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
    """A hundred thousand SETTINGS, each to be acknowledged (CVE-2019-9515)."""
    writer.write(connection.data_to_send())
    writer.write((b"\0\0\6\4\0" + struct.pack("!IHI", 0, 3, 100)) * 100_000)


def table(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
    """A head of 11 KB whose references to one field of 3 KB unfold to 24 MB (CVE-2016-6581)."""
    fields = b"\x88\x40\x01x\x7f\xb9\x16" + b"y" * 3000 + b"\xbe" * 8000
    writer.write(connection.data_to_send())
    writer.write(struct.pack("!I", len(fields))[1:] + b"\1\5" + struct.pack("!I", stream) + fields)


def resets(connection: Any, stream: int, writer: asyncio.StreamWriter) -> None:
    """A hundred thousand RST_STREAM for the one stream there is."""
    writer.write(connection.data_to_send())
    writer.write((b"\0\0\4\3\0" + struct.pack("!II", stream, 8)) * 100_000)


@asynccontextmanager
async def speaking(
    fetching: Any, folder: Path, answers: dict[str, Answer], clock: FakeClock | None = None, **settings: Any
) -> AsyncIterator[tuple[HttpModule, Server]]:
    authority = tls.Authority()
    trusted = folder / "ca.pem"
    trusted.write_bytes(authority.certificate)
    context: ssl.SSLContext = authority.fixed_context("a.test")
    context.set_alpn_protocols(["h2"])
    server = Server(answers)
    async with FakeWeb({}) as web, await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context) as listening:
        web.port = listening.sockets[0].getsockname()[1]
        sheet = HttpSheet(ca_file=str(trusted), http2=True, **settings)
        async with fetching(web, sheet, clock) as module:
            yield module, server
        await asyncio.gather(*filter(None, server.under_way))


def task(path: str) -> Task:
    return Task(f"https://a.test{path}", host="a.test")


@pytest.mark.parametrize(
    ("answer", "outcome", "status", "body"),
    [
        (page(), Outcome.OK, 200, HTML),
        (early, Outcome.OK, 200, HTML),
        (page(b"", "204"), Outcome.OK, 204, b""),
        (page(b"gone", "404"), Outcome.CLIENT_ERROR, 404, b"gone"),
        (page(HTML, "200", *[(f"x-{n}", "y") for n in range(4_100)]), Outcome.PROTOCOL_FAILED, 0, b""),
        (cut, Outcome.TRUNCATED, 200, HTML),
        (continuations, Outcome.PROTOCOL_FAILED, 0, b""),
    ],
)
def test_answers(
    run: Any, fetching: Any, tmp_path: Path, answer: Answer, outcome: Outcome, status: int, body: bytes
) -> None:
    async def whole() -> None:
        async with speaking(fetching, tmp_path, {"/": answer, "/well": page()}) as (module, _):
            response = await module.fetch(task("/"))
            assert (response.outcome, response.status, response.body) == (outcome, status, body), response.error
            if status:
                assert response.response_head.startswith(b"HTTP/1.1 %d" % status)
                assert response.header("content-type") == "text/html"
                assert not response.header("link")
            # libcurl may see only at the next request that a connection has been given up; that is a try of its own.
            tries = [(await module.fetch(task("/well"))).outcome for _ in range(2)]
            assert tries[1] is Outcome.OK
            assert not status or tries[0] is Outcome.OK

    run(whole())


@pytest.mark.parametrize("flood", [continuations, settings, table, resets])
def test_a_flood_of_frames_costs_one_connection_and_the_host_goes_on(
    run: Any, fetching: Any, tmp_path: Path, flood: Answer
) -> None:
    async def whole() -> None:
        async with speaking(fetching, tmp_path, {"/": flood, "/well": page()}) as (module, _):
            response = await module.fetch(task("/"))
            assert (response.outcome, response.status, response.body) == (Outcome.PROTOCOL_FAILED, 0, b"")
            # libcurl may see only at the next request that a flooded connection has been given up.
            tries = [(await module.fetch(task("/well"))).outcome for _ in range(2)]
            assert tries[1] is Outcome.OK

    run(whole())


@pytest.mark.parametrize(("asked", "told"), [(True, "HTTP/2"), (False, "")])
def test_the_version_that_was_spoken_is_told_where_timings_are(
    run: Any, fetching: Any, tmp_path: Path, asked: bool, told: str
) -> None:
    async def whole() -> None:
        async with speaking(fetching, tmp_path, {"/": page()}, timings=asked) as (module, _):
            assert (await module.fetch(task("/"))).version == told

    run(whole())


def test_one_connection_serves_all_and_the_request_is_kept_as_1_1(run: Any, fetching: Any, tmp_path: Path) -> None:
    async def whole() -> None:
        async with speaking(fetching, tmp_path, {"/": page(), "/%7e?q": page()}) as (module, server):
            for path in ("/", "/%7e?q", "/"):
                response = await module.fetch(task(path))
                assert response.request_head.startswith(f"GET {path} HTTP/1.1\r\nHost: a.test\r\n".encode())
            assert server.connections == 1
            assert [request[":path"] for request in server.requests] == ["/", "/%7e?q", "/"]
            assert {request["user-agent"][:8] for request in server.requests} == {"Gossamer"}

    run(whole())


def test_a_server_that_only_pings_meets_the_deadline(run: Any, fetching: Any, tmp_path: Path) -> None:
    async def whole() -> None:
        clock = FakeClock()
        async with speaking(fetching, tmp_path, {"/": silent}, clock) as (module, server):
            waiting = asyncio.ensure_future(module.fetch(task("/")))
            while not server.requests:
                await asyncio.sleep(0)
            await clock.advance(0.0, turns=500)
            while not waiting.done():
                await clock.advance(1.0, turns=20)
            assert (await waiting).outcome in (Outcome.TIMED_OUT, Outcome.PROTOCOL_FAILED)
            assert clock.monotonic() <= 35

    run(whole())


def test_without_the_setting_it_is_not_offered(run: Any, fetching: Any, tmp_path: Path) -> None:
    async def whole() -> None:
        async with speaking(fetching, tmp_path, {"/": page()}) as (module, server):
            module.sheet = HttpSheet(ca_file=module.sheet.ca_file)
            module.changed(module.sheet)
            response = await module.fetch(task("/"))
            # A server that speaks nothing else is asked in 1.1, and answers in a language that was not agreed.
            assert response.outcome is Outcome.PROTOCOL_FAILED or response.outcome is Outcome.TLS_FAILED
            assert not server.requests

    run(whole())
