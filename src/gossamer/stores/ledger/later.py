"""Tasks that are queued only from a time on: pages that are to be tried again after minutes (design question 12).

They lie in the order of their times, each under a key of its own. Whoever wakes them moves those that are due into the
queues of their hosts, in one group.
"""

from collections.abc import Sequence
from itertools import islice

import msgspec

from gossamer.model.task import Task
from gossamer.stores.ledger.chunks import pack, unpack
from gossamer.stores.ledger.keys import LATER, after, due_key, time_key, time_of
from gossamer.stores.ledger.store import Batch, RocksStore

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

    def __repr__(self) -> str:
        return f"<LaterTasks, the next due at {self._next}>"

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
