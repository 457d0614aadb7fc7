"""Chapter B, transport and framing: answers that are endless, slow, no HTTP, or that contradict themselves.

Place in the flow: a part of `server.CASES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gossamer.simweb.hostile.case import HTML, OK, PAGE, HostileAct, HostileCase, Script, Step, always, answer
from gossamer.values.outcome import Outcome

HUGE: Final = 1 << 20


def _endless() -> Iterator[Step]:
    yield OK + HTML + b"Connection: close\r\n\r\n"
    while True:
        yield PAGE * 1000


def _drip(first: bytes, drop: bytes) -> Iterator[Step]:
    """One drop a second for ever."""
    yield first
    while True:
        yield 1.0
        yield drop


def _broken(number: str, name: str, does: str, raw: bytes, then: str = "") -> HostileCase:
    return HostileCase(
        number=number, name=name, does=does, outcome=Outcome.PROTOCOL_FAILED, script=always(raw), then=then
    )


def _sized(*fields: bytes) -> bytes:
    return OK + HTML + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + b"5\r\nhello\r\n0\r\n\r\n"


def _chunked(*chunks: bytes) -> bytes:
    return OK + HTML + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks)


def _chunked_twice(body: bytes) -> bytes:
    return OK + HTML + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n" + body


def _endless_trailers() -> Iterator[Step]:
    yield _chunked(b"5\r\nhello\r\n0\r\n")
    for number in range(200_000):
        yield b"".join(b"X-%d: y\r\n" % (number * 100 + n) for n in range(100))


def _kept_open(*steps: Step) -> Script:
    return lambda target: (*steps, HostileAct.STAY)


def _cookies() -> Iterable[Step]:
    yield OK + HTML
    yield b"".join(b"Set-Cookie: c%d=%d; Expires=Fri, 31 Dec 9999 23:59:59 GMT\r\n" % (n, n) for n in range(10_000))
    yield b"Content-Length: 0\r\n\r\n"


_SLOW: Final = (
    HostileCase(
        number="B10",
        name="endless body",
        does="A body without a length and without an end.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _endless(),
        then="the connection is closed and not used again",
    ),
    HostileCase(
        number="B11",
        name="slow body",
        does="A byte of the body each second.",
        outcome=Outcome.TOO_SLOW,
        script=lambda target: _drip(OK + HTML + b"Content-Length: 1000000\r\n\r\n", b"x"),
        then="other hosts keep their pace",
        stalls=True,
    ),
    HostileCase(
        number="B12",
        name="slow head",
        does="A byte of the head each second.",
        outcome=Outcome.TIMED_OUT,
        script=lambda target: _drip(OK + b"X-Slow: ", b"x"),
        stalls=True,
    ),
    HostileCase(
        number="B13",
        name="never answers",
        does="Takes the request and says nothing.",
        outcome=Outcome.TIMED_OUT,
        script=_kept_open(),
        stalls=True,
    ),
    HostileCase(
        number="B22a",
        name="reset in the head",
        does="Resets the connection in the middle of the head.",
        outcome=Outcome.CONNECT_FAILED,
        script=always(OK + b"X-Cut: ", 0.0, HostileAct.RESET),
        then="tried again after a while, at most three times",
    ),
    HostileCase(
        number="B22b",
        name="reset in the body",
        does="Resets the connection in the middle of the body.",
        outcome=Outcome.TRUNCATED,
        script=always(OK + HTML + b"Content-Length: 1000\r\n\r\n" + PAGE, 0.0, HostileAct.RESET),
        then="what came is archived and marked",
    ),
)

_HEADS: Final = (
    _broken("B14a", "a line of a megabyte", "One header line of 1 MiB.", OK + b"X: " + b"x" * HUGE + b"\r\n\r\n"),
    _broken("B14b", "a hundred thousand lines", "100,000 short header lines.", OK + b"X: y\r\n" * 100_000 + b"\r\n"),
    _broken("B15", "endless 1xx", "10,000 interim answers.", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 10_000),
    _broken(
        "B16a",
        "length and chunks",
        "Both Content-Length and Transfer-Encoding.",
        _sized(b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        "never smuggled into the next answer",
    ),
    _broken(
        "B16b", "two lengths", "Two Content-Lengths that differ.", _sized(b"Content-Length: 5", b"Content-Length: 6")
    ),
    _broken("B16c", "negative length", "Content-Length: -1.", _sized(b"Content-Length: -1")),
    _broken("B16d", "length beyond belief", "Content-Length: 10^30.", _sized(b"Content-Length: 1" + b"0" * 30)),
    _broken("B16e", "hexadecimal length", "Content-Length: 0x10.", _sized(b"Content-Length: 0x10")),
    _broken("B16f", "wide digits", "Content-Length in full-width digits.", _sized("Content-Length: ５".encode())),
    HostileCase(
        number="B16g",
        name="a list of equal lengths",
        does="Says one Content-Length twice in one field.",
        outcome=Outcome.OK,
        script=always(OK + HTML + b"Content-Length: %d, %d\r\n\r\n" % (len(PAGE), len(PAGE)) + PAGE),
        then="noted",
    ),
    HostileCase(
        number="B16h",
        name="chunked twice",
        does="Transfer-Encoding: chunked in two fields, of one chunked body.",
        outcome=Outcome.OK,
        script=always(_chunked_twice(b"%x\r\n" % len(PAGE) + PAGE + b"\r\n0\r\n\r\n")),
        then="noted",
    ),
    _broken(
        "B16i", "a spaced length", "White space between Content-Length and its colon.", _sized(b"Content-Length : 5")
    ),
    _broken("B19a", "NUL in a field", "A NUL byte in a header value.", _sized(b"X: a\0b", b"Content-Length: 0")),
    _broken("B19b", "bare CR", "A bare carriage return that hides a second field.", _sized(b"X: a\rSet-Cookie: b")),
    HostileCase(
        number="B19e",
        name="untidy fields",
        does="White space before a colon, and an escape character in a value.",
        outcome=Outcome.OK,
        script=answer(PAGE, HTML + b"X-A : 1\r\nX-B: \x1b[31m\r\n"),
        then="noted; printed with the character escaped",
    ),
    HostileCase(
        number="B19c",
        name="names that are none",
        does="A field name in emoji, and the warning of a script among the fields.",
        outcome=Outcome.OK,
        script=answer(PAGE, HTML + "\N{SPIDER WEB}: 1\r\nPHP Warning: x\r\n".encode()),
        then="ignored and noted",
    ),
    HostileCase(
        number="B19d",
        name="lines ended by LF",
        does="Ends its lines by LF alone, which may be read.",
        outcome=Outcome.OK,
        script=always((OK + HTML).replace(b"\r", b"") + b"Content-Length: %d\n\n" % len(PAGE) + PAGE),
    ),
    _broken("B20a", "HTTP/0.9", "HTML without any head.", PAGE),
    _broken("B20b", "ICY", "The status line of a radio station.", b"ICY 200 OK\r\n\r\nmusic"),
    _broken("B20c", "status 099", "A status below 100.", b"HTTP/1.1 099 Low\r\n\r\n"),
    _broken("B20d", "status 999", "A status above 599.", b"HTTP/1.1 999 High\r\nContent-Length: 0\r\n\r\n"),
    _broken("B20e", "empty status line", "An empty status line.", b"HTTP/1.1 \r\n\r\n"),
    _broken("B20f", "a reason of a megabyte", "A reason of 1 MiB.", b"HTTP/1.1 200 " + b"x" * HUGE + b"\r\n\r\n"),
    _broken("B24a", "SSH", "Speaks SSH.", b"SSH-2.0-OpenSSH_9.6\r\n"),
    _broken("B24b", "SMTP", "Speaks SMTP.", b"220 mail.sim ESMTP\r\n"),
    _broken("B24c", "Redis", "Speaks Redis.", b"-ERR unknown command 'GET'\r\n"),
)

_BODIES: Final = (
    _broken("B17a", "no chunk size", "A chunk size without digits.", _chunked(b"zz\r\nhello\r\n0\r\n\r\n")),
    _broken("B17b", "huge chunk size", "A chunk size of 17 digits.", _chunked(b"f" * 17 + b"\r\nhello\r\n")),
    _broken("B17c", "no line end", "A chunk without its line end.", _chunked(b"5\r\nhelloX0\r\n\r\n")),
    HostileCase(
        number="B17d",
        name="endless trailers",
        does="A chunked body and trailers without an end.",
        outcome=Outcome.PROTOCOL_FAILED,
        script=lambda target: _endless_trailers(),
    ),
    HostileCase(
        number="B17e",
        name="huge chunk extension",
        does="A chunk with an extension of 8 MiB.",
        outcome=Outcome.OK,
        script=lambda target: iter([_chunked(b"5;"), *[b"x" * HUGE] * 8, b"\r\nhello\r\n0\r\n\r\n"]),
        then="read past, and never kept",
    ),
    HostileCase(
        number="B18a",
        name="less than promised",
        does="Closes before Content-Length is reached.",
        outcome=Outcome.TRUNCATED,
        script=always(OK + HTML + b"Content-Length: 1000\r\n\r\n" + PAGE),
        then="what came is archived and marked",
    ),
    HostileCase(
        number="B18b",
        name="more than promised",
        does="Sends a second answer, unasked, after the first, and stays.",
        outcome=Outcome.OK,
        script=_kept_open(
            OK + HTML + b"Content-Length: %d\r\n\r\n" % len(PAGE) + PAGE + OK + b"Content-Length: 8\r\n\r\npoisoned"
        ),
        then="never attached to the next URL (B21)",
    ),
    HostileCase(
        number="B25",
        name="204 with a body",
        does="A 204 that has a body all the same.",
        outcome=Outcome.OK,
        script=always(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        then="the body is left out",
    ),
    HostileCase(
        number="B25b",
        name="304 with a body",
        does="A 304 to a request without conditions, with a body.",
        outcome=Outcome.NOT_MODIFIED,
        script=always(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"),
        then="the body is left out, the connection closed",
    ),
    _broken(
        "B25c",
        "a part unasked",
        "A 206 to a request without a range.",
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/9\r\nContent-Length: 5\r\n\r\nhello",
        "tried again, not taken for the whole",
    ),
    HostileCase(
        number="B27",
        name="cookie bomb",
        does="10,000 cookies that never expire.",
        outcome=Outcome.PROTOCOL_FAILED,
        script=lambda target: _cookies(),
        then="a head of more than 200 fields is refused whole; cookies are off",
    ),
)

CASES: Final = (*_SLOW, *_HEADS, *_BODIES)
