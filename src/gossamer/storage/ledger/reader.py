"""The settings of the ledger, and its part that only reads: counters, rows, hosts, links, tasks that wait or are set aside.

Place in the flow: :class:`~gossamer.storage.ledger.ledger.RocksLedger` derives from it. Commands that only look at a crawl (`why`,
`verify`, `status` of a stopped one) use nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Literal

import msgspec

from gossamer.engine.sheet import setting
from gossamer.engine.unit import Provider
from gossamer.storage.contract import AgentSheet
from gossamer.storage.ledger import layout
from gossamer.storage.ledger.contract import Links, Tallied
from gossamer.storage.ledger.depth import KeptLinks
from gossamer.storage.ledger.queues import HostQueues
from gossamer.storage.ledger.seen import KeptFingerprints, SeenContents, SeenUrls
from gossamer.storage.ledger.spaces import KeptSpaces
from gossamer.storage.ledger.store import RocksStore
from gossamer.storage.ledger.waiting import AsideTasks
from gossamer.storage.seen.memory import RecentlyUsed
from gossamer.values.hosts import Division
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.settings import Depth, Memory
from gossamer.values.task import Family, SetAside, Task
from gossamer.values.url import host_of

_MADE = "it is fixed when the crawl is made"

_fixed = partial(setting, restart="it is part of the store that is open")


class LedgerSheet(AgentSheet, frozen=True):
    existing: Annotated[bool, _fixed("Refuse to begin a new ledger, because the crawl is being resumed.")] = False
    private: Annotated[
        bool, _fixed("Make the ledger and its checkpoints unreadable for other users of the machine.")
    ] = False
    durability: Annotated[
        Literal["kill", "power"],
        setting(
            "Let a commit survive the death of the process (`kill`), or also a power cut (`power`), for which it waits for the "
            "disk."
        ),
    ] = "kill"
    cache: Annotated[
        int, _fixed("Keep at most this many bytes of the store's blocks unpacked in memory.", unit="bytes", ge=1 << 20)
    ] = 16 << 20
    buffers: Annotated[
        int, _fixed("Use at most this much memory for the write buffers of the store.", unit="bytes", ge=1 << 20)
    ] = 24 << 20
    log: Annotated[
        int,
        _fixed(
            "Let the write-ahead log grow to this size; opening the ledger reads at most this much.",
            unit="bytes",
            ge=1 << 20,
        ),
    ] = 32 << 20
    recent: Annotated[
        int,
        _fixed(
            "Cache at most this many recent and popular URLs in front of the seen set; each takes 172 bytes.",
            unit="URLs",
            ge=1,
        ),
    ] = 131_072
    memory: Memory = None
    held: Annotated[
        int,
        _fixed(
            "Let at most this many hosts take turns; each takes about 1,500 bytes of memory, and the others wait on "
            "the disk.",
            unit="hosts",
            ge=1,
        ),
    ] = 32_768
    turn: Annotated[
        int, _fixed("Take this many tasks of a host, then let a waiting host have its place.", unit="tasks", ge=1)
    ] = 256
    buffered: Annotated[
        int,
        _fixed(
            "Hold at most this many tasks in all dequeue buffers together; each takes about 400 bytes.",
            unit="tasks",
            ge=0,
        ),
    ] = 32_768
    refill: Annotated[int, _fixed("Fill the dequeue buffer of a host up to this many tasks.", unit="tasks", ge=1)] = 32

    depth: Depth = None
    division: Annotated[
        Division,
        setting("Assign registered domains (domain) or single hosts (host) to agents as a whole.", restart=_MADE),
    ] = "domain"
    together: Annotated[
        tuple[str, ...],
        setting("Assign these registered domains to one agent, as `bbc.co.uk bbc.com` (repeatable).", restart=_MADE),
    ] = ()

    def within_memory(self) -> "LedgerSheet":
        """The sheet with caches that take an eighth of `memory` at most, where that is given."""
        most = {name: getattr(self, name) for name in _ENTRY_BYTES}
        taken = sum(number * _ENTRY_BYTES[name] for name, number in most.items())
        if self.memory is None or taken <= self.memory // 8:
            return self
        return msgspec.structs.replace(
            self, **{name: max(1, number * (self.memory // 8) // taken) for name, number in most.items()}
        )


#: Bytes that one entry of each cache takes in memory.
_ENTRY_BYTES = {"cache": 1, "buffers": 1, "recent": 172, "held": 1_500, "buffered": 400}

#: States and tallies that are remembered; about 600 and 150 bytes each.
REMEMBERED_STATES, REMEMBERED_TALLIES = 8_192, 65_536

#: Hosts that are remembered for their errors, those with the most: people are shown a handful.
FAILING = 64

_states = msgspec.msgpack.Decoder(HostState)


class HostRows(Provider[LedgerSheet]):
    """The part that knows hosts: their rows, robots bytes of their sites, what watchers learnt of them, tallies."""

    keys: layout.LedgerKeys
    _store: RocksStore
    _failing: dict[str, int]

    def forget_hosts(self) -> None:
        self._states: RecentlyUsed[str, HostState] = RecentlyUsed(REMEMBERED_STATES)
        self._tallies: RecentlyUsed[tuple[Tallied, str], int] = RecentlyUsed(REMEMBERED_TALLIES)

    def host_states(self, names: Sequence[str]) -> list[HostState]:
        known, found, rest = self._states, dict[str, HostState](), list[str]()
        for name in dict.fromkeys(names):
            if (state := known.get(name)) is None:
                rest.append(name)
            else:
                found[name] = state
        if rest:
            keys = [self.keys.host(name) + layout.STATE for name in rest]
            for name, data in zip(rest, self._store.get_many("hosts", keys), strict=True):
                found[name] = state = HostState(name) if data is None else _states.decode(data)
                known.set(name, state)
        return list(map(found.__getitem__, names))

    def hosts(self) -> Iterator[HostState]:
        for key, data in self._store.scan("hosts", b"", b"\xff" * (layout.HOST_ID_BYTES + 2)):
            if key[layout.HOST_ID_BYTES :] == layout.STATE:
                yield _states.decode(data)

    def failing_hosts(self) -> Mapping[str, int]:
        """Errors of the hosts that have had the most of them since the ledger was opened, all runs together; not all hosts."""
        return dict(self._failing)

    def robots(self, site: str, host: str) -> bytes | None:
        return self._store.get("hosts", self.robots_key(site, host))

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        return self._store.get_many("hosts", [self.learnt_key(name, what) for name in hosts])

    def tally(self, what: Tallied, name: str) -> int:
        count = self._tallies.get((what, name))
        if count is None:
            count = int.from_bytes(self._store.get("hosts", self.keys.host(name) + layout.TALLIES[what]) or b"")
            self._tallies.set((what, name), count)
        return count

    def hosts_applied(self, states: Mapping[str, HostState], tallies: Mapping[tuple[Tallied, str], int]) -> None:
        for name, state in states.items():
            self._states.set(name, state)
            if errors := state.counters.get("errors", 0):
                self._failing[name] = errors
                if len(self._failing) > 2 * FAILING:
                    self._failing = dict(sorted(self._failing.items(), key=lambda pair: -pair[1])[:FAILING])
        for key, count in tallies.items():
            self._tallies.set(key, count)

    def learnt_key(self, host: str, what: str) -> bytes:
        return self.keys.host(host) + layout.LEARNT + what.encode()

    def robots_key(self, site: str, host: str) -> bytes:
        return self.keys.host(host) + layout.ROBOTS + site.encode("utf-8", "surrogatepass")


#: Chunks of a host's queue that are looked at for a task, 128 tasks each: some 4 ms.
_LOOKED_AT = 200

_rows = msgspec.msgpack.Decoder(DocumentRow)


class LedgerState(msgspec.Struct, array_like=True):
    """The part that each commit rewrites: where the queues stand, and the counters."""

    marks: layout.Marks
    counters: dict[str, int]
    commits: int = 0


class Waiting(msgspec.Struct, frozen=True):
    """A task that is not finished."""

    task: Task
    due: float = 0.0
    """Seconds since the epoch before which it is not queued; 0 where it is."""


class LedgerReader(HostRows):
    """An open ledger, for readers; :class:`RocksLedger` opens it and fills in its parts."""

    queues: HostQueues
    seen: SeenUrls

    contents: SeenContents
    fingerprints: KeptFingerprints
    spaces: KeptSpaces
    page_links: KeptLinks
    shelf: AsideTasks

    _state: LedgerState
    _ends: dict[str, int]

    def counters(self) -> Mapping[str, int]:
        """Sums over all kept groups: visits, fetched, pages, documents, bytes, discovered, `outcome:WORD`, and own ones."""
        return dict(self._state.counters)

    def committed_ends(self) -> Mapping[str, int]:
        return dict(self._ends)

    def document(self, url: str) -> DocumentRow | None:
        data = self._store.get("documents", self.keys.url(url))
        return None if data is None else _rows.decode(data)

    def documents(self) -> Iterator[DocumentRow]:
        for _, data in self._store.scan("documents", b"", b"\xff" * 32):
            yield _rows.decode(data)

    def documents_after(self, mark: bytes, most: int) -> tuple[list[DocumentRow], bytes]:
        """Up to so many rows behind a mark, in the same order, and the mark behind them; an empty one stands before all."""
        found = list(islice(self._store.scan("documents", mark, b"\xff" * 32), most))
        return [_rows.decode(data) for _, data in found], found[-1][0] + b"\x00" if found else mark

    def hosts_within(self, first: int, last: int) -> Iterator[str]:
        """The hosts that have rows, from one point of the circle of domains to another, each once: a search for each of them."""
        at, end = (
            first.to_bytes(layout.DOMAIN_BYTES),
            last.to_bytes(layout.DOMAIN_BYTES) + b"\xff" * (layout.HOST_ID_BYTES + 1),
        )
        while (found := next(self._store.scan("documents", at, end), None)) is not None:
            yield host_of(_rows.decode(found[1]).url)
            at = layout.after(found[0][: layout.HOST_ID_BYTES])

    def documents_of(self, host: str) -> Iterator[DocumentRow]:
        """The rows of one host's URLs, in no order that means anything."""
        prefix = self.keys.host(host)
        for _, data in self._store.scan("documents", prefix, layout.after(prefix)):
            yield _rows.decode(data)

    def queue_of(self, host: str) -> Iterator[Task]:
        """The tasks of one host that are neither finished nor delayed: in the order of their hand-out, those in flight too."""
        id_ = self.keys.host(host)
        cursors = layout.unpack_cursors(self._store.get("hosts", id_ + layout.CURSOR))
        for key, value in self._store.scan("frontier", layout.CHUNK + id_, layout.after(layout.CHUNK + id_)):
            yield from layout.unfinished(cursors, key, value)

    def links_of(self, url: str) -> Links | None:
        return self.page_links.of(url)

    def depth_of(self, urls: Sequence[str]) -> list[int | None]:
        return self.seen.depths(urls)

    def aside(self, after: Family | None = None) -> Iterator[SetAside]:
        return self.shelf.rows(after)

    def aside_tasks(self, family: Family) -> Iterator[Task]:
        return (task for _, tasks in self.shelf.chunks(family) for task in tasks)

    def meta(self, name: str) -> bytes | None:
        return self._store.get("meta", layout.OWN_PREFIX + name.encode())

    def is_seen(self, url: str) -> bool:
        return self._store.get("seen", self.keys.url(url)) is not None

    def waiting(self, url: str, most: int) -> Waiting | None:
        """The task of a canonical URL that is queued or in flight; None where there is none among the first `most` chunks of its
        host's queue, and as many delayed tasks."""
        host = self.keys.host(host_of(url))
        cursors = layout.unpack_cursors(self._store.get("hosts", host + layout.CURSOR))
        prefix, text = layout.CHUNK + host, url.encode()
        for key, value in islice(self._store.scan("frontier", prefix, layout.after(prefix)), most):
            if text in value:
                found = next((task for task in layout.unfinished(cursors, key, value) if task.url == url), None)
                if found is not None:
                    return Waiting(found)
        for key, value in islice(self._store.scan("frontier", layout.LATER, layout.after(layout.LATER)), most):
            if text in value:  # as part of another URL too, so that the task itself is looked at
                [task] = layout.unpack_with_level(value)
                if task.url == url:
                    return Waiting(task, layout.time_of(key))
        return None

    def is_looked_at_whole(self, url: str, most: int) -> bool:
        """Whether :meth:`waiting` sees each task that may be that of a canonical URL: no more than `most` rows wait."""
        prefix = layout.CHUNK + self.keys.host(host_of(url))
        ranges = ((prefix, layout.after(prefix)), (layout.LATER, layout.after(layout.LATER)))
        return all(next(islice(self._store.scan("frontier", *one), most, None), None) is None for one in ranges)

    def has_task(self, url: str) -> bool:
        """Whether a URL that was met was visited, or is queued, in flight or set aside; False where that takes too long to tell."""
        if self.document(url) is not None or self.queues.flights(url) > 0:
            return True
        return self.waiting(url, _LOOKED_AT) is not None or self.shelf.find(url, _LOOKED_AT) is not None

    def read_through(self) -> int:
        return self._store.read_through()

    def sizes(self) -> Mapping[str, int]:
        return self._store.sizes()
