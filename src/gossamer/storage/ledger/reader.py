"""The part of the ledger that only reads: counters, rows, hosts, links, tasks that are set aside, tasks that wait.

Place in the flow: :class:`~gossamer.storage.ledger.ledger.RocksLedger` derives from it. Commands that only look at a crawl (`why`,
`verify`, `status` of a stopped one) use nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from gossamer.engine.unit import Provider
from gossamer.storage.ledger.chunks import Marks, unfinished, unpack_cursors, unpack_with_level
from gossamer.storage.ledger.contract import Links, Tallied
from gossamer.storage.ledger.depth import KeptLinks
from gossamer.storage.ledger.host_rows import LedgerHosts
from gossamer.storage.ledger.keys import (
    CHUNK,
    CURSOR,
    DOMAIN_BYTES,
    HOST_ID_BYTES,
    LATER,
    OWN_PREFIX,
    LedgerKeys,
    after,
    time_of,
)
from gossamer.storage.ledger.queues import HostQueues
from gossamer.storage.ledger.seen import SeenUrls
from gossamer.storage.ledger.settings import LedgerSheet
from gossamer.storage.ledger.store import RocksStore
from gossamer.storage.ledger.waiting import AsideTasks, Owed
from gossamer.values.hosts import registered_domain
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.task import Family, SetAside, Task
from gossamer.values.url import host_of

#: Chunks of a host's queue that are looked at for a task, 128 tasks each: some 4 ms.
_LOOKED_AT = 200

_rows = msgspec.msgpack.Decoder(DocumentRow)


class LedgerState(msgspec.Struct, array_like=True):
    """The part that each commit rewrites: where the queues stand, and the counters."""

    marks: Marks
    counters: dict[str, int]
    commits: int = 0


class Waiting(msgspec.Struct, frozen=True):
    """A task that is not finished."""

    task: Task
    due: float = 0.0
    """Seconds since the epoch before which it is not queued; 0 where it is."""


class LedgerReader(Provider[LedgerSheet]):
    """An open ledger, for readers; :class:`RocksLedger` opens it and fills in its parts."""

    queues: HostQueues
    seen: SeenUrls

    _store: RocksStore
    _keys: LedgerKeys
    _state: LedgerState
    _ends: dict[str, int]
    _hosts: LedgerHosts
    _links: KeptLinks
    _aside: AsideTasks

    def counters(self) -> Mapping[str, int]:
        """Sums over all kept groups: visits, fetched, pages, documents, bytes, discovered, `outcome:WORD`, and own ones."""
        return dict(self._state.counters)

    def committed_ends(self) -> Mapping[str, int]:
        """File of the crawl directory -> its committed end. A file that is not named here holds nothing committed."""
        return dict(self._ends)

    def document(self, url: str) -> DocumentRow | None:
        """The row of the last committed visit of a canonical URL; None where there was none."""
        data = self._store.get("documents", self._keys.url(url))
        return None if data is None else _rows.decode(data)

    def documents(self) -> Iterator[DocumentRow]:
        """Every row, in the order of domains and hosts."""
        for _, data in self._store.scan("documents", b"", b"\xff" * 32):
            yield _rows.decode(data)

    def documents_after(self, mark: bytes, most: int) -> tuple[list[DocumentRow], bytes]:
        """Up to so many rows behind a mark, in the same order, and the mark behind them; an empty one stands before all."""
        found = list(islice(self._store.scan("documents", mark, b"\xff" * 32), most))
        return [_rows.decode(data) for _, data in found], found[-1][0] + b"\x00" if found else mark

    def hosts_within(self, first: int, last: int) -> Iterator[str]:
        """The hosts that have rows, from one point of the circle of domains to another, each once: a search for each of them."""
        at, end = first.to_bytes(DOMAIN_BYTES), last.to_bytes(DOMAIN_BYTES) + b"\xff" * (HOST_ID_BYTES + 1)
        while (found := next(self._store.scan("documents", at, end), None)) is not None:
            yield host_of(_rows.decode(found[1]).url)
            at = after(found[0][:HOST_ID_BYTES])

    def documents_of(self, host: str) -> Iterator[DocumentRow]:
        """The rows of one host's URLs, in no order that means anything."""
        prefix = self._keys.host(host)
        for _, data in self._store.scan("documents", prefix, after(prefix)):
            yield _rows.decode(data)

    def queue_of(self, host: str) -> Iterator[Task]:
        """The tasks of one host that are neither finished nor delayed: in the order of their hand-out, those in flight too."""
        id_ = self._keys.host(host)
        cursors = unpack_cursors(self._store.get("hosts", id_ + CURSOR))
        for key, value in self._store.scan("frontier", CHUNK + id_, after(CHUNK + id_)):
            yield from unfinished(cursors, key, value)

    def links_of(self, url: str) -> Links | None:
        """The links of a visited page, each with its relation; None where it was not visited, or depths are not kept."""
        return self._links.of(url)

    def depth_of(self, urls: Sequence[str]) -> list[int | None]:
        """The lowest depth that each URL was met at; None where it was never met, or depths are not kept."""
        return self.seen.depths(urls)

    def host_states(self, names: Sequence[str]) -> list[HostState]:
        """The states of hosts, in order; an empty one for a host of which nothing is kept."""
        return self._hosts.states(names)

    def hosts(self) -> Iterator[HostState]:
        """The states of all hosts of which one is kept, in the order of domains."""
        return self._hosts.all()

    def robots(self, site: str, host: str) -> bytes | None:
        """The robots bytes of a site of this host; None where nothing is kept."""
        return self._hosts.robots(site, host)

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        """The lessons of watchers about hosts under a name, in order; None where none is kept."""
        return self._hosts.learnt(hosts, what)

    def tally(self, what: Tallied, name: str) -> int:
        """How many were counted of a host or registered domain, by `Group.tally`."""
        return self._hosts.tally(what, name)

    def aside(self, after: Family | None = None) -> Iterator[SetAside]:
        """Families of which URLs are set aside, or were, in a fixed order; those behind `after`, where it is given."""
        return self._aside.rows(after)

    def set_aside(self, family: Family) -> SetAside:
        """The row of one family."""
        return self._aside.row(family)

    def aside_tasks(self, family: Family) -> Iterator[Task]:
        """Tasks of a family that are set aside, in the order in which they came."""
        return (task for _, tasks in self._aside.chunks(family) for task in tasks)

    def aside_of(self, url: str, most: int) -> tuple[Family, Task] | None:
        """Family and task of a canonical URL that is set aside; None where it is not.

        Args:
            url: canonical.
            most: chunks of its host's families that are looked at.
        """
        host = host_of(url)
        return self._aside.find((host, f"*.{registered_domain(host)}"), url, most)

    def meta(self, name: str) -> bytes | None:
        """The value that an owner keeps under a name; None where there is none."""
        return self._store.get("meta", OWN_PREFIX + name.encode())

    def is_seen(self, url: str) -> bool:
        """Whether a canonical URL was ever queued."""
        return self._store.get("seen", self._keys.url(url)) is not None

    def waiting(self, url: str, most: int) -> Waiting | None:
        """The task of a canonical URL that is queued or in flight; None where there is none.

        Args:
            url: canonical.
            most: chunks of its host's queue that are looked at, and delayed tasks.
        """
        host = self._keys.host(host_of(url))
        cursors = unpack_cursors(self._store.get("hosts", host + CURSOR))
        prefix, text = CHUNK + host, url.encode()
        for key, value in islice(self._store.scan("frontier", prefix, after(prefix)), most):
            if text in value:
                found = next((task for task in unfinished(cursors, key, value) if task.url == url), None)
                if found is not None:
                    return Waiting(found)
        for key, value in islice(self._store.scan("frontier", LATER, after(LATER)), most):
            if text in value:  # as part of another URL too, so that the task itself is looked at
                [task] = unpack_with_level(value)
                if task.url == url:
                    return Waiting(task, time_of(key))
        return None

    def is_looked_at_whole(self, url: str, most: int) -> bool:
        """Whether :meth:`waiting` sees each task that may be that of a canonical URL: no more than `most` rows wait."""
        prefix = CHUNK + self._keys.host(host_of(url))
        ranges = ((prefix, after(prefix)), (LATER, after(LATER)))
        return all(next(islice(self._store.scan("frontier", *one), most, None), None) is None for one in ranges)

    def has_task(self, url: str) -> bool:
        """Whether a URL that was met was visited, or is queued, in flight or set aside; False where that takes too long to tell."""
        if self.document(url) is not None or self.queues.flights(url) > 0:
            return True
        return self.waiting(url, _LOOKED_AT) is not None or self.aside_of(url, _LOOKED_AT) is not None

    def read_through(self) -> int:
        """Read every key and value, so that the checksums of all blocks are compared; returns how many there are.

        Raises:
            CrawlDirectoryError: a block is damaged.
        """
        return self._store.read_through()

    def size(self) -> int:
        """Bytes of the store's tables on the disk."""
        return self._store.size()

    def sizes(self) -> Mapping[str, int]:
        """The same for each family of rows: `seen`, `frontier`, `documents` and so on."""
        return self._store.sizes()

    def failing_hosts(self) -> Mapping[str, int]:
        """Errors of the hosts that have had the most of them since the ledger was opened, all runs together; not all hosts."""
        return dict(self._hosts.failing)

    def owed(self, most: int) -> Owed:
        """The tasks that wait for a time, as far as the first `most` of them tell."""
        return self.queues.delayed.owed(most)
