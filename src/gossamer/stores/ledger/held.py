"""A host that is held: the part of its queue that is in memory, and which of its tasks are in flight.

A host's queue is a row of chunks. The *cursor* on the disk stands before the first task that is not finished, so a
popped task needs no record of its own: whoever reopens the store finds it at the head of its queue.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum

from gossamer.model.task import Task
from gossamer.stores.ledger.chunks import BEGINNING, Cursor, Place


class Leaving(Enum):
    """Why a host is not handed out any more, and where it goes when its last flight has ended."""

    EMPTY = "empty"
    TURN = "turn"
    REST = "rest"


class Held:
    """One held host."""

    __slots__ = ("buffer", "chunks", "finished", "flying", "key", "leaving", "more", "name", "popped", "read", "until")

    def __init__(self, name: str, key: bytes) -> None:
        self.name = name
        self.key = key
        self.read: Place | None = None
        """From where to read on; None until the cursor was read."""
        self.buffer: deque[tuple[Place, Task]] = deque()
        """The dequeue buffer: tasks that were read and not popped."""
        self.more = True
        """Whether there may be tasks behind the buffer, on the disk."""
        self.flying: set[Place] = set()
        self.finished: set[Place] = set()
        """Finished places behind a place in flight."""
        self.chunks: dict[int, int] = {}
        """Serial -> tasks of the chunks that were read and are not finished."""
        self.popped = 0
        self.leaving: Leaving | None = None
        self.until = 0.0

    def __repr__(self) -> str:
        return f"<Held {self.name}: {len(self.buffer)} buffered, {len(self.flying)} in flight>"

    @property
    def has_work(self) -> bool:
        """Whether there may be tasks to pop."""
        return self.more or bool(self.buffer)

    def open_at(self, cursor: Cursor) -> None:
        """Begin to read where the cursor stands."""
        self.read = (cursor.serial, cursor.index)
        self.finished = set(cursor.finished)

    def fill(self, serial: int, tasks: list[Task], wanted: int) -> None:
        """Buffer tasks of the next chunk, from where the last reading ended, until the buffer has `wanted`."""
        assert self.read is not None
        first = self.read[1] if serial == self.read[0] else 0
        self.chunks[serial] = len(tasks)
        for index in range(first, len(tasks)):
            if len(self.buffer) >= wanted:
                self.read = (serial, index)
                return
            place = (serial, index)
            if place not in self.finished:
                self.buffer.append((place, tasks[index]))
        self.read = (serial + 1, 0)

    def empty_buffer(self) -> int:
        """Forget what was read and not popped: it is read again. Returns how many tasks."""
        count = len(self.buffer)
        if count:
            self.read = self.buffer[0][0]
            self.buffer.clear()
            self.more = True
        return count

    def next_place(self) -> Place:
        """The first place that was not popped."""
        if self.buffer:
            return self.buffer[0][0]
        return self.read or BEGINNING

    def cursor_without(self, ended: set[Place]) -> Cursor:
        """Where the cursor will stand when these flights have ended."""
        place = min(self.flying - ended, default=self.next_place())
        return Cursor(*place, tuple(sorted(other for other in self.finished | ended if other >= place)))

    def chunks_before(self, cursor: Cursor) -> Iterator[int]:
        """Serials of chunks of which everything is finished when the cursor stands there."""
        place = (cursor.serial, cursor.index)
        return (serial for serial, count in self.chunks.items() if (serial, count) <= place)
