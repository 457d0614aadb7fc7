"""The marshaler: a simple filter that takes URLs which agents found, and tags each with the agent that it goes to.

Place in the flow: in a master, between what receives from all agents and what sends to them. The six steps of Hunyadi 2007,
section 5.3.1, are taken for a batch of URLs at once: fetch and validate, recently seen, canonical host, domain constraints,
assignable domain, designate.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import not_
from typing import Annotated

from gossamer.contracts.filtering import TaskFilter
from gossamer.contracts.marshaling import DesignationTable, HostNames, RecentUrls
from gossamer.flow.component import Filter
from gossamer.flow.ports import In, Out, Uses
from gossamer.flow.receipt import Receipt, current
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.agents import Designated
from gossamer.model.domains import Division, DomainRule, domain_rule
from gossamer.model.errors import DiskFull
from gossamer.model.task import Task
from gossamer.stages.marshaling.steps import named, names_page, not_recent, refused, validated

_MADE = "it is fixed when the crawl is made"


class MarshalSheet(Sheet, frozen=True):
    """Settings of :class:`Marshal`."""

    schemes: Annotated[tuple[str, ...], setting("Pass on URLs of these schemes, and refuse all others.")] = (
        *("http", "https", "ftp", "gopher"),
    )
    division: Annotated[
        Division,
        setting(
            "Assign registered domains or single hosts as a whole. Use the value that the ledgers have.", restart=_MADE
        ),
    ] = "domain"
    together: Annotated[
        tuple[str, ...],
        setting(
            "Assign these registered domains to the same agent. Use the value that the ledgers have (repeatable).",
            restart=_MADE,
        ),
    ] = ()
    seeds_as_links: Annotated[
        bool,
        setting(
            "Treat seeds like links: use the canonical names of their hosts, and refuse them by domain constraints. If off, "
            "seeds go unchanged to an agent, as with the ring; the agent refuses them by the same rules, and reports it."
        ),
    ] = True
    disk_wait: Annotated[float, setting("Wait this long before trying a full disk again.", unit="s", gt=0)] = (
        1.0  # soon enough for a person who makes room, and far from busy waiting
    )


class Marshal(Filter[MarshalSheet]):
    """Tags each URL with its agent. It counts refused URLs by rule as `refused:RULE`, and repeated ones as `recent`.

    Raises:
        UsageError: `together` names no registered domains.
    """

    inbox: In[Task]
    outbox: Out[Designated]
    recent: Uses[RecentUrls]
    hosts: Uses[HostNames]
    constraints: Uses[TaskFilter]
    designations: Uses[DesignationTable]

    #: One group of the ledger takes the new domains of so many URLs; it is some milliseconds of the event loop.
    batch = 512

    def __init__(self, sheet: MarshalSheet | None = None) -> None:
        super().__init__(sheet)
        self._rule: DomainRule = domain_rule(self.sheet.division, self.sheet.together)

    async def filter_many(self, tasks: list[Task]) -> None:
        """Take the six steps. A URL enters the recently-seen table when it is safe, so that no other copy is held back in vain."""
        self.metrics.count("marshaled", len(tasks))
        valid = self._counted(validated(task, self.sheet.schemes) for task in tasks)
        fresh = not_recent(valid, self.recent)
        self.metrics.count("recent", len(valid) - len(fresh))
        as_links = self.sheet.seeds_as_links
        await self.hosts.learn(task.host for task in fresh)
        called = [named(task, self.hosts.name_of) if as_links or task.source else task for task in fresh]
        refusals = refused(called, self.constraints.judge_tasks("schedule", called))
        if not as_links:
            refusals = [refusal if task.source else "" for task, refusal in zip(called, refusals, strict=True)]
        self._refuse(filter(None, refusals))
        passing = list(compress(called, map(not_, refusals)))
        domains = [self._rule.assignable(task.host) for task in passing]
        agents = await self._designated(domains)
        await self._pass_on(map(Designated, agents, passing), list(compress(fresh, map(not_, refusals))))

    async def _designated(self, domains: Sequence[str]) -> list[str]:
        """The agents of some domains. While the disk is full this waits, and so do the agents that have sent their URLs."""
        while True:
            try:
                return await self.designations.designate(domains)
            except DiskFull:
                self.metrics.count("disk_full")
                await self.clock.sleep(self.sheet.disk_wait)

    def _counted(self, judged: Iterable[Task | str]) -> list[Task]:
        valid: list[Task] = []
        rules: list[str] = []
        for one in judged:
            if isinstance(one, str):
                rules.append(one)
            else:
                valid.append(one)
        self._refuse(rules)
        return valid

    def _refuse(self, rules: Iterable[str]) -> None:
        for rule, number in Counter(rules).items():
            self.metrics.count(f"refused:{rule}", number)

    async def _pass_on(self, designated: Iterable[Designated], known_as: Sequence[Task]) -> None:
        """Send them. A URL that is held back is acknowledged at once; so its first copy must be safe with its agent by then."""
        whole = current.get()
        if whole is not None:
            whole.hold()

        def safe() -> None:
            for task in known_as:
                if names_page(task):
                    self.recent.insert(task.identity, task.depth)
            if whole is not None:
                whole.release()

        receipt = Receipt(safe)
        token = current.set(receipt if whole is not None else None)
        try:
            await self.outbox.send_many(list(designated))
        finally:
            current.reset(token)
        receipt.release()
