"""Queues by host on the disk, and the window of hosts that are held in memory (seed 004, section 3.2).

A host is in one of four places, and the store knows which: *held* (in the window, its tasks may be popped), *waiting*
in the rotation for a place in the window, *resting* until a time, or nowhere, because it has no tasks. A push writes
a chunk behind the host's queue without reading anything; a host that is not held is also put behind the rotation, where
it may stand twice: whoever finds it held, resting or empty passes it by.

Only chunks of held hosts are in memory, up to a number of tasks; the buffers that were not used longest are dropped
first. The write buffers of the store are the enqueue buffers.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping
from itertools import islice

import msgspec

from gossamer.model.task import Task
from gossamer.stores.ledger.chunks import Cursor, Place, pack, pack_cursor, unpack, unpack_cursor
from gossamer.stores.ledger.held import Held, Leaving
from gossamer.stores.ledger.keys import (
    CHUNK,
    CURSOR,
    HELD,
    RESTING,
    ROTATION,
    Keys,
    after,
    resting_key,
    serial_key,
)
from gossamer.stores.ledger.store import Batch, Store

#: Names in one value of the rotation: it is read whole.
ROTATION_NAMES = 512

#: Hosts that are surely waiting, remembered so that they do not stand in the rotation once for each push.
WAITING_REMEMBERED = 65_536


class QueueLimits(msgspec.Struct, frozen=True):
    """What bounds the memory of the queues."""

    held: int
    """Hosts in the window."""
    turn: int
    """Tasks after which a host makes room for one that waits."""
    buffered: int
    """Tasks in all dequeue buffers."""
    refill: int
    """Tasks that a buffer is filled up to."""


class Marks(msgspec.Struct, array_like=True):
    """Where the queues stand; kept with the counters."""

    serial: int = 1
    """The next chunk or value of the rotation."""
    rotation: int = 0
    """Values of the rotation before this one are gone."""
    unfinished: int = 0
    """Tasks that are queued or in flight."""


class Plan:
    """What a commit changes in the queues. Made without changing anything, so that a failed write leaves all as it was."""

    __slots__ = ("ended", "marks", "moves", "pushed", "rotated", "spent")

    def __init__(self) -> None:
        self.pushed: Mapping[str, list[Task]] = {}
        self.ended: dict[str, tuple[set[Place], Cursor, list[int]]] = {}
        self.moves: dict[str, tuple[Leaving | None, float]] = {}
        self.spent: list[bytes] = []
        self.rotated: list[str] = []
        self.marks = Marks()


class HostQueues:
    """The queues of all hosts."""

    def __init__(self, store: Store, keys: Keys, limits: QueueLimits, marks: Marks) -> None:
        self.marks = marks
        self.limits = limits
        self._store = store
        self._keys = keys
        self._held: dict[str, Held] = {}
        self._arrivals: deque[str] = deque()
        self._flights: dict[str, list[tuple[Held, Place]]] = {}
        self._flying = 0
        self._buffers: OrderedDict[str, Held] = OrderedDict()
        self._buffered = 0
        self._moves: dict[str, tuple[Leaving | None, float]] = {}
        self._spent: list[bytes] = []
        self._turns: deque[str] = deque()
        self._turns_key = b""
        self._rotation_ends = False
        self._waiting: dict[str, None] = {}
        self._next_rest = 0.0
        self._rested = RESTING
        for _, name in store.scan("frontier", HELD, after(HELD)):
            self._hold(name.decode())
            self._arrivals.append(name.decode())

    def __len__(self) -> int:
        return self.marks.unfinished - self._flying

    def __repr__(self) -> str:
        return f"<HostQueues {len(self)} tasks, {len(self._held)} hosts held, {self._flying} in flight>"

    @property
    def held(self) -> int:
        """Hosts in the window."""
        return len(self._held)

    @property
    def in_flight(self) -> int:
        """Tasks that were popped and are not finished."""
        return self._flying

    @property
    def buffered(self) -> int:
        """Tasks in memory that were not popped."""
        return self._buffered

    @property
    def moved(self) -> bool:
        """Whether a host has changed its place since the last commit: it is not found there before the next."""
        return bool(self._moves or self._spent)

    def flights(self, url: str) -> int:
        """How many tasks of this URL are in flight."""
        return len(self._flights.get(url, ()))

    # -- hosts come

    def admit(self, now: float, most: int) -> list[str]:
        """Names of hosts that are held from now on. What :attr:`moved` must be committed before."""
        found: list[str] = []
        while self._arrivals and len(found) < most:
            name = self._arrivals.popleft()
            entry = self._held.get(name)
            if entry is not None and entry.leaving is None:
                found.append(name)
        room = min(most - len(found), self.limits.held - len(self._held))
        if room > 0:
            found += self._wake(now, room)
        while (room := min(most - len(found), self.limits.held - len(self._held))) > 0:
            names = self._next_turns(room)
            if not names:
                break
            found += self._take_turns(names)
        return found

    def _wake(self, now: float, room: int) -> list[str]:
        """Hosts whose rest is over."""
        if now < self._next_rest:
            return []
        names: list[str] = []
        end = min(resting_key(now, b"\xff"), after(RESTING))
        for key, value in islice(self._store.scan("frontier", self._rested, after(RESTING)), room):
            if key >= end:
                self._next_rest = int.from_bytes(key[1:9]) / 1000
                break
            self._rested = key + b"\x00"
            self._spent.append(key)
            names.append(value.decode())
        else:
            # Either nobody rests any more, and the next to lie down says when to look; or there is no more room now.
            self._next_rest = float("inf") if len(names) < room else 0.0
        for name in names:
            self._hold(name)
            self._moves[name] = (None, 0.0)
        return names

    def _next_turns(self, room: int) -> list[str]:
        """The names that follow in the rotation, at most `room`; none where it ends."""
        if not self._turns and not self._rotation_ends:
            start = serial_key(ROTATION, self.marks.rotation)
            row = next(self._store.scan("frontier", start, after(ROTATION)), None)
            if row is None:
                self._rotation_ends = True
            else:
                self._turns_key, value = row
                self._turns.extend(msgspec.msgpack.decode(value, type=list[str]))
        names = [self._turns.popleft() for _ in range(min(room, len(self._turns)))]
        if names and not self._turns:
            # Only now: until its last name has left, the value must be found again after a kill.
            self.marks.rotation = int.from_bytes(self._turns_key[1:]) + 1
            self._spent.append(self._turns_key)
        for name in names:
            self._waiting.pop(name, None)
        return names

    def _take_turns(self, names: list[str]) -> list[str]:
        """Those of `names` that are not held yet and do not rest."""
        fresh = [name for name in dict.fromkeys(names) if name not in self._held]
        keys = [self._keys.host(name) for name in fresh]
        # Cursors come with it: asked together they cost half of what each costs at its host's first pop.
        rows = self._store.get_many("hosts", [key + RESTING for key in keys] + [key + CURSOR for key in keys])
        found = []
        for name, rest, cursor in zip(fresh, rows[: len(fresh)], rows[len(fresh) :], strict=True):
            if rest is None:
                self._hold(name).open_at(unpack_cursor(cursor))
                self._moves[name] = (None, 0.0)
                found.append(name)
        return found

    def _hold(self, name: str) -> Held:
        held = self._held[name] = Held(name, self._keys.host(name))
        return held

    # -- tasks go

    def pop(self, name: str, most: int) -> list[Task]:
        """Up to `most` tasks of a held host; none when it is held no more."""
        entry = self._held.get(name)
        if entry is None or entry.leaving is not None:
            return []
        if entry.popped >= self.limits.turn and len(self._held) >= self.limits.held and not self._rotation_ends:
            self._leave(entry, Leaving.TURN)
            return []
        if len(entry.buffer) < most and entry.more:
            self._refill(entry, most)
        if not entry.buffer:
            self._leave(entry, Leaving.EMPTY)
            return []
        taken = []
        for _ in range(min(most, len(entry.buffer))):
            place, task = entry.buffer.popleft()
            taken.append(task)
            entry.flying.add(place)
            flights = self._flights.get(task.url)
            if flights is None:
                self._flights[task.url] = [(entry, place)]
            else:
                flights.append((entry, place))
        entry.popped += len(taken)
        self._flying += len(taken)
        self._buffered -= len(taken)
        if entry.buffer:
            self._buffers[name] = entry
            self._buffers.move_to_end(name)
        else:
            self._buffers.pop(name, None)
        self._trim()
        return taken

    def rest(self, name: str, until: float) -> None:
        """Hold a host no more until this time."""
        entry = self._held.get(name)
        if entry is not None and entry.leaving is None:
            entry.until = until
            self._leave(entry, Leaving.REST)

    def _refill(self, entry: Held, most: int) -> None:
        if entry.read is None:
            entry.open_at(unpack_cursor(self._store.get("hosts", entry.key + CURSOR)))
        assert entry.read is not None
        # All held hosts take turns: a larger share for one would be dropped before its next turn.
        share = self.limits.buffered // len(self._held)
        before, wanted = len(entry.buffer), max(most, min(self.limits.refill, share))
        prefix = CHUNK + entry.key
        for key, value in self._store.scan("frontier", serial_key(prefix, entry.read[0]), after(prefix)):
            entry.fill(int.from_bytes(key[-8:]), unpack(value), wanted)
            if len(entry.buffer) >= wanted:
                break
        else:
            entry.more = False
        self._buffered += len(entry.buffer) - before

    def _trim(self) -> None:
        """Drop the buffers that were not used longest, until what is left keeps the bound."""
        while self._buffered > self.limits.buffered:
            _, entry = self._buffers.popitem(last=False)
            self._buffered -= entry.empty_buffer()

    def _leave(self, entry: Held, why: Leaving) -> None:
        entry.leaving = why
        if not entry.flying:
            self._let_go(entry)

    def _let_go(self, entry: Held) -> None:
        """A host that leaves, and of which nothing is in flight any more, goes to its next place."""
        assert entry.leaving is not None
        if entry.leaving is not Leaving.REST:
            entry.leaving = Leaving.TURN if entry.has_work else Leaving.EMPTY
        self._moves[entry.name] = (entry.leaving, entry.until)
        self._buffered -= entry.empty_buffer()
        self._buffers.pop(entry.name, None)
        del self._held[entry.name]

    # -- a commit

    def plan(self, pushed: Mapping[str, list[Task]], ended: Mapping[str, int]) -> Plan:
        """What is to be written when these tasks were pushed (by host) and so many flights of these URLs have ended."""
        plan = Plan()
        plan.pushed = pushed
        plan.moves, plan.spent = dict(self._moves), list(self._spent)
        places: dict[str, set[Place]] = {}
        for url, count in ended.items():
            for entry, place in self._flights[url][:count]:
                places.setdefault(entry.name, set()).add(place)
        for name, ends in places.items():
            entry = self._held[name]
            cursor = entry.cursor_without(ends)
            plan.ended[name] = ends, cursor, list(entry.chunks_before(cursor))
        plan.rotated = [name for name, (why, _) in plan.moves.items() if why is Leaving.TURN]
        known = {*plan.rotated, *self._waiting}
        plan.rotated += [name for name in pushed if name not in self._held and name not in known]
        unfinished = self.marks.unfinished + sum(map(len, pushed.values())) - sum(ended.values())
        plan.marks = Marks(self.marks.serial, self.marks.rotation, unfinished)
        return plan

    def write(self, plan: Plan, batch: Batch) -> None:
        """Put the plan into a batch; the plan's marks then stand behind what was written."""
        for key in plan.spent:
            batch.delete("frontier", key)
            if key.startswith(RESTING):
                batch.delete("hosts", key[9:] + RESTING)
        for name, (why, until) in plan.moves.items():
            host = self._keys.host(name)
            if why is None:
                batch.put("frontier", HELD + host, name.encode())
                continue
            batch.delete("frontier", HELD + host)
            if why is Leaving.REST:
                batch.put("frontier", resting_key(until, host), name.encode())
                batch.put("hosts", host + RESTING, b"")
        for name, (_, cursor, chunks) in plan.ended.items():
            host = self._held[name].key
            batch.put("hosts", host + CURSOR, pack_cursor(cursor))
            for serial in chunks:
                batch.delete("frontier", serial_key(CHUNK + host, serial))
        for name, tasks in plan.pushed.items():
            prefix = CHUNK + self._keys.host(name)
            for chunk in pack(name, tasks):
                batch.put("frontier", serial_key(prefix, plan.marks.serial), chunk)
                plan.marks.serial += 1
        for start in range(0, len(plan.rotated), ROTATION_NAMES):
            names = msgspec.msgpack.encode(plan.rotated[start : start + ROTATION_NAMES])
            batch.put("frontier", serial_key(ROTATION, plan.marks.serial), names)
            plan.marks.serial += 1

    def apply(self, plan: Plan, ended: Mapping[str, int]) -> None:
        """The plan was written: make it so in memory."""
        self.marks = plan.marks
        self._moves.clear()
        self._spent.clear()
        for name, (why, until) in plan.moves.items():
            if why is Leaving.REST:
                self._next_rest = min(self._next_rest, until)
                self._rested = min(self._rested, resting_key(until, self._keys.host(name)))
        for url, count in ended.items():
            flights = self._flights[url]
            del flights[:count]
            self._flying -= count
            if not flights:
                del self._flights[url]
        if plan.rotated:
            self._rotation_ends = False
            for name in plan.rotated:
                self._waiting[name] = None
            while len(self._waiting) > WAITING_REMEMBERED:
                del self._waiting[next(iter(self._waiting))]
        self._wake_pushed(plan.pushed)
        for name, (ends, cursor, chunks) in plan.ended.items():
            self._end(self._held[name], ends, cursor, chunks)

    def _wake_pushed(self, pushed: Mapping[str, list[Task]]) -> None:
        """Held hosts have more to read; one that was found empty is held again by whoever admits it."""
        for name in pushed:
            entry = self._held.get(name)
            if entry is None:
                continue
            entry.more = True
            if entry.leaving is Leaving.EMPTY:
                entry.leaving = None
                self._arrivals.append(name)

    def _end(self, entry: Held, ends: set[Place], cursor: Cursor, chunks: list[int]) -> None:
        entry.flying -= ends
        entry.finished = set(cursor.finished)
        for serial in chunks:
            del entry.chunks[serial]
        if entry.leaving is not None and not entry.flying:
            self._let_go(entry)
