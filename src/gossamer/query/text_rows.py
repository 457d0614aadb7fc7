"""Rows of a row log whose columns are texts, read without DuckDB: for feeds of millions of short rows, such as triples.

Place in the flow: a feed (:mod:`gossamer.query.feeds`) reads logs here where it can. DuckDB takes about 3 us a row to parse a
frame, to unnest it and to hand the rows to Python; here it is a third of that. The rows are those of
:func:`gossamer.query.schema.select_from_log`, which a test compares.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import msgspec

from gossamer.contracts.tables import ColumnSpec, TableSpec

TextRow = tuple[object, ...]

#: What reads one column: from a decoded line, and from how many rows it has.
_Read = Callable[[Any, int], Sequence[str | None]]


class TextRows:
    """Reads some columns of a table's log."""

    def __init__(self, table: TableSpec, columns: Sequence[str]) -> None:
        """Nothing is read yet; :func:`is_textual` holds."""
        chosen = _chosen(table, columns)
        fields = {one.name: one for one in _needed(table, chosen)}
        line = msgspec.defstruct(
            "Line",
            [(name, list[str | None] | None if one.is_many else str | None, None) for name, one in fields.items()],
            gc=False,
        )
        self._decode = msgspec.json.Decoder(line).decode
        self._readers = [_reader(one) for one in chosen]
        self._first = next((one.name for one in table.columns if one.is_many), "")

    def __repr__(self) -> str:
        return f"<TextRows of {len(self._readers)} columns>"

    def of(self, path: Path, start: int, end: int) -> Iterator[tuple[list[TextRow], int]]:
        """The rows of each line of a log from byte `start` to byte `end`, with the line's length.

        Raises:
            OSError: the log cannot be read.
            ValueError: a line is no row of the table.
        """
        at = start
        with path.open("rb") as log:
            log.seek(start)
            for line in log:
                at += len(line)
                if at > end:
                    return
                if line.isspace():  # it could not be read, and a person went on without it
                    continue
                try:
                    decoded = self._decode(line)
                except msgspec.DecodeError as error:
                    raise ValueError(f"{path} is damaged before byte {at}: {error}") from None
                yield self._rows(decoded), len(line)

    def _rows(self, line: Any) -> list[TextRow]:
        count = len(getattr(line, self._first) or ()) if self._first else 1
        return list(zip_longest(*(read(line, count) for read in self._readers)))


def is_textual(table: TableSpec, columns: Sequence[str]) -> bool:
    """Whether these columns of a table can be read so: all are texts as they stand in the log, and every row of it counts."""
    chosen = _chosen(table, columns)
    plain = all(one.type == "VARCHAR" and not one.host_of and not one.same_as for one in _needed(table, chosen))
    return bool(chosen) and plain and table.without is None


def _chosen(table: TableSpec, columns: Sequence[str]) -> list[ColumnSpec]:
    known = {one.name: one for one in table.columns}
    return [known[name] for name in columns if name in known] if all(name in known for name in columns) else []


def _needed(table: TableSpec, chosen: Sequence[ColumnSpec]) -> list[ColumnSpec]:
    """These, and the one whose length says how many rows a line has."""
    first = [one for one in table.columns if one.is_many][:1]
    return list({one.name: one for one in chain(chosen, first)}.values())


def _reader(column: ColumnSpec) -> _Read:
    name, fill = column.name, None if column.fill is None else str(column.fill)
    if column.is_many:

        def each(line: Any, count: int) -> Sequence[str | None]:
            values: Sequence[str | None] | None = getattr(line, name)
            return [fill] * count if values is None else values

        return each

    def same(line: Any, count: int) -> Sequence[str | None]:
        value = getattr(line, name)
        return [fill if value is None else value] * count

    return same
