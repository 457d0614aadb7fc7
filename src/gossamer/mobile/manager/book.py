"""Outbox and inbox of the crawler manager, in the ledger: every crawler that is on its way, with the batch that is next.

Place in the flow: the manager puts a crawler here before it is sent, and moves its next sequence on in the group that has the
last of a batch. So a batch is committed once, whatever is killed, and a later process goes on with the crawlers that are away.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from gossamer.frontier.seams import CRAWLERS, LAST_CRAWLER, LENT, LastCrawler
from gossamer.mobile.manager.lent import all_lent, drop_lent, put_lent
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.values.hosts import DeletionTarget
from gossamer.values.url import host_of

_encode = msgspec.msgpack.Encoder().encode

#: What keys of crawlers, and of what is remembered of hosts, begin with.
_CRAWLER, _WALKED = b"c", b"w"


class CrawlerRecord(msgspec.Struct, frozen=True):
    """A crawler that is on its way."""

    id: str
    runtime: str
    hosts: tuple[str, ...]
    """Home accepts URLs of these alone."""
    data: bytes
    """As it is sent."""
    made: float
    """Steady time at which it was made, in seconds; so are the next two."""
    until: float
    """The lease: if nothing was heard of the runtime by then, the crawler is lost."""
    ends: float
    """When its journey is over, whatever the runtime says."""
    next: int = 0
    """The sequence of the batch that is taken in next."""
    pages: int = 0
    """Pages that came home."""
    share: int = 0
    """Pages of a limited crawl that it may bring; 0 where there is no limit."""
    bytes: int = 0
    """Bytes of the batches that came home, unpacked."""
    external: int = 0
    """URLs out of its hosts that came home."""

    @property
    def is_heard(self) -> bool:
        """Whether anything came of it."""
        return self.next > 0


_decode = msgspec.msgpack.Decoder(CrawlerRecord).decode


class CrawlerBook:
    """The crawlers of one ledger. Its counter `crawlers_away` says how many are on their way."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def away(self) -> list[CrawlerRecord]:
        """All crawlers that are on their way."""
        return [_decode(value) for _, value in self._ledger.spaces.scan(CRAWLERS, None, _CRAWLER)]

    def put(self, record: CrawlerRecord, group: Group) -> bool:
        """Stage a crawler, new or moved on; False where there is no room for one more."""
        is_new = group.get(CRAWLERS, None, _CRAWLER + record.id.encode()) is None
        if not group.put(CRAWLERS, None, _CRAWLER + record.id.encode(), _encode(record)):
            return False
        group.count("crawlers_away", is_new)
        group.count("crawlers_sent", is_new)
        return True

    def end(self, record: CrawlerRecord, fate: str, group: Group) -> None:
        """Stage the end of a crawler's journey: `home`, `cut`, `lost` or `refused`."""
        group.delete(CRAWLERS, None, _CRAWLER + record.id.encode())
        group.count("crawlers_away", -1)
        if fate in ("home", "cut"):
            for host in record.hosts:
                group.put(CRAWLERS, host, LAST_CRAWLER, _encode(LastCrawler(record.id, record.runtime)))
        group.count(f"crawlers:{fate}")

    def walked(self, host: str) -> int:
        """Pages of a host that crawlers visited until the limit of the whole crawl ended them: the next one passes them again."""
        return int.from_bytes(self._ledger.spaces.get(CRAWLERS, None, _WALKED + host.encode()[:500]) or b"")

    def has_walked(self, host: str, pages: int, group: Group) -> None:
        """Stage that number."""
        group.put(CRAWLERS, None, _WALKED + host.encode()[:500], pages.to_bytes(8))

    def hosts_walked(self) -> Iterator[str]:
        """The hosts of which that is kept."""
        for key, _ in self._ledger.spaces.scan(CRAWLERS, None, _WALKED):
            yield key.removeprefix(_WALKED).decode("utf-8", "replace")

    def forget_walked(self, host: str, group: Group) -> None:
        """Stage that it is not kept any more."""
        group.delete(CRAWLERS, None, _WALKED + host.encode()[:500])


# Deletions, before the ledger forgets the hosts themselves. They can be killed at any point and called again. A crawler that
# was sent to a host of which something goes counts as lost, since it would bring that home; the rest of its URLs wait for
# another one.

#: Entries that go in one group.
_AT_ONCE = 1_000

_One = TypeVar("_One")


def forget_lent(directory: Path, ledgers: Sequence[Ledger], target: DeletionTarget, hosts: Sequence[str]) -> int:
    """Take out everything of a target that is lent; see `forget` of :class:`~gossamer.engine.subjects.Subject`."""
    return sum(_forget_lent(ledger, target) for ledger in ledgers)


def _forget_lent(ledger: Ledger, target: DeletionTarget) -> int:
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
