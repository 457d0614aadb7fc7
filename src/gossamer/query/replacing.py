"""Tables replaced by a run over the archive: new rows for what was read again, old rows for the rest, in one switch.

Place in the flow: :mod:`gossamer.assembly.reprocess` writes row logs into a workspace of its own, as a crawl does; here they
are joined with the tables as they stood, and the manifest is switched. A run that dies before leaves the tables as they were.
"""

from pathlib import Path

import msgspec

from gossamer.query.engine import PARQUET, Connection, connect, select_from_log
from gossamer.query.noted import Noted, noted, notes_of, with_tables, write_notes
from gossamer.query.places import Manifest, converting, manifest, run_file, table_files, write_manifest
from gossamer.query.schema import ITEMS, LINKS, PAGES, Table
from gossamer.stores.scratch import scratch
from gossamer.stores.segments import segments

#: What processing finds out of a page; the rest of a row is what the fetch brought.
DETAILS = (
    *("canonical_url", "media_type", "charset", "language", "title", "simhash", "near_duplicate_of", "discarded"),
    *("trouble", "links", "rejected"),
)


class Basis(msgspec.Struct, frozen=True):
    """The files that a run replaces: those that stood when it began."""

    run: int
    files: dict[str, list[Path]]


def basis(directory: Path) -> Basis:
    """What a run that begins now replaces."""
    files = {table.name: table_files(directory, table.name).current for table in (PAGES, LINKS, ITEMS)}
    return Basis(manifest(directory).run + 1, files)


def replace(directory: Path, workspace: Path, before: Basis, *, items_only: bool) -> dict[str, int]:
    """Make the tables of a run and switch to them; returns the rows of each.

    Args:
        directory: the crawl directory.
        workspace: where the run wrote its row logs, with the layout of a crawl directory.
        before: as :func:`basis` said when the run began.
        items_only: leave pages and links as they are, and replace only items of the kinds that were found.
    """
    questions = {ITEMS: _ITEMS_OF_KINDS} if items_only else {PAGES: _pages(), LINKS: _LINKS, ITEMS: _ITEMS}
    rows: dict[str, int] = {}
    made: dict[str, Noted | None] = {}
    with scratch() as folder:
        place = Path(folder)
        (place / "out").symlink_to(directory.resolve())
        with connect(folder) as connection:
            for table in (PAGES, LINKS, ITEMS):
                _views(connection, place, table, before.files[table.name], workspace)
            for table, question in questions.items():
                target = run_file(directory, table.name, before.run)
                target.parent.mkdir(parents=True, exist_ok=True)
                fresh = place / "out" / target.relative_to(directory).with_name(f"{target.name}.new")
                done = connection.execute(f"COPY ({question}) TO '{fresh}' ({PARQUET})").fetchone()
                rows[table.name] = int(done[0]) if done else 0
                made[f"{table.name}/{target.name}"] = noted(target.with_name(f"{target.name}.new"))
                target.with_name(f"{target.name}.new").replace(target)
    gone = tuple(f"{table.name}/{path.name}" for table in questions for path in before.files[table.name])
    with converting(directory, wait=True):
        write_notes(directory, with_tables(notes_of(directory), made))
        write_manifest(directory, Manifest(before.run, (*manifest(directory).gone, *gone)))
    return rows


def _views(connection: Connection, place: Path, table: Table, files: list[Path], workspace: Path) -> None:
    """`old_TABLE` and `new_TABLE`."""
    old, new = [table.empty], [table.empty]
    links = [_link(place / f"{table.name}-{number}.parquet", path) for number, path in enumerate(files)]
    if links:
        names = ", ".join(f"'{link}'" for link in links)
        old.append(f"SELECT * FROM read_parquet([{names}], union_by_name = true)")
    logs = [one.path for one in segments(workspace) if one.table == table.name]
    if logs:
        named = [_link(place / f"{table.name}-{number}.jsonl", path) for number, path in enumerate(logs)]
        new.append(select_from_log(table, named))
    for name, parts in (("old", old), ("new", new)):
        connection.execute(f"CREATE VIEW {name}_{table.name} AS {' UNION ALL BY NAME '.join(parts)}")


def _link(link: Path, target: Path) -> Path:
    link.symlink_to(target.resolve())
    return link


def _pages() -> str:
    """Details from the new row where there is one; a visit is named by URL, time and try."""
    details = ", ".join(f'CASE WHEN n.url IS NULL THEN p."{c}" ELSE n."{c}" END AS "{c}"' for c in DETAILS)
    return (
        f"SELECT p.* REPLACE ({details}) FROM old_pages p LEFT JOIN new_pages n "
        "ON p.url = n.url AND p.fetched_at = n.fetched_at AND p.attempt = n.attempt"
    )


_LINKS = (
    "SELECT * FROM old_links o WHERE NOT EXISTS (SELECT 1 FROM new_pages n WHERE n.url = o.source) "
    "UNION ALL BY NAME SELECT * FROM new_links"
)
_ITEMS = (
    "SELECT * FROM old_items o WHERE NOT EXISTS (SELECT 1 FROM new_pages n WHERE n.url = o.url) "
    "UNION ALL BY NAME SELECT * FROM new_items"
)
_ITEMS_OF_KINDS = (
    "SELECT * FROM old_items o WHERE NOT EXISTS (SELECT 1 FROM new_pages n WHERE n.url = o.url) "
    "OR kind NOT IN (SELECT kind FROM new_items) "
    "UNION ALL BY NAME SELECT * FROM new_items"
)
