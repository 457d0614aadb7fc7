"""What a group has for the queues, and what a commit makes of it: worked out without changing anything.

Place in the flow: a group gathers :class:`QueueChanges`; the queues make a :class:`Plan` of them, put it into the batch, and take
it up when the batch was written. So a failed write leaves all as it was.
"""

import msgspec

from gossamer.model.task import Task
from gossamer.stores.ledger.chunks import Cursor, Place
from gossamer.stores.ledger.held import HeldHost, HeldLane, HostLeaving


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
        """It was written."""
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
