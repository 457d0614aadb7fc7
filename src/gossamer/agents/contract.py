"""Seams of agents and masters: the cluster that runs their processes, the providers of the marshaler, and state that several
processes write. Suites: `gossamer.testing.check_cluster` and `check_designation_policy`.

Place in the flow: the supervisor lets a cluster place agents. A master receives URLs from all agents; its marshaler
(:mod:`marshaler`) asks these providers. Commands read the shared state too, and write it where no master is at work.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import msgspec

from gossamer.values.agents import Member
from gossamer.values.errors import CrawlDirectoryError

if TYPE_CHECKING:
    from gossamer.agents.parcels import Deed
    from gossamer.crawls.options import CrawlOptions

# The cluster: where the processes of one crawl run.


class ClusterNeeds(NamedTuple):
    """All that a cluster is made of. `--cluster NAME` calls the function that a subject declares for it, with one of these."""

    directory: Path
    """The crawl directory of the supervisor."""
    folder: Path
    """Where the supervisor writes what processes are to run (:func:`gossamer.agents.process.write_orders`), before it places
    them and whenever that changes. On another machine a cluster brings a copy of these files."""
    options: "CrawlOptions"
    report: Callable[[str], None]
    """Takes lines for people: for what there is no room, which machine is away."""


class ClusterNode(msgspec.Struct, frozen=True):
    """A machine of a cluster."""

    name: str
    place: str = ""
    """Where it is, as `--agent-place` has it; empty where that is not known."""
    processes: tuple[str, ...] = ()
    """Names of the agents and masters of this crawl that it runs."""
    free: float | None = None
    """Processors that nothing uses; None where that is not known."""
    is_leaving: bool = False
    """It is about to be taken away, so that nothing more should be placed there."""


class Placed(Protocol):
    """One life of an agent or a master, wherever it runs. `str()` of it says where, for people.

    Promises:
        1. While it lives and can be reached, it answers at the control socket that bears its name in the crawl's state, on the
           machine of the supervisor (:class:`~gossamer.crawls.control.server.AgentLine`). Questions that cannot reach it end at
           once.
        2. It counts as alive until it has ended, or can do nothing more: one that is cut off asks no host and commits nothing by
           then.
    """

    @property
    def is_alive(self) -> bool: ...

    async def ended(self, say: Callable[[str], None]) -> int:
        """Wait for its end; returns its exit status, or the signal below zero; that of SIGKILL where no machine can tell. Each line
        that it tells people is said meanwhile. A process that has ended in order has left :class:`~gossamer.agents.ended.AgentEnd`
        in the crawl's state."""
        ...

    def kill(self) -> None:
        """End it as SIGKILL does. Safe to call at any time, also again. One that cannot be reached is ended when it can."""
        ...


class Cluster(Protocol):
    """The processes of one crawl. No process is begun again by the cluster itself: the supervisor does that.

    Promises:
        1. A name has one life at a time: what was placed has ended before it is placed again.
        2. A process outlives its supervisor, and the next supervisor finds it by :meth:`living`.
        3. What a cluster keeps is nothing that a crawl needs to go on: it may be lost at any time.
    """

    directory: Path
    folder: Path
    is_shared: bool
    """Processes work in :attr:`directory` itself. Otherwise each has a crawl directory on its own machine, and only the
    cluster writes into :attr:`directory` as they tell."""

    async def place(self, name: str) -> Placed:
        """Let an agent or a master begin, by the orders in :attr:`folder`. Where there is no room, this waits, and reports for
        what. Raises OSError: it cannot be started."""
        ...

    async def living(self, names: Iterable[str]) -> Mapping[str, Placed]:
        """Those that are at work, whichever supervisor has placed them."""
        ...

    async def nodes(self) -> Sequence[ClusterNode]:
        """The machines as they are now."""
        ...

    def prepare(self, names: Iterable[str]) -> None:
        """Let processes load the program that are to begin soon. It may do nothing."""
        ...

    async def close(self) -> None:
        """Let go of the cluster; processes that are at work go on. Those that were prepared and not needed end."""
        ...


class MachineAway(CrawlDirectoryError):
    """A machine has gone for good while hosts changed hands: the hand-over is done again from its first step."""


@runtime_checkable
class FarCluster(Protocol):
    """The rest of a cluster whose agents have machines of their own, where their number can change, and hosts can change hands.
    Without it, they keep both."""

    async def do_at_rest(self, deed: "Deed") -> bytes:
        """Let an agent do something where it keeps its ledger, while all agents rest, and wait while its machine is away. Raises
        CrawlDirectoryError: it cannot be done; MachineAway."""
        ...

    def has_room(self, names: Sequence[str]) -> bool:
        """Whether agents that are to join could begin; where not, this asks for machines, and reports for what it waits."""
        ...


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
