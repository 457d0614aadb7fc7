"""Domains that one ledger hands to another: a parcel in a file, written by the one that gives and read by the one that takes.

Place in the flow: where agents join a crawl, leave it, or get domains of a busy one, the giver writes all that it has of some
stretches of the circle of domains: rows, links, queues, requests, hosts and spaces (:func:`giving`). The taker reads it
(:func:`taking`), and the giver forgets its part afterwards (:func:`~gossamer.storage.ledger.moving.dropping`): no process opens
two ledgers. All keys of a domain lie together (:mod:`~gossamer.storage.ledger.layout`), so that a stretch is a range in each
family, and nothing else is read.

Both work in steps and may be killed anywhere: a parcel is whole or not there, and a taker notes with each part that it has it. A
ledger at work does the same between its groups, where nothing of these domains is in flight.
"""

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeVar, cast

import msgspec

from gossamer.storage.contract import Space
from gossamer.storage.ledger import layout, moving
from gossamer.storage.ledger.depth import NAME as REACH
from gossamer.storage.ledger.depth import merged_reach
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.opening import secret_of
from gossamer.storage.ledger.spaces import common_entries, put_common, recount
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.storage.ledger.waiting import ROTATION_NAMES
from gossamer.values.errors import CrawlDirectoryError

#: Beginnings of counters that say that hosts have something of a kind: without them no part would look for it.
_SIGNS = ("learnt:", "ordered:", "digests")

#: Bytes of the number at the end of the key of a task that waits for its time.
_SERIAL_BYTES = 8

#: Where a ledger keeps how many frames of each parcel it has read; and what stands there of one that it has read whole.
_TAKEN, _WHOLE = layout.OWN_PREFIX + b"parcels", -1

#: Parcels of which a ledger remembers that it has read them: several for each change of the crawl's agents.
_REMEMBERED = 256

#: Bytes of the length of a frame.
_LENGTH = 4

#: Stands behind the last point of a stretch, so that every key with that point lies before it.
_BEHIND = b"\xff" * layout.HOST_ID_BYTES

_encode = msgspec.msgpack.Encoder().encode


def parcels_for(directory: Path, taker: str, number: int) -> list[Path]:
    """The parcels for an agent in a crawl directory, of the change of agents with this number, each in the folder of its giver."""
    return sorted((directory / "state").glob(f"*/parcels/*-{taker}{_suffix(number)}"))


def parcel_path(directory: Path, giver: str, taker: str, number: int) -> Path:
    """Where a parcel lies that an agent writes as agents change: among its own files, since they are its own until it is read."""
    return directory / "state" / giver / "parcels" / f"{giver}-{taker}{_suffix(number)}"


def given_by(directory: Path, giver: str) -> Iterator[tuple[Path, str, int]]:
    """The parcels that an agent has kept, each with its taker and the number of the change."""
    for path in (directory / "state" / giver / "parcels").glob(f"{giver}-*-*"):
        taker, _, number = path.name.removeprefix(f"{giver}-").rpartition("-")
        if number.isdecimal():
            yield path, taker, int(number)


def _suffix(number: int) -> str:
    """Changes that an older version began have no number."""
    return f"-{number}" if number else ""


class Moved(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a move."""

    hosts: int = 0
    """Hosts that had URLs queued."""
    tasks: int = 0
    """URLs that are queued, or wait for their time."""
    set_aside: int = 0


class ParcelHead(msgspec.Struct, frozen=True):
    """The giver's word about a parcel. It stands at the end, when all is counted."""

    moved: Moved
    arcs: tuple[moving.Arc, ...]
    """The stretches of the circle, in order."""
    secret: bytes
    serial: int
    """Chunks are numbered: those that a host gets from now on have to stand behind those that it brings."""
    counters: dict[str, int]
    versions: dict[bytes, bytes]
    """Of spaces."""
    reach: bytes | None
    """How far links were announced."""
    common: dict[str, dict[bytes, bytes]]
    """Entries of owners of spaces who keep under no host what holds for all agents."""
    notes: dict[str, bytes]
    """Values of other owners, by their names."""


class _Part(msgspec.Struct, frozen=True, array_like=True):
    """Entries that one batch takes."""

    family: str
    entries: list[tuple[bytes, bytes]]
    tasks: int = 0
    """How many unfinished tasks they stand for."""
    set_aside: int = 0
    is_numbered: bool = False
    """Keys end with a number of the giver's, and get one of the taker's."""
    hosts: tuple[str, ...] = ()
    """Hosts that wait for their turn."""


_heads = msgspec.msgpack.Decoder(ParcelHead)
_parts = msgspec.msgpack.Decoder(_Part)

#: Goes on with each step, and returns the numbers at the end.
Steps = Generator[None, None, Moved]

M = TypeVar("M")


def at_once(steps: Generator[None, None, M], between: Callable[[], None] = lambda: None) -> M:
    """Do all steps, and `between` them something else; returns their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(M, end.value)
        between()


def giving(
    ledger: RocksLedger,
    arcs: Sequence[moving.Arc],
    path: Path,
    *,
    common: Sequence[str] = (),
    notes: Mapping[str, bytes] = MappingProxyType({}),
    is_at_work: bool = False,
) -> Steps:
    """Write what a ledger has of some stretches of the circle, in order, into a parcel: whole, or not at all. Nothing of them is
    in flight.

    What the owners in `common` keep under no host holds for all agents: it is copied, and stays where it is too. `notes` are
    further values for the taker. Where the ledger `is_at_work`, it goes on to owe what it owes, and hosts that rest are waiting for
    their turn then, since the taker does not know that they rest. Raises OSError: it cannot be written; CrawlDirectoryError: the
    ledger cannot be read, or no other agent could read its keys.
    """
    check_secret(ledger)
    ledger.flush_moves()
    hosts = tasks = set_aside = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with ledger.rewriting(is_at_work=True) as given, fresh.open("wb") as file:
        for part in _given(given.store, given.keys, arcs, is_at_work=is_at_work):
            _put(file, _encode(part))
            hosts, tasks, set_aside = hosts + len(part.hosts), tasks + part.tasks, set_aside + part.set_aside
            yield
        moved = Moved(hosts, tasks, set_aside)
        head = ParcelHead(
            moved,
            tuple(arcs),
            ledger.secret,
            ledger.queues.marks.serial,
            dict(ledger.counters()),
            dict(given.store.scan("meta", layout.SPACE_VERSION_PREFIX, layout.after(layout.SPACE_VERSION_PREFIX))),
            ledger.depths.kept,
            {owner: common_entries(given.store, owner) for owner in common},
            dict(notes),
        )
        data = _encode(head)
        _put(file, b"")
        file.write(data + len(data).to_bytes(_LENGTH))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return moved


def _given(
    store: RocksStore, keys: layout.LedgerKeys, arcs: Sequence[moving.Arc], *, is_at_work: bool
) -> Iterator[_Part]:
    """The parts of a parcel. Queued tasks come behind the cursors that say which of them are finished."""
    for family in moving.BY_DOMAIN:
        found = moving.ranges(store, family, b"", arcs)
        if family == "spaces" and is_at_work:
            found = moving.unowed(found)
        elif family == "hosts" and is_at_work:
            found = (one for one in found if one[0][layout.HOST_ID_BYTES :] != layout.RESTING)
        for part in moving.parts(found):
            yield _Part(family, part)
    for part in moving.parts(moving.later(store, keys, arcs)):
        yield _Part("frontier", part, len(part), is_numbered=True)
    for part in moving.parts(moving.ranges(store, "frontier", layout.SHELF, arcs)):
        yield _Part("frontier", part)
    for part in moving.parts(moving.ranges(store, "frontier", layout.ASIDE, arcs)):
        yield _Part("frontier", part, set_aside=sum(moving.aside_rows.decode(value).count for _, value in part))
    for part in moving.parts(() if is_at_work else moving.resting(store, arcs)):
        yield _Part("frontier", part)
    before = b""
    for part in moving.parts(moving.ranges(store, "frontier", layout.CHUNK, arcs), ROTATION_NAMES):
        tasks, names = 0, []
        for key, value in part:
            hosts = moving.queued_hosts(store, key, value)
            tasks += len(hosts)
            if hosts and key[:-9] != before:
                before = key[:-9]
                names.append(hosts[0])
        yield _Part("frontier", part, tasks, hosts=tuple(names))


def _put(file: BinaryIO, data: bytes) -> None:
    file.write(len(data).to_bytes(_LENGTH) + data)


def head_of(path: Path) -> ParcelHead:
    """The giver's word about a parcel. Raises CrawlDirectoryError: it is damaged."""
    try:
        with path.open("rb") as file:
            file.seek(-_LENGTH, os.SEEK_END)
            length = int.from_bytes(file.read())
            file.seek(-_LENGTH - length, os.SEEK_END)
            return _heads.decode(file.read(length))
    except (OSError, ValueError) as error:
        raise CrawlDirectoryError(f"{path} is damaged ({error}); bring it back from a copy") from None


def _parts_in(path: Path) -> Iterator[_Part]:
    with path.open("rb") as file:
        while length := int.from_bytes(file.read(_LENGTH)):
            yield _parts.decode(file.read(length))


def seen_in(ledger: RocksLedger, path: Path, identities: Sequence[str]) -> frozenset[str]:
    """Those of some URLs that the giver of a parcel had met; `ledger` makes the same keys."""
    with ledger.rewriting(is_at_work=True) as given:
        sought = {given.keys.url(identity): identity for identity in identities}
    seen = (key for part in _parts_in(path) if part.family == "seen" for key, _ in part.entries)
    return frozenset(sought[key] for key in seen if key in sought)


def found_within(ledger: RocksLedger, space: Space, arcs: Sequence[moving.Arc]) -> list[bytes]:
    """The values that an owner of a space has under hosts of these stretches."""
    ends = [(first.to_bytes(layout.DOMAIN_BYTES), last.to_bytes(layout.DOMAIN_BYTES) + _BEHIND) for first, last in arcs]
    return [value for start, end in ends for value in ledger.spaces.within(space, start, end)]


def taking(ledger: RocksLedger, path: Path, *, is_at_work: bool = False) -> Steps:
    """Read a parcel into a ledger, from where the last try ended. It has nothing of these stretches but entries of spaces, which
    stay, and count; where it `is_at_work`, it has other domains in flight, and groups between the steps. Raises
    CrawlDirectoryError: giver and taker have keys of different secrets, or one cannot be read or written."""
    head = head_of(path)
    check_secret(ledger, head.secret)
    ledger.flush_moves()
    with ledger.rewriting(is_at_work=is_at_work) as rewriting:
        taker = _Taking(ledger, rewriting, path.name)
        if taker.known != _WHOLE:
            taker.begin(head)
            for number, part in enumerate(_parts_in(path), 2):
                taker.take(part, number)
                yield
            taker.end(head.arcs)
    return head.moved


def check_secret(ledger: RocksLedger, secret: bytes | None = None) -> None:
    """Refuse, by a CrawlDirectoryError, a ledger whose keys differ from those of another one, or of all others."""
    if ledger.secret != (secret or secret_of(ledger.places.state.parent)):
        raise CrawlDirectoryError(
            f"the ledger in {ledger.places.state} has keys of its own, which no other agent can read: it was made before agents "
            "could join; leave the number of agents as it is"
        )


class _Taking:
    """One parcel on its way into a ledger: each batch notes how many frames of it are there."""

    def __init__(self, ledger: RocksLedger, rewriting: moving.LedgerRewriting, name: str) -> None:
        self._ledger = ledger
        self._rewriting = rewriting
        self._store = rewriting.store
        self._name = name
        self._taken: dict[str, int] = msgspec.msgpack.decode(self._store.get("meta", _TAKEN) or b"\x80")
        self.known = self._taken.get(name, 0)

    def _write(self, batch: Batch, number: int, counts: Mapping[str, int], tasks: int = 0) -> None:
        others = [one for one in self._taken.items() if one[0] != self._name]
        batch.put("meta", _TAKEN, _encode({**dict(others[-_REMEMBERED:]), self._name: number}))
        self._rewriting.write(batch, counts, finished=-tasks)

    def begin(self, head: ParcelHead) -> None:
        """Take all that holds for every domain: versions of spaces, how far links were announced, common entries, signs."""
        marks = self._ledger.queues.marks
        marks.serial = max(marks.serial, head.serial)
        if self.known:
            return
        store, batch = self._store, self._store.batch()
        for key, value in head.versions.items():
            if store.get("meta", key) is None:
                batch.put("meta", key, value)
        place = layout.OWN_PREFIX + REACH.encode()
        is_empty = next(store.scan("seen", b"", b"\xff" * (layout.HOST_ID_BYTES + 1)), None) is None
        reach = merged_reach(None if is_empty else store.get("meta", place), head.reach)
        if reach is not None:
            batch.put("meta", place, reach)
        for owner, entries in head.common.items():
            put_common(batch, owner, {**entries, **common_entries(store, owner)})
        counters = self._ledger.counters()
        signs = [name for name in head.counters if name.startswith(_SIGNS) and not counters.get(name)]
        self._write(batch, 1, dict.fromkeys(signs, 1))

    def take(self, part: _Part, number: int) -> None:
        """Take a part, unless an earlier try did. Marks are asked for each time: groups come in between."""
        if number <= self.known:
            return
        store, batch = self._store, self._store.batch()
        marks, entries = self._ledger.queues.marks, part.entries
        if part.is_numbered:
            # Two ledgers may have given one number to tasks of one time.
            numbers = range(marks.serial, marks.serial + len(entries))
            entries = [
                (key[:-_SERIAL_BYTES] + at.to_bytes(_SERIAL_BYTES), value)
                for at, (key, value) in zip(numbers, entries, strict=True)
            ]
            marks.serial += len(entries)
        put = batch.putter(part.family)
        for key, value in entries:
            put(key, value)
        if part.hosts:
            batch.put("frontier", layout.serial_key(layout.ROTATION, marks.serial), _encode(part.hosts))
            marks.serial += 1
        new_hosts = 0
        if part.family == "hosts":
            new_hosts = sum(
                store.get("hosts", host + layout.TALLIES["host"]) is None for host in moving.tallied(entries)
            )
        self._write(batch, number, {"hosts": new_hosts, "set_aside": part.set_aside}, part.tasks)

    def end(self, arcs: Sequence[moving.Arc]) -> None:
        """Count what the taker's own entries and those that came are together."""
        batch = self._store.batch()
        for first, last in arcs:
            recount(
                self._store, batch, first.to_bytes(layout.DOMAIN_BYTES), last.to_bytes(layout.DOMAIN_BYTES) + _BEHIND
            )
        self._write(batch, _WHOLE, {})
        self._store.sync()
