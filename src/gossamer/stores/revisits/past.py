"""Pages that a crawl visited when nobody kept a schedule.

Place in the flow: where a crawl gets a schedule later (`gossamer resume DIR --recrawl ...`), the schedule of known pages
(:mod:`~gossamer.stores.revisits.schedule`) plans them step by step.
"""

from collections.abc import Sequence

from gossamer.model.kept import DocumentRow
from gossamer.model.known import KnownPage
from gossamer.model.outcome import Outcome
from gossamer.model.visit import HTML_TYPES
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.revisits.index import CAME, UNPLANNED, unplanned_visits

#: Rows that are read at once, so that the crawl goes on meanwhile.
_AT_ONCE = 500


class PastVisits:
    """Rows of documents in the ledger, some at a time. A run that is killed begins anew, and its schedule knows what it has."""

    def __init__(self, store: RocksLedger) -> None:
        self._store = store
        self._after = b""

    def __repr__(self) -> str:
        return f"<PastVisits after {self._after!r}>"

    def take(self) -> Sequence[DocumentRow] | None:
        """Those of the next rows whose pages can be visited again; None where no row is left."""
        rows, self._after = self._store.documents_after(self._after, _AT_ONCE)
        if not rows:
            return None
        return [row for row in rows if not row.mark and row.outcome in (Outcome.OK, Outcome.TRUNCATED)]

    def end(self) -> None:
        """Keep that all of them are planned."""
        self._store.put_meta(UNPLANNED, str(unplanned_visits(self._store)).encode())
        self._store.put_meta(CAME, b"")


def as_known(row: DocumentRow, now: float) -> KnownPage:
    """What the row of a document says of its page; `now` bounds the time of the visit, since the clock may have been ahead."""
    visited = min(row.fetched_at, now)
    return KnownPage(
        visited_at=visited, changed_at=visited, digest=row.digest, is_page=row.mime in HTML_TYPES, body_at=row.location
    )
