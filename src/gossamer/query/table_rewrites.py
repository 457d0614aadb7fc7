"""Tables written anew: rows taken out, changed, or made again, in new files and one switch to these.

Place in the flow: `gossamer delete` calls :func:`remove_rows` and `gossamer trim` :func:`rewrite_tables`, when every row log is a
table. `gossamer reprocess` asks for a :func:`basis`, writes row logs into a workspace of its own, as a crawl does, and calls
:func:`replace`; the tables' declarations say which columns and rows processing makes.

Promises: a run that dies before the switch leaves the tables as they were, and a removal that is called again finds nothing to
do. Followers of a table begin anew.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gossamer.query.engine import ParquetWriter, select_table
from gossamer.query.schema import HOSTS, TELLS, WHEN, host_of, literal, tables_of, tables_that_ship
from gossamer.storage.recovery import Noted, noted
from gossamer.storage.tables.contract import VISIT, TableSpec
from gossamer.storage.tables.manifest import switch
from gossamer.storage.tables.places import (
    COUNTED,
    TABLES,
    TableManifest,
    converting,
    manifest,
    run_file,
    segments,
    table_files,
    table_names,
)
from gossamer.storage.tables.row_tables import COPIES
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import DeletionTarget

#: Tables whose rows name a URL without being made by a visit of it, and the column that does.
_NAMING = {COPIES.name: "url"}

#: A column that names the first document with the same bytes: a row that has it is a copy of what is deleted.
_COPY = "duplicate_of"


def check_tables(directory: Path) -> None:
    """Refuse tables whose columns no declaration says. Raises CrawlDirectoryError: there is one."""
    known = {*tables_of(directory), HOSTS.name, *COUNTED}
    for name in table_names(directory):
        if name not in known:
            raise CrawlDirectoryError(
                f"{directory / TABLES / name} is a table that is not declared, so its rows cannot be judged; move it elsewhere"
            )


def leftovers(directory: Path) -> list[Path]:
    """Files that still hold rows of tables beside the tables: another program reads them, so they could not be removed."""
    old = [directory / TABLES / name for name in manifest(directory).gone]
    return [
        *(path for path in old if path.exists()),
        *(one.path for one in segments(directory)),
        *directory.glob("state/*/index/*.cdxj"),
    ]


class _NewTables(ParquetWriter):
    """Writes new files of tables, which count from the switch on."""

    def __init__(self, directory: Path, run: int) -> None:
        super().__init__()
        self._directory = directory
        self._run = run
        self._made: dict[str, Noted | None] = {}
        self._gone: list[str] = []

    def table(self, name: str, spec: TableSpec, files: Sequence[Path], logs: Sequence[Path] = ()) -> None:
        self.view(name, select_table(spec, list(map(self.link, files)), list(map(self.link, logs))))

    def replace(self, name: str, question: str, instead: Sequence[Path]) -> int:
        """Write the rows that a question finds instead of some files of a table; returns how many."""
        path = run_file(self._directory, name, self._run)
        fresh, rows = self.prepare(question, path)
        self._made[f"{name}/{path.name}"] = noted(fresh)
        fresh.replace(path)
        self._gone += [f"{name}/{file.name}" for file in instead]
        return rows

    def switch(self) -> None:
        """Let the new files count from now on. Call it while `converting`."""
        if self._made:
            gone = (*manifest(self._directory).gone, *self._gone)
            switch(self._directory, self._made, TableManifest(self._run, gone))


# -- rows that go or change


class TableChange(msgspec.Struct, frozen=True):
    """A change of the rows of a table, as SQL over its rows `t`."""

    gone: str
    """The condition of the rows that go."""
    changed: str = "false"
    """The condition of the rows that change."""
    columns: str = "t.*"
    """The columns of the rows that stay."""
    joined: str = ""
    """A join; one row of it at most for each of theirs."""


def remove_rows(directory: Path, target: DeletionTarget) -> int:
    """Replace the files of every table that has rows of a target; returns how many rows are gone."""

    def change(spec: TableSpec) -> TableChange | None:
        urls = [name for name in (spec.page, _COPY, _NAMING.get(spec.name)) if name and name in spec.names]
        is_url = target.kind == "url"
        quoted = [f'"{name}"' for name in urls]
        parts = [f"{url} = {literal(target.name)}" if is_url else _is_host(target, host_of(url)) for url in quoted]
        if target.kind == "host" and "host" in spec.names:
            parts.append(_is_host(target, '"host"'))
        condition = " OR ".join(f"coalesce({part}, false)" for part in parts)
        return TableChange(condition) if condition else None

    return rewrite_tables(directory, change)


def rewrite_tables(
    directory: Path,
    change_of: Callable[[TableSpec], TableChange | None],
    prepare: Callable[[ParquetWriter], None] = lambda writer: None,
) -> int:
    """Replace the files of every table that has rows which go or change, as `change_of` says; returns how many rows are gone.
    `prepare` makes tables that conditions name."""
    specs = tables_of(directory)
    removed = 0
    with converting(directory, wait=True), _NewTables(directory, manifest(directory).run + 1) as new:
        prepare(new)
        for name in table_names(directory):
            files = table_files(directory, name).current
            change = change_of(specs[name]) if name in specs else None
            if not files or change is None:
                continue
            new.table(f"table_{name}", specs[name], files)
            source = f'"table_{name}" t {change.joined}'
            counts = f"count(*) FILTER ({change.gone}), count(*) FILTER ({change.changed})"
            going, changing = new.connection.execute(f"SELECT {counts} FROM {source}").fetchone() or (0, 0)
            if going or changing:
                new.replace(name, f"SELECT {change.columns} FROM {source} WHERE ({change.gone}) IS NOT TRUE", files)
                removed += int(going)
        new.switch()
    return removed


def _is_host(target: DeletionTarget, host: str) -> str:
    return f"({host} = {literal(target.name)} OR ends_with({host}, {literal('.' + target.name)}))"


# -- rows that are made again


class Basis(msgspec.Struct, frozen=True):
    """The files that a run replaces: those that stood when it began."""

    run: int
    files: dict[str, list[Path]]
    tables: dict[str, TableSpec]
    """The declarations of these tables."""


def replaceable(directory: Path) -> list[str]:
    """The tables of which processing makes rows or columns."""
    return [name for name, table in tables_of(directory).items() if table.is_made or table.made()]


def basis(directory: Path, names: Sequence[str]) -> Basis:
    """The basis of a run that begins now and writes rows of these tables; `pages` is one of them."""
    tables = {name: table for name, table in tables_of(directory).items() if name in names}
    files = {name: table_files(directory, name).current for name in tables}
    return Basis(manifest(directory).run + 1, files, tables)


def replace(directory: Path, workspace: Path, before: Basis, *, items_only: bool) -> dict[str, int]:
    """Make the tables of a run and switch to them; returns the rows of each. The run wrote its row logs into `workspace`, which
    is laid out as a crawl directory. With `items_only`, only rows of the kinds that were found are replaced, and only in tables
    whose rows have a kind."""
    rows: dict[str, int] = {}
    with _NewTables(directory, before.run) as new:
        for name, table in before.tables.items():
            new.table(f"old_{name}", table, before.files[name])
            new.table(f"new_{name}", table, [], [one.path for one in segments(workspace) if one.table == name])
        for name, table in before.tables.items():
            if table.kind or not items_only:
                question = _rows(table, of_kinds=items_only) if table.is_made else _columns(table)
                rows[name] = new.replace(name, question, before.files[name])
        with converting(directory, wait=True):
            new.switch()
    return rows


def _columns(table: TableSpec) -> str:
    """A row for each visit, with what processing makes out of the new row where there is one. A visit is named by its id. Rows of
    older programs have none: URL, time and try name those."""
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


# Old versions that go. `gossamer trim` (:mod:`gossamer.analysis.removals`) scans the archive, asks :func:`choose` what stays,
# copies it elsewhere, and calls :func:`move_rows`. The rules of :mod:`gossamer.query.schema` say which visits tell something of
# a document; those of :mod:`gossamer.query.archive` say which record a revisit repeats.

#: Fields of a line of a scanned capture, and their types in SQL.
SCANNED = {
    "file": "VARCHAR",
    "start": "BIGINT",
    "offset": "BIGINT",
    "length": "BIGINT",
    "uri": "VARCHAR",
    "at": "VARCHAR",
    "kind": "VARCHAR",
    "digest": "VARCHAR",
    "refers": "VARCHAR",
    "refers_at": "VARCHAR",
}

_MOVES = {"file": "VARCHAR", "offset": "BIGINT", "new_file": "VARCHAR", "new_offset": "BIGINT"}
_VISITS = {"url": "VARCHAR", VISIT: "VARCHAR", "fetched_at": "TIMESTAMP", "attempt": "INTEGER"}

#: Every visit that has a row or a record. A record without a row is one of a robots.txt, which is no page.
_ALL = f"""
CREATE TABLE visits AS
SELECT url, coalesce(request, '') AS request, {VISIT}, fetched_at, attempt, {TELLS} AS telling,
       warc_file AS file, warc_offset AS "offset", true AS has_row
FROM pages
UNION ALL
SELECT uri, '', NULL, try_cast("at" AS TIMESTAMP), 1, kind <> 'revisit', file, "offset", false
FROM captures c WHERE NOT EXISTS (SELECT 1 FROM pages p WHERE p.warc_file = c.file AND p.warc_offset = c."offset")
"""

#: The last visits of each URL, and the last that told something of the document: views and `cat` show some of these.
_LAST = f"""
CREATE TABLE last AS SELECT * FROM visits
QUALIFY row_number() OVER (PARTITION BY url, request ORDER BY fetched_at DESC, attempt DESC, {VISIT} DESC) <= ?
     OR (telling AND row_number() OVER (
            PARTITION BY url, request, telling ORDER BY fetched_at DESC, attempt DESC, {VISIT} DESC) <= ?)
"""

_SECOND = "left(regexp_replace({}, '[^0-9]', '', 'g'), 14)"

#: The records that the revisits among these repeat.
_REPEATED = f"""
CREATE TABLE repeated AS
SELECT o.file, o."offset" FROM captures r
SEMI JOIN last l ON l.file = r.file AND l."offset" = r."offset"
JOIN captures o ON o.uri = coalesce(nullif(r.refers, ''), r.uri) AND o.kind <> 'revisit'
WHERE r.kind = 'revisit'
QUALIFY row_number() OVER (PARTITION BY r.file, r."offset" ORDER BY
    {_SECOND.format("o.at")} = {_SECOND.format("r.refers_at")} DESC, o.digest <> '' AND o.digest = r.digest DESC,
    {_SECOND.format("o.at")} <= {_SECOND.format("r.at")} DESC, {_SECOND.format("o.at")} DESC, o.file DESC, o."offset" DESC) = 1
"""

_KEPT = """
CREATE TABLE kept AS
SELECT DISTINCT file, "offset" FROM (SELECT file, "offset" FROM last UNION ALL SELECT file, "offset" FROM repeated)
WHERE file IS NOT NULL
"""

_GOING = (
    'CREATE TABLE going AS SELECT * FROM captures c ANTI JOIN kept k ON k.file = c.file AND k."offset" = c."offset"'
)

_GONE = f"""
SELECT url, {VISIT}, fetched_at, attempt FROM visits v
WHERE has_row AND NOT EXISTS (SELECT 1 FROM kept k WHERE k.file = v.file AND k."offset" = v."offset")
  AND NOT EXISTS (SELECT 1 FROM last l WHERE l.url = v.url AND l.request = v.request
      AND l.{VISIT} IS NOT DISTINCT FROM v.{VISIT} AND l.fetched_at = v.fetched_at AND l.attempt = v.attempt)
"""

#: Of files that lose something, what stays.
_STAYING = """
SELECT c.file, c.start, c."offset", c.length FROM captures c
SEMI JOIN going g ON g.file = c.file SEMI JOIN kept k ON k.file = c.file AND k."offset" = c."offset"
ORDER BY c.file, c."offset"
"""

_LOST = """
SELECT DISTINCT digest, uri FROM going g WHERE digest <> '' AND kind <> 'revisit' AND NOT EXISTS (
    SELECT 1 FROM captures c SEMI JOIN kept k ON k.file = c.file AND k."offset" = c."offset"
    WHERE c.digest = g.digest AND c.uri = g.uri AND c.kind <> 'revisit')
"""


def choose(directory: Path, scanned: Path, versions: int, out: Path) -> tuple[int, int]:
    """Say which visits go where so many versions of each URL stay; returns how many of the table `pages` go, and answers of the
    archive.

    A visit stays that is among the last `versions` of its URL, or among the last `versions` that tell something of the document.
    One whose record a visit that stays repeats stays too.

    Args:
        directory: the crawl directory; every row of `pages` is in a table.
        scanned: a line of JSON for each capture of the archive, with :data:`SCANNED`.
        versions: at least 1.
        out: a folder that takes `visits.jsonl` (those that go), `staying.jsonl` (captures that stay in files that lose some),
            `files.jsonl` (these files) and `lost.jsonl` (digests without a record).
    """
    with ParquetWriter() as writer:
        connection, place = writer.connection, writer.link(out)
        connection.execute(f"CREATE TABLE captures AS {_read(writer.link(scanned), SCANNED)}")
        files = list(map(writer.link, table_files(directory, "pages").current))
        writer.view("pages", select_table(tables_that_ship()["pages"], files))
        connection.execute(_ALL)
        connection.execute(_LAST, [versions, versions])
        for sql in (_REPEATED, _KEPT, _GOING):
            connection.execute(sql)
        answers = {
            "visits": _GONE,
            "staying": _STAYING,
            "files": "SELECT DISTINCT file FROM going ORDER BY 1",
            "lost": _LOST,
        }
        for name, sql in answers.items():
            connection.execute(f"COPY ({sql}) TO '{place / name}.jsonl' (FORMAT json)")
        counts = (f"SELECT count(*) FROM ({_GONE})", "SELECT count(*) FROM going")
        visits, records = (int((connection.execute(sql).fetchone() or (0,))[0]) for sql in counts)
        return visits, records


def move_rows(directory: Path, moves: Path, visits: Path) -> int:
    """Take rows of the visits that :func:`choose` gave up out of the tables, and let the others name the new places; returns
    how many rows are gone. `moves` has lines of JSON: `file` and `offset` of a record, `new_file` and `new_offset`."""

    def prepare(writer: ParquetWriter) -> None:
        for name, lines, columns in (("moves", moves, _MOVES), ("gone_visits", visits, _VISITS)):
            writer.connection.execute(f"CREATE TABLE {name} AS {_read(writer.link(lines), columns)}")

    return rewrite_tables(directory, _change_of, prepare)


def _change_of(spec: TableSpec) -> TableChange | None:
    if spec.page is None or VISIT not in spec.names:
        return None
    when = "".join(f" AND g.{name} = t.{name}" for name in WHEN if name in spec.names)
    gone = (
        f'EXISTS (SELECT 1 FROM gone_visits g WHERE g.url = t."{spec.page}" '
        f"AND g.{VISIT} IS NOT DISTINCT FROM t.{VISIT}{when})"
    )
    if "warc_offset" not in spec.names:
        return TableChange(gone)
    return TableChange(
        gone,
        changed="m.new_file IS NOT NULL",
        columns="t.* REPLACE (coalesce(m.new_file, t.warc_file) AS warc_file, "
        "coalesce(m.new_offset, t.warc_offset) AS warc_offset)",
        joined='LEFT JOIN moves m ON m.file = t.warc_file AND m."offset" = t.warc_offset',
    )


def _read(path: Path, columns: dict[str, str]) -> str:
    named = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return f"SELECT * FROM read_json('{path}', format = 'newline_delimited', columns = {{{named}}})"
