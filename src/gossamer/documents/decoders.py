"""Content codings one by one: each decodes a bounded piece at a time. Pure.

Place in the flow: :mod:`~gossamer.documents.content_coding` undoes the codings of a body with these, and keeps the stops.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.values.body import zstandard

#: The logarithm of the largest window that a Zstandard frame may ask for: 8 MiB, as RFC 9659 has it for the web.
MAX_WINDOW_LOG = 23

#: The parameter by which zlib's interface takes deflate without header and check sum.
_RAW = -15

#: Bytes of the longest header of a gzip member: it may hold a name and a comment without an end.
_MAX_HEADER = 1 << 16


class Broken(Exception):
    """The bytes are not what the server says."""


class Decoder(ABC):
    """One member of one coding, decoded a bounded piece at a time."""

    __slots__ = ()

    member: tuple[bytes, ...] = ()
    """How a further member begins; empty where there can be none."""
    padding = b""
    """Bytes that may stand between members and behind them, as on tapes and in blocks."""
    shown = 2
    """Bytes in which the form of a coding, and the beginning of a member, show; they may come one by one."""
    ended: bool
    """The end of the member was seen."""
    has_more: bool
    """It holds output back that needs no further input."""
    is_whole = False
    """All output has come, though the end has not: of its check sum a part is missing."""
    is_damaged = False
    """Its check sum is wrong."""
    is_lost = False
    """It is, and the length that it says, too: perhaps this is not the end, but damage that reads as one."""

    def start(self, data: bytes) -> None:  # noqa: B027  # most have one form
        """Look at the first bytes, at least two of them where there are two: some codings have several forms."""

    @abstractmethod
    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        """About `most` bytes of output at the most, and the input that was not used. Raises :class:`Broken`."""


class _Flate(Decoder):
    """Deflate with a header before it and a check sum behind it, which are read here: a wrong sum costs nothing that came out."""

    __slots__ = ("_around", "_object", "_size", "_sum", "ended", "has_more", "is_damaged", "is_lost", "is_whole")

    def __init__(self) -> None:
        self.ended = self.has_more = self.is_damaged = self.is_lost = self.is_whole = False
        self._object = isal_zlib.decompressobj(_RAW)
        self._around: bytes | None = b""
        """The bytes that have come of the header, or of the check sum once the document is whole; None between them."""
        self._sum, self._size = self.sum_of(b""), 0

    tail: int
    """Bytes that follow: the check sum, which comes first, then perhaps the length."""
    order: Literal["little", "big"]
    """Of the bytes of a check sum."""
    sum_of: ClassVar[Callable[..., int]]
    """The check sum of some output, behind the one of all before."""

    @abstractmethod
    def head_of(self, data: bytes) -> int | None:
        """Bytes of the header; None where more of it must come. Raises :class:`Broken`."""

    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        if self.is_whole:
            return b"", self._end(data)
        if self._around is not None:
            data, self._around = self._around + data, None
            head = self.head_of(data)
            if head is None:
                if len(data) > _MAX_HEADER:
                    raise Broken("its header is too long")
                self._around = data
                return b"", b""
            data = data[head:]
        try:
            out = self._object.decompress(data, most)
        except IsalError as error:  # type: ignore[misc]  # a class, which its stubs call an instance
            raise Broken(str(error)) from None
        self._sum, self._size = self.sum_of(out, self._sum), self._size + len(out)
        self.is_whole = self._object.eof
        if self.is_whole:
            self.has_more, self._around = False, b""
            return out, self._end(self._object.unused_data)
        self.has_more = not self._object.unconsumed_tail and len(out) == most
        return out, self._object.unconsumed_tail

    def _end(self, data: bytes) -> bytes:
        """Read what stands behind the document; returns what does not belong to it."""
        before = self._around or b""
        self._around = before + data[: self.tail - len(before)]
        self.ended = len(self._around) == self.tail
        tail = self._around
        self.is_damaged = self.ended and tail != b"" and int.from_bytes(tail[:4], self.order) != self._sum
        is_long = len(tail) > 4 and int.from_bytes(tail[4:], "little") == self._size & 0xFFFFFFFF
        self.is_lost = self.is_damaged and not is_long
        return data[self.tail - len(before) :]


class _Gzip(_Flate):
    __slots__ = ()
    member = (b"\x1f\x8b\x08",)
    padding = b"\0"
    shown = 3
    tail, order = 8, "little"
    sum_of = staticmethod(isal_zlib.crc32)

    def head_of(self, data: bytes) -> int | None:
        """See RFC 1952, 2.3."""
        if len(data) < 12:
            return None
        end, flags = 10, data[3]
        if not data.startswith(self.member) or flags & 0xE0:
            raise Broken("it does not begin as gzip does")
        if flags & 0x04:
            end += 2 + int.from_bytes(data[10:12], "little")
        for flag in (0x08, 0x10):
            if flags & flag:
                end = data.find(b"\0", end) + 1
                if not end:
                    return None
        end += flags & 0x02
        return end if end <= len(data) else None


class _Deflate(_Flate):
    """`deflate` means the zlib format; some servers send bare deflate. The first two bytes tell (RFC 1950, 2.2)."""

    __slots__ = ("tail",)
    order = "big"
    sum_of = staticmethod(isal_zlib.adler32)

    def start(self, data: bytes) -> None:
        self.tail = 4 if len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0 else 0

    def head_of(self, data: bytes) -> int | None:
        return (2 if len(data) >= 2 else None) if self.tail else 0


class _Brotli(Decoder):
    __slots__ = ("_error", "_object", "ended", "has_more")
    shown = 1

    def __init__(self) -> None:
        import brotli

        self.ended = self.has_more = False
        self._object = brotli.Decompressor()
        self._error = brotli.error

    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        try:
            out: bytes = self._object.process(data, output_buffer_limit=most)
        except self._error as error:
            raise Broken(str(error)) from None
        self.ended = self._object.is_finished()
        self.has_more = not self.ended and not self._object.can_accept_more_data()
        return out, b""


class _Zstd(Decoder):
    __slots__ = ("_error", "_object", "ended", "has_more")
    shown = 4
    #: A frame, and the skippable frames that may stand before one (RFC 8878, section 3.1).
    member = (b"\x28\xb5\x2f\xfd", *(bytes((0x50 + n, 0x2A, 0x4D, 0x18)) for n in range(16)))

    def __init__(self) -> None:
        zstd = zstandard()
        self.ended = self.has_more = False
        self._object = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG})
        self._error = zstd.ZstdError

    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        try:
            out = self._object.decompress(data, most)
        except self._error as error:
            raise Broken(str(error)) from None
        self.ended = self._object.eof
        self.has_more = not self.ended and not self._object.needs_input
        return out, self._object.unused_data if self.ended else b""


DECODERS: dict[str, type[Decoder]] = {"gzip": _Gzip, "deflate": _Deflate, "br": _Brotli, "zstd": _Zstd}
