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
from gossamer.model.claims import kind_of
from gossamer.model.known import KnownPage, after
from gossamer.model.outcome import Outcome
from gossamer.model.url import host_of, path_of
from gossamer.model.visit import Location, Visit
from gossamer.stores.fronting import LedgerFront
from gossamer.stores.revisits.index import ENDED, SEEN
from gossamer.stores.revisits.schedule import SIGNALLED, TELLING, RevisitSchedule

#: Weight of the last visit in the mean number of new URLs that visits of a page bring.
_NEWEST = 0.3


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
        is_again = visit.task.is_revisit
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
        for url, said in visit.said:
            # Nobody is believed of the pages of others: that would spend what these have earned.
            if host_of(url) == host and schedule.told(self._group, host, url, said, now):
                self._group.count(SIGNALLED)
        known = after(before, visit, now)
        if known is not None:
            kind = known.kind if known.kind.startswith("said-") and not visit.frequency else _kind(visit, known)
            level = visit.task.level if before is None else known.level
            brought = 0.0 if before is None else before.brought + _NEWEST * (len(visit.new) - before.brought)
            at = self._body_at(visit, location, before)
            known = msgspec.structs.replace(known, kind=kind, level=level, brought=brought, body_at=at)
            schedule.put(self._group, host, visit.url, known, before)
            self.has_staged = True
        return True

    def _body_at(self, visit: Visit, location: Location | None, before: KnownPage | None) -> Location | None:
        """Where the archive keeps the document that is known of the page now."""
        if visit.response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
            return None if before is None else before.body_at
        if before is not None and before.body_at is not None and before.digest == visit.digest:
            return before.body_at
        if not visit.duplicate_of or visit.duplicate_of == visit.url:
            return location
        # The archive keeps the same bytes once, under the URL that brought them first.
        original = self._ledger.revisits.kept(self._group, host_of(visit.duplicate_of), visit.duplicate_of)
        return original.body_at if original is not None and original.digest == visit.digest else location


def _kind(visit: Visit, known: KnownPage) -> str:
    """Which pages of its host it is like, as far as this visit says."""
    if visit.response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return known.kind
    if visit.said:
        return TELLING
    return kind_of(path_of(visit.url), visit.response.header("cache-control"), visit.frequency, is_html=visit.is_page)


class RevisitLedger(LedgerFront):
    """Passes everything on to the ledger, and schedules visited pages for another visit. Contract: `ledger.Ledger`."""

    revisits: Uses[RevisitSchedule]

    @contextmanager
    def group(self) -> Iterator[Group]:
        """Open a group of the ledger; its visits leave times."""
        with self.behind.group() as group:
            scheduling = _Scheduling(group, self)
            yield cast(Group, scheduling)
        if scheduling.has_staged:
            self.revisits.applied()
