"""Chapters C to F: redirects and links that lead astray, pages that are hard to read, robots.txt that is none.

Place in the flow: a part of `server.CASES`. The fetch of most of these is an ordinary one; what a crawl owes comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gossamer.simweb.hostile.case import HTML, OK, PAGE, HostileCase, Script, Step, answer, redirect
from gossamer.values.outcome import Outcome

PLAIN: Final = b"Content-Type: text/plain\r\n"


def _leads(number: str, name: str, location: bytes, then: str) -> HostileCase:
    """A redirect to somewhere that must not be followed blindly."""
    shown = location.decode("ascii", "backslashreplace")
    does = f"Redirects to {shown if len(shown) < 60 else f'a URL of {len(shown):,} bytes'}."
    script = redirect(location)
    return HostileCase(number=number, name=name, does=does, outcome=Outcome.REDIRECT, script=script, then=then)


def _page(number: str, name: str, does: str, body: bytes, then: str, fields: bytes = HTML) -> HostileCase:
    """A page that is fetched like any other, and whose trouble begins when it is read."""
    return HostileCase(number=number, name=name, does=does, outcome=Outcome.OK, script=answer(body, fields), then=then)


def _further(target: str) -> Iterator[Step]:
    yield b"HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: %b/x\r\nContent-Length: 0\r\n\r\n" % target.encode(
        "ascii", "replace"
    )


def _deeper(target: str) -> Iterator[Step]:
    body = b'<title>deeper</title><a href="%b/deeper">on</a>' % target.encode("ascii", "replace")
    yield OK + HTML + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _endless_rules(target: str) -> Iterator[Step]:
    yield OK + PLAIN + b"Connection: close\r\n\r\n"
    while True:
        yield b"User-agent: *\nDisallow: /private\n" * 2000


def _lone(status: bytes, fields: bytes = b"") -> Script:
    return answer(b"no", PLAIN + fields, b"HTTP/1.1 " + status + b"\r\n")


_REDIRECTS: Final = (
    HostileCase(
        number="C28a",
        name="loop to itself",
        does="Redirects to itself.",
        outcome=Outcome.REDIRECT,
        script=redirect(b""),
        then="not asked a second time",
    ),
    HostileCase(
        number="C28b",
        name="endless redirects",
        does="Redirects to a new URL each time.",
        outcome=Outcome.REDIRECT,
        script=_further,
        then="ends after 10",
    ),
    _leads("C29a", "to a file", b"file:///etc/passwd", "refused"),
    _leads("C29b", "to data", b"data:text/html,<a href=/x>x</a>", "refused"),
    _leads("C29c", "to a script", b"javascript:alert(1)", "refused"),
    _leads("C29d", "to gopher", b"gopher://127.0.0.1/", "refused"),
    _leads("C32a", "a long Location", b"/" + b"x" * 60_000, "refused: longer than 2,048 bytes"),
    _leads("C32b", "spaces in Location", b"/C32b/with some  spaces", "read as the URL standard does"),
    _leads(
        "C34", "user and password", b"http://user:secret@elsewhere.sim\\@127.0.0.1/", "one parser decides; both dropped"
    ),
    _leads("D41a", "to loopback", b"http://127.0.0.2:9/", "refused at the socket, unless allowed"),
    _leads("D41b", "to loopback, hidden", b"http://0x7f.1:9/", "normalised first, then refused"),
    _leads("D42", "to loopback in IPv6", b"http://[::ffff:127.0.0.2]:9/", "the embedded address is judged"),
    _leads("D48", "to cloud metadata", b"http://169.254.169.254/latest/meta-data/", "refused; stays refused"),
    _leads("D49", "to a blocked port", b"http://127.0.0.1:6379/", "refused unless listed"),
    _leads("D50", "to localhost", b"http://localhost:22/", "refused before a name server is asked"),
    HostileCase(
        number="C32c",
        name="no Location",
        does="A redirect that does not say where to.",
        outcome=Outcome.REDIRECT,
        script=_lone(b"302 Found"),
    ),
)

_DEEP: Final = 100_000

_RECORD: Final = b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n"

_PAGES: Final = (
    HostileCase(
        number="C38",
        name="endless directories",
        does="Each page leads one directory deeper.",
        outcome=Outcome.OK,
        script=_deeper,
        then="cut by depth and by the host's budget",
    ),
    _page(
        "C39",
        "fifty thousand links",
        "50,000 links on one page.",
        b"".join(b'<a href="https://%d.invalid/">x</a>' % n for n in range(50_000)),
        "at most 6,000 are kept; the rest is counted",
    ),
    _page(
        "E54",
        "nested tags",
        "100,000 tags one in another.",
        b"<div>" * _DEEP,
        "read in a process that can be killed, or flagged",
    ),
    _page(
        "E55",
        "fifty thousand attributes",
        "One tag with 50,000 attributes.",
        b"<p " + b"".join(b"a%d=1 " % n for n in range(50_000)) + b">",
        "read in a process that can be killed, or flagged",
    ),
    _page(
        "E56",
        "unterminated",
        "A comment, a script and a tag that never end.",
        b"<!-- " * 50_000 + b"<script>" + b"<a href=" * 50_000,
        "in linear time",
    ),
    _page(
        "E58",
        "broken text",
        "NUL, lone surrogates, overlong UTF-8 and bidi in the title.",
        b"<title>\0\xed\xa0\x80\xc0\xaf\xe2\x80\xae</title>",
        "stored as valid UTF-8",
    ),
    _page(
        "E59",
        "UTF-7",
        "Says UTF-7, where +ADw- is <.",
        b"+ADw-a href=/utf-7+AD4-x+ADw-/a+AD4-",
        "never read as UTF-7",
        b"Content-Type: text/html; charset=utf-7\r\n",
    ),
    _page(
        "E65",
        "HTML as an image",
        "HTML that says it is a PNG.",
        b"<a href=/as-image>x</a>",
        "not read as HTML",
        b"Content-Type: image/png\r\n",
    ),
    _page(
        "E67",
        "archive injection",
        "A body that looks like the next WARC record.",
        _RECORD,
        "the archive has as many records as the ledger says",
    ),
    _page(
        "E71",
        "markup in the title",
        "A title that is a script.",
        b'<title><script>alert(1)</script>"><img onerror=x></title>',
        "shown as text",
    ),
    _page(
        "E78",
        "absurd dates",
        "Last-Modified in the year 1 and an ETag of 30 KB.",
        PAGE,
        "ignored",
        HTML + b'Last-Modified: Mon, 01 Jan 0001 00:00:00 GMT\r\nETag: "' + b"e" * 30_000 + b'"\r\n',
    ),
)

_DELAYS: Final = b"User-agent: *\n" + b"".join(b"Crawl-delay: %b\n" % delay for delay in (b"NaN", b"-1", b"86400"))

_ROBOTS: Final = (
    HostileCase(
        number="F80",
        name="endless robots",
        does="A robots.txt without an end.",
        outcome=Outcome.TRUNCATED,
        script=_endless_rules,
        then="the first mebibyte counts",
    ),
    HostileCase(
        number="F83",
        name="robots rate limited",
        does="Answers 429 for robots.txt.",
        outcome=Outcome.RATE_LIMITED,
        script=_lone(b"429 Too Many Requests"),
        then="as one that cannot be reached, not as one that is not there",
    ),
    *(
        HostileCase(number=number, name=name, does=does, outcome=Outcome.OK, script=answer(body, PLAIN), then=then)
        for number, name, does, body, then in (
            ("F85a", "robots in HTML", "A page of HTML as robots.txt.", PAGE, "no line is a rule: all is allowed"),
            ("F85b", "robots in UTF-16", "Rules in UTF-16.", "User-agent: *\nDisallow: /".encode("utf-16"), "no rule"),
            ("F85c", "bare CR", "Rules parted by CR.", b"User-agent: *\rDisallow: /private\r", "CR ends a line too"),
            (
                "F85d",
                "ten thousand stars",
                "A rule of 10,000 stars.",
                b"User-agent: *\nDisallow: /" + b"*a" * 10_000,
                "linear",
            ),
            ("F87", "absurd delays", "Crawl-delay: NaN, -1, 86400.", _DELAYS, "between the floor and 300 s"),
        )
    ),
    HostileCase(
        number="F81",
        name="robots forbidden",
        does="Answers 403 for robots.txt.",
        outcome=Outcome.CLIENT_ERROR,
        script=_lone(b"403 Forbidden"),
        then="all is allowed",
    ),
    HostileCase(
        number="F82",
        name="robots broken",
        does="Answers 503 for robots.txt.",
        outcome=Outcome.SERVER_ERROR,
        script=_lone(b"503 Service Unavailable"),
        then="nothing is allowed for now: robots_unreachable",
    ),
    HostileCase(
        number="F84",
        name="robots in circles",
        does="Redirects robots.txt without an end.",
        outcome=Outcome.REDIRECT,
        script=_further,
        then="five are followed",
    ),
    HostileCase(
        number="F88a",
        name="retry after ten years",
        does="503 with Retry-After: 315360000.",
        outcome=Outcome.SERVER_ERROR,
        script=_lone(b"503 Service Unavailable", b"Retry-After: 315360000\r\n"),
        then="the host waits a day at most; the URL is kept",
    ),
    HostileCase(
        number="F88b",
        name="retry after junk",
        does="429 with Retry-After: soon.",
        outcome=Outcome.RATE_LIMITED,
        script=_lone(b"429 Too Many Requests", b"Retry-After: soon\r\n"),
        then="the host waits as without one",
    ),
)

CASES: Final = (*_REDIRECTS, *_PAGES, *_ROBOTS)
