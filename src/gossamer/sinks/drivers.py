"""How the sink speaks to each kind of database: connections, one transaction at a time, many rows at once.

PostgreSQL takes rows by COPY into a table of the transaction's own, and from there in two statements. SQLite is in Python. Every
other database comes by SQLAlchemy. Names are quoted, values are bound: rows are strangers' words.
"""

import datetime
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

from gossamer.engine.errors import install_command
from gossamer.sinks.mapping import Row, SinkSpec, SinkTable, named_parameters
from gossamer.values.errors import UsageError

#: Seconds that a connection may take, and that SQLite waits for another writer.
PATIENCE = 10

#: Rows that one statement names by value, where the database has no better way.
_AT_ONCE = 500


class RowsRefusedError(Exception):
    """The database refuses rows for what is in them: a text too long, a value missing."""


class SinkDriver(ABC):
    """A connection. Errors of the database come out as OSError, or RowsRefusedError where rows are at fault."""

    _database: Any
    """As the driver's library has it."""
    _errors: tuple[type[Exception], ...]
    """Classes of all errors of the library, and those that rows are at fault for."""
    _refusals: tuple[type[Exception], ...]

    #: How a parameter of a number is written, and how a name is quoted.
    mark = "?"
    quote = '"'

    def name(self, text: str) -> str:
        """A name of the database, quoted; parts by points."""
        parts = text.split(".")
        if not all(parts) or any(not part.isprintable() for part in parts):
            raise UsageError(f"{text!r} cannot be the name of a table or column")
        return ".".join(f"{self.quote}{part.replace(self.quote, self.quote * 2)}{self.quote}" for part in parts)

    @staticmethod
    def instant(value: datetime.datetime) -> Any:
        """An instant with its zone, as the database takes it."""
        return value

    @abstractmethod
    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """One statement; `mark` stands for values."""

    @abstractmethod
    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """One statement for each of some rows."""

    @abstractmethod
    def run_named(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """A user's statement with `:name` parameters for each of some rows."""

    def write(self, to: SinkTable, rows: Sequence[Row]) -> None:
        """Put rows of the columns of a mapping where that says: into its table, or by its statement."""
        names = list(to.columns)
        if to.statement:
            self.run_named(to.statement, [dict(zip(names, row, strict=True)) for row in rows])
        else:
            self.put(to.into, names, rows, to.key)

    def _told(self, act: Callable[[], Any]) -> Any:
        """The result of a call of the library, with its errors as they come out."""
        try:
            return act()
        except self._refusals as error:
            raise RowsRefusedError(_told_by_driver(error)[1]) from None
        except self._errors as error:
            code, said = _told_by_driver(error)
            raise (RowsRefusedError if code in _REFUSING else OSError)(said) from None

    def commit(self) -> None:
        """Keep what was done."""
        self._told(self._database.commit)

    def rollback(self) -> None:
        """Undo it; a connection that is lost is given up."""
        with suppress(*self._errors):
            self._database.rollback()

    def close(self) -> None:
        with suppress(*self._errors):
            self._database.close()

    def put(self, into: str, columns: Sequence[str], rows: Sequence[Row], key: Sequence[str]) -> None:
        """Add rows, in the place of those with the same key."""
        table, names = self.name(into), [self.name(column) for column in columns]
        if key:
            same = " AND ".join(f"{self.name(column)} = {self.mark}" for column in key)
            places = [columns.index(column) for column in key]
            self.run_many(f"DELETE FROM {table} WHERE {same}", [[row[at] for at in places] for row in rows])
        marks = ", ".join([self.mark] * len(names))
        self.run_many(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)

    def delete(self, into: str, column: str, values: Sequence[Any]) -> None:
        """Remove the rows that have one of these values."""
        for start in range(0, len(values), _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            marks = ", ".join([self.mark] * len(some))
            self.run(f"DELETE FROM {self.name(into)} WHERE {self.name(column)} IN ({marks})", some)

    def set_true(self, into: str, marked: str, column: str, values: Sequence[Any]) -> None:
        rows = [(True, value) for value in values]
        self.run_many(
            f"UPDATE {self.name(into)} SET {self.name(marked)} = {self.mark} WHERE {self.name(column)} = {self.mark}",
            rows,
        )


class SqliteDriver(SinkDriver):
    """SQLite, by the module of Python."""

    _errors = (sqlite3.Error,)
    _refusals = (
        *(sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError),
        *(OverflowError, UnicodeEncodeError),
    )

    def __init__(self, spec: SinkSpec) -> None:
        # As SQLAlchemy has it: three slashes for a path from here, four for one from the root.
        path = unquote(urlsplit(spec.url).path)[1:]
        # A file without the tables is of no use to anyone, so none is made.
        place = f"file:{quote(path)}?mode=rw"
        try:
            self._database = self._told(lambda: sqlite3.connect(place, PATIENCE, isolation_level=None, uri=True))
        except OSError as error:
            raise OSError(f"{path}: {error if Path(path).exists() else 'there is no such database'}") from None

    @staticmethod
    def instant(value: datetime.datetime) -> Any:
        return value.isoformat(sep=" ")

    def _begin(self) -> None:
        if not self._database.in_transaction:
            self._told(lambda: self._database.execute("BEGIN IMMEDIATE"))

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        self._begin()
        return cast("list[Row]", self._told(lambda: self._database.execute(sql, values).fetchall()))

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._begin()
        self._told(lambda: self._database.executemany(sql, rows))

    def run_named(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._begin()
        self._told(lambda: self._database.executemany(statement, rows))


class PostgresDriver(SinkDriver):
    """PostgreSQL, by psycopg, which is installed with `gossamer[postgresql]`."""

    mark = "%s"

    def __init__(self, spec: SinkSpec) -> None:
        try:
            import psycopg  # an extra: most crawls have no database
        except ImportError:
            raise UsageError(f"PostgreSQL needs psycopg; install it: {install_command('postgresql')}") from None
        self._errors = (psycopg.Error, UnicodeError)
        # The last one comes from a trigger of the user's.
        self._refusals = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.RaiseException)
        password = spec.password.read() if spec.password else None
        url = spec.url.replace(f"{spec.scheme}:", "postgresql:", 1)
        self._database = self._told(lambda: psycopg.connect(url, connect_timeout=PATIENCE, password=password))

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        def act() -> list[Row]:
            cursor = self._database.execute(sql.encode(), list(values))
            return list(cursor.fetchall()) if cursor.description else []

        return cast("list[Row]", self._told(act))

    def run_many(self, sql: str, rows: Sequence[Sequence[Any] | Mapping[str, Any]]) -> None:
        def act() -> None:
            with self._database.cursor() as cursor:
                cursor.executemany(sql.encode(), rows)

        self._told(act)

    def run_named(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.run_many(named_parameters(statement), rows)

    def put(self, into: str, columns: Sequence[str], rows: Sequence[Row], key: Sequence[str]) -> None:
        table, names = self.name(into), ", ".join(self.name(column) for column in columns)

        def act() -> None:
            with self._database.cursor() as cursor:
                cursor.execute("DROP TABLE IF EXISTS pg_temp.gossamer_rows")
                made = f"CREATE TEMP TABLE gossamer_rows ON COMMIT DROP AS SELECT {names} FROM {table} WITH NO DATA"
                cursor.execute(made.encode())
                with cursor.copy(f"COPY gossamer_rows ({names}) FROM STDIN".encode()) as copy:
                    for row in rows:
                        copy.write_row(row)
                if key:
                    same = " AND ".join(f"t.{self.name(column)} = r.{self.name(column)}" for column in key)
                    cursor.execute(f"DELETE FROM {table} t USING gossamer_rows r WHERE {same}".encode())
                cursor.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM gossamer_rows".encode())

        self._told(act)


#: Errors of MariaDB and MySQL that rows are at fault for, and that PyMySQL does not count as such: constraints of either, and
#: what triggers raise.
_REFUSING = frozenset({1644, 3819, 4025})


class AlchemyDriver(SinkDriver):
    """Any other database, by SQLAlchemy, which is installed with `gossamer[sqlalchemy]`."""

    def __init__(self, spec: SinkSpec) -> None:
        try:
            import sqlalchemy  # an extra: most crawls have no database
        except ImportError:
            raise UsageError(f"{spec.scheme} needs SQLAlchemy; install it: {install_command('sqlalchemy')}") from None
        self._alchemy, self._errors = sqlalchemy, (sqlalchemy.exc.SQLAlchemyError,)
        self._refusals = (sqlalchemy.exc.DataError, sqlalchemy.exc.IntegrityError)
        try:
            url = sqlalchemy.make_url(spec.url)
            if spec.password:
                url = url.set(password=spec.password.read())
            engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
        except (sqlalchemy.exc.ArgumentError, ImportError) as error:
            raise UsageError(f"{spec.scheme}: {_first_line(error)}") from None
        self.quote = engine.dialect.identifier_preparer.initial_quote
        self._database = self._told(engine.connect)

    def _named(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any:
        """A statement with `?` for values, as SQLAlchemy has it."""
        parts = sql.split("?")
        text = "".join(f"{part}:v{at}" for at, part in enumerate(parts[:-1])) + parts[-1]
        told = [{f"v{at}": value for at, value in enumerate(row)} for row in rows]
        return self._told(lambda: self._database.execute(self._alchemy.text(text), told if len(told) != 1 else told[0]))

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        answer = self._named(sql, [values])
        return [tuple(row) for row in answer.fetchall()] if answer.returns_rows else []

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._named(sql, rows)

    def run_named(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._told(lambda: self._database.execute(self._alchemy.text(statement), rows))


def _told_by_driver(error: Exception) -> tuple[object, str]:
    cause = getattr(error, "orig", None) or error
    if len(cause.args) == 2 and isinstance(cause.args[0], int):
        return cause.args[0], _first_line(cause.args[1])
    return None, _first_line(cause)


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0][:300]


def connect_sink(spec: SinkSpec) -> SinkDriver:
    """A connection to the database of a sink.
    Raises UsageError: there is no driver, or no password. Raises OSError: the database does not answer, or refuses."""
    if spec.scheme == "sqlite":
        return SqliteDriver(spec)
    if spec.scheme in ("postgresql", "postgres"):
        return PostgresDriver(spec)
    return AlchemyDriver(spec)
