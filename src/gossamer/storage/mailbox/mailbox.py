"""The mailbox of an agent: a bounded queue of what it owes for each recipient, and how recipients get it.

    a kept group ──► the queue of the recipient ──► its sender ──► committed there: forgotten
                          ▲ room, or a start           └── a master that is silent: given back
                     the space of entries

Place in the flow: :mod:`staging` has put entries into the ledger, in the group of the visit that found them. Entries lie under the
host of their task; a *designation* routes a host to its recipient when the entry is taken, so that nothing moves on the disk when
hosts do. By the ring the recipient is an agent. By masters it is whichever of them is not silent; what a silent one was sent is
given back, and the next one takes it. *Mail* is what a master has given to an agent that was away then: it lies in a space of its
own with the name of that agent, and goes there directly.

What a kept group owes goes straight into the queue of its recipient. Entries that find no room there are read from the space
when the queue has run dry; so is everything after a start. Each recipient has a mark of its own in the space, and its entries are
read round and round: a search that begins at the front each time would step over all that was deleted there.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple

from gossamer.engine.sheet import setting
from gossamer.storage.contract import MAIL, OWED
from gossamer.storage.ledger.contract import Group
from gossamer.storage.mailbox.contract import MAIL_TO, MASTERS, OwedTask
from gossamer.storage.mailbox.staging import OwingSheet, StagesOwed, count_owed, mailed, owed_key, owed_task
from gossamer.values.agents import CLAIM
from gossamer.values.errors import DiskFull
from gossamer.values.task import Task

# Mail on its way, and agents that are silent.


class _Sent(NamedTuple):
    recipient: str
    since: float
    owed: list[Any]


class OnWay:
    """Entries that recipients have not acknowledged. A recipient falls silent when it acknowledges nothing for long."""

    def __init__(self) -> None:
        self._sent: dict[int, _Sent] = {}

    def __bool__(self) -> bool:
        return bool(self._sent)

    def send(self, recipient: str, owed: Sequence[Any], now: float) -> None:
        """A recipient was sent this sequence, which :meth:`arrived` knows again by its identity."""
        self._sent[id(owed)] = _Sent(recipient, now, list(owed))

    def arrived(self, owed: Sequence[Any], now: float) -> tuple[str, list[Any]]:
        """It has arrived: the recipient, and what was not given back of it; no recipient where nothing is known of it.

        What the recipient was sent later has waited for this, so that its time begins now.
        """
        sent = self._sent.pop(id(owed), None)
        if sent is None:
            return "", []
        for key, other in self._sent.items():
            if other.recipient == sent.recipient:
                self._sent[key] = other._replace(since=now)
        return sent.recipient, sent.owed

    def late(self, before: float) -> set[str]:
        """The recipients that were sent something before this instant and have acknowledged nothing since."""
        return {one.recipient for one in self._sent.values() if one.since <= before}

    def given_back(self, recipient: str) -> list[Any]:
        """Everything that is on its way to a recipient, in order, once. Its acknowledgement may still come."""
        found: list[Any] = []
        for one in self._sent.values():
            if one.recipient == recipient:
                found += one.owed
                one.owed.clear()
        return found

    @property
    def oldest(self) -> float | None:
        """Since when the recipient that is latest has acknowledged nothing."""
        return min((one.since for one in self._sent.values()), default=None)

    def __len__(self) -> int:
        return sum(len(one.owed) for one in self._sent.values())


#: Entries that wait in memory for one recipient: some seconds of what two busy agents find for each other, about 5 MB.
WAITING = 8_192

#: Entries of the space that are read in one turn of the event loop: about 10 ms.
STRETCH = 2_000

#: Seconds between two looks at whether a checkpoint of all agents is made, and at which master is silent.
_HELD, _LOOK = 0.05, 0.5

#: Seconds that a claim waits for others, or for URLs, to travel with: every batch costs both agents a group of their ledgers.
_LINGER = 0.5


class MailboxSheet(OwingSheet, frozen=True):
    waiting: Annotated[
        int,
        setting("Hold at most this many URLs for one agent in memory; the rest wait on the disk.", unit="URLs", ge=1),
    ] = WAITING
    holds: Annotated[
        bool,
        setting("Send nothing and forget nothing. The supervisor sets this while it makes a checkpoint of all agents."),
    ] = False
    masters: Annotated[
        tuple[str, ...],
        setting("Send to the first of these masters that is not silent.", restart="each has a sender of its own"),
    ] = ()
    patience: Annotated[
        float,
        setting("Count a master as silent if it has acknowledged none of its URLs for this time.", unit="s", gt=0),
    ] = 5.0
    others: Annotated[
        tuple[str, ...], setting("Send mail of masters to these agents.", restart="each has a sender of its own")
    ] = ()


class Mailbox(StagesOwed[MailboxSheet]):
    """Holds what one agent owes the others. Contracts: `OwesUrls`, `Owing`."""

    def __init__(self, sheet: MailboxSheet | None = None) -> None:
        super().__init__(sheet)
        self._boxes: defaultdict[str, _Box] = defaultdict(_Box)
        self._done: list[OwedTask] = []
        self._way = OnWay()
        """Entries of masters; another agent that does not answer is waited for."""
        self._silent: set[str] = set()
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        for space in (OWED, MAIL):
            self.ledger.spaces.open(space)
        if self._has_mail:  # a master is asked once more whose the mail of agents is that are there no more
            mail = (mailed(value) for _, value in self.ledger.spaces.walk(MAIL))
            gone = [(agent, task) for agent, task in mail if agent not in self.sheet.others]
            for start in range(0, len(gone), STRETCH):
                with self.ledger.group() as group:
                    for agent, task in gone[start : start + STRETCH]:
                        one = OwedTask(MAIL_TO + agent, task, agent, owed_key(task))
                        group.delete(MAIL, task.host, one.key)
                        count_owed(one, group, -1)
                    self.owe([task for _, task in gone[start : start + STRETCH]], group)
        self.metrics.gauge("owed", lambda: self.ledger.counters().get("owed", 0))
        self.metrics.gauge("waiting", lambda: sum(len(box.queue) for box in self._boxes.values()))
        self.metrics.gauge("silent", lambda: len(self._silent))
        if self.sheet.masters:
            self._looking = asyncio.create_task(self._look_on())

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        self._forget()

    @property
    def _has_mail(self) -> bool:
        return self.ledger.counters().get("mail", 0) > 0

    # -- groups

    def kept(self, owed: Sequence[OwedTask], *, is_sure: bool = True) -> None:
        for one in owed:
            box = self._boxes[one.recipient]
            if is_sure and len(box.queue) < self.sheet.waiting:
                is_claim = one.task.relation == CLAIM
                if is_claim and not box.queue:
                    box.due = self.clock.monotonic() + _LINGER
                elif not is_claim:
                    box.due = 0.0
                box.add(one)
                if is_claim and len(box.queue) > 1:
                    continue  # its sender knows of the queue, and of when it is due
            else:
                box.known.pop(one.key, None)
                box.begin()
            box.more.set()

    def taken_back(self, tasks: Sequence[Task], group: Group) -> list[Task]:
        """Owe those of some tasks no more that are owed, in this group, since they are ours; returns these."""
        back = []
        for task in tasks:
            key = owed_key(task)
            if group.get(OWED, task.host, key) is not None:
                group.delete(OWED, task.host, key)
                count_owed(OwedTask("", task), group, -1)
                # A sender may have it on its way: when it is delivered, the space says that nothing is left to forget.
                for box in self._boxes.values():
                    box.known.pop(key, None)
                back.append(task)
        return back

    # -- senders

    async def take(self, recipient: str, most: int) -> Sequence[OwedTask]:
        is_master = recipient in self.sheet.masters
        box = self._boxes[MASTERS if is_master else recipient]
        while True:
            if self.sheet.holds:
                await self.clock.sleep(_HELD)
                continue
            self._forget()
            if not box.queue and not box.is_over:
                self._read(MASTERS if is_master else recipient, box)
                await asyncio.sleep(0)
                continue
            if is_master and recipient != self._turn():
                await box.waited()
                continue
            wait = box.due - self.clock.monotonic() if box.queue and len(box.queue) < most else 0.0
            if wait > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await box.waited()
                continue
            if box.queue:
                owed = [box.queue.popleft() for _ in range(min(most, len(box.queue)))]
                if is_master:
                    self._way.send(recipient, owed, self.clock.monotonic())
                return owed
            await box.waited()

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        self._done += owed
        recipient, _ = self._way.arrived(owed, self.clock.monotonic())
        if recipient in self._silent:
            self._silent.discard(recipient)
            self._boxes[MASTERS].more.set()
        for name in {one.recipient for one in owed}:
            self._boxes[name].more.set()

    def _forget(self) -> None:
        """Take what was delivered out of the space. While the disk is full it stays, and is sent once more by a later process."""
        if self.sheet.holds or not self._done:
            return
        done, self._done = list({(one.key, one.value): one for one in self._done}.values()), []
        gone = []
        try:
            with self.ledger.group() as group:
                for one in done:
                    # A look into memory spares one at the disk: memory knows the last value owed.
                    is_last = self._boxes[one.recipient].known.get(one.key) == one.value
                    space = MAIL if one.agent else OWED
                    if is_last or group.get(space, one.task.host, one.key) == one.value:
                        group.delete(space, one.task.host, one.key)
                        count_owed(one, group, -1)
                        gone.append(one)
                self.let_go(gone, group)
        except DiskFull:
            self._done = done + self._done
            return
        for one in done:
            known = self._boxes[one.recipient].known
            if known.get(one.key) == one.value:
                del known[one.key]

    def let_go(self, owed: Sequence[OwedTask], group: Group) -> None:
        """Called in the group in which delivered entries leave the space: for heirs that keep them in another way."""

    @property
    def owes(self) -> bool:
        return self.ledger.counters().get("owed", 0) > 0

    def _read(self, recipient: str, box: "_Box") -> None:
        """Read a stretch of the space for one recipient: until its queue is full, or the stretch is long enough for one turn."""
        is_mail = recipient.startswith(MAIL_TO)
        if is_mail and not self._has_mail:
            box.is_over = True
            return
        for number, (mark, value) in enumerate(self.ledger.spaces.walk(MAIL if is_mail else OWED, box.mark)):
            if number == STRETCH or len(box.queue) >= self.sheet.waiting:
                return
            if box.is_wrapped and mark > box.start:
                box.is_over = True
                return
            box.mark = mark
            agent, task = mailed(value) if is_mail else ("", owed_task(value))
            # Where masters say whose a host is, one may have become ours since, and only a master sends its URLs back to us.
            is_due = (
                MAIL_TO + agent == recipient
                if is_mail
                else self.designation.owner(task.host) in (recipient, self.sheet.agent)
            )
            if is_due and box.known.get(key := owed_key(task)) != value:
                box.due = 0.0
                box.add(OwedTask(recipient, task, agent, key, value))
        box.is_over = box.is_wrapped or not box.start
        box.mark, box.is_wrapped = b"", True

    # -- masters

    def _turn(self) -> str:
        """The first master that is not silent; where all are, the first one, which is waited for."""
        masters = self.sheet.masters
        return next((one for one in masters if one not in self._silent), masters[0])

    async def _look_on(self) -> None:
        while True:
            await self.clock.sleep(_LOOK)
            late = self._way.late(self.clock.monotonic() - self.sheet.patience) - self._silent
            if not late or not set(self.sheet.masters) - self._silent - late:
                continue
            self._silent |= late
            box = self._boxes[MASTERS]
            for master in late:
                self.metrics.count("fell_silent")
                self.report(f"{master} is silent, so {self._turn()} gets what it was sent")
                box.queue.extendleft(reversed(self._way.given_back(master)))
            box.due = 0.0
            box.more.set()


class _Box:
    """The entries that wait in memory for one recipient, and how far its space was read for it, round and round."""

    def __init__(self) -> None:
        self.queue: deque[OwedTask] = deque()
        self.more = asyncio.Event()
        self.known: dict[bytes, bytes] = {}
        """Key and value of what waits in memory or is on its way."""
        self.due = 0.0
        """When the queue is to be sent at the latest, by the monotonic clock: 0 at once."""
        self.mark = b""
        self.begin()

    def begin(self) -> None:
        """A round begins here: the space may have what the queue has not, before this place and behind it."""
        self.start = self.mark
        self.is_wrapped = False
        """The end of the space was reached in this round."""
        self.is_over = False
        """The queue had room for all that the space has."""

    def add(self, one: OwedTask) -> None:
        self.known[one.key] = one.value
        self.queue.append(one)

    async def waited(self) -> None:
        """Wait until something changes. The caller looks again: others may have waited for the same."""
        self.more.clear()
        await self.more.wait()
