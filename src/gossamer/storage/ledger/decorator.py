"""A ledger in front of another: an heir changes what its groups do, and everything else is as behind it.

Place in the flow: a wiring puts one between the stages and the agent's ledger, as a sieve or a crawl of several agents does, so
that no stage knows of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.storage.contract import Spaces
from gossamer.storage.ledger.contract import Depths, Group, Ledger, Links, Tallied
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.task import Family, SetAside


class LedgerFront(Provider[NoSettings]):
    """The ledger behind it, unchanged. Contract: `ledger.Ledger`."""

    behind: Uses[Ledger]
    keeps_state = True

    def group(self) -> AbstractContextManager[Group]:
        """Open a group of the ledger."""
        return self.behind.group()

    @property
    def is_clean(self) -> bool:
        """Whether the last process that had it open ended with nothing in flight, or there was none."""
        return self.behind.is_clean

    async def settle(self) -> None:
        """Return when every group so far is as durable as the settings ask."""
        await self.behind.settle()

    def counters(self) -> Mapping[str, int]:
        """Sums over all kept groups."""
        return self.behind.counters()

    def committed_ends(self) -> Mapping[str, int]:
        """File of the crawl directory -> the byte at which what is kept of it ends."""
        return self.behind.committed_ends()

    def sync(self) -> None:
        """Make every group so far survive a power cut, whatever the settings ask."""
        self.behind.sync()

    @property
    def depths(self) -> Depths:
        return self.behind.depths

    @property
    def spaces(self) -> Spaces:
        """What owners keep of their own."""
        return self.behind.spaces

    def document(self, url: str) -> DocumentRow | None:
        """The row of the last committed visit of a URL."""
        return self.behind.document(url)

    def host_states(self, names: Sequence[str]) -> list[HostState]:
        return self.behind.host_states(names)

    def hosts(self) -> Iterator[HostState]:
        """The states of all hosts of which one is kept."""
        return self.behind.hosts()

    def robots(self, site: str, host: str) -> bytes | None:
        """The robots bytes of a site."""
        return self.behind.robots(site, host)

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        """What watchers have learnt of hosts under a name."""
        return self.behind.learnt(hosts, what)

    def tally(self, what: Tallied, name: str) -> int:
        """How many were counted of a host or registered domain."""
        return self.behind.tally(what, name)

    def aside(self, after: Family | None = None) -> Iterator[SetAside]:
        """Families of which tasks are set aside, or were."""
        return self.behind.aside(after)

    def meta(self, name: str) -> bytes | None:
        """The value that is kept under a name."""
        return self.behind.meta(name)

    def put_meta(self, name: str, value: bytes) -> None:
        """Keep a value under a name, without a group."""
        self.behind.put_meta(name, value)

    def links_of(self, url: str) -> Links | None:
        """The links of a visited page."""
        return self.behind.links_of(url)

    def depth_of(self, urls: Sequence[str]) -> list[int | None]:
        """The lowest depth that each URL was met at."""
        return self.behind.depth_of(urls)
