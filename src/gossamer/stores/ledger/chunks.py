"""Chunks: how tasks of one host lie on the disk, many to a value; what they share is compressed away by the store."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

import msgspec

from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.task import Task

#: Tasks of one chunk at most: a chunk is read whole, and of most only the first few tasks are wanted soon.
CHUNK_TASKS = 128

#: A place in a host's queue: the chunk's serial, and the index within it.
Place = tuple[int, int]

#: The place before all others.
BEGINNING: Place = (0, 0)


#: A task without its host, which the chunk names once.
_Row = tuple[str, int, str, str, int]
_row = attrgetter("url", "depth", "source", "relation", "attempt")


class _Chunk(msgspec.Struct, array_like=True, gc=False):
    """Tasks of one host."""

    host: str
    rows: list[_Row]


class Cursor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the unfinished part of a host's queue begins, and which places behind it are finished already."""

    serial: int
    index: int
    finished: tuple[Place, ...] = ()


_encoder = msgspec.msgpack.Encoder()
_chunks = msgspec.msgpack.Decoder(_Chunk)
_cursors = msgspec.msgpack.Decoder(Cursor)


def pack(host: str, tasks: Sequence[Task]) -> Iterator[bytes]:
    """Chunks of tasks of one host, in order."""
    for start in range(0, len(tasks), CHUNK_TASKS):
        yield _encoder.encode(_Chunk(host, list(map(_row, tasks[start : start + CHUNK_TASKS]))))


def unpack(data: bytes) -> list[Task]:
    """The tasks of a chunk.

    Raises:
        CrawlDirectoryError: these bytes are no chunk.
    """
    try:
        chunk = _chunks.decode(data)
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"a chunk of the ledger is damaged: {error}; go back to a checkpoint") from None
    host = chunk.host
    return [Task(url, host, depth, source, relation, attempt) for url, depth, source, relation, attempt in chunk.rows]


def pack_cursor(cursor: Cursor) -> bytes:
    """A cursor's bytes."""
    return _encoder.encode(cursor)


def unpack_cursor(data: bytes | None) -> Cursor:
    """The cursor of these bytes; of a host that has none, the beginning.

    Raises:
        CrawlDirectoryError: these bytes are no cursor.
    """
    if data is None:
        return Cursor(*BEGINNING)
    try:
        return _cursors.decode(data)
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"a cursor of the ledger is damaged: {error}; go back to a checkpoint") from None
