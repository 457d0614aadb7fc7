"""A ledger at rest that is changed beneath its queues and groups: the common steps of deletions and moves.

Place in the flow: :meth:`~gossamer.storage.ledger.ledger.RocksLedger.rewriting` gives one to
:mod:`~gossamer.storage.ledger.deleting` and :mod:`~gossamer.storage.ledger.moving`, with nothing in flight. Every batch leaves
a whole ledger, so that each can be killed anywhere; the memory of the ledger is read anew at the end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

import msgspec

from gossamer.storage.ledger.keys import HELD, HOST_ID_BYTES, RESTING, ROTATION, TALLIES, LedgerKeys, after
from gossamer.storage.ledger.store import Batch, RocksStore

T = TypeVar("T")

#: Entries of one batch: it is in memory, and a ledger is not.
AT_ONCE = 1_000

_encode = msgspec.msgpack.Encoder().encode


def parts(items: Iterable[T], size: int = AT_ONCE) -> Iterator[list[T]]:
    """The items, some at a time."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


class LedgerRewriting:
    """The store of a ledger at rest, and ways to change it."""

    def __init__(
        self, store: RocksStore, keys: LedgerKeys, write: Callable[[Batch, Mapping[str, int], int], None]
    ) -> None:
        self.store = store
        self.keys = keys
        self._write = write

    def write(self, batch: Batch, counts: Mapping[str, int] | None = None, *, finished: int = 0) -> None:
        """Write a batch.

        Args:
            batch: the changes.
            counts: numbers to add to counters.
            finished: how many unfinished tasks the batch takes away.
        """
        self._write(batch, counts or {}, finished)

    def copy(self, family: str, entries: Iterable[tuple[bytes, bytes]], *, unfinished: int = 0) -> None:
        """Put entries; each stands for so many unfinished tasks."""
        for part in parts(entries):
            batch = self.store.batch()
            put = batch.putter(family)
            for key, value in part:
                put(key, value)
            self.write(batch, finished=-unfinished * len(part))

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
        for kind in (HELD, RESTING):
            rows = self.store.scan("frontier", kind, after(kind))
            self.drop("frontier", (key for key, name in rows if is_gone(name.decode())))
        batch = self.store.batch()
        for key, value in self.store.scan("frontier", ROTATION, after(ROTATION)):
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
            if self.store.get("hosts", host + TALLIES["host"]) is not None:
                batch = self.store.batch()
                batch.delete("hosts", host + TALLIES["host"])
                self.write(batch, {"hosts": -1})


def tallied(rows: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """The ids of hosts that were counted, among rows of the family `hosts`."""
    for key, _ in rows:
        if key[HOST_ID_BYTES:] == TALLIES["host"]:
            yield key[:HOST_ID_BYTES]
