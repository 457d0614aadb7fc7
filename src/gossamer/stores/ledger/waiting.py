"""The task of one URL, looked for where it waits, and the queue of one host: what tells a person why a page is not there yet.

Place in the flow: `gossamer why` and the dashboard ask, of a crawl that runs or rests. Nobody who crawls does: a search walks over
a queue.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.stores.ledger.chunks import PLACE_BITS, Cursor, unpack, unpack_cursors
from gossamer.stores.ledger.keys import CHUNK, CURSOR, LATER, LedgerKeys, after, time_of
from gossamer.stores.ledger.store import RocksStore


class Waiting(msgspec.Struct, frozen=True):
    """A task that is not finished."""

    task: Task
    due: float = 0.0
    """Seconds since the epoch before which it is not queued; 0 where it is."""


def find_waiting(store: RocksStore, keys: LedgerKeys, url: str, most: int) -> Waiting | None:
    """The task of a URL among the first `most` chunks of its host, then among `most` tasks for later."""
    host = keys.host(host_of(url))
    cursors = unpack_cursors(store.get("hosts", host + CURSOR))
    prefix, text = CHUNK + host, url.encode()
    for key, value in islice(store.scan("frontier", prefix, after(prefix)), most):
        if text in value:
            found = next((task for task in _unfinished(cursors, key, value) if task.url == url), None)
            if found is not None:
                return Waiting(found)
    for key, value in islice(store.scan("frontier", LATER, after(LATER)), most):
        if text in value:  # as part of another URL too, so that the task itself is looked at
            [task] = unpack(value[1:], value[0])
            if task.url == url:
                return Waiting(task, time_of(key))
    return None


def queue_of(store: RocksStore, keys: LedgerKeys, name: str) -> Iterator[Task]:
    """The tasks of a host that are not finished, lane by lane, the first to be handed out first, those in flight among them."""
    host = keys.host(name)
    cursors = unpack_cursors(store.get("hosts", host + CURSOR))
    prefix = CHUNK + host
    for key, value in store.scan("frontier", prefix, after(prefix)):
        yield from _unfinished(cursors, key, value)


def _unfinished(cursors: Mapping[int, Cursor], key: bytes, value: bytes) -> Iterator[Task]:
    """The tasks of one chunk that are not finished."""
    level, serial = key[-9], int.from_bytes(key[-8:])
    cursor = cursors.get(level, Cursor())
    for index, task in enumerate(unpack(value, level)):
        place = (serial << PLACE_BITS) + index
        if place >= cursor.place and place not in cursor.finished:
            yield task


def is_looked_at_whole(store: RocksStore, keys: LedgerKeys, url: str, most: int) -> bool:
    """Whether :func:`find_waiting` sees every task that could be this URL's: neither queue has more than `most` rows."""
    prefix = CHUNK + keys.host(host_of(url))
    ranges = ((prefix, after(prefix)), (LATER, after(LATER)))
    return all(next(islice(store.scan("frontier", *one), most, None), None) is None for one in ranges)
