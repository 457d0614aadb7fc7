"""The outbox of an agent: a ledger that owes tasks of others, a space where they lie, and a bounded queue for each other agent.

    commit, frontier ── push ──► `divided-ledger` ──► the ledger's queues, where the host is ours
                                        └───────────► the outbox, where it is another agent's

Place in the flow: the wiring of an agent among several puts the `divided-ledger` between the stages and the ledger; no stage
knows of it. An owed URL is seen here like any other, so that a link is sent once, however often it is met.

URLs that a kept group owes go straight into the queue of their agent. Those that find no room there are read from the space
when the queue has run dry; so is everything after a start. Each agent has a mark of its own in the space, and its entries are
read round and round: a search that begins at the front each time would step over all that was deleted there.
:mod:`exchange_files` stages in the same form, and sends by files.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Annotated, Any, cast

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import OWED
from gossamer.storage.ledger.contract import Group, Ledger, Tallied
from gossamer.storage.ledger.providers import LedgerFront
from gossamer.storage.mailbox.contract import Designation, OwedTask, OwesUrls
from gossamer.values.agents import CLAIM, agent_name
from gossamer.values.errors import DiskFull
from gossamer.values.ledger_rows import Meeting
from gossamer.values.task import Task

#: Bytes of a key. It is no secret's hash, so that it must be too long for anybody to find two URLs with the same one.
_KEY_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Task).decode


def stage_owed(tasks: Sequence[Task], designation: Designation, group: Group) -> list[OwedTask]:
    """Stage tasks of other agents' hosts; what has no room is counted as `cut:owed`. Returns what was staged."""
    owed: list[OwedTask] = []
    for task in tasks:
        one = OwedTask(designation.owner(task.host), task, owed_key(task), _encode(task))
        is_new = group.get(OWED, task.host, one.key) is None
        if group.put(OWED, task.host, one.key, one.value):
            group.count("owed", is_new)
            group.count("owed_claims", is_new and task.relation == CLAIM)
            owed.append(one)
        else:
            group.count("cut:owed")
    return owed


def owed_key(task: Task) -> bytes:
    """The key of a task in the spaces of what is owed, under its host."""
    return blake2b(task.identity.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def owed_task(value: bytes) -> Task:
    """The task of an entry."""
    return _decode(value)


class _Dividing:
    """A group that owes what is not ours. Everything else is the group's own."""

    def __init__(self, group: Group, outbox: OwesUrls, owed: list[OwedTask]) -> None:
        """A group that puts what it owes into `owed` too."""
        self._group = group
        self._outbox = outbox
        self._owed = owed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks of our hosts, and owe the others; these are discovered where they are committed."""
        ours: list[Task] = []
        others: list[Task] = []
        known: dict[str, bool] = {}
        for task in tasks:
            is_ours = known.get(task.host)
            if is_ours is None:
                is_ours = known[task.host] = self._outbox.is_ours(task.host)
            (ours if is_ours else others).append(task)
        self._group.push(ours)
        if others:
            self._owed += self._outbox.owe(others, self._group)

    def meet(self, tasks: Iterable[Task]) -> Meeting:
        """Check and put with depths. A nearer way to another agent's URL is told to that agent, which knows what lies behind it."""
        meeting = self._group.meet(tasks)
        others = [task for task in meeting.nearer if not self._outbox.is_ours(task.host)]
        if others:
            self._owed += self._outbox.owe(others, self._group)
            meeting = Meeting(meeting.new, [task for task in meeting.nearer if self._outbox.is_ours(task.host)])
        return meeting

    def tally(self, what: Tallied, name: str, add: int = 0) -> int:
        """Add to a tally. Another agent keeps the tallies of its hosts: here they are never the first, and never many."""
        return self._group.tally(what, name, add) if self._outbox.is_ours(name) else 2 * add


class DividedLedger(LedgerFront):
    """Passes everything on to the ledger, except the tasks that its groups push. Contract: `Ledger`."""

    outbox: Uses[OwesUrls]

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger; what it owes is told to the outbox when it is kept."""
        owed: list[OwedTask] = []
        try:
            with self.behind.group() as group:
                yield cast(Group, _Dividing(group, self.outbox, owed))
        except BaseException:
            # A write that failed may have reached the disk yet: then the outbox finds it there.
            self.outbox.kept(owed, is_sure=False)
            raise
        self.outbox.kept(owed)


#: URLs that wait in memory for one agent: some seconds of what two busy agents find for each other, about 5 MB.
WAITING = 8_192

#: Entries of the space that are read in one turn of the event loop: about 10 ms.
STRETCH = 2_000

#: Seconds between two looks at whether a checkpoint of all agents is made.
_HELD = 0.05

#: Seconds that a claim waits for others, or for URLs, to travel with: every batch costs both agents a group of their ledgers.
_LINGER = 0.5


class AgentOutboxSheet(Sheet, frozen=True):
    """Settings of :class:`AgentOutbox`."""

    agent: Annotated[
        str, setting("Name of this agent; URLs of its own hosts stay here.", restart="it names this agent")
    ] = agent_name(0)
    waiting: Annotated[
        int,
        setting("Hold at most this many URLs for one agent in memory; the rest wait on the disk.", unit="URLs", ge=1),
    ] = WAITING
    holds: Annotated[
        bool,
        setting("Send nothing and forget nothing. The supervisor sets this while it makes a checkpoint of all agents."),
    ] = False


class AgentOutbox(Provider[AgentOutboxSheet]):
    """Holds the URLs that one agent owes the others. Contracts: `Outbox`, `TakesBack`."""

    ledger: Uses[Ledger]
    designation: Uses[Designation]
    keeps_state = True

    def __init__(self, sheet: AgentOutboxSheet | None = None) -> None:
        super().__init__(sheet)
        self._queues: defaultdict[str, deque[OwedTask]] = defaultdict(deque)
        self._more: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._known: dict[bytes, bytes] = {}
        """Key and value of what waits in memory or is on its way."""
        self._readings: defaultdict[str, _Reading] = defaultdict(_Reading)
        self._done: list[OwedTask] = []
        self._due: defaultdict[str, float] = defaultdict(float)
        """When the queue of an agent is to be sent at the latest, by the monotonic clock: 0 at once."""

    async def start(self) -> None:
        """Go on with what an earlier process has left."""
        self.ledger.spaces.open(OWED)
        self.metrics.gauge("owed", lambda: self.ledger.counters().get("owed", 0))
        self.metrics.gauge("waiting", lambda: sum(map(len, self._queues.values())))

    async def stop(self) -> None:
        """Forget what was delivered last."""
        self._forget()

    def is_ours(self, host: str) -> bool:
        """Whether the URLs of a host stay with this agent."""
        return self.designation.owner(host) == self.sheet.agent

    # -- groups

    def owe(self, tasks: Sequence[Task], group: Group) -> Sequence[OwedTask]:
        """Stage tasks of other agents' hosts. Returns what is to be given to `kept`."""
        return stage_owed(tasks, self.designation, group)

    def kept(self, owed: Sequence[OwedTask], *, is_sure: bool = True) -> None:
        """Their group is kept, or may have been if that is uncertain."""
        for one in owed:
            queue = self._queues[one.agent]
            if is_sure and len(queue) < self.sheet.waiting:
                is_claim = one.task.relation == CLAIM
                if is_claim and not queue:
                    self._due[one.agent] = self.clock.monotonic() + _LINGER
                elif not is_claim:
                    self._due[one.agent] = 0.0
                self._queue(one)
                if is_claim and len(queue) > 1:
                    continue  # its sender knows of the queue, and of when it is due
            else:
                self._known.pop(one.key, None)
                self._readings[one.agent].begin()
            self._more[one.agent].set()

    def taken_back(self, tasks: Sequence[Task], group: Group) -> list[Task]:
        """Owe those of some tasks no more that are owed, in this group, since they are ours; returns these."""
        back = []
        for task in tasks:
            key = owed_key(task)
            if group.get(OWED, task.host, key) is not None:
                group.delete(OWED, task.host, key)
                group.count("owed", -1)
                # Its sender may have it on its way: when it is delivered, the space says that nothing is left to forget.
                self._known.pop(key, None)
                back.append(task)
        return back

    # -- senders

    async def take(self, agent: str, most: int) -> Sequence[OwedTask]:
        """URLs owed to an agent that were not taken yet, at least one; suspends until there is one."""
        queue, more = self._queues[agent], self._more[agent]
        while True:
            if self.sheet.holds:
                await self.clock.sleep(_HELD)
                continue
            self._forget()
            while not queue and not self._readings[agent].is_over:
                self._read(agent, self._readings[agent])
                await asyncio.sleep(0)
            wait = self._due[agent] - self.clock.monotonic() if queue and len(queue) < most else 0.0
            if wait > 0:
                more.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await more.wait()
                continue
            if queue:
                return [queue.popleft() for _ in range(min(most, len(queue)))]
            more.clear()
            await more.wait()

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """The agent has committed them. Its sender forgets them when it comes again."""
        self._done += owed
        for one in owed:
            self._more[one.agent].set()

    def _forget(self) -> None:
        """Take what was delivered out of the space. While the disk is full it stays, and is sent once more by a later process."""
        if self.sheet.holds:
            return
        done, self._done = list({(one.key, one.value): one for one in self._done}.values()), []
        if not done:
            return
        try:
            with self.ledger.group() as group:
                for one in done:
                    # A look into memory spares one at the disk: what memory knows is what was owed last.
                    is_last = self._known.get(one.key) == one.value
                    if is_last or group.get(OWED, one.task.host, one.key) == one.value:
                        group.delete(OWED, one.task.host, one.key)
                        group.count("owed", -1)
                        group.count("owed_claims", -(one.task.relation == CLAIM))
        except DiskFull:
            self._done = done + self._done
            return
        for one in done:
            if self._known.get(one.key) == one.value:
                del self._known[one.key]

    def _queue(self, one: OwedTask) -> None:
        self._known[one.key] = one.value
        self._queues[one.agent].append(one)

    def _read(self, agent: str, reading: "_Reading") -> None:
        """Read a stretch of the space for one agent: until its queue is full, or the stretch is long enough for one turn."""
        queue, room = self._queues[agent], self.sheet.waiting
        for number, (mark, value) in enumerate(self.ledger.spaces.walk(OWED, reading.mark)):
            if number == STRETCH or len(queue) >= room:
                return
            if reading.is_wrapped and mark > reading.start:
                reading.is_over = True
                return
            reading.mark = mark
            task = owed_task(value)
            # Where masters say whose a host is, one may have become ours since, and only a master sends its URLs back to us.
            is_due = self.designation.owner(task.host) in (agent, self.sheet.agent)
            if is_due and self._known.get(key := owed_key(task)) != value:
                self._due[agent] = 0.0
                self._queue(OwedTask(agent, task, key, value))
        reading.is_over = reading.is_wrapped or not reading.start
        reading.mark, reading.is_wrapped = b"", True


class _Reading:
    """How far the space was read for one agent, round and round."""

    def __init__(self) -> None:
        self.mark = b""
        self.begin()

    def begin(self) -> None:
        """A round begins here: the space may have what the queue has not, before this place and behind it."""
        self.start = self.mark
        self.is_wrapped = False
        """The end of the space was reached in this round."""
        self.is_over = False
        """The queue had room for all that the space has."""
