"""The ledger of a crawl by importance: what its groups push waits by the cash of its page, and visits move the cash.

Place in the flow: stands between commit, frontier and the ledger, so that cash moves in the group that keeps the visit. A kill
loses and makes none, and no stage knows. A page that gets more cash while it waits is queued again at a more urgent level; the
queues (:mod:`gossamer.stores.opic.queues`) drop what is left of it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from xxhash import xxh3_64_digest

from gossamer.contracts.ledger import Group
from gossamer.contracts.spaces import Space
from gossamer.flow.sheet import NoSettings
from gossamer.model.leading import task_of
from gossamer.model.task import Task, with_level
from gossamer.model.url import host_of
from gossamer.model.visit import Link, Location, Visit
from gossamer.stores.fronting import LedgerFront
from gossamer.stores.opic.accounts import ACCOUNT_BYTES, Account, AccountState, given, level_of, unpacked

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
        """Queue tasks, when it is known what cash their pages have."""
        self._pushed += tasks

    def later(self, task: Task, due: float, *, known: bool = False) -> None:
        """Queue a task from a time on: what was queued of its page before does not count any more."""
        account = self._account(task.host, task.identity)
        account.state, account.attempt = AccountState.QUEUED, task.attempt
        self._group.later(task, due, known=known)

    def visited(self, visit: Visit, location: Location | None) -> bool:
        """Keep a visit; its page gives away its cash."""
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
        """The account of a page, which will be written."""
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
        known = (self._raised(key, source, link) for key, (source, link) in links.items() if key not in pushed)
        raised = [task for task in known if task is not None]
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
            return task  # whoever asks for more than a URL has said how urgent it is
        account = self._account(task.host, task.identity)
        account.level = level_of(account.cash)
        return with_level(task, account.level)

    def _raised(self, key: _Key, source: Task, link: Link) -> Task | None:
        """The task of a page that waits less urgently than it should; None for any other."""
        account = self._changed[key]
        level = level_of(account.cash)
        is_waiting = account.state == AccountState.QUEUED and account.attempt == 1 and link.request is None
        if not is_waiting or level >= account.level or account.copies == 255:
            return None
        account.level = level
        account.copies += 1
        return with_level(task_of(source, link.url, link.relation), level)


class OpicLedger(LedgerFront):
    """Passes everything on to the ledger, except that tasks of its groups are queued by their OPIC cash. Contract:
    `ledger.Ledger`."""

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._remembered: dict[_Key, Account] = {}

    async def start(self) -> None:
        """Go on with the accounts of the ledger."""
        self.open()

    def open(self) -> None:
        """Open the space of the accounts."""
        self.spaces.open(ACCOUNTS)

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger; cash moves when its block ends."""
        with self.weighing() as group:
            yield cast(Group, group)

    @contextmanager
    def weighing(self) -> Iterator[_Weighing]:
        """The same, for the queues."""
        if len(self._remembered) > REMEMBERED:
            self._remembered.clear()
        try:
            with self.behind.group() as group:
                weighing = _Weighing(group, self._remembered)
                yield weighing
                weighing.settle()
        except BaseException:
            # What was changed in memory is not on the disk.
            self._remembered.clear()
            raise

    def account(self, task: Task) -> Account:
        """What is kept of a task's page. Change nothing of it."""
        key = key_of(task.host, task.identity)
        account = self._remembered.get(key)
        if account is None:
            account = unpacked(self.spaces.get(ACCOUNTS, *key))
            if account.state == AccountState.QUEUED:
                self._remembered[key] = account
        return account

    def total(self, name: bytes) -> int:
        """What the groups have added up under :data:`SINK` or :data:`UNITS`."""
        return int.from_bytes(self.spaces.get(ACCOUNTS, None, name) or b"")
