"""Content codings, undone with stops: what a server packs small must not unpack into the machine's memory. Pure.

The body is archived as it came (DESIGN 9.10), so it is decoded here and not by libcurl. Three stops (FAULTS A): the
output's cap, a ratio no honest page reaches, and the number of codings one inside the other.
"""

from collections.abc import Sequence

import msgspec
from isal import isal_zlib
from isal.igzip_lib import IsalError

#: What is asked for. br and zstd need a decoder that stops at a cap, too.
ACCEPTED = "gzip, deflate"

#: Codings one inside the other (DESIGN 9.12): gzip of gzip reached 247,000:1.
MAX_CODINGS = 2

#: Output to input above which a body is a bomb, once it is larger than :data:`RATIO_FROM` (FAULTS, section 2). Deflate
#: can reach 1032:1; a page that large and that empty is no page.
MAX_RATIO = 200
RATIO_FROM = 1 << 20

#: gzip members in one body (FAULTS 6): a million empty ones fit in 20 MB, log files joined by the day stay below this.
MAX_MEMBERS = 1000

#: Bytes fed at a time: what a decoder leaves unused is copied, so it must stay small for the whole to stay linear.
_SLICE = 1 << 16

_GZIP, _ZLIB, _RAW = 31, 15, -15


class Decoded(msgspec.Struct, frozen=True):
    """What came out. Exactly one of: whole, cut, failed."""

    data: bytes
    """All of it, or what came before the stop."""
    cut: str = ""
    """The stop that ended it; empty where none did."""
    error: str = ""
    """Why the bytes are not what the server says; empty where they are."""


def codings(value: str) -> list[str]:
    """The codings of a `Content-Encoding` value in the order of application; `identity` is none (RFC 9110, 8.4)."""
    words = [word.strip().lower() for word in value.split(",")]
    return [word.removeprefix("x-") for word in words if word not in ("", "identity")]


def refusal(applied: Sequence[str]) -> str:
    """Why these codings are not undone, known before the body is read; empty where they are."""
    if len(applied) > MAX_CODINGS:
        return f"{len(applied)} content codings; at most {MAX_CODINGS} are undone"
    unknown = [coding for coding in applied if coding not in ("gzip", "deflate")]
    return f"content coding {unknown[0][:20]!r} was not asked for" if unknown else ""


def decode(body: bytes, applied: Sequence[str], cap: int, *, whole: bool = True) -> Decoded:
    """Undo `applied`, last one first.

    Args:
        body: as received.
        applied: accepted by :func:`refusal`.
        cap: most bytes that may come out, of each coding.
        whole: the body is complete; of a cut one, what can be read is the answer.
    """
    data, cut = body, ""
    for coding in reversed(applied):
        undone = _undo(data, _GZIP if coding == "gzip" else _deflate_form(data), cap, whole and not cut)
        if undone.error:
            return undone
        data, cut = undone.data, cut or undone.cut
    if cut or len(body) * MAX_RATIO >= len(data) or len(data) <= RATIO_FROM:
        return Decoded(data, cut)
    return Decoded(data[: max(RATIO_FROM, len(body) * MAX_RATIO)], _RATIO_CUT)


_RATIO_CUT = f"more than {MAX_RATIO} times its size"


def _deflate_form(data: bytes) -> int:
    """`deflate` means the zlib format; some servers send bare deflate. The first two bytes tell (RFC 1950, 2.2)."""
    zlib = len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    return _ZLIB if zlib or not data else _RAW


def _undo(data: bytes, form: int, cap: int, whole: bool) -> Decoded:
    if not data:
        return Decoded(b"")
    try:
        if len(data) <= _SLICE:
            # Nearly every page: one call, nothing joined. What is larger than it looks goes the slow way.
            most = min(cap, RATIO_FROM)
            decoder = isal_zlib.decompressobj(form)
            out = decoder.decompress(data, most + 1)
            if decoder.eof and not decoder.unused_data and len(out) <= most:
                return Decoded(out)
        return _undo_by_slices(data, form, cap, whole)
    except IsalError as error:  # type: ignore[misc]  # a class, which its stubs call an instance
        return Decoded(b"", error=f"the content coding is broken: {error}")


def _undo_by_slices(data: bytes, form: int, cap: int, whole: bool) -> Decoded:
    out = bytearray()
    decoder, members, position, rest = isal_zlib.decompressobj(form), 1, 0, b""
    while rest or position < len(data) or not decoder.eof:
        if not rest:
            rest = data[position : position + _SLICE]
            position += len(rest)
        if decoder.eof:
            if form != _GZIP or rest[:1] != b"\x1f":
                return Decoded(b"", error="bytes after the end of the content coding")
            if members == MAX_MEMBERS:
                return Decoded(bytes(out), f"more than {MAX_MEMBERS} gzip members")
            members += 1
            decoder = isal_zlib.decompressobj(form)
        piece = decoder.decompress(rest, _SLICE)
        if not rest and not piece and not decoder.eof:
            # All bytes are in, nothing comes out, and the end was not seen.
            return Decoded(b"", error="the content coding ends too early") if whole else Decoded(bytes(out))
        out += piece
        if len(out) > cap:
            return Decoded(bytes(out[:cap]), f"more than {cap} bytes")
        if len(out) > max(RATIO_FROM, MAX_RATIO * position):
            return Decoded(bytes(out), _RATIO_CUT)
        rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    return Decoded(bytes(out))
