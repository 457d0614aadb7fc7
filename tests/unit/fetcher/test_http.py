"""http: what is sent, what is kept, and the outcome of everything that a server can do (faults, chapters A and B)."""

import asyncio
import gzip
import random
import socket
import sys
import zlib
from contextlib import ExitStack
from typing import Any

import brotli
import msgspec
import pytest

from gossamer import _version
from gossamer.engine.errors import SettingError
from gossamer.fetcher.contract import Endpoint
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakePage, FakeWeb, Source
from gossamer.values.body import zstandard
from gossamer.values.outcome import Note, Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import ROBOTS, Task
from gossamer.values.visit import Response

zstd = zstandard()

HEAD = b"HTTP/1.1 200 OK\r\n"


def zipped(data: bytes, level: int = 9) -> bytes:
    """Gzip without the time of day, so that every process that collects these tests gives them the same names."""
    return gzip.compress(data, level, mtime=0)


HTML = b"<!doctype html><title>t</title>" * 40


def task(url: str) -> Task:
    return Task(url, host="host")


def one(run: Any, fetching: Any, page: FakePage, sheet: HttpSheet | None = None) -> Response:
    """What comes of fetching a single page."""

    async def body() -> Response:
        async with FakeWeb({"/": page}) as web, fetching(web, sheet) as module:
            response: Response = await module.fetch(task(web.url()))
            return response

    answer: Response = run(body())
    return answer


def test_a_handle_asks_for_each_url_by_its_own_path(run: Any, fetching: Any) -> None:
    # One live request at a time, so one handle: what an escaped path needed must not stay for the next.
    targets = ["/a", "/%c3%a4?q=%20", "/a", "/b?c", "/%7e", "/%7E", "/"]

    async def body() -> None:
        async with FakeWeb({}) as web, fetching(web) as module:
            for target in targets:
                assert (await module.fetch(task(web.url(target)))).outcome is Outcome.CLIENT_ERROR
            assert web.targets() == targets

    run(body())


def test_a_page_is_kept_as_it_came(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({"/": FakePage(HTML, headers=(("X-A", "1"), ("x-a", "2")))}) as web, fetching(web) as module:
            response = await module.fetch(task(web.url()))
            assert (response.outcome, response.status, response.cut, response.error) == (Outcome.OK, 200, "", "")
            assert response.body == response.content == HTML
            assert response.decoded is None
            assert response.address == "127.0.0.1"
            assert response.headers[:2] == (("x-a", "1"), ("x-a", "2"))
            assert response.mime == "text/html"
            assert response.response_head.startswith(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\n")
            assert response.response_head.endswith(b"\r\n\r\n")

    run(body())


@pytest.mark.parametrize(
    "url",
    [
        "http://a.test/",
        "http://a.test/?",
        "http://a.test/a%2Fb/..c/%7e?q=1&r=|{}^[]'%20x",
        "http://a.test:8099/x;y=z",
        "http://a.test./deep/",
        "http://127.0.0.1:8099/",
        "http://[::1]:8099/a",
        "http://a_b.test/%F0%9F%98%80?%00",
    ],
)
def test_the_request_head_is_what_the_server_got(run: Any, fetching: Any, url: str) -> None:
    async def body() -> None:
        sheet = HttpSheet(contact="https://example.org/bot", header=("X-One: 1", "accept: text/plain"))
        async with FakeWeb({}) as web, fetching(web, sheet) as module:
            response = await module.fetch(task(url))
            assert web.requests[0].head == response.request_head
            agent = f"Gossamer/{_version.__version__} (+https://example.org/bot)"
            assert web.requests[0].header("user-agent") == agent
            assert web.requests[0].header("accept") == "text/plain"

    run(body())


def test_a_handle_asks_for_what_each_task_names_whatever_it_asked_for_before(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({}) as web, fetching(web) as module:
            targets = ["/plain", "/with%7escape", "/plain-again", "/", "/%C3%A9?x", "/last"]
            for target in targets:
                assert (await module.fetch(task(web.url(target)))).status == 404
            assert web.targets() == targets

    run(body())


def test_environment_proxies_and_netrc_are_ignored(
    run: Any, fetching: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / ".netrc").write_text("default login me password secret\n")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    monkeypatch.setenv("HOME", str(tmp_path))
    response = one(run, fetching, FakePage(HTML))
    assert response.outcome is Outcome.OK
    assert b"secret" not in response.request_head
    assert b"uthorization" not in response.request_head


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.OK),
        (204, Outcome.OK),
        (206, Outcome.OK),
        (301, Outcome.REDIRECT),
        (304, Outcome.NOT_MODIFIED),
        (404, Outcome.CLIENT_ERROR),
        (407, Outcome.CLIENT_ERROR),
        (429, Outcome.RATE_LIMITED),
        (503, Outcome.SERVER_ERROR),
        (999, Outcome.PROTOCOL_FAILED),
    ],
)
def test_statuses(run: Any, fetching: Any, status: int, outcome: Outcome) -> None:
    page = FakePage("x", status=status, headers=(("Location", "/elsewhere"), ("Retry-After", "7")))
    response = one(run, fetching, page)
    assert (response.outcome, response.status) == (outcome, status)
    assert response.header("retry-after") == "7"


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ("Content-Range: bytes 0-4/5", Outcome.OK),
        ("content-range:  Bytes 0-4/5 ", Outcome.OK),
        ("X: no range, which browsers take for all of it", Outcome.OK),
        ("Content-Range: bytes 0-4/9", Outcome.PROTOCOL_FAILED),
        ("Content-Range: bytes 0-4/*", Outcome.PROTOCOL_FAILED),
        ("Content-Range: bytes 4-8/9", Outcome.PROTOCOL_FAILED),
        ("Content-Range: bytes 0-8/9", Outcome.PROTOCOL_FAILED),
        ("Content-Range: bytes 0-4/5\r\nContent-Range: bytes 5-9/10", Outcome.PROTOCOL_FAILED),
        ("Content-Type: multipart/byteranges; boundary=x", Outcome.PROTOCOL_FAILED),
    ],
)
def test_a_part_that_is_the_whole_document_is_read_and_any_other_is_not(
    run: Any, fetching: Any, fields: str, outcome: Outcome
) -> None:
    head = f"HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n{fields}\r\n\r\n"
    response = one(run, fetching, FakePage(raw=head.encode() + b"hello"))
    assert (response.outcome, response.status) == (outcome, 206)
    assert response.notes == (Note.PART,)


def chunked(*chunks: bytes) -> bytes:
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks)


BROKEN = {
    "nothing": b"",
    "SMTP": b"220 mail.test ESMTP\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "HTTP 0.9": b"<html>hello",
    "ICY": b"ICY 200 OK\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "five bytes before the status line": b"abcdeHTTP/1.1 200 OK\r\n\r\n",
    "status 099": b"HTTP/1.1 099 OK\r\n\r\n",
    "status 101": b"HTTP/1.1 101 Switching\r\n\r\nx",
    "status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "no end of the head": HEAD + b"A: b\r\n",
    "length and chunks": HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "chunks and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a list of lengths that differ": HEAD + b"Content-Length: 3, 4\r\n\r\nabcd",
    "chunks under a spaced name": HEAD + b"Transfer-Encoding : chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "control character in a length": HEAD + b"Content-Length: 3\x01\r\n\r\nabc",
    "chunks of chunks and another": HEAD + b"Transfer-Encoding: chunked, gzip, chunked\r\n\r\n0\r\n\r\n",
    "negative length": HEAD + b"Content-Length: -3\r\n\r\nabc",
    "hexadecimal length": HEAD + b"Content-Length: 0x3\r\n\r\nabc",
    "length 10^30": HEAD + b"Content-Length: 1" + b"0" * 30 + b"\r\n\r\nabc",
    "length in full-width digits": HEAD + "Content-Length: \uff13\r\n\r\nabc".encode(),
    "unasked transfer coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunk size without digits": chunked(b"zz\r\nabc\r\n0\r\n\r\n"),
    "chunk size of 17 digits": chunked(b"fffffffffffffffff\r\nabc"),
    "chunk without line end": chunked(b"3\r\nabcX4\r\n"),
    "NUL in a field": HEAD + b"A: b\0c\r\n\r\n",
    "bare CR in a field": HEAD + b"A: b\rSet-Cookie: c\r\n\r\n",
    "NUL in the reason": b"HTTP/1.1 200 \0\r\n\r\n",
    "length and no coding": HEAD + b"Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc",
    "lengths that differ by a sign": HEAD + b"Content-Length: 3\r\nContent-Length: +4\r\n\r\nabcd",
    "a length and words": HEAD + b"Content-Length: 3 bytes\r\n\r\nabc",
    "length under a spaced name": HEAD + b"Content-Length : 3\r\n\r\nabc",
    "length under a name in quotes": HEAD + b'"Content-Length": 3\r\n\r\nabc',
    "chunks behind a control character": HEAD + b"\x01Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "NUL in a name": HEAD + b"A\0: b\r\n\r\n",
    "a field of 1 MiB": HEAD + b"A: " + b"x" * (1 << 20) + b"\r\n\r\n",
    "a head of 80 KB": HEAD + b"A: " + b"x" * 40_000 + b"\r\nB: " + b"x" * 40_000 + b"\r\n\r\nbody",
    "4001 fields": HEAD + b"A: b\r\n" * 4001 + b"\r\nbody",
    "100,000 fields": HEAD + b"A: b\r\n" * 100_000 + b"\r\n",
    "11 interim answers": b"HTTP/1.1 103 Early\r\n\r\n" * 11 + HEAD + b"\r\nbody",
    "a reason of 1 MiB": b"HTTP/1.1 200 " + b"x" * (1 << 20) + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_proper_http_is_protocol_failed(run: Any, fetching: Any, name: str) -> None:
    response = one(run, fetching, FakePage(raw=BROKEN[name]))
    assert response.outcome is Outcome.PROTOCOL_FAILED, response.error
    assert response.error or response.status in (101, 999)


def test_the_size_of_a_head_is_a_setting(run: Any, fetching: Any) -> None:
    page = FakePage(raw=HEAD + b"A: b\r\n" * 300 + b"\r\nbody")
    assert one(run, fetching, page, HttpSheet(max_fields=300)).outcome is Outcome.OK
    assert one(run, fetching, page, HttpSheet(max_fields=300, max_head=1024)).outcome is Outcome.PROTOCOL_FAILED


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (HEAD + b"\r\nuntil the end", b"until the end"),
        (HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (HEAD + b"Content-Length: 0003\r\n\r\nabc and what does not belong to it", b"abc"),
        (b"HTTP/1.0 200 OK\nA: b\n\nabc", b"abc"),
        (b"HTTP/1.1 200\r\n\r\nabc", b"abc"),
        (HEAD + b"A: b\r\n folded\r\n\r\nabc", b"abc"),
        (HEAD + b"A: \xe9\r\n\r\nabc", b"abc"),
        (HEAD + b"A: b\r\n" * 4000 + b"\r\nabc", b"abc"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" * 10 + HEAD + b"\r\nabc", b"abc"),
        (chunked(b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nContent-Length: 9\r\n\r\n"), b"abcde"),
    ],
)
def test_what_may_be_read_is_read(run: Any, fetching: Any, raw: bytes, body: bytes) -> None:
    response = one(run, fetching, FakePage(raw=raw))
    assert (response.outcome, response.body) == (Outcome.OK, body), response.error
    assert response.response_head.count(b"\r\n\r\n") == 1
    assert response.header("link") == ""
    assert b"Content-Length: 9" not in response.response_head


@pytest.mark.parametrize(
    ("raw", "notes"),
    [
        (HEAD + b"X-A : 1\r\nContent-Length: 3\r\n\r\nabc", (Note.SPACED_NAME,)),
        (HEAD + b"X-A\t: 1\r\nX-B : 1\r\nContent-Length: 3\r\n\r\nabc", (Note.SPACED_NAME,)),
        (HEAD + b"PHP Warning: x in /a.php:3\r\nContent-Length: 3\r\n\r\nabc", (Note.NO_FIELD,)),
        (HEAD + b"[X-A]: 1\r\nX/A: 1\r\nContent-Length: 3\r\n\r\nabc", (Note.NO_FIELD,)),
        (HEAD + "X-\xe4: 1\r\n\U0001f600: 1\r\n: 1\r\nContent-Length: 3\r\n\r\nabc".encode(), (Note.NO_FIELD,)),
        (HEAD + b"X A : \x01\r\nContent-Length: 3\r\n\r\nabc", (Note.NO_FIELD, Note.CONTROL_CHARACTER)),
        (HEAD + b"X-A: \x1b[31m\x7f\r\nContent-Length: 3\r\n\r\nabc", (Note.CONTROL_CHARACTER,)),
        (HEAD + 2 * b"Transfer-Encoding: chunked\r\n" + b"\r\n3\r\nabc\r\n0\r\n\r\n", (Note.CHUNKED_TWICE,)),
        (HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (Note.CHUNKED_TWICE,)),
        (HEAD + b"Content-Length: 3, 3\r\n\r\nabc and more", (Note.LENGTH_TWICE,)),
        (HEAD + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc and more", (Note.LENGTH_TWICE,)),
        (HEAD + b"Content-Type: html\r\nContent-Length: 3\r\n\r\nabc", (Note.CONTENT_TYPE,)),
        (HEAD + b"Transfer-Encoding: identity, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", (Note.NO_CODING,)),
        (b"http/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", (Note.STATUS_LINE,)),
        (b"HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", (Note.STATUS_LINE,)),
        (b"HTTP/1.1 200OK\r\nContent-Length: 3\r\n\r\nabc", (Note.STATUS_LINE,)),
        (b"HTTP/1.1 200 \x1b[31m\r\nContent-Length: 3\r\n\r\nabc", (Note.CONTROL_CHARACTER,)),
        (HEAD + b"Content-Length: 3\r\n\r\nabc", ()),
    ],
)
def test_what_is_untidy_and_means_one_thing_is_read_and_noted(
    run: Any, fetching: Any, raw: bytes, notes: tuple[Note, ...]
) -> None:
    async def body() -> None:
        # The connection stays open: where the answer ends, its framing alone says.
        async with FakeWeb({"/": FakePage(raw=raw, stay=True)}) as web, fetching(web) as module:
            response = await module.fetch(task(web.url()))
            assert (response.outcome, response.body, response.notes) == (Outcome.OK, b"abc", notes), response.error
            assert {name: n for name, n in module.metrics.counters.items() if name.startswith("note:")} == {
                f"note:{note}": 1 for note in notes
            }

    run(body())


WORD = HEAD + b"Content-Type: text/html\r\nSomeText\r\n"


@pytest.mark.parametrize(
    ("raw", "outcome", "body"),
    [
        (WORD + b"Content-Length: 3\r\n\r\nabc and more", Outcome.OK, b"abc"),
        (HEAD + HEAD + b"\r\nuntil the end", Outcome.OK, b"until the end"),
        (WORD + b"Transfer-Encoding: chunked\r\n\r\n2;x\r\nab\r\n1\r\nc\r\n0\r\n\r\n", Outcome.OK, b"abc"),
        (b"HTTP/1.1 103 Early\r\n\r\n" + WORD + b"\r\nabc", Outcome.OK, b"abc"),
        (WORD + b"Content-Encoding: gzip\r\n\r\n" + zipped(b"abc"), Outcome.OK, zipped(b"abc")),
        (WORD.replace(b"200 OK", b"204 Nothing") + b"\r\nabc", Outcome.OK, b""),
        (WORD + b"Content-Length: 9\r\n\r\nabc", Outcome.TRUNCATED, b"abc"),
        (WORD + b"Transfer-Encoding: chunked\r\n\r\n2 \r\nab\r\n", Outcome.TRUNCATED, b"ab"),
        (WORD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1", Outcome.TRUNCATED, b"ab"),
        (WORD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", Outcome.PROTOCOL_FAILED, b""),
        (WORD + b"Transfer-Encoding: chunked\r\n\r\n+2\r\nab\r\n0\r\n\r\n", Outcome.PROTOCOL_FAILED, b""),
        (WORD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", Outcome.PROTOCOL_FAILED, b""),
        (WORD + b"A: b\r\n" * 5000 + b"\r\nabc", Outcome.PROTOCOL_FAILED, b""),
        (WORD + b"A: " + b"x" * 100_000 + b"\r\n\r\nabc", Outcome.PROTOCOL_FAILED, b""),
    ],
)
def test_a_line_without_a_colon_is_passed_over(
    run: Any, fetching: Any, raw: bytes, outcome: Outcome, body: bytes
) -> None:
    async def fetch() -> None:
        async with FakeWeb({"/": FakePage(raw=raw)}) as web, fetching(web) as module:
            module.clock = clock = FakeClock()
            first = asyncio.ensure_future(module.fetch(task(web.url())))
            while not first.done():
                await clock.advance(0.2)
                await asyncio.sleep(0.001)
            for response in (first.result(), await module.fetch(task(web.url()))):
                assert (response.outcome, response.body) == (outcome, body), response.error
                assert outcome is Outcome.PROTOCOL_FAILED or Note.NO_FIELD in response.notes
                assert response.outcome is not Outcome.OK or b"SomeText" in response.response_head or HEAD in raw
            assert len(web.requests) == 3, "once more, and from then on it is known how the server writes"

    run(fetch())


@pytest.mark.parametrize(
    ("raw", "note"),
    [
        (b"HTTP/1.1  200 OK\r\nContent-Length: 3\r\n\r\nabc", Note.STATUS_LINE),
        (b"HTTP/1.2 200 OK\r\nContent-Length: 3\r\n\r\nabc", Note.STATUS_LINE),
        (b"HTTP/2 200\r\nContent-Length: 3\r\n\r\nabc", Note.STATUS_LINE),
        (b"HTTP 200 OK\r\nContent-Length: 3\r\n\r\nabc", Note.STATUS_LINE),
        (b"\r\n  HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Note.STATUS_LINE),
        (b"HTTP/1.1  103 Early\r\n\r\nHTTP/1.1  200 OK\r\n\r\nabc", Note.STATUS_LINE),
        (HEAD + b"Content-Length: +3\r\n\r\nabc and more", Note.LOOSE_LENGTH),
        (HEAD + b"Content-Length:\r\n\r\nabc", Note.LOOSE_LENGTH),
    ],
)
def test_a_head_that_browsers_read_and_libcurl_does_not_is_read_and_noted(
    run: Any, fetching: Any, raw: bytes, note: Note
) -> None:
    async def fetch() -> None:
        async with FakeWeb({"/": FakePage(raw=raw)}) as web, fetching(web) as module:
            for _ in range(2):
                response = await module.fetch(task(web.url()))
                assert (response.outcome, response.status, response.body) == (Outcome.OK, 200, b"abc"), response.error
                assert response.notes in ((note,), (note, Note.ASKED_AGAIN))
            assert response.notes == (note,), "from then on it is known how the server writes"

    run(fetch())


def test_a_host_that_is_read_without_libcurl_has_the_same_deadlines_and_no_other_host_of_its_server_is_read_so(
    run: Any, fetching: Any
) -> None:
    async def fetch() -> None:
        clock, raw = FakeClock(), b"HTTP 200 OK\r\nContent-Length: 3\r\n\r\nabc"
        pages = {"/": FakePage(raw=raw), "/never": FakePage(silent=True), "/slow": FakePage(HTML, cut=50, stay=True)}
        async with FakeWeb({**pages, "http://other.test/": "tidy"}) as web, fetching(web, clock=clock) as module:
            first = asyncio.ensure_future(module.fetch(task(web.url())))
            while not first.done():
                await clock.advance(1.0, turns=50)
            for path, outcome, word in (
                ("/never", Outcome.TIMED_OUT, "the head of the answer was not complete within 30 s"),
                ("/slow", Outcome.TOO_SLOW, "less than 100 bytes/s"),
            ):
                asked = len(web.requests)
                waiting = asyncio.ensure_future(module.fetch(task(web.url(path))))
                while len(web.requests) == asked:
                    await asyncio.sleep(0)
                await clock.advance(0.0, turns=500)
                await clock.advance(29.0, turns=50)
                assert not waiting.done()
                await clock.advance(5.0, turns=50)
                response = await waiting
                assert (response.outcome, response.is_met) == (outcome, True)
                assert word in response.error
            for _ in range(2):
                response = await module.fetch(task(f"http://other.test:{web.port}/"))
                assert (response.body, response.notes) == (b"tidy", ())
            assert len({request.connection for request in web.requests[-2:]}) == 1

    run(fetch())


def test_a_request_that_may_not_be_sent_twice_is_not_repeated_for_a_line_without_a_colon(
    run: Any, fetching: Any
) -> None:
    async def fetch() -> None:
        async with FakeWeb({"/": FakePage(raw=WORD + b"\r\nabc")}) as web, fetching(web) as module:
            asked = msgspec.structs.replace(task(web.url()), request=requested("POST", b"a"))
            assert (await module.send(asked)).outcome is Outcome.PROTOCOL_FAILED
            assert len(web.requests) == 1

    run(fetch())


def test_a_field_is_known_by_its_tidy_name(run: Any, fetching: Any) -> None:
    raw = HEAD + b"Location : /a\r\nX-B: a\x01b\r\n\r\n"
    response = one(run, fetching, FakePage(raw=raw))
    assert response.headers == (("location", "/a"), ("x-b", "a\x01b"))
    assert response.response_head == raw


def test_a_line_that_is_no_field_is_archived_and_says_nothing(run: Any, fetching: Any) -> None:
    raw = HEAD + b"Warning in a script: Set-Cookie: a=b\r\nA: b\r\n\r\n"
    response = one(run, fetching, FakePage(raw=raw))
    assert (response.headers, response.response_head) == ((("a", "b"),), raw)


@pytest.mark.parametrize("page", [FakePage(HTML, cut=50), FakePage(HTML, cut=50, chunked=True)])
def test_a_server_that_dies_leaves_a_truncated_page(run: Any, fetching: Any, page: FakePage) -> None:
    response = one(run, fetching, page)
    assert (response.outcome, response.cut, response.body) == (Outcome.TRUNCATED, "disconnect", HTML[:50])


def test_a_cut_error_page_stays_an_error(run: Any, fetching: Any) -> None:
    response = one(run, fetching, FakePage(HTML, status=503, cut=50))
    assert (response.outcome, response.cut) == (Outcome.SERVER_ERROR, "disconnect")


@pytest.mark.parametrize(
    "page", [FakePage(b"x" * 5000), FakePage(b"x" * 5000, chunked=True), FakePage(raw=HEAD + b"\r\n" + b"x" * 5000)]
)
def test_a_body_over_the_cap_is_kept_up_to_it(run: Any, fetching: Any, page: FakePage) -> None:
    response = one(run, fetching, page, HttpSheet(max_body=4096))
    assert (response.outcome, response.cut, response.body) == (Outcome.TRUNCATED, "length", b"x" * 4096)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", zipped(HTML)),
        ("x-gzip", zipped(HTML)),
        ("GZIP", zipped(HTML[:700]) + zipped(HTML[700:])),
        ("deflate", zlib.compress(HTML)),
        ("deflate", zlib.compress(HTML)[2:-4]),
        ("deflate, gzip", zipped(zlib.compress(HTML))),
        ("identity", HTML),
    ],
)
def test_content_codings_are_kept_and_undone(run: Any, fetching: Any, coding: str, body: bytes) -> None:
    response = one(run, fetching, FakePage(body, headers=(("Content-Encoding", coding),)))
    assert (response.outcome, response.body, response.content) == (Outcome.OK, body, HTML)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", HTML),
        ("deflate", b"\x78\x9cnot deflate"),
        ("br", b"\x0b\x02\x80"),
        ("gzip, gzip, gzip", zipped(zipped(zipped(HTML)))),
    ],
)
def test_a_body_that_is_not_what_it_says_is_kept_undecoded(run: Any, fetching: Any, coding: str, body: bytes) -> None:
    response = one(run, fetching, FakePage(body, headers=(("Content-Encoding", coding),)))
    assert (response.outcome, response.body, response.decoded) == (Outcome.DECODE_FAILED, body, None)
    assert response.error


LARGE = b"".join(b"<p>%d</p>" % number for number in range(400_000))


@pytest.mark.parametrize("document", [HTML, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", lambda document: zipped(document, 1) + b"\r\n"),
        ("gzip", lambda document: zipped(document, 1) + b"\0" * 9000),
        ("gzip", lambda document: zipped(document[:700], 1) + zipped(document[700:], 1) + b"\x1f\x8b"),
        ("gzip", lambda document: zipped(document[:700], 1) + b"\0" * 512 + zipped(document[700:], 1) + b"\0"),
        ("gzip", lambda document: zipped(document, 1)[:-1]),
        ("gzip", lambda document: zipped(document, 1)[:-8]),
        ("deflate", lambda document: zlib.compress(document, 1) + b"\r\n"),
        ("deflate", lambda document: zlib.compress(document, 1)[2:-4] + b"\r\n"),
        ("deflate", lambda document: zlib.compress(document, 1)[:-4]),
        ("br", lambda document: brotli.compress(document, quality=1) + b"\r\n"),
        ("zstd", lambda document: zstd.compress(document, 1) + b"\r\n" * 9),
        ("deflate, gzip", lambda document: zipped(zlib.compress(document, 1) + b"\n", 1)),
    ],
)
@pytest.mark.parametrize("spool_above", [1 << 20, 1 << 10], ids=["in memory", "on disk"])
def test_a_document_is_whole_whatever_stands_behind_its_last_block(
    run: Any, fetching: Any, coding: str, pack: Any, document: bytes, spool_above: int
) -> None:
    page = FakePage(pack(document), headers=(("Content-Encoding", coding),))
    response = one(run, fetching, page, HttpSheet(spool_above=spool_above))
    assert (response.outcome, response.cut, response.error) == (Outcome.OK, "", "")
    assert response.notes == (Note.CODING_END,)
    with response.open() as stream:
        assert stream.read() == document


@pytest.mark.parametrize("document", [HTML, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(
    "broken",
    [
        lambda packed: packed[:-9],
        lambda packed: packed + b"\x1f\x8b\x08\0\0\0\0\0\0\0\xff\xff\xff\xff",
        lambda packed: packed + packed[:10],
    ],
    ids=["no last block", "a broken member more", "a part of a member more"],
)
@pytest.mark.parametrize("spool_above", [1 << 20, 1 << 10], ids=["in memory", "on disk"])
def test_what_was_decoded_of_a_broken_stream_is_read(
    run: Any, fetching: Any, broken: Any, document: bytes, spool_above: int
) -> None:
    body = broken(zipped(document, 1))
    page = FakePage(body, headers=(("Content-Encoding", "gzip"),))
    response = one(run, fetching, page, HttpSheet(spool_above=spool_above))
    assert (response.outcome, response.cut) == (Outcome.TRUNCATED, "unspecified")
    with response.open() as stream:
        assert stream.read() == document
    assert response.notes == (Note.BROKEN_CODING,)
    assert response.error.startswith("the content coding is broken: ")


def wrongly_summed(packed: bytes) -> bytes:
    return packed[:-8] + b"\0\0\0\0" + packed[-4:]


@pytest.mark.parametrize(
    ("pack", "more"),
    [
        (lambda document: wrongly_summed(zipped(document, 1)), ()),
        (lambda document: wrongly_summed(zipped(document, 1)) + b"\r\n", (Note.CODING_END,)),
        (lambda document: wrongly_summed(zipped(document[:700], 1)) + zipped(document[700:], 1), ()),
        (
            lambda document: zipped(document[:700], 1) + b"\0" * 9 + wrongly_summed(zipped(document[700:], 1)),
            (Note.CODING_END,),
        ),
    ],
    ids=["alone", "and more", "of the first member", "of the last, behind padding"],
)
@pytest.mark.parametrize("document", [HTML, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("spool_above", [1 << 20, 1 << 10], ids=["in memory", "on disk"])
def test_a_wrong_check_sum_is_told_and_takes_nothing_of_the_document(
    run: Any, fetching: Any, pack: Any, more: tuple[Note, ...], document: bytes, spool_above: int
) -> None:
    page = FakePage(pack(document), headers=(("Content-Encoding", "gzip"),))
    response = one(run, fetching, page, HttpSheet(spool_above=spool_above))
    assert (response.outcome, response.cut, response.notes) == (Outcome.OK, "", (Note.CODING_SUM, *more))
    with response.open() as stream:
        assert stream.read() == document


@pytest.mark.parametrize(("status", "outcome"), [(404, Outcome.CLIENT_ERROR), (503, Outcome.SERVER_ERROR)])
def test_a_broken_coding_of_an_error_page_is_noted(run: Any, fetching: Any, status: int, outcome: Outcome) -> None:
    page = FakePage(zipped(HTML, 0)[:-20], status=status, headers=(("Content-Encoding", "gzip"),))
    response = one(run, fetching, page)
    assert (response.outcome, response.notes) == (outcome, (Note.BROKEN_CODING,))
    assert response.content
    assert HTML.startswith(response.content)


@pytest.mark.parametrize(
    ("coding", "outcome", "note"),
    [
        ("gzip", Outcome.OK, Note.CODING_SUM),  # its decoder finds the end, and the sum tells
        ("deflate", Outcome.OK, Note.CODING_SUM),
        ("br", Outcome.TRUNCATED, Note.BROKEN_CODING),
        ("zstd", Outcome.TRUNCATED, Note.BROKEN_CODING),
    ],
)
def test_a_stream_that_breaks_in_the_middle_is_read_up_to_there(
    run: Any, fetching: Any, coding: str, outcome: Outcome, note: Note
) -> None:
    pack = {"gzip": zipped, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}[coding]
    words = bytes(random.Random(1).choices(b"abcdefghij", k=400_000))
    body = bytearray(pack(words))
    body[len(body) // 2 : len(body) // 2 + 3000] = b"\xff" * 3000
    response = one(run, fetching, FakePage(bytes(body), headers=(("Content-Encoding", coding),)))
    assert (response.outcome, response.notes) == (outcome, (note,))
    assert len(response.content) > len(words) // 4
    assert response.content[: len(words) // 4] == words[: len(words) // 4]


@pytest.mark.parametrize(
    "coding", ["UTF-8", "none", "ISO-8859-1", "aws-chunked", "gzip, aws-chunked", "utf-8, gzip", "br;q=1.0, utf-8"]
)
def test_a_word_that_names_no_coding_changes_no_document(run: Any, fetching: Any, coding: str) -> None:
    body = zipped(HTML) if "gzip" in coding else HTML
    response = one(run, fetching, FakePage(body, headers=(("Content-Encoding", coding),)))
    assert (response.outcome, response.content, response.error) == (Outcome.OK, HTML, "")
    assert (response.body, response.notes) == (body, (Note.UNKNOWN_CODING,))


def test_a_broken_protocol_weighs_more_than_a_broken_coding(run: Any, fetching: Any) -> None:
    raw = HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"
    assert one(run, fetching, FakePage(raw=raw)).outcome is Outcome.PROTOCOL_FAILED


def test_a_cut_body_is_decoded_as_far_as_it_goes(run: Any, fetching: Any) -> None:
    page = FakePage(zipped(HTML, 0), headers=(("Content-Encoding", "gzip"),), cut=700)
    response = one(run, fetching, page)
    assert (response.outcome, response.cut) == (Outcome.TRUNCATED, "disconnect")
    assert response.content
    assert HTML.startswith(response.content)


def test_an_empty_body_has_no_coding_to_fail(run: Any, fetching: Any) -> None:
    assert one(run, fetching, FakePage("", headers=(("Content-Encoding", "gzip"),))).outcome is Outcome.OK


def test_a_redirect_with_a_broken_body_is_a_redirect(run: Any, fetching: Any) -> None:
    page = FakePage(HTML, status=302, headers=(("Location", "/x"), ("Content-Encoding", "gzip")))
    assert one(run, fetching, page).outcome is Outcome.REDIRECT


def test_bombs_stop_at_the_cap(run: Any, fetching: Any) -> None:
    page = FakePage(zipped(bytes(100 << 20)), headers=(("Content-Encoding", "gzip"),))
    response = one(run, fetching, page, HttpSheet(max_body=2 << 20))
    assert (response.outcome, response.cut) == (Outcome.TRUNCATED, "length")
    assert len(response.content) <= 2 << 20


def test_refused_unresolved_and_unreachable(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({}) as web, fetching(web) as module:
            closed = web.port
            for url, outcome in (
                ("ftp://a.test/", Outcome.SCHEME_REFUSED),
                ("http://a$b.test/", Outcome.ADDRESS_REFUSED),
            ):
                response = await module.fetch(task(url))
                assert response.outcome is outcome, response.error
                assert response.error
                assert not response.request_head
            assert not web.requests
        async with fetching(web) as module:
            response = await module.fetch(task(f"http://a.test:{closed}/"))
            assert (response.outcome, response.address) == (Outcome.CONNECT_FAILED, "")
            assert not response.is_met

    run(body())


@pytest.mark.parametrize("is_used_again", [True, False])
def test_silence_on_a_connection_of_before_does_not_tell_whether_anybody_is_there(
    run: Any, fetching: Any, is_used_again: bool
) -> None:
    async def body() -> None:
        clock = FakeClock()
        pages = {"/first": "first", "/": FakePage(silent=True)}
        async with FakeWeb(pages) as web, fetching(web, clock=clock) as module:
            if is_used_again:
                assert (await module.fetch(task(web.url("/first")))).is_met
            asked = len(web.requests)
            waiting = asyncio.ensure_future(module.fetch(task(web.url())))
            while len(web.requests) == asked:
                await asyncio.sleep(0)
            await clock.advance(0.0, turns=500)
            await clock.advance(33.0, turns=50)
            response = await waiting
            assert (response.outcome, web.connections) == (Outcome.TIMED_OUT, 1)
            assert response.is_met is not is_used_again

    run(body())


@pytest.mark.parametrize(
    ("page", "after", "outcome", "word"),
    [
        (FakePage(silent=True), 30, Outcome.TIMED_OUT, "the head of the answer was not complete within 30 s"),
        (
            FakePage(raw=HEAD + b"A: b\r\n", stay=True),
            30,
            Outcome.TIMED_OUT,
            "the head of the answer was not complete within 30 s",
        ),
        (FakePage(HTML, cut=50, stay=True), 30, Outcome.TOO_SLOW, "less than 100 bytes/s"),
        (FakePage(raw=HEAD + b"Content-Length: 9\r\n\r\n", stay=True), 30, Outcome.TOO_SLOW, "less than 100 bytes/s"),
        (FakePage(raw=b"HTTP/1.1 103 Early\r\n\r\n" * 20, stay=True), 0, Outcome.PROTOCOL_FAILED, "interim"),
    ],
)
def test_deadlines(run: Any, fetching: Any, page: FakePage, after: float, outcome: Outcome, word: str) -> None:
    async def body() -> None:
        clock = FakeClock()
        async with FakeWeb({"/": page, "/next": "next"}) as web, fetching(web, clock=clock) as module:
            waiting = asyncio.ensure_future(module.fetch(task(web.url())))
            while not web.requests:
                await asyncio.sleep(0)
            await clock.advance(0.0, turns=500)
            await clock.advance(after, turns=50)
            assert not waiting.done()
            await clock.advance(3, turns=50)
            response = await waiting
            assert response.outcome is outcome
            assert response.is_met, "it let us in before it stalled"
            assert word in response.error
            assert (await module.fetch(task(web.url("/next")))).body == b"next"
            assert web.connections == 2, "a connection with an answer under way must not be used again"

    run(body())


def test_a_whole_fetch_has_a_deadline(run: Any, fetching: Any) -> None:
    async def body() -> None:
        clock = FakeClock()
        page = FakePage(HTML, cut=50, stay=True)
        async with FakeWeb({"/": page}) as web, fetching(web, HttpSheet(least_speed=0), clock) as module:
            waiting = asyncio.ensure_future(module.fetch(task(web.url())))
            while not web.requests:
                await asyncio.sleep(0)
            await clock.advance(119.5, turns=50)
            assert not waiting.done()
            await clock.advance(2)
            response = await waiting
            assert (response.outcome, response.cut) == (Outcome.TIMED_OUT, "time")
            assert response.body == HTML[:50]

    run(body())


@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog drops what comes only there")
def test_a_connection_has_a_deadline_of_its_own(run: Any, fetching: Any) -> None:
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
            async with FakeWeb({}) as web:
                web.port = deaf.getsockname()[1]
                async with fetching(web, clock=clock) as module:
                    fetch = asyncio.ensure_future(module.fetch(task("http://a.test/")))
                    await clock.advance(0.0, turns=500)
                    await clock.advance(10, turns=50)
                    assert not fetch.done()
                    await clock.advance(3, turns=50)
                    response = await fetch
                    assert (response.outcome, response.error) == (
                        Outcome.CONNECT_FAILED,
                        "the server took no connection within 10 s",
                    )

    run(body())


def test_a_tls_handshake_has_a_deadline_of_its_own(run: Any, fetching: Any) -> None:
    async def body() -> None:
        clock = FakeClock()
        accepted = asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            accepted.set()
            await reader.read()
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        async with FakeWeb({}) as web:
            web.port = server.sockets[0].getsockname()[1]
            async with fetching(web, clock=clock) as module:
                waiting = asyncio.ensure_future(module.fetch(task("https://a.test/")))
                await accepted.wait()
                await clock.advance(22)
                response = await waiting
                assert (response.outcome, response.error) == (
                    Outcome.TLS_FAILED,
                    "the server agreed on no TLS session within 10 s",
                )
        server.close()

    run(body())


def test_connections_are_kept_alive_and_nothing_leaks_between_requests(run: Any, fetching: Any) -> None:
    async def body() -> None:
        pages: dict[str, Source] = {
            "/a": FakePage("a", headers=(("Set-Cookie", "id=1"), ("WWW-Authenticate", "Basic"))),
            "/b": FakePage("b", status=401, chunked=True),
            "/c": "c",
        }
        async with FakeWeb(pages) as web, fetching(web) as module:
            for key, expected in (("/a", b"a"), ("/b", b"b"), ("/c", b"c"), ("/a", b"a")):
                response = await module.fetch(task(web.url(key)))
                assert response.body == expected
            assert web.connections == 1
            assert not any(request.header("cookie") or request.header("referer") for request in web.requests)
            assert module.metrics.counters["connects"] == 1

    run(body())


def test_bytes_after_an_answer_never_reach_the_next_url(run: Any, fetching: Any) -> None:
    async def body() -> None:
        poison = HEAD + b"Content-Length: 1\r\n\r\na" + HEAD + b"Content-Length: 6\r\n\r\npoison"
        async with FakeWeb({"/a": FakePage(raw=poison, stay=True), "/b": "b"}) as web, fetching(web) as module:
            assert (await module.fetch(task(web.url("/a")))).body == b"a"
            assert (await module.fetch(task(web.url("/b")))).body == b"b"
            assert web.connections == 2

    run(body())


def test_a_request_goes_out_once_whatever_becomes_of_its_connection(run: Any, fetching: Any) -> None:
    """A server that drops a kept connection when it has read the request: libcurl would ask again within milliseconds."""

    async def body() -> None:
        async with FakeWeb({"/": "a", "/b": FakePage(raw=b""), "/c": "c"}) as web, fetching(web) as module:
            assert (await module.fetch(task(web.url("/")))).outcome is Outcome.OK
            response = await module.fetch(task(web.url("/b")))
            assert response.outcome is Outcome.PROTOCOL_FAILED
            assert "used again" in response.error
            assert (web.targets(), web.connections) == (["/", "/b"], 1)
            assert (await module.fetch(task(web.url("/c")))).body == b"c"
            assert (await module.fetch(task(web.url("/b")))).outcome is Outcome.PROTOCOL_FAILED
            assert web.targets() == ["/", "/b", "/c", "/b"]
            assert module.metrics.counters["dropped"] == 1, "it gets a connection for each request from then on"
            assert web.connections == 3

    run(body())


def test_names_do_not_share_connections(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({"http://a.test/": "a", "http://b.test/": "b"}) as web, fetching(web) as module:
            assert (await module.fetch(task("http://a.test/"))).body == b"a"
            assert (await module.fetch(task("http://b.test/"))).body == b"b"
            assert web.connections == 2

    run(body())


def test_cancelling_closes_the_connection_and_cleans_the_handle(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({"/slow": FakePage(HTML, cut=50, stay=True), "/": "next"}) as web, fetching(web) as module:
            waiting = asyncio.ensure_future(module.fetch(task(web.url("/slow"))))
            while not web.requests:
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert module.metrics.snapshot()["in_flight"] == 0
            response = await module.fetch(task(web.url()))
            assert (response.body, web.connections) == (b"next", 2)

    run(body())


def test_a_second_address_is_tried_where_the_first_lets_nobody_in(run: Any, fetching: Any) -> None:
    async def body() -> None:
        class Two:
            async def resolve(self, host: str, port: int) -> Endpoint:
                return Endpoint("127.0.0.2", web.port, ("127.0.0.1",))

        async with FakeWeb({"/": "a"}) as web, fetching(web) as module:
            module.resolver = Two()
            response = await module.fetch(task("http://a.test/"))
            assert (response.outcome, response.address) == (Outcome.OK, "127.0.0.1")

    run(body())


@pytest.mark.parametrize(("relation", "asked"), [(ROBOTS, 3), ("a href", 1)])
def test_a_robots_txt_that_fails_is_asked_for_at_every_address(
    run: Any, fetching: Any, relation: str, asked: int
) -> None:
    async def body() -> None:
        class Three:
            async def resolve(self, host: str, port: int) -> Endpoint:
                return Endpoint("127.0.0.1", web.port, ("127.0.0.1", "127.0.0.1"))

        async with FakeWeb({"/robots.txt": FakePage(status=503)}) as web, fetching(web) as module:
            module.resolver = Three()
            response = await module.fetch(Task("http://a.test/robots.txt", "a.test", relation=relation))
            assert response.outcome is Outcome.SERVER_ERROR
            assert len(web.requests) == asked

    run(body())


@pytest.mark.parametrize("addresses", [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1", "127.0.0.3")])
def test_of_failures_that_of_the_address_which_took_the_connection_is_told(
    run: Any, fetching: Any, addresses: tuple[str, ...]
) -> None:
    async def body() -> None:
        class Several:
            async def resolve(self, host: str, port: int) -> Endpoint:
                return Endpoint(addresses[0], web.port, addresses[1:])

        async with (
            FakeWeb({"/robots.txt": FakePage(status=503)}) as web,
            fetching(web, HttpSheet(connect=0.5, tls=0.5)) as module,
        ):
            module.resolver = Several()
            for scheme, outcome in (("http", Outcome.SERVER_ERROR), ("https", Outcome.TLS_FAILED)):
                url = f"{scheme}://a.test:{web.port}/robots.txt"
                response = await module.fetch(Task(url, "a.test", relation=ROBOTS))
                assert response.outcome is outcome

    run(body())


def test_a_new_sheet_holds_for_new_requests(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb({"/": "a"}) as web, fetching(web) as module:
            await module.fetch(task(web.url()))
            under_way = asyncio.ensure_future(module.fetch(task(web.url())))
            while not module.metrics.snapshot()["in_flight"]:
                await asyncio.sleep(0)
            before, module.sheet = module.sheet, HttpSheet(user_agent="Other/1")
            module.changed(before)
            answers = [await under_way, await module.fetch(task(web.url()))]
            assert [request.header("user-agent")[:5] for request in web.requests] == ["Gossa", "Gossa", "Other"]
            assert [answer.request_head for answer in answers] == [request.head for request in web.requests[1:]]

    run(body())


@pytest.mark.parametrize(
    "header", ["no colon", "A: b\r\nC: d", "Host: x", "content-length: 3", ": x", "A: \u00e9", "A:"]
)
def test_a_header_that_cannot_be_sent_is_refused(header: str) -> None:
    with pytest.raises(SettingError, match="header"):
        HttpModule(HttpSheet(header=(header,)))


def test_a_contact_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(SettingError, match="user agent"):
        HttpModule(HttpSheet(contact="me\r\nX: y"))
