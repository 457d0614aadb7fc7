"""The versions of a ledger's layout: older ones are migrated step by step, newer ones refused (fault 108).

Version 1 had one queue for each host, which becomes the lane of level 0. A chunk lay under `q`, host and serial, as `[host,
[[url, depth, source, relation, attempt], ...]]`; a cursor was `[serial, index, [[serial, index], ...]]`; a host's row was
`[host, next_allowed, state, counters, robots]`, and robots bytes were kept for a host, not for each of its sites. These are
dropped: robots.txt is asked for again, as after a day. So is `next_allowed`, which politeness now keeps in a form of its own.

A migration that was interrupted goes on: the length of its key, or its type, tells of an entry that it has its new form already.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from gossamer.engine.files import Point, crash_at
from gossamer.storage.ledger import layout
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task

#: Keys that are changed in one batch: it is in memory, and a ledger is not.
AT_ONCE = 2_000

#: The length of a key of version 1: `q`, host, serial.
OLD_CHUNK_KEY = 1 + layout.HOST_ID_BYTES + 8


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
    _rewrite(store, store.scan("frontier", layout.CHUNK, layout.after(layout.CHUNK)), _chunk)
    _rewrite(store, store.scan("hosts", b"", b"\xff" * (layout.HOST_ID_BYTES + 2)), _row)


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
    [chunk] = layout.pack(old.host, tasks)
    batch.put("frontier", layout.lane_key(key[:-8], 0, int.from_bytes(key[-8:])), chunk)
    batch.delete("frontier", key)


def _row(batch: Batch, key: bytes, value: bytes) -> None:
    kind = key[layout.HOST_ID_BYTES :]
    try:
        if kind == layout.CURSOR:
            cursor = _cursors.decode(value)
            finished = tuple((serial << layout.PLACE_BITS) + index for serial, index in cursor.finished)
            place = (cursor.serial << layout.PLACE_BITS) + cursor.index
            batch.put("hosts", key, layout.pack_cursors({0: layout.Cursor(place, 0, finished)}))
        elif kind == layout.STATE:
            state = _states.decode(value)
            batch.put("hosts", key, _encoder.encode(HostState(state.host, counters=state.counters)))
        elif kind == layout.ROBOTS:
            batch.delete("hosts", key)
    except msgspec.ValidationError:  # it has its new form
        return


#: The version that this program writes.
VERSION = 5

#: Takes a store to the next version: it may write as many batches as it needs, if it can go on where a kill interrupted it.
Migration = Callable[[RocksStore], None]


def _as_it_is(store: RocksStore) -> None:
    """Nothing has another form, but a program that knows the older version would not understand what is new."""


#: Version -> what takes it to the next one. Version 3 adds fingerprints, what watchers have learnt, and validators of tasks;
#: version 4 adds spaces, and requests that are no plain GET; version 5 adds what is set aside.
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({1: to_lanes, 2: _as_it_is, 3: _as_it_is, 4: _as_it_is})


def stamp(batch: Batch, version: int = VERSION, following: int | None = None) -> None:
    """Write the version, and to which one it is on the way: until it is there, no other program can make sense of it."""
    batch.put("meta", layout.SCHEMA_KEY, f"{version}{'' if following is None else f'>{following}'}".encode())


def migrate(store: RocksStore, version: int = VERSION, migrations: Mapping[int, Migration] = MIGRATIONS) -> int:
    """Take a store to `version`; returns the version that it had. Raises CrawlDirectoryError: it is newer, or has none."""
    found = version_of(store, version)
    for step in range(found, version):
        store.put("meta", layout.SCHEMA_KEY, f"{step}>{step + 1}".encode())
        migrations[step](store)
        crash_at(Point.RECOVERY)
        store.put("meta", layout.SCHEMA_KEY, str(step + 1).encode())
    return found


def version_of(store: RocksStore, known: int = VERSION) -> int:
    """The version of a store; of one that was on its way to another, the one that it had. Raises CrawlDirectoryError: it is newer
    than the one that is known, or it has none."""
    found, newest = parse_version(store.get("meta", layout.SCHEMA_KEY) or b"")
    if found is None:
        raise CrawlDirectoryError(f"the ledger in {store.path} has no version; go back to a checkpoint")
    if newest > known:
        raise CrawlDirectoryError(
            f"the ledger in {store.path} has version {newest}, and this program knows {known}; use a newer Gossamer"
        )
    return found


def parse_version(text: bytes) -> tuple[int | None, int]:
    """The version that a text says, and the one that it is on the way to (the same where it is not); None for no version."""
    numbers = text.split(b">")
    if not all(number.isdigit() for number in numbers):
        return None, 0
    return int(numbers[0]), int(numbers[-1])
