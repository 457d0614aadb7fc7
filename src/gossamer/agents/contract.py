"""Seams of the masters: the providers of the marshaler, and state that several processes write. Suite:
`gossamer.testing.check_designation_policy`.

Place in the flow: a master receives URLs from all agents; its marshaler (:mod:`marshaler`) asks these providers. Commands read the
shared state too, and write it where no master is at work.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from gossamer.values.agents import Member

# The providers of the marshaler, which decides which agent gets each URL.


class DomainCount(msgspec.Struct, frozen=True):
    """An agent that may get a domain, and the number of domains that it has."""

    member: Member
    domains: int = 0

    @property
    def load(self) -> float:
        return self.domains / self.member.capacity


class DesignationPolicy(Protocol):
    """Chooses the agent of a domain that has none.

    Promise: the answer is one of the candidates. It may differ from call to call, because the table remembers the first answer.
    """

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        """Return the name of the agent that gets an assignable domain.

        Args:
            domain: registered domain, host or address.
            candidates: at least one, sorted by name; all have a capacity above 0.
        """
        ...


class DesignationTable(Protocol):
    """Keeps the agent of each assignable domain.

    Promises:
        1. It keeps an answer before it returns it, so a domain has the same agent after a kill.
        2. A domain keeps its agent as long as that agent is a member, unless a person assigns it to another one.
        3. A domain whose agent has left gets another agent the next time that it is asked for.
    """

    async def designate(self, domains: Sequence[str]) -> list[str]:
        """Return the agents of some assignable domains, in order; domains without an agent get one. Raises DiskFull: a new
        designation cannot be kept. In that case the call assigns no domain."""
        ...

    def designated(self) -> Iterator[tuple[str, str]]:
        """Yield every domain that has an agent, with the agent's name, in any order."""
        ...

    def assign(self, domain: str, agent: str) -> None:
        """Give a domain to this agent, from now on. Raises UsageError: no agent of this name is at work, or `domain` is not an
        assignable domain."""
        ...


# State that several processes write, such as the table of the masters of one crawl.


def as_json(names: Sequence[str]) -> str:
    """Return any number of names as one parameter of a query, for `json_each`."""
    return msgspec.json.encode(names).decode()


class SharedState(Protocol):
    """One small database that any number of processes have open. No process serves it, so none has to be alive.

    Promises:
        1. When a `writing` block ends, every process sees all of its changes, or none, whichever process is killed.
        2. Only one process at a time is in a `writing` block.
        3. A process that has died holds no lock.
    """

    def open(self, schema: str) -> None:
        """Begin to use tables: `schema` makes those that are not there (`CREATE TABLE IF NOT EXISTS`)."""
        ...

    @property
    def reading(self) -> sqlite3.Connection: ...

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open a transaction. Keep it short, since other processes wait. Raises DiskFull: it could not be written. Nothing has
        changed; CrawlDirectoryError: the file cannot be read or written."""
        ...
