"""Takes out of a ledger all that mobile crawlers have of a deleted URL, host or domain.

Place in the flow: `gossamer delete` calls this before the ledger forgets the hosts themselves, while nobody is at work on the
crawl. It can be killed at any point and called again. A crawler that was sent to a host of which something goes counts as lost: it
would bring that home. What else it had with it waits for another one.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.lending import CRAWLERS, LENT
from gossamer.mobile.managing.book import CrawlerBook, CrawlerRecord
from gossamer.model.deletion import DeletionTarget
from gossamer.model.url import host_of
from gossamer.stores.lending.lent import all_lent, drop_lent, put_lent

#: Entries that go in one group.
_AT_ONCE = 1_000

_One = TypeVar("_One")


def forget_lent(ledger: Ledger, target: DeletionTarget) -> int:
    """Take out everything of a target that is lent; returns how many tasks that were.

    Args:
        ledger: open, with no group.
        target: what is deleted.
    """
    counters = ledger.counters()
    if not (counters.get("lent") or counters.get("crawlers_sent")):
        return 0
    ledger.spaces.open(LENT)
    ledger.spaces.open(CRAWLERS)
    book = CrawlerBook(ledger)
    for record in book.away():
        if any(_concerns(target, host) for host in record.hosts):
            _lose(ledger, book, record)
    gone = 0
    for part in _parts(one for one in all_lent(ledger.spaces) if target.has(one.task.url)):
        with ledger.group() as group:
            for one in part:
                drop_lent(one, group)
        gone += sum(not one.is_done for one in part)
    for hosts in _parts(host for host in book.hosts_walked() if target.has_host(host)):
        with ledger.group() as group:
            for host in hosts:
                book.forget_walked(host, group)
    return gone


def _concerns(target: DeletionTarget, host: str) -> bool:
    return target.has_host(host) if target.kind == "host" else host == host_of(target.name)


def _lose(ledger: Ledger, book: CrawlerBook, record: CrawlerRecord) -> None:
    """End a journey, after what it had with it waits again."""
    for part in _parts(one for one in all_lent(ledger.spaces) if one.crawler == record.id):
        with ledger.group() as group:
            for one in part:
                drop_lent(one, group)
                put_lent(msgspec.structs.replace(one, crawler=""), group)
    with ledger.group() as group:
        book.end(record, "lost", group)


def _parts(every: Iterable[_One]) -> Iterator[list[_One]]:
    """Lists of some each; an entry is changed while the rest is read."""
    entries = iter(every)
    while part := list(islice(entries, _AT_ONCE)):
        yield part
