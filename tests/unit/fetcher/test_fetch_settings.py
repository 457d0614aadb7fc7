"""What settings of the protocol modules do, seen in a fetch by a clock of the test's own."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.fetch_stage import FileModule, FileSheet, TransferSheet
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.plain import FtpModule, FtpSheet, GopherModule
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.body import StoredBody
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response

Module = HttpModule | GopherModule | FtpModule
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

#: Each scheme with its module under settings that all three have.
SCHEMES: dict[str, Callable[..., Module]] = {
    "http": lambda **given: HttpModule(HttpSheet(**given)),
    "gopher": lambda **given: GopherModule(TransferSheet(**given)),
    "ftp": lambda **given: FtpModule(FtpSheet(**given)),
}

LONG = b"x" * 5_000


@asynccontextmanager
async def started(module: Module, port: int, clock: FakeClock) -> AsyncIterator[Module]:
    """A module that finds every name at this port of loopback."""
    resolver = SystemResolver(
        ResolverSheet(resolve=("a.test=127.0.0.1",), allow_networks=("127.0.0.0/8",), allow_ports=(port,))
    )
    module.resolver, module.clock = resolver, clock
    await module.start()
    try:
        yield module
    finally:
        await module.stop()
        await resolver.stop()


class Served(NamedTuple):
    """A server that speaks one scheme."""

    port: int
    sent: asyncio.Event
    """All of what it sends is on its way."""


@asynccontextmanager
async def serving(scheme: str, *, stalls: bool) -> AsyncIterator[Served]:
    """Serves a long document, or ten bytes of it and then nothing."""
    held: list[asyncio.StreamWriter] = []
    sent = asyncio.Event()

    async def send(writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        writer.write(LONG[:10] if stalls else LONG)
        await writer.drain()
        if not stalls:
            writer.close()
        sent.set()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if scheme == "ftp":
            await speak_ftp(reader, writer)
            return
        await reader.readline()
        if scheme == "http":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
        await send(writer)

    async def speak_ftp(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        taken: asyncio.Queue[Streams] = asyncio.Queue()
        data = await asyncio.start_server(lambda *streams: taken.put_nowait(streams), "127.0.0.1", 0)
        port = data.sockets[0].getsockname()[1]
        says = {b"USER": "331 go on", b"PASS": "230 in", b"PWD": '257 "/"', b"EPSV": f"229 it is (|||{port}|)"}
        says |= {b"SIZE": f"213 {len(LONG)}", b"RETR": "150 now"}
        writer.write(b"220 here\r\n")
        while line := await reader.readline():
            word = line.split()[0]
            writer.write(f"{says.get(word, '200 fine')}\r\n".encode())
            if word == b"RETR":
                await send((await taken.get())[1])
                writer.write(b"" if stalls else b"226 done\r\n")
        data.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    try:
        yield Served(server.sockets[0].getsockname()[1], sent)
    finally:
        for writer in held:
            writer.close()
        server.close()


def url_of(scheme: str, port: int) -> Task:
    return Task(f"{scheme}://a.test:{port}/{'0' if scheme == 'gopher' else ''}x", "a.test")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_body_is_too_slow_when_its_window_is_over(run: Any, scheme: str) -> None:
    async def body() -> None:
        clock = FakeClock()
        async with (
            serving(scheme, stalls=True) as (port, sent),
            started(SCHEMES[scheme](speed_window=5.0), port, clock) as module,
        ):
            fetch = asyncio.ensure_future(module.fetch(url_of(scheme, port)))
            passed = 0.0
            await sent.wait()
            await clock.advance(0.0, turns=500)
            while not fetch.done() and passed < 29.0:
                await clock.advance(1.0, turns=50)
                passed += 1.0
            response = await fetch
            assert response.outcome is Outcome.TOO_SLOW, response
            assert 5.0 <= passed <= 8.0

    run(body())


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog drops what comes only there")
def test_a_connection_may_take_as_long_as_the_setting_says(run: Any, scheme: str) -> None:
    async def body() -> None:
        clock = FakeClock()
        with ExitStack() as stack:
            deaf = stack.enter_context(socket.socket())
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            for _ in range(4):  # fill its backlog: the first packet of whoever comes later is dropped
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(deaf.getsockname())
            port = deaf.getsockname()[1]
            async with started(SCHEMES[scheme](connect=3.0), port, clock) as module:
                fetch = asyncio.ensure_future(module.fetch(url_of(scheme, port)))
                await clock.advance(0.0, turns=500)
                await clock.advance(2.5, turns=50)
                assert not fetch.done()
                await clock.advance(2.0, turns=50)
                response = await fetch
                assert (response.outcome, response.error) == (
                    Outcome.CONNECT_FAILED,
                    "the server took no connection within 3 s",
                )

    run(body())


def kept_in(response: Response) -> str:
    """The folder in which a body lies."""
    assert isinstance(response.body, StoredBody)
    assert len(response.body) == len(LONG)
    return response.body.file.directory


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_large_body_lies_where_the_setting_says(run: Any, scheme: str, tmp_path: Path) -> None:
    async def body() -> Response:
        module = SCHEMES[scheme](spool=str(tmp_path), spool_above=100)
        async with serving(scheme, stalls=False) as (port, _), started(module, port, FakeClock()) as fetching:
            return await fetching.fetch(url_of(scheme, port))

    assert kept_in(run(body())) == str(tmp_path)


def test_a_large_file_lies_where_the_setting_says(run: Any, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_bytes(LONG)
    module = FileModule(FileSheet(roots=(str(tmp_path),), spool=str(tmp_path), spool_above=100))

    async def body() -> Response:
        await module.start()
        try:
            return await module.fetch(Task((tmp_path / "long.txt").as_uri(), ""))
        finally:
            await module.stop()

    assert kept_in(run(body())) == str(tmp_path)


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_connections_are_open_than_the_setting_says(run: Any, fetching: Any, most: int) -> None:
    async def body() -> None:
        pages = {f"/{number}": FakePage(silent=True) for number in range(3)}
        clock = FakeClock()
        async with FakeWeb(pages) as web, fetching(web, HttpSheet(connections=most), clock) as module:
            fetches = [asyncio.ensure_future(module.fetch(Task(web.url(path), "host"))) for path in pages]
            while len(web.requests) < most:
                await asyncio.sleep(0)
            await clock.advance(0.0, turns=500)
            assert (len(web.requests), web.connections) == (most, most)
            await clock.advance(40.0, turns=500)
            for fetch in fetches:
                fetch.cancel()
            await asyncio.gather(*fetches, return_exceptions=True)

    run(body())


def test_connections_grow_with_the_requests_at_once_unless_their_number_is_set(run: Any, fetching: Any) -> None:
    async def body() -> int:
        pages = {f"/{number}": FakePage(silent=True) for number in range(300)}
        async with FakeWeb(pages) as web, fetching(web, HttpSheet()) as module:
            fetches = [asyncio.ensure_future(module.fetch(Task(web.url(path), "host"))) for path in pages]
            while len(web.requests) < len(pages):
                await asyncio.sleep(0)
            for fetch in fetches:
                fetch.cancel()
            await asyncio.gather(*fetches, return_exceptions=True)
            return web.connections

    assert run(body()) == 300


def test_a_crawl_begins_with_the_cookies_of_a_file(run: Any, fetching: Any, tmp_path: Path) -> None:
    path = tmp_path / "cookies.txt"

    async def body() -> str:
        async with FakeWeb({"/": "x"}) as web:
            path.write_text(f"{host_of(web.url())}\tFALSE\t/\tFALSE\t4102444800\tname\tvalue\n")
            path.chmod(0o600)
            async with fetching(web, HttpSheet(cookie_file=str(path))) as module:
                await module.fetch(Task(web.url(), host_of(web.url())))
            return web.requests[0].header("Cookie")

    assert run(body()) == "name=value"
