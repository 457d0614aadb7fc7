"""How queued tasks lie on the disk: chunks of a lane of a host, cursors that say how far lanes are done, and marks of all queues.

Tasks that were found together share source, relation, depth, attempt, hops, validators and request (mostly none): a chunk holds
*runs* of such tasks, which name what they share once, so that a page's links cost little more than their URLs. Chunks that lie in
no lane, of tasks that are delayed or set aside, stand behind one byte with their level.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.request_identity import Requested
from gossamer.values.task import Task

#: Tasks of one chunk at most: a chunk is read whole, and of most only the first few tasks are wanted soon.
CHUNK_TASKS = 128

#: A place in a lane: the chunk's serial, and the index within it in the last bits.
Place = int
PLACE_BITS = 8

#: Deleted chunks of a lane that a search may walk over: more are jumped over, which costs a search of its own (10 us
#: against 0.2 us for each of them).
WALKED_OVER = 64

_shared = attrgetter("source", "relation", "depth", "attempt", "hops", "etag", "last_modified", "request")


class _Run(msgspec.Struct, array_like=True, gc=False):
    """URLs, and what they share. New fields go to the end, with a default, and are written where they say something."""

    source: str
    relation: str
    depth: int
    attempt: int
    hops: int
    urls: list[str]
    etag: str = ""
    last_modified: str = ""
    mark: str | None = None
    """The mark of requests that are no plain GET. Their bodies lie apart."""


class _Chunk(msgspec.Struct, array_like=True, gc=False):
    """Tasks of one lane of one host."""

    host: str
    runs: list[_Run]


class _EarlyChunk(msgspec.Struct, array_like=True, gc=False):
    """As ledgers have it that were begun before redirects in a row were counted: source, relation, depth, attempt, URLs."""

    host: str
    runs: list[tuple[str, str, int, int, list[str]]]


class Cursor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the unfinished part of a lane begins, and which places behind it are finished already."""

    place: Place = 0
    spent: int = 0
    """Chunks of this lane that were deleted: many are to be jumped over."""
    finished: tuple[Place, ...] = ()


#: The cursor of a lane that has none.
NEW = Cursor()

#: The cursors of a host's lanes, by level. A lane that is not named begins with its first chunk.
Cursors = Mapping[int, Cursor]


class Marks(msgspec.Struct, array_like=True):
    """Where the queues stand; kept with the counters."""

    serial: int = 1
    """The next chunk or value of the rotation."""
    rotation: int = 0
    """Values of the rotation before this one are gone."""
    unfinished: int = 0
    """Tasks that are queued or in flight."""


_encode = msgspec.msgpack.Encoder().encode
_chunks = msgspec.msgpack.Decoder(_Chunk)
_early_chunks = msgspec.msgpack.Decoder(_EarlyChunk)
_cursors = msgspec.msgpack.Decoder(dict[int, Cursor])


def pack(host: str, tasks: Sequence[Task]) -> list[bytes]:
    """Chunks of tasks of one lane of one host, in order."""
    if len(tasks) <= CHUNK_TASKS:
        return [_pack(host, tasks)]
    return [_pack(host, tasks[start : start + CHUNK_TASKS]) for start in range(0, len(tasks), CHUNK_TASKS)]


def _pack(host: str, tasks: Sequence[Task]) -> bytes:
    if len(tasks) == 1:  # as most are in a broad crawl
        [task] = tasks
        return _encode((host, (_run(_shared(task), (task.url,)),)))
    return _encode((host, [_run(shared, [task.url for task in run]) for shared, run in groupby(tasks, key=_shared)]))


def _run(shared: tuple[Any, ...], urls: Sequence[str]) -> tuple[Any, ...]:
    source, relation, depth, attempt, hops, etag, last_modified, request = shared
    if request is not None:
        return source, relation, depth, attempt, hops, urls, etag, last_modified, request.mark
    if etag or last_modified:
        return source, relation, depth, attempt, hops, urls, etag, last_modified
    return source, relation, depth, attempt, hops, urls


def unpack(data: bytes, level: int = 0) -> list[Task]:
    """The tasks of a chunk of the lane of this level.

    Raises:
        CrawlDirectoryError: these bytes are no chunk.
    """
    try:
        chunk = _chunks.decode(data)
    except msgspec.DecodeError as error:
        try:
            early = _early_chunks.decode(data)
        except msgspec.DecodeError:
            raise CrawlDirectoryError(f"a chunk of the ledger is damaged: {error}; go back to a checkpoint") from None
        chunk = _Chunk(early.host, [_Run(*run[:4], 0, run[4]) for run in early.runs])
    host = chunk.host
    return [
        Task(url, host, depth, source, relation, attempt, level, hops, etag, last_modified, request)
        for source, relation, depth, attempt, hops, urls, etag, last_modified, request in map(_shared_by, chunk.runs)
        for url in urls
    ]


def _shared_by(r: _Run) -> tuple[str, str, int, int, int, list[str], str, str, Requested | None]:
    """The values that the tasks of a run share, and their URLs."""
    request = None if r.mark is None else Requested(r.mark)
    return r.source, r.relation, r.depth, r.attempt, r.hops, r.urls, r.etag, r.last_modified, request


def pack_with_level(host: str, level: int, tasks: Sequence[Task]) -> list[bytes]:
    """Chunks of tasks of one host and level that lie in no lane."""
    return [bytes([level]) + chunk for chunk in pack(host, tasks)]


def unpack_with_level(data: bytes) -> list[Task]:
    """The tasks of such a chunk. Raises CrawlDirectoryError."""
    return unpack(data[1:], data[0])


def unfinished(cursors: Cursors, key: bytes, value: bytes) -> list[Task]:
    """The tasks of the chunk under a key that are not finished, those in flight among them."""
    level, serial = key[-9], int.from_bytes(key[-8:])
    cursor = cursors.get(level, NEW)
    return [
        task
        for place, task in enumerate(unpack(value, level), serial << PLACE_BITS)
        if place >= cursor.place and place not in cursor.finished
    ]


def pack_cursors(cursors: Cursors) -> bytes:
    """The bytes of a host's cursors."""
    return _encode(cursors)


def unpack_cursors(data: bytes | None) -> dict[int, Cursor]:
    """The cursors of these bytes; none of a host that has none.

    Raises:
        CrawlDirectoryError: these bytes are no cursors.
    """
    if data is None:
        return {}
    try:
        return _cursors.decode(data)
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"a cursor of the ledger is damaged: {error}; go back to a checkpoint") from None
