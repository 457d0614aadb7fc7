"""The mail of a master: tagged URLs that wait for their agents, in memory or on the disk (Hunyadi 2007, section 5.3.3)."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from gossamer.agents.contract import DesignationTable, SharedState
from gossamer.agents.mail_on_disk import MailOnDisk
from gossamer.agents.ring import DivisionSheet
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In, Uses
from gossamer.engine.gate import Receipt, current
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.mailbox.contract import Mail, OwedTask
from gossamer.values.agents import Designated
from gossamer.values.errors import DiskFull
from gossamer.values.hosts import DomainRule, domain_rule

# The mail of a master: what waits for each agent in memory, and on the disk for one that is away (Hunyadi 2007, section 5.3.3).
#
#     marshal ── designated ──► `post` ──► the agent's queue ──► its sender ──► the agent commits: the receipt is released
#                                  └─────► the shared file, where the agent is away: the receipt is released at once
#
# Place in the flow: the mass communicator of a master is a component that posts, this provider, and a sender for each
# agent. A URL is owed by the agent that found it until its receipt is released, so that a master that dies takes nothing
# with it. An agent is away when it has committed nothing of what it was sent for `patience` seconds. Then everything that
# waits for it goes to the disk, so that nobody else waits for it too. The file (:mod:`mail_on_disk`) is shared by all
# masters: the mail of one that is gone is sent by another.


#: URLs that wait in memory for one agent: what a connector takes in two turns, about 5 MB.
WAITING = 8_192

#: Seconds between two looks at who is away.
_LOOK = 0.25

#: Seconds between two times when a master says that it is still there: a small part of its lease.
_RENEWED = 1.0

#: Key and value of mail: it lies in no ledger.
_NOWHERE = b""


class _Posted(OwedTask, frozen=True):
    """One piece of mail: in memory with its receipt, or on the disk under a number."""

    receipt: Receipt | None = None
    row: int = 0


class _Batch(NamedTuple):
    """What one sender has on its way."""

    since: float
    posted: Sequence[_Posted]


class MassMailSheet(DivisionSheet, frozen=True):
    """Settings of :class:`MassMail`."""

    master: Annotated[str, setting("Keep the mail of this master.", restart="it names this master")] = "master-00"
    agents: Annotated[
        tuple[str, ...], setting("Hold mail for these agents.", restart="each has a sender of its own")
    ] = ()
    waiting: Annotated[
        int,
        setting("Hold at most this many URLs for one agent in memory; the others wait on the disk.", unit="URLs", ge=1),
    ] = WAITING
    patience: Annotated[
        float,
        setting("Count an agent as absent if it has committed none of its mail for this time.", unit="s", gt=0),
    ] = 1.0
    holds: Annotated[
        bool,
        setting("Send nothing and forget nothing. The supervisor sets this while it makes a checkpoint of all agents."),
    ] = False


class MassMail(Provider[MassMailSheet]):
    """Holds the URLs that one master sends to agents. Contract: `exchanging.Mail`."""

    shared: Uses[SharedState]
    designations: Uses[DesignationTable]
    keeps_state = True

    def __init__(self, sheet: MassMailSheet | None = None) -> None:
        super().__init__(sheet)
        self._queues: defaultdict[str, deque[_Posted]] = defaultdict(deque)
        self._more: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._sent: defaultdict[str, dict[int, _Batch]] = defaultdict(dict)
        self._away: set[str] = set()
        self._disk = MailOnDisk(lambda: self.shared, self.sheet.master)
        self._looking: asyncio.Task[None] | None = None
        self._renewed = 0.0
        self._rule: DomainRule = domain_rule(self.sheet.division, self.sheet.together)
        self.commits = 0
        """How often mail was delivered, or went to the disk, or from it: a master at rest does none of this."""

    async def start(self) -> None:
        """Take the mail of an earlier process, and of agents that have left.

        Raises:
            CrawlDirectoryError: the shared file cannot be used.
        """
        self._disk.open()
        self._renew()
        await self._redesignate()
        self._find_waiting()
        self.metrics.gauge("waiting", lambda: sum(map(len, self._queues.values())))
        self.metrics.gauge("away", lambda: len(self._away))
        self.metrics.gauge("on_disk", self._disk.count)
        self._looking = asyncio.create_task(self._look_on())

    async def stop(self) -> None:
        """Give the lease back, and forget what was delivered last."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        self._forget()
        self._disk.give_back()

    @property
    def is_empty(self) -> bool:
        """Nothing waits, here or on the disk for any master, and nothing is on its way."""
        is_idle = not any(self._queues.values()) and not any(self._sent.values())
        return is_idle and self._disk.is_empty

    @property
    def waiting(self) -> int:
        """URLs that this master has yet to bring to agents, in memory, on their way, and on the disk."""
        on_way = sum(1 for one in self._all_sent() for piece in one.posted if not piece.row)
        return sum(map(len, self._queues.values())) + on_way + self._disk.waiting

    @property
    def lag(self) -> float:
        """Seconds for which the agent that is latest has not acknowledged what it was sent."""
        now = self.clock.monotonic()
        return max((now - one.since for one in self._all_sent()), default=0.0)

    def _all_sent(self) -> Iterator[_Batch]:
        for batches in self._sent.values():
            yield from batches.values()

    # -- the communicator

    async def post(self, tasks: Sequence[Designated]) -> None:
        """Take tasks for their agents, under the receipt that is current; those of agents that are away are written at once.

        Raises:
            DiskFull: they cannot be written. None was posted.
        """
        receipt = current.get()
        full: list[_Posted] = []
        room = {agent: self.sheet.waiting - len(self._queues[agent]) for agent in {one.agent for one in tasks}}
        fitting: list[_Posted] = []
        for one in tasks:
            posted = _Posted(one.agent, one.task, _NOWHERE, _NOWHERE, receipt)
            # Behind what is on the disk, so that an agent that comes back is not sent new URLs while old ones wait.
            if one.agent in self._away or room[one.agent] <= 0:
                full.append(posted)
            else:
                room[one.agent] -= 1
                fitting.append(posted)
        if full:
            self._write(full)
        if receipt is not None:
            receipt.hold(len(fitting))
        for posted in fitting:
            self._queues[posted.agent].append(posted)
        for agent in room:
            self._more[agent].set()

    # -- senders

    async def take(self, agent: str, most: int) -> Sequence[OwedTask]:
        """What waits for an agent, at least one piece; first from memory, then from the disk."""
        queue, more = self._queues[agent], self._more[agent]
        while True:
            batch: list[_Posted] = []
            if not self.sheet.holds:
                batch = [queue.popleft() for _ in range(min(most, len(queue)))] or self._read(agent, most)
            if batch:
                self._sent[agent][id(batch)] = _Batch(self.clock.monotonic(), batch)
                return batch
            more.clear()
            await more.wait()

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """The agent has committed a batch: its receipts are released, and it is there again if it was away."""
        agent = owed[0].agent
        batch = self._sent[agent].pop(id(owed), None)
        if batch is None:
            return
        self._away.discard(agent)
        self.commits += 1
        now = self.clock.monotonic()
        # The agent goes on: those behind have waited for this one.
        self._sent[agent] = {key: _Batch(now, other.posted) for key, other in self._sent[agent].items()}
        self._disk.delivered(one.row for one in batch.posted if one.row)
        _release(batch.posted)
        if self._disk.may_have(agent):
            self._more[agent].set()

    # -- the disk

    def _write(self, posted: Sequence[_Posted]) -> None:
        self._disk.write((one.agent, one.task) for one in posted)
        self.commits += 1
        self.metrics.count("spilled", len(posted))

    def _read(self, agent: str, most: int) -> list[_Posted]:
        """The next pieces for an agent that are on the disk, and not on their way."""
        if not self._disk.may_have(agent):
            return []
        on_way = {one.row for batch in self._sent[agent].values() for one in batch.posted}
        found = self._disk.read(agent, most, on_way)
        return [_Posted(agent, task, _NOWHERE, _NOWHERE, None, number) for number, task in found]

    def _spill(self, agent: str) -> None:
        """Put what waits for an agent that is away on the disk, and what is on its way: its finder owes it no more then, so that it
        has to arrive as mail.
        """
        queue, sent = self._queues[agent], self._sent[agent]
        for key, batch in list(sent.items()):
            held = [one for one in batch.posted if not one.row]
            if held:
                self._write(held)
                sent[key] = _Batch(batch.since, [one for one in batch.posted if one.row])
                _release(held)
        if queue:
            waiting = list(queue)
            self._write(waiting)
            queue.clear()
            _release(waiting)

    def _forget(self) -> None:
        if not self.sheet.holds and self._disk.forget():
            self.commits += 1

    # -- who is away, and whose lease is over

    async def _look_on(self) -> None:
        while True:
            await self.clock.sleep(_LOOK)
            try:
                self._look()
            except DiskFull:
                self.metrics.count("disk_full")

    def _look(self) -> None:
        now = self.clock.monotonic()
        for agent in {*self._sent, *self._queues}:
            oldest = min((batch.since for batch in self._sent[agent].values()), default=now)
            if now - oldest >= self.sheet.patience and not self.sheet.holds:
                if agent not in self._away:
                    self._away.add(agent)
                    self.metrics.count("went_away")
                self._spill(agent)
        self._forget()
        if not self.sheet.holds:
            for more in self._more.values():
                more.set()
        if now - self._renewed >= _RENEWED:
            self._renewed = now
            self._renew()

    def _renew(self) -> None:
        """Say that this master is at work, and take the mail of those that have not said so for too long."""
        gone = self._disk.renew(self.clock.now())
        if gone:
            self.commits += 1
            self.metrics.count("taken_over", gone)
            self._find_waiting()

    def _find_waiting(self) -> None:
        for agent in self._disk.find_waiting():
            self._more[agent].set()

    async def _redesignate(self) -> None:
        """Give the mail of agents that have left to those that have their domains now."""
        while pieces := self._disk.of_others(self.sheet.agents):
            given = await self.designations.designate([self._rule.assignable(host) for _, host in pieces])
            self._disk.redirect([(agent, number) for agent, (number, _) in zip(given, pieces, strict=True)])
            self.metrics.count("redesignated", len(pieces))


def _release(posted: Sequence[_Posted]) -> None:
    for one in posted:
        if one.receipt is not None:
            one.receipt.release()


# The mass communicator of a master: it posts tagged URLs to agents (Hunyadi 2007, section 5.3.3).
#
# Place in the flow: the end of a master's graph. All agents send into one connector, which the marshaler reads. Tagged URLs
# end here: each goes into the mail of its agent (:mod:`gossamer.agents.mail`), and the sender of that agent
# (:mod:`gossamer.agents.url_exchange`) takes it from there.


class MassCommunicatorSheet(Sheet, frozen=True):
    """Settings of :class:`MassCommunicator`."""

    disk_wait: Annotated[float, setting("Wait this long before trying a full disk again.", unit="s", gt=0)] = 1.0


class MassCommunicator(Consumer[MassCommunicatorSheet]):
    """Posts each URL to the agent that it is tagged with."""

    inbox: In[Designated]
    mail: Uses[Mail]

    #: As many as the marshaler passes on at once.
    batch = 512

    async def consume_many(self, tasks: list[Designated]) -> None:
        """Post them. While the disk is full this waits, and so do the agents that have sent them."""
        while True:
            try:
                await self.mail.post(tasks)
            except DiskFull:
                self.metrics.count("disk_full")
                await self.clock.sleep(self.sheet.disk_wait)
            else:
                self.metrics.count("posted", len(tasks))
                return
