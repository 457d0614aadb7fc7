"""Chapters A and B: bodies that are small on the way and large in memory, or not what they say; answers that are endless, slow, no
HTTP, or that contradict themselves.

Place in the flow: a part of `server.CASES`.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from gossamer.simweb.hostile.case import HTML, OK, PAGE, HostileAct, Script, Step, always, answer, endless, table

MEGABYTE: Final = 1 << 20

BOMB_SIZE: Final = 10 * MEGABYTE
"""Bytes on the way: unpacked they are 10 GiB."""


@cache
def _bomb_piece() -> bytes:
    """A megabyte of zeros in raw deflate, cut so that it can be repeated as often as one likes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(bytes(MEGABYTE)) + packer.flush(zlib.Z_FULL_FLUSH)


def _bomb(start: bytes) -> Iterator[bytes]:
    """Deflate without an end: its check sums are never reached by who stops in time."""
    yield start
    piece = _bomb_piece() * 64
    for _ in range(BOMB_SIZE // len(piece)):
        yield piece


def _coded(coding: bytes, body: Iterable[bytes], fields: bytes = HTML, status: bytes = OK) -> Iterator[Step]:
    yield status + fields + b"Content-Encoding: " + coding + b"\r\nConnection: close\r\n\r\n"
    yield from body


GZIP_START: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
ZLIB_START: Final = b"\x78\xda"


def _zstd_bomb(window: int) -> Iterator[bytes]:
    """A Zstandard frame (RFC 8878) of blocks that say: 128 KiB of the same byte, in four bytes."""
    yield b"\x28\xb5\x2f\xfd\0" + bytes([window])
    block = (131_072 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    yield from [block * 16_384] * 16


@cache
def _brotli_bomb() -> bytes:
    """52 bytes that unpack to 64 MiB."""
    import brotli

    packed: bytes = brotli.compress(bytes(64 * MEGABYTE), quality=5, lgwin=24)
    return packed


def _coding(name: bytes, make: bytes) -> Script:
    return answer(make, HTML + b"Content-Encoding: " + name + b"\r\n")


_PLAIN = PAGE * 20


@cache
def _brotli_page() -> bytes:
    import brotli

    packed: bytes = brotli.compress(_PLAIN)
    return packed


_PACKED = gzip.compress(_PLAIN, mtime=0)

_COMPRESSED: Final = table(
    """
    A1 | gzip bomb | truncated | 10 MiB of gzip that unpack to 10 GiB. | at most the cap is held in memory
    A2a | deflate bomb, raw | truncated | 10 MiB of bare deflate that unpack to 10 GiB.
    A2b | deflate bomb, zlib | truncated | The same in zlib's format.
    A3 | brotli bomb | truncated | 52 bytes of Brotli that unpack to 64 MiB.
    A4a | zstd bomb | truncated | 1 MiB of Zstandard that unpacks to 32 GiB.
    A4b | zstd window | decode_failed | The same, asking for a window of 3.75 TiB. | windows over 8 MiB are refused
    A5a | a hundred codings | decode_failed | Content-Encoding names gzip a hundred times. | refused before \
        the body is read
    A5b | gzip in gzip | truncated | 8 MiB of zeros in gzip in gzip: a few hundred bytes.
    A6 | a million members | truncated | A million empty gzip members, 20 MB. | in time that grows with the \
        bytes, not with their square
    A6b | a million frames | truncated | A million empty Zstandard frames, 9 MB.
    A7a | plain as gzip | decode_failed | Says gzip and sends plain HTML. | the bytes are archived as they came
    A7b | gzip cut short | truncated | Gzip that ends in the middle, with a length that agrees. | what was \
        decoded is read, and the row notes it
    A7c | gzip and junk | ok | Whole gzip, then bytes that are none. | the document is whole, and the row notes it
    A7d | brotli and junk | ok | Whole Brotli, then bytes that are none. | the document is whole, and the row \
        notes it
    A8 | unknown coding | ok | A content coding that was not asked for. | read as if it were not named, and \
        the row notes it
    A9a | bomb on a redirect | redirect | A redirect whose body is a gzip bomb.
    A9b | bomb on an error page | client_error | A 404 whose body is a gzip bomb.
    """,
    {
        "A1": lambda target: _coded(b"gzip", _bomb(GZIP_START)),
        "A2a": lambda target: _coded(b"deflate", _bomb(b"")),
        "A2b": lambda target: _coded(b"deflate", _bomb(ZLIB_START)),
        "A3": lambda target: _coded(b"br", [_brotli_bomb()]),
        "A4a": lambda target: _coded(b"zstd", _zstd_bomb(0x58)),
        "A4b": lambda target: _coded(b"zstd", _zstd_bomb(0xFF)),
        "A5a": _coding(b", ".join([b"gzip"] * 100), _PACKED),
        "A5b": _coding(b"gzip, gzip", gzip.compress(gzip.compress(bytes(8 * MEGABYTE), mtime=0), mtime=0)),
        "A6": lambda target: _coded(b"gzip", [gzip.compress(b"", mtime=0) * 10_000] * 100),
        "A6b": lambda target: _coded(b"zstd", [bytes.fromhex("28b52ffd2000010000") * 10_000] * 100),
        "A7a": _coding(b"gzip", _PLAIN),
        "A7b": _coding(b"gzip", _PACKED[:-20]),
        "A7c": _coding(b"gzip", _PACKED + b"junk" * 10),
        "A7d": lambda target: _coded(b"br", [_brotli_page() + b"junk" * 10]),
        "A8": _coding(b"x-unheard-of", _PLAIN),
        "A9a": lambda target: _coded(b"gzip", _bomb(GZIP_START), b"Location: /healthy\r\n", b"HTTP/1.1 302 Found\r\n"),
        "A9b": lambda target: _coded(b"gzip", _bomb(GZIP_START), status=b"HTTP/1.1 404 Not Found\r\n"),
    },
)


HUGE: Final = 1 << 20


def _drip(first: bytes) -> Iterator[Step]:
    """One drop a second for ever."""
    yield first
    while True:
        yield 1.0
        yield b"x"


def _sized(*fields: bytes) -> bytes:
    return OK + HTML + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + b"5\r\nhello\r\n0\r\n\r\n"


def _chunked(*chunks: bytes) -> bytes:
    return OK + HTML + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks)


def _endless_trailers() -> Iterator[Step]:
    yield _chunked(b"5\r\nhello\r\n0\r\n")
    for number in range(200_000):
        yield b"".join(b"X-%d: y\r\n" % (number * 100 + n) for n in range(100))


def _cookies() -> Iterable[Step]:
    yield OK + HTML
    yield b"".join(b"Set-Cookie: c%d=%d; Expires=Fri, 31 Dec 9999 23:59:59 GMT\r\n" % (n, n) for n in range(10_000))
    yield b"Content-Length: 0\r\n\r\n"


_FRAMED: Final = table(
    """
    B10 | endless body | truncated | A body without a length and without an end. | the connection is closed \
        and not used again
    B11 | slow body | too_slow | A byte of the body each second. | other hosts keep their pace
    B12 | slow head | timed_out | A byte of the head each second.
    B13 | never answers | timed_out | Takes the request and says nothing.
    B22a | reset in the head | connect_failed | Resets the connection in the middle of the head. | tried again \
        after a while, at most three times
    B22b | reset in the body | truncated | Resets the connection in the middle of the body. | what came is \
        archived and marked
    B14a | a line of a megabyte | protocol_failed | One header line of 1 MiB.
    B14b | a hundred thousand lines | protocol_failed | 100,000 short header lines.
    B15 | endless 1xx | protocol_failed | 10,000 interim answers.
    B16a | length and chunks | protocol_failed | Both Content-Length and Transfer-Encoding. | never smuggled \
        into the next answer
    B16b | two lengths | protocol_failed | Two Content-Lengths that differ.
    B16c | negative length | protocol_failed | Content-Length: -1.
    B16d | length beyond belief | protocol_failed | Content-Length: 10^30.
    B16e | hexadecimal length | protocol_failed | Content-Length: 0x10.
    B16f | wide digits | protocol_failed | Content-Length in full-width digits.
    B16g | a list of equal lengths | ok | Says one Content-Length twice in one field. | noted
    B16h | chunked twice | ok | Transfer-Encoding: chunked in two fields, of one chunked body. | noted
    B16i | a spaced length | protocol_failed | White space between Content-Length and its colon.
    B19a | NUL in a field | protocol_failed | A NUL byte in a header value.
    B19b | bare CR | protocol_failed | A bare carriage return that hides a second field.
    B19e | untidy fields | ok | White space before a colon, and an escape character in a value. | noted; \
        printed with the character escaped
    B19c | names that are none | ok | A field name in emoji, and the warning of a script among the fields. | \
        ignored and noted
    B19d | lines ended by LF | ok | Ends its lines by LF alone, which may be read.
    B20a | HTTP/0.9 | protocol_failed | HTML without any head.
    B20b | ICY | protocol_failed | The status line of a radio station.
    B20c | status 099 | protocol_failed | A status below 100.
    B20d | status 999 | protocol_failed | A status above 599.
    B20e | empty status line | protocol_failed | An empty status line.
    B20f | a reason of a megabyte | protocol_failed | A reason of 1 MiB.
    B24a | SSH | protocol_failed | Speaks SSH.
    B24b | SMTP | protocol_failed | Speaks SMTP.
    B24c | Redis | protocol_failed | Speaks Redis.
    B17a | no chunk size | protocol_failed | A chunk size without digits.
    B17b | huge chunk size | protocol_failed | A chunk size of 17 digits.
    B17c | no line end | protocol_failed | A chunk without its line end.
    B17d | endless trailers | protocol_failed | A chunked body and trailers without an end.
    B17e | huge chunk extension | ok | A chunk with an extension of 8 MiB. | read past, and never kept
    B18a | less than promised | truncated | Closes before Content-Length is reached. | what came is archived \
        and marked
    B18b | more than promised | ok | Sends a second answer, unasked, after the first, and stays. | never \
        attached to the next URL (B21)
    B25 | 204 with a body | ok | A 204 that has a body all the same. | the body is left out
    B25b | 304 with a body | not_modified | A 304 to a request without conditions, with a body. | the body is \
        left out, the connection closed
    B25c | a part unasked | protocol_failed | A 206 to a request without a range. | tried again, not taken for \
        the whole
    B27 | cookie bomb | protocol_failed | 10,000 cookies that never expire. | a head of more than 4,000 fields \
        is refused whole; cookies are off
    """,
    {
        "B10": endless(PAGE * 1000),
        "B11": lambda target: _drip(OK + HTML + b"Content-Length: 1000000\r\n\r\n"),
        "B12": lambda target: _drip(OK + b"X-Slow: "),
        "B13": always(HostileAct.STAY),
        "B22a": always(OK + b"X-Cut: ", 0.0, HostileAct.RESET),
        "B22b": always(OK + HTML + b"Content-Length: 1000\r\n\r\n" + PAGE, 0.0, HostileAct.RESET),
        "B14a": OK + b"X: " + b"x" * HUGE + b"\r\n\r\n",
        "B14b": OK + b"X: y\r\n" * 100_000 + b"\r\n",
        "B15": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 10_000,
        "B16a": _sized(b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        "B16b": _sized(b"Content-Length: 5", b"Content-Length: 6"),
        "B16c": _sized(b"Content-Length: -1"),
        "B16d": _sized(b"Content-Length: 1" + b"0" * 30),
        "B16e": _sized(b"Content-Length: 0x10"),
        "B16f": _sized("Content-Length: ５".encode()),
        "B16g": OK + HTML + b"Content-Length: %d, %d\r\n\r\n" % (len(PAGE), len(PAGE)) + PAGE,
        "B16h": OK + HTML + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n%x\r\n" % len(PAGE) + PAGE + b"\r\n0\r\n\r\n",
        "B16i": _sized(b"Content-Length : 5"),
        "B19a": _sized(b"X: a\0b", b"Content-Length: 0"),
        "B19b": _sized(b"X: a\rSet-Cookie: b"),
        "B19e": answer(PAGE, HTML + b"X-A : 1\r\nX-B: \x1b[31m\r\n"),
        "B19c": answer(PAGE, HTML + "\N{SPIDER WEB}: 1\r\nPHP Warning: x\r\n".encode()),
        "B19d": (OK + HTML).replace(b"\r", b"") + b"Content-Length: %d\n\n" % len(PAGE) + PAGE,
        "B20a": PAGE,
        "B20b": b"ICY 200 OK\r\n\r\nmusic",
        "B20c": b"HTTP/1.1 099 Low\r\n\r\n",
        "B20d": b"HTTP/1.1 999 High\r\nContent-Length: 0\r\n\r\n",
        "B20e": b"HTTP/1.1 \r\n\r\n",
        "B20f": b"HTTP/1.1 200 " + b"x" * HUGE + b"\r\n\r\n",
        "B24a": b"SSH-2.0-OpenSSH_9.6\r\n",
        "B24b": b"220 mail.sim ESMTP\r\n",
        "B24c": b"-ERR unknown command 'GET'\r\n",
        "B17a": _chunked(b"zz\r\nhello\r\n0\r\n\r\n"),
        "B17b": _chunked(b"f" * 17 + b"\r\nhello\r\n"),
        "B17c": _chunked(b"5\r\nhelloX0\r\n\r\n"),
        "B17d": lambda target: _endless_trailers(),
        "B17e": always(_chunked(b"5;"), *[b"x" * HUGE] * 8, b"\r\nhello\r\n0\r\n\r\n"),
        "B18a": OK + HTML + b"Content-Length: 1000\r\n\r\n" + PAGE,
        "B18b": always(
            OK + HTML + b"Content-Length: %d\r\n\r\n" % len(PAGE) + PAGE + OK + b"Content-Length: 8\r\n\r\npoisoned",
            HostileAct.STAY,
        ),
        "B25": b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
        "B25b": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello",
        "B25c": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-4/9\r\nContent-Length: 5\r\n\r\nhello",
        "B27": lambda target: _cookies(),
    },
)

CASES: Final = (*_COMPRESSED, *_FRAMED)
