"""From version 1 to 2: each host's one queue becomes the lane of level 0, and its row takes its new form.

In version 1 a chunk lay under `q`, host and serial, as `[host, [[url, depth, source, relation, attempt], ...]]`; a cursor was
`[serial, index, [[serial, index], ...]]`; a host's row was `[host, next_allowed, state, counters, robots]`, and robots bytes
were kept for a host, not for each of its sites. These are dropped: robots.txt is asked for again, as after a day. So is
`next_allowed`, which politeness now keeps in a form of its own.

A migration that was interrupted goes on: what has its new form already is told by the length of its key, or by its type.
"""

from collections.abc import Callable, Iterator

import msgspec

from gossamer.flow.crashing import Point, crash_at
from gossamer.model.kept import HostState
from gossamer.model.task import Task
from gossamer.stores.ledger.chunks import PLACE_BITS, Cursor, pack, pack_cursors
from gossamer.stores.ledger.keys import CHUNK, CURSOR, HOST_ID_BYTES, ROBOTS, STATE, after, lane_key
from gossamer.stores.ledger.store import Batch, RocksStore

#: Keys that are changed in one batch: it is in memory, and a ledger is not.
AT_ONCE = 2_000

#: The length of a key of version 1: `q`, host, serial.
OLD_CHUNK_KEY = 1 + HOST_ID_BYTES + 8


class _OldChunk(msgspec.Struct, array_like=True):
    host: str
    rows: list[tuple[str, int, str, str, int]]


class _OldCursor(msgspec.Struct, array_like=True):
    serial: int
    index: int
    finished: tuple[tuple[int, int], ...] = ()


class _OldState(msgspec.Struct, array_like=True):
    host: str
    next_allowed: float
    state: str
    counters: dict[str, int]
    robots: bytes | None = None


_encoder = msgspec.msgpack.Encoder()
_chunks = msgspec.msgpack.Decoder(_OldChunk)
_cursors = msgspec.msgpack.Decoder(_OldCursor)
_states = msgspec.msgpack.Decoder(_OldState)

#: Puts one row's new form into a batch; nothing where it has it.
_Change = Callable[[Batch, bytes, bytes], None]


def to_lanes(store: RocksStore) -> None:
    """Migrate."""
    _rewrite(store, store.scan("frontier", CHUNK, after(CHUNK)), _chunk)
    _rewrite(store, store.scan("hosts", b"", b"\xff" * (HOST_ID_BYTES + 2)), _row)


def _rewrite(store: RocksStore, rows: Iterator[tuple[bytes, bytes]], change: _Change) -> None:
    """Change rows, some at a time. The scan goes on over the rows as they were when it began."""
    batch = store.batch()
    for key, value in rows:
        change(batch, key, value)
        if len(batch) >= AT_ONCE:
            store.write(batch)
            batch = store.batch()
            crash_at(Point.RECOVERY)
    store.write(batch)


def _chunk(batch: Batch, key: bytes, value: bytes) -> None:
    if len(key) != OLD_CHUNK_KEY:
        return
    old = _chunks.decode(value)
    tasks = [
        Task(url, old.host, depth, source, relation, attempt) for url, depth, source, relation, attempt in old.rows
    ]
    [chunk] = pack(old.host, tasks)
    batch.put("frontier", lane_key(key[:-8], 0, int.from_bytes(key[-8:])), chunk)
    batch.delete("frontier", key)


def _row(batch: Batch, key: bytes, value: bytes) -> None:
    kind = key[HOST_ID_BYTES:]
    try:
        if kind == CURSOR:
            cursor = _cursors.decode(value)
            finished = tuple((serial << PLACE_BITS) + index for serial, index in cursor.finished)
            place = (cursor.serial << PLACE_BITS) + cursor.index
            batch.put("hosts", key, pack_cursors({0: Cursor(place, 0, finished)}))
        elif kind == STATE:
            state = _states.decode(value)
            batch.put("hosts", key, _encoder.encode(HostState(state.host, counters=state.counters)))
        elif kind == ROBOTS:
            batch.delete("hosts", key)
    except msgspec.ValidationError:  # it has its new form
        return
