"""Entries of the mailbox: URLs, digests and orders that one process owes another. Suite: `gossamer.testing.check_designation`.

Place in the flow: a :class:`Designation` routes an address, which is a host, to the process that has it. Groups of the ledger ask
it for each new URL, and owe those that do not stay here (:class:`OwesUrls`). One sender for each recipient takes them and says
which were delivered (:class:`Owing`). A master has the same senders behind its mail.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from gossamer.storage.ledger.contract import Group
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


#: The recipient of URLs of hosts that this agent does not hold, as far as it knows: any master.
MASTERS = "masters"

#: Precedes the name of an agent that is the recipient of mail of masters.
MAIL_TO = "mail/"


class OwedTask(msgspec.Struct, frozen=True):
    """One entry of a mailbox. It is kept under the host of its task; its taker is decided when it is taken."""

    recipient: str
    """The name under which its sender takes it."""
    task: Task
    agent: str = ""
    """The agent that a master has given it to, if a master has: only mail has one."""
    key: bytes = b""
    value: bytes = b""
    """As it is kept: one that was owed again meanwhile, at a lower depth, differs."""


class Owing(Protocol):
    """The place from which a sender takes entries.

    Promises:
        1. An entry is taken by its recipient's sender, sooner or later, until it was said to be delivered.
        2. What a recipient was sent that falls silent is given back, where another one can have it.
        3. Memory is bounded, even if much is owed or recipients do not answer.
    """

    async def take(self, recipient: str, most: int) -> Sequence[OwedTask]:
        """Entries for a recipient that were not taken yet, at least one, in order; suspends until there is one."""

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """The recipient has committed what one `take` has returned; it is forgotten soon."""


class Owner(Protocol):
    """Knows whether this process is the only one that may keep what is sent to its agent."""

    async def sure(self) -> None:
        """Return as soon as that is sure."""


class OwesUrls(Protocol):
    """Keeps what is owed to other agents, in the same group as the visit on which it was found, whichever way it leaves.

    Promises:
        1. If a group is kept, what it owes is owed, even after a kill, until its recipient has it.
        2. One that is owed again at a lower depth is owed at that depth, and counts once.
        3. The counter `owed` holds the number of entries.
    """

    def is_ours(self, host: str) -> bool:
        """Whether the URLs of a host stay with this agent."""

    def owe(self, tasks: Sequence[Task], group: Group) -> Sequence[OwedTask]:
        """Stage tasks of other agents' hosts; tasks without room are counted as `cut:owed`. Returns the argument for
        `kept`."""

    def kept(self, owed: Sequence[OwedTask], *, is_sure: bool = True) -> None:
        """Their group is kept, or may have been if that is uncertain."""
