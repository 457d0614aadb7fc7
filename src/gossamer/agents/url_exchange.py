"""URLs travel between agents: one end takes them from the mailbox, the other commits them before they are acknowledged.

Place in the flow: both ends of the arrows between agents, and beside the ring of the crawl. A sender takes what its recipient is
owed in batches; a batch has a receipt of its own, which the connector holds until the other side has committed it. An agent has a
sender for each other agent, or for each master, and a master has one for each agent.

What arrives is kept by the commit's own rules (:mod:`gossamer.storage.commit.queueing`); the frontier hears that there may be
work. The other agent forgets a URL when the group that has it is kept here; one that comes twice is known by then. Orders of
processors about our hosts come the same way, and so do claims of documents whose digests are ours. Where masters give domains to
agents, URLs come from them, and among them may be some that this agent has found itself. Mail comes by an arrow of its own: its
finder is not known any more, so that a URL is queued where the agent has no task of it; and mail for another agent is passed on.

Where agents are not connected, URLs come in files: :mod:`gossamer.agents.merging` gives them to :class:`UrlIntake`.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, cast

import msgspec

from gossamer.agents.ring import HeldDomains
from gossamer.engine.component import AsynchronousFilter, Filter, Producer
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.gate import Receipt, current
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.expressions.contract import TaskFilter
from gossamer.frontier.contract import Prioritizer, Traversal
from gossamer.storage.archive.contract import ClaimTaker, OrderTaker
from gossamer.storage.commit.commit_stage import is_full
from gossamer.storage.commit.queueing import Choosers, CommitSheet, TaskQueueing
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.mailbox.contract import MAIL_TO, OwedTask, Owing, Owner
from gossamer.storage.mailbox.mailbox import Mailbox
from gossamer.storage.mailbox.staging import DividingGroup
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.agents import CLAIM, Designated, fault_of, named
from gossamer.values.task import Arrived, Task
from gossamer.values.visit import ORDER

#: URLs that are taken from the mailbox at once: a frame of the connector has as many.
BATCH = 1_000

#: Seconds between two batches of which the first was not full, at the beginning and at most. The first URL after a while goes at
#: once. The longer URLs come without end, the more of them travel together: every batch costs both agents a frame, an
#: acknowledgement and a group of their ledgers.
PAUSE, LONGEST_PAUSE = 0.05, 0.4


class SendUrlsSheet(Sheet, frozen=True):
    """Settings of :class:`SendUrls` and :class:`SendMail`."""

    agent: Annotated[str, setting("Send URLs to this agent.", restart="its connector leads to one agent")] = ""


class _Sends(Producer[SendUrlsSheet]):
    """Sends one other process the mail that waits for it. Mail on its way when the crawl ends stays owed, and is sent again."""

    owed: Uses[Owing]

    async def _taken(self, recipient: str) -> AsyncIterator[OwedTask]:
        """The URLs that are owed, for ever, each batch under a receipt of its own."""
        pause, now = PAUSE, self.clock.monotonic
        while not self.drained:
            asked = now()
            batch = await self.owed.take(recipient, BATCH)
            pause = min(2 * pause, LONGEST_PAUSE) if now() - asked < PAUSE else PAUSE
            receipt = Receipt(partial(self.owed.delivered, batch))
            token = current.set(receipt)
            try:
                for one in batch:
                    yield one
            finally:
                current.reset(token)
            receipt.release()
            if len(batch) < BATCH:
                await self.clock.sleep(pause)


class SendUrls(_Sends):
    """Sends one other agent, or a master, the URLs that wait for it in the mailbox."""

    outbox: Out[Task]

    async def produce(self) -> AsyncIterator[Task]:
        """The tasks alone: their taker has their hosts, or asks whose they are."""
        async for one in self._taken(self.sheet.agent):
            yield one.task


class SendMail(_Sends):
    """Sends one other agent the mail of masters: its own, and what it is to keep for those that are away."""

    outbox: Out[Designated]

    async def produce(self) -> AsyncIterator[Designated]:
        async for one in self._taken(MAIL_TO + self.sheet.agent):
            yield Designated(one.agent, one.task)


class OtherAgent(AsynchronousFilter[NoSettings]):
    """Stands for another agent, or a master, in the wiring of this one: it takes URLs and mail of its own, and sends ours.

    The other agent is a process of its own with its own wiring. This class is never run: it declares the types of the
    items that pass between the two.
    """

    urls: In[Task]
    found: Out[Task]
    mail: In[Designated]
    kept: Out[Designated]

    optional = frozenset({"urls", "found", "mail", "kept"})

    def _never_run(self, given: object) -> list[Any]:
        raise NotImplementedError("another agent is a process of its own")

    on_urls = on_mail = take_found = take_kept = _never_run


#: Refused URLs of one run that are told one by one: more of them is one fault of another agent, and the summary has their number.
_MOST_TOLD = 10


class _Receives(Filter[CommitSheet]):
    """Commits what comes from other agents and from masters."""

    outbox: Out[Arrived]
    ledger: Uses[Ledger]
    seen: Uses[SeenSet]
    traversal: Uses[Traversal]
    prioritizer: Uses[Prioritizer]
    task_gates: UsesMany[TaskFilter]
    orders: UsesMany[OrderTaker] = MappingProxyType({})
    claims: UsesMany[ClaimTaker] = MappingProxyType({})
    held: UsesMany[HeldDomains] = MappingProxyType({})
    mailbox: UsesMany[Mailbox] = MappingProxyType({})
    owners: UsesMany[Owner] = MappingProxyType({})

    is_entrance = True

    #: One group of the ledger takes so many: far more than a page links to, and some milliseconds of the event loop.
    batch = 512

    def __init__(self, sheet: CommitSheet | None = None) -> None:
        super().__init__(sheet)
        self._told = 0
        """How many URLs were refused in this run."""

    async def _committed(
        self, tasks: Sequence[Task], mail: Sequence[Designated] = (), *, is_mail: bool = False
    ) -> tuple[Arrived]:
        """Keep tasks of ours, and mail for others. While the disk is full this waits, and so does the other side. Raises
        ComponentFailed: they cannot be kept."""
        sound = self._sound(tasks)
        while True:
            try:
                new = self.intake().kept(sound, mail, is_mail=is_mail, refused=len(tasks) - len(sound))
                await self.ledger.settle()
                for owner in self.owners.get("owners", ()):
                    await owner.sure()
            except Exception as error:
                if not is_full(error):
                    raise ComponentFailed(
                        f"component {self.name!r} cannot keep {len(tasks)} URLs: {type(error).__name__}: {error}"
                    ) from error
                self.metrics.count("disk_full")
                await self.clock.sleep(self.sheet.disk_wait)
            else:
                self.metrics.count("new", new)
                return (Arrived(new),)

    def _sound(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """Those that can be kept. The others are told and acknowledged: sent once more they would be no better."""
        faults = list(map(fault_of, tasks))
        if not any(faults):
            return tasks
        refused = [(task, fault) for task, fault in zip(tasks, faults, strict=True) if fault]
        for task, fault in refused[: max(0, _MOST_TOLD - self._told)]:
            self.report(f"another agent sent {named(task)}, which cannot be kept: {fault}")
        self._told += len(refused)
        return [task for task, fault in zip(tasks, faults, strict=True) if not fault]

    def intake(self) -> "UrlIntake":
        """Commits URLs by the rules of this component."""
        return UrlIntake(
            *(self.sheet, self.ledger, self.seen, self.traversal, self.prioritizer),
            self.task_gates.get("schedule", ()),
            self.orders.get("orders", ()),
            self.claims.get("claims", ()),
            next(iter(self.held.get("held", ())), None),
            next(iter(self.mailbox.get("mailbox", ())), None),
        )


class ReceiveUrls(_Receives):
    """Commits URLs of our hosts that other agents found."""

    inbox: In[Task]

    async def filter_many(self, tasks: list[Task]) -> tuple[Arrived]:
        return await self._committed(tasks)


class ReceiveMail(_Receives):
    """Commits mail: URLs of our hosts are queued where they are not, and those of others wait in our mailbox for their agents."""

    inbox: In[Designated]

    async def filter_many(self, mail: list[Designated]) -> tuple[Arrived]:
        """Keep it. Raises ComponentFailed."""
        [box] = self.mailbox["mailbox"]
        own = box.sheet.agent
        others = [one for one in mail if one.agent != own]
        fit = {id(task) for task in self._sound([one.task for one in others])} if others else ()
        ours = [one.task for one in mail if one.agent == own]
        return await self._committed(ours, [one for one in others if id(one.task) in fit], is_mail=True)


class UrlIntake(msgspec.Struct, frozen=True):
    """Commits URLs of our hosts that others have found, by the rules of the commit: those of arrows, and those of files."""

    sheet: CommitSheet
    ledger: Ledger
    seen: SeenSet
    traversal: Traversal
    prioritizer: Prioritizer
    gates: Sequence[TaskFilter]
    takers: Sequence[OrderTaker]
    claimants: Sequence[ClaimTaker] = ()
    held: HeldDomains | None = None
    """Notes domains that masters have given to this agent; None where there are no masters."""
    mailbox: Mailbox | None = None

    async def receive(self, tasks: Sequence[Task]) -> int:
        """Keep them; returns how many were new. To be called again with the same ones does no harm. Raises DiskFull: they
        cannot be kept."""
        new = self.kept(tasks)
        await self.ledger.settle()
        return new

    def kept(
        self, tasks: Sequence[Task], mail: Sequence[Designated] = (), *, is_mail: bool = False, refused: int = 0
    ) -> int:
        """Commit them in one group; returns how many were new.

        Args:
            tasks: of our hosts.
            mail: of other agents' hosts, to be passed on.
            is_mail: the tasks came as mail, so that their having been met says nothing.
            refused: how many came with them that cannot be kept.
        """
        orders = [task for task in tasks if task.relation == ORDER]
        claims = [task for task in tasks if task.relation == CLAIM]
        urls = [task for task in tasks if task.relation not in (ORDER, CLAIM)] if orders or claims else tasks
        with self.ledger.group() as staged:
            staged.count("received", len(tasks))
            if refused:
                staged.count("cut:refused", refused)
            new = self._queued(urls, orders, self._queueing(staged), staged, is_mail=is_mail)
            for claimant in self.claimants if claims else ():
                claimant.received(claims, staged)
            taken = [(taker, taker.received(orders, staged)) for taker in self.takers] if orders else ()
            if mail:
                cast(DividingGroup, staged).pass_on(mail)
        for taker, those in taken:
            taker.obey(those)
        return new

    def brought_home(self, tasks: Sequence[Task], mailbox: Mailbox, known: Collection[str]) -> None:
        """Take what this agent owed another one, and what is its own by now; the other one has had those that are `known`."""
        orders = [task for task in tasks if task.relation == ORDER]
        urls = [task for task in tasks if task.relation != ORDER]
        with self.ledger.group() as staged:
            queueing = self._queueing(staged)
            mailbox.taken_back(tasks, staged)
            queueing.taken_back([task for task in urls if task.identity not in known])
            queueing.received([task for task in urls if task.identity in known])
            taken = [(taker, taker.received(orders, staged)) for taker in self.takers] if orders else ()
        for taker, those in taken:
            taker.obey(those)

    def _queueing(self, staged: Group) -> TaskQueueing:
        choosers = Choosers(self.seen, self.traversal, self.prioritizer, self.gates, self.ledger.depths.limit)
        return TaskQueueing(self.sheet, choosers, staged)

    def _queued(
        self, urls: Sequence[Task], orders: Sequence[Task], queueing: TaskQueueing, staged: Group, *, is_mail: bool
    ) -> int:
        """Queue what is new, what this agent has found and owed, and what came as mail and is not queued; returns how many."""
        held = self.held
        if held is None or self.mailbox is None:
            return queueing.received(urls)
        held.hold({task.host: None for task in (*urls, *orders)}, staged)
        back = self.mailbox.taken_back(urls, staged)
        new = queueing.taken_back(back)
        if not is_mail:
            return new + queueing.received(urls)
        known = {task.identity for task in back}
        return new + queueing.received(urls, lambda task: task.identity not in known and not held.has_task(task))
