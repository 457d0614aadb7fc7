"""Records of the archive that lie elsewhere from now on: the rows of a ledger follow them, and so do the ends of its files.

Place in the flow: `gossamer trim` calls :func:`move` with a ledger that it alone has open, and of which nothing is in flight. It
can be killed at any point and called again: the files of before count until no row names them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

import msgspec

from gossamer.model.kept import DocumentRow
from gossamer.model.visit import Location
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.warc_records import uri_field

T = TypeVar("T")

#: Rows that are written in one batch.
_AT_ONCE = 1_000

_rows = msgspec.msgpack.Decoder(DocumentRow)
_encode = msgspec.msgpack.Encoder().encode


def move(
    ledger: RocksLedger,
    place: Callable[[Location], Location | None],
    new: Mapping[str, int],
    old: Iterable[str],
    lost: Iterable[tuple[str, str]],
) -> None:
    """Let the rows of a ledger name the new places of their records.

    Args:
        ledger: open, with no group and nothing popped.
        place: where a record lies from now on; None where it does not move.
        new: the files that records moved to, and their bytes.
        old: the files that records left.
        lost: digests of documents of which the archive has no record any more under a URL, and that URL as the archive writes it:
            who meets such bytes next keeps them.

    Raises:
        CrawlDirectoryError: it could not be written.
    """
    ledger.give_up_ends(dict(new))
    for part in _parts((digest for digest, uri in lost if uri_field(ledger.contents.owner(digest)) == uri)):
        with ledger.group() as group:
            for digest in part:
                group.disown(digest)
    ledger.flush_moves()
    with ledger.rewriting() as (store, _, count):
        moved = (
            (key, msgspec.structs.replace(row, location=there))
            for key, data in store.scan("documents", b"", b"\xff" * 32)
            if (row := _rows.decode(data)).location is not None and (there := place(row.location)) is not None
        )
        for rows in _parts(moved):
            batch = store.batch()
            for key, row in rows:
                batch.put("documents", key, _encode(row))
            count(batch, {}, 0)
    ends = ledger.committed_ends()
    ledger.give_up_ends({file: None for file in old if file in ends})


def _parts(items: Iterator[T]) -> Iterator[list[T]]:
    while part := list(islice(items, _AT_ONCE)):
        yield part
