"""Tables: one declaration from which row log, Parquet, `query`, `reprocess` and the reference are made.
Suite: `gossamer.testing.check_table`.

Place in the flow: a row type says of each column what it means, where its value comes from and whether processing finds it.
:class:`Table` reads that once, when a table is named. Another process needs only the :class:`TableSpec`, which is plain data:
the row log writes it beside the rows, so that a table can be read where the package that declared it is not installed.

::

    class PriceRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
        url: Annotated[str, column("The page's URL.")]
        visit: Annotated[str, column("The visit that found it.")] = ""
        euros: Annotated[float, column("The price.", unit="EUR", is_made=True)]

    PRICES = Table("prices", PriceRow, "Prices that pages name.", rows=find_prices, is_made=True)

Packages offer tables under the entry point group `gossamer.tables`; a crawl keeps those that the setting `log.tables` names.

*Feeds* are the committed rows of a table in one order, for what follows a crawl (suite: `gossamer.testing.check_feed_consumer`).
:mod:`gossamer.query.feeds` reads rows out of row logs and of the Parquet made of them, in the order agent, run, serial, row, and
gives them to consumers: item files, triple stores, search indexes, sinks of databases. They are derived stores: fed by other
processes than the agent, each from a mark of its own, and made again when they are deleted.
"""

import datetime
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import msgspec

from gossamer.engine.subjects import found_at, loaded, offered, subjects
from gossamer.engine.subjects import shipped as shipped_subjects
from gossamer.values.task import Task
from gossamer.values.visit import Location, Response, Visit

#: The column that names the visit that a row belongs to: every table that is made of visits has it.
VISIT = "visit"

#: Types of columns, by their name in SQL.
ColumnType = Literal["VARCHAR", "BOOLEAN", "INTEGER", "BIGINT", "UBIGINT", "DOUBLE", "TIMESTAMP", "JSON"]

#: The name of a table or column: nothing that SQL could read as anything else.
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,62}$")]

#: The value in a column that a row leaves out.
Fill = str | int | float | bool | None

#: SQL's type for each type of a field, unless the column names another.
_TYPES: dict[type, ColumnType] = {
    str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", dict: "JSON", object: "JSON",
    datetime.datetime: "TIMESTAMP",
}  # fmt: skip


class RowSource(msgspec.Struct, frozen=True, gc=False):
    """The source of a row: one visit, and the place of its record."""

    visit: Visit
    task: Task
    response: Response
    location: Location | None = None
    """Where the archive keeps the answer; None where there is none."""
    hashes: bool = False
    """Columns that cost a hash of the whole body are wanted."""


#: Where the value of a column comes from.
Source = Callable[[RowSource], Any]


class Column(msgspec.Struct, frozen=True):
    """The declaration of a field of a row type."""

    doc: str
    """One sentence for the reference."""
    of: Source | str | None = None
    """Makes the value from a visit, or says where it lies in the :class:`RowSource`, as `task.url`, or `location?.file` of
    what may be None, which leaves the column out; None where the table's own function makes whole rows."""
    type: ColumnType | None = None
    """The type in SQL, where the field's own does not say it."""
    unit: str = ""
    """The unit of a number, as `ms` or `bytes`."""
    fill: Fill = None
    """The value that the table shows where a row leaves the column out, instead of NULL."""
    same_as: str = ""
    """The column whose value it shows there instead."""
    host_of: str = ""
    """The column of URLs whose hosts it shows. The row log leaves it out, and a reader of the log works it out."""
    is_made: bool = False
    """Processing finds the value, so `reprocess` finds it anew."""


#: How a row type declares one.
column = Column


class ColumnSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column, as plain data."""

    name: Name
    type: ColumnType
    doc: str = ""
    unit: str = ""
    fill: Fill = None
    same_as: Name | None = None
    host_of: Name | None = None
    is_many: bool = False
    """A row of the log holds a list of values, one for each row of the table."""
    is_made: bool = False


class TableSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table, as plain data: all that a process needs that reads it."""

    name: Name
    doc: str = ""
    columns: tuple[ColumnSpec, ...] = ()
    page: Name | None = None
    """The column that holds the URL of the visit; None where rows belong to no visit."""
    kind: Name | None = None
    """The column by which a run of some processors knows the rows that it replaces."""
    is_made: bool = False
    """Processing makes the rows, so `reprocess` makes them anew."""
    without: tuple[Name, str] | None = None
    """A column and a value: rows of the log that have it are no rows of the table."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.columns)

    def made(self) -> tuple[str, ...]:
        """The columns that processing finds."""
        return tuple(one.name for one in self.columns if one.is_made)


class Table:
    """One table: its row type, and what makes rows of a visit."""

    def __init__(
        self,
        name: str,
        row: type[msgspec.Struct],
        doc: str,
        *,
        rows: Callable[[RowSource], Iterable[msgspec.Struct]] | None = None,
        mend: Callable[[Any, int], msgspec.Struct] | None = None,
        page: str = "url",
        kind: str = "",
        is_made: bool = False,
        is_logged: bool = False,
        without: tuple[str, str] | None = None,
    ) -> None:
        """Declare a table.

        Args:
            name: of the table, in lower case.
            row: type of a row; every field is annotated with :func:`column`. Fields that are lists make one row of the log a
                frame: one row of the table for each element, the first list being the one that no row leaves out.
            doc: one sentence for the reference.
            rows: makes the rows of a visit; where it is None every column says where it comes from, or rows come from elsewhere.
            mend: makes another row of one that JSON cannot hold (size 0) or that has so many bytes; otherwise it is left out.
            page: the column that holds the URL of the visit; empty where rows belong to no visit.
            kind: the column by which a run of some processors knows the rows that it replaces.
            is_made: processing makes the rows.
            is_logged: `logs/crawl.jsonl` has the rows too.
            without: a column and a value: rows that have it are written, and are no rows of the table.

        Raises:
            TypeError: a field is no column, or columns lack what the table says of them.
        """
        self.name = name
        """Its name in `query` and in the setting `log.tables`."""
        self.row = row
        self.is_logged = is_logged
        self.mend = mend
        hints, fields = typing.get_type_hints(row, include_extras=True), msgspec.structs.fields(row)
        found: dict[str, Column] = {}
        for field in fields:
            said = [one for one in getattr(hints[field.name], "__metadata__", ()) if isinstance(one, Column)]
            if not said:
                raise TypeError(f"{row.__name__}.{field.name} has no description; annotate it with column(...)")
            found[field.name] = said[0]
        specs = tuple(_spec(field, found[field.name]) for field in fields)
        sources = {name: one.of for name, one in found.items() if one.of is not None}
        self._made = tuple((name, of) for name, of in sources.items() if not isinstance(of, str))
        paths: dict[str, list[tuple[str, str]]] = {}
        for own, of in sources.items():
            if isinstance(of, str):
                part, _, rest = of.rpartition("?.")
                paths.setdefault(part, []).append((own, rest))
        self._parts = tuple(
            (part and attrgetter(part), tuple(name for name, _ in those), _tuple_of([path for _, path in those]))
            for part, those in paths.items()
        )
        self.rows = rows or ((lambda told: (self.row_of(told),)) if len(sources) == len(found) else None)
        try:
            plain = {"name": name, "doc": doc, "columns": specs, "page": page or None, "kind": kind or None}
            self.spec = msgspec.convert(
                msgspec.to_builtins({**plain, "is_made": is_made, "without": without}), TableSpec
            )
        except msgspec.ValidationError as error:
            raise TypeError(f"table {name!r}: {error}") from None
        wanted = {page, VISIT} if page else set()
        if missing := {*wanted, kind or page} - {""} - {*self.spec.names}:
            raise TypeError(f"table {name!r} lacks the columns {', '.join(sorted(missing))}")

    def __repr__(self) -> str:
        return f"<Table {self.name}>"

    def row_of(self, told: RowSource, row: type[msgspec.Struct] | None = None) -> msgspec.Struct:
        """The row whose columns say themselves where they come from; `row` is a type derived from the table's."""
        columns: dict[str, Any] = {}
        for part_of, names, values_of in self._parts:
            part = part_of(told) if part_of else told
            if part is not None:
                columns.update(zip(names, values_of(part), strict=True))
        for name, of in self._made:
            columns[name] = of(told)
        return (row or self.row)(**columns)


def _tuple_of(paths: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """The values at these paths of an object: read by one call of the library, where they are several."""
    if len(paths) > 1:
        return attrgetter(*paths)
    get = attrgetter(paths[0])
    return lambda source: (get(source),)


def _spec(field: msgspec.structs.FieldInfo, said: Column) -> ColumnSpec:
    bare, is_many = _bare(field.type)
    kind = said.type or next((sql for kind, sql in _TYPES.items() if bare is kind), None)
    if kind is None:
        kind = "VARCHAR" if isinstance(bare, type) and issubclass(bare, Enum) else "JSON"
    default = field.default
    # A number or a truth that is left out at its default is that default; an empty text says that there is nothing to say.
    fill = said.fill if said.fill is not None else default if isinstance(default, int | float) else None
    return ColumnSpec(
        field.name,
        kind,
        said.doc,
        said.unit,
        fill,
        said.same_as or None,
        said.host_of or None,
        is_many=is_many,
        is_made=said.is_made,
    )


def _bare(hint: Any) -> tuple[Any, bool]:
    """The class of a field's values, and whether the field is a list of them."""
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is list:
        return _bare(typing.get_args(hint)[0])[0], True
    return typing.get_origin(hint) or hint, False


# -- tables by name: one that ships has a line here, and modules are imported when a table is named

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


_imported = cache(found_at)


def table_named(name: str) -> Table:
    """The table of this name.

    Raises:
        UnknownName: there is none, or a package offers something else; lists the known ones.
    """
    place = SHIPPED.get(name) or next((there for one in subjects() if (there := one.tables.get(name))), "")
    if place:
        table: Table = _imported(place)
        return table
    # Readers of tables that ship have no use for these.
    from gossamer.engine.errors import UnknownName
    from gossamer.engine.sheet import nearest

    entry = next(iter(offered(GROUP, name)), None)
    if entry is None:
        known = [*SHIPPED, *sorted({one.name for one in offered(GROUP)} - {*SHIPPED})]
        raise UnknownName(f"unknown table {name!r}{nearest(name, known)}")
    found = loaded(entry, "table")
    if not isinstance(found, Table) or found.name != name:
        raise UnknownName(f"{entry.value} is not a table called {name!r}")
    return found


def shipped() -> Iterator[Table]:
    return map(table_named, (*SHIPPED, *(name for one in shipped_subjects() for name in one.tables)))


# -- feeds


class FeedPlace(msgspec.Struct, frozen=True, order=True):
    """The position up to which rows of one agent were taken."""

    run: str = ""
    serial: int = 0
    row: int = 0
    """Rows that were taken of this segment."""


class FeedMark(msgspec.Struct, frozen=True):
    """How far a consumer is."""

    generation: int = 0
    """Which making of the table the places belong to: `reprocess` makes all rows anew."""
    places: dict[str, FeedPlace] = {}
    """Agent -> how far its rows were taken."""


class FeedBatch(msgspec.Struct, frozen=True):
    """Some rows, and the mark of a consumer that has kept them."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    """JSON is text, an instant is a `datetime` in UTC without a zone. Rows of one visit follow each other, and are all here."""
    mark: FeedMark


class FollowerOrder(msgspec.Struct, frozen=True):
    """Asks a worker to feed something that follows a crawl (:func:`gossamer.query.following.follow_crawl`)."""

    directory: str
    """Of the crawl."""
    follower: str
    """`items`, `triples`, `endpoints`, `index`, `packages`, or `sink-NAME`."""
    once: bool = False
    """Look once; otherwise go on until the input of the worker is closed."""


class FollowerNote(msgspec.Struct, frozen=True):
    """A message of a follower for a person, in one line."""

    text: str
    is_lacking: bool = False
    """It has not got every row, or may still have some that are gone; otherwise it has, and the line is a remark."""


class FeedConsumer(Protocol):
    """Keeps the results that it makes from the rows of one table.

    Promises:
        1. Rows given to `take` are kept together with their mark: all of them or none, even if the process is killed.
        2. `mark` returns the mark of the last kept batch, also in a process that starts later.
        3. After `rebuild` no trace of earlier rows is left, and the mark is at the beginning of the generation.
    """

    table: str
    """The tables of which it takes rows."""
    columns: tuple[str, ...]
    """The columns that it takes; all of them where it names none."""
    rows_at_once: int
    """About so many rows make a batch; one visit's rows stay together."""

    def mark(self) -> FeedMark:
        """The present mark; an empty one if it has kept nothing."""

    def rebuild(self, generation: int) -> None:
        """Drop everything: all rows of this generation come again."""

    def take(self, batch: FeedBatch) -> None:
        """Keep some rows.

        Raises:
            OSError: they could not be kept; they come again.
        """


class CountingConsumer(Protocol):
    """Counts the rows of one table, and holds none of them: they come as SQL over each file.

    What was counted lasts as long as the consumer, so `mark` is an empty one at its beginning.
    """

    def mark(self) -> FeedMark: ...

    def rebuild(self, generation: int) -> None:
        """Forget everything: all rows of this generation come again."""

    def count(self, connection: Any, rows: str) -> int:
        """Count some rows; returns how many there were.

        Args:
            connection: a connection to DuckDB.
            rows: SQL that gives them, with all columns of the table.
        """

    def reached(self, mark: FeedMark) -> None:
        """The end of the rows that were counted last."""


@runtime_checkable
class FinishingConsumer(Protocol):
    """A consumer that has something to do when the crawl stops, such as writing a file that cannot grow.

    Promises:
        1. `finish` makes the same result from the taken rows, even if it is called several times or in another process.
        2. If it is killed, it leaves either its earlier result or the whole new one.
    """

    def finish(self) -> list[str]:
        """All committed rows were taken: complete the result. Returns lines for a person to read.

        Raises:
            OSError: it could not be written; the next stop tries again.
        """
