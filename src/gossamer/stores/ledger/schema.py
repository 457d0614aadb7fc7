"""The version of a ledger's layout: older ones are migrated step by step, newer ones refused (FAULTS 108)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.ledger.keys import SCHEMA_KEY
from gossamer.stores.ledger.store import Batch, Store

#: The version that this program writes.
VERSION = 1

#: Puts into the batch what takes a store to the next version; the batch also bears the new version, so a kill between
#: two steps leaves a whole ledger of one version or the other.
Migration = Callable[[Store, Batch], None]

#: Version -> what takes it to the next one.
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({})


def stamp(batch: Batch, version: int = VERSION) -> None:
    """Write the version."""
    batch.put("meta", SCHEMA_KEY, str(version).encode())


def migrate(store: Store, version: int = VERSION, migrations: Mapping[int, Migration] = MIGRATIONS) -> int:
    """Take a store to `version`; returns the version that it had.

    Raises:
        CrawlDirectoryError: it is newer, or has none.
    """
    found = version_of(store, version)
    for step in range(found, version):
        batch = store.batch()
        migrations[step](store, batch)
        stamp(batch, step + 1)
        store.write(batch)
    return found


def version_of(store: Store, known: int = VERSION) -> int:
    """The version of a store.

    Raises:
        CrawlDirectoryError: it is newer than the one that is known, or it has none.
    """
    text = store.get("meta", SCHEMA_KEY)
    if text is None or not text.isdigit():
        raise CrawlDirectoryError(f"the ledger in {store.path} has no version; go back to a checkpoint")
    found = int(text)
    if found > known:
        raise CrawlDirectoryError(
            f"the ledger in {store.path} has version {found}, and this program knows {known}; use a newer Gossamer"
        )
    return found
