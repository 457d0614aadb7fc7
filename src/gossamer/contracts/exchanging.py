"""The outbox keeps URLs of other agents' hosts until these have committed them. Suite: `gossamer.testing.check_outbox`.

Place in the flow: groups of the ledger owe them (:mod:`gossamer.stores.exchange.ledger`). Where agents are connected, one sender
for each other agent takes them and says what was delivered; where they are not, URLs leave in files
(:mod:`gossamer.stores.exchange.files`), and only :class:`Owing` is needed.
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


class Owing(Protocol):
    """Keeps what is owed, in the same group as the visit that it was found on.

    How much is owed in all is the counter `owed`.
    """

    def is_ours(self, host: str) -> bool:
        """Whether the URLs of a host stay with this agent."""
        ...

    def owe(self, tasks: Sequence[Task], group: Group) -> Sequence[OwedTask]:
        """Stage tasks of other agents' hosts; what has no room is counted as `cut:owed`. Returns what is to be given to `kept`."""
        ...

    def kept(self, owed: Sequence[OwedTask], *, is_sure: bool = True) -> None:
        """Their group is kept; or, where it is not sure, may have been."""
        ...


class Outbox(Owing, Protocol):
    """Gives what is owed to senders, and forgets what they have delivered.

    Promises:
        1. What was owed in a group that is kept is taken by its agent's sender, sooner or later, also after a kill.
        2. It is owed until it was said to be delivered; then it is forgotten, unless it was owed again at a lower depth.
        3. How much is owed in all is the counter `owed`.
        4. Memory is bounded, however much is owed and whichever agent does not answer.
    """

    async def take(self, agent: str, most: int) -> Sequence[OwedTask]:
        """What is owed to an agent and was not taken yet, at least one, suspended while there is nothing."""
        ...

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """The agent has committed them: a group that comes soon forgets them."""
        ...
