"""Which domains a master has given to this agent: the designation of an agent that has a master.

    found here, domain held ──► the ledger's queues
    found here, not held ─────► the outbox, for any master ──► marshaled ──► `receive` of the agent that it is given to

Place in the flow: in the wiring of an agent, behind the outbox, in the place of the ring. A domain is held from the group on that
has its first URL from a master, and is handed over with everything else that the ledger keeps of it. URLs that this agent
itself has found come back to it where the domain becomes its own: they are seen here, owed, and then queued.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

from gossamer.agents.ring import DivisionSheet
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.mailbox.contract import MASTERS, Designation
from gossamer.values.agents import agent_name, digest_names
from gossamer.values.hosts import DomainRule, domain_point, domain_rule
from gossamer.values.task import Task
from gossamer.values.url import MAX_URL_BYTES

#: The domains that an agent holds, each under itself. The value repeats the domain, since a key has only its hash.
HELD = Space("held-domains", value_bytes=MAX_URL_BYTES, host_bytes=MAX_URL_BYTES + 64)

#: Hosts of which it is remembered whether they are held: about 200 bytes each.
REMEMBERED = 65_536


class HeldDomainsSheet(DivisionSheet, frozen=True):
    """Settings of :class:`HeldDomains`."""

    agent: Annotated[str, setting("Hold the domains of this agent.", restart="it names this agent")] = agent_name(0)


class HeldDomains(Provider[HeldDomainsSheet]):
    """Knows the domains that one agent holds. Contract: `Designation`."""

    ledger: Uses[RocksLedger]
    ring: Uses[Designation]
    keeps_state = True

    def __init__(self, sheet: HeldDomainsSheet | None = None) -> None:
        super().__init__(sheet)
        self._owners: dict[str, str] = {}
        self._rule: DomainRule = domain_rule(self.sheet.division, self.sheet.together)

    async def start(self) -> None:
        self.ledger.spaces.open(HELD)

    def owner(self, host: str) -> str:
        known = self._owners.get(host)
        if known is None:
            known = self._remembered(host, self._owner(host))
        return known

    def _owner(self, host: str) -> str:
        domain = self._rule.assignable(host)
        name = digest_names().get(domain_point(domain))
        if name is not None:
            is_held = self.ring.owner(name) == self.sheet.agent
        else:
            is_held = self.ledger.spaces.get(HELD, domain) is not None
        return self.sheet.agent if is_held else MASTERS

    def _remembered(self, host: str, owner: str) -> str:
        if len(self._owners) >= REMEMBERED:
            self._owners.clear()
        self._owners[host] = owner
        return owner

    def hold(self, hosts: Iterable[str], group: Group) -> None:
        """Hold the domains of these hosts from this group on."""
        digests = digest_names()
        for domain in dict.fromkeys(map(self._rule.assignable, hosts)):
            if domain_point(domain) not in digests and group.get(HELD, domain, b"") is None:
                group.put(HELD, domain, b"", domain.encode())
                self.metrics.count("domains")
                self._remembered(domain, self.sheet.agent)  # the group itself asks, and does not see what it holds
        for host in hosts:
            # Where the group fails, the master sends its URLs again, and their domains are noted then.
            self._remembered(host, self.sheet.agent)

    def has_task(self, task: Task) -> bool:
        """Whether this agent has a task that came as mail; that it has met the URL says nothing, since it may be who found it."""
        return self.ledger.has_task(task.identity)


def held_domains(ledger: Ledger) -> list[str]:
    ledger.spaces.open(HELD)
    return [value.decode() for _, value in ledger.spaces.walk(HELD)]


def let_go(ledger: Ledger, domains: Sequence[str]) -> None:
    """Hold domains no more that are deleted, or that were copied here and are not to move after all."""
    if domains:
        ledger.spaces.open(HELD)
        with ledger.group() as group:
            for domain in domains:
                group.delete(HELD, domain, b"")


def hold_again(ledger: Ledger, domains: Iterable[str]) -> None:
    """Let a ledger that has lost everything hold the domains that its agent has by the table."""
    ledger.spaces.open(HELD)
    with ledger.group() as group:
        for domain in domains:
            group.put(HELD, domain, b"", domain.encode())
