"""Accounts of cash: what a page has, what a visit gives to whom, and how urgent that makes a page. Pure code, in whole numbers.

Cash is never lost or made: that of all accounts and of the sink is one :data:`UNIT` for each visit.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum

from gossamer.contracts.prioritizing import LEVELS

#: What a visit brings: divided among links and links of links, a share is still a whole number.
UNIT = 1 << 32

#: A page whose cash is one unit stands at this level; each level above it takes four times the cash. On simulated webs finer levels
#: found no more importance in the first tenth of the pages, and queued a page twice as often (docs/benchmarks.md).
LEVEL_OF_UNIT = 4

#: Cash, level, state, attempt, copies.
_PACKED = struct.Struct("<QBBBB")

#: Bytes of an account on the disk, beside its key.
ACCOUNT_BYTES = _PACKED.size


class AccountState(IntEnum):
    """What became of the page."""

    MET = 0
    """Linked to; nobody has queued it here, as where a filter refuses it."""
    QUEUED = 1
    VISITED = 2


class Account:
    """What is kept of one page."""

    __slots__ = ("attempt", "cash", "copies", "level", "state")

    def __init__(
        self, cash: int = 0, level: int = LEVELS - 1, state: int = AccountState.MET, attempt: int = 1, copies: int = 0
    ) -> None:
        self.cash = cash
        self.level = level
        """Of its most urgent task."""
        self.state = state
        self.attempt = attempt
        """Of its latest task."""
        self.copies = copies
        """Tasks that wait beside the one that will be fetched: it was queued again, more urgently."""

    def __repr__(self) -> str:
        return f"<Account {self.cash / UNIT:.3g} units, level {self.level}, {AccountState(self.state).name}>"

    def packed(self) -> bytes:
        """As it lies on the disk."""
        return _PACKED.pack(self.cash, self.level, self.state, min(self.attempt, 255), min(self.copies, 255))


def unpacked(data: bytes | None) -> Account:
    """An account from the disk; an empty one where there is none."""
    return Account() if data is None else Account(*_PACKED.unpack(data))


def level_of(cash: int) -> int:
    """How urgent a page with this cash is: 0 to `LEVELS` - 1."""
    if cash <= 0:
        return LEVELS - 1
    fours = (cash.bit_length() - UNIT.bit_length()) // 2
    return min(max(LEVEL_OF_UNIT - fours, 0), LEVELS - 1)


def given(account: Account, targets: Sequence[Account]) -> int:
    """A visit: the page gives a unit and all of its cash to these pages in equal parts.

    Returns:
        What goes to the sink: what cannot be divided, and the parts of pages that were visited before, whose order is no question
        any more.
    """
    amount = account.cash + UNIT
    account.cash = 0
    account.state = AccountState.VISITED
    if not targets:
        return amount
    part, sunk = divmod(amount, len(targets))
    for target in targets:
        if target.state == AccountState.VISITED:
            sunk += part
        else:
            target.cash += part
    return sunk
