"""Rows taken out of the tables, or changed in them: new files, and one switch to these.

Place in the flow: `gossamer delete` calls :func:`remove_rows`, and :mod:`gossamer.query.versions` calls :func:`rewrite_tables`,
when every row log is a table. A run that dies before the switch leaves the tables as they were, and one that is called again
finds nothing to do. Who follows a table begins anew, as after `reprocess`.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.contracts.tables import TableSpec
from gossamer.model.deletion import DeletionTarget
from gossamer.model.errors import CrawlDirectoryError
from gossamer.query.engine import PARQUET, Connection, connect, select_table
from gossamer.query.noted import switch
from gossamer.query.places import (
    COUNTED,
    TABLES,
    TableManifest,
    converting,
    manifest,
    run_file,
    table_files,
    table_names,
)
from gossamer.query.schema import HOSTS, host_of, tables_of
from gossamer.stores.scratch import scratch
from gossamer.stores.segments import segments
from gossamer.stores.sums import Noted, noted
from gossamer.stores.tables.copies import COPIES

#: Tables whose rows name a URL without being made by a visit of it, and the column that does.
_NAMING = {COPIES.name: "url"}

#: A column that names the first document with the same bytes: a row that has it is a copy of what is deleted.
_COPY = "duplicate_of"


def check_tables(directory: Path) -> None:
    """Refuse tables of which nobody says what their columns are.

    Raises:
        CrawlDirectoryError: there is one.
    """
    known = {*tables_of(directory), HOSTS.name, *COUNTED}
    for name in table_names(directory):
        if name not in known:
            raise CrawlDirectoryError(
                f"{directory / TABLES / name} is a table that nobody declared, so its rows cannot be judged; move it elsewhere"
            )


class TableChange(msgspec.Struct, frozen=True):
    """What happens to the rows of a table, as SQL over its rows `t`."""

    gone: str
    """The condition of the rows that go."""
    changed: str = "false"
    """The condition of the rows that change."""
    columns: str = "t.*"
    """The columns of the rows that stay."""
    joined: str = ""
    """What they are joined with; one row of it at most for each."""


def remove_rows(directory: Path, target: DeletionTarget) -> int:
    """Replace the files of every table that has rows of a target; returns how many rows are gone."""

    def change(spec: TableSpec) -> TableChange | None:
        condition = _condition(spec, target)
        return TableChange(condition) if condition else None

    return rewrite_tables(directory, change)


def rewrite_tables(
    directory: Path,
    change_of: Callable[[TableSpec], TableChange | None],
    prepare: Callable[[Connection, Path], None] = lambda connection, folder: None,
) -> int:
    """Replace the files of every table that has rows which go or change; returns how many rows are gone.

    Args:
        directory: the crawl directory.
        change_of: what happens to a table; None: nothing.
        prepare: makes tables that conditions name; it gets a folder for links, whose names SQL can hold.
    """
    specs = tables_of(directory)
    made: dict[str, Noted | None] = {}
    gone: list[str] = []
    removed = 0
    with converting(directory, wait=True), scratch() as folder, connect(folder) as connection:
        stands = manifest(directory)
        place = Path(folder)
        (place / "out").symlink_to(directory.resolve())
        prepare(connection, place)
        for name in table_names(directory):
            files = table_files(directory, name).current
            change = change_of(specs[name]) if name in specs else None
            if not files or change is None:
                continue
            _view(connection, place, specs[name], files)
            source = f'"table_{name}" t {change.joined}'
            going, changing = _numbers(
                connection,
                f"SELECT count(*) FILTER ({change.gone}), count(*) FILTER ({change.changed}) FROM {source}",
            )
            if not going and not changing:
                continue
            path = run_file(directory, name, stands.run + 1)
            fresh = path.with_name(f"{path.name}.new")
            shown = place / "out" / fresh.relative_to(directory)
            rest = f"SELECT {change.columns} FROM {source} WHERE ({change.gone}) IS NOT TRUE"
            connection.execute(f"COPY ({rest}) TO '{shown}' ({PARQUET})")
            made[f"{name}/{path.name}"] = noted(fresh)
            fresh.replace(path)
            gone += [f"{name}/{file.name}" for file in files]
            removed += going
        if made:
            switch(directory, made, TableManifest(stands.run + 1, (*stands.gone, *gone)))
    return removed


def _view(connection: Connection, place: Path, spec: TableSpec, files: list[Path]) -> None:
    links = []
    for number, file in enumerate(files):
        links.append(place / f"{spec.name}-{number}.parquet")
        links[-1].symlink_to(file.resolve())
    connection.execute(f'CREATE VIEW "table_{spec.name}" AS {select_table(spec, links)}')


def _numbers(connection: Connection, question: str) -> tuple[int, ...]:
    row = connection.execute(question).fetchone()
    return tuple(map(int, row or ()))


def _condition(spec: TableSpec, target: DeletionTarget) -> str:
    """SQL of the rows that go; empty where no row of the table can be one."""
    urls = [name for name in (spec.page, _COPY, _NAMING.get(spec.name)) if name and name in spec.names]
    parts = [_is(target, f'"{name}"') for name in urls]
    if target.kind == "host" and "host" in spec.names:
        parts.append(_is_host(target, '"host"'))
    return " OR ".join(f"coalesce({part}, false)" for part in parts)


def _is(target: DeletionTarget, column: str) -> str:
    if target.kind == "url":
        return f"{column} = {_text(target.name)}"
    return _is_host(target, host_of(column))


def _is_host(target: DeletionTarget, host: str) -> str:
    return f"({host} = {_text(target.name)} OR ends_with({host}, {_text('.' + target.name)}))"


def _text(value: str) -> str:
    return "'{}'".format(value.replace("'", "''"))


def leftovers(directory: Path) -> list[Path]:
    """Files that still hold rows of tables beside the tables: somebody reads them, so they could not be removed."""
    old = [directory / TABLES / name for name in manifest(directory).gone]
    return [
        *(path for path in old if path.exists()),
        *(one.path for one in segments(directory)),
        *directory.glob("state/*/index/*.cdxj"),
    ]
