"""The outbox keeps URLs of other agents' hosts until these have committed them. Suite: `gossamer.testing.check_outbox`.

Place in the flow: groups of the ledger owe them (:mod:`gossamer.stores.exchange.ledger`), one sender for each other agent takes
them and says what was delivered.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from gossamer.contracts.ledger import Group
from gossamer.model.task import Task


class OwedTask(msgspec.Struct, frozen=True):
    """One entry of the outbox."""

    agent: str
    """Whose it is."""
    task: Task
    key: bytes
    value: bytes
    """As it is kept: one that was owed again meanwhile, at a lower depth, differs."""


class Outbox(Protocol):
    """Keeps URLs owed to other agents, in the same group as the visit on which they were found.

    Promises:
        1. If a group is kept, the sender for the agent takes the URLs that it owes, sooner or later, even after a kill.
        2. A URL stays owed until `delivered` names it; then it is forgotten, unless it was owed again at a lower depth.
        3. The counter `owed` holds the number of owed URLs.
        4. Memory is bounded, even if much is owed or agents do not answer.
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

    async def take(self, agent: str, most: int) -> Sequence[OwedTask]:
        """URLs owed to an agent that were not taken yet, at least one; suspends until there is one."""
        ...

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """The agent has committed them: a group that comes soon forgets them."""
        ...
