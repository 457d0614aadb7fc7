"""Chapter A, compression: bodies that are small on the way and large in memory, or not what they say.

Place in the flow: a part of `server.CASES`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from gossamer.simweb.hostile.case import HTML, OK, PAGE, HostileCase, Script, Step, answer
from gossamer.values.outcome import Outcome

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


def _members() -> Iterator[bytes]:
    member = gzip.compress(b"", mtime=0)
    yield from [member * 10_000] * 100


def _nested() -> bytes:
    body = bytes(8 * MEGABYTE)
    for _ in range(2):
        body = gzip.compress(body, mtime=0)
    return body


def _coding(name: bytes, make: bytes) -> Script:
    return answer(make, HTML + b"Content-Encoding: " + name + b"\r\n")


_PLAIN = PAGE * 20


@cache
def _brotli_page() -> bytes:
    import brotli

    packed: bytes = brotli.compress(_PLAIN)
    return packed


_PACKED = gzip.compress(_PLAIN, mtime=0)

CASES: Final = (
    HostileCase(
        number="A1",
        name="gzip bomb",
        does="10 MiB of gzip that unpack to 10 GiB.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _coded(b"gzip", _bomb(GZIP_START)),
        then="at most the cap is held in memory",
    ),
    HostileCase(
        number="A2a",
        name="deflate bomb, raw",
        does="10 MiB of bare deflate that unpack to 10 GiB.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _coded(b"deflate", _bomb(b"")),
    ),
    HostileCase(
        number="A2b",
        name="deflate bomb, zlib",
        does="The same in zlib's format.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _coded(b"deflate", _bomb(ZLIB_START)),
    ),
    HostileCase(
        number="A3",
        name="brotli bomb",
        does="52 bytes of Brotli that unpack to 64 MiB.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _coded(b"br", [_brotli_bomb()]),
    ),
    HostileCase(
        number="A4a",
        name="zstd bomb",
        does="1 MiB of Zstandard that unpacks to 32 GiB.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _coded(b"zstd", _zstd_bomb(0x58)),
    ),
    HostileCase(
        number="A4b",
        name="zstd window",
        does="The same, asking for a window of 3.75 TiB.",
        outcome=Outcome.DECODE_FAILED,
        script=lambda target: _coded(b"zstd", _zstd_bomb(0xFF)),
        then="windows over 8 MiB are refused",
    ),
    HostileCase(
        number="A5a",
        name="a hundred codings",
        does="Content-Encoding names gzip a hundred times.",
        outcome=Outcome.DECODE_FAILED,
        script=_coding(b", ".join([b"gzip"] * 100), _PACKED),
        then="refused before the body is read",
    ),
    HostileCase(
        number="A5b",
        name="gzip in gzip",
        does="8 MiB of zeros in gzip in gzip: a few hundred bytes.",
        outcome=Outcome.TRUNCATED,
        script=_coding(b"gzip, gzip", _nested()),
    ),
    HostileCase(
        number="A6",
        name="a million members",
        does="A million empty gzip members, 20 MB.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _coded(b"gzip", _members()),
        then="in time that grows with the bytes, not with their square",
    ),
    HostileCase(
        number="A6b",
        name="a million frames",
        does="A million empty Zstandard frames, 9 MB.",
        outcome=Outcome.TRUNCATED,
        script=lambda target: _coded(b"zstd", [bytes.fromhex("28b52ffd2000010000") * 10_000] * 100),
    ),
    HostileCase(
        number="A7a",
        name="plain as gzip",
        does="Says gzip and sends plain HTML.",
        outcome=Outcome.DECODE_FAILED,
        script=_coding(b"gzip", _PLAIN),
        then="the bytes are archived as they came",
    ),
    HostileCase(
        number="A7b",
        name="gzip cut short",
        does="Gzip that ends in the middle, with a length that agrees.",
        outcome=Outcome.TRUNCATED,
        script=_coding(b"gzip", _PACKED[:-20]),
        then="what was decoded is read, and the row notes it",
    ),
    HostileCase(
        number="A7c",
        name="gzip and junk",
        does="Whole gzip, then bytes that are none.",
        outcome=Outcome.OK,
        script=_coding(b"gzip", _PACKED + b"junk" * 10),
        then="the document is whole, and the row notes it",
    ),
    HostileCase(
        number="A7d",
        name="brotli and junk",
        does="Whole Brotli, then bytes that are none.",
        outcome=Outcome.OK,
        script=lambda target: _coded(b"br", [_brotli_page() + b"junk" * 10]),
        then="the document is whole, and the row notes it",
    ),
    HostileCase(
        number="A8",
        name="unknown coding",
        does="A content coding that was not asked for.",
        outcome=Outcome.OK,
        script=_coding(b"x-unheard-of", _PLAIN),
        then="read as if it were not named, and the row notes it",
    ),
    HostileCase(
        number="A9a",
        name="bomb on a redirect",
        does="A redirect whose body is a gzip bomb.",
        outcome=Outcome.REDIRECT,
        script=lambda target: _coded(b"gzip", _bomb(GZIP_START), b"Location: /healthy\r\n", b"HTTP/1.1 302 Found\r\n"),
    ),
    HostileCase(
        number="A9b",
        name="bomb on an error page",
        does="A 404 whose body is a gzip bomb.",
        outcome=Outcome.CLIENT_ERROR,
        script=lambda target: _coded(b"gzip", _bomb(GZIP_START), status=b"HTTP/1.1 404 Not Found\r\n"),
    ),
)
