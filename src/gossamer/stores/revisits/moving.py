"""Hosts whose known pages are handed to another agent: their pages come with them, and their turn and their count here.

Place in the flow: where agents join a crawl or leave it, everything that lies under a host is copied as any space is
(:mod:`gossamer.stores.ledger.moving`). The rest is made here: :func:`adopt` notes at the taker when each host is to be looked at,
:func:`release` takes that away from the giver, before it forgets the host. Each host changes in one group, and says by whom it is
counted, so that both can be killed and called again.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from gossamer.contracts.ledger import Group
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.ledger.moving import Arc
from gossamer.stores.revisits.index import (
    CAME,
    COUNTED,
    HOST,
    KNOWN,
    PAGE,
    PRICE,
    SCHEDULE,
    TIME,
    WOKEN,
    is_unplanned,
    pages,
)
from gossamer.stores.revisits.pricing import Price

#: Hosts that change in one group.
_AT_ONCE = 100

#: Stands for no agent in the place of the one that counts a host.
_NOBODY = b"-"

_kept_price = msgspec.msgpack.Decoder(Price)


def adopt(taker: RocksLedger, giver: RocksLedger, agent: str, arcs: Sequence[Arc]) -> None:
    """Let a schedule have the hosts of some stretches of the circle, whose entries were copied into its ledger.

    Args:
        taker: open, at rest.
        giver: likewise.
        agent: the taker's name.
        arcs: the stretches.

    Raises:
        CrawlDirectoryError: it could not be written.
    """
    if giver.counters().get(KNOWN):
        taker.spaces.open(SCHEDULE)
        for hosts in _in_parts(taker, arcs):
            with taker.group() as group:
                for host in hosts:
                    if group.get(SCHEDULE, host, COUNTED) != agent.encode() and _count(group, host, 1):
                        group.put(SCHEDULE, host, COUNTED, agent.encode())
                        if times := group.get(SCHEDULE, host, HOST):
                            group.put(SCHEDULE, None, times[: TIME.size] + host.encode(), b"")
    if is_unplanned(giver):
        taker.put_meta(CAME, b"1")
    if taker.meta(PRICE) is None and (kept := giver.meta(PRICE)) is not None:
        price = msgspec.structs.replace(_kept_price.decode(kept), credit=0.0)
        taker.put_meta(PRICE, msgspec.msgpack.encode(price))


def release(giver: RocksLedger, agent: str, arcs: Sequence[Arc]) -> None:
    """Look no more at the hosts of some stretches, before everything that lies under them is forgotten. Arguments and errors are
    those of :func:`adopt`."""
    _let_go(giver, arcs, (None, agent.encode()))


def disown(taker: RocksLedger, agent: str, arcs: Sequence[Arc]) -> None:
    """Undo an :func:`adopt` that may not have been finished, or not even begun."""
    _let_go(taker, arcs, (agent.encode(),))


def _let_go(ledger: RocksLedger, arcs: Sequence[Arc], by: Sequence[bytes | None]) -> None:
    """Look no more at hosts that are counted by one of these; None says that the first agent that knew them counts them."""
    if not ledger.counters().get(KNOWN):
        return
    ledger.spaces.open(SCHEDULE)
    for hosts in _in_parts(ledger, arcs):
        with ledger.group() as group:
            for host in hosts:
                if group.get(SCHEDULE, host, COUNTED) in by and _count(group, host, -1):
                    group.put(SCHEDULE, host, COUNTED, _NOBODY)
                    if times := group.get(SCHEDULE, host, HOST):
                        group.delete(SCHEDULE, None, times[: TIME.size] + host.encode())


def _count(group: Group, host: str, sign: int) -> int:
    """Add the known pages of a host to the counters, or take them from these; returns how many there are."""
    known = queued = 0
    for _, data in group.scan(SCHEDULE, host, PAGE):
        known += 1
        queued += not pages.decode(data).due
    group.count(KNOWN, sign * known)
    group.count(WOKEN, sign * queued)
    return known


def _in_parts(ledger: RocksLedger, arcs: Iterable[Arc]) -> Iterator[list[str]]:
    hosts = chain.from_iterable(ledger.hosts_within(first, last) for first, last in arcs)
    while part := list(islice(hosts, _AT_ONCE)):
        yield part
