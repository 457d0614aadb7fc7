"""URLs of other agents' hosts are kept until these have committed them. Suites: `gossamer.testing.check_designation`,
`check_outbox`, `check_mail`.

Place in the flow: a :class:`Designation` says which agent a host belongs to; every agent holds one of its own. Groups of the
ledger ask it for each new URL, and owe the URLs that do not stay here (:mod:`gossamer.storage.mailbox.outbox`). One sender for
each other agent, or for each master, takes them and says which were delivered. A master has the same senders behind its mail.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from gossamer.storage.ledger.contract import Group
from gossamer.values.agents import Designated
from gossamer.values.task import Task


class Designation(Protocol):
    """Names the agent of each host, using only the members and the rule of assignable domains.

    Promises:
        1. A host belongs to one member, and all hosts of an assignable domain belong to the same one.
        2. Equal members give equal answers, in every process and in any order of the list, without asking another
           process.
        3. When a member joins, domains move only to it. When a member leaves, only its domains move.
        4. The share of a member follows its capacity.
    """

    def owner(self, host: str) -> str:
        """Return the name of the agent to which a canonical host name is assigned."""
        ...


class OwedTask(msgspec.Struct, frozen=True):
    """One entry of the outbox."""

    agent: str
    """The agent that it belongs to."""
    task: Task
    key: bytes
    value: bytes
    """As it is kept: one that was owed again meanwhile, at a lower depth, differs."""


class Owing(Protocol):
    """The place from which a sender takes URLs.

    Promises:
        1. An owed URL is taken by its agent's sender, sooner or later, until it was said to be delivered.
        2. Memory is bounded, even if much is owed or agents do not answer.
    """

    async def take(self, agent: str, most: int) -> Sequence[OwedTask]:
        """URLs owed to an agent that were not taken yet, at least one; suspends until there is one."""
        ...

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """The agent has committed what one `take` has returned; it is forgotten soon."""
        ...


class OwesUrls(Protocol):
    """Keeps URLs owed to other agents, in the same group as the visit on which they were found, whichever way they leave.

    The counter `owed` holds the number of owed URLs.
    """

    def is_ours(self, host: str) -> bool:
        """Whether the URLs of a host stay with this agent."""
        ...

    def owe(self, tasks: Sequence[Task], group: Group) -> Sequence[OwedTask]:
        """Stage tasks of other agents' hosts; tasks without room are counted as `cut:owed`. Returns the argument for
        `kept`."""
        ...

    def kept(self, owed: Sequence[OwedTask], *, is_sure: bool = True) -> None:
        """Their group is kept, or may have been if that is uncertain."""
        ...


class Outbox(OwesUrls, Owing, Protocol):
    """Keeps URLs owed to other agents, in the same group as the visit on which they were found.

    Promises:
        1. If a group is kept, the sender for the agent takes the URLs that it owes, sooner or later, even after a kill.
        2. A URL stays owed until `delivered` names it; then it is forgotten, unless it was owed again at a lower depth.
        3. The counter `owed` holds the number of owed URLs.
        4. Memory is bounded, even if much is owed or agents do not answer.
    """


class Mail(Owing, Protocol):
    """Holds what a master sends to agents, and puts it on the disk where an agent is away.

    Promises:
        1. A posted URL is taken by the agent's sender. Its receipt is held until the agent has
           committed it, or it is on the disk.
        2. Memory is bounded, and no sender waits long for an agent that is away.
        3. Mail on the disk is sent by this master or, if this one is gone, by another one.
        4. Mail on the disk for an agent that has left goes to the agent that its domain is given to then.
    """

    async def post(self, tasks: Sequence[Designated]) -> None:
        """Take tasks for their agents, under the receipt that is current; those of agents that are away are written at once.

        Raises:
            DiskFull: they cannot be written. None was posted.
        """
        ...


class TakesBack(Protocol):
    """An outbox whose agent may be given what it owes."""

    def taken_back(self, tasks: Sequence[Task], group: Group) -> list[Task]:
        """Owe those of some tasks no more that are owed, in this group, since they are ours; returns these."""
        ...


class HoldsDomains(Protocol):
    """Knows which domains a master has given to this agent."""

    def hold(self, hosts: Iterable[str], group: Group) -> None:
        """Hold the domains of these hosts from this group on."""
        ...


class DomainTaker(Protocol):
    """Notes which domains a master has given to this agent."""

    def received(self, tasks: Sequence[Task], group: Group) -> Sequence[Task]:
        """Note the domains of tasks that a master has sent, in the group that is to have them.

        Returns:
            Those that this agent itself has found and owed to the master: they are seen here, and yet to be queued.
        """
        ...

    def is_stray(self, task: Task) -> bool:
        """Whether a task that was seen here and came as mail may never have been queued: this agent itself had found it."""
        ...


class KnowsTasks(Protocol):
    """A ledger that tells what became of a URL."""

    def has_task(self, url: str) -> bool:
        """Whether a URL that was met was visited, or is queued, in flight or set aside; False where that takes too long to tell."""
        ...
