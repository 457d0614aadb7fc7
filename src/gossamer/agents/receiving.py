"""URLs that other agents found come in: they are committed like those of our own pages, and only then acknowledged.

Place in the flow: the end of the arrow from another agent's outbox. The commit's own rules say what is queued
(:mod:`gossamer.storage.commit.queueing`); the frontier hears that there may be work. The other agent forgets a URL when the group
that has it is kept here; one that comes twice is known by then. Orders of processors about our hosts come the same way, and so
do claims of documents whose digests are ours. Where masters give domains to agents, URLs come from them, and among them may be some
that this agent has found itself. Of those that waited as mail nobody knows any more who has found them, so that they are
queued where the agent has no task of them.

Where agents are not connected, URLs come in files: :mod:`gossamer.agents.merging` gives them to :class:`UrlIntake`.
"""

from collections.abc import Sequence
from types import MappingProxyType

import msgspec

from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, Uses, UsesMany
from gossamer.engine.errors import ComponentFailed
from gossamer.expressions.contract import TaskFilter
from gossamer.frontier.contract import Prioritizer, Traversal
from gossamer.storage.archive.contract import ClaimTaker, OrderTaker
from gossamer.storage.commit.component import is_full
from gossamer.storage.commit.hosts import CommitSheet
from gossamer.storage.commit.queueing import Choosers, TaskQueueing
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.mailbox.contract import DomainTaker
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.agents import CLAIM, MAILED, fault_of, mailed_task, named
from gossamer.values.task import Arrived, Task
from gossamer.values.visit import ORDER

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
