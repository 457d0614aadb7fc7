"""The version of a ledger's layout: older ones are migrated step by step, newer ones refused (fault 108)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gossamer.flow.crashing import Point, crash_at
from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.ledger.keys import SCHEMA_KEY
from gossamer.stores.ledger.lanes import to_lanes
from gossamer.stores.ledger.store import Batch, RocksStore

#: The version that this program writes.
VERSION = 5

#: Takes a store to the next version: it may write as many batches as it needs, if it can go on where a kill interrupted it.
Migration = Callable[[RocksStore], None]


def _as_it_is(store: RocksStore) -> None:
    """Nothing has another form, but a program that knows the older version would not understand what is new."""


#: Version -> what takes it to the next one. Version 3 adds fingerprints, what watchers have learnt, and validators of tasks;
#: version 4 adds spaces, and requests that are no plain GET; version 5 adds what is set aside.
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({1: to_lanes, 2: _as_it_is, 3: _as_it_is, 4: _as_it_is})


def stamp(batch: Batch, version: int = VERSION, following: int | None = None) -> None:
    """Write the version, and to which one it is on the way: until it is there, no other program can make sense of it."""
    batch.put("meta", SCHEMA_KEY, f"{version}{'' if following is None else f'>{following}'}".encode())


def migrate(store: RocksStore, version: int = VERSION, migrations: Mapping[int, Migration] = MIGRATIONS) -> int:
    """Take a store to `version`; returns the version that it had.

    Raises:
        CrawlDirectoryError: it is newer, or has none.
    """
    found = version_of(store, version)
    for step in range(found, version):
        _stamp(store, step, step + 1)
        migrations[step](store)
        crash_at(Point.RECOVERY)
        _stamp(store, step + 1)
    return found


def version_of(store: RocksStore, known: int = VERSION) -> int:
    """The version of a store; of one that was on its way to another, the one that it had.

    Raises:
        CrawlDirectoryError: it is newer than the one that is known, or it has none.
    """
    found, newest = parse_version(store.get("meta", SCHEMA_KEY) or b"")
    if found is None:
        raise CrawlDirectoryError(f"the ledger in {store.path} has no version; go back to a checkpoint")
    if newest > known:
        raise CrawlDirectoryError(
            f"the ledger in {store.path} has version {newest}, and this program knows {known}; use a newer Gossamer"
        )
    return found


def parse_version(text: bytes) -> tuple[int | None, int]:
    """The version that a text says, and the one that it is on the way to (the same where it is not); None for no version."""
    numbers = text.split(b">")
    if not all(number.isdigit() for number in numbers):
        return None, 0
    return int(numbers[0]), int(numbers[-1])


def _stamp(store: RocksStore, version: int, following: int | None = None) -> None:
    batch = store.batch()
    stamp(batch, version, following)
    store.write(batch)
