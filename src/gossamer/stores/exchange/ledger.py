"""The ledger of an agent among several: what its groups push is queued here, or owed to the agent whose it is.

    commit, frontier ── push ──► `divided-ledger` ──► the ledger's queues, where the host is ours
                                        └───────────► the outbox, where it is another agent's

Place in the flow: the wiring of an agent puts it between the stages and the ledger; no stage knows of it. What is owed is seen
here like anything else, so that a link is sent once, however often it is met; the table of recent and popular URLs in front of
the seen set is what spares the look-up.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from gossamer.contracts.exchanging import OwedTask, OwesUrls
from gossamer.contracts.ledger import Group, Tallied
from gossamer.flow.ports import Uses
from gossamer.model.kept import Meeting
from gossamer.model.task import Task
from gossamer.stores.fronting import LedgerFront


class _Dividing:
    """A group that owes what is not ours. Everything else is the group's own."""

    def __init__(self, group: Group, outbox: OwesUrls, owed: list[OwedTask]) -> None:
        """A group that puts what it owes into `owed` too."""
        self._group = group
        self._outbox = outbox
        self._owed = owed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks of our hosts, and owe the others; these are discovered where they are committed."""
        ours: list[Task] = []
        others: list[Task] = []
        known: dict[str, bool] = {}
        for task in tasks:
            is_ours = known.get(task.host)
            if is_ours is None:
                is_ours = known[task.host] = self._outbox.is_ours(task.host)
            (ours if is_ours else others).append(task)
        self._group.push(ours)
        if others:
            self._owed += self._outbox.owe(others, self._group)

    def meet(self, tasks: Iterable[Task]) -> Meeting:
        """Check and put with depths. A nearer way to another agent's URL is told to that agent, which knows what lies behind it."""
        meeting = self._group.meet(tasks)
        others = [task for task in meeting.nearer if not self._outbox.is_ours(task.host)]
        if others:
            self._owed += self._outbox.owe(others, self._group)
            meeting = Meeting(meeting.new, [task for task in meeting.nearer if self._outbox.is_ours(task.host)])
        return meeting

    def tally(self, what: Tallied, name: str, add: int = 0) -> int:
        """Add to a tally. Another agent keeps the tallies of its hosts: here they are never the first, and never many."""
        return self._group.tally(what, name, add) if self._outbox.is_ours(name) else 2 * add


class DividedLedger(LedgerFront):
    """Passes everything on to the ledger, except the tasks that its groups push. Contract: `ledger.Ledger`."""

    outbox: Uses[OwesUrls]

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger; what it owes is told to the outbox when it is kept."""
        owed: list[OwedTask] = []
        try:
            with self.behind.group() as group:
                yield cast(Group, _Dividing(group, self.outbox, owed))
        except BaseException:
            # A write that failed may have reached the disk yet: then the outbox finds it there.
            self.outbox.kept(owed, is_sure=False)
            raise
        self.outbox.kept(owed)
