"""A replay shows archived documents with their pictures and styles, leads from one to the other, and never leaves the archive."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from starlette.types import ASGIApp, Scope

from gossamer.analysis.replaying import (
    LASTS,
    MOST_PARSED,
    NeedsParsing,
    ReplayAddresses,
    ReplayAsked,
    Replayed,
    replayed,
)
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.dashboard.app import application
from gossamer.dashboard.crawls import Crawls, key_of
from gossamer.dashboard.guarding import DashboardGuard, Keys
from gossamer.dashboard.questions import Replays
from gossamer.engine.sheet import build
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import UsageError

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(64)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>window.pwned=1</script></svg>'
PAGES = {
    "/": '<title>t</title><link rel=stylesheet href=/s.css><img src="/p.png"><img src="/moved.png"><img src="/v.svg">'
    '<script src="/x.js"></script><a href="/next#part">n</a><a href="http://elsewhere.test/">e</a><a href="/long">l</a>'
    '<a href="/sound">s</a><a href="/greedy">g</a><a href="/imports.css">i</a><img src="/x.xml"><img src="/odd">',
    "/greedy": "<link rel=stylesheet href=/s.css>" * 40 + "<img src=/p.png>" * 400,
    "/imports.css": FakePage("@import '/s.css';" * 9, type="text/css"),
    "/next": "<p id=part>Grüße</p>",
    "/s.css": FakePage("body { background: url(p.png) }", type="text/css"),
    "/p.png": FakePage(PICTURE, type="image/png"),
    "/moved.png": FakePage(status=302, headers=(("Location", "/p.png"),)),
    "/v.svg": FakePage(SVG, type="image/svg+xml"),
    "/odd": FakePage("<a/>", type="image/x-é"),
    "/x.xml": FakePage("<a/>", type="image/x+xml"),
    "/x.js": FakePage("window.pwned=1", type="text/javascript"),
    "/sound": FakePage(b"OggS\0" + bytes(64), type="audio/ogg"),
    "/long": FakePage("<p>" + "x" * MOST_PARSED),
}
ADDRESSES = ReplayAddresses(b"s" * 32)
READ = "r" * 43
PORT = 4321


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, FakeWeb]]:
    folder = tmp_path_factory.mktemp("replayed") / "crawl"
    options = {"output": str(folder), "delay": 0, "retries": 0, "page_requisites": True}
    with FakeWeb(PAGES) as web:
        asyncio.run(Crawl([web.url("/")], build(all_options(), options), tables=False).run())
        yield folder, web


def show(crawled: tuple[Path, FakeWeb], path: str, at: str = "", *, is_picture: bool = False) -> Replayed:
    folder, web = crawled
    asked = ReplayAsked("c", web.url(path), at, 1_000)
    return replayed(folder, asked, ADDRESSES, may_parse=True, is_picture=is_picture)


def addresses(text: str) -> list[ReplayAsked]:
    """What the addresses in a page mean, in order."""
    parts = [part.partition('"')[0].partition("#")[0] for part in text.replace("&amp;", "&").split("/replay?")[1:]]
    return [asked for part in parts if (asked := ADDRESSES.read(part.encode(), 0)) is not None]


def test_links_of_a_page_and_a_sheet_lead_into_the_replay_and_end_with_it(crawled: tuple[Path, FakeWeb]) -> None:
    _, web = crawled
    page = show(crawled, "/")
    assert page.media_type == "text/html; charset=utf-8"
    text = page.body.decode()
    led = addresses(text)
    expected = [web.url(path) for path in ("/s.css", "/p.png", "/moved.png", "/v.svg", "/next")]
    assert [asked.url for asked in led][:6] == [*expected, "http://elsewhere.test/"]
    assert {(asked.crawl, asked.until, len(asked.at)) for asked in led} == {("c", 1_000, 14)}
    assert "#part" in text
    assert text.count("http://") == 0
    sheet = show(crawled, "/s.css")
    assert sheet.media_type == "text/css; charset=utf-8"
    assert [asked.url for asked in addresses(sheet.body.decode())] == [web.url("/p.png")]


def test_a_page_asks_for_a_bounded_number_of_sheets_and_pictures(crawled: tuple[Path, FakeWeb]) -> None:
    led = addresses(show(crawled, "/greedy").body.decode())
    sheets, pictures = [[one for one in led if one.url.endswith(end)] for end in ("s.css", "p.png")]
    assert (len(sheets), len(pictures)) == (30, 300)
    assert {one.depth for one in sheets} == {1}
    folder, web = crawled
    asked = [ReplayAsked("c", web.url("/imports.css"), "", 1_000, depth) for depth in (1, 2, 9)]
    made = [replayed(folder, one, ADDRESSES, may_parse=True).body.decode() for one in asked]
    assert [len(addresses(text)) for text in made] == [5, 0, 0]


def test_pictures_come_as_they_are_and_redirects_lead_on(crawled: tuple[Path, FakeWeb]) -> None:
    _, web = crawled
    assert show(crawled, "/p.png", "20000101000000") == show(crawled, "/p.png") == Replayed("image/png", PICTURE)
    [target] = addresses(show(crawled, "/moved.png").target)
    assert target.url == web.url("/p.png")


def test_a_drawing_that_could_hold_a_script_is_a_picture_or_text(crawled: tuple[Path, FakeWeb]) -> None:
    assert show(crawled, "/v.svg", is_picture=True) == Replayed("image/svg+xml", SVG)
    for path in ("/v.svg", "/x.xml", "/odd", "/x.js"):
        assert show(crawled, path).media_type == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("path", "why"), [("/none", "not in the archive"), ("/long", "too large"), ("/sound", "application/ogg")]
)
def test_what_cannot_be_shown_says_why(crawled: tuple[Path, FakeWeb], path: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        show(crawled, path)
    for at in ("x", "20269999999999", "2" * 20):
        with pytest.raises(UsageError):
            show(crawled, "/", at)


def test_the_process_of_the_dashboard_parses_no_page(crawled: tuple[Path, FakeWeb]) -> None:
    folder, web = crawled
    with pytest.raises(NeedsParsing):
        replayed(folder, ReplayAsked("c", web.url("/"), "", 1_000), ADDRESSES, may_parse=False)


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes = b""


async def ask(app: ASGIApp, address: str, *, method: str = "GET", **headers: str) -> Answer:
    """What is answered at an address; a header is `sec_fetch_site="..."`."""
    path, _, query = address.partition("?")
    given = {"host": f"127.0.0.1:{PORT}", **headers}
    answers: list[Answer] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            told = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            answers.append(Answer(message["status"], told))
        else:
            answers[0].body += message["body"]

    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
    }
    await app(scope, receive, send)
    return answers[0]


#: What a browser says of a request that a page without an origin makes.
FOREIGN = {"sec_fetch_site": "cross-site", "origin": "null", "sec_fetch_dest": "image"}


def test_a_replay_needs_no_cookie_but_an_address_that_a_reader_was_given(crawled: tuple[Path, FakeWeb]) -> None:
    folder, web = crawled
    clock = Clock()

    async def attempts() -> None:
        replays, crawls = Replays(clock), Crawls([folder])
        app = application(crawls, replays=replays)
        guard = DashboardGuard(app, Keys("f" * 43, READ), PORT, is_given=replays.is_given)
        enter, bearer = f"/api/crawls/{key_of(folder)}/replay", f"Bearer {READ}"
        first = f"{enter}?{urlencode({'url': web.url('/')})}"
        assert (await ask(guard, first)).status == 401
        assert (await ask(guard, enter, authorization=bearer)).status == 400
        led = await ask(guard, first, authorization=bearer)
        assert led.status == 303
        address = led.headers["location"]

        page = await ask(guard, address, **FOREIGN)
        assert page.status == 200, page.body
        policy = page.headers["content-security-policy"]
        assert policy.startswith("sandbox; default-src 'none'; img-src 'self' data:;")
        assert "script" not in policy and "allow" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        picture = page.body.decode().replace("&amp;", "&").split('<img src="')[1].partition('"')[0]
        got = await ask(guard, picture, **FOREIGN)
        assert (got.body, got.headers["content-type"]) == (PICTURE, "image/png")
        assert got.headers["content-security-policy"] == policy
        assert got.headers["cross-origin-resource-policy"] == "cross-origin"

        absent = await ask(guard, f"{enter}?{urlencode({'url': web.url('/<script>')})}", authorization=bearer)
        refused = await ask(guard, absent.headers["location"], **FOREIGN)
        assert refused.status == 404
        assert refused.headers["content-type"].startswith("text/plain")
        assert refused.headers["content-security-policy"] == policy

        assert (await ask(guard, address[:-1] + "x", **FOREIGN)).status == 403
        assert (await ask(guard, "/replay", authorization=bearer)).status == 403
        assert (await ask(guard, address, **FOREIGN, host="evil.test")).status == 421, "rebinding"
        assert (await ask(guard, address, **FOREIGN, method="POST")).status == 403
        clock.now += LASTS + 1
        assert (await ask(guard, address, **FOREIGN)).status == 403
        assert (await ask(guard, picture, **FOREIGN)).status == 403
        crawls.close()

    asyncio.run(attempts())
