"""Chunks: how tasks of one host lie on the disk, many to a value, column by column.

Columns pack at C speed, and a column of sources, which a page's tasks share, costs next to nothing once compressed.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat

import msgspec

from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.task import Task

#: Tasks of one chunk at most: a chunk is read whole, and of most only the first few tasks are wanted soon.
CHUNK_TASKS = 128

#: A place in a host's queue: the chunk's serial, and the index within it.
Place = tuple[int, int]

#: The place before all others.
BEGINNING: Place = (0, 0)


class _Chunk(msgspec.Struct, array_like=True, gc=False):
    """Tasks of one host. New columns go to the end, with a default: old chunks stay readable."""

    host: str
    urls: list[str]
    depths: list[int]
    sources: list[str]
    relations: list[str]
    attempts: list[int]


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
        part = tasks[start : start + CHUNK_TASKS]
        yield _encoder.encode(
            _Chunk(
                host,
                [task.url for task in part],
                [task.depth for task in part],
                [task.source for task in part],
                [task.relation for task in part],
                [task.attempt for task in part],
            )
        )


def unpack(data: bytes) -> list[Task]:
    """The tasks of a chunk.

    Raises:
        CrawlDirectoryError: these bytes are no chunk.
    """
    try:
        chunk = _chunks.decode(data)
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"a chunk of the ledger is damaged: {error}; go back to a checkpoint") from None
    columns = chunk.urls, repeat(chunk.host), chunk.depths, chunk.sources, chunk.relations, chunk.attempts
    return list(map(Task, *columns))


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
