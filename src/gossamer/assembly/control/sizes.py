"""How large the main data sets of a crawl are, and how fast they grow.

Place in the flow: :mod:`~gossamer.assembly.control.standing` asks here. The stores know their sizes; only tables and
sieves are directories of files, which are walked over, and seldom.
"""

import shutil
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

import msgspec

from gossamer.query.places import TABLES
from gossamer.stores.ledger.ledger import STATE_DIRECTORY, RocksLedger

#: Where rows lie that are not tables yet, and the seen set of a crawl in bulk: inside the states of agents.
ROWS, SIEVES = "*/rows", "*/sieve"

#: Names of the data sets that are walked over.
WALKED = ("tables", "sieve")

#: The end of the names of archive files, whatever their compression.
_ARCHIVED = ".warc"


class DataSet(msgspec.Struct, frozen=True):
    """One of the main data sets."""

    name: str
    """`seen`, `frontier`, `ledger`, `archive` or `tables`; of a crawl in bulk also `sieve`, where its seen set lies."""
    bytes: int
    """On the disk, and an estimate of what a store holds in memory until it writes it there."""
    growth: float = 0.0
    """Bytes a second over the last minute; 0 at rest."""
    items: int = 0
    """URLs, of `seen` and `frontier`; 0 of the others."""


def sizes_of(ledger: RocksLedger) -> dict[str, int]:
    """Bytes of all data sets that know their own size: no directory is looked at."""
    families = ledger.sizes()
    archive = sum(end for file, end in ledger.committed_ends().items() if _ARCHIVED in file.rpartition("/")[2])
    return {
        "seen": families.get("seen", 0),
        "frontier": families.get("frontier", 0) + families.get("requests", 0),
        "ledger": sum(families.values()),
        "archive": archive,
    }


def walked_sizes(directory: Path) -> dict[str, int]:
    """Bytes of the data sets that are directories: their files are walked over."""
    state = directory / STATE_DIRECTORY
    found = {"tables": _bytes_below([directory / TABLES, *state.glob(ROWS)])}
    sieves = list(state.glob(SIEVES))
    return {**found, "sieve": _bytes_below(sieves)} if sieves else found


def disk_free(directory: Path) -> int:
    """Bytes that we may still write on the disk of a directory; 0 where nobody knows."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return 0


def _bytes_below(places: Iterable[Path]) -> int:
    total = 0
    for path in chain.from_iterable(place.rglob("*") for place in places):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # whoever makes such files has just removed it
    return total


def data_sets(sizes: Mapping[str, int], growth: Mapping[str, float], *, discovered: int, queued: int) -> list[DataSet]:
    """Sizes and growth by name as one list."""
    items = {"seen": discovered, "frontier": queued}
    return [DataSet(name, size, round(growth.get(name, 0.0), 1), items.get(name, 0)) for name, size in sizes.items()]
