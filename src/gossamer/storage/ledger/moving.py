"""Moves in a ledger at rest: records of the archive that lie elsewhere, and domains that one ledger hands to another.

Place in the flow: `gossamer trim` calls :func:`move`, and the rows of documents follow their records into new files. It can be
killed at any point and called again: the old files count until no row names them.

Where agents join a crawl or leave it, an agent that gains domains takes them here out of the ledgers of the others, all at rest
(:func:`absorb`): rows, links, queues, requests, hosts and spaces. The others forget their part afterwards (:func:`drop`). All
keys of a domain lie together (:mod:`~gossamer.storage.ledger.keys`), so that a stretch of the circle of domains is a range in
each family, and nothing else is read. Both may be killed anywhere: `drop` undoes an `absorb`, and can be repeated. A ledger
that forgets domains goes on to count their URLs as seen: they were sent to the agent that has them, and need not be sent again.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from gossamer.storage.archive.records import uri_field
from gossamer.storage.ledger.chunks import Marks, unfinished, unpack_cursors, unpack_with_level
from gossamer.storage.ledger.depth import NAME as REACH
from gossamer.storage.ledger.depth import merged_reach
from gossamer.storage.ledger.keys import (
    ASIDE,
    CHUNK,
    CURSOR,
    DOMAIN_BYTES,
    HOST_ID_BYTES,
    LATER,
    OWN_PREFIX,
    RESTING,
    ROTATION,
    SECRET_KEY,
    SHELF,
    SPACE_VERSION_PREFIX,
    TALLIES,
    LedgerKeys,
    after,
    serial_key,
)
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.rewriting import LedgerRewriting, parts, tallied
from gossamer.storage.ledger.spaces import common_entries, put_common, recount
from gossamer.storage.ledger.store import RocksStore
from gossamer.storage.ledger.waiting import ROTATION_NAMES
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.task import SetAside
from gossamer.values.visit import Location

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
    for part in parts(digest for digest, uri in lost if uri_field(ledger.contents.owner(digest)) == uri):
        with ledger.group() as group:
            for digest in part:
                group.disown(digest)
    ledger.flush_moves()
    with ledger.rewriting() as rewriting:
        store = rewriting.store
        moved = (
            (key, _encode(msgspec.structs.replace(row, location=there)))
            for key, data in store.scan("documents", b"", b"\xff" * 32)
            if (row := _rows.decode(data)).location is not None and (there := place(row.location)) is not None
        )
        rewriting.copy("documents", moved)
    ends = ledger.committed_ends()
    ledger.give_up_ends({file: None for file in old if file in ends})


#: First and last point of a stretch of the circle of domains (:func:`gossamer.values.hosts.domain_point`).
Arc = tuple[int, int]

_LAST_POINT = (1 << 8 * DOMAIN_BYTES) - 1

#: Families whose keys begin with a domain. Seen URLs stay with the ledger that forgets the rest.
_KEPT_BY_DOMAIN = ("documents", "links", "requests", "hosts")

#: Beginnings of counters that say that hosts have something of a kind: without them no part would look for it.
_SIGNS = ("learnt:", "ordered:", "digests")

#: Stands behind the last point of a stretch, so that every key with that point lies before it.
_BEHIND = b"\xff" * HOST_ID_BYTES

#: Bytes of the number at the end of the key of a task that waits for its time.
_SERIAL_BYTES = 8

_aside_rows = msgspec.msgpack.Decoder(SetAside)


class Moved(msgspec.Struct):
    """The numbers of a move."""

    hosts: int = 0
    """Hosts that had URLs queued."""
    tasks: int = 0
    """URLs that are queued, or wait for their time."""
    set_aside: int = 0


def absorb(taker: RocksLedger, giver: RocksLedger, arcs: Sequence[Arc], *, common: Sequence[str] = ()) -> Moved:
    """Copy what one ledger has of some stretches of the circle into another one, which has nothing of them.

    Each batch leaves a whole ledger; what a kill leaves of it is taken out by :func:`drop`.

    Args:
        taker: open, at rest.
        giver: likewise; it owes the taker nothing, nor the taker it.
        arcs: the stretches, in order.
        common: owners of spaces who keep under no host what holds for all agents: it is copied, and stays where it is too.

    Raises:
        CrawlDirectoryError: they have keys of different secrets, or one cannot be read or written.
    """
    taker.flush_moves()
    giver.flush_moves()
    with giver.rewriting() as given, taker.rewriting() as rewriting:
        source, store = given.store, rewriting.store
        secret = source.get("meta", SECRET_KEY)
        if secret != store.get("meta", SECRET_KEY):
            raise CrawlDirectoryError(
                f"the ledger in {source.path} has keys of its own, which no other agent can read: it was made before agents "
                "could join; leave the number of agents as it is"
            )
        # Chunks are numbered: those that a host gets from now on have to stand behind those that it brings.
        marks = taker.queues.marks
        marks.serial = max(marks.serial, giver.queues.marks.serial)
        taking = _Taking(source, rewriting, arcs)
        taking.meta(giver, {owner: common_entries(source, owner) for owner in common}, taker.counters())
        for family in ("seen", "documents", "links", "requests"):
            rewriting.copy(family, _ranges(source, family, b"", arcs))
        taking.hosts()
        taking.spaces()
        taking.later(marks)
        taking.aside()
        rewriting.copy("frontier", _resting(source, arcs))
        taking.turns(marks, taking.chunks())
        store.sync()
        return taking.moved


class _Taking:
    """Copies from one store to another, some at a time."""

    def __init__(self, source: RocksStore, rewriting: LedgerRewriting, arcs: Sequence[Arc]) -> None:
        self.moved = Moved()
        self._source = source
        self._rewriting = rewriting
        self._store = rewriting.store
        self._arcs = arcs

    def meta(
        self, giver: RocksLedger, common: Mapping[str, Mapping[bytes, bytes]], counters: Mapping[str, int]
    ) -> None:
        """Copy all that holds for every domain: versions of spaces, how far links were announced, common entries, signs."""
        source, store, batch = self._source, self._store, self._store.batch()
        for key, value in source.scan("meta", SPACE_VERSION_PREFIX, after(SPACE_VERSION_PREFIX)):
            if store.get("meta", key) is None:
                batch.put("meta", key, value)
        place = OWN_PREFIX + REACH.encode()
        is_empty = next(store.scan("seen", b"", b"\xff" * (HOST_ID_BYTES + 1)), None) is None
        reach = merged_reach(None if is_empty else store.get("meta", place), giver.depths.kept)
        if reach is not None:
            batch.put("meta", place, reach)
        for owner, entries in common.items():
            put_common(batch, owner, {**entries, **common_entries(store, owner)})
        signs = [name for name in giver.counters() if name.startswith(_SIGNS) and not counters.get(name)]
        self._rewriting.write(batch, dict.fromkeys(signs, 1))

    def hosts(self) -> None:
        """Copy rows of hosts, and count the hosts."""
        found = _ranges(self._source, "hosts", b"", self._arcs)
        for part in parts(found):
            batch = self._store.batch()
            tallied = 0
            for key, value in part:
                batch.put("hosts", key, value)
                is_tally = key[HOST_ID_BYTES:] == TALLIES["host"]
                tallied += is_tally and self._store.get("hosts", key) is None
            self._rewriting.write(batch, {"hosts": tallied})

    def spaces(self) -> None:
        """Copy entries of all owners. Entries that the taker itself has of these hosts stay, and count."""
        found = _ranges(self._source, "spaces", b"", self._arcs)
        for part in parts(found):
            batch = self._store.batch()
            for key, value in part:
                batch.put("spaces", key, value)
            self._rewriting.write(batch)
        batch = self._store.batch()
        for first, last in self._arcs:
            recount(self._store, batch, first.to_bytes(DOMAIN_BYTES), last.to_bytes(DOMAIN_BYTES) + _BEHIND)
        self._rewriting.write(batch)

    def later(self, marks: Marks) -> None:
        """Tasks that wait for their time. They are numbered anew: two ledgers may have given one number to tasks of one time."""
        found = list(_later(self._source, self._rewriting.keys, self._arcs))
        numbered = (
            (key[:-_SERIAL_BYTES] + number.to_bytes(_SERIAL_BYTES), value)
            for number, (key, value) in enumerate(found, marks.serial)
        )
        marks.serial += len(found)
        self._rewriting.copy("frontier", numbered, unfinished=1)
        self.moved.tasks += len(found)

    def aside(self) -> None:
        """Copy tasks that are set aside: a family's tasks come before its row, which says how many they are."""
        self._rewriting.copy("frontier", _ranges(self._source, "frontier", SHELF, self._arcs))
        for key, value in _ranges(self._source, "frontier", ASIDE, self._arcs):
            batch = self._store.batch()
            batch.put("frontier", key, value)
            number = _aside_rows.decode(value).count
            self._rewriting.write(batch, {"set_aside": number})
            self.moved.set_aside += number

    def chunks(self) -> Iterator[str]:
        """Queued tasks, behind the cursors that say which of them are finished. Yields the names of their hosts."""
        found = _ranges(self._source, "frontier", CHUNK, self._arcs)
        before = b""
        for part in parts(found):
            batch = self._store.batch()
            tasks, names = 0, []
            for key, value in part:
                batch.put("frontier", key, value)
                hosts = _unfinished(self._source, key, value)
                tasks += len(hosts)
                if hosts and key[:-9] != before:
                    before = key[:-9]
                    names.append(hosts[0])
            self._rewriting.write(batch, finished=-tasks)
            self.moved.tasks += tasks
            yield from names

    def turns(self, marks: Marks, names: Iterator[str]) -> None:
        """Hosts that rest go on to rest; all others that have tasks wait for their turn."""
        for part in parts(names, ROTATION_NAMES):
            batch = self._store.batch()
            batch.put("frontier", serial_key(ROTATION, marks.serial), _encode(part))
            marks.serial += 1
            self._rewriting.write(batch)
            self.moved.hosts += len(part)


def drop(ledger: RocksLedger, arcs: Sequence[Arc], *, spaces: bool = True) -> None:
    """Forget what an open ledger at rest has of some stretches of the circle, but that their URLs were seen.

    Args:
        ledger: loses it.
        arcs: the stretches, in order.
        spaces: also what owners of spaces keep there. Entries of an :func:`absorb` that was given up stay: among them may be
            entries that the ledger has made itself, and the next try writes over them.

    Raises:
        CrawlDirectoryError: it could not be written.
    """
    ledger.flush_moves()
    with ledger.rewriting() as rewriting:
        store, keys = rewriting.store, rewriting.keys
        # Cursors say how much of a chunk is finished: they go when the chunks are gone.
        _drop_chunks(rewriting, arcs)
        rewriting.drop("frontier", (key for key, _ in list(_later(store, keys, arcs))), unfinished=1)
        _drop_aside(rewriting, arcs)
        rewriting.drop_turns(lambda name: _is_in(arcs, keys.host(name)))
        rewriting.drop_tallies(list(tallied(_ranges(store, "hosts", b"", arcs))))
        for family in (*_KEPT_BY_DOMAIN, *(("spaces",) if spaces else ())):
            rewriting.drop(family, (key for key, _ in _ranges(store, family, b"", arcs)))


def forget_seen(ledger: RocksLedger, arcs: Sequence[Arc]) -> None:
    """Count the URLs of some stretches of the circle as never met, of which nothing else is here: their agent has lost them.

    Raises:
        CrawlDirectoryError: it could not be written.
    """
    ledger.flush_moves()
    with ledger.rewriting() as rewriting:
        rewriting.drop("seen", (key for key, _ in _ranges(rewriting.store, "seen", b"", arcs)))


def _drop_chunks(rewriting: LedgerRewriting, arcs: Sequence[Arc]) -> None:
    """Drop queued tasks, a host at a time."""
    store = rewriting.store
    for part in parts(_ranges(store, "frontier", CHUNK, arcs)):
        batch = store.batch()
        tasks = 0
        for key, value in part:
            batch.delete("frontier", key)
            tasks += len(_unfinished(store, key, value))
        rewriting.write(batch, finished=tasks)


def _drop_aside(rewriting: LedgerRewriting, arcs: Sequence[Arc]) -> None:
    """Drop tasks that are set aside: a family's tasks go before its row, which says how many they are."""
    store = rewriting.store
    rewriting.drop("frontier", (key for key, _ in _ranges(store, "frontier", SHELF, arcs)))
    for key, value in list(_ranges(store, "frontier", ASIDE, arcs)):
        batch = store.batch()
        batch.delete("frontier", key)
        rewriting.write(batch, {"set_aside": -_aside_rows.decode(value).count})


def _ranges(store: RocksStore, family: str, kind: bytes, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    """Entries whose keys have a domain of these stretches behind `kind`."""
    behind_all = after(kind) if kind else b"\xff" * (HOST_ID_BYTES + 1)
    for first, last in arcs:
        end = kind + (last + 1).to_bytes(DOMAIN_BYTES) if last < _LAST_POINT else behind_all
        yield from store.scan(family, kind + first.to_bytes(DOMAIN_BYTES), end)


def _is_in(arcs: Sequence[Arc], host: bytes) -> bool:
    point = int.from_bytes(host[:DOMAIN_BYTES])
    at = bisect_right(arcs, (point, _LAST_POINT)) - 1
    return at >= 0 and arcs[at][1] >= point


def _resting(store: RocksStore, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    """Entries of hosts that rest until a time."""
    for key, value in store.scan("frontier", RESTING, after(RESTING)):
        if _is_in(arcs, key[-HOST_ID_BYTES:]):
            yield key, value


def _later(store: RocksStore, keys: LedgerKeys, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    """Tasks that wait for their time."""
    for key, value in store.scan("frontier", LATER, after(LATER)):
        if _is_in(arcs, keys.host(unpack_with_level(value)[0].host)):
            yield key, value


def _unfinished(store: RocksStore, key: bytes, value: bytes) -> list[str]:
    """The host of each task of a chunk that is not finished."""
    cursors = unpack_cursors(store.get("hosts", key[1:-9] + CURSOR))
    return [task.host for task in unfinished(cursors, key, value)]
