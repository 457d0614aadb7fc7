"""One record out of the archive, by where it lies. The other way round: :mod:`gossamer.stores.warc_records`.

It reads what Gossamer writes: one gzip member a record. For archives of others there are warcio and FastWARC; a library
that iterates over files buys nothing where the place of every record is known.
"""

from pathlib import Path

import msgspec
from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.visit import Location

_END_OF_HEAD = b"\r\n\r\n"

#: The fields of a record end within so many bytes: ours have a URL or two and some hashes.
_MOST_FIELDS = 64 << 10


class ArchivedRecord(msgspec.Struct, frozen=True):
    """A record as it stands in the archive."""

    fields: dict[str, str]
    """Names in lower case."""
    raw: bytes
    """The whole record: version, fields, block."""
    block: bytes

    @property
    def kind(self) -> str:
        """`response`, `resource`, `revisit`, `request`, `metadata` or `warcinfo`."""
        return self.fields.get("warc-type", "")

    @property
    def is_http(self) -> bool:
        """The block begins with a header block; that of a `resource` record is the document alone."""
        return self.fields.get("content-type", "").startswith("application/http")

    @property
    def head(self) -> bytes:
        """The HTTP header block, with the empty line that ends it; empty where it did not come by HTTP."""
        if not self.is_http:
            return b""
        end = self.block.find(_END_OF_HEAD)
        return self.block if end < 0 else self.block[: end + len(_END_OF_HEAD)]

    @property
    def body(self) -> bytes:
        """What follows the header block: the body as it came, with its content coding."""
        return self.block[len(self.head) :]

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


def read_record(directory: Path, location: Location) -> ArchivedRecord:
    """The record at a location.

    Raises:
        CrawlDirectoryError: there is none: the file is missing or damaged.
    """
    path = directory / location.file
    try:
        with path.open("rb") as file:
            file.seek(location.offset)
            packed = file.read(location.length)
    except OSError as error:
        raise CrawlDirectoryError(f"{path} cannot be read: {error.strerror}; bring it back from a copy") from None
    try:
        raw = isal_zlib.decompress(packed, isal_zlib.MAX_WBITS | 16)
    except IsalError:  # type: ignore[misc]  # a class, which its stubs call an instance
        raw = b""
    end = raw.find(_END_OF_HEAD, 0, _MOST_FIELDS)
    if not raw.startswith(b"WARC/1.") or end < 0:
        raise CrawlDirectoryError(f"{path} has no whole record at byte {location.offset}; bring it back from a copy")
    fields = {}
    for line in raw[:end].decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    start = end + len(_END_OF_HEAD)
    length = fields.get("content-length", "")
    stop = start + (int(length) if length.isdigit() else 0)
    return ArchivedRecord(fields, raw[:stop], raw[start:stop])
