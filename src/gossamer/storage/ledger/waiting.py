"""Hosts that wait for a turn in the rotation or for the end of their rest, and delayed tasks that wait until they are due.

Place in the flow: :mod:`gossamer.storage.ledger.queues` takes names of hosts from here when there is room among the active ones,
and says which came back. Entries that were taken are deleted with the next commit: until then they are found again after a kill.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice

import msgspec

from gossamer.storage.ledger.chunks import Marks, pack_with_level, unpack_with_level
from gossamer.storage.ledger.keys import LATER, RESTING, ROTATION, after, due_key, serial_key, time_key, time_of
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.storage.seen.caches import RecentlyUsed
from gossamer.values.task import Task

#: Names in one value of the rotation: it is read whole.
ROTATION_NAMES = 512

#: Hosts that are surely waiting, remembered so that they do not stand in the rotation once for each push.
WAITING_REMEMBERED = 65_536


class Rotation:
    """Names of hosts, in the order in which their turns come."""

    def __init__(self, store: RocksStore, marks: Marks) -> None:
        self.marks = marks
        self.spent: list[bytes] = []
        """Keys of what was taken since the last commit."""
        self.is_over = False
        """Whether no host waits, as far as was looked."""
        self.waiting: RecentlyUsed[str, bool] = RecentlyUsed(WAITING_REMEMBERED)
        self._store = store
        self._turns: deque[str] = deque()
        self._turns_key = b""
        self._rested = RESTING
        self.next_rest = self._first_rest()
        """When the next resting host is due, in seconds since the epoch; infinite where none rests."""

    def woken(self, now: float, room: int) -> list[str]:
        """At most `room` hosts whose rest is over."""
        if now < self.next_rest:
            return []
        names: list[str] = []
        rows = self._store.scan("frontier", self._rested, due_key(RESTING, now))
        for key, value in islice(rows, room):
            self._rested = key + b"\x00"
            self.spent.append(key)
            names.append(value.decode())
        self.next_rest = self._first_rest()
        return names

    def _first_rest(self) -> float:
        row = next(self._store.scan("frontier", self._rested, after(RESTING)), None)
        return float("inf") if row is None else time_of(row[0])

    def rests(self, until: float) -> None:
        """A host is going to rest until this time."""
        self.next_rest = min(self.next_rest, until)

    def next_turns(self, room: int) -> list[str]:
        """The names that follow in the rotation, at most `room`; none where it ends."""
        if not self._turns and not self.is_over:
            start = serial_key(ROTATION, self.marks.rotation)
            row = next(self._store.scan("frontier", start, after(ROTATION)), None)
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

    def applied(self, marks: Marks, resting: Sequence[bytes], rotated: Sequence[str]) -> None:
        """A commit was written: hosts rest under these keys, and these wait at the end of the rotation."""
        self.marks = marks
        self.spent.clear()
        for key in resting:
            self.rests(time_of(key))
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
        self._first = LATER
        self.next_due = float("inf")
        """When the next one is due, in seconds since the epoch; infinite where there is none."""
        self._look()

    def due(self, now: float) -> list[Due]:
        """Those that are due, the earliest first, up to a number."""
        if now < self.next_due:
            return []
        rows = self._store.scan("frontier", self._first, due_key(LATER, now))
        return [(key, unpack_with_level(value)[0]) for key, value in islice(rows, WOKEN_AT_ONCE)]

    def owed(self, most: int, names: int = 3) -> Owed:
        """Count up to `most` of them, and name up to so many hosts."""
        hosts: dict[str, None] = {}
        urls = 0
        for _, value in islice(self._store.scan("frontier", self._first, after(LATER)), most):
            urls += 1
            hosts[unpack_with_level(value)[0].host] = None
        return Owed(urls, len(hosts), self.next_due, tuple(islice(hosts, names))) if urls else Owed()

    def of(self, host: str, most: int) -> list[tuple[Task, float]]:
        """The tasks of a host among the first `most`, each with the time that it waits for, in seconds since the epoch."""
        rows = islice(self._store.scan("frontier", self._first, after(LATER)), most)
        found = [(unpack_with_level(value)[0], time_of(key)) for key, value in rows]
        return [(task, due) for task, due in found if task.host == host]

    @staticmethod
    def put(tasks: Sequence[tuple[Task, float]], serial: int, batch: Batch) -> None:
        """Put tasks with their times into a batch; the numbers from `serial` on are theirs."""
        for number, (task, due) in enumerate(tasks, serial):
            [value] = pack_with_level(task.host, task.level, [task])
            batch.put("frontier", time_key(LATER, due, number.to_bytes(8)), value)

    def applied(self, tasks: Sequence[tuple[Task, float]], woken: Sequence[bytes]) -> None:
        """These were written, and those under the keys `woken` have left."""
        if woken:
            self._first = max(woken) + b"\x00"
            self._look()
        for _, due in tasks:
            key = time_key(LATER, due, b"")
            self._first = min(self._first, key)
            self.next_due = min(self.next_due, time_of(key))

    def _look(self) -> None:
        """Find out when the next one is due. Keys before `_first` were deleted, and are not walked over."""
        row = next(self._store.scan("frontier", self._first, after(LATER)), None)
        self.next_due = float("inf") if row is None else time_of(row[0])
