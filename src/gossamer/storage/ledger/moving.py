"""A ledger that is changed beneath its queues and groups: the steps of that, and moves of records and of domains.

Place in the flow: :meth:`~gossamer.storage.ledger.ledger.RocksLedger.rewriting` gives a :class:`LedgerRewriting` to deletions
(:mod:`~gossamer.storage.ledger.deleting`), parcels and moves, with nothing in flight. Every batch leaves a whole ledger, so that
each can be killed anywhere; the memory of the ledger is read anew at the end.

`gossamer trim` calls :func:`move`, and the rows of documents follow their records into new files. It can be
killed at any point and called again: the old files count until no row names them.

Where domains change hands, a parcel takes them to another ledger (:mod:`~gossamer.storage.ledger.parcels`), and :func:`dropping`
forgets them here. It may be killed anywhere, and can be repeated. A ledger that forgets domains goes on to count their URLs as
seen: they were sent to the agent that has them, and need not be sent again.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gossamer.storage.archive.records import uri_field
from gossamer.storage.contract import OWED
from gossamer.storage.ledger import layout
from gossamer.storage.ledger.spaces import is_of
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.task import SetAside
from gossamer.values.visit import Location

if TYPE_CHECKING:
    from gossamer.storage.ledger.ledger import RocksLedger

T = TypeVar("T")

#: Entries of one batch: it is in memory, and a ledger is not.
AT_ONCE = 1_000

_rows = msgspec.msgpack.Decoder(DocumentRow)
_encode = msgspec.msgpack.Encoder().encode


def parts(items: Iterable[T], size: int = AT_ONCE) -> Iterator[list[T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


class LedgerRewriting:
    """The store of a ledger at rest, and ways to change it."""

    def __init__(
        self, store: RocksStore, keys: layout.LedgerKeys, write: Callable[[Batch, Mapping[str, int], int], None]
    ) -> None:
        self.store = store
        self.keys = keys
        self._write = write

    def write(self, batch: Batch, counts: Mapping[str, int] | None = None, *, finished: int = 0) -> None:
        """Write a batch, which adds to counters and takes away so many unfinished tasks."""
        self._write(batch, counts or {}, finished)

    def drop(self, family: str, keys: Iterable[bytes], *, unfinished: int = 0) -> int:
        """Delete keys; each stands for so many unfinished tasks. Returns how many keys."""
        gone = 0
        for part in parts(keys):
            batch = self.store.batch()
            for key in part:
                batch.delete(family, key)
            self.write(batch, finished=unfinished * len(part))
            gone += len(part)
        return gone

    def drop_turns(self, is_gone: Callable[[str], bool]) -> None:
        """Delete the names of hosts among those that are active, rest, or wait for their turn."""
        for kind in (layout.HELD, layout.RESTING):
            rows = self.store.scan("frontier", kind, layout.after(kind))
            self.drop("frontier", (key for key, name in rows if is_gone(name.decode())))
        batch = self.store.batch()
        for key, value in self.store.scan("frontier", layout.ROTATION, layout.after(layout.ROTATION)):
            names = msgspec.msgpack.decode(value, type=list[str])
            left = [name for name in names if not is_gone(name)]
            if not left:
                batch.delete("frontier", key)
            elif len(left) < len(names):
                batch.put("frontier", key, _encode(left))
        self.write(batch)

    def drop_tallies(self, hosts: Iterable[bytes]) -> None:
        """Delete the tallies of hosts, given by their ids: a host that has one was counted, and counts no more."""
        for host in hosts:
            if self.store.get("hosts", host + layout.TALLIES["host"]) is not None:
                batch = self.store.batch()
                batch.delete("hosts", host + layout.TALLIES["host"])
                self.write(batch, {"hosts": -1})


def tallied(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for key, _ in rows:
        if key[layout.HOST_ID_BYTES :] == layout.TALLIES["host"]:
            yield key[: layout.HOST_ID_BYTES]


def move(
    ledger: "RocksLedger",
    place: Callable[[Location], Location | None],
    new: Mapping[str, int],
    old: Iterable[str],
    lost: Iterable[tuple[str, str]],
) -> None:
    """Let the rows of a ledger name the new places of their records. Nothing is popped; `place` says where a record lies from now
    on, or None where it does not move.

    `new` are the files that records moved to, and their bytes, `old` those that they left. Of the documents in `lost`, digest and
    URL as the archive writes it, the archive has no record any more under that URL: who meets such bytes next keeps them. Raises
    CrawlDirectoryError: it could not be written.
    """
    ledger.give_up_ends(dict(new))
    disown(ledger, (digest for digest, uri in lost if uri_field(ledger.contents.owner(digest)) == uri))
    ledger.flush_moves()
    with ledger.rewriting() as rewriting:
        store = rewriting.store
        moved = (
            (key, _encode(msgspec.structs.replace(row, location=there)))
            for key, data in store.scan("documents", b"", b"\xff" * 32)
            if (row := _rows.decode(data)).location is not None and (there := place(row.location)) is not None
        )
        for part in parts(moved):
            batch = store.batch()
            for key, value in part:
                batch.put("documents", key, value)
            rewriting.write(batch)
    ends = ledger.committed_ends()
    ledger.give_up_ends({file: None for file in old if file in ends})


def disown(ledger: "RocksLedger", digests: Iterable[str]) -> None:
    """Forget whose documents are: who meets their bytes next owns them."""
    for part in parts(digests):
        with ledger.group() as group:
            for digest in part:
                group.disown(digest)


#: First and last point of a stretch of the circle of domains (:func:`gossamer.values.hosts.domain_point`).
Arc = tuple[int, int]

_LAST_POINT = (1 << 8 * layout.DOMAIN_BYTES) - 1

#: Families whose entries move as they are. Seen URLs stay with the ledger that forgets the rest.
BY_DOMAIN = ("seen", "documents", "links", "requests", "hosts", "spaces")

aside_rows = msgspec.msgpack.Decoder(SetAside)


def dropping(
    ledger: "RocksLedger", arcs: Sequence[Arc], *, spaces: bool = True, is_at_work: bool = False
) -> Generator[None, None, None]:
    """Forget what an open ledger has of some stretches of the circle, in order, but that their URLs were seen. It can be
    repeated; nothing of them is in flight.

    Without `spaces`, what owners keep there stays, as after a move that was given up: among the entries may be some that the
    ledger has made itself, and the next try writes over them. Where it `is_at_work`, it has other domains in flight, groups between
    the steps, and goes on to owe what it owes. Raises CrawlDirectoryError: it could not be written.
    """
    ledger.flush_moves()
    with ledger.rewriting(is_at_work=is_at_work) as rewriting:
        store, keys = rewriting.store, rewriting.keys
        if is_at_work:
            ledger.queues.evict(lambda host: has_host(arcs, host))
            ledger.flush_moves()
        # Cursors say how much of a chunk is finished: they go when the chunks are gone.
        for part in parts(ranges(store, "frontier", layout.CHUNK, arcs)):
            batch = store.batch()
            tasks = 0
            for key, value in part:
                batch.delete("frontier", key)
                tasks += len(queued_hosts(store, key, value))
            rewriting.write(batch, finished=tasks)
            yield
        rewriting.drop("frontier", (key for key, _ in list(later(store, keys, arcs))), unfinished=1)
        rewriting.drop("frontier", (key for key, _ in ranges(store, "frontier", layout.SHELF, arcs)))
        for key, value in list(ranges(store, "frontier", layout.ASIDE, arcs)):
            batch = store.batch()  # a family's row says how many its tasks are
            batch.delete("frontier", key)
            rewriting.write(batch, {"set_aside": -aside_rows.decode(value).count})
        if is_at_work:
            # A host that has nothing gives up its turn when that comes. One that comes back must not be woken beside that.
            rewriting.drop("frontier", [key for key, _ in resting(store, arcs)])
        else:
            rewriting.drop_turns(lambda name: has_host(arcs, keys.host(name)))
        rewriting.drop_tallies(list(tallied(ranges(store, "hosts", b"", arcs))))
        for family in BY_DOMAIN[1 : None if spaces else -1]:
            found = ranges(store, family, b"", arcs)
            for part in parts(unowed(found) if family == "spaces" and is_at_work else found):
                rewriting.drop(family, (key for key, _ in part))
                yield


def forget_seen(ledger: "RocksLedger", arcs: Sequence[Arc]) -> None:
    """Count the URLs of some stretches of the circle as never met, of which a ledger at work has nothing else: their agent has lost
    them. Raises CrawlDirectoryError: it could not be written."""
    ledger.flush_moves()
    with ledger.rewriting(is_at_work=True) as rewriting:
        rewriting.drop("seen", (key for key, _ in ranges(rewriting.store, "seen", b"", arcs)))


def ranges(store: RocksStore, family: str, kind: bytes, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    behind_all = layout.after(kind) if kind else b"\xff" * (layout.HOST_ID_BYTES + 1)
    for first, last in arcs:
        end = kind + (last + 1).to_bytes(layout.DOMAIN_BYTES) if last < _LAST_POINT else behind_all
        yield from store.scan(family, kind + first.to_bytes(layout.DOMAIN_BYTES), end)


def is_in(arcs: Sequence[Arc], point: int) -> bool:
    at = bisect_right(arcs, (point, _LAST_POINT)) - 1
    return at >= 0 and arcs[at][1] >= point


def has_host(arcs: Sequence[Arc], host: bytes) -> bool:
    """Whether a host, by its id, lies in some stretches of the circle, which are in order."""
    return is_in(arcs, int.from_bytes(host[: layout.DOMAIN_BYTES]))


def resting(store: RocksStore, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    for key, value in store.scan("frontier", layout.RESTING, layout.after(layout.RESTING)):
        if has_host(arcs, key[-layout.HOST_ID_BYTES :]):
            yield key, value


def later(store: RocksStore, keys: layout.LedgerKeys, arcs: Sequence[Arc]) -> Iterator[tuple[bytes, bytes]]:
    for key, value in store.scan("frontier", layout.LATER, layout.after(layout.LATER)):
        if has_host(arcs, keys.host(layout.unpack_with_level(value)[0].host)):
            yield key, value


def queued_hosts(store: RocksStore, key: bytes, value: bytes) -> list[str]:
    """The host of each task of a chunk that is not finished."""
    cursors = layout.unpack_cursors(store.get("hosts", key[1:-9] + layout.CURSOR))
    return [task.host for task in layout.unfinished(cursors, key, value)]


def unowed(found: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Entries of spaces, but those that this ledger goes on to owe another agent."""
    return (one for one in found if not is_of(one[0][layout.HOST_ID_BYTES :], OWED.owner))
