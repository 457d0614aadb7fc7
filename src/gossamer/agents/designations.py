"""The table of designations of masters: which agent each assignable domain was given to, in a ledger or in a file that masters
share; and the policies that choose an agent for a domain.

Place in the flow: the last step of :mod:`marshaler`. A domain that has no agent, or whose agent has left, gets one by a policy. The
answer is written before it is given, so that no kill lets two agents have one domain.
"""

import random
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec

from gossamer.agents.contract import DesignationPolicy, DomainCount, SharedState, as_json
from gossamer.agents.ring import PlaceTable, Ring
from gossamer.crawls.basic_options import PlaceRules
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.agents import Member, agent_name, digest_names, member
from gossamer.values.errors import UsageError
from gossamer.values.hosts import domain_point, given_host
from gossamer.values.url import MAX_URL_BYTES

# In a space of the ledger of the only master.

#: The agent of each domain, under the domain. The value repeats the domain, since a key has only its hash.
#: A host has as many bytes as a URL may have.
DESIGNATED = Space("designated", value_bytes=MAX_URL_BYTES + 64, host_bytes=MAX_URL_BYTES + 64)

#: Domains in memory, so that most look-ups spare the store: about 200 bytes each.
REMEMBERED = 65_536

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, str]).decode


class DesignationSheet(Sheet, frozen=True):
    """Settings of :class:`KeptDesignations` and :class:`SharedDesignations`."""

    members: Annotated[
        tuple[str, ...], setting("Give domains to these agents: AGENT, AGENT=CAPACITY or AGENT=CAPACITY@PLACE.")
    ] = (agent_name(0),)


class _Designations(Provider[DesignationSheet], ABC):
    """A table of designations, wherever it is kept. Raises UsageError: the sheet names no agent, or one twice."""

    policy: Uses[DesignationPolicy]
    keeps_state = True

    def __init__(self, sheet: DesignationSheet | None = None) -> None:
        super().__init__(sheet)
        self._known: dict[str, str] = {}
        self._take_members()

    def changed(self, before: DesignationSheet) -> None:
        self._take_members()

    def _take_members(self) -> None:
        self._ring = Ring(map(member, self.sheet.members))
        self._members = {one.agent: one for one in self._ring.members}

    async def designate(self, domains: Sequence[str]) -> list[str]:
        """The agents of some assignable domains, in order; those without one are given one. Raises DiskFull: a new one cannot
        be kept. Nothing was given away then; CrawlDirectoryError: the table cannot be read or written."""
        known, members = self._known, self._members
        missing = [domain for domain in dict.fromkeys(domains) if known.get(domain) not in members]
        if not missing:
            return [known[domain] for domain in domains]
        found = self._found(missing)
        if left := [domain for domain in missing if domain not in found]:
            found.update(await self._give(left))
        answers = [found.get(domain) or known[domain] for domain in domains]
        if len(known) + len(found) > REMEMBERED:
            known.clear()
        known.update(found)
        return answers

    @abstractmethod
    def _found(self, domains: Sequence[str]) -> dict[str, str]:
        """Those of some domains that an agent at work has, with its name."""

    @abstractmethod
    async def _give(self, domains: Sequence[str]) -> dict[str, str]:
        """Give away domains that no agent at work has, and keep whose they are."""

    def _chosen(self, domain: str, counts: Mapping[str, int]) -> str:
        agent = chosen(self.policy, domain, self._members.values(), counts)
        if agent not in self._members:
            raise UsageError(f"the policy gave {domain} to {agent!r}, which is not an agent at work")
        return agent

    def _check_agent(self, agent: str) -> None:
        if agent not in self._members:
            raise UsageError(f"there is no agent {agent!r} at work; choose one of {', '.join(self._members)}")


class KeptDesignations(_Designations):
    """Keeps designations in the ledger. Contract: `agents.contract.DesignationTable`."""

    ledger: Uses[Ledger]

    def __init__(self, sheet: DesignationSheet | None = None) -> None:
        super().__init__(sheet)
        self._counts: Counter[str] = Counter()
        self.metrics.gauge("domains", self._counts.total)

    async def start(self) -> None:
        self.ledger.spaces.open(DESIGNATED)
        self._counts.update(agent for _, agent in self.designated())

    def _kept(self, domains: Sequence[str]) -> dict[str, str]:
        values = self.ledger.spaces.get_many(DESIGNATED, domains)
        return dict(_decode(value) for value in values if value is not None)

    def _found(self, domains: Sequence[str]) -> dict[str, str]:
        return {domain: agent for domain, agent in self._kept(domains).items() if agent in self._members}

    async def _give(self, domains: Sequence[str]) -> dict[str, str]:
        before, counts, given = self._kept(domains), self._counts.copy(), dict[str, str]()
        for domain in domains:
            agent = given[domain] = self._chosen(domain, counts)
            counts[agent] += 1
            if domain in before:
                counts[before[domain]] -= 1
        self._keep(given, before)
        await self.ledger.settle()
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

    def designated(self) -> Iterator[tuple[str, str]]:
        for _, value in self.ledger.spaces.walk(DESIGNATED):
            yield _decode(value)

    def assign(self, domain: str, agent: str) -> None:
        self._check_agent(agent)
        domain = given_host(domain)
        self._keep({domain: agent}, self._kept([domain]))
        self._known[domain] = agent


# In a file that several processes write (:mod:`~gossamer.storage.mailbox.shared_state`): a new domain gets its agent by a
# policy within one transaction, so that no two masters give it to two agents. Domains whose agent has left are moved while all
# agents rest (:mod:`handing_over`).

SCHEMA = """
CREATE TABLE IF NOT EXISTS designations (domain TEXT PRIMARY KEY, point INTEGER NOT NULL, agent TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS designations_by_point ON designations (point);
CREATE TABLE IF NOT EXISTS loads (agent TEXT PRIMARY KEY, domains INTEGER NOT NULL) WITHOUT ROWID;
"""


class SharedDesignations(_Designations):
    """Keeps designations in a file that several masters share. Contract: `agents.contract.DesignationTable`.

    Names of digests do not count as load, because the ring divides them among agents.
    """

    shared: Uses[SharedState]

    async def start(self) -> None:
        self.shared.open(SCHEMA)
        self.metrics.gauge("domains", lambda: sum(loads(self.shared.reading).values()))

    def _found(self, domains: Sequence[str]) -> dict[str, str]:
        digests = digest_names()
        found = {one: self._ring.owner(digests[point]) for one in domains if (point := domain_point(one)) in digests}
        rows = agents_of(self.shared.reading, [one for one in domains if one not in found])
        return {**found, **{domain: agent for domain, agent in rows.items() if agent in self._members}}

    async def _give(self, domains: Sequence[str]) -> dict[str, str]:
        with self.shared.writing() as connection:
            # Another master may have given some of them away meanwhile.
            found = self._found(domains)
            left = [domain for domain in domains if domain not in found]
            before, counts = agents_of(connection, left), loads(connection)
            given, at_points = dict[str, str](), dict[int, str]()
            for domain in left:
                point = domain_point(domain)
                agent = at_points.get(point) or agent_at(connection, point)
                if agent not in self._members:
                    agent = self._chosen(domain, counts)
                at_points[point] = given[domain] = agent
                counts[agent] = counts.get(agent, 0) + 1
                if domain in before:
                    counts[before[domain]] -= 1
            give(connection, given)
        self.metrics.count("given", len(given))
        return {**found, **given}

    def designated(self) -> Iterator[tuple[str, str]]:
        return designated(self.shared.reading)

    def assign(self, domain: str, agent: str) -> None:
        self._check_agent(agent)
        with self.shared.writing() as connection:
            domain = given_host(domain)
            rows = connection.execute("SELECT domain FROM designations WHERE point = ?", (domain_point(domain),))
            together = dict.fromkeys([domain, *(str(one) for (one,) in rows)])
            give(connection, dict.fromkeys(together, agent))
        for one in together:
            self._known.pop(one, None)


def chosen(policy: DesignationPolicy, domain: str, members: Iterable[Member], counts: Mapping[str, int]) -> str:
    """The agent that a policy chooses, by how many domains each has."""
    return policy.choose(domain, [DomainCount(one, counts.get(one.agent, 0)) for one in members])


# -- the rows, while the file is open


def agents_of(connection: sqlite3.Connection, domains: Sequence[str]) -> dict[str, str]:
    question = "SELECT domain, agent FROM designations WHERE domain IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(question, (as_json(domains),)))


def agent_at(connection: sqlite3.Connection, point: int) -> str | None:
    """The agent of what lies at one point of the circle of domains; None where nothing does.

    A ledger hands over by points, so that all domains at one point have one agent.
    """
    row = connection.execute("SELECT agent FROM designations WHERE point = ? LIMIT 1", (point,)).fetchone()
    return None if row is None else str(row[0])


def designated(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    yield from connection.execute("SELECT domain, agent FROM designations ORDER BY domain")


def loads(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT agent, domains FROM loads").fetchall())


def forget_domains(connection: sqlite3.Connection, gone: Mapping[str, str]) -> None:
    """Forget domains that are deleted, with the agents that have them, within a transaction."""
    connection.executemany("DELETE FROM designations WHERE domain = ?", [(domain,) for domain in gone])
    connection.executemany("UPDATE loads SET domains = domains - 1 WHERE agent = ?", [(one,) for one in gone.values()])


def give(connection: sqlite3.Connection, given: Mapping[str, str]) -> None:
    """Note the agents of domains, within a transaction."""
    before = agents_of(connection, list(given))
    add: dict[str, int] = {}
    for domain, agent in given.items():
        add[agent] = add.get(agent, 0) + 1
        if domain in before:
            add[before[domain]] = add.get(before[domain], 0) - 1
    connection.executemany(
        "INSERT INTO designations VALUES (?, ?, ?) ON CONFLICT (domain) DO UPDATE SET agent = excluded.agent",
        [(domain, domain_point(domain), agent) for domain, agent in given.items()],
    )
    connection.executemany(
        "INSERT INTO loads VALUES (?, ?) ON CONFLICT (agent) DO UPDATE SET domains = domains + excluded.domains",
        list(add.items()),
    )


# Policies: to which agent a domain goes that has none (Hunyadi 2007, section 5.3.1, step 6). The table asks one of them once for
# each domain, and remembers the answer. So a policy may look at the load, or draw lots, where the ring may not.


def least_loaded(candidates: Sequence[DomainCount]) -> str:
    """The agent with the fewest domains for its capacity; of equal ones the first by name."""
    return min(candidates, key=lambda one: (one.load, one.member.agent)).member.agent


class LeastLoaded(Provider[NoSettings]):
    """Gives a domain to the agent that has the fewest domains for its capacity. Contract: `agents.contract.DesignationPolicy`."""

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        return least_loaded(candidates)


class ByDomain(Provider[NoSettings]):
    """Gives a domain to the agent to which a ring of the same members would give it. Contract:
    `agents.contract.DesignationPolicy`."""

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._ring: Ring | None = None

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        members = tuple(one.member for one in candidates)
        if self._ring is None or self._ring.members != members:
            self._ring = Ring(members)
        return self._ring.owner(domain)


class ByPlaceSheet(Sheet, frozen=True):
    places: PlaceRules = ()


class ByPlace(Provider[ByPlaceSheet]):
    """Gives a domain to the least loaded agent at the domain's place, or to the least loaded of all if no agent is there.

    Contract: `agents.contract.DesignationPolicy`.

    Raises:
        UsageError: a rule names no place.
    """

    def __init__(self, sheet: ByPlaceSheet | None = None) -> None:
        super().__init__(sheet)
        self._places = PlaceTable(self.sheet.places)

    async def start(self) -> None:
        """Begin with the rules of the sheet. Raises UsageError: there are none."""
        if not self.sheet.places:
            raise UsageError(f"{self.name}: by-place has no places; give it some, as places = ['hu=budapest']")

    def changed(self, before: ByPlaceSheet) -> None:
        self._places = PlaceTable(self.sheet.places)

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        place = self._places.place(domain)
        return least_loaded([one for one in candidates if place and one.member.place == place] or candidates)


class RandomAgent(Provider[NoSettings]):
    """Draws an agent at random, in proportion to the agents' capacities. Contract: `agents.contract.DesignationPolicy`."""

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._random = random.Random()

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        [drawn] = self._random.choices(candidates, [one.member.capacity for one in candidates])
        return drawn.member.agent
