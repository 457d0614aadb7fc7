"""Reading what Gossamer archived: one record by its place, or all of a file in order, with the damage that is found.

Place in the flow: commands read a record where a row says that it lies (:func:`read_record`), piece by piece: a body that is
too large for memory goes to disk again, as when it was fetched. `gossamer verify --deep`, `gossamer export` and a new index
read whole files (:func:`scan`). No body is held there: it is hashed as it passes, so memory does not follow the size of a
record. Where a record is damaged, the scan goes on at the next place at which one begins: the bytes between are reported as one
gap.

It knows one form: one gzip member a record, as :mod:`gossamer.storage.archive.records` makes them. A library that iterates over the
files of all programs buys nothing where the place of every record is known.
"""

import base64
import hashlib
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec
from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.values.body import PIECE, Body, BodyWriter, pieces
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.visit import Location

_END_OF_HEAD = b"\r\n\r\n"

#: The fields of a record end within so many bytes: ours have a URL or two and some hashes.
MOST_FIELDS = 64 << 10

#: A header block ends within so many bytes: libcurl takes 300 KB.
MOST_HEAD = 1 << 20


class ArchivedRecord(msgspec.Struct, frozen=True):
    """A record as it stands in the archive."""

    fields: dict[str, str]
    """Names in lower case."""
    preamble: bytes
    """Version and fields, with the empty line that ends them."""
    head: bytes
    """The HTTP header block, with the empty line that ends it; empty where it did not come by HTTP."""
    body: Body
    """The bytes behind the header block: the body as it came, with its content coding."""

    @property
    def kind(self) -> str:
        """`response`, `resource`, `conversion`, `revisit`, `request`, `metadata` or `warcinfo`."""
        return self.fields.get("warc-type", "")

    @property
    def is_http(self) -> bool:
        """The block begins with a header block; that of a `resource` record is the document alone."""
        return is_http(self.fields)

    def raw(self) -> Iterator[bytes]:
        """The whole record in pieces: version, fields, block."""
        return chain((self.preamble, self.head), pieces(self.body))

    @property
    def status(self) -> int:
        """The status code of the header block; 0 where it has none."""
        words = self.head.partition(b"\r\n")[0].split(None, 2)
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """HTTP fields in order, names in lower case, as a fetch has them."""
        if not self.is_http:
            return (("content-type", self.fields.get("content-type", "")),)
        found: list[tuple[str, str]] = []
        for line in self.head.split(b"\r\n")[1:]:
            if line[:1] in (b" ", b"\t") and found:
                name, value = found[-1]
                found[-1] = (name, f"{value} {line.decode('latin-1').strip()}")
                continue
            name_bytes, colon, value_bytes = line.partition(b":")
            if colon:
                found.append((name_bytes.decode("latin-1").strip().lower(), value_bytes.decode("latin-1").strip()))
        return tuple(found)

    def header(self, name: str) -> str:
        """The first HTTP field of this (lower-case) name, or an empty string."""
        return next((value for field, value in self.headers if field == name), "")


def read_record(directory: Path, location: Location, most: int = sys.maxsize) -> ArchivedRecord:
    """The record at a location.

    Args:
        directory: the crawl's.
        location: as the ledger and the tables have it.
        most: bytes of its block.

    Raises:
        CrawlDirectoryError: there is none: the file is missing or damaged; or it is larger than `most`.
        OSError: its body is large, and there is no room for it in the directory for temporary files.
    """
    path = directory / location.file
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from None
    with file:
        try:
            return _record(_Pieces(_unpacked(file, path, location)), most)
        except _TooLarge:
            text = f"{path} has a record of more than {most} bytes at byte {location.offset}"
            raise CrawlDirectoryError(text) from None
        except (IsalError, _NotWhole):  # type: ignore[misc]  # a class, which its stubs call an instance
            text = f"{path} has no whole record at byte {location.offset}; bring it back from a copy"
            raise CrawlDirectoryError(text) from None


class _NotWhole(Exception):
    """The record ends before its end, or was never one."""


class _TooLarge(Exception):
    """The block is longer than the reader wants."""


def _unreadable(path: Path, error: OSError) -> CrawlDirectoryError:
    return CrawlDirectoryError(f"{path} cannot be read: {error.strerror}; bring it back from a copy")


def _unpacked(file: BinaryIO, path: Path, location: Location) -> Iterator[bytes]:
    """The content of a gzip member, in pieces."""
    unpacker = isal_zlib.decompressobj(isal_zlib.MAX_WBITS | 16)
    left = location.length
    try:
        file.seek(location.offset)
        while left and not unpacker.eof:
            packed = file.read(min(left, PIECE))
            if not packed:
                break
            left -= len(packed)
            is_full = True  # it may hold more, with nothing left to be given
            while (packed or is_full) and not unpacker.eof:
                piece = unpacker.decompress(packed, PIECE)
                is_full = len(piece) == PIECE
                yield piece
                packed = unpacker.unconsumed_tail
    except OSError as error:
        raise _unreadable(path, error) from None
    if not unpacker.eof:
        raise _NotWhole


class _Pieces:
    """Pieces, taken by what is in them."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self._source = source
        self._ahead = b""

    def until(self, mark: bytes, most: int) -> bytes:
        """The bytes up to a mark, with the mark; all of `most` bytes, or up to the end, where there is none."""
        while (end := self._ahead.find(mark, 0, most)) < 0 and len(self._ahead) < most:
            piece = next(self._source, None)
            if piece is None:
                break
            self._ahead += piece
        end = min(most, len(self._ahead)) if end < 0 else end + len(mark)
        taken, self._ahead = self._ahead[:end], self._ahead[end:]
        return taken

    def take(self, length: int) -> Iterator[bytes]:
        """So many bytes, in pieces; the rest is read too, so that the checksum at the end is compared."""
        for piece in chain((self._ahead,), self._source):
            if length and piece:
                yield piece[:length]
                length -= min(length, len(piece))
        if length:
            raise _NotWhole


def _record(unpacked: _Pieces, most: int) -> ArchivedRecord:
    preamble = unpacked.until(_END_OF_HEAD, MOST_FIELDS)
    fields = read_fields(preamble)
    if fields is None:
        raise _NotWhole
    length = int(fields["content-length"]) if fields.get("content-length", "").isdigit() else 0
    if length > most:
        raise _TooLarge
    head = unpacked.until(_END_OF_HEAD, min(length, MOST_HEAD)) if is_http(fields) else b""
    writer = BodyWriter()
    for piece in unpacked.take(length - len(head)):
        writer.write(piece)
    return ArchivedRecord(fields, preamble, head, writer.take())


def read_fields(preamble: bytes) -> dict[str, str] | None:
    """The fields of a record, by names in lower case; None where these bytes are not version, fields and an empty line."""
    if not preamble.startswith(b"WARC/1.") or not preamble.endswith(_END_OF_HEAD):
        return None
    fields = {}
    for line in preamble[: -len(_END_OF_HEAD)].decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    return fields


def is_http(fields: dict[str, str]) -> bool:
    """Whether the block of a record with these fields begins with a header block."""
    return fields.get("content-type", "").startswith("application/http")


#: How every gzip member begins.
_MAGIC = b"\x1f\x8b\x08"

#: Compressed bytes by which a place is told to be the beginning of a record: its first words, and no body.
_FIRST_BYTES = 512

#: Bytes read at once: most members are smaller, and each is read from its own beginning.
_READ = 32 << 10

#: Bytes of a metadata record that are kept: ours say a few lines.
_MOST_TOLD = 64 << 10


#: Kinds of records that hold an answer.
CAPTURES = frozenset({"response", "revisit", "resource", "conversion"})


class Span(msgspec.Struct, frozen=True):
    """A record that was read to its end, and agrees with its checksum, its length and its digests."""

    offset: int
    length: int
    """Bytes of its gzip member."""
    fields: dict[str, str]
    """Names in lower case."""
    head: bytes
    """The HTTP header block; empty where it did not come by HTTP."""
    size: int
    """Bytes of the block behind that."""
    told: bytes
    """The block of a metadata record; empty of others."""

    @property
    def kind(self) -> str:
        """`response`, `resource`, `conversion`, `revisit`, `request`, `metadata` or `warcinfo`."""
        return self.fields.get("warc-type", "")

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.offset + self.length


class Gap(msgspec.Struct, frozen=True):
    """Bytes that are no whole record."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """Where the next record begins, or the file ends."""
        return self.offset + self.length


class _Broken(Exception):
    """There is no whole record at this place."""


class _Untrue(Exception):
    """A whole gzip member that is not what the record in it says."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length


def scan(path: Path, end: int | None = None) -> Iterator[Span | Gap]:
    """Read a file from its beginning to byte `end`, or to its own end: records and gaps, which together are all of it.

    Raises:
        OSError: the file cannot be opened or read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        end = size if end is None else min(end, size)
        offset = 0
        while offset < end:
            try:
                found: Span | Gap = _record_span(file, offset, end)
            except _Untrue as error:  # its own end is known: nothing in its body is taken for a record
                found = Gap(offset, error.length)
            except (IsalError, _Broken):  # type: ignore[misc]  # a class, which its stubs call an instance
                found = Gap(offset, _next(file, offset + 1, end) - offset)
            yield found
            offset = found.end


def gaps(path: Path, end: int | None = None) -> list[Gap]:
    """The parts of a file that are no whole record. Raises as :func:`scan`."""
    return [found for found in scan(path, end) if type(found) is Gap]


def _next(file: BinaryIO, start: int, end: int) -> int:
    """The next place where a record begins, from `start` on; `end` where there is none."""
    kept = b""
    position = start
    while position < end:
        file.seek(position)
        data = kept + file.read(min(PIECE, end - position))
        base = position - len(kept)
        if len(data) <= len(kept):
            break
        at = data.find(_MAGIC)
        while at >= 0:
            if _begins(file, base + at, end):
                return base + at
            at = data.find(_MAGIC, at + 1)
        position = base + len(data)
        kept = data[-(len(_MAGIC) - 1) :]
    return end


def _begins(file: BinaryIO, offset: int, end: int) -> bool:
    file.seek(offset)
    try:
        first = isal_zlib.decompressobj(isal_zlib.MAX_WBITS | 16).decompress(
            file.read(min(_FIRST_BYTES, end - offset)), 64
        )
    except IsalError:  # type: ignore[misc]  # as above
        return False
    return bytes(first).startswith(b"WARC/1.")


def _record_span(file: BinaryIO, offset: int, end: int) -> Span:
    unpacker = isal_zlib.decompressobj(isal_zlib.MAX_WBITS | 16)
    block = _Block()
    file.seek(offset)
    taken = 0
    while not unpacker.eof:
        packed = file.read(min(_READ, end - offset - taken))
        if not packed:
            raise _Broken
        taken += len(packed)
        is_full = True  # it may hold more, with nothing left to be given
        while (packed or is_full) and not unpacker.eof:
            piece = unpacker.decompress(packed, PIECE)
            is_full = len(piece) == PIECE
            block.take(piece)
            packed = unpacker.unconsumed_tail
    length = taken - len(unpacker.unused_data)
    span = block.ended(offset, length)
    if span is None:
        raise _Untrue(length)
    return span


class _Block:
    """Takes what a member holds, and checks it against what the record says of itself."""

    def __init__(self) -> None:
        self._waiting = b""
        """Bytes that are not yet known to be fields, header block or body."""
        self._fields: dict[str, str] | None = None
        self._head: bytes | None = None
        self._left = 0
        """Bytes of the block that are still to come."""
        self._behind = b""
        self._size = 0
        self._told = b""
        self._payload = hashlib.sha1(usedforsecurity=False)
        self._block = hashlib.sha1(usedforsecurity=False)

    def take(self, piece: bytes) -> None:
        if self._head is None:
            self._waiting += piece
            if not self._begin():
                return
            piece, self._waiting = self._waiting, b""
        self._body(piece)

    def _begin(self) -> bool:
        """Take fields and header block off what waits; False where more is needed."""
        if self._fields is None:
            at = self._waiting.find(_END_OF_HEAD, 0, MOST_FIELDS)
            if at < 0:
                if len(self._waiting) >= MOST_FIELDS:
                    raise _Broken
                return False
            fields = read_fields(self._waiting[: at + len(_END_OF_HEAD)])
            if fields is None or not fields.get("content-length", "").isdigit():
                raise _Broken
            self._fields, self._left = fields, int(fields["content-length"])
            self._waiting = self._waiting[at + len(_END_OF_HEAD) :]
        if not is_http(self._fields):
            self._head = b""
            return True
        most = min(self._left, MOST_HEAD)
        at = self._waiting.find(_END_OF_HEAD, 0, most)
        if at < 0 and len(self._waiting) < most:
            return False
        length = most if at < 0 else at + len(_END_OF_HEAD)
        self._head, self._waiting = self._waiting[:length], self._waiting[length:]
        self._block.update(self._head)
        self._left -= length
        return True

    def _body(self, piece: bytes) -> None:
        inside = piece[: self._left]
        self._left -= len(inside)
        self._size += len(inside)
        self._payload.update(inside)
        self._block.update(inside)
        if len(self._told) < _MOST_TOLD and self._fields and self._fields.get("warc-type") == "metadata":
            self._told += inside[:_MOST_TOLD]
        self._behind = (self._behind + piece[len(inside) :])[: len(_END_OF_HEAD) + 1]

    def ended(self, offset: int, length: int) -> Span | None:
        """The record; None where it is not what it says of itself."""
        fields, head = self._fields, self._head
        if fields is None or head is None or self._left or self._behind != _END_OF_HEAD:
            return None
        # The payload digest of a revisit is that of the record that it refers to.
        if fields.get("warc-type") != "revisit" and not _agrees(fields, "warc-payload-digest", self._payload):
            return None
        if not _agrees(fields, "warc-block-digest", self._block):
            return None
        return Span(offset, length, fields, head, self._size, self._told)


def _agrees(fields: dict[str, str], name: str, found: "hashlib._Hash") -> bool:
    said = fields.get(name, "")
    return not said.startswith("sha1:") or said[5:] == base64.b32encode(found.digest()).decode()
