"""What a ledger forgets when files are lost: rows of answers that are gone, and digests by which others would refer to them.

Place in the flow: a crawl that goes on with `--accept-loss` calls :func:`forget` before it works. Their URLs are queued again.
It can be killed at any point and called again: the ends of the files are given up last, and tell it what was lost.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from gossamer.model.kept import DocumentRow
from gossamer.model.outcome import Outcome
from gossamer.model.visit import Location
from gossamer.stores.ledger.ledger import RocksLedger

T = TypeVar("T")

#: Rows that are forgotten in one batch.
_AT_ONCE = 1_000


def forget(ledger: RocksLedger, is_gone: Callable[[Location], bool], ends: Mapping[str, int | None]) -> int:
    """Forget what lay at places that are gone; returns how many URLs are fetched again.

    A digest is kept only where the row of its owner shows a record with it that is there: one that is forgotten for nothing costs
    one more copy of a document, one that is kept for nothing would cost the document.

    A request that was no plain GET is not repeated, whatever became of its answer.

    Args:
        ledger: open, with no group.
        is_gone: whether the record at a place cannot be read any more.
        ends: file -> where what is left of it ends; None where it is gone.

    Raises:
        CrawlDirectoryError: it could not be written.
    """
    for digests in _parts(_ownerless(ledger, is_gone), _AT_ONCE):
        with ledger.group() as group:
            for digest in digests:
                group.disown(digest)
    again = 0
    for rows in _parts(_lost(ledger, is_gone), _AT_ONCE):
        again += sum(not row.mark for row in rows)
        with ledger.group() as group:
            for row in rows:
                group.undo(row)
    ledger.give_up_ends(ends)
    return again


def _parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def _ownerless(ledger: RocksLedger, is_gone: Callable[[Location], bool]) -> Iterator[str]:
    for digest, url in ledger.contents.all():
        row = ledger.document(url)
        if row is None or row.digest != digest or row.location is None or is_gone(row.location):
            yield digest


def _lost(ledger: RocksLedger, is_gone: Callable[[Location], bool]) -> Iterator[DocumentRow]:
    """Rows whose record is gone, or refers to one that may be."""
    for row in ledger.documents():
        if row.location is None:
            continue
        refers = row.outcome is Outcome.NOT_MODIFIED or (row.duplicate_of and not ledger.contents.owner(row.digest))
        if refers or is_gone(row.location):
            yield row
