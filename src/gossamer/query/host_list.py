"""The hosts of a crawl as a list that is searched, sorted and shown page by page, however many there are.

Place in the flow: the dashboard makes one from the table `hosts` and keeps it for some seconds, since that table is counted anew
from all pages. The list is a value: who pages through it sees one state, and is told of when.
"""

import datetime
import time
from pathlib import Path
from typing import Any

import msgspec

from gossamer.model.errors import UsageError
from gossamer.query.database import Database

#: Columns that are shown and sorted by; hosts come sorted by name.
COLUMNS = ("host", "pages", "errors", "delay", "robots_state", "ip", "last_seen")

#: Rows of one answer at most.
MOST = 500


class HostPage(msgspec.Struct, frozen=True):
    """A part of the list."""

    made_at: str
    """When the list was made, UTC."""
    total: int
    """Hosts that were found."""
    rows: list[dict[str, Any]]


class HostList:
    """Every host of a crawl, as of an instant."""

    def __init__(self, columns: dict[str, list[Any]], made_at: float) -> None:
        """Take the columns as they are; `made_at` is in seconds since the epoch."""
        self._columns = columns
        self.made_at = made_at
        self.orders: dict[tuple[str, bool], list[int]] = {}
        """The orders that were asked for, by column and direction: rows by number."""

    def __repr__(self) -> str:
        return f"<HostList of {len(self)}>"

    def __len__(self) -> int:
        return len(self._columns["host"])

    def page(
        self, *, search: str = "", sort: str = "host", descending: bool = False, offset: int = 0, limit: int = 100
    ) -> HostPage:
        """Some rows of the hosts whose names hold a text.

        Args:
            search: part of a name; empty for all.
            sort: a column; hosts that have nothing there come last, and equal ones by name.
            descending: the greatest first.
            offset: rows before the first.
            limit: rows at most.

        Raises:
            UsageError: there is no such column, or a number is out of bounds.
        """
        if sort not in COLUMNS:
            raise UsageError(f"hosts are sorted by {', '.join(COLUMNS)}")
        if offset < 0 or not 0 < limit <= MOST:
            raise UsageError(f"limit has to be above 0 and up to {MOST}, and offset 0 or more")
        order = self.sorted_by(sort, descending=descending)
        if search:
            text = search.lower()
            found = bytes(text in name for name in self._columns["host"])
            order = list(filter(found.__getitem__, order))
        made = datetime.datetime.fromtimestamp(self.made_at, datetime.UTC).isoformat(timespec="seconds")
        return HostPage(made, len(order), [self._row(number) for number in order[offset : offset + limit]])

    def sorted_by(self, sort: str, *, descending: bool) -> list[int]:
        """The numbers of all rows in an order. Sorting a million takes 0.4 s, so it is kept."""
        found = self.orders.get((sort, descending))
        if found is None:
            found = self.orders[sort, descending] = self._order(sort, descending)
        return found

    def _order(self, sort: str, descending: bool) -> list[int]:
        if sort == "host":
            return list(range(len(self))[::-1] if descending else range(len(self)))
        values = self._columns[sort]
        there = [number for number, value in enumerate(values) if value is not None]
        there.sort(key=values.__getitem__, reverse=descending)
        return there + [number for number, value in enumerate(values) if value is None]

    def _row(self, number: int) -> dict[str, Any]:
        return {name: self._columns[name][number] for name in COLUMNS}


def read_hosts(directory: Path, before: HostList | None = None) -> HostList:
    """The hosts of a crawl as its tables have them now, while it runs too; sorted already as `before` was asked for."""
    columns = ", ".join(f"{name}::VARCHAR" if name == "last_seen" else name for name in COLUMNS)
    now = time.time()
    with Database(directory, threads=1) as database:
        rows = list(database.ask(f"SELECT {columns} FROM hosts WHERE host IS NOT NULL ORDER BY host"))
    made = HostList({name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)}, now)
    for sort, descending in before.orders if before is not None else ():
        made.sorted_by(sort, descending=descending)
    return made
