"""The providers of the marshaler, which says which agent each URL goes to. Suites: `gossamer.testing.check_recent_urls`,
`check_host_names`, `check_designation_table`, `check_designation_policy`.

Place in the flow: a master receives URLs from all agents; its marshaler (:mod:`gossamer.stages.marshaling`) asks these.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from gossamer.model.agents import Member


class RecentUrls(Protocol):
    """Remembers URLs that were passed on a short time ago, at the depth at which they were met.

    Promises:
        1. Only a URL that was inserted, at this depth or nearer to the seeds, is held back.
        2. It never holds more URLs than its capacity, and may forget any of them.
    """

    def misses(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """Those that are not remembered at this depth or a lesser one, in order. Changes nothing but reference bits."""
        ...

    def insert(self, url: str, depth: int = 0) -> None:
        """Remember a URL that was passed on."""
        ...


class HostNames(Protocol):
    """Knows the one name by which a host is called.

    Promises:
        1. A name that it returns is the name of itself.
        2. Equal tables give equal names, in every process.
    """

    def name_of(self, host: str) -> str:
        """The canonical name of a host; the host itself where no other name is known."""
        ...


class DomainCount(msgspec.Struct, frozen=True):
    """An agent that a domain may be given to, and how many domains it has."""

    member: Member
    domains: int = 0

    @property
    def load(self) -> float:
        """Domains for each unit of capacity."""
        return self.domains / self.member.capacity


class DesignationPolicy(Protocol):
    """Chooses the agent of a domain that has none.

    Promise: the answer is one of the candidates. It need not be the same twice: the table remembers it.
    """

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        """The name of the agent that gets an assignable domain.

        Args:
            domain: registered domain, host or address.
            candidates: at least one, by name; all have a capacity above 0.
        """
        ...


class DesignationTable(Protocol):
    """Keeps which agent each assignable domain was given to.

    Promises:
        1. An answer is kept before it is given: a domain has the same agent after a kill.
        2. A domain keeps its agent as long as that one is a member, whatever others join and leave, unless a person assigns it.
        3. A domain whose agent has left is given to another one when it is asked for.
    """

    async def designate(self, domains: Sequence[str]) -> list[str]:
        """The agents of some assignable domains, in order; those without one are given one.

        Raises:
            DiskFull: a new one cannot be kept. Nothing was given away then.
        """
        ...

    def designated(self) -> Iterator[tuple[str, str]]:
        """Every domain that was given to an agent, with the agent's name, in an order of the table's own."""
        ...

    def assign(self, domain: str, agent: str) -> None:
        """Give a domain to this agent from now on.

        Raises:
            UsageError: there is no such agent at work, or the name is no assignable domain.
        """
        ...
