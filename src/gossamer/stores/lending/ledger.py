"""The ledger of a crawl that sends crawlers: URLs of lent hosts are given to these, all others are queued as ever.

    commit, frontier ── push ──► `lending-ledger` ──► the ledger's queues, where we fetch
                                        └───────────► what is lent, where a crawler does

Place in the flow: the wiring puts it between the stages and the ledger; no stage knows of it. Among several agents it stands behind
the divided ledger: what is lent is ours.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from gossamer.contracts.ledger import Group
from gossamer.contracts.lending import Lender
from gossamer.flow.ports import Uses
from gossamer.model.kept import Meeting
from gossamer.model.task import ROBOTS, Task
from gossamer.model.visit import Location, Visit
from gossamer.stores.fronting import LedgerFront


class _Lending:
    """A group that lends what is not fetched from here. Everything else is the group's own."""

    def __init__(self, group: Group, lent: Lender) -> None:
        self._group = group
        self._lent = lent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks, and lend those of lent hosts; a URL is discovered in either case."""
        queued: list[Task] = []
        lent: list[Task] = []
        for task in tasks:
            (lent if self._is_lent(task) else queued).append(task)
        self._group.push(queued)
        if lent:
            self._group.count("discovered", len(lent))
            self._lent.lend(lent, self._group)

    def meet(self, tasks: Iterable[Task]) -> Meeting:
        """Check and put with depths. A nearer way to a URL of a lent host is a new errand for a crawler: what lies behind it is
        known at the runtime alone."""
        meeting = self._group.meet(tasks)
        lent = [task for task in meeting.nearer if self._is_lent(task)]
        if lent:
            self._lent.lend(lent, self._group)
            meeting = Meeting(meeting.new, [task for task in meeting.nearer if not self._is_lent(task)])
        return meeting

    def visited(self, visit: Visit, location: Location | None) -> bool:
        """Keep the row of a visit; one that a crawler brought was lent until now."""
        is_kept = self._group.visited(visit, location)
        if is_kept and (brought := visit.response.brought) is not None:
            knows_links = brought.form in ("whole", "row") or bool(visit.links or visit.refused)
            self._lent.brought(visit.task, brought.crawler, self._group, knows_links=knows_links)
        return is_kept

    def _is_lent(self, task: Task) -> bool:
        return task.request is None and task.relation != ROBOTS and self._lent.lends(task.host)


class LendingLedger(LedgerFront):
    """Passes everything on to the ledger except tasks of lent hosts, which it gives to the lender. Contract: `ledger.Ledger`."""

    lent: Uses[Lender]

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger."""
        with self.behind.group() as group:
            yield cast(Group, _Lending(group, self.lent))
