"""The mail of a master: tagged URLs that wait for their agents, in memory or with another agent (Hunyadi 2007, section 5.3.3).

    marshal ── designated ──► `post` ──► the agent's queue ──► its sender ──► the agent commits: the receipt is released
                                  └────► another agent's, where it is away ──► that one commits it into its mailbox: likewise

Place in the flow: the end of a master's graph. All agents send into one connector, which the marshaler reads. Its tagged URLs are
posted here, and a sender for each agent (:mod:`gossamer.agents.url_exchange`) takes them.

A URL is owed by the agent that found it until its receipt is released, so that a master that dies takes nothing with it: its memory
is a buffer. An agent is away when it has committed nothing of what it was sent for `patience` seconds. Then everything that waits
for it goes to an agent that is there, as *mail*: that one keeps it in its mailbox with the name of the agent that is to have it,
and brings it there (:mod:`gossamer.storage.mailbox.mailbox`). So no other agent waits for one that is away, nothing waits on the
disk of a master, and masters share none.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Annotated

from gossamer.agents.contract import DesignationTable, SharedState
from gossamer.agents.ring import DivisionSheet
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In, Uses
from gossamer.engine.gate import Receipt, current
from gossamer.engine.sheet import NoSettings, setting
from gossamer.engine.unit import Provider
from gossamer.storage.mailbox.contract import MAIL_TO, OwedTask
from gossamer.storage.mailbox.mailbox import WAITING, OnWay
from gossamer.storage.mailbox.shared_state import count_older_mail, forget_older_mail, older_mail
from gossamer.values.agents import Designated
from gossamer.values.hosts import DomainRule, domain_rule

#: Seconds between two looks at who is away.
_LOOK = 0.25


class _Posted(OwedTask, frozen=True):
    """One URL that waits for its agent, with its receipt."""

    receipt: Receipt | None = None


class MassMailSheet(DivisionSheet, frozen=True):
    agents: Annotated[
        tuple[str, ...], setting("Hold mail for these agents.", restart="each has a sender of its own")
    ] = ()
    waiting: Annotated[
        int,
        setting(
            "Hold at most this many URLs for one agent in memory; other agents keep the rest for it.", unit="URLs", ge=1
        ),
    ] = WAITING
    patience: Annotated[
        float, setting("Count an agent as absent if it has committed none of its mail for this time.", unit="s", gt=0)
    ] = 1.0
    holds: Annotated[
        bool,
        setting("Send nothing and forget nothing. The supervisor sets this while it makes a checkpoint of all agents."),
    ] = False


class MassMail(Provider[MassMailSheet]):
    """Holds the URLs that one master sends to agents. Contract: `Owing`."""

    shared: Uses[SharedState]
    designations: Uses[DesignationTable]
    keeps_state = True

    def __init__(self, sheet: MassMailSheet | None = None) -> None:
        super().__init__(sheet)
        self._queues: defaultdict[str, deque[_Posted]] = defaultdict(deque)
        self._more: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._way = OnWay()
        self._away: set[str] = set()
        self._room = asyncio.Event()
        """Set where a queue may have room again."""
        self._tasks: list[asyncio.Task[None]] = []
        self._has_older = False
        """Mail lies on the disk that an older version has put there."""
        self._rule: DomainRule = domain_rule(self.sheet.division, self.sheet.together)
        self.commits = 0
        """How often mail was delivered: a master at rest delivers none."""

    async def start(self) -> None:
        """Begin to look who is away. Raises CrawlDirectoryError: the shared file cannot be used."""
        self.metrics.gauge("waiting", lambda: sum(map(len, self._queues.values())))
        self.metrics.gauge("away", lambda: len(self._away))
        self._has_older = count_older_mail(self.shared.reading) > 0
        self._tasks = [asyncio.create_task(self._look_on())]
        if self._has_older:
            self._tasks.append(asyncio.create_task(self._send_older()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_empty(self) -> bool:
        return not any(self._queues.values()) and not self._way and not self._has_older

    @property
    def waiting(self) -> int:
        """URLs that this master has yet to bring to agents, in memory and on their way."""
        older = count_older_mail(self.shared.reading) if self._has_older else 0
        return sum(map(len, self._queues.values())) + len(self._way) + older

    @property
    def lag(self) -> float:
        """Seconds for which the agent that is latest has not acknowledged what it was sent."""
        oldest = self._way.oldest
        return 0.0 if oldest is None else self.clock.monotonic() - oldest

    # -- the communicator

    async def post(self, tasks: Sequence[Designated], *, is_mail: bool = False) -> None:
        """Take tasks for their agents, under the receipt that is current. Waits while neither they nor others have room. No finder
        owes those that are mail: their agents have to look whether they have them."""
        receipt = current.get()
        if receipt is not None:
            receipt.hold(len(tasks))
        touched: set[str] = set()
        for one in tasks:
            while not (recipient := self._recipient(one.agent, is_mail=is_mail)):
                self._wake(touched)
                self._room.clear()
                await self._room.wait()
            self._queues[recipient].append(_Posted(recipient, one.task, one.agent, receipt=receipt))
            touched.add(recipient)
        self._wake(touched)

    def _recipient(self, agent: str, *, is_mail: bool) -> str:
        """The agent that takes entries for one: that one itself, or one that is there as mail; empty where none has room."""
        own = MAIL_TO + agent if is_mail else agent
        if agent not in self._away and len(self._queues[own]) < self.sheet.waiting:
            return own
        there = [MAIL_TO + one for one in self.sheet.agents if one != agent and one not in self._away]
        other = min(there, key=lambda name: len(self._queues[name]), default="")
        if not other or len(self._queues[other]) >= self.sheet.waiting:
            return ""
        self.metrics.count("spilled")
        return other

    def _wake(self, recipients: Iterable[str]) -> None:
        for recipient in recipients:
            self._more[recipient].set()

    # -- senders

    async def take(self, recipient: str, most: int) -> Sequence[OwedTask]:
        """Entries that wait for an agent, or for others with it, at least one URL."""
        queue, more = self._queues[recipient], self._more[recipient]
        while not queue or self.sheet.holds:
            more.clear()
            await more.wait()
        batch = [queue.popleft() for _ in range(min(most, len(queue)))]
        self._way.send(recipient, batch, self.clock.monotonic())
        self._room.set()
        return batch

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """An agent has committed a batch: its receipts are released, and it is there again if it was away."""
        recipient, arrived = self._way.arrived(owed, self.clock.monotonic())
        if recipient:
            self._away.discard(recipient.removeprefix(MAIL_TO))
            self.commits += 1
            self._room.set()
            for one in arrived:
                if one.receipt is not None:
                    one.receipt.release()

    # -- who is away

    async def _look_on(self) -> None:
        """See who is away. Mail for those goes to others as far as these have room, and so does mail on its way: it may
        never arrive."""
        while True:
            await self.clock.sleep(_LOOK)
            if self.sheet.holds:
                continue
            for name in self._way.late(self.clock.monotonic() - self.sheet.patience):
                agent = name.removeprefix(MAIL_TO)
                if agent not in self._away:
                    self._away.add(agent)
                    self.metrics.count("went_away")
            for name in [name for agent in self._away for name in (agent, MAIL_TO + agent)]:
                queue = self._queues[name]
                queue.extendleft(reversed(self._way.given_back(name)))
                while queue and (recipient := self._recipient(queue[0].agent, is_mail=name.startswith(MAIL_TO))):
                    one = queue.popleft()
                    self._queues[recipient].append(_Posted(recipient, one.task, one.agent, receipt=one.receipt))
            self._wake(self._more)

    # -- mail of an older version

    async def _send_older(self) -> None:
        """Send what masters of an older version have put on the disk for agents that were away. A second reading does no harm."""
        mark = 0
        while lot := older_mail(self.shared.reading, mark):
            mark = lot[-1].number
            gone = [one for one in lot if one.agent not in self.sheet.agents]
            given = await self.designations.designate([self._rule.assignable(one.task.host) for one in gone])
            now = dict(zip((one.number for one in gone), given, strict=True))
            arrived = asyncio.Event()
            receipt = Receipt(arrived.set)
            token = current.set(receipt)
            try:
                await self.post([Designated(now.get(one.number, one.agent), one.task) for one in lot], is_mail=True)
            finally:
                current.reset(token)
            receipt.release()
            await arrived.wait()
            while self.sheet.holds:
                await self.clock.sleep(_LOOK)
            with self.shared.writing() as connection:
                forget_older_mail(connection, [one.number for one in lot])
        self._has_older = False


class MassCommunicator(Consumer[NoSettings]):
    """The mass communicator of a master: it posts each URL to the agent that it is tagged with."""

    inbox: In[Designated]
    mail: Uses[MassMail]

    #: As many as the marshaler passes on at once.
    batch = 512

    async def consume_many(self, tasks: list[Designated]) -> None:
        await self.mail.post(tasks)
        self.metrics.count("posted", len(tasks))
