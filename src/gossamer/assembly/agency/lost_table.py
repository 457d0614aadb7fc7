"""Masters that have lost their shared file for good: the table of designations is made again of what agents hold.

Place in the flow: the supervisor calls :func:`make_table_again` before it starts masters and agents, where a person says so. Each
agent keeps the domains that it was given (:mod:`gossamer.stores.exchange.held`), so that only mail is lost, for agents that were
away: URLs that their finders owe no more. They are found again in the links of pages, as where an agent is lost
(:mod:`~gossamer.assembly.agency.lost`), and agents claim their documents anew.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from gossamer.assembly.agency.lost import damage_of_agent, found_links, queue_found
from gossamer.assembly.agency.membership import is_changing, opened_ledger
from gossamer.assembly.agents import ring_rule
from gossamer.contracts.marshaling import DesignationPolicy
from gossamer.flow.wiring import Wiring
from gossamer.model.agents import member
from gossamer.model.domains import domain_point, domain_rule
from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.task import Task
from gossamer.services.designation.shared import SCHEMA, chosen, give
from gossamer.stores.crawl_identity import crawl_id
from gossamer.stores.exchange.digests import CLAIMS_DUE
from gossamer.stores.exchange.held import held_domains, hold_again
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.shared_state import SHARED, shared_again


def is_table_lost(directory: Path) -> bool:
    """Whether the file that masters share is gone."""
    return not (directory / SHARED).exists()


def make_table_again(
    directory: Path, wiring: Wiring, members: Sequence[str], policy: DesignationPolicy
) -> Iterator[str]:
    """Make the table that masters share again. A kill meanwhile leaves it lost, and harms nothing.

    Args:
        directory: the crawl directory; the caller has it alone.
        wiring: of the crawl, for the settings of its ledgers.
        members: the agents of the crawl.
        policy: chooses for domains that nobody holds, and of which URLs are lost.

    Yields:
        Lines for people.

    Raises:
        CrawlDirectoryError: the table cannot be made again, since something else is lost too.
    """
    if is_changing(directory):
        raise CrawlDirectoryError(
            f"{directory / SHARED} is gone, and domains were just changing hands; bring it back from a copy"
        )
    names = [one.agent for one in map(member, members) if one.capacity]
    for name in names:
        if (damage := damage_of_agent(directory, wiring, name)) is not None:
            raise CrawlDirectoryError(f"{damage}, and {directory / SHARED} is gone; bring one of them back from a copy")
    with ExitStack() as stack:
        ledgers = {name: opened_ledger(directory, wiring, name, stack, existing=False) for name in names}
        again = _TableAgain(directory, wiring, members, policy, ledgers)
        found = again.find_lost()
        for ledger in ledgers.values():
            with ledger.group() as group:
                group.count(CLAIMS_DUE)
    with shared_again(directory, crawl_id(directory)) as shared:
        shared.open(SCHEMA)
        with shared.writing() as connection:
            give(connection, again.owners)
    yield f"the table of agents and their {len(again.owners):,} domains was made again from what the agents hold"
    if found:
        yield f"{found:,} URLs that no agent has are queued again, since pages lead to them"


class _TableAgain:
    """Finds out which agent has which domain."""

    def __init__(
        self,
        directory: Path,
        wiring: Wiring,
        members: Sequence[str],
        policy: DesignationPolicy,
        ledgers: Mapping[str, RocksLedger],
    ) -> None:
        rule = ring_rule(wiring)
        self.owners: dict[str, str] = {}
        """Domain -> agent."""
        self._directory = directory
        self._rule = domain_rule(rule.get("division", "domain"), rule.get("together", ()))
        self._members = [one for one in map(member, members) if one.capacity]
        self._policy = policy
        self._ledgers = ledgers
        self._at_points: dict[int, str] = {}
        self._counts = dict.fromkeys(ledgers, 0)
        for name, ledger in ledgers.items():
            for domain in held_domains(ledger):
                if (other := self.owners.get(domain)) is not None:
                    raise CrawlDirectoryError(
                        f"{directory / SHARED} is gone, and both {other} and {name} hold {domain}; bring it back from a copy"
                    )
                self._note(domain, name)

    def find_lost(self) -> int:
        """Queue URLs that agents have sent, and that no agent has; returns how many."""
        count = 0
        for part in found_links(self._directory):
            count += self._queue_lost(part)
        return count

    def _queue_lost(self, tasks: Iterable[Task]) -> int:
        lost: dict[str, list[Task]] = {}
        for task in tasks:
            domain = self._rule.assignable(task.host)
            owner = self.owners.get(domain, "")
            if owner and self._ledgers[owner].is_seen(task.identity):
                continue
            # An agent that has seen it let it through its filters, and has sent it.
            if any(ledger.is_seen(task.identity) for ledger in self._ledgers.values()):
                lost.setdefault(owner or self._given(domain), []).append(task)
        return sum(queue_found(self._ledgers[owner], those) for owner, those in lost.items())

    def _given(self, domain: str) -> str:
        """Let an agent hold a domain that nobody holds."""
        agent = self._at_points.get(domain_point(domain)) or chosen(self._policy, domain, self._members, self._counts)
        self._note(domain, agent)
        hold_again(self._ledgers[agent], [domain])
        return agent

    def _note(self, domain: str, agent: str) -> None:
        self.owners[domain] = self._at_points[domain_point(domain)] = agent
        self._counts[agent] += 1
