"""Everything that one ledger keeps of some domains, handed to a new one: rows, links, queues, requests, hosts and spaces.

Place in the flow: agents that join a crawl get ledgers that are made here out of those of the others, all at rest; the others
forget their part afterwards (:func:`drop`). All keys of a domain lie together (:mod:`~gossamer.stores.ledger.keys`), so that a
stretch of the circle of domains is a range in each family, and nothing else is read.

A new ledger is in its place when it is whole, and not before; `drop` may be killed and repeated. Who
forgets domains goes on to count their URLs as seen: it has sent them to the agent that has them, and need not send them again.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from gossamer.model.aside import SetAside
from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.ledger import schema
from gossamer.stores.ledger.announcing import NAME as REACH
from gossamer.stores.ledger.announcing import merged_reach
from gossamer.stores.ledger.checkpoints import Places, replace
from gossamer.stores.ledger.chunks import PLACE_BITS, unpack, unpack_cursors
from gossamer.stores.ledger.held import NEW
from gossamer.stores.ledger.keys import (
    ASIDE,
    CHUNK,
    CURSOR,
    DOMAIN_BYTES,
    HELD,
    HOST_ID_BYTES,
    LATER,
    OWN_PREFIX,
    RESTING,
    ROTATION,
    RULE_KEY,
    SECRET_KEY,
    SHELF,
    SPACE_VERSION_PREFIX,
    STATE_KEY,
    TALLIES,
    LedgerKeys,
    after,
    serial_key,
)
from gossamer.stores.ledger.ledger import CLEAN, STATE_DIRECTORY, Counting, RocksLedger
from gossamer.stores.ledger.plan import Marks
from gossamer.stores.ledger.reading import LedgerState
from gossamer.stores.ledger.rotation import ROTATION_NAMES
from gossamer.stores.ledger.sheet import LedgerSheet
from gossamer.stores.ledger.spaces import common_entries, put_common
from gossamer.stores.ledger.store import RocksStore, StoreLimits

#: First and last point of a stretch of the circle of domains (:func:`gossamer.model.domains.domain_point`).
Arc = tuple[int, int]

_LAST_POINT = (1 << 8 * DOMAIN_BYTES) - 1

#: Entries that go in one batch.
_AT_ONCE = 2_000

#: Families whose keys begin with a domain. What was seen stays with whoever forgets the rest.
_KEPT_BY_DOMAIN = ("documents", "links", "requests", "hosts", "spaces")
_BY_DOMAIN = ("seen", *_KEPT_BY_DOMAIN)

#: Beginnings of counters that say that hosts have something of a kind: without them nobody would look for it.
_SIGNS = ("learnt:", "ordered:")

#: Kinds of the queues' entries whose keys have a domain behind them.
_QUEUED = (CHUNK, ASIDE, SHELF)

_encode = msgspec.msgpack.Encoder().encode
_aside_rows = msgspec.msgpack.Decoder(SetAside)


class Moved(msgspec.Struct):
    """What was copied into a ledger."""

    hosts: int = 0
    """Hosts that had URLs queued."""
    tasks: int = 0
    """URLs that are queued, or wait for their time."""
    set_aside: int = 0


def fill(
    sheet: LedgerSheet, givers: Iterable[tuple[RocksLedger, Sequence[Arc]]], *, common: Sequence[str] = ()
) -> Moved:
    """Make a ledger out of what others have of some stretches of the circle: whole, or not at all.

    Args:
        sheet: of the new ledger, which is not there, or is replaced.
        givers: open ledgers at rest, each with the stretches that are taken from it; they are asked one after the other.
        common: owners of spaces who keep under no host what holds for all agents: it is copied, and stays where it is too.

    Raises:
        CrawlDirectoryError: two of them have keys of different secrets, or one cannot be read, or the new one not be written.
    """
    limits = StoreLimits(sheet.cache, sheet.buffers, sheet.log)
    told = Moved()

    def make(path: Path) -> None:
        nonlocal told
        store = RocksStore(path, limits, create=True)
        try:
            filling = _Filling(store, common)
            for ledger, arcs in givers:
                filling.take(ledger, arcs)
            told = filling.finish()
        finally:
            store.close()

    replace(Places(Path(sheet.directory, STATE_DIRECTORY, sheet.agent)), make, limits, {})
    return told


class _Filling:
    """A store that becomes a ledger."""

    def __init__(self, store: RocksStore, common: Sequence[str]) -> None:
        """`store` is empty: nothing was written to it, not even its version."""
        self._store = store
        self._common: dict[str, dict[bytes, bytes]] = {owner: {} for owner in common}
        self._moved = Moved()
        self._tallied = 0
        self._serial = 1
        self._secret = b""
        self._waiting: list[str] = []
        self._reach: bytes | None = None
        self._signs: set[str] = set()

    def take(self, ledger: RocksLedger, arcs: Sequence[Arc]) -> None:
        """Copy what a ledger has of some stretches of the circle."""
        with ledger.rewriting() as (source, keys, _):
            self._take_meta(source, ledger)
            for family in _BY_DOMAIN:
                self._copy(family, _ranges(source, family, b"", arcs))
            for kind in _QUEUED:
                self._copy("frontier", _ranges(source, "frontier", kind, arcs))
            self._copy("frontier", _resting(source, arcs))
            self._take_later(source, keys, arcs)
            self._count(source, arcs)
            self._serial = max(self._serial, ledger.queues.marks.serial)

    def _take_meta(self, source: RocksStore, ledger: RocksLedger) -> None:
        secret = source.get("meta", SECRET_KEY) or b""
        if self._secret not in (b"", secret):
            raise CrawlDirectoryError(
                f"the ledger in {source.path} has keys of its own, which no other agent can read: it was made before agents "
                "could join; leave the number of agents as it is"
            )
        self._secret = secret
        batch = self._store.batch()
        batch.put("meta", SECRET_KEY, secret)
        rule = source.get("meta", RULE_KEY)
        if rule is not None:
            batch.put("meta", RULE_KEY, rule)
        for key, value in source.scan("meta", SPACE_VERSION_PREFIX, after(SPACE_VERSION_PREFIX)):
            batch.put("meta", key, value)
        self._store.write(batch)
        self._reach = merged_reach(self._reach, ledger.depths.kept)
        for owner, entries in self._common.items():
            entries.update(common_entries(source, owner))
        self._signs.update(name for name in ledger.counters() if name.startswith(_SIGNS))

    def _copy(self, family: str, entries: Iterator[tuple[bytes, bytes]]) -> None:
        while part := list(islice(entries, _AT_ONCE)):
            batch = self._store.batch()
            put = batch.putter(family)
            for key, value in part:
                put(key, value)
            self._store.write(batch)

    def _take_later(self, source: RocksStore, keys: LedgerKeys, arcs: Sequence[Arc]) -> None:
        found = list(_later(source, keys, arcs))
        self._copy("frontier", iter(found))
        self._moved.tasks += len(found)

    def _count(self, source: RocksStore, arcs: Sequence[Arc]) -> None:
        """Find the hosts that have tasks, and count what came."""
        for host, tasks in _queued(source, arcs):
            self._moved.tasks += tasks
            self._moved.hosts += 1
            self._waiting.append(host)
        self._moved.set_aside += sum(_aside(source, arcs))
        self._tallied += sum(1 for _ in _tallied(source, arcs))

    def finish(self) -> Moved:
        """Make it a ledger that can be opened. Hosts that rest go on to rest; all others that have tasks wait for their turn."""
        batch = self._store.batch()
        schema.stamp(batch)
        marks = Marks(self._serial, self._serial, self._moved.tasks)
        for start in range(0, len(self._waiting), ROTATION_NAMES):
            batch.put(
                "frontier", serial_key(ROTATION, marks.serial), _encode(self._waiting[start : start + ROTATION_NAMES])
            )
            marks.serial += 1
        counters = {"hosts": self._tallied, "set_aside": self._moved.set_aside, **dict.fromkeys(self._signs, 1)}
        batch.put("meta", STATE_KEY, _encode(LedgerState(marks, counters, 1)))
        batch.put("meta", OWN_PREFIX + CLEAN.encode(), b"yes")
        for owner, entries in self._common.items():
            put_common(batch, owner, entries)
        if self._reach is not None:
            batch.put("meta", OWN_PREFIX + REACH.encode(), self._reach)
        self._store.write(batch)
        self._store.sync()
        return self._moved


def drop(ledger: RocksLedger, arcs: Sequence[Arc]) -> None:
    """Forget what an open ledger at rest has of some stretches of the circle, but that their URLs were seen.

    Raises:
        CrawlDirectoryError: it could not be written.
    """
    ledger.flush_moves()
    with ledger.rewriting() as (store, keys, count):
        dropping = _Dropping(store, count)
        # Cursors say how much of a chunk is finished: they go when the chunks are gone.
        dropping.chunks(arcs)
        dropping.drop("frontier", (key for key, _ in list(_later(store, keys, arcs))), unfinished=1)
        dropping.aside(arcs)
        dropping.turns(keys, arcs)
        dropping.tallies(arcs)
        for family in _KEPT_BY_DOMAIN:
            dropping.drop(family, (key for key, _ in _ranges(store, family, b"", arcs)))


class _Dropping:
    """Deletions, some at a time. Each batch leaves a whole ledger."""

    def __init__(self, store: RocksStore, count: Counting) -> None:
        self._store = store
        self._count = count

    def drop(self, family: str, keys: Iterable[bytes], *, unfinished: int = 0) -> None:
        """Delete keys; each stands for so many unfinished tasks."""
        left = iter(keys)
        while part := list(islice(left, _AT_ONCE)):
            batch = self._store.batch()
            for key in part:
                batch.delete(family, key)
            self._count(batch, {}, unfinished * len(part))

    def chunks(self, arcs: Sequence[Arc]) -> None:
        """Queued tasks, a host at a time."""
        found = _ranges(self._store, "frontier", CHUNK, arcs)
        while part := list(islice(found, _AT_ONCE)):
            batch = self._store.batch()
            tasks = 0
            for key, value in part:
                batch.delete("frontier", key)
                tasks += len(_unfinished(self._store, key, value))
            self._count(batch, {}, tasks)

    def aside(self, arcs: Sequence[Arc]) -> None:
        """What is set aside: a family's tasks go before its row, which says how many they are."""
        self.drop("frontier", (key for key, _ in _ranges(self._store, "frontier", SHELF, arcs)))
        for key, value in list(_ranges(self._store, "frontier", ASIDE, arcs)):
            batch = self._store.batch()
            batch.delete("frontier", key)
            self._count(batch, {"set_aside": -_aside_rows.decode(value).count}, 0)

    def turns(self, keys: LedgerKeys, arcs: Sequence[Arc]) -> None:
        """Names of hosts that wait for their turn, have it, or rest."""
        self.drop("frontier", (key for key, _ in _ranges(self._store, "frontier", HELD, arcs)))
        self.drop("frontier", (key for key, _ in list(_resting(self._store, arcs))))
        batch = self._store.batch()
        for key, value in self._store.scan("frontier", ROTATION, after(ROTATION)):
            names = msgspec.msgpack.decode(value, type=list[str])
            rest = [name for name in names if not _is_in(arcs, keys.host(name))]
            if not rest:
                batch.delete("frontier", key)
            elif len(rest) < len(names):
                batch.put("frontier", key, _encode(rest))
        self._count(batch, {}, 0)

    def tallies(self, arcs: Sequence[Arc]) -> None:
        """The hosts that were counted."""
        for key in list(_tallied(self._store, arcs)):
            batch = self._store.batch()
            batch.delete("hosts", key)
            self._count(batch, {"hosts": -1}, 0)


def _ranges(store: RocksStore, family: str, kind: bytes, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    """Entries whose keys have a domain of these stretches behind `kind`."""
    behind_all = after(kind) if kind else b"\xff" * (HOST_ID_BYTES + 1)
    for first, last in arcs:
        end = kind + (last + 1).to_bytes(DOMAIN_BYTES) if last < _LAST_POINT else behind_all
        yield from store.scan(family, kind + first.to_bytes(DOMAIN_BYTES), end)


def _is_in(arcs: Sequence[Arc], host: bytes) -> bool:
    point = int.from_bytes(host[:DOMAIN_BYTES])
    return any(first <= point <= last for first, last in arcs)


def _resting(store: RocksStore, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    """Entries of hosts that rest until a time."""
    for key, value in store.scan("frontier", RESTING, after(RESTING)):
        if _is_in(arcs, key[-HOST_ID_BYTES:]):
            yield key, value


def _later(store: RocksStore, keys: LedgerKeys, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    """Tasks that wait for their time."""
    for key, value in store.scan("frontier", LATER, after(LATER)):
        if _is_in(arcs, keys.host(unpack(value[1:], value[0])[0].host)):
            yield key, value


def _unfinished(store: RocksStore, key: bytes, value: bytes) -> list[str]:
    """The host of each task of a chunk that is not finished."""
    level, serial = key[-9], int.from_bytes(key[-8:])
    cursor = unpack_cursors(store.get("hosts", key[1:-9] + CURSOR)).get(level, NEW)
    return [
        task.host
        for place, task in enumerate(unpack(value, level), serial << PLACE_BITS)
        if place >= cursor.place and place not in cursor.finished
    ]


def _queued(store: RocksStore, arcs: Sequence[Arc]) -> Iterator[tuple[str, int]]:
    """Each host that has unfinished tasks, and how many."""
    name, prefix, tasks = "", b"", 0
    for key, value in _ranges(store, "frontier", CHUNK, arcs):
        if key[:-9] != prefix:
            if tasks:
                yield name, tasks
            prefix, tasks = key[:-9], 0
        hosts = _unfinished(store, key, value)
        if hosts:
            name = hosts[0]
            tasks += len(hosts)
    if tasks:
        yield name, tasks


def _aside(store: RocksStore, arcs: Sequence[Arc]) -> Iterator[int]:
    """How many tasks of each family are set aside."""
    for _, value in _ranges(store, "frontier", ASIDE, arcs):
        yield _aside_rows.decode(value).count


def _tallied(store: RocksStore, arcs: Sequence[Arc]) -> Iterator[bytes]:
    """Keys of the tallies of hosts: a host has been counted when it has one."""
    for key, _ in _ranges(store, "hosts", b"", arcs):
        if key[HOST_ID_BYTES:] == TALLIES["host"]:
            yield key
