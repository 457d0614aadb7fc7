"""Importance while the crawl runs (Abiteboul, Preda, Cobena 2003; row S1): accounts of cash, queues and a ledger in front of the
crawl's own.

Place in the flow: `--strategy opic` puts them between commit, frontier and the ledger, so that cash moves in the group that keeps
the visit: a kill loses and makes none, and no stage knows. The links of a page wait by its cash, and each visit moves cash.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, cast

import msgspec
from xxhash import xxh3_64_digest

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings
from gossamer.frontier.contract import LEVELS
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.providers import LedgerFront, QueuesFront
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task, task_of, with_level
from gossamer.values.url import host_of
from gossamer.values.visit import Link, Location, Visit

# Accounts of cash: what a page has, what a visit gives to whom, and how urgent that makes a page. Pure code, in whole numbers.
#
# Cash is never lost or made: that of all accounts and of the sink is one :data:`UNIT` for each visit.

#: The cash that a visit brings: divided among links and links of links, a share is still a whole number.
UNIT = 1 << 32

#: A page whose cash is one unit stands at this level; each level above it takes four times the cash. On simulated webs finer levels
#: found no more importance in the first tenth of the pages, and queued a page twice as often (docs/benchmarks.md).
LEVEL_OF_UNIT = 4

#: Cash, level, state, attempt, copies.
_PACKED = struct.Struct("<QBBBB")

#: Bytes of an account on the disk, beside its key.
ACCOUNT_BYTES = _PACKED.size


class AccountState(IntEnum):
    """The fate of the page."""

    MET = 0
    """Linked to; it is not queued here, as where a filter refuses it."""
    QUEUED = 1
    VISITED = 2


class Account(msgspec.Struct, gc=False):
    """The account of one page."""

    cash: int = 0
    level: int = LEVELS - 1
    """Of its most urgent task."""
    state: int = AccountState.MET
    attempt: int = 1
    """Of its latest task."""
    copies: int = 0
    """Tasks that wait beside the one that will be fetched: it was queued again, more urgently."""

    def packed(self) -> bytes:
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


# In front of the ledger. A page that gets more cash while it waits is queued again at a more urgent level; the queues drop what
# is left of it.


#: Accounts by host and URL; under no host what is in the sink, and how many units came in.
ACCOUNTS = Space("opic", value_bytes=max(16, ACCOUNT_BYTES), host_bytes=1 << 40)

SINK, UNITS = b"sink", b"units"

#: Accounts in memory, 250 bytes each. Menus of a site are on all of its pages.
REMEMBERED = 65_536

_Key = tuple[str, bytes]


def key_of(host: str, identity: str) -> _Key:
    """Where the account of a page lies."""
    return host, xxh3_64_digest(identity.encode())


class _Weighing:
    """A group in which cash moves. Everything else is the group's own."""

    def __init__(self, group: Group, remembered: dict[_Key, Account]) -> None:
        self._group = group
        self._remembered = remembered
        self._changed: dict[_Key, Account] = {}
        self._pushed: list[Task] = []
        self._visits: list[Visit] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def push(self, tasks: Iterable[Task]) -> None:
        self._pushed += tasks

    def later(self, task: Task, due: float, *, known: bool = False) -> None:
        """Queue a task from a time on: an earlier task of its page does not count any more."""
        account = self._account(task.host, task.identity)
        account.state, account.attempt = AccountState.QUEUED, task.attempt
        self._group.later(task, due, known=known)

    def visited(self, visit: Visit, location: Location | None) -> bool:
        is_kept = self._group.visited(visit, location)
        if is_kept:
            self._visits.append(visit)
        return is_kept

    def dropped(self, task: Task) -> None:
        """A copy of a task is out of the queues."""
        if self._group.done(task.identity):
            account = self._account(task.host, task.identity)
            account.copies = max(0, account.copies - 1)

    def _account(self, host: str, identity: str) -> Account:
        key = key_of(host, identity)
        account = self._changed[key] = self._known(key)
        return account

    def _known(self, key: _Key) -> Account:
        account = self._remembered.get(key)
        if account is None:
            account = self._remembered[key] = unpacked(self._group.get(ACCOUNTS, *key))
        return account

    def settle(self) -> None:
        """Move the cash, then queue."""
        pushed: dict[_Key, Account] = {}
        for task in self._pushed:
            account = self._account(task.host, task.identity)
            account.state, account.attempt = AccountState.QUEUED, task.attempt
            pushed[key_of(task.host, task.identity)] = account
        links: dict[_Key, tuple[Task, Link]] = {}
        sunk = sum(self._give(visit, links) for visit in self._visits)
        if self._visits:
            self._add(SINK, sunk)
            self._add(UNITS, len(self._visits))
        self._group.push(map(self._levelled, self._pushed))
        raised = []
        for key, (source, link) in links.items():
            # A page that waits less urgently than it should is queued again.
            account = self._changed[key]
            level = level_of(account.cash)
            is_waiting = account.state == AccountState.QUEUED and account.attempt == 1 and link.request is None
            if key not in pushed and is_waiting and level < account.level and account.copies < 255:
                account.level = level
                account.copies += 1
                raised.append(with_level(task_of(source, link.url, link.relation), level))
        if raised:
            self._group.push(raised)
            # They were discovered when they were queued first.
            self._group.count("discovered", -len(raised))
            self._group.count("moved_up", len(raised))
        for (host, name), account in self._changed.items():
            self._group.put(ACCOUNTS, host, name, account.packed())

    def _give(self, visit: Visit, links: dict[_Key, tuple[Task, Link]]) -> int:
        own = key_of(visit.task.host, visit.task.identity)
        targets: dict[_Key, Account] = {}
        for link in visit.links:
            key = key_of(host_of(link.url), link.identity)
            if key == own or key in targets:
                continue
            account = targets[key] = self._known(key)
            if account.state != AccountState.VISITED:
                self._changed[key] = account
                links[key] = visit.task, link
        return given(self._account(visit.task.host, visit.task.identity), list(targets.values()))

    def _add(self, name: bytes, number: int) -> None:
        kept = int.from_bytes(self._group.get(ACCOUNTS, None, name) or b"")
        self._group.put(ACCOUNTS, None, name, (kept + number).to_bytes(16))

    def _levelled(self, task: Task) -> Task:
        if task.request is not None:
            return task  # a request for more than a URL says how urgent it is
        account = self._account(task.host, task.identity)
        account.level = level_of(account.cash)
        return with_level(task, account.level)


class OpicLedger(LedgerFront):
    """Passes everything on to the ledger, except that tasks of its groups are queued by their OPIC cash. Contract:
    `storage.ledger.contract.Ledger`."""

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._remembered: dict[_Key, Account] = {}

    async def start(self) -> None:
        self.open()

    def open(self) -> None:
        self.spaces.open(ACCOUNTS)

    @contextmanager
    def group(self) -> Iterator[Group]:
        if len(self._remembered) > REMEMBERED:
            self._remembered.clear()
        try:
            with self.behind.group() as group:
                weighing = _Weighing(group, self._remembered)
                yield cast(Group, weighing)
                weighing.settle()
        except BaseException:
            # The changes in memory are not on the disk.
            self._remembered.clear()
            raise

    def account(self, task: Task) -> Account:
        """The account of a task's page. Change nothing of it."""
        key = key_of(task.host, task.identity)
        account = self._remembered.get(key)
        if account is None:
            account = unpacked(self.spaces.get(ACCOUNTS, *key))
            if account.state == AccountState.QUEUED:
                self._remembered[key] = account
        return account

    def total(self, name: bytes) -> int:
        """The sum of the groups under :data:`SINK` or :data:`UNITS`."""
        return int.from_bytes(self.spaces.get(ACCOUNTS, None, name) or b"")


# Task queues in which a page may wait more than once, since its importance grew: the most urgent task counts, the others are
# dropped.


class OpicQueues(QueuesFront[NoSettings]):
    """Hands out each page once from the queues behind it, ordered by OPIC cash. Contract: `storage.ledger.contract.TaskQueues`."""

    ledger: Uses[OpicLedger]
    store: Uses[RocksLedger]

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._dropped: list[Task] = []

    async def stop(self) -> None:
        self._end_copies()

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        self._end_copies()
        return self.behind.admit(now, most)

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host whose pages are neither in flight nor visited. None: the host is held no more."""
        while tasks := self.behind.pop(host, most):
            taken = []
            for task in tasks:
                if self._is_copy(task):
                    self._dropped.append(task)
                else:
                    taken.append(task)
            if taken:
                return taken
        self._end_copies()
        return []

    def _is_copy(self, task: Task) -> bool:
        """Whether another task of this page was popped before this one, or will be: this one is not needed."""
        account = self.ledger.account(task)
        if not account.copies:
            return False
        is_elsewhere = self.store.queues.flights(task.identity) > 1
        return is_elsewhere or account.state == AccountState.VISITED or account.attempt > task.attempt

    def _end_copies(self) -> None:
        """Dropped tasks are out of the queues for good."""
        if self._dropped:
            dropped, self._dropped = self._dropped, []
            with self.ledger.group() as group:
                for task in dropped:
                    cast(_Weighing, group).dropped(task)

    def wake(self, now: float) -> int:
        self._end_copies()
        return self.behind.wake(now)
