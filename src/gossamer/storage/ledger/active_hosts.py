"""An active host: the part of its queue that is in memory, and which of its tasks are in flight.

A host's queue has *lanes*, one for each level of urgency; a lane is a row of chunks. Its *cursor* on the disk stands before
its first task that is not finished, so a popped task needs no record of its own: after a kill it is found at
the head of its lane.

Reading on finds the lanes: those below `explored` are known, the others were not looked at. Tasks that are pushed
meanwhile to a known lane are read before less urgent ones, buffered or not.
"""

from collections.abc import Mapping
from enum import Enum
from operator import attrgetter

import msgspec

from gossamer.storage.ledger.layout import NEW, PLACE_BITS, WALKED_OVER, Cursor, Cursors, Place
from gossamer.values.task import Task

#: Levels of urgency: the level is one byte of a chunk's key.
LEVELS = 256


class HostLeaving(Enum):
    """Why a host is not handed out any more, and where it goes when its last flight has ended."""

    EMPTY = "empty"
    TURN = "turn"
    REST = "rest"


class Stretch(msgspec.Struct, frozen=True):
    """The part of a queue to read next: from a serial of a level to before another level."""

    level: int
    serial: int
    end: int


class Lane:
    """Tasks of one level of an active host."""

    __slots__ = ("buffer", "chunks", "entry", "finished", "flying", "is_mixed", "level", "more", "read", "spent")

    def __init__(self, level: int, cursor: Cursor, entry: "ActiveHost") -> None:
        self.entry = entry
        self.level = level
        self.read: Place = cursor.place
        """From where to read on."""
        self.buffer: list[tuple[Place, Task]] = []
        """The dequeue buffer, the next task last: tasks that were read and not popped. A deque would take ten times the memory."""
        self.more = False
        """Whether there may be tasks behind the buffer, on the disk."""
        self.flying: list[Place] = []
        self.is_mixed = False
        """There may be places in flight behind the head of what is read next: a task was put back before them."""
        self.finished = frozenset(cursor.finished)
        """Finished places behind a place in flight."""
        self.chunks: dict[int, int] = {}
        """Serial -> tasks of the chunks that were read and are not finished."""
        self.spent = cursor.spent

    def fill(self, serial: int, tasks: list[Task], room: int) -> int:
        """Buffer at most `room` tasks of the next chunk, from where the last reading ended; returns how many."""
        begin = serial << PLACE_BITS
        count = self.chunks[serial] = len(tasks)
        first = max(self.read - begin, 0)
        places = list(range(begin + first, begin + count))
        if self.finished or self.is_mixed:
            places = [place for place in places if place not in self.finished and place not in self.flying]
        self.read = places[room] if len(places) > room else (serial + 1) << PLACE_BITS
        del places[room:]
        self.buffer[:0] = [(place, tasks[place - begin]) for place in reversed(places)]
        return len(places)

    def put_back(self, place: Place, task: Task) -> None:
        """A task that was popped is not in flight after all: it is the next again, before those behind it."""
        self.flying.remove(place)
        self.is_mixed = bool(self.flying)
        at = len(self.buffer)
        while at and self.buffer[at - 1][0] < place:
            at -= 1
        self.buffer.insert(at, (place, task))

    def take(self, most: int) -> list[tuple[Place, Task]]:
        taken = self.buffer[: -most - 1 : -1]
        del self.buffer[-most:]
        self.flying += [place for place, _ in taken]
        return taken

    def empty_buffer(self) -> int:
        count = len(self.buffer)
        if count:
            self.read = self.buffer[-1][0]
            self.buffer.clear()
            self.more = True
        return count

    def cursor_without(self, ended: set[Place]) -> tuple[Cursor | None, list[int]]:
        """Where the cursor will stand when these flights have ended, None where nothing of the lane is left, and nothing to be
        jumped over; and the serials of chunks that are finished then."""
        ahead = self.buffer[-1][0] if self.buffer else self.read
        # A task that was put back may stand before others that are in flight.
        place = min((place for place in self.flying if place not in ended and place < ahead), default=ahead)
        behind = [other for done in (self.finished, ended) for other in done if other >= place]
        chunks = [serial for serial, count in self.chunks.items() if (serial << PLACE_BITS) + count <= place]
        spent = self.spent + len(chunks)
        is_over = place == ahead and not self.buffer and not self.more and not behind
        if is_over and spent < WALKED_OVER:
            return None, chunks
        return Cursor(place, spent, tuple(sorted(behind))), chunks

    def end(self, ended: set[Place], cursor: Cursor | None, chunks: list[int]) -> None:
        self.flying = [place for place in self.flying if place not in ended]
        self.is_mixed = self.is_mixed and bool(self.flying)
        self.finished = frozenset(cursor.finished) if cursor is not None else frozenset()
        for serial in chunks:
            del self.chunks[serial]
        self.spent += len(chunks)


_FLYING = attrgetter("flying")


class ActiveHost:
    """A host whose tasks may be popped, and its lanes."""

    __slots__ = ("cursors", "explored", "key", "lanes", "leaving", "name", "popped", "until")

    def __init__(self, name: str, key: bytes) -> None:
        self.name = name
        self.key = key
        self.cursors: Cursors | None = None
        """As they stand on the disk; None until they were read."""
        self.explored = 0
        self.lanes: dict[int, Lane] = {}
        """Lanes of which something is unfinished, or may be."""
        self.popped = 0
        self.leaving: HostLeaving | None = None
        self.until = 0.0

    @property
    def is_flying(self) -> bool:
        return any(map(_FLYING, self.lanes.values()))

    @property
    def has_work(self) -> bool:
        return self.explored < LEVELS or self.first() is not None

    def first(self) -> Lane | None:
        """The most urgent known lane that has, or may have, tasks to pop."""
        found = None
        for lane in self.lanes.values():
            if (lane.buffer or lane.more) and (found is None or lane.level < found.level):
                found = lane
        return found

    def lane(self, level: int) -> Lane:
        """The lane of a level, as its cursor on the disk left it."""
        lane = self.lanes.get(level)
        if lane is None:
            assert self.cursors is not None
            lane = self.lanes[level] = Lane(level, self.cursors.get(level, NEW), self)
        return lane

    def unread(self) -> Stretch | None:
        """The part to read next; None where all of the queue was read."""
        lane = self.first()
        if lane is not None:
            return Stretch(lane.level, lane.read >> PLACE_BITS, lane.level + 1)
        if self.explored >= LEVELS:
            return None
        assert self.cursors is not None
        level = self.explored
        if not self.cursors:
            return Stretch(level, 0, LEVELS)
        long = [other for other, cursor in self.cursors.items() if other >= level and cursor.spent >= WALKED_OVER]
        serial = self.cursors[level].place >> PLACE_BITS if level in long else 0
        return Stretch(level, serial, min((other for other in long if other > level), default=LEVELS))

    def read_to_the_end(self, stretch: Stretch) -> None:
        lane = self.lanes.get(stretch.level)
        if lane is not None:
            lane.more = False
        self.explored = max(self.explored, stretch.end)

    def read_up_to(self, level: int) -> None:
        self.lanes[level].more = True
        self.explored = max(self.explored, level + 1)

    def pushed(self, level: int, serial: int) -> None:
        if level >= self.explored:
            return
        known = level in self.lanes
        lane = self.lane(level)
        if not known:
            # Everything before was finished: what was deleted need not be walked over.
            lane.read = max(lane.read, serial << PLACE_BITS)
        lane.more = True

    def tidy(self, level: int) -> None:
        lane = self.lanes[level]
        if not (lane.buffer or lane.more or lane.flying or lane.finished):
            del self.lanes[level]

    def empty_buffers(self) -> int:
        return sum(lane.empty_buffer() for lane in self.lanes.values())


class HostEnding(msgspec.Struct, eq=False):
    """Flights of one host that a commit ends: places by lane, and the cursors and finished chunks that follow from them."""

    entry: ActiveHost
    places: dict[Lane, set[Place]] = {}
    cursors: dict[int, Cursor] = {}
    chunks: dict[Lane, list[int]] = {}

    def decide(self) -> None:
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


# Tasks that were popped and are not finished. A URL can be in flight more than once, as where a walk comes back.

#: Where a task was popped.
Flight = tuple[Lane, Place]


class QueueFlights:
    """Flights by identity, the earliest of each first."""

    def __init__(self) -> None:
        self._first: dict[str, Flight] = {}
        self._others: dict[str, list[Flight]] = {}
        """Further flights of what is in flight already."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def count(self, identity: str) -> int:
        return (identity in self._first) + (len(self._others.get(identity, ())) if self._others else 0)

    def depart(self, identity: str, lane: Lane, place: Place) -> None:
        self._count += 1
        if identity in self._first:
            self._others.setdefault(identity, []).append((lane, place))
        else:
            self._first[identity] = (lane, place)

    def call_back(self, identity: str) -> Flight | None:
        """The latest flight of this identity is none after all; returns where it was popped, or None where there is none."""
        if identity not in self._first:
            return None
        self._count -= 1
        others = self._others.get(identity)
        if not others:
            return self._first.pop(identity)
        flight = others.pop()
        if not others:
            del self._others[identity]
        return flight

    def places(self, ended: Mapping[str, int]) -> dict[Lane, set[Place]]:
        """The places by lane of so many flights of each identity, the earliest first."""
        found: dict[Lane, set[Place]] = {}
        for identity, count in ended.items():
            lane, place = self._first[identity]
            found.setdefault(lane, set()).add(place)
            if count > 1:
                for lane, place in self._others[identity][: count - 1]:
                    found.setdefault(lane, set()).add(place)
        return found

    def land(self, identity: str, count: int) -> bool:
        """So many flights of an identity have ended, the earliest first. Returns whether none is left."""
        self._count -= count
        others = self._others.get(identity) if self._others else None
        if not others:
            del self._first[identity]
            return True
        left = [self._first.pop(identity), *others][count:]
        del self._others[identity]
        if left:
            self._first[identity] = left[0]
        if left[1:]:
            self._others[identity] = left[1:]
        return not left
