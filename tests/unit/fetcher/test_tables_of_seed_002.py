"""Tables 4 and 5 of Ridgway 2010, row by row: what its downloader and its link extractor were tested with.

The waits of table 4 are those of a clock that the test moves; its network rate (row 3) is the benchmarks' matter.
"""

import asyncio
from typing import Any

import msgspec
import pytest

from gossamer.documents.document import Document
from gossamer.fetcher.request import HttpSheet
from gossamer.parsing.filters import ExpressionFilter, ExpressionSheet
from gossamer.parsing.html import HtmlLinks
from gossamer.parsing.links import JoinCache, resolve_links
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.testing.storage import visit
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Found

# -- table 4: downloads


class SlowServer:
    """Answers each request when so many seconds of the test's clock have passed."""

    def __init__(self, clock: FakeClock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self.is_asked = asyncio.Event()
        self.is_done = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.is_asked.set()
        await self.clock.sleep(self.seconds)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\nslow"
        )
        writer.close()
        self.is_done.set()


#: The module looks at its deadlines once a second: an answer that is late by less may still be taken.
LATE = 30.0 + 1.5


@pytest.mark.parametrize(("seconds", "outcome"), [(LATE, Outcome.TIMED_OUT), (29.0, Outcome.OK)])
def test_an_answer_after_29_seconds_is_taken_and_one_that_is_not_there_after_30_is_not(
    seconds: float, outcome: Outcome, run: Any, fetching: Any
) -> None:
    async def body() -> None:
        clock = FakeClock()
        slow = SlowServer(clock, seconds)
        server = await asyncio.start_server(slow.serve, "127.0.0.1", 0)
        async with FakeWeb({}) as web:
            web.port = server.sockets[0].getsockname()[1]
            async with fetching(web, HttpSheet(first_byte=30.0), clock) as module:
                fetch = asyncio.ensure_future(module.fetch(Task("http://slow.test/", host="slow.test")))
                await slow.is_asked.wait()
                await clock.advance(0.0, turns=500)
                await clock.advance(28.5, turns=50)
                assert not fetch.done()
                while not fetch.done() and clock.monotonic() < LATE:
                    await clock.advance(0.125, turns=200)
                response = await fetch
                assert (response.outcome, response.body) == (outcome, b"slow" if outcome is Outcome.OK else b"")
                await clock.advance(5.0, turns=50)
                await slow.is_done.wait()
        server.close()
        await server.wait_closed()

    run(body())


LARGE = b"<!doctype html><title>large</title>" + b"<p>ten megabytes of words " * (10_000_000 // 26)


@pytest.mark.parametrize(
    ("page", "outcome", "barred"),
    [
        (FakePage(LARGE), Outcome.OK, False),
        (FakePage(b"%PDF-1.4 " * 100, type="application/pdf"), Outcome.TRUNCATED, True),
        (FakePage(b"\x89PNG\r\n\x1a\n" * 100, type="image/png"), Outcome.TRUNCATED, True),
        (FakePage(b"<!doctype html><title>page</title>".ljust(2048)), Outcome.OK, False),
    ],
    ids=["10 MB HTML", "PDF", "image", "2 KB HTML"],
)
def test_pages_are_downloaded_whole_and_other_types_refused_at_their_heads(
    page: FakePage, outcome: Outcome, barred: bool, run: Any, fetching: Any
) -> None:
    async def body() -> None:
        async with FakeWeb({"/": page}) as web, fetching(web) as module:
            module.gates = {"body": (ExpressionFilter(ExpressionSheet(body=("mime(text/*)",))),)}
            response = await module.fetch(Task(web.url("/"), host="127.0.0.1"))
            assert (response.outcome, bool(response.barred)) == (outcome, barred), response.error
            assert response.content == (b"" if barred else page.body)

    run(body())


# -- table 5: links

HEADS = {
    "XHTML 1.0 Transitional": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" '
        '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\n<html xmlns="http://www.w3.org/1999/xhtml">'
    ),
    "HTML 4.01 Strict": '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">\n<html>',
    "XHTML + RDFa": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML+RDFa 1.0//EN" '
        '"http://www.w3.org/MarkUp/DTD/xhtml-rdfa-1.dtd">\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:dc="http://purl.org/dc/elements/1.1/" version="XHTML+RDFa 1.0">'
    ),
}


def written(markup: str, count: int, *, valid: bool) -> str:
    """A document with so many links; an invalid one has them in its head and behind its end too, and is badly nested."""
    about = ' property="dc:title"' if "RDFa" in markup else ""
    anchors = [f'<p><a href="/page/{number}"><b{about}>page {number}</b></a></p>\n' for number in range(count)]
    if valid:
        return f"{HEADS[markup]}<head><title>t</title></head><body>{''.join(anchors)}</body></html>"
    third = count // 3
    first, middle, last = (anchors[:third], anchors[third : 2 * third], anchors[2 * third :])
    torn = "".join(middle).replace("</b></a></p>", "</a></b><p><font color=red></i>")
    return (
        f"{HEADS[markup]}<head><title>t<blink></title>{''.join(first)}</head><body><body>"
        f"<table><td>{torn}<img alt=<></div></body></html>{''.join(last)}<br></nosuch>"
    )


@pytest.mark.parametrize("mime", ["text/html", "application/xhtml+xml"])
@pytest.mark.parametrize("markup", HEADS)
@pytest.mark.parametrize(
    ("count", "valid", "found"), [(1, True, 1), (100, True, 100), (200, True, 100), (100, False, 100)]
)
def test_links_of_each_markup_are_found_up_to_the_limit(
    markup: str, count: int, valid: bool, found: int, mime: str
) -> None:
    page = written(markup, count, valid=valid)
    met = visit("http://a.test/", page.encode())
    answer = msgspec.structs.replace(met.response, headers=(("content-type", mime),))
    document = Document(msgspec.structs.replace(met, response=answer))
    made = [one for one in HtmlLinks().process(document) if isinstance(one, Found)]
    links, rejected = resolve_links(made, "http://a.test/", "http://a.test/", JoinCache(), limit=100)
    assert [link.url for link in links] == [f"http://a.test/page/{number}" for number in range(found)]
    assert rejected == ({"too_many_links": count - found} if count > found else {})
