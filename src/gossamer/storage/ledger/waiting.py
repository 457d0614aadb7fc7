"""Tasks that are set aside: those of families that look like traps, behind everything else (design question 22).

Place in the flow: committer and frontier set tasks aside by a group; the frontier brings some back as probes, or all of them. A
task that is set aside is neither queued nor in flight, and as durable as those that are: it moves with the group that says so.

A family has a row with its count, and chunks of its tasks in the order in which they came. Nothing of it is kept in memory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from gossamer.storage.ledger.chunks import PLACE_BITS, Cursor, pack, unpack, unpack_cursors
from gossamer.storage.ledger.keys import (
    ASIDE,
    CHUNK,
    CURSOR,
    HOST_ID_BYTES,
    LATER,
    SHELF,
    LedgerKeys,
    after,
    due_key,
    serial_key,
    time_key,
    time_of,
)
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.request_identity import Requested
from gossamer.values.task import Family, SetAside, Task
from gossamer.values.url import host_of

# Tasks that are queued only from a time on: pages that are to be tried again after minutes (design question 12).
#
# They lie in the order of their times, each under a key of its own. Whoever wakes them moves those that are due into the
# queues of their hosts, in one group.

#: Tasks that are woken at once: a group stays some ten milliseconds long.
WOKEN_AT_ONCE = 1_000

#: A key, its task.
Due = tuple[bytes, Task]


class Owed(msgspec.Struct, frozen=True):
    """What waits for its time."""

    urls: int = 0
    hosts: int = 0
    until: float = 0.0
    """When the first is due, in seconds since the epoch; 0 where nothing waits."""
    names: tuple[str, ...] = ()
    """Some of the hosts, the first that are due first."""


class LaterTasks:
    """The tasks that wait for their time."""

    def __init__(self, store: RocksStore) -> None:
        self._store = store
        self._first = LATER
        self._next = float("inf")
        self._look()

    @property
    def next_due(self) -> float:
        """When the next one is due, in seconds since the epoch; infinite where there is none."""
        return self._next

    def due(self, now: float) -> list[Due]:
        """Those that are due, the earliest first, up to a number."""
        if now < self._next:
            return []
        rows = self._store.scan("frontier", self._first, due_key(LATER, now))
        return [(key, unpack(value[1:], value[0])[0]) for key, value in islice(rows, WOKEN_AT_ONCE)]

    def owed(self, most: int, names: int = 3) -> Owed:
        """What waits, counted up to `most` tasks; up to so many hosts by name."""
        hosts: dict[str, None] = {}
        urls = 0
        for _, value in islice(self._store.scan("frontier", self._first, after(LATER)), most):
            urls += 1
            hosts[unpack(value[1:], value[0])[0].host] = None
        return Owed(urls, len(hosts), self._next, tuple(islice(hosts, names))) if urls else Owed()

    def of(self, host: str, most: int) -> list[tuple[Task, float]]:
        """The tasks of a host among the first `most`, each with the time that it waits for, in seconds since the epoch."""
        rows = islice(self._store.scan("frontier", self._first, after(LATER)), most)
        found = [(unpack(value[1:], value[0])[0], time_of(key)) for key, value in rows]
        return [(task, due) for task, due in found if task.host == host]

    @staticmethod
    def put(tasks: Sequence[tuple[Task, float]], serial: int, batch: Batch) -> None:
        """Put tasks with their times into a batch; the numbers from `serial` on are theirs."""
        for number, (task, due) in enumerate(tasks, serial):
            [value] = pack(task.host, [task])
            batch.put("frontier", time_key(LATER, due, number.to_bytes(8)), bytes([task.level]) + value)

    def applied(self, tasks: Sequence[tuple[Task, float]], woken: Sequence[bytes]) -> None:
        """These were written, and those under the keys `woken` have left."""
        if woken:
            self._first = max(woken) + b"\x00"
            self._look()
        for _, due in tasks:
            key = time_key(LATER, due, b"")
            self._first = min(self._first, key)
            self._next = min(self._next, time_of(key))

    def _look(self) -> None:
        """Find out when the next one is due. Whatever precedes `_first` has left, and is not walked over."""
        row = next(self._store.scan("frontier", self._first, after(LATER)), None)
        self._next = float("inf") if row is None else time_of(row[0])


# What requests that are no plain GET send, until they are done: beside the queues, where they wait as URL and mark alone.
#
# Place in the flow: a group that queues such a task keeps what it sends; who pops it gets it whole. So a body of a megabyte
# is in memory while its task is in flight, and not before. A task that may not be sent twice is noted as begun before it is
# handed out: a process that finds such a note of another tells its reader, and the request ends as `interrupted`.


class _Kept(msgspec.Struct, array_like=True, gc=False):
    """New fields go to the end, with a default."""

    tasks: int
    """How many tasks wait for it, or are in flight."""
    begun: bytes
    """The session that was about to send it; empty where none was."""
    request: Requested


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class KeptRequests:
    """Requests by identity."""

    def __init__(self, store: RocksStore, keys: LedgerKeys, session: bytes) -> None:
        """`session` names this opening of the ledger: no other one has it."""
        self._store = store
        self._keys = keys
        self._session = session

    def whole(self, task: Task) -> Task:
        """A task that was popped, with all that it sends."""
        if task.request is None:
            return task
        kept = self._of(task.identity)
        if kept is None:  # nothing but a mark is left of it: it is not sent, rather than sent as something else
            return msgspec.structs.replace(task, request=msgspec.structs.replace(task.request, was_begun=True))
        was_begun = bool(kept.begun) and kept.begun != self._session
        return msgspec.structs.replace(task, request=msgspec.structs.replace(kept.request, was_begun=was_begun))

    def write(self, pushed: Iterable[Task], ended: Mapping[str, int], begun: Iterable[str], batch: Batch) -> None:
        """Put into a batch what new tasks send, and drop what nobody waits for any more.

        Args:
            pushed: tasks with a request, each as often as it is queued.
            ended: identity -> how many of its flights have ended.
            begun: identities of those that are about to be sent.
            batch: what is written.
        """
        changed: dict[str, _Kept | None] = {}

        def known(identity: str) -> _Kept | None:
            return changed[identity] if identity in changed else self._of(identity)

        for identity in begun:
            kept = known(identity)
            if kept is not None:
                changed[identity] = _Kept(kept.tasks, self._session, kept.request)
        for identity, count in ended.items():
            kept = known(identity)
            if kept is not None:
                changed[identity] = _Kept(kept.tasks - count, b"", kept.request)
        for task in pushed:
            assert task.request is not None
            kept = known(task.identity)
            request = msgspec.structs.replace(task.request, was_begun=False)
            changed[task.identity] = _Kept(1 if kept is None else kept.tasks + 1, b"", request)
        for identity, kept in changed.items():
            key = self._keys.url(identity)
            if kept is None or kept.tasks <= 0:
                batch.delete("requests", key)
            else:
                batch.put("requests", key, _encode(kept))

    def _of(self, identity: str) -> _Kept | None:
        data = self._store.get("requests", self._keys.url(identity))
        return None if data is None else _decode(data)


def waiting(task: Task) -> Task:
    """The task as it waits: of what it sends, the mark alone."""
    if task.request is None:
        return task
    return msgspec.structs.replace(task, request=Requested(task.request.mark))


#: Bytes of a row's key.
ROW_BYTES = 1 + HOST_ID_BYTES + 5

_rows = msgspec.msgpack.Decoder(SetAside)


class AsideTasks:
    """What is set aside, as the store has it."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys

    def row(self, family: Family) -> SetAside:
        """The row of a family; an empty one where nothing was ever set aside of it."""
        data = self._store.get("frontier", self.row_key(family))
        return SetAside(family) if data is None else _rows.decode(data)

    def rows(self, after_this: Family | None = None) -> Iterator[SetAside]:
        """Every row, those of one domain together; behind that of a family, where one is given."""
        start = ASIDE if after_this is None else self.row_key(after_this) + b"\x00"
        for _, data in self._store.scan("frontier", start, after(ASIDE)):
            yield _rows.decode(data)

    def of_owner(self, owner: str) -> list[SetAside]:
        """The rows of one owner."""
        prefix = ASIDE + self._keys.host(owner)
        return [_rows.decode(data) for _, data in self._store.scan("frontier", prefix, after(prefix))]

    def chunks(self, family: Family, *, newest: bool = False) -> Iterator[tuple[bytes, list[Task]]]:
        """Keys and tasks of a family's chunks, those that came first at the beginning, or the other way round."""
        prefix = self._prefix(family)
        scan = self._store.scan_back if newest else self._store.scan
        for key, value in scan("frontier", prefix, after(prefix)):
            yield key, unpack(value[1:], value[0])

    def _prefix(self, family: Family) -> bytes:
        return SHELF + self._keys.host(family.owner) + family.key

    def row_key(self, family: Family) -> bytes:
        """The key of a family's row."""
        return ASIDE + self._keys.host(family.owner) + family.key

    def chunk_key(self, family: Family, serial: int) -> bytes:
        """The key of a chunk."""
        return serial_key(self._prefix(family), serial)


class AsideChanges:
    """What a group has for them."""

    def __init__(self, kept: AsideTasks) -> None:
        self._kept = kept
        self._rows: dict[bytes, SetAside] = {}
        self._chunks: dict[bytes, bytes] = {}
        """Empty where the chunk leaves."""

    def _row(self, family: Family) -> SetAside:
        row = self._rows.get(family.key)
        return self._kept.row(family) if row is None else row

    def put(self, family: Family, tasks: Iterable[Task]) -> int:
        """Set tasks aside; returns how many they are."""
        by_lane: dict[tuple[str, int], list[Task]] = {}
        for task in tasks:
            by_lane.setdefault((task.host, task.level), []).append(task)
        row = self._row(family)
        serial, count = row.serial, 0
        for (host, level), those in by_lane.items():
            for chunk in pack(host, those):
                self._chunks[self._kept.chunk_key(family, serial)] = bytes([level]) + chunk
                serial += 1
            count += len(those)
        self._rows[family.key] = msgspec.structs.replace(row, family=family, count=row.count + count, serial=serial)
        return count

    def take(self, family: Family, most: int, *, newest: bool, probe: bool, last: bool) -> list[Task]:
        """Tasks that are set aside no more, at most so many; what this group itself sets aside is not among them."""
        found: list[Task] = []
        for key, tasks in self._kept.chunks(family, newest=newest):
            if self._chunks.get(key) == b"":
                continue
            room = most - len(found)
            taken, rest = (tasks[-room:], tasks[:-room]) if newest else (tasks[:room], tasks[room:])
            found += taken
            [*packed] = pack(tasks[0].host, rest) if rest else ()
            self._chunks[key] = bytes([tasks[0].level]) + packed[0] if packed else b""
            if len(found) >= most:
                break
        row = self._row(family)
        count = len(found)
        self._rows[family.key] = msgspec.structs.replace(
            row,
            count=row.count - count,
            probes=row.probes + (count if probe else 0),
            last_probes=row.last_probes + (count if last else 0),
        )
        return found

    def write(self, batch: Batch) -> None:
        """Put everything into a batch."""
        for row in self._rows.values():
            batch.put("frontier", self._kept.row_key(row.family), _encode(row))
        for key, value in self._chunks.items():
            if value:
                batch.put("frontier", key, value)
            else:
                batch.delete("frontier", key)


def find(kept: AsideTasks, owners: Sequence[str], url: str, most: int) -> tuple[Family, Task] | None:
    """The family and the task of a URL that is set aside, among the first `most` chunks of these owners' families."""
    for owner in owners:
        for row in kept.of_owner(owner):
            if not row.count:
                continue
            for _, tasks in kept.chunks(row.family):
                most -= 1
                found = next((task for task in tasks if task.url == url), None)
                if found is not None:
                    return row.family, found
                if most <= 0:
                    return None
    return None


# The task of one URL, looked for where it waits, and the queue of one host: what tells a person why a page is not there yet.
#
# Place in the flow: `gossamer why` and the dashboard ask, of a crawl that runs or rests. Nobody who crawls does: a search
# walks over a queue.


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
