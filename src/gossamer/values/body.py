"""The rewindable body: a document that any number of readers read from byte 0, small in memory, large on disk (row M2).

Nearly every body is a few ten kilobytes, and stays what it is: `bytes`. What outgrows a threshold while it streams in goes
to an anonymous file, which no kill leaves behind and which lasts as long as anything refers to it. Both kinds have a
length; everything else that a reader may want is a function here, so that readers need not know which kind they have.

Between processes a stored body crosses as bytes: a wiring whose arrows leave the process keeps `max_page_size` below half
their `frame_limit` (checked when a crawl is put together).
"""

import base64
import hashlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from types import ModuleType
from typing import BinaryIO, Literal, Self, final

import msgspec

#: Bytes in memory from which on a body goes to disk. A body of this size costs 0.34 ms of CPU on disk and 0.04 in
#: memory, and a descriptor; hardly any page is larger, and the bodies of 64 slots and as many waiting visits stay below 128 MB.
THRESHOLD = 1 << 20

#: Bytes of a stored body that are handed over at once.
PIECE = 256 * 1024

#: Bytes of a document that are read into memory at most: what parsers get of a larger one (design question 12).
MAX_READ = 16 << 20


class SpoolFile:
    """An anonymous file. Readers have places of their own, in any thread; the last reference closes it."""

    __slots__ = ("_file", "directory", "size")

    def __init__(self, directory: str = "") -> None:
        """Make it in `directory`, or in the system's directory for temporary files (OSError where that fails)."""
        self.directory = directory
        self._file = tempfile.TemporaryFile(buffering=0, dir=directory or None)  # noqa: SIM115  # lasts as long as this
        self.size = 0

    def __del__(self) -> None:
        # Meant, and so not worth the warning that an open file gets: what refers to a body is not one owner's to know.
        if hasattr(self, "_file"):
            self._file.close()

    def append(self, data: bytes) -> None:
        """Write all of `data` to the end (OSError where the disk is full)."""
        view = memoryview(data)
        while view:
            written = os.write(self._file.fileno(), view)
            self.size += written
            view = view[written:]

    def read_at(self, place: int, length: int) -> bytes:
        """Up to `length` bytes from `place` on; none behind the end."""
        return os.pread(self._file.fileno(), length, place)

    def to_parcel(self) -> bytes:
        """As it crosses to another process (:mod:`gossamer.engine.remote.frames`)."""
        return b"".join(_pieces(self))

    @classmethod
    def from_parcel(cls, parcel: object) -> Self:
        """The same on the other side. Raises TypeError: the parcel is not what :meth:`to_parcel` makes."""
        if not isinstance(parcel, bytes):
            raise TypeError(f"a stored body crosses as bytes, not as {type(parcel).__name__}")
        file = cls()
        file.append(parcel)
        return file


@final
class StoredBody(msgspec.Struct, frozen=True, gc=False):
    """A body on disk. Its length and its truth are those of bytes.

    Code that sees every page asks `type(body) is StoredBody`: `isinstance` of bytes costs 0.3 us here, by way of the
    abstract base classes that structs are made with.
    """

    file: SpoolFile
    sha1: str = ""
    """SHA-1 in base32, where it was computed while the body came in: read again, it would hold up all others."""
    sha256: str = ""
    """SHA-256 in hexadecimal digits, likewise."""

    def __len__(self) -> int:
        return self.file.size


#: A body of either kind.
Body = bytes | StoredBody


class BodyWriter:
    """Takes a body piece by piece. The memory never holds more than the threshold and one piece."""

    __slots__ = ("_directory", "_file", "_pieces", "_sha1", "_sha256", "_threshold", "size")

    def __init__(self, threshold: int = THRESHOLD, directory: str = "", *, digest: bool = False) -> None:
        """An empty body. `threshold`: bytes above which the body is stored in `directory` (empty: the system's for temporary
        files); `digest`: compute SHA-1 and SHA-256 on the way, if it is stored."""
        self.size = 0
        self._threshold = threshold
        self._directory = directory
        self._pieces: list[bytes] = []
        self._file: SpoolFile | None = None
        self._sha1 = hashlib.sha1(usedforsecurity=False) if digest else None
        self._sha256 = hashlib.sha256(usedforsecurity=False) if digest else None

    def write(self, piece: bytes) -> None:
        """Append a piece (OSError where the disk does not take it)."""
        self.size += len(piece)
        if self._file is None:
            self._pieces.append(piece)
            if self.size <= self._threshold:
                return
            self._file = SpoolFile(self._directory)
            piece = b"".join(self._pieces)
            self._pieces.clear()
        self._file.append(piece)
        if self._sha1 is not None and self._sha256 is not None:
            self._sha1.update(piece)
            self._sha256.update(piece)

    def take(self) -> Body:
        """The body, complete; the writer is of no use after."""
        if self._file is None:
            return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        if self._sha1 is None or self._sha256 is None:
            return StoredBody(self._file)
        return StoredBody(self._file, _base32(self._sha1.digest()), self._sha256.hexdigest())


def pieces(body: Body) -> Iterator[bytes]:
    """The body from byte 0, in pieces of at most :data:`PIECE` bytes where it is stored."""
    return _pieces(body.file) if isinstance(body, StoredBody) else iter((body,))


def _pieces(file: SpoolFile) -> Iterator[bytes]:
    place = 0
    while piece := file.read_at(place, PIECE):
        yield piece
        place += len(piece)


def beginning(body: Body, length: int = MAX_READ) -> bytes:
    """The first bytes of a stored body; all of one in memory, which is no larger for being handed over."""
    if not isinstance(body, StoredBody):
        return body
    with reader(body) as stream:
        return stream.read(length)


def reader(body: Body) -> BinaryIO:
    """A new stream over the body, at byte 0, with a place of its own: as many as wanted, one after the other or at once."""
    if isinstance(body, StoredBody):
        return io.BufferedReader(_SpoolReader(body.file), PIECE)
    return io.BytesIO(body)


def sha1_base32(body: Body) -> str:
    """SHA-1 as WARC and CDX tools write it: base32, without a label (WARC/1.1, section 5.8)."""
    if type(body) is not StoredBody:
        return base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
    return body.sha1 or _base32(_hashed("sha1", body))


def sha256(body: Body) -> str:
    if type(body) is not StoredBody:
        return hashlib.sha256(body, usedforsecurity=False).hexdigest()
    return body.sha256 or _hashed("sha256", body).hex()


def _hashed(name: str, body: Body) -> bytes:
    hashing = hashlib.new(name, usedforsecurity=False)
    for piece in pieces(body):
        hashing.update(piece)
    return hashing.digest()


def _base32(digest: bytes) -> str:
    return base64.b32encode(digest).decode()


class _SpoolReader(io.RawIOBase):
    """One reader of a spool file; it holds the file, so that it outlives its maker."""

    def __init__(self, file: SpoolFile) -> None:
        super().__init__()
        self._file = file
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer; the base class says less
        # A piece at a time, since it is copied: who reads 16 MiB at once would hold them twice.
        data = self._file.read_at(self._place, min(len(buffer), PIECE))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def tell(self) -> int:
        return self._place


def zstandard() -> ModuleType:
    """The module for Zstandard (RFC 8878), in which servers send bodies and machines messages: that of the standard library (Python
    3.14), or its backport by the same authors. Most crawls meet none."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


# -- the body as a reader with a browser has it

#: The prefix of digests of rendered pages in the ledger: all routes of an application have one answer, and are no duplicates.
RENDERED_DIGEST = "dom:"

RenderedHow = Literal["done", "limited", "hung", "crashed", "no_browser", "interrupted"]
"""How the rendering of a page ended: by itself; at a budget; nothing could be read of it; its process died; there is no browser; or
the crawl ended before, so that the page is fetched and rendered again in the next run."""


class Rendered(msgspec.Struct, frozen=True):
    """A page as a reader with a browser has it, made by its scripts of what the crawl gave to them."""

    how: RenderedHow
    dom: bytes = b""
    """Its markup in UTF-8; empty where nothing could be read: then the document is that of the answer."""
    digest: str = ""
    """SHA-1 of that markup, base32, behind :data:`RENDERED_DIGEST`."""
    answer_of: str = ""
    """URL of the first document whose answer has the same bytes (content-seen): the archive refers to it."""
    picture: bytes = b""
    """PNG, where one was asked for."""
    counts: dict[str, int] = {}
    """Counts of its requests (`asked`), and of everything that was refused, by rule."""
    seconds: float = 0.0
    gained: int = 0
    """Links that the answer did not have."""
