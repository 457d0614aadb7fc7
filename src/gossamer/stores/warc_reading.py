"""One record out of the archive, by where it lies. The other way round: :mod:`gossamer.stores.warc_records`.

It reads what Gossamer writes: one gzip member a record. For archives of others there are warcio and FastWARC; a library
that iterates over files buys nothing where the place of every record is known.

A record is read piece by piece: a body that is too large for memory goes to disk again, as when it was fetched.
"""

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec
from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.model.body import PIECE, Body, BodyWriter, pieces
from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.visit import Location

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
    """What follows the header block: the body as it came, with its content coding."""

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
    """What a gzip member holds, in pieces."""
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
        """What comes up to a mark, and the mark; all of `most` bytes, or up to the end, where there is none."""
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
