"""The ledger of a crawl that comes back: each visit leaves the time of the next one in the same group; known pages are
deleted and move with their hosts.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import msgspec

from gossamer.engine.ends import Uses
from gossamer.recrawl import learning
from gossamer.recrawl.learning import CAME, COUNTED, ENDED, HOST, KNOWN, PAGE, PRICE, SCHEDULE, SEEN, TIME, WOKEN
from gossamer.recrawl.policies import Price
from gossamer.recrawl.schedule import SIGNALLED, TELLING, RevisitSchedule
from gossamer.storage.ledger.contract import Group
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.moving import Arc
from gossamer.storage.ledger.parcels import ParcelHead
from gossamer.storage.ledger.providers import LedgerFront
from gossamer.values.hosts import DeletionTarget
from gossamer.values.instants import kind_of
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import KnownPage, after
from gossamer.values.url import host_of, path_of
from gossamer.values.visit import Location, Visit

# Pages that are deleted from a crawl: nothing is known of them any more, and no visit comes back to them. `gossamer delete` calls
# :func:`forget_known` before it takes rows and hosts out of the ledger. It can be killed and called again.


def forget_known(directory: Path, ledgers: Sequence[RocksLedger], target: DeletionTarget, hosts: Sequence[str]) -> int:
    """Take what is known of a target's pages out of the schedule; see `forget` of :class:`~gossamer.engine.subjects.Subject`.
    Raises CrawlDirectoryError: it could not be written."""
    for ledger in ledgers:
        if not ledger.counters().get(KNOWN):
            continue
        ledger.spaces.open(SCHEDULE)
        if target.kind == "url":
            with ledger.group() as group:
                learning.drop_page(group, host_of(target.name), target.name)
            continue
        for host in hosts:
            with ledger.group() as group:
                learning.drop_host(group, host)
    return 0  # what is due is in no queue


# Hosts whose known pages are handed to another agent: their pages come with them, and their turn and their count here. Everything
# that lies under a host moves as any space does (:mod:`gossamer.storage.ledger.parcels`). The rest is made here: :func:`noted` says
# what a parcel tells beside that, :func:`adopt` notes at the taker when each host is to be looked at, and :func:`release` takes
# that away from the giver, before it forgets the host. Each host changes in one group, and says by whom it is counted, so that all
# can be killed and called again.

#: Hosts that change in one group.
_AT_ONCE = 100

#: Stands for no agent in the place of the one that counts a host.
_NOBODY = b"-"

_kept_price = msgspec.msgpack.Decoder(Price)


def noted(giver: RocksLedger) -> dict[str, bytes]:
    """The facts that the taker of domains needs of the giver's schedule: its price, whether it knows pages, or has yet to plan."""
    found = {PRICE: giver.meta(PRICE) or b""}
    if giver.counters().get(KNOWN):
        found[KNOWN] = b"1"
    if learning.is_unplanned(giver):
        found[CAME] = b"1"
    return found


def adopt(taker: RocksLedger, head: ParcelHead, agent: str) -> None:
    """Let a schedule have the hosts of a parcel, whose entries are in its ledger. Raises CrawlDirectoryError: it could not be
    written."""
    if KNOWN in head.notes:
        taker.spaces.open(SCHEDULE)
        for hosts in _in_parts(taker, head.arcs):
            with taker.group() as group:
                for host in hosts:
                    if group.get(SCHEDULE, host, COUNTED) != agent.encode() and _count(group, host, 1):
                        group.put(SCHEDULE, host, COUNTED, agent.encode())
                        if times := group.get(SCHEDULE, host, HOST):
                            group.put(SCHEDULE, None, times[: TIME.size] + host.encode(), b"")
    if CAME in head.notes:
        taker.put_meta(CAME, b"1")
    if taker.meta(PRICE) is None and (kept := head.notes.get(PRICE)):
        price = msgspec.structs.replace(_kept_price.decode(kept), credit=0.0)
        taker.put_meta(PRICE, msgspec.msgpack.encode(price))


def release(giver: RocksLedger, agent: str, arcs: Sequence[Arc]) -> None:
    """Look no more at the hosts of some stretches, before everything that lies under them is forgotten. Raises as
    :func:`adopt`."""
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
        queued += not learning.pages.decode(data).due
    group.count(KNOWN, sign * known)
    group.count(WOKEN, sign * queued)
    return known


def _in_parts(ledger: RocksLedger, arcs: Iterable[Arc]) -> Iterator[list[str]]:
    hosts = chain.from_iterable(ledger.hosts_within(first, last) for first, last in arcs)
    while part := list(islice(hosts, _AT_ONCE)):
        yield part


# The ledger of a crawl that comes back: each visit that ends leaves the time of the next one, in the same group. Stands between
# commit and the ledger, so that a kill loses no page and no stage knows. The count of a second visit is decided here too: a page
# that is visited again is no further page of the crawl.

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
            # No host is believed of the pages of others: that would spend what these have earned.
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
        if before is not None and before.body_at is not None and before.digest == visit.shown_digest:
            return before.body_at
        if not visit.duplicate_of or visit.duplicate_of == visit.url:
            return location
        # The archive keeps the same bytes once, under the URL that brought them first.
        original = self._ledger.revisits.kept(self._group, host_of(visit.duplicate_of), visit.duplicate_of)
        return original.body_at if original is not None and original.digest == visit.shown_digest else location


def _kind(visit: Visit, known: KnownPage) -> str:
    """Which pages of its host it is like, as far as this visit says."""
    if visit.response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return known.kind
    if visit.said:
        return TELLING
    return kind_of(path_of(visit.url), visit.response.header("cache-control"), visit.frequency, is_html=visit.is_page)


class RevisitLedger(LedgerFront):
    """Passes everything on to the ledger, and schedules visited pages for another visit.

    Contract: `storage.ledger.contract.Ledger`.
    """

    revisits: Uses[RevisitSchedule]

    @contextmanager
    def group(self) -> Iterator[Group]:
        with self.behind.group() as group:
            scheduling = _Scheduling(group, self)
            yield cast(Group, scheduling)
        if scheduling.has_staged:
            self.revisits.look()
