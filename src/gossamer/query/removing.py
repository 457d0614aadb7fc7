"""Rows taken out of the tables, or changed in them: new files, and one switch to these.

Place in the flow: `gossamer delete` calls :func:`remove_rows`, and :mod:`gossamer.query.latest_visits` calls
:func:`rewrite_tables`, when every row log is a table. A run that dies before the switch leaves the tables as they were, and
one that is called again finds nothing to do. Who follows a table begins anew, as after `reprocess`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gossamer.engine.files import scratch
from gossamer.query.engine import PARQUET, Connection, connect, select_table
from gossamer.query.schema import HOSTS, WHEN, host_of, tables_of
from gossamer.storage.checksums import Noted, noted
from gossamer.storage.tables.contract import VISIT, TableSpec
from gossamer.storage.tables.manifest import switch
from gossamer.storage.tables.places import (
    COUNTED,
    TABLES,
    TableManifest,
    converting,
    manifest,
    run_file,
    table_files,
    table_names,
)
from gossamer.storage.tables.row_tables import COPIES
from gossamer.storage.tables.segments import segments
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import DeletionTarget

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


# Tables replaced by a run over the archive: new rows for what was read again, old rows for the rest, in one switch.
#
# Place in the flow: :mod:`gossamer.analysis.reprocess` writes row logs into a workspace of its own, as a crawl does; here they
# are joined with the tables as they stood, and the manifest is switched. A run that dies before leaves the tables as they were.
# Which columns and rows processing makes is said by the tables' declarations.


class Basis(msgspec.Struct, frozen=True):
    """The files that a run replaces: those that stood when it began."""

    run: int
    files: dict[str, list[Path]]
    tables: dict[str, TableSpec]
    """What these tables are."""


def replaceable(directory: Path) -> list[str]:
    """The tables of which processing makes rows or columns."""
    return [name for name, table in tables_of(directory).items() if table.is_made or table.made()]


def basis(directory: Path, names: Sequence[str]) -> Basis:
    """What a run that begins now and writes rows of these tables replaces; `pages` is one of them."""
    tables = {name: table for name, table in tables_of(directory).items() if name in names}
    files = {name: table_files(directory, name).current for name in tables}
    return Basis(manifest(directory).run + 1, files, tables)


def replace(directory: Path, workspace: Path, before: Basis, *, items_only: bool) -> dict[str, int]:
    """Make the tables of a run and switch to them; returns the rows of each.

    Args:
        directory: the crawl directory.
        workspace: where the run wrote its row logs, with the layout of a crawl directory.
        before: as :func:`basis` said when the run began.
        items_only: replace only rows of the kinds that were found, and only in tables whose rows have a kind.
    """
    chosen = [table for table in before.tables.values() if table.kind or not items_only]
    rows: dict[str, int] = {}
    made: dict[str, Noted | None] = {}
    with scratch() as folder:
        place = Path(folder)
        (place / "out").symlink_to(directory.resolve())
        with connect(folder) as connection:
            for table in before.tables.values():
                _views(connection, place, table, before.files[table.name], workspace)
            for table in chosen:
                target = run_file(directory, table.name, before.run)
                target.parent.mkdir(parents=True, exist_ok=True)
                fresh = place / "out" / target.relative_to(directory).with_name(f"{target.name}.new")
                question = _rows(table, of_kinds=items_only) if table.is_made else _columns(table)
                done = connection.execute(f"COPY ({question}) TO '{fresh}' ({PARQUET})").fetchone()
                rows[table.name] = int(done[0]) if done else 0
                made[f"{table.name}/{target.name}"] = noted(target.with_name(f"{target.name}.new"))
                target.with_name(f"{target.name}.new").replace(target)
    gone = tuple(f"{table.name}/{path.name}" for table in chosen for path in before.files[table.name])
    with converting(directory, wait=True):
        switch(directory, made, TableManifest(before.run, (*manifest(directory).gone, *gone)))
    return rows


def _views(connection: Connection, place: Path, table: TableSpec, files: list[Path], workspace: Path) -> None:
    """`old_TABLE` and `new_TABLE`."""
    links = [_link(place / f"{table.name}-{number}.parquet", path) for number, path in enumerate(files)]
    logs = [one.path for one in segments(workspace) if one.table == table.name]
    named = [_link(place / f"{table.name}-{number}.jsonl", path) for number, path in enumerate(logs)]
    connection.execute(f"CREATE VIEW old_{table.name} AS {select_table(table, links)}")
    connection.execute(f"CREATE VIEW new_{table.name} AS {select_table(table, [], named)}")


def _link(link: Path, target: Path) -> Path:
    link.symlink_to(target.resolve())
    return link


def _columns(table: TableSpec) -> str:
    """A row for each visit, with what processing makes out of the new row where there is one.

    A visit is named by its id. Rows of older programs have none: URL, time and try name those.
    """
    made = ", ".join(f'CASE WHEN n."{table.page}" IS NULL THEN p."{c}" ELSE n."{c}" END AS "{c}"' for c in table.made())
    same = "".join(f" AND p.{name} = n.{name}" for name in WHEN if name in table.names)
    return (
        f"SELECT p.* REPLACE ({made}) FROM old_{table.name} p LEFT JOIN new_{table.name} n "
        f'ON p."{table.page}" = n."{table.page}" AND p.{VISIT} IS NOT DISTINCT FROM n.{VISIT}{same}'
    )


def _rows(table: TableSpec, *, of_kinds: bool) -> str:
    """The old rows of visits that were not read again, and the new rows of the others."""
    kept = (
        f"SELECT * FROM old_{table.name} o WHERE NOT EXISTS "
        f'(SELECT 1 FROM new_pages n WHERE n.url = o."{table.page}" AND n.{VISIT} IS NOT DISTINCT FROM o.{VISIT})'
    )
    if of_kinds:
        kept += f' OR "{table.kind}" NOT IN (SELECT "{table.kind}" FROM new_{table.name})'
    return f"{kept} UNION ALL BY NAME SELECT * FROM new_{table.name}"
