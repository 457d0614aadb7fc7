"""Outbox and inbox of the crawler manager, in the ledger: every crawler that is on its way, with the batch that is next.

Place in the flow: the manager puts a crawler here before it is sent, and moves its next sequence on in the group that has the last
of a batch. So a batch is committed once, whatever is killed, and a later process goes on with the crawlers that are away.
"""

from collections.abc import Iterator

import msgspec

from gossamer.contracts.ledger import Group, Ledger
from gossamer.contracts.lending import CRAWLERS, LAST_CRAWLER, LastCrawler

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

    def __repr__(self) -> str:
        return "<CrawlerBook>"

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
