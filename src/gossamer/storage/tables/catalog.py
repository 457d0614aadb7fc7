"""Which table stands behind a name: those that ship, and those of packages that offer some (entry points `gossamer.tables`).

A table that ships has one line here. Modules are imported when a table is named.
"""

from collections.abc import Iterator

from gossamer.engine.subjects import found_at, offered, subjects
from gossamer.engine.subjects import shipped as shipped_subjects
from gossamer.storage.tables.contract import Table

#: The entry point group by which other packages offer tables.
GROUP = "gossamer.tables"

#: Name -> `module:TABLE`, in the order in which they are told.
SHIPPED = {
    "pages": "gossamer.storage.tables.pages:PAGES",
    "links": "gossamer.storage.tables.row_tables:LINKS",
    "items": "gossamer.storage.tables.row_tables:ITEMS",
    "errors": "gossamer.storage.tables.row_tables:ERRORS",
    "host_notes": "gossamer.storage.tables.row_tables:HOST_NOTES",
    "copies": "gossamer.storage.tables.row_tables:COPIES",
    "samples": "gossamer.storage.tables.row_tables:SAMPLES",
}


def table_named(name: str) -> Table:
    """The table of this name.

    Raises:
        UnknownName: there is none, or a package offers something else; lists the known ones.
    """
    place = SHIPPED.get(name) or next((there for one in subjects() if (there := one.tables.get(name))), "")
    if not place:
        return _offered(name)
    table: Table = found_at(place)
    return table


def _offered(name: str) -> Table:
    """The table of another package."""
    # Who reads tables that ship has no use for these.
    from gossamer.engine.errors import UnknownName
    from gossamer.engine.sheet import nearest

    entry = next(iter(offered(GROUP, name)), None)
    if entry is None:
        known = [*SHIPPED, *sorted({one.name for one in offered(GROUP)} - {*SHIPPED})]
        raise UnknownName(f"unknown table {name!r}{nearest(name, known)}")
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownName(f"table {name!r} cannot be loaded from {entry.value}: {error}") from error
    if not isinstance(found, Table) or found.name != name:
        raise UnknownName(f"{entry.value} is not a table called {name!r}")
    return found


def shipped() -> Iterator[Table]:
    return map(table_named, (*SHIPPED, *(name for one in shipped_subjects() for name in one.tables)))
