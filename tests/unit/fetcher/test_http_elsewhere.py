"""What other projects' test data says about answers and codings. Skipped where the data is not."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.fetcher.request import HttpSheet
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.outcome import ANSWERED, Note, Outcome
from gossamer.values.task import Task

_CASE = re.compile(
    r"^#+ (?P<title>[^\n]+)\n(?:(?!^#).)*?<!-- meta=(?P<meta>\{[^\n]*\}) -->\n"
    r"```http\n(?P<text>.*?)```\n\n```log\n(?P<log>.*?)```",
    re.M | re.S,
)

#: Answers that llhttp refuses and we read, each with its reason.
LENIENT = {
    "connection: HTTP/1.1 with keep-alive disabled and 204 status": "what follows is dropped with the connection",
    "connection: HTTP/1.1 with keep-alive disabled, content-length": "what follows is dropped with the connection",
    "invalid: Only LFs present and no body": "RFC 9112, section 2.2: a recipient may read LF alone",
    "invalid: Only LFs present": "the same",
    "sample: No carriage ret": "the same",
    "invalid: Extra digit in HTTP major version": "a version says nothing of how the answer is written, as with browsers",
    "invalid: Extra digit in HTTP major version #2": "the same",
    "invalid: Extra digit in HTTP minor version": "the same",
    "invalid: Invalid HTTP version": "the same",
    "invalid: Extra space between HTTP version and status code": "blanks of any number part the words, as with browsers",
    "invalid: Tab after HTTP version": "the same",
    "sample: Spaces in header name": "a field whose name is no token is left out, as by browsers and curl",
    "transfer-encoding: Trailing space on chunked body": "libcurl reads it; the chunk's size is not in doubt",
    "transfer-encoding: No semicolon before chunk extensions": "the same",
    "transfer-encoding: No extension after semicolon": "the same",
}


def responses(folder: Path) -> Iterator[tuple[str, bytes, bool]]:
    """Title, bytes, and whether llhttp finds no error, of every strict response case."""
    for file in sorted(folder.glob("*.md")):
        for case in _CASE.finditer(file.read_text()):
            if '"response"' in case["meta"]:
                text = re.sub(r"\\\n", "", case["text"].removesuffix("\n"))
                raw = text.replace("\n", "\r\n").encode("utf-8")
                for escape, byte in ((b"\\r", b"\r"), (b"\\n", b"\n"), (b"\\t", b"\t"), (b"\\f", b"\f")):
                    raw = raw.replace(escape, byte)
                yield f"{file.stem}: {case['title']}", raw, "error code" not in case["log"]


def test_llhttp_responses(run: Any, fetching: Any, test_data: Path) -> None:
    cases = list(responses(test_data / "http-llhttp"))
    assert len(cases) > 40

    async def body() -> set[str]:
        read = set()
        for title, raw, fine in cases:
            # Each has a server of its own: one that has sent something untidy is read by other rules from then on.
            async with FakeWeb({"/": FakePage(raw=raw)}) as web, fetching(web) as module:
                response = await module.fetch(Task(web.url("/"), host="h"))
            if not fine and response.outcome is Outcome.OK:
                read.add(title)
        return read

    assert run(body()) == set(LENIENT)


CODINGS = {
    "html-gzip.bin": "gzip",
    "html-rawdeflate.bin": "deflate",
    "html-zlibdeflate.bin": "deflate",
    "html-gzip-deflate.bin": "gzip, deflate",
}


@pytest.mark.parametrize("name", CODINGS)
def test_scrapys_compressed_pages(run: Any, fetching: Any, test_data: Path, name: str) -> None:
    body = (test_data / "http-scrapy-compressed" / name).read_bytes()
    response = fetched(run, fetching, body, CODINGS[name])
    assert response.outcome is Outcome.OK, response.error
    assert response.body == body
    assert b"<html" in response.content.lower()


@pytest.mark.parametrize(("name", "coding"), [("bomb-gzip.bin", "gzip"), ("bomb-deflate.bin", "deflate")])
def test_scrapys_bombs(run: Any, fetching: Any, test_data: Path, name: str, coding: str) -> None:
    body = (test_data / "http-scrapy-compressed" / name).read_bytes()
    response = fetched(run, fetching, body, coding)
    assert (response.outcome, response.cut) == (Outcome.TRUNCATED, "length")
    assert len(response.content) <= max(1 << 20, 200 * len(body)) + (1 << 16)


def test_a_gzip_that_lacks_only_its_check_sum_is_whole(run: Any, fetching: Any, test_data: Path) -> None:
    body = (test_data / "http-scrapy-compressed" / "unexpected-eof.gz").read_bytes()
    response = fetched(run, fetching, body, "gzip")
    assert (response.outcome, response.notes) == (Outcome.OK, (Note.CODING_END,))
    assert len(response.content) == 8_576


@pytest.mark.parametrize("name", ["truncated-crc-error.gz", "truncated-crc-error-short.gz"])
def test_scrapys_broken_gzip(run: Any, fetching: Any, test_data: Path, name: str) -> None:
    body = (test_data / "http-scrapy-compressed" / name).read_bytes()
    response = fetched(run, fetching, body, "gzip")
    assert response.outcome is Outcome.TRUNCATED
    assert response.content
    assert response.outcome in ANSWERED


def fetched(run: Any, fetching: Any, data: bytes, coding: str) -> Any:
    async def body() -> Any:
        page = FakePage(data, headers=(("Content-Encoding", coding),))
        async with FakeWeb({"/": page}) as web, fetching(web, HttpSheet()) as module:
            return await module.fetch(Task(web.url(), host="h"))

    return run(body())
