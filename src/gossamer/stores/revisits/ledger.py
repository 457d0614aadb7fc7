"""The ledger of a crawl that comes back: each visit that ends leaves the time of the next one, in the same group.

Place in the flow: stands between commit and the ledger, so that a kill loses no page and no stage knows. What a second visit
counts as is said here too: a page that is visited again is no further page of the crawl.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from gossamer.contracts.ledger import Group
from gossamer.flow.ports import Uses
from gossamer.model.known import after
from gossamer.model.task import REVISIT
from gossamer.model.visit import Location, Visit
from gossamer.stores.fronting import LedgerFront
from gossamer.stores.revisits.schedule import ENDED, SEEN, RevisitSchedule


class _Scheduling:
    """A group whose visits leave a time. Everything else is the group's own."""

    def __init__(self, group: Group, ledger: "RevisitLedger") -> None:
        self._group = group
        self._ledger = ledger
        self.has_staged = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    def tried(self, visit: Visit) -> None:
        """Add a request to the counters, whatever becomes of its task."""
        self._group.tried(visit)
        self._group.count(SEEN)

    def visited(self, visit: Visit, location: Location | None) -> bool:
        """Keep a visit, and when its page is visited again."""
        is_again = visit.task.relation == REVISIT
        row = self._ledger.document(visit.url) if is_again else None
        told = visit
        if row is not None:
            # The row says how the page was found, not that it was known.
            told = msgspec.structs.replace(visit, task=msgspec.structs.replace(visit.task, relation=row.relation))
        if not self._group.visited(told, location):
            return False
        self._group.count(SEEN)
        if is_again:
            self._group.count(ENDED)
        if visit.task.is_marked or visit.is_robots:
            return True
        schedule, host, now = self._ledger.revisits, visit.task.host, self._ledger.clock.steady()
        before = schedule.kept(self._group, host, visit.url)
        if before is not None and before.is_page and visit.is_page:
            self._group.count("pages", -1)
        known = after(before, visit, now)
        if known is not None:
            if before is None:
                known = msgspec.structs.replace(known, level=visit.task.level)
            schedule.put(self._group, host, visit.url, known)
            self.has_staged = True
        return True


class RevisitLedger(LedgerFront):
    """The ledger, but what is visited is visited again. Contract: `ledger.Ledger`."""

    revisits: Uses[RevisitSchedule]

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger; its visits leave times."""
        with self.behind.group() as group:
            scheduling = _Scheduling(group, self)
            yield cast(Group, scheduling)
        if scheduling.has_staged:
            self.revisits.applied()
