"""The fake web says what it does and does what it says."""

import asyncio
import urllib.request
from typing import Any

from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb


async def talk(web: FakeWeb, text: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(text.replace("\n", "\r\n").encode())
    data = await reader.read()
    writer.close()
    return data


def test_a_tree_knows_its_pages(run: Any) -> None:
    async def body() -> None:
        async with FakeWeb.tree(2, 3) as web:
            assert len(web.expected) == 13
            assert web.url("/2/1") in web.expected
            assert 'href="/2/1"' in (await talk(web, "GET /2 HTTP/1.1\nHost: x\nConnection: close\n\n")).decode()

    run(body())


def test_a_graph_expects_what_its_root_reaches(run: Any) -> None:
    async def body() -> None:
        async with FakeWeb.graph({"/": ["/a", "/gone"], "/a": ["/"], "/island": []}) as web:
            assert web.expected == {web.url("/"), web.url("/a")}
            assert b"404" in await talk(web, "GET /gone HTTP/1.1\nHost: x\nConnection: close\n\n")

    run(body())


def test_hosts_share_a_port_and_requests_are_logged(run: Any) -> None:
    def echo(request: FakeRequest) -> str:
        return f"{request.host}{request.target}"

    async def body() -> None:
        async with FakeWeb({"http://a.test/": "of a", "/": "of all", "/echo": echo}) as web:
            asked = "GET / HTTP/1.1\nHost: a.test\n\nGET / HTTP/1.1\nHost: b.test:80\n\n"
            data = await talk(web, asked + "GET /echo?q HTTP/1.1\nHost: c.test\nConnection: close\n\n")
            assert [part in data for part in (b"of a\n", b"of all", b"c.test/echo?q")] == [False, True, True]
            assert data.startswith(b"HTTP/1.1 200 OK\r\n")
            assert web.targets() == ["/", "/", "/echo?q"]
            assert [request.connection for request in web.requests] == [0, 0, 0]

    run(body())


def test_it_serves_from_a_thread() -> None:
    with FakeWeb({"/": FakePage("threaded", chunked=True)}) as web:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert opener.open(web.url()).read() == b"threaded"
    assert web.targets() == ["/"]


def test_the_clock_wakes_sleepers_in_order_and_at_their_time(run: Any) -> None:
    async def body() -> None:
        clock, woken = FakeClock(), []

        async def sleeper(seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append((seconds, clock.monotonic()))

        tasks = [asyncio.ensure_future(sleeper(seconds)) for seconds in (3, 1, 2)]
        await clock.advance(2.5)
        assert woken == [(1, 1), (2, 2)]
        assert clock.asleep == 1
        clock.jump(-3600)
        assert clock.monotonic() == 2.5
        await clock.advance(1)
        assert woken[-1] == (3, 3)
        await asyncio.gather(*tasks)

    run(body())
