"""Every protocol module of ours keeps the promises of `contracts.fetching`."""

import gzip
from typing import Any

from gossamer.model.outcome import Outcome
from gossamer.services.dns import ResolverSheet, SystemResolver
from gossamer.stages.fetch.http import HttpModule, HttpSheet
from gossamer.testing.fakeweb import FakeWeb, Page, Source
from gossamer.testing.fetching import Case, check_protocol_module

CAP = 10_000
PAGES: dict[str, Source] = {
    "/": "hello",
    "/gzip": Page(gzip.compress(b"hello"), headers=(("Content-Encoding", "gzip"),)),
    "/bomb": Page(gzip.compress(bytes(1 << 20)), headers=(("Content-Encoding", "gzip"),)),
    "/lie": Page(b"plain", headers=(("Content-Encoding", "gzip"),)),
    "/long": Page(b"x" * 50_000),
    "/cut": Page(b"x" * 500, cut=100),
    "/moved": Page("", status=302, headers=(("Location", "/"),)),
    "/same": Page("", status=304),
    "/busy": Page("", status=429),
    "/broken": Page("", status=500),
    "/nonsense": Page(raw=b"nonsense\r\n"),
    "/silent": Page(silent=True),
}


def test_http(run: Any) -> None:
    async def body() -> None:
        async with FakeWeb(PAGES) as web:
            module = HttpModule(HttpSheet(max_body=CAP))
            module.resolver = SystemResolver(ResolverSheet(resolve=(web.resolve,), seed_hosts=("127.0.0.1",)))
            await module.start()
            cases = [
                Case(web.url("/"), Outcome.OK, b"hello"),
                Case(web.url("/gzip"), Outcome.OK, b"hello"),
                Case(web.url("/bomb"), Outcome.TRUNCATED, bytes(CAP)),
                Case(web.url("/lie"), Outcome.DECODE_FAILED, b"plain"),
                Case(web.url("/long"), Outcome.TRUNCATED, b"x" * CAP),
                Case(web.url("/cut"), Outcome.TRUNCATED, b"x" * 100),
                Case(web.url("/moved"), Outcome.REDIRECT),
                Case(web.url("/same"), Outcome.NOT_MODIFIED),
                Case(web.url("/busy"), Outcome.RATE_LIMITED),
                Case(web.url("/broken"), Outcome.SERVER_ERROR),
                Case(web.url("/missing"), Outcome.CLIENT_ERROR),
                Case(web.url("/nonsense"), Outcome.PROTOCOL_FAILED),
                Case("http://other.test/", Outcome.ADDRESS_REFUSED),
                Case("gopher://127.0.0.1/", Outcome.SCHEME_REFUSED),
            ]
            silent = web.url("/silent")
            await check_protocol_module(module, cases, cap=CAP, silent=silent, asked=lambda: len(web.requests))
            await module.stop()

    run(body())
