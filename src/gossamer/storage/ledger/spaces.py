"""Spaces on the disk: entries of their owners, under the host's id or under none, and how many bytes each owner has there.

Place in the flow: an owner opens its space when it starts; a :mod:`~gossamer.storage.ledger.group` stages entries and puts them
into its batch. The version stands in each key, so that a migration moves entries from one version to the next, some at a time:
killed anywhere, it goes on with those that are left.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gossamer.engine.files import Point, crash_at
from gossamer.storage.contract import Migration, Space, SpaceEntry, SpaceFigures
from gossamer.storage.ledger.layout import COMMON_PREFIX, HOST_ID_BYTES, SPACE_VERSION_PREFIX, LedgerKeys, after
from gossamer.storage.ledger.schema import parse_version
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.patterns import lazy_pattern

#: The form of an owner's name: it stands in keys behind its length.
_OWNER = lazy_pattern(r"[a-z0-9][a-z0-9-]{0,31}")

#: Entries that a migration moves in one batch: it is in memory, and a space is not.
AT_ONCE = 2_000

#: Entries and counts that groups wrote last, and bytes of a value, that memory keeps: mail of other agents is deleted soon after it
#: was put, and its hosts come again. Some 2 MB; when that is full it is emptied, which costs each entry one look at the store.
_REMEMBERED, _SHORT = 4_096, 256

#: Stands where an entry has the length of its owner's name: the bytes that the owner has in this place.
_USED = b"\x00"

#: Family, and what keys of one place in it begin with: a host's id, or the prefix of what belongs to no host.
_Place = tuple[str, bytes]

_COMMON: _Place = ("meta", COMMON_PREFIX)

#: Family and key.
Where = tuple[str, bytes]


class _OpenSpace(msgspec.Struct, frozen=True):
    """A space, and what its keys have behind the id of a host or the prefix of what has none: every look into it asks for that."""

    space: Space
    entries: bytes
    used: bytes


def _label(owner: str) -> bytes:
    return bytes([len(owner)]) + owner.encode()


def _entry(rest: bytes, value: bytes) -> SpaceEntry:
    length = rest[0]
    return SpaceEntry(rest[1 : 1 + length].decode(), rest[1 + length], rest[2 + length :], value)


def common_entries(store: RocksStore, owner: str) -> dict[bytes, bytes]:
    """Keys and values of what an owner has under no host, as they lie in the store."""
    prefix = COMMON_PREFIX + _label(owner)
    return dict(store.scan("meta", prefix, after(prefix)))


def put_common(batch: Batch, owner: str, entries: Mapping[bytes, bytes]) -> None:
    """Put such entries into a batch of a store that has none of this owner, and how many bytes they are."""
    label = _label(owner)
    skip = len(COMMON_PREFIX) + len(label) + 1
    for key, value in entries.items():
        batch.put("meta", key, value)
    used = sum(len(key) - skip + len(value) for key, value in entries.items())
    if used:
        batch.put("meta", COMMON_PREFIX + _USED + label, used.to_bytes(8))


def is_of(rest: bytes, owner: str) -> bool:
    """Whether what follows a host's id in the key of an entry, or of a count, names this owner."""
    return rest.removeprefix(_USED).startswith(_label(owner))


def recount(store: RocksStore, batch: Batch, start: bytes, end: bytes) -> None:
    """Put into a batch how many bytes owners have under each host between two keys: entries of two stores lie there as one."""
    used: dict[bytes, int] = {}
    counted: dict[bytes, int] = {}
    for key, value in store.scan("spaces", start, end):
        host, rest = key[:HOST_ID_BYTES], key[HOST_ID_BYTES:]
        if rest.startswith(_USED):
            counted[key] = int.from_bytes(value)
            continue
        label = rest[: 1 + rest[0]]
        whose = host + _USED + label
        used[whose] = used.get(whose, 0) + len(rest) - len(label) - 1 + len(value)
    for key in counted.keys() - used.keys():
        batch.delete("spaces", key)
    for key, number in used.items():
        batch.put("spaces", key, number.to_bytes(8))


class KeptSpaces:
    """The spaces of one ledger. Contract: `Spaces`."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys
        self._open: dict[str, _OpenSpace] = {}
        self._recent: dict[Where, bytes | None] = {}

    def open(self, space: Space) -> None:
        """Begin to use a space, or go on with it; entries of an older version are migrated. Raises CrawlDirectoryError: a newer
        program has written it, or it is older, and only looked at; ValueError: the declaration cannot be kept."""
        if not _OWNER.fullmatch(space.owner) or not 1 <= space.version <= 255:
            raise ValueError(f"a space cannot be called {space.owner!r} with version {space.version}")
        if len(space.migrations) != space.version - 1:
            raise ValueError(f"space {space.owner!r} has version {space.version}: it needs one migration for each step")
        text = self._store.get("meta", SPACE_VERSION_PREFIX + space.owner.encode())
        found, newest = (space.version, space.version) if text is None else parse_version(text)
        if found is None or newest > space.version:
            told = "an unknown version" if found is None else f"version {newest}"
            raise CrawlDirectoryError(
                f"the ledger in {self._store.path} holds {space.owner!r} of {told}, and this program knows "
                f"{space.version}; use a newer program"
            )
        if text is None and not self._store.is_read_only:
            self._stamp(space, str(space.version))
        if found < space.version and self._store.is_read_only:
            raise CrawlDirectoryError(
                f"the ledger in {self._store.path} holds {space.owner!r} of an older version; resume the crawl"
            )
        for step in range(found, space.version):
            self._stamp(space, f"{step}>{step + 1}")
            self._migrate(space, step, space.migrations[step - 1])
            self._stamp(space, f"{step + 1}")
        label = _label(space.owner)
        self._open[space.owner] = _OpenSpace(space, label + bytes([space.version]), _USED + label)

    def _stamp(self, space: Space, version: str) -> None:
        self._store.put("meta", SPACE_VERSION_PREFIX + space.owner.encode(), version.encode())

    def _migrate(self, space: Space, version: int, migration: Migration) -> None:
        label = _label(space.owner)
        old, new = label + bytes([version]), label + bytes([version + 1])
        batch, used = self._store.batch(), dict[Where, int]()
        for (family, start), label_and_key, value in self._entries():
            if not label_and_key.startswith(old):
                continue
            key = label_and_key[len(old) :]
            batch.delete(family, start + label_and_key)
            moved = migration(key, value)
            change = -len(key) - len(value)
            if moved is not None:
                batch.put(family, start + new + moved[0], moved[1])
                change += len(moved[0]) + len(moved[1])
            where = family, start + _USED + label
            before = int.from_bytes(self.value(where) or b"") if where not in used else used[where]
            used[where] = before + change
            batch.put(*where, used[where].to_bytes(8))
            if len(batch) >= AT_ONCE:
                self._store.write(batch)
                batch, used = self._store.batch(), {}
                crash_at(Point.RECOVERY)
        self._store.write(batch)

    def _entries(self) -> Iterator[tuple[_Place, bytes, bytes]]:
        """Every entry and count: its place, what follows it in the key, and the value."""
        for key, value in self._store.scan("spaces", b"", b"\xff" * (HOST_ID_BYTES + 1)):
            yield ("spaces", key[:HOST_ID_BYTES]), key[HOST_ID_BYTES:], value
        for key, value in self._store.scan("meta", COMMON_PREFIX, after(COMMON_PREFIX)):
            yield _COMMON, key[len(COMMON_PREFIX) :], value

    # -- what is kept

    def get(self, space: Space, host: str | None, key: bytes = b"") -> bytes | None:
        return self.value(self.where(space, host, key))

    def get_many(self, space: Space, hosts: Sequence[str], key: bytes = b"") -> list[bytes | None]:
        return self._store.get_many("spaces", [self.where(space, host, key)[1] for host in hosts])

    def scan(
        self, space: Space, host: str | None, prefix: bytes = b"", start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        family, low = self.where(space, host, prefix)
        skip = len(low) - len(prefix)
        for key, value in self._store.scan(family, max(low, low[:skip] + start), after(low)):
            yield key[skip:], value

    def walk(self, space: Space, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        label = self.where(space, "", b"")[1][HOST_ID_BYTES:]
        for key, value in self._store.scan("spaces", after + b"\x00", b"\xff" * (HOST_ID_BYTES + 1)):
            if key.startswith(label, HOST_ID_BYTES):
                yield key, value

    def within(self, space: Space, start: bytes, end: bytes) -> Iterator[bytes]:
        label = self.where(space, "", b"")[1][HOST_ID_BYTES:]
        return (value for key, value in self._store.scan("spaces", start, end) if key.startswith(label, HOST_ID_BYTES))

    def of_host(self, host: str) -> Iterator[SpaceEntry]:
        start = self._keys.host(host)
        for key, value in self._store.scan("spaces", start, after(start)):
            rest = key[HOST_ID_BYTES:]
            if not rest.startswith(_USED):
                yield _entry(rest, value)

    def figures(self) -> list[SpaceFigures]:
        versions = {
            key[len(SPACE_VERSION_PREFIX) :]: parse_version(value)[0] or 0
            for key, value in self._store.scan("meta", SPACE_VERSION_PREFIX, after(SPACE_VERSION_PREFIX))
        }
        keys, sizes, wrong = Counter[bytes](), Counter[bytes](), Counter[bytes]()
        # Bytes that were found in a place, without those that are counted there.
        uncounted = Counter[tuple[_Place, bytes]]()
        for place, rest, value in self._entries():
            if rest.startswith(_USED):
                uncounted[place, rest[2 : 2 + rest[1]]] -= int.from_bytes(value)
                continue
            one = _entry(rest, value)
            owner, size = one.owner.encode(), len(one.key) + len(value)
            uncounted[place, owner] += size
            keys[owner] += 1
            sizes[owner] += size
            wrong[owner] += one.version != versions.get(owner)
        for (_, owner), number in uncounted.items():
            wrong[owner] += number != 0
        owners = sorted({*keys, *versions, *wrong})
        return [SpaceFigures(one.decode(), versions.get(one, 0), keys[one], sizes[one], wrong[one]) for one in owners]

    # -- for groups

    def where(self, space: Space, host: str | None, key: bytes) -> Where:
        """Where an entry lies. Raises ValueError: this space is not open as it is declared here."""
        entries = self._known(space).entries
        return (
            ("meta", COMMON_PREFIX + entries + key)
            if host is None
            else ("spaces", self._keys.host(host) + entries + key)
        )

    def where_used(self, space: Space, host: str | None) -> Where:
        used = self._known(space).used
        return ("meta", COMMON_PREFIX + used) if host is None else ("spaces", self._keys.host(host) + used)

    def value(self, where: Where) -> bytes | None:
        return self._recent[where] if where in self._recent else self._store.get(*where)

    def applied(self, changes: Mapping[Where, bytes | None]) -> None:
        """A group has written these."""
        if len(self._recent) + len(changes) > _REMEMBERED:
            self._recent.clear()
        for where, value in changes.items():
            if value is None or len(value) <= _SHORT:
                self._recent[where] = value
            else:
                self._recent.pop(where, None)

    def forget(self) -> None:
        """Ask the store again: something else than a group writes there."""
        self._recent.clear()

    def _known(self, space: Space) -> _OpenSpace:
        known = self._open.get(space.owner)
        if known is None or (known.space is not space and known.space != space):
            raise ValueError(f"space {space.owner!r} is not open as it is declared; its owner opens it when it starts")
        return known
