"""What drives transfers: sockets stay where they are between requests, and nothing that libcurl waits for is lost."""

import asyncio
import os
import select
from collections.abc import Callable
from typing import Any

import pycurl
import pytest

from gossamer.fetcher.driver import Driver, EpollDriver, LoopDriver, driver
from gossamer.testing.fakeweb import FakePage, FakeWeb

HAS_EPOLL = hasattr(select, "epoll")
KINDS = [LoopDriver, pytest.param(EpollDriver, marks=pytest.mark.skipif(not HAS_EPOLL, reason="Linux has epoll"))]

Kind = Callable[[], Driver]


def handle(web: FakeWeb, path: str = "/") -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, web.url(path))
    curl.setopt(pycurl.NOPROXY, "*")
    curl.setopt(pycurl.WRITEFUNCTION, len)
    return curl


@pytest.fixture(name="kind", params=KINDS)
def _kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


def test_this_system_gets_the_best_that_it_has(run: Any) -> None:
    async def body() -> None:
        made = driver()
        assert isinstance(made, EpollDriver if HAS_EPOLL else LoopDriver)
        await made.close()

    run(body())


def test_transfers_end_and_connections_are_used_again(run: Any, kind: Kind) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage("x" * 100_000)}) as web:
            made = kind()
            for _ in range(3):
                curl = handle(web)
                assert await made.add(curl) is curl
                assert curl.getinfo(pycurl.RESPONSE_CODE) == 200
                made.discard(curl)  # it is out already
            assert web.connections == 1
            await asyncio.gather(*(made.add(handle(web)) for _ in range(5)))
            await made.close()

    run(body())


def test_a_transfer_that_was_stopped_goes_on_when_it_is_told(run: Any, kind: Kind) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage("x" * 300_000)}) as web:
            made, came, stops = kind(), [0], iter([True, False, True])

            def take(data: bytes) -> int | None:
                if next(stops, False):
                    asyncio.get_running_loop().call_later(0.01, curl.pause, pycurl.PAUSE_CONT)
                    return int(pycurl.WRITEFUNC_PAUSE)
                came[0] += len(data)
                return None

            curl = handle(web)
            curl.setopt(pycurl.WRITEFUNCTION, take)
            await made.add(curl)
            assert came == [300_000]
            await made.close()

    run(body())


def test_a_transfer_that_fails_says_why(run: Any, kind: Kind) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage("x" * 1000, cut=10)}) as web:
            made = kind()
            with pytest.raises(pycurl.error) as caught:
                await made.add(handle(web))
            assert caught.value.args[0] == pycurl.E_PARTIAL_FILE
            await made.close()

    run(body())


def test_the_instants_of_one_transfer_are_kept_while_others_begin(run: Any, kind: Kind) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage("quick"), "/never": FakePage(silent=True)}) as web:
            made = kind()
            slow = handle(web, "/never")
            slow.setopt(pycurl.TIMEOUT_MS, 30)
            waiting = made.add(slow)
            await asyncio.gather(*(made.add(handle(web)) for _ in range(3)))
            with pytest.raises(pycurl.error) as caught:
                await waiting
            assert caught.value.args[0] == pycurl.E_OPERATION_TIMEDOUT
            await made.close()

    run(body())


def test_a_discarded_transfer_leaves_its_server(run: Any, kind: Kind) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage(silent=True), "/next": FakePage("x")}) as web:
            made = kind()
            given_up = handle(web)
            future = made.add(given_up)
            while not web.requests:
                await asyncio.sleep(0)
            made.discard(given_up)
            made.discard(given_up)
            await made.add(handle(web, "/next"))
            assert web.connections == 2, "a connection with an answer to come was used again"
            assert not future.done() or future.cancelled()
            await made.close()

    run(body())


def test_closing_ends_what_is_under_way(run: Any, kind: Kind) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage(silent=True)}) as web:
            made = kind()
            future = made.add(handle(web))
            while not web.requests:
                await asyncio.sleep(0)
            await made.close()
            await made.close()
            assert made.closed
            assert future.cancelled()
            with pytest.raises((pycurl.error, RuntimeError)):
                made.add(handle(web))

    run(body())


class Counting(EpollDriver):
    """Counts how often the loop calls it."""

    woken = 0

    def _on_ready(self) -> None:
        self.woken += 1
        super()._on_ready()

    async def rests(self) -> bool:
        """After some turns of the loop it is left alone."""
        for _ in range(100):
            await asyncio.sleep(0)
        before = self.woken
        for _ in range(100):
            await asyncio.sleep(0)
        return self.woken == before


@pytest.mark.skipif(not HAS_EPOLL, reason="Linux has epoll")
def test_a_server_that_closes_an_idle_connection_does_not_wake_the_loop_for_ever(run: Any) -> None:
    async def body() -> None:
        made = Counting()
        async with FakeWeb({"/": FakePage("x")}) as web:
            await made.add(handle(web))
        assert await made.rests()
        async with FakeWeb({"/": FakePage("x")}) as web:  # perhaps by a socket of the same number
            await made.add(handle(web))
        await made.close()

    run(body())


@pytest.mark.skipif(not HAS_EPOLL, reason="Linux has epoll")
def test_a_closed_socket_that_another_process_holds_does_not_wake_the_loop_for_ever(run: Any) -> None:
    held: list[int] = []

    def hold(fd: int, purpose: int) -> int:
        held.append(os.dup(fd))
        return int(pycurl.SOCKOPT_OK)

    async def body() -> None:
        made = Counting()
        async with FakeWeb({"/": FakePage("x"), "/slow": FakePage(silent=True)}) as web:
            curl = handle(web)
            curl.setopt(pycurl.FORBID_REUSE, 1)
            curl.setopt(pycurl.SOCKOPTFUNCTION, hold)
            under_way = made.add(handle(web, "/slow"))
            while not web.requests:
                await asyncio.sleep(0)
            await made.add(curl)
            os.write(held[0], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")  # and its answer comes to nobody
            assert await made.rests()
            assert len(web.requests) == 3
            assert not under_way.done()
        with pytest.raises(pycurl.error):
            await under_way  # its server has gone: the new set has its socket
        await made.close()

    try:
        run(body())
    finally:
        for fd in held:
            os.close(fd)
