"""The table of designations that all masters of a crawl share: which agent each assignable domain was given to.

Place in the flow: the last step of :mod:`gossamer.stages.marshaling`, in each master. The rows lie in a file that several processes
write (:mod:`gossamer.stores.shared_state`). A new domain gets its agent by a policy within one transaction, so that no two masters
give it to two agents. Domains whose agent has left are moved while all agents rest (:mod:`gossamer.assembly.agency.handing`).
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from gossamer.contracts.marshaling import DesignationPolicy, DomainCount
from gossamer.contracts.sharing import SharedState, as_json
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.agents import Member, agent_name, member
from gossamer.model.digest_claims import digest_names
from gossamer.model.domains import domain_point
from gossamer.model.errors import UsageError
from gossamer.model.host_table import given_host
from gossamer.services.designation.ring import Ring

SCHEMA = """
CREATE TABLE IF NOT EXISTS designations (domain TEXT PRIMARY KEY, point INTEGER NOT NULL, agent TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS designations_by_point ON designations (point);
CREATE TABLE IF NOT EXISTS loads (agent TEXT PRIMARY KEY, domains INTEGER NOT NULL) WITHOUT ROWID;
"""

#: Domains in memory, so that most look-ups spare the file: about 200 bytes each.
REMEMBERED = 65_536


class SharedDesignationSheet(Sheet, frozen=True):
    """Settings of :class:`SharedDesignations`."""

    members: Annotated[
        tuple[str, ...],
        setting("Give domains to these agents: AGENT, AGENT=CAPACITY or AGENT=CAPACITY@PLACE."),
    ] = (agent_name(0),)


class SharedDesignations(Provider[SharedDesignationSheet]):
    """Keeps designations in a file that several masters share. Contract: `marshaling.DesignationTable`.

    Names of digests do not count as load, because the ring divides them among agents.

    Raises:
        UsageError: the sheet names no agent, or one twice.
    """

    shared: Uses[SharedState]
    policy: Uses[DesignationPolicy]
    keeps_state = True

    def __init__(self, sheet: SharedDesignationSheet | None = None) -> None:
        super().__init__(sheet)
        self._known: dict[str, str] = {}
        self._take_members()

    async def start(self) -> None:
        """Begin to use the table."""
        self.shared.open(SCHEMA)
        self.metrics.gauge("domains", lambda: sum(loads(self.shared.reading).values()))

    def changed(self, before: SharedDesignationSheet) -> None:
        """Other members: the domains of those that have left are given away again when they are asked for."""
        self._take_members()

    def _take_members(self) -> None:
        self._ring = Ring(map(member, self.sheet.members))
        self._members = {one.agent: one for one in self._ring.members}

    async def designate(self, domains: Sequence[str]) -> list[str]:
        """The agents of some assignable domains, in order; those without one are given one.

        Raises:
            DiskFull: a new one cannot be kept. Nothing was given away then.
            CrawlDirectoryError: the table cannot be read or written.
        """
        known, members = self._known, self._members
        missing = [domain for domain in dict.fromkeys(domains) if known.get(domain) not in members]
        if not missing:
            return [known[domain] for domain in domains]
        found = self._found(missing)
        if len(found) < len(missing):
            with self.shared.writing() as connection:
                # Another master may have given some of them away meanwhile.
                found = self._found(missing)
                given = self._given(connection, [domain for domain in missing if domain not in found])
                give(connection, given)
            self.metrics.count("given", len(given))
            found.update(given)
        answers = [found.get(domain) or known[domain] for domain in domains]
        if len(known) + len(found) > REMEMBERED:
            known.clear()
        known.update(found)
        return answers

    def _found(self, domains: Sequence[str]) -> dict[str, str]:
        """Those of some domains that an agent at work has, with its name."""
        digests = digest_names()
        found = {one: self._ring.owner(digests[point]) for one in domains if (point := domain_point(one)) in digests}
        rows = agents_of(self.shared.reading, [one for one in domains if one not in found])
        return {**found, **{domain: agent for domain, agent in rows.items() if agent in self._members}}

    def _given(self, connection: sqlite3.Connection, domains: Iterable[str]) -> dict[str, str]:
        """Domains with the agents that they get."""
        before, counts = agents_of(connection, list(domains)), loads(connection)
        given: dict[str, str] = {}
        at_points: dict[int, str] = {}
        for domain in domains:
            point = domain_point(domain)
            agent = at_points.get(point) or agent_at(connection, point)
            if agent not in self._members:
                agent = self._chosen(domain, counts)
            at_points[point] = given[domain] = agent
            counts[agent] = counts.get(agent, 0) + 1
            if domain in before:
                counts[before[domain]] -= 1
        return given

    def _chosen(self, domain: str, counts: Mapping[str, int]) -> str:
        agent = chosen(self.policy, domain, self._members.values(), counts)
        if agent not in self._members:
            raise UsageError(f"the policy gave {domain} to {agent!r}, which is not an agent at work")
        return agent

    def designated(self) -> Iterator[tuple[str, str]]:
        """Every domain that was given to an agent, with the agent's name."""
        return designated(self.shared.reading)

    def assign(self, domain: str, agent: str) -> None:
        """Give a domain to this agent from now on, and those that share its point.

        Raises:
            UsageError: there is no such agent at work, or the domain is no host's name.
        """
        if agent not in self._members:
            raise UsageError(f"there is no agent {agent!r} at work; choose one of {', '.join(self._members)}")
        with self.shared.writing() as connection:
            together = domains_at(connection, given_host(domain))
            give(connection, dict.fromkeys(together, agent))
        for one in together:
            self._known.pop(one, None)


def chosen(policy: DesignationPolicy, domain: str, members: Iterable[Member], counts: Mapping[str, int]) -> str:
    """The agent that a policy chooses, by how many domains each has."""
    return policy.choose(domain, [DomainCount(one, counts.get(one.agent, 0)) for one in members])


# -- the rows, for whoever has the file open


def agents_of(connection: sqlite3.Connection, domains: Sequence[str]) -> dict[str, str]:
    """The agents of those domains that have one, whether it is at work or not."""
    question = "SELECT domain, agent FROM designations WHERE domain IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(question, (as_json(domains),)))


def agent_at(connection: sqlite3.Connection, point: int) -> str | None:
    """The agent of what lies at one point of the circle of domains; None where nothing does.

    A ledger hands over by points, so that all domains at one point have one agent.
    """
    row = connection.execute("SELECT agent FROM designations WHERE point = ? LIMIT 1", (point,)).fetchone()
    return None if row is None else str(row[0])


def domains_at(connection: sqlite3.Connection, domain: str) -> list[str]:
    """A domain, and those that share its point."""
    rows = connection.execute("SELECT domain FROM designations WHERE point = ?", (domain_point(domain),))
    return list(dict.fromkeys([domain, *(str(one) for (one,) in rows)]))


def designated(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Every domain that was given to an agent, with the agent's name, in alphabetical order."""
    yield from connection.execute("SELECT domain, agent FROM designations ORDER BY domain")


def loads(connection: sqlite3.Connection) -> dict[str, int]:
    """How many domains each agent has."""
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
