"""Queues by host on the disk, and the active hosts, which are held in memory (Heydon and Najork 1999, section 3.2).

A host is in one of four places, and the store knows which: *active* (the frontier holds it, its tasks may be popped), *waiting* in
the rotation for a place among the active ones, *resting* until a time, or nowhere, because it has no tasks. A push writes a chunk
behind the host's queue without reading anything; a host that is not active is also put behind the rotation, where it may stand
twice: if it is active, resting or empty when its turn comes, it is passed by.

Only chunks of active hosts are in memory, up to a number of tasks; the least recently used buffers are dropped first. The write
buffers of the store are the enqueue buffers.

A commit changes the queues in three steps, so that a failed write leaves all as it was: a group gathers :class:`QueueChanges`, the
queues make a :class:`Plan` of them and put it into the batch, and take it up when the batch was written.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from gossamer.storage.ledger import layout
from gossamer.storage.ledger.active_hosts import ActiveHost, HostEnding, HostLeaving, QueueFlights
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.storage.ledger.waiting import ROTATION_NAMES, DelayedTasks, Rotation
from gossamer.values.task import Task

if TYPE_CHECKING:
    from gossamer.storage.ledger.reader import LedgerSheet


class QueueChanges(msgspec.Struct, eq=False):
    """The changes of one group."""

    pushed: dict[tuple[str, int], list[Task]] = {}
    ended: dict[str, int] = {}
    """Identity -> how many of its flights have ended."""
    requests: list[Task] = []
    """Tasks among those that are queued that are no plain GET."""
    begun: list[str] = []
    """Identities of requests that are about to be sent, and may not be sent twice."""
    delayed: list[tuple[Task, float]] = []
    """Tasks, each with the time when it is due."""
    woken: list[bytes] = []
    """Keys of tasks that were to be queued later, and are pushed now."""

    @property
    def tasks(self) -> int:
        return sum(map(len, self.pushed.values())) + len(self.delayed) - len(self.woken) - sum(self.ended.values())


class Plan:
    """All that a commit writes of the queues, worked out without changing anything."""

    __slots__ = ("changes", "ended", "first_serial", "marks", "moves", "rotated", "spent")

    def __init__(self, changes: QueueChanges, marks: layout.Marks) -> None:
        self.changes = changes
        self.ended: dict[str, HostEnding] = {}
        self.moves: dict[str, tuple[HostLeaving | None, float]] = {}
        self.spent: list[bytes] = []
        self.rotated: list[str] = []
        self.first_serial = marks.serial
        self.marks = layout.Marks(marks.serial, marks.rotation, marks.unfinished + changes.tasks)


class HostQueues:
    """The queues of all hosts."""

    def __init__(
        self,
        store: RocksStore,
        keys: layout.LedgerKeys,
        limits: "LedgerSheet",
        marks: layout.Marks,
        requests: layout.KeptRequests,
    ) -> None:
        self.marks = marks
        self.requests = requests
        self._requesting: set[str] = set()
        """Identities in flight of tasks that are no plain GET."""
        self.limits = limits
        self._store = store
        self._keys = keys
        self._held: dict[str, ActiveHost] = {}
        self._arrivals: deque[str] = deque()
        self._flights = QueueFlights()
        self._buffers: OrderedDict[str, ActiveHost] = OrderedDict()
        self.buffered = 0
        self._moves: dict[str, tuple[HostLeaving | None, float]] = {}
        self.rotation = Rotation(store, marks)
        self.delayed = DelayedTasks(store)
        for _, name in store.scan("frontier", layout.HELD, layout.after(layout.HELD)):
            self._hold(name.decode())
            self._arrivals.append(name.decode())

    def __len__(self) -> int:
        return self.marks.unfinished - len(self._flights)

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def in_flight(self) -> int:
        return len(self._flights)

    @property
    def moved(self) -> bool:
        """Whether a host has changed its place since the last commit: it is not found there before the next."""
        return bool(self._moves or self.rotation.spent)

    def flights(self, url: str) -> int:
        return self._flights.count(url)

    # -- hosts come

    def admit(self, now: float, most: int) -> list[str]:
        """Names of hosts that are active from now on. Changes of :attr:`moved` must be committed before."""
        found: list[str] = []
        while self._arrivals and len(found) < most:
            name = self._arrivals.popleft()
            entry = self._held.get(name)
            if entry is not None and entry.leaving is None:
                found.append(name)
        room = min(most - len(found), self.limits.held - len(self._held))
        if room > 0:
            woken = self.rotation.woken(now, room)
            for name in woken:
                self._hold(name)
                self._moves[name] = (None, 0.0)
            found += woken
        while (room := min(most - len(found), self.limits.held - len(self._held))) > 0:
            names = self.rotation.next_turns(room)
            if not names:
                break
            fresh = [name for name in dict.fromkeys(names) if name not in self._held]
            keys = [self._keys.host(name) for name in fresh]
            # Cursors come with it: asked together they cost half of what each costs at its host's first pop.
            rows = self._store.get_many(
                "hosts", [key + layout.RESTING for key in keys] + [key + layout.CURSOR for key in keys]
            )
            for name, rest, cursor in zip(fresh, rows[: len(fresh)], rows[len(fresh) :], strict=True):
                if rest is None:
                    self._hold(name).cursors = layout.unpack_cursors(cursor)
                    self._moves[name] = (None, 0.0)
                    found.append(name)
        return found

    def _hold(self, name: str) -> ActiveHost:
        held = self._held[name] = ActiveHost(name, self._keys.host(name))
        return held

    # -- tasks go

    def pop(self, name: str, most: int) -> list[Task]:
        """Up to `most` tasks of a held host; none when it is held no more."""
        entry = self._held.get(name)
        if entry is None or entry.leaving is not None:
            return []
        if entry.popped >= self.limits.turn and len(self._held) >= self.limits.held and not self.rotation.is_over:
            self._leave(entry, HostLeaving.TURN)
            return []
        taken: list[Task] = []
        while len(taken) < most:
            lane = entry.first()
            if lane is not None and lane.buffer:
                for place, task in lane.take(most - len(taken)):
                    identity = task.identity
                    if task.request is not None:
                        task = self.requests.whole(task)  # noqa: PLW2901
                        self._requesting.add(identity)
                    taken.append(task)
                    self._flights.depart(identity, lane, place)
            elif not self._read(entry, most - len(taken)):
                break
        if not taken:
            self._leave(entry, HostLeaving.EMPTY)
            return taken
        entry.popped += len(taken)
        self.buffered -= len(taken)
        if any(lane.buffer for lane in entry.lanes.values()):
            self._buffers[name] = entry
            self._buffers.move_to_end(name)
        else:
            self._buffers.pop(name, None)
        self._trim()
        return taken

    def put_back(self, task: Task) -> None:
        flight = self._flights.call_back(task.identity)
        if flight is None:
            return
        if not self._flights.count(task.identity):
            self._requesting.discard(task.identity)
        lane, place = flight
        lane.put_back(place, layout.as_queued(task))
        entry = lane.entry
        entry.popped -= 1
        self.buffered += 1
        self._buffers[entry.name] = entry
        if entry.leaving is not None and not entry.is_flying:
            if entry.leaving is HostLeaving.REST:
                self.rotation.rests(entry.until)
            self._let_go(entry)
        self._trim()

    def rest(self, name: str, until: float) -> None:
        entry = self._held.get(name)
        if entry is not None and entry.leaving is None:
            entry.until = until
            self._leave(entry, HostLeaving.REST)

    def _read(self, entry: ActiveHost, most: int) -> bool:
        """Buffer what comes next of a host, at least `most` tasks where there are so many; False where nothing is left."""
        if entry.cursors is None:
            entry.cursors = layout.unpack_cursors(self._store.get("hosts", entry.key + layout.CURSOR))
        stretch = entry.unread()
        if stretch is None:
            return False
        # All held hosts take turns: a larger share for one would be dropped before its next turn.
        share = self.limits.buffered // len(self._held)
        room = max(most, min(self.limits.refill, share))
        prefix = layout.CHUNK + entry.key
        start, end = layout.lane_key(prefix, stretch.level, stretch.serial), layout.lane_key(prefix, stretch.end)
        for key, value in self._store.scan("frontier", start, end):
            level = key[-9]
            read = entry.lane(level).fill(int.from_bytes(key[-8:]), layout.unpack(value, level), room)
            self.buffered += read
            room -= read
            if not room:
                entry.read_up_to(level)
                break
        else:
            entry.read_to_the_end(stretch)
        return True

    def _trim(self) -> None:
        """Drop the buffers that were not used longest, until what is left keeps the bound."""
        while self.buffered > self.limits.buffered:
            _, entry = self._buffers.popitem(last=False)
            self.buffered -= entry.empty_buffers()

    def _leave(self, entry: ActiveHost, why: HostLeaving) -> None:
        entry.leaving = why
        if not entry.is_flying:
            self._let_go(entry)

    def _let_go(self, entry: ActiveHost) -> None:
        """A host that leaves, and of which nothing is in flight any more, goes to its next place."""
        assert entry.leaving is not None
        if entry.leaving is not HostLeaving.REST:
            entry.leaving = HostLeaving.TURN if entry.has_work else HostLeaving.EMPTY
        if entry.leaving is HostLeaving.REST:
            self.rotation.rests(entry.until)
        self._moves[entry.name] = (entry.leaving, entry.until)
        self.buffered -= entry.empty_buffers()
        self._buffers.pop(entry.name, None)
        del self._held[entry.name]

    def is_flying(self, is_meant: Callable[[bytes], bool]) -> bool:
        return any(entry.is_flying for entry in self._held.values() if is_meant(entry.key))

    def evict(self, is_gone: Callable[[bytes], bool]) -> None:
        """Hold hosts no more whose ids say so: their tasks, of which none is in flight, are about to leave."""
        for entry in [one for one in self._held.values() if is_gone(one.key)]:
            self.buffered -= entry.empty_buffers()
            self._buffers.pop(entry.name, None)
            self._moves[entry.name] = (HostLeaving.EMPTY, 0.0)
            del self._held[entry.name]

    def look_again(self) -> None:
        """Hosts and tasks may have come that no commit has brought."""
        self.rotation.look_again()
        self.delayed.look_again()

    # -- a commit

    def plan(self, changes: QueueChanges) -> Plan:
        """Work out what these changes, and the hosts that came and went, write."""
        plan = Plan(changes, self.marks)
        plan.moves, plan.spent = dict(self._moves), list(self.rotation.spent)
        for lane, places in self._flights.places(changes.ended).items():
            ending = plan.ended.get(lane.entry.name)
            if ending is None:
                ending = plan.ended[lane.entry.name] = HostEnding(lane.entry)
            ending.places[lane] = places
        for ending in plan.ended.values():
            ending.decide()
        plan.rotated = [name for name, (why, _) in plan.moves.items() if why is HostLeaving.TURN]
        held, waiting, known = self._held, self.rotation.waiting, set(plan.rotated)
        for name, _ in changes.pushed:
            if name not in held and name not in known and name not in waiting:
                known.add(name)
                plan.rotated.append(name)
        return plan

    def write(self, plan: Plan, batch: Batch) -> None:
        """Put the plan into a batch; the plan's marks then stand behind what was written."""
        self._write_moves(plan, batch)
        changes, marks = plan.changes, plan.marks
        ended = {url: n for url, n in changes.ended.items() if url in self._requesting} if self._requesting else {}
        if changes.requests or ended or changes.begun:
            self.requests.write(changes.requests, ended, changes.begun, batch)
        for ending in plan.ended.values():
            host = ending.entry.key
            batch.put("hosts", host + layout.CURSOR, layout.pack_cursors(ending.cursors))
            for lane, chunks in ending.chunks.items():
                for serial in chunks:
                    batch.delete("frontier", layout.lane_key(layout.CHUNK + host, lane.level, serial))
        put, host_id = batch.putter("frontier"), self._keys.host
        for (name, level), tasks in changes.pushed.items():
            prefix = layout.CHUNK + host_id(name)
            for chunk in layout.pack(name, tasks):
                put(layout.lane_key(prefix, level, marks.serial), chunk)
                marks.serial += 1
        DelayedTasks.put(changes.delayed, marks.serial, batch)
        marks.serial += len(changes.delayed)
        for key in changes.woken:
            batch.delete("frontier", key)
        for start in range(0, len(plan.rotated), ROTATION_NAMES):
            names = msgspec.msgpack.encode(plan.rotated[start : start + ROTATION_NAMES])
            batch.put("frontier", layout.serial_key(layout.ROTATION, marks.serial), names)
            marks.serial += 1

    def _write_moves(self, plan: Plan, batch: Batch) -> None:
        for key in plan.spent:
            batch.delete("frontier", key)
            if key.startswith(layout.RESTING):
                batch.delete("hosts", key[9:] + layout.RESTING)
        for name, (why, until) in plan.moves.items():
            host = self._keys.host(name)
            batch.change("frontier", layout.HELD + host, name.encode() if why is None else None)
            if why is HostLeaving.REST:
                batch.put("frontier", layout.time_key(layout.RESTING, until, host), name.encode())
                batch.put("hosts", host + layout.RESTING, b"")

    def apply(self, plan: Plan) -> None:
        self.marks = plan.marks
        self._moves.clear()
        resting = [
            layout.time_key(layout.RESTING, until, self._keys.host(name))
            for name, (why, until) in plan.moves.items()
            if why is HostLeaving.REST
        ]
        self.rotation.applied(plan.marks, resting, plan.rotated)
        changes, held = plan.changes, self._held
        for url, count in changes.ended.items():
            if self._flights.land(url, count):
                self._requesting.discard(url)
        self.delayed.applied(changes.delayed, changes.woken)
        for name, level in changes.pushed:
            if name in held:
                entry = held[name]
                entry.pushed(level, plan.first_serial)
                if entry.leaving is HostLeaving.EMPTY:  # it is admitted again
                    entry.leaving = None
                    self._arrivals.append(name)
        for ending in plan.ended.values():
            ending.apply()
            if ending.entry.leaving is not None and not ending.entry.is_flying:
                self._let_go(ending.entry)
