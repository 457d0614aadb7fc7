"""What a request says: validators, credentials for their site alone, cookies, and a proxy where one is configured."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gossamer.engine.errors import SettingError
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.proxies import Proxy
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task


def test_a_task_with_validators_asks_whether_its_copy_is_still_good(run: Any, fetching: Any) -> None:
    def page(request: FakeRequest) -> FakePage:
        same = request.header("if-none-match") == 'W/"1"' and request.header("if-modified-since") == "yesterday"
        return FakePage("", status=304) if same else FakePage("anew")

    async def body() -> None:
        async with FakeWeb({"/": page}) as web, fetching(web) as module:
            plain = Task(web.url(), host="host")
            known = Task(web.url(), host="host", etag='W/"1"', last_modified="yesterday")
            for task, outcome in ((plain, Outcome.OK), (known, Outcome.NOT_MODIFIED), (plain, Outcome.OK)):
                response = await module.fetch(task)
                assert response.outcome is outcome
                assert web.requests[-1].head == response.request_head

    run(body())


@pytest.mark.parametrize("etag", ['"a"\r\nX-Evil: 1', '"\u00e9"', '"' + "x" * 1000 + '"', '"a\0b"', " "])
def test_a_validator_that_could_do_harm_is_not_sent(run: Any, fetching: Any, etag: str) -> None:
    async def body() -> None:
        async with FakeWeb({"/": "page"}) as web, fetching(web) as module:
            await module.fetch(Task(web.url(), host="host", etag=etag, last_modified=etag))
            assert b"If-" not in web.requests[0].head
            assert b"Evil" not in web.requests[0].head

    run(body())


def test_credentials_go_to_their_site_alone_and_never_into_the_archive(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({}) as web:
            entries = (
                f"http://a.test:{web.port} Authorization: Basic c2VjcmV0",
                f"http://a.test:{web.port} Cookie: s=1",
            )
            async with fetching(web, HttpSheet(credentials=entries)) as module:
                for url in (f"http://a.test:{web.port}/", f"http://b.test:{web.port}/", "http://a.test/"):
                    response = await module.fetch(Task(url, host="host"))
                    assert b"c2VjcmV0" not in response.request_head
                    assert b"s=1" not in response.request_head
            assert [request.header("authorization") for request in web.requests] == ["Basic c2VjcmV0", "", ""]
            assert [request.header("cookie") for request in web.requests] == ["s=1", "", ""]

    run(body())


@pytest.mark.parametrize(
    ("make", "secret"),
    [
        (lambda: HttpModule(HttpSheet(credentials=("https://a.test secret",))), "secret"),
        (lambda: HttpModule(HttpSheet(credentials=("a.test Cookie: secret",))), "secret"),
        (lambda: HttpModule(HttpSheet(credentials=("ftp://a.test/ Cookie: secret",))), "secret"),
        (lambda: HttpModule(HttpSheet(header=("Authorization: secret",))), "secret"),
        (lambda: HttpModule(HttpSheet(header=("cookie: secret",))), "secret"),
        (lambda: Proxy("http://me:secret@proxy.test"), "secret"),
        (lambda: Proxy("https://me:secret@proxy.test:1"), "secret"),
        (lambda: Proxy("http://me:secret@proxy.test:99999"), "secret"),
    ],
)
def test_a_refused_credential_is_not_told(make: Callable[[], object], secret: str) -> None:
    with pytest.raises(SettingError) as refusal:
        make()
    assert secret not in str(refusal.value)


def test_cookies_are_off_unless_asked_for(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage("page", headers=(("Set-Cookie", "id=1"),))}) as web:
            for cookies, expected in (("off", ["", ""]), ("host", ["", "id=1"])):
                web.requests.clear()
                async with fetching(web, HttpSheet(cookies=cookies)) as module:
                    for _ in range(2):
                        response = await module.fetch(Task(web.url(), host="host"))
                        assert web.requests[-1].head == response.request_head
                assert [request.header("cookie") for request in web.requests] == expected

    run(body())


def test_a_field_that_looks_secret_is_sent_where_it_is_for_and_never_archived(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({}) as web:
            sheet = HttpSheet(
                header=("X-Plain: p",),
                headers={"a.test": ("X-Api-Key: k1", "X-Own: o")},
                credentials=("http://b.test:* X-Token: k2",),
            )
            async with fetching(web, sheet) as module:
                for host in ("a.test", "b.test", "c.test"):
                    response = await module.fetch(Task(f"http://{host}:{web.port}/", host="host"))
                    assert b"k1" not in response.request_head and b"k2" not in response.request_head
                    assert (b"X-Own: o" in response.request_head) == (host == "a.test")
            for name, sent in (("x-plain", "ppp"), ("x-api-key", "k1"), ("x-own", "o"), ("x-token", "k2")):
                assert "".join(request.header(name) for request in web.requests) == sent
            assert [bool(request.header("x-token")) for request in web.requests] == [False, True, False]

    run(body())


def test_a_cookie_goes_back_octet_by_octet(run: Any, fetching: Any) -> None:
    octets = "n=J\u00f6rg; \u6625[0]=\u00e0".encode()

    async def body() -> None:
        cookies = [("Set-Cookie", cookie.decode("latin-1")) for cookie in octets.split(b"; ")]
        async with (
            FakeWeb({"/": FakePage("page", headers=tuple(cookies))}) as web,
            fetching(web, HttpSheet(cookies="host")) as module,
        ):
            for _ in range(2):
                response = await module.fetch(Task(web.url(), host="host"))
            assert web.requests[-1].head == response.request_head
            assert b"\r\nCookie: " + octets + b"\r\n" in response.request_head

    run(body())


def test_a_proxy_gets_every_request_and_its_own_password_alone(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({"http://a.test/x": "through"}) as web:
            proxy = f"http://me:p%40ss@127.0.0.1:{web.port}"
            async with fetching(web, HttpSheet(proxy=(proxy,))) as module:
                for url, status in (("http://a.test/x", 200), ("http://b.test/%7e", 404), ("http://a.test/x", 200)):
                    response = await module.fetch(Task(url, host="host"))
                    assert response.status == status
                    assert response.address == ""
                    assert web.requests[-1].target == url
                    assert web.requests[-1].header("proxy-authorization") == "Basic bWU6cEBzcw=="
                    assert b"uthorization" not in response.request_head
                    assert not web.requests[-1].header("proxy-connection")
                for url in ("http://127.0.0.2:22/", "http://169.254.169.254/", "http://intranet/"):
                    assert (await module.fetch(Task(url, host="host"))).outcome is Outcome.ADDRESS_REFUSED
            assert len(web.requests) == 3

    run(body())


def test_a_proxy_that_lets_nobody_through_is_connect_failed(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({}) as web:

            def refuse(request: FakeRequest) -> FakePage:
                return FakePage("", status=407, headers=(("Proxy-Authenticate", "Basic"),))

            web.answer = refuse  # type: ignore[method-assign]
            async with fetching(web, HttpSheet(proxy=(f"http://127.0.0.1:{web.port}",))) as module:
                plain = await module.fetch(Task("http://a.test/", host="host"))
                tunnel = await module.fetch(Task("https://a.test/", host="host"))
            assert (plain.outcome, plain.status) == (Outcome.CLIENT_ERROR, 407)
            assert (tunnel.outcome, tunnel.status) == (Outcome.CONNECT_FAILED, 0)
            assert [request.method for request in web.requests] == ["GET", "CONNECT"]
        async with fetching(web, HttpSheet(proxy=(f"http://127.0.0.1:{web.port}",))) as module:
            gone = await module.fetch(Task("http://a.test/", host="host"))
            assert gone.outcome is Outcome.CONNECT_FAILED

    run(body())


def test_what_a_proxy_says_of_its_tunnel_is_no_answer(run: Any, fetching: Any) -> None:
    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Connection established\r\nX-Forged: 1\r\n\r\n")
        writer.write(b"no TLS at all, and nothing that may pass for an answer")
        await writer.drain()
        writer.close()

    async def body() -> None:
        server = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with FakeWeb({}) as web, fetching(web, HttpSheet(proxy=(f"http://127.0.0.1:{port}",))) as module:
            response = await module.fetch(Task("https://a.test/", host="host"))
            assert (response.outcome, response.status, response.headers) == (Outcome.TLS_FAILED, 0, ())
        server.close()
        await server.wait_closed()

    run(body())


def test_timings_are_told_where_they_were_asked_for(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({"/": "page"}) as web:
            async with fetching(web) as module:
                assert (await module.fetch(Task(web.url(), host="host"))).timings is None
            async with fetching(web, HttpSheet(timings=True)) as module:
                timings = (await module.fetch(Task(web.url(), host="host"))).timings
                assert timings is not None
                assert 0 < timings.connect <= timings.first_byte
                assert timings.tls == 0

    run(body())
