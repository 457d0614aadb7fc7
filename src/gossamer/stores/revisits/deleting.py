"""Pages that are deleted from a crawl: nothing is known of them any more, and nobody comes back to them.

Place in the flow: `gossamer delete` calls :func:`forget_known` before it takes rows and hosts out of the ledger. It can be killed
and called again.
"""

from collections.abc import Iterable

from gossamer.model.deletion import DeletionTarget
from gossamer.model.url import host_of
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.revisits.index import KNOWN, SCHEDULE, drop_host, drop_page


def forget_known(ledger: RocksLedger, target: DeletionTarget, hosts: Iterable[str]) -> None:
    """Take what is known of a target's pages out of the schedule.

    Args:
        ledger: open, with no group.
        target: what is deleted.
        hosts: those that go whole.

    Raises:
        CrawlDirectoryError: it could not be written.
    """
    if not ledger.counters().get(KNOWN):
        return
    ledger.spaces.open(SCHEDULE)
    if target.kind == "url":
        with ledger.group() as group:
            drop_page(group, host_of(target.name), target.name)
        return
    for host in hosts:
        with ledger.group() as group:
            drop_host(group, host)
