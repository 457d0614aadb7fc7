"""Chapter A, compression: bodies that are small on the way and large in memory, or not what they say.

Place in the flow: a part of `server.CASES`.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from gossamer.simweb.hostile.case import HTML, OK, PAGE, Script, Step, answer, table

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

CASES: Final = table(
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
        "A5b": _coding(b"gzip, gzip", _nested()),
        "A6": lambda target: _coded(b"gzip", _members()),
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
