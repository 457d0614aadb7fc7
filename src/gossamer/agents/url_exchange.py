"""URLs travel between agents: one end takes them from the outbox, the other commits them before they are acknowledged.

Place in the flow: the end of the arrow from another agent's outbox. The commit's own rules say what is queued
(:mod:`gossamer.storage.commit.queueing`); the frontier hears that there may be work. The other agent forgets a URL when the group
that has it is kept here; one that comes twice is known by then. Orders of processors about our hosts come the same way, and so
do claims of documents whose digests are ours. Where masters give domains to agents, URLs come from them, and among them may be some
that this agent has found itself. Of those that waited as mail nobody knows any more who has found them, so that they are
queued where the agent has no task of them.

Where agents are not connected, URLs come in files: :mod:`gossamer.agents.merging` gives them to :class:`UrlIntake`.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from types import MappingProxyType
from typing import Annotated

import msgspec

from gossamer.engine.component import AsynchronousFilter, Filter, Producer
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.gate import Receipt, current
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.expressions.contract import TaskFilter
from gossamer.frontier.contract import Prioritizer, Traversal
from gossamer.storage.archive.contract import ClaimTaker, OrderTaker
from gossamer.storage.commit.component import is_full
from gossamer.storage.commit.host_states import CommitSheet
from gossamer.storage.commit.queueing import Choosers, TaskQueueing
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.mailbox.contract import DomainTaker, Owing
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.agents import CLAIM, MAILED, fault_of, mailed_task, named
from gossamer.values.task import Arrived, Task
from gossamer.values.visit import ORDER

# URLs of other agents' hosts go out: one sender for each other agent, from the outbox into a remote connector.
#
# Place in the flow: beside the ring of the crawl. The commit puts URLs into the outbox (:mod:`gossamer.storage.mailbox`); a
# sender takes them in batches. A batch has a receipt of its own, which the connector holds until the other agent has
# committed it. An agent that has masters has a sender for each of these, and a master has one for each agent.

#: URLs that are taken from the outbox at once: a frame of the connector has as many.
BATCH = 1_000


class SendUrlsSheet(Sheet, frozen=True):
    """Settings of :class:`SendUrls`."""

    agent: Annotated[str, setting("Send URLs to this agent.", restart="its connector leads to one agent")] = ""


class SendUrls(Producer[SendUrlsSheet]):
    """Sends one other agent the URLs that wait for it in the outbox."""

    outbox: Out[Task]
    owed: Uses[Owing]

    async def produce(self) -> AsyncIterator[Task]:
        """What is owed, for ever. What is on its way when the crawl ends stays owed, and is sent again."""
        while not self.drained:
            batch = await self.owed.take(self.sheet.agent, BATCH)
            receipt = Receipt(partial(self.owed.delivered, batch))
            token = current.set(receipt)
            try:
                for one in batch:
                    yield one.task
            finally:
                current.reset(token)
            receipt.release()


class OtherAgent(AsynchronousFilter[NoSettings]):
    """Stands for another agent in the wiring of this one: that agent takes URLs of its own hosts, and sends URLs of
    ours.

    The other agent is a process of its own with its own wiring. This class is never run: it declares the types of the
    items that pass between the two.
    """

    urls: In[Task]
    found: Out[Task]

    def on_urls(self, task: Task) -> None:
        """A URL of its hosts."""
        raise NotImplementedError("another agent is a process of its own")

    def take_found(self, free: int) -> list[Task]:
        raise NotImplementedError("another agent is a process of its own")


#: Refused URLs of one run that are told one by one: more of them is one fault of another agent, and the summary has their number.
_MOST_TOLD = 10


class ReceiveUrls(Filter[CommitSheet]):
    """Commits URLs of our hosts that other agents found."""

    inbox: In[Task]
    outbox: Out[Arrived]
    ledger: Uses[Ledger]
    seen: Uses[SeenSet]
    traversal: Uses[Traversal]
    prioritizer: Uses[Prioritizer]
    task_gates: UsesMany[TaskFilter]
    orders: UsesMany[OrderTaker] = MappingProxyType({})
    claims: UsesMany[ClaimTaker] = MappingProxyType({})
    domains: UsesMany[DomainTaker] = MappingProxyType({})

    is_entrance = True

    #: One group of the ledger takes so many: far more than a page links to, and some milliseconds of the event loop.
    batch = 512

    def __init__(self, sheet: CommitSheet | None = None) -> None:
        super().__init__(sheet)
        self._told = 0
        """How many URLs were refused in this run."""

    async def filter_many(self, tasks: list[Task]) -> tuple[Arrived]:
        """Keep them, but for those that no crawl can keep. While the disk is full this waits, and so does the other agent.

        Raises:
            ComponentFailed: they cannot be kept.
        """
        sound = self._sound(tasks)
        while True:
            try:
                new = self._intake().kept(
                    sound, self.claims.get("claims", ()), self.domains.get("domains", ()), len(tasks) - len(sound)
                )
                await self.ledger.settle()
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

    def _sound(self, tasks: list[Task]) -> list[Task]:
        """Those that can be kept. The others are told and acknowledged: sent once more they would be no better."""
        faults = ["" if task.relation == MAILED else fault_of(task) for task in tasks]
        if not any(faults):
            return tasks
        refused = [(task, fault) for task, fault in zip(tasks, faults, strict=True) if fault]
        for task, fault in refused[: max(0, _MOST_TOLD - self._told)]:
            self.report(f"another agent sent {named(task)}, which cannot be kept: {fault}")
        self._told += len(refused)
        return [task for task, fault in zip(tasks, faults, strict=True) if not fault]

    def _intake(self) -> "UrlIntake":
        gates, takers = self.task_gates.get("schedule", ()), self.orders.get("orders", ())
        return UrlIntake(self.sheet, self.ledger, self.seen, self.traversal, self.prioritizer, gates, takers)


class UrlIntake(msgspec.Struct, frozen=True):
    """Commits URLs of our hosts that came in files of other agents, by the rules of the commit: as :class:`ReceiveUrls` does those
    that come by a connector.
    """

    sheet: CommitSheet
    ledger: Ledger
    seen: SeenSet
    traversal: Traversal
    prioritizer: Prioritizer
    gates: Sequence[TaskFilter]
    takers: Sequence[OrderTaker]

    async def receive(self, tasks: Sequence[Task]) -> int:
        """Keep them; returns how many were new. To be called again with the same ones does no harm.

        Raises:
            DiskFull: they cannot be kept.
        """
        new = self.kept(tasks)
        await self.ledger.settle()
        return new

    def kept(
        self,
        tasks: Sequence[Task],
        claimants: Sequence[ClaimTaker] = (),
        domains: Sequence[DomainTaker] = (),
        refused: int = 0,
    ) -> int:
        """Commit them in one group; returns how many were new. `claimants` take claims of documents, `domains` those of masters;
        `refused` URLs came with them that cannot be kept.
        """
        mailed = [mailed_task(task) for task in tasks if task.relation == MAILED]
        mail = [task for task in mailed if task is not None]
        if mailed:
            tasks = [*(task for task in tasks if task.relation != MAILED), *mail]
        orders = [task for task in tasks if task.relation == ORDER]
        claims = [task for task in tasks if task.relation == CLAIM]
        urls = [task for task in tasks if task.relation not in (ORDER, CLAIM)] if orders or claims else tasks
        with self.ledger.group() as staged:
            staged.count("received", len(tasks))
            if refused := refused + len(mailed) - len(mail):
                staged.count("cut:refused", refused)
            choosers = Choosers(self.seen, self.traversal, self.prioritizer, self.gates, self.ledger.depths.limit)
            back = [one for taker in domains for one in taker.received(tasks, staged)]
            queueing = TaskQueueing(self.sheet, choosers, staged)
            strays = {task.identity for task in mail} - {task.identity for task in back}
            new = queueing.taken_back(back)
            new += queueing.received(
                urls, lambda task: task.identity in strays and any(taker.is_stray(task) for taker in domains)
            )
            if claims:
                for claimant in claimants:
                    claimant.received(claims, staged)
            taken = [(taker, taker.received(orders, staged)) for taker in self.takers] if orders else ()
        for taker, those in taken:
            taker.obey(those)
        return new
