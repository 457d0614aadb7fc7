"""Hosts that are not held: those that wait in the rotation for a place in the window, and those that rest until a time.

Place in the flow: :mod:`gossamer.storage.ledger.queues` takes names from here when there is room, and says who came back.
What was taken is deleted with the next commit: until then it is found again after a kill.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice

import msgspec

from gossamer.storage.ledger.active_hosts import HeldHost, HeldLane, HostLeaving
from gossamer.storage.ledger.chunks import Cursor, Place
from gossamer.storage.ledger.keys import RESTING, ROTATION, after, due_key, serial_key, time_of
from gossamer.storage.ledger.store import RocksStore
from gossamer.storage.seen.caches import RecentlyUsed
from gossamer.values.task import Task

# What a group has for the queues, and what a commit makes of it: worked out without changing anything.
#
# Place in the flow: a group gathers :class:`QueueChanges`; the queues make a :class:`Plan` of them, put it into the batch,
# and take it up when the batch was written. So a failed write leaves all as it was.


class Marks(msgspec.Struct, array_like=True):
    """Where the queues stand; kept with the counters."""

    serial: int = 1
    """The next chunk or value of the rotation."""
    rotation: int = 0
    """Values of the rotation before this one are gone."""
    unfinished: int = 0
    """Tasks that are queued or in flight."""


class QueueChanges:
    """What a group has for the queues."""

    __slots__ = ("begun", "ended", "later", "pushed", "requests", "woken")

    def __init__(self) -> None:
        self.pushed: dict[tuple[str, int], list[Task]] = {}
        self.ended: dict[str, int] = {}
        """Identity -> how many of its flights have ended."""
        self.requests: list[Task] = []
        """Tasks among those that are queued that are no plain GET."""
        self.begun: list[str] = []
        """Identities of requests that are about to be sent, and may not be sent twice."""
        self.later: list[tuple[Task, float]] = []
        """Tasks, each with the time when it is due."""
        self.woken: list[bytes] = []
        """Keys of tasks that were to be queued later, and are pushed now."""

    @property
    def tasks(self) -> int:
        """How many more tasks are unfinished then."""
        return sum(map(len, self.pushed.values())) + len(self.later) - len(self.woken) - sum(self.ended.values())


class HostEnding:
    """What ends of one host: places by lane; its cursors, and the finished chunks by lane, when they have ended."""

    __slots__ = ("chunks", "cursors", "entry", "places")

    def __init__(self, entry: HeldHost) -> None:
        self.entry = entry
        self.places: dict[HeldLane, set[Place]] = {}
        self.cursors: dict[int, Cursor] = {}
        self.chunks: dict[HeldLane, list[int]] = {}

    def decide(self) -> None:
        """Work out cursors and chunks, when all places are known."""
        self.cursors = dict(self.entry.cursors or {})
        for lane, places in self.places.items():
            cursor, self.chunks[lane] = lane.cursor_without(places)
            if cursor is not None:
                self.cursors[lane.level] = cursor
            else:
                self.cursors.pop(lane.level, None)

    def apply(self) -> None:
        for lane, places in self.places.items():
            lane.end(places, self.cursors.get(lane.level), self.chunks[lane])
            self.entry.tidy(lane.level)
        self.entry.cursors = self.cursors


class Plan:
    """What a commit changes in the queues. Made without changing anything, so that a failed write leaves all as it was."""

    __slots__ = ("changes", "ended", "first_serial", "marks", "moves", "rotated", "spent")

    def __init__(self, changes: QueueChanges, marks: Marks) -> None:
        self.changes = changes
        self.ended: dict[str, HostEnding] = {}
        self.moves: dict[str, tuple[HostLeaving | None, float]] = {}
        self.spent: list[bytes] = []
        self.rotated: list[str] = []
        self.first_serial = marks.serial
        self.marks = Marks(marks.serial, marks.rotation, marks.unfinished + changes.tasks)


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
        """Whether nobody waits, as far as was looked."""
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
