"""Tables replaced by a run over the archive: new rows for what was read again, old rows for the rest, in one switch.

Place in the flow: :mod:`gossamer.operations.reprocess` writes row logs into a workspace of its own, as a crawl does; here they
are joined with the tables as they stood, and the manifest is switched. A run that dies before leaves the tables as they were.
Which columns and rows processing makes is said by the tables' declarations.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from gossamer.contracts.tables import VISIT, TableSpec
from gossamer.query.engine import PARQUET, Connection, connect, select_table
from gossamer.query.noted import switch
from gossamer.query.places import TableManifest, converting, manifest, run_file, table_files
from gossamer.query.schema import WHEN, tables_of
from gossamer.stores.scratch import scratch
from gossamer.stores.segments import segments
from gossamer.stores.sums import Noted, noted


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
