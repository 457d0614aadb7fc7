"""Hosts that are not held: those that wait in the rotation for a place in the window, and those that rest until a time.

Place in the flow: :mod:`gossamer.stores.ledger.queues` takes names from here when there is room, and says who came back.
What was taken is deleted with the next commit: until then it is found again after a kill.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice

import msgspec

from gossamer.stores.ledger.keys import RESTING, ROTATION, after, due_key, serial_key, time_of
from gossamer.stores.ledger.plan import Marks
from gossamer.stores.ledger.remembered import RecentlyUsed
from gossamer.stores.ledger.store import RocksStore

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

    def __repr__(self) -> str:
        return f"<Rotation at {self.marks.rotation}>"

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
