"""Reading what Gossamer archived: one record by its place, or all of a file in order, with the damage that is found.

Place in the flow: commands read a record where a row says that it lies (:func:`read_record`), piece by piece: a body that is
too large for memory goes to disk again, as when it was fetched. `gossamer verify --deep`, `gossamer export` and a new index
read whole files (:func:`scan`). No body is held there: it is hashed as it passes, so memory does not follow the size of a
record. Where a record is damaged, the scan goes on at the next place at which one begins: the bytes between are reported as one
gap.

`--accept-loss` calls :func:`fill` for each gap, and keeps the bytes that were there in the quarantine; `gossamer delete` calls it
for records that are to go. Their place is taken by one gzip member of exactly their length, so that no other record moves and every
reader can read the file to its end: the member's comment is as long as that takes, and it holds a metadata record that tells what
became of the bytes.

It knows one form: one gzip member a record, as :mod:`gossamer.storage.archive.records` makes them. A library that iterates over the
files of all programs buys nothing where the place of every record is known.
"""

import base64
import hashlib
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec
from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.engine.errors import refusing
from gossamer.engine.subjects import found_at, shipped
from gossamer.storage.archive.records import record_id
from gossamer.storage.recovery import in_store
from gossamer.values.body import PIECE, Body, BodyWriter, pieces
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.visit import Location

_END_OF_HEAD = b"\r\n\r\n"

#: The fields of a record end within so many bytes: ours have a URL or two and some hashes.
MOST_FIELDS = 64 << 10

#: A record whose length has more digits is none: no disk holds it, and Python reads no number of thousands of digits.
_MOST_DIGITS = 18

#: A header block ends within so many bytes: libcurl takes 300 KB.
MOST_HEAD = 1 << 20

#: Bytes read at once: most members are smaller, and each is read from its own beginning.
_READ = 32 << 10

#: Names gzip to zlib.
_GZIP = isal_zlib.MAX_WBITS | 16


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
        return self.fields.get("warc-type", "")

    @property
    def is_http(self) -> bool:
        """The block begins with a header block; that of a `resource` record is the document alone."""
        return is_http(self.fields)

    def raw(self) -> Iterator[bytes]:
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
        return next((value for field, value in self.headers if field == name), "")


def opened(path: Path, *, whole: bool = False) -> BinaryIO:
    """Open an archive file to read it, also one that is in a store alone; of that, if it is to be `whole`, all parts are looked for
    first. Raises OSError; and CrawlDirectoryError, here or where it is read: the store cannot be reached, or is damaged."""
    if in_store(path) is None:
        return path.open("rb")
    [place] = (one.far_archive for one in shipped() if one.far_archive)
    file: BinaryIO = found_at(place)(path, whole=whole)
    return file


def is_readable(path: Path) -> bool:
    """Whether an archive file is here, or in a store."""
    return path.exists() or in_store(path) is not None


def read_record(directory: Path, location: Location, most: int = sys.maxsize) -> ArchivedRecord:
    """The record at a location, as ledger and tables have it, inside a crawl directory. Raises CrawlDirectoryError: there is
    none: the file is missing or damaged, or its block has more than `most` bytes; OSError: its body is large, and there is no
    room for it in the directory for temporary files."""
    path, writer = directory / location.file, BodyWriter()
    member = _Member(writer.write, most)
    try:
        for piece in _at(path, location):
            member.take(piece)
    except _TooLarge:
        text = f"{path} has a record of more than {most} bytes at byte {location.offset}"
        raise CrawlDirectoryError(text) from None
    except (IsalError, _Broken):  # type: ignore[misc]  # a class, which its stubs call an instance
        member.is_whole = False
    if not member.is_whole:
        raise CrawlDirectoryError(f"{path} has no whole record at byte {location.offset}; bring it back from a copy")
    return ArchivedRecord(member.fields, member.preamble, member.head, writer.take())


def _at(path: Path, location: Location) -> Iterator[bytes]:
    """The content of the member at a location. Raises CrawlDirectoryError: its file cannot be read."""
    with refusing(CrawlDirectoryError, f"{path} cannot be read", "; bring it back from a copy"), opened(path) as file:
        yield from (piece for piece, _ in _unpacked(file, location.offset, location.offset + location.length))


class _Broken(Exception):
    """There is no whole record at this place."""


class _TooLarge(Exception):
    """The block is longer than the reader wants."""


def _unpacked(file: BinaryIO, offset: int, end: int) -> Iterator[tuple[bytes, int]]:
    """The content of the gzip member at a place, in pieces, each with the bytes of the file that were taken so far."""
    unpacker = isal_zlib.decompressobj(_GZIP)
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
            yield piece, taken - len(unpacker.unused_data)
            packed = unpacker.unconsumed_tail


class _Member:
    """Takes what a gzip member holds, piece by piece: fields, header block, body, and the end of a record."""

    def __init__(self, body: Callable[[bytes], None], most: int = sys.maxsize) -> None:
        """`body` takes the pieces of a body; a block of more than `most` bytes is refused."""
        self.preamble = b""
        self.fields: dict[str, str] = {}
        self.head = b""
        self._body = body
        self._most = most
        self._ahead = b""
        """Bytes that are not yet known to be fields, header block or body."""
        self._has_begun = False
        self._left = 0
        """Bytes of the block that are still to come."""
        self._behind = b""
        self.is_whole = False

    def take(self, piece: bytes) -> None:
        """Take what follows. Raises _Broken, _TooLarge: it is no record, or too large a one."""
        if not self._has_begun:
            self._ahead += piece
            if not self._begins():
                return
            self._has_begun = True
            piece, self._ahead = self._ahead, b""
        if inside := piece[: self._left]:
            self._left -= len(inside)
            self._body(inside)
        self._behind = (self._behind + piece[len(inside) :])[: len(_END_OF_HEAD) + 1]
        self.is_whole = not self._left and self._behind == _END_OF_HEAD

    def _begins(self) -> bool:
        """Take fields and header block off what is ahead; False where more is needed."""
        if not self.preamble:
            at = self._ahead.find(_END_OF_HEAD, 0, MOST_FIELDS) + len(_END_OF_HEAD)
            if at < len(_END_OF_HEAD):
                if len(self._ahead) >= MOST_FIELDS:
                    raise _Broken
                return False
            version, *lines = self._ahead[: at - len(_END_OF_HEAD)].decode("utf-8", "replace").split("\r\n")
            for name, _, value in (line.partition(":") for line in lines):
                self.fields[name.strip().lower()] = value.strip()
            size = self.fields.get("content-length", "")
            if not version.startswith("WARC/1.") or not size.isdecimal() or len(size) > _MOST_DIGITS:
                raise _Broken
            self._left = int(size)
            if self._left > self._most:
                raise _TooLarge
            self.preamble, self._ahead = self._ahead[:at], self._ahead[at:]
        if is_http(self.fields):
            most = min(self._left, MOST_HEAD)
            at = self._ahead.find(_END_OF_HEAD, 0, most)
            if at < 0 and len(self._ahead) < most:
                return False
            length = most if at < 0 else at + len(_END_OF_HEAD)
            self.head, self._ahead = self._ahead[:length], self._ahead[length:]
            self._left -= length
        return True


def is_http(fields: dict[str, str]) -> bool:
    return fields.get("content-type", "").startswith("application/http")


#: How every gzip member begins.
_MAGIC = b"\x1f\x8b\x08"

#: Compressed bytes by which a place is told to be the beginning of a record: its first words, and no body.
_FIRST_BYTES = 512

#: Bytes of a metadata record that are kept: ours say a few lines.
_MOST_TOLD = 64 << 10


#: Kinds of records that hold an answer.
CAPTURES = frozenset({"response", "revisit", "resource", "conversion"})

#: Records that a browser made of a page: no captures of it. The names begin as other crawlers have them.
MADE, MADE_OF = "made", ("urn:dom:", "urn:view:")


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
        """`response`, `resource`, `conversion`, `revisit`, `request`, `metadata` or `warcinfo`; :data:`MADE` of a `resource` that
        was made of a page and stands beside its answer."""
        kind, target = self.fields.get("warc-type", ""), self.fields.get("warc-target-uri", "")
        return MADE if kind == "resource" and target.startswith(MADE_OF) else kind

    @property
    def url(self) -> str:
        """The URL of the answer that the record is, or stands beside; empty where it belongs to none."""
        target = self.fields.get("warc-target-uri", "")
        return target.split(":", 2)[2] if self.kind == MADE else target

    @property
    def end(self) -> int:
        return self.offset + self.length


class Gap(msgspec.Struct, frozen=True):
    """Bytes that are no whole record."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


def scan(path: Path, end: int | None = None) -> Iterator[Span | Gap]:
    """Read a file from its beginning to byte `end`, or to its own end: records and gaps, which together are all of it. Raises
    OSError: the file cannot be opened or read; CrawlDirectoryError: it is in a store alone, and cannot be read there."""
    with opened(path) as file:
        size = file.seek(0, 2)
        end = size if end is None else min(end, size)
        offset = 0
        while offset < end:
            check, length = _Check(), 0
            member = check.member
            try:
                for piece, length in _unpacked(file, offset, end):  # noqa: B007  # the last length is that of the whole
                    member.take(piece)
            except (IsalError, _Broken):  # type: ignore[misc]  # a class, which its stubs call an instance
                length, member.is_whole = _next(file, offset + 1, end) - offset, False
            if member.is_whole and check.agrees():
                yield Span(offset, length, member.fields, member.head, check.size, check.told)
            else:  # where its own end is known, nothing in its body is taken for a record
                yield Gap(offset, length)
            offset += length


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
        first = isal_zlib.decompressobj(_GZIP).decompress(file.read(min(_FIRST_BYTES, end - offset)), 64)
    except IsalError:  # type: ignore[misc]  # as above
        return False
    return bytes(first).startswith(b"WARC/1.")


class _Check:
    """Holds a record against the digests that it says of itself."""

    def __init__(self) -> None:
        self.member = _Member(self._take)
        self.size = 0
        self.told = b""
        self._sums: dict[str, hashlib._Hash] | None = None

    def _take(self, piece: bytes) -> None:
        self.size += len(piece)
        for digest in self._digests().values():
            digest.update(piece)
        if len(self.told) < _MOST_TOLD and self.member.fields.get("warc-type") == "metadata":
            self.told += piece[:_MOST_TOLD]

    def _digests(self) -> "dict[str, hashlib._Hash]":
        """The digests that the record bears, computed so far. The payload digest of a revisit is that of another record."""
        if self._sums is None:
            fields, head = self.member.fields, self.member.head
            starts = {"warc-block-digest": head}
            if fields.get("warc-type") != "revisit":
                starts["warc-payload-digest"] = b""
            self._sums = {
                fields[name][5:]: hashlib.sha1(start, usedforsecurity=False)
                for name, start in starts.items()
                if fields.get(name, "").startswith("sha1:")
            }
        return self._sums

    def agrees(self) -> bool:
        return all(said == base64.b32encode(found.digest()).decode() for said, found in self._digests().items())


#: RFC 1952: deflate, with a comment; no time; the fastest way, an unknown system.
_HEADER = b"\x1f\x8b\x08\x10" + bytes(4) + b"\x04\xff"

#: The words of a record in the place of bytes that were damaged, or deleted by a person; the braces take their number.
LOST = "lost: {} bytes that could not be read any more"
DELETED = "deleted: {} bytes on request"


def fill(path: Path, gap: Gap, at: str, why: str = LOST) -> bool:
    """Put a record with the date `at` in the place of a gap; False, and nothing is changed, where it is too short for one. `why`,
    :data:`LOST` or :data:`DELETED`, says what became of the bytes. Raises OSError: it cannot be written; the gap is still one."""
    block = f"{why.format(gap.length)}\r\n".encode()
    fields = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {record_id()}\r\nWARC-Date: {at}\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    record = fields.encode() + block + b"\r\n\r\n"
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    end = packer.compress(record) + packer.flush() + struct.pack("<II", zlib.crc32(record), len(record))
    room = gap.length - len(_HEADER) - 1 - len(end)
    if room < 0:
        return False
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path.resolve(), flags), "r+b") as file:
        file.seek(gap.offset)
        file.write(_HEADER)
        while room:
            file.write(b" " * min(room, PIECE))
            room -= min(room, PIECE)
        file.write(b"\x00" + end)
        file.flush()
        os.fsync(file.fileno())
    return True
