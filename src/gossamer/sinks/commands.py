"""`gossamer sink`: tries the sinks of a file without keeping anything."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.sinks.drivers import SinkDriver
    from gossamer.sinks.mapping import SinkSpec, SinkTable

#: Rows of each table that are tried.
TRIED = 10


class SinkVerdict(msgspec.Struct, frozen=True):
    """The result of the trial of one mapping."""

    sink: str
    source: str
    into: str
    """Where its rows go; empty, as the source is, where the sink itself cannot be reached."""
    rows: int
    """That the database took; they are not kept."""
    problem: str = ""
    """Why it would not; empty where all is well."""


def check_sinks(file: Path, directory: Path | None) -> Iterator[SinkVerdict]:
    """Try every mapping of a file: with rows of a crawl, or connections and columns alone. Raises UsageError: the file is none."""
    from gossamer.query.schema import tables_of, tables_that_ship
    from gossamer.sinks.mapping import read_sinks

    tables = tables_of(directory) if directory is not None else tables_that_ship()
    for name, sink in read_sinks(file, tables).sinks.items():
        try:
            yield from _posted(name, sink) if sink.is_webhook else _tried(name, sink, directory)
        except (OSError, UsageError) as error:
            yield SinkVerdict(name, "", "", 0, _one_line(error))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _posted(name: str, sink: "SinkSpec") -> Iterator[SinkVerdict]:
    """Send a delivery without rows for each mapping; a receiver that knows trials does nothing with it.
    Raises UsageError: there is no secret."""
    from gossamer.sinks.drivers import RowsRefusedError
    from gossamer.sinks.sink import Delivery, WebhookSink

    for at, table in enumerate(sink.tables):
        with contextlib.closing(WebhookSink(Path(), "", name, sink, at)) as webhook:
            problem = ""
            try:
                webhook.send(Delivery("", name, webhook.table, 0, [], is_trial=True))
            except (OSError, RowsRefusedError) as error:
                problem = _one_line(error)
            yield SinkVerdict(name, table.source, "a webhook", 0, problem)


def _tried(name: str, sink: "SinkSpec", directory: Path | None) -> Iterator[SinkVerdict]:
    """Try the mappings of a database over one connection.
    Raises OSError: the database does not answer, or refuses. Raises UsageError: there is no driver, or no password."""
    from gossamer.sinks.drivers import RowsRefusedError, connect_sink

    with contextlib.closing(connect_sink(sink)) as driver:
        for table in sink.tables:
            rows, problem = 0, ""
            try:
                problem = _lacking(driver, table) if table.into else ""
                rows = _put(driver, table, directory) if directory is not None and not problem else 0
            except (OSError, UsageError, RowsRefusedError) as error:
                problem = _one_line(error)
            finally:
                driver.rollback()
            yield SinkVerdict(name, table.source, table.into or "a statement", rows, problem)


def _lacking(driver: "SinkDriver", table: "SinkTable") -> str:
    """The database's messages about columns that it cannot find, each once; empty where it has all of them.

    A name stands behind that of its table: SQLite would take a name alone that it does not know for a text.
    """
    from gossamer.sinks.drivers import RowsRefusedError

    into = driver.name(table.into)
    names = [f"{into}.{driver.name(column)}" for column in table.columns]

    def said(wanted: str) -> str:
        try:
            driver.run(f"SELECT {wanted} FROM {into} WHERE 1 = 0")
        except (OSError, UsageError, RowsRefusedError) as error:
            driver.rollback()
            return _one_line(error)
        return ""

    if not said(", ".join(names)):
        return ""
    return said("1") or "; ".join(dict.fromkeys(filter(None, map(said, names))))


def _put(driver: "SinkDriver", table: "SinkTable", directory: Path) -> int:
    from gossamer.query.database import Database
    from gossamer.sinks.mapping import row_maker
    from gossamer.storage.members import crawl_id

    crawl = crawl_id(directory)
    with Database(directory) as database:
        kind = " WHERE kind = ?" if table.kind else ""
        answer = database.ask(f"SELECT * FROM {table.source}{kind} LIMIT {TRIED}", [table.kind] if table.kind else [])
        rows = list(map(row_maker(table, crawl, answer.columns, driver.instant), answer))
    if rows:
        driver.write(table, rows)
    return len(rows)


#: The exit status where a mapping does not do: a configuration to mend.
REFUSED = 2


@click.group()
def sink() -> None:
    """Check the databases to which `gossamer crawl --sinks FILE` writes rows."""


@sink.command()
@click.argument("file", metavar="FILE")
@click.argument("directory", metavar="[DIR]", required=False)
def check(file: str, directory: str | None) -> int:
    """Try every mapping of FILE: connect, look for the columns, and put ten rows of the crawl in DIR, which are not kept.

    \b
    gossamer sink check sinks.toml mycrawl
    """
    from gossamer.query.printing import shown
    from gossamer.storage.tables.places import crawl_directory

    status = 0
    for verdict in check_sinks(Path(file), crawl_directory(directory) if directory else None):
        said = verdict.problem or (
            f"takes rows ({verdict.rows} tried, none kept)" if directory else "has these columns"
        )
        mapping = f"{verdict.source} -> {verdict.into}: " if verdict.source else ""
        print(shown(f"{verdict.sink}: {mapping}{said}"))
        status = REFUSED if verdict.problem else status
    return status
