"""The table of designations: which agent each assignable domain was given to, kept in a space of the master's ledger.

Place in the flow: the last step of :mod:`gossamer.stages.marshaling`. A domain that has no agent, or whose agent has left, gets
one by a policy. The answer is written before it is given, so that no kill lets two agents have one domain.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import msgspec

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.marshaling import DesignationPolicy, DomainCount
from gossamer.contracts.spaces import Space
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.agents import Member, agent_name, member
from gossamer.model.errors import UsageError
from gossamer.model.host_table import given_host
from gossamer.model.url import MAX_URL_BYTES

#: The agent of each domain, under the domain. The value repeats the domain, since a key has only its hash.
#: A host has as many bytes as a URL may have.
DESIGNATED = Space("designated", value_bytes=MAX_URL_BYTES + 64, host_bytes=MAX_URL_BYTES + 64)

#: Domains in memory, so that most look-ups spare the store: about 200 bytes each.
REMEMBERED = 65_536

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, str]).decode


class DesignationSheet(Sheet, frozen=True):
    """Settings of :class:`KeptDesignations`."""

    members: Annotated[
        tuple[str, ...],
        setting("Give domains to these agents: AGENT, AGENT=CAPACITY or AGENT=CAPACITY@PLACE."),
    ] = (agent_name(0),)


class KeptDesignations(Provider[DesignationSheet]):
    """Keeps designations in the ledger. Contract: `marshaling.DesignationTable`.

    Raises:
        UsageError: the sheet names no agent, or one twice.
    """

    ledger: Uses[Ledger]
    policy: Uses[DesignationPolicy]
    keeps_state = True

    def __init__(self, sheet: DesignationSheet | None = None) -> None:
        super().__init__(sheet)
        self._known: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._members: dict[str, Member] = {}
        self._take_members()
        self.metrics.gauge("domains", self._counts.total)

    async def start(self) -> None:
        """Count what earlier runs have given away."""
        self.ledger.spaces.open(DESIGNATED)
        self._counts.update(agent for _, agent in self.designated())

    def changed(self, before: DesignationSheet) -> None:
        """Other members: the domains of those that have left are given away again when they are asked for."""
        self._take_members()

    def _take_members(self) -> None:
        found = [one for one in map(member, self.sheet.members) if one.capacity]
        named = {one.agent: one for one in sorted(found, key=lambda one: one.agent)}
        if not named:
            raise UsageError("a crawl has one agent at least")
        if len(named) < len(found):
            raise UsageError("members: two agents have one name; give each its own")
        self._members = named

    async def designate(self, domains: Sequence[str]) -> list[str]:
        """The agents of some assignable domains, in order; those without one are given one.

        Raises:
            DiskFull: a new one cannot be kept. Nothing was given away then.
        """
        known, members = self._known, self._members
        missing = [domain for domain in dict.fromkeys(domains) if known.get(domain) not in members]
        if not missing:
            return [known[domain] for domain in domains]
        found = self._kept(missing)
        given = self._given([domain for domain in missing if found.get(domain) not in members], found)
        if given:
            self._keep(given, found)
            await self.ledger.settle()
        found.update(given)
        answers = [found.get(domain) or known[domain] for domain in domains]
        self._remember(found)
        return answers

    def _kept(self, domains: Sequence[str]) -> dict[str, str]:
        """What the ledger has of these domains."""
        values = self.ledger.spaces.get_many(DESIGNATED, domains)
        return dict(_decode(value) for value in values if value is not None)

    def _given(self, domains: Iterable[str], before: dict[str, str]) -> dict[str, str]:
        """Domains with the agents that the policy chooses for them, each with what came before it in mind."""
        counts = self._counts.copy()
        given: dict[str, str] = {}
        for domain in domains:
            candidates = [DomainCount(one, counts[one.agent]) for one in self._members.values()]
            agent = self.policy.choose(domain, candidates)
            if agent not in self._members:
                raise UsageError(f"the policy gave {domain} to {agent!r}, which is not an agent at work")
            given[domain] = agent
            counts[agent] += 1
            if domain in before:
                counts[before[domain]] -= 1
        return given

    def _keep(self, given: dict[str, str], before: dict[str, str]) -> None:
        with self.ledger.group() as group:
            for domain, agent in given.items():
                if not group.put(DESIGNATED, domain, b"", _encode((domain, agent))):
                    raise ValueError(f"{domain[:100]!r} is longer than any host's name")
        for domain, agent in given.items():
            if domain in before:
                self._counts[before[domain]] -= 1
                self.metrics.count("moved")
            else:
                self.metrics.count("given")
            self._counts[agent] += 1

    def _remember(self, found: dict[str, str]) -> None:
        if len(self._known) + len(found) > REMEMBERED:
            self._known.clear()
        self._known.update(found)

    def designated(self) -> Iterator[tuple[str, str]]:
        """Every domain that was given to an agent, with the agent's name."""
        for _, value in self.ledger.spaces.walk(DESIGNATED):
            yield _decode(value)

    def assign(self, domain: str, agent: str) -> None:
        """Give a domain to this agent from now on.

        Raises:
            UsageError: there is no such agent at work, or the domain is no host's name.
        """
        if agent not in self._members:
            raise UsageError(f"there is no agent {agent!r} at work; choose one of {', '.join(self._members)}")
        domain = given_host(domain)
        self._keep({domain: agent}, self._kept([domain]))
        self._known[domain] = agent
