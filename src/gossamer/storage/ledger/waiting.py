"""Hosts that wait for a turn in the rotation or for the end of their rest, and tasks that wait: delayed ones until they are due,
and those that are set aside until the frontier brings them back.

Place in the flow: :mod:`gossamer.storage.ledger.queues` takes names of hosts from here when there is room among the active ones,
and says which came back. Entries that were taken are deleted with the next commit: until then they are found again after a kill.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from gossamer.storage.ledger import layout
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.storage.seen.memory import RecentlyUsed
from gossamer.values.hosts import registered_domain
from gossamer.values.task import Family, SetAside, Task
from gossamer.values.url import host_of

#: Names in one value of the rotation: it is read whole.
ROTATION_NAMES = 512

#: Hosts that are surely waiting, remembered so that they do not stand in the rotation once for each push.
WAITING_REMEMBERED = 65_536


def _first_time(store: RocksStore, start: bytes, kind: bytes) -> float:
    """The time of the first row of a kind from a key on. Keys before it were deleted, and are not walked over."""
    row = next(store.scan("frontier", start, layout.after(kind)), None)
    return float("inf") if row is None else layout.time_of(row[0])


class Rotation:
    """Names of hosts, in the order in which their turns come."""

    def __init__(self, store: RocksStore, marks: layout.Marks) -> None:
        self.marks = marks
        self.spent: list[bytes] = []
        """Keys of what was taken since the last commit."""
        self.waiting: RecentlyUsed[str, bool] = RecentlyUsed(WAITING_REMEMBERED)
        self._store = store
        self._turns: deque[str] = deque()
        self._turns_key = b""
        self.look_again()

    def look_again(self) -> None:
        """Hosts may have come that no commit has brought."""
        self.is_over = False
        """Whether no host waits, as far as was looked."""
        self._rested = layout.RESTING
        self.next_rest = _first_time(self._store, self._rested, layout.RESTING)
        """When the next resting host is due, in seconds since the epoch; infinite where none rests."""

    def woken(self, now: float, room: int) -> list[str]:
        """At most `room` hosts whose rest is over."""
        if now < self.next_rest:
            return []
        names: list[str] = []
        rows = self._store.scan("frontier", self._rested, layout.due_key(layout.RESTING, now))
        for key, value in islice(rows, room):
            self._rested = key + b"\x00"
            self.spent.append(key)
            names.append(value.decode())
        self.next_rest = _first_time(self._store, self._rested, layout.RESTING)
        return names

    def rests(self, until: float) -> None:
        self.next_rest = min(self.next_rest, until)

    def next_turns(self, room: int) -> list[str]:
        """The names that follow in the rotation, at most `room`; none where it ends."""
        if not self._turns and not self.is_over:
            start = layout.serial_key(layout.ROTATION, self.marks.rotation)
            row = next(self._store.scan("frontier", start, layout.after(layout.ROTATION)), None)
            if row is None:
                self.is_over = True
            else:
                self._turns_key, value = row
                self._turns.extend(msgspec.msgpack.decode(value, type=list[str]))
        names = [self._turns.popleft() for _ in range(min(room, len(self._turns)))]
        if names and not self._turns:
            # Only now: until its last name has left, the value must be found again after a kill.
            self.marks.rotation = int.from_bytes(self._turns_key[1:]) + 1
            self.spent.append(self._turns_key)
        for name in names:
            self.waiting.forget(name)
        return names

    def applied(self, marks: layout.Marks, resting: Sequence[bytes], rotated: Sequence[str]) -> None:
        """A commit was written: hosts rest under these keys, and these wait at the end of the rotation."""
        self.marks = marks
        self.spent.clear()
        for key in resting:
            self.rests(layout.time_of(key))
            self._rested = min(self._rested, key)
        if rotated:
            self.is_over = False
            for name in rotated:
                self.waiting.set(name, True)


# Delayed tasks: pages that are to be tried again after minutes. They lie in the order of their times, each under a key of its own.

#: Tasks that are woken at once: a group stays some ten milliseconds long.
WOKEN_AT_ONCE = 1_000

#: A key, its task.
Due = tuple[bytes, Task]


class Owed(msgspec.Struct, frozen=True):
    """The tasks that are delayed, counted."""

    urls: int = 0
    hosts: int = 0
    until: float = 0.0
    """When the first is due, in seconds since the epoch; 0 where nothing waits."""
    names: tuple[str, ...] = ()
    """Some of the hosts, the first that are due first."""


class DelayedTasks:
    """The tasks that are delayed."""

    def __init__(self, store: RocksStore) -> None:
        self._store = store
        self.look_again()

    def look_again(self) -> None:
        """Tasks may have come that no commit has brought."""
        self._first = layout.LATER
        self.next_due = _first_time(self._store, self._first, layout.LATER)
        """When the next one is due, in seconds since the epoch; infinite where there is none."""

    def due(self, now: float) -> list[Due]:
        """Those that are due, the earliest first, up to a number."""
        if now < self.next_due:
            return []
        rows = self._store.scan("frontier", self._first, layout.due_key(layout.LATER, now))
        return [(key, layout.unpack_with_level(value)[0]) for key, value in islice(rows, WOKEN_AT_ONCE)]

    def owed(self, most: int, names: int = 3) -> Owed:
        """Count up to `most` of them, and name up to so many hosts."""
        hosts: dict[str, None] = {}
        urls = 0
        for _, value in islice(self._store.scan("frontier", self._first, layout.after(layout.LATER)), most):
            urls += 1
            hosts[layout.unpack_with_level(value)[0].host] = None
        return Owed(urls, len(hosts), self.next_due, tuple(islice(hosts, names))) if urls else Owed()

    def of(self, host: str, most: int) -> list[tuple[Task, float]]:
        """The tasks of a host among the first `most`, each with the time that it waits for, in seconds since the epoch."""
        rows = islice(self._store.scan("frontier", self._first, layout.after(layout.LATER)), most)
        found = [(layout.unpack_with_level(value)[0], layout.time_of(key)) for key, value in rows]
        return [(task, due) for task, due in found if task.host == host]

    @staticmethod
    def put(tasks: Sequence[tuple[Task, float]], serial: int, batch: Batch) -> None:
        for number, (task, due) in enumerate(tasks, serial):
            [value] = layout.pack_with_level(task.host, task.level, [task])
            batch.put("frontier", layout.time_key(layout.LATER, due, number.to_bytes(8)), value)

    def applied(self, tasks: Sequence[tuple[Task, float]], woken: Sequence[bytes]) -> None:
        """These were written, and those under the keys `woken` have left."""
        if woken:
            self._first = max(woken) + b"\x00"
            self.next_due = _first_time(self._store, self._first, layout.LATER)
        for _, due in tasks:
            key = layout.time_key(layout.LATER, due, b"")
            self._first = min(self._first, key)
            self.next_due = min(self.next_due, layout.time_of(key))


# Tasks that are set aside: those of families that look like traps, behind everything else (design question 22). They are neither
# queued nor in flight, and as durable as those that are. A family has a row with its count, and chunks of its tasks in the order
# in which they came; nothing of it is kept in memory.

_rows = msgspec.msgpack.Decoder(SetAside)
_encode = msgspec.msgpack.Encoder().encode


class AsideTasks:
    """Tasks that are set aside, as the store has them."""

    def __init__(self, store: RocksStore, keys: layout.LedgerKeys) -> None:
        self._store = store
        self._keys = keys

    def row(self, family: Family) -> SetAside:
        data = self._store.get("frontier", self.row_key(family))
        return SetAside(family) if data is None else _rows.decode(data)

    def rows(self, after_this: Family | None = None) -> Iterator[SetAside]:
        """Every row, those of one domain together; behind that of a family, where one is given."""
        start = layout.ASIDE if after_this is None else self.row_key(after_this) + b"\x00"
        for _, data in self._store.scan("frontier", start, layout.after(layout.ASIDE)):
            yield _rows.decode(data)

    def chunks(self, family: Family, *, newest: bool = False) -> Iterator[tuple[bytes, list[Task]]]:
        """Keys and tasks of a family's chunks, those that came first at the beginning, or the other way round."""
        prefix = self.prefix(family)
        for key, value in self._store.scan("frontier", prefix, layout.after(prefix), back=newest):
            yield key, layout.unpack_with_level(value)

    def prefix(self, family: Family) -> bytes:
        """The prefix of the keys of its chunks, before a serial."""
        return layout.SHELF + self._keys.host(family.owner) + family.key

    def row_key(self, family: Family) -> bytes:
        return layout.ASIDE + self._keys.host(family.owner) + family.key

    def find(self, url: str, most: int) -> tuple[Family, Task] | None:
        """Family and task of a canonical URL that is set aside; None where it is not, among the first `most` chunks of its host's
        families."""
        host = host_of(url)
        for owner in (host, f"*.{registered_domain(host)}"):
            prefix = layout.ASIDE + self._keys.host(owner)
            for row in [_rows.decode(data) for _, data in self._store.scan("frontier", prefix, layout.after(prefix))]:
                if not row.count:
                    continue
                for _, tasks in self.chunks(row.family):
                    most -= 1
                    found = next((task for task in tasks if task.url == url), None)
                    if found is not None:
                        return row.family, found
                    if most <= 0:
                        return None
        return None


class AsideChanges(msgspec.Struct, eq=False):
    """The changes of a group to them."""

    _kept: AsideTasks
    _rows: dict[bytes, SetAside] = {}
    _chunks: dict[bytes, bytes] = {}
    """Empty where the chunk leaves."""

    def _row(self, family: Family) -> SetAside:
        row = self._rows.get(family.key)
        return self._kept.row(family) if row is None else row

    def put(self, family: Family, tasks: Iterable[Task]) -> int:
        by_lane: dict[tuple[str, int], list[Task]] = {}
        for task in tasks:
            by_lane.setdefault((task.host, task.level), []).append(task)
        row = self._row(family)
        serial, count = row.serial, 0
        for (host, level), those in by_lane.items():
            for chunk in layout.pack_with_level(host, level, those):
                self._chunks[layout.serial_key(self._kept.prefix(family), serial)] = chunk
                serial += 1
            count += len(those)
        self._rows[family.key] = msgspec.structs.replace(row, family=family, count=row.count + count, serial=serial)
        return count

    def take(self, family: Family, most: int, *, newest: bool, probe: bool, last: bool) -> list[Task]:
        """Tasks that are set aside no more, at most so many; those that this group itself sets aside are not among them."""
        found: list[Task] = []
        for key, tasks in self._kept.chunks(family, newest=newest):
            if self._chunks.get(key) == b"":
                continue
            room = most - len(found)
            taken, rest = (tasks[-room:], tasks[:-room]) if newest else (tasks[:room], tasks[room:])
            found += taken
            self._chunks[key] = layout.pack_with_level(tasks[0].host, tasks[0].level, rest)[0] if rest else b""
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
        for row in self._rows.values():
            batch.put("frontier", self._kept.row_key(row.family), _encode(row))
        for key, value in self._chunks.items():
            batch.change("frontier", key, value or None)
