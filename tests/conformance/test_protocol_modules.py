"""Every protocol module of ours keeps the promises of `fetcher.contract`."""

import gzip
from typing import Any

from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.fakeweb import FakePage, FakeWeb, Source
from gossamer.testing.fetching import FetchCase, check_protocol_module
from gossamer.values.outcome import Outcome

CAP = 10_000
PAGES: dict[str, Source] = {
    "/": "hello",
    "/gzip": FakePage(gzip.compress(b"hello"), headers=(("Content-Encoding", "gzip"),)),
    "/bomb": FakePage(gzip.compress(bytes(1 << 20)), headers=(("Content-Encoding", "gzip"),)),
    "/lie": FakePage(b"plain", headers=(("Content-Encoding", "gzip"),)),
    "/long": FakePage(b"x" * 50_000),
    "/cut": FakePage(b"x" * 500, cut=100),
    "/moved": FakePage("", status=302, headers=(("Location", "/"),)),
    "/same": FakePage("", status=304),
    "/busy": FakePage("", status=429),
    "/broken": FakePage("", status=500),
    "/nonsense": FakePage(raw=b"nonsense\r\n"),
    "/silent": FakePage(silent=True),
}


def test_http(run: Any) -> None:
    async def body() -> None:
        async with FakeWeb(PAGES) as web:
            module = HttpModule(HttpSheet(max_body=CAP))
            module.resolver = SystemResolver(ResolverSheet(resolve=(web.resolve,), seed_hosts=("127.0.0.1",)))
            await module.start()
            cases = [
                FetchCase(web.url("/"), Outcome.OK, b"hello"),
                FetchCase(web.url("/gzip"), Outcome.OK, b"hello"),
                FetchCase(web.url("/bomb"), Outcome.TRUNCATED, bytes(CAP)),
                FetchCase(web.url("/lie"), Outcome.DECODE_FAILED, b"plain"),
                FetchCase(web.url("/long"), Outcome.TRUNCATED, b"x" * CAP),
                FetchCase(web.url("/cut"), Outcome.TRUNCATED, b"x" * 100),
                FetchCase(web.url("/moved"), Outcome.REDIRECT),
                FetchCase(web.url("/same"), Outcome.NOT_MODIFIED),
                FetchCase(web.url("/busy"), Outcome.RATE_LIMITED),
                FetchCase(web.url("/broken"), Outcome.SERVER_ERROR),
                FetchCase(web.url("/missing"), Outcome.CLIENT_ERROR),
                FetchCase(web.url("/nonsense"), Outcome.PROTOCOL_FAILED),
                FetchCase("http://other.test/", Outcome.ADDRESS_REFUSED),
                FetchCase("gopher://127.0.0.1/", Outcome.SCHEME_REFUSED),
            ]
            silent = web.url("/silent")
            await check_protocol_module(module, cases, cap=CAP, silent=silent, asked=lambda: len(web.requests))
            await module.stop()

    run(body())
