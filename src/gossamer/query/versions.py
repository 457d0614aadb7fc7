"""Versions of pages: which visits another visit of the same URL came after, and which are more than are kept.

Place in the flow: :class:`gossamer.query.database.Database` asks before the first question that names a view of latest visits. Of a
crawl whose URLs were all visited once, the tables are the views; a note in its directory says so of the Parquet files that there
are, since finding it out reads every URL (0.4 s for a million pages). `gossamer trim` (:mod:`gossamer.analysis.trimming`) scans
the archive, asks :func:`choose` what stays, copies it elsewhere, and calls :func:`move_rows`. The rules of
:mod:`gossamer.query.schema` say which visits tell something of a document; those of :mod:`gossamer.query.archive` say which
record a revisit repeats.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gossamer.engine.files import replace_file, scratch
from gossamer.query.engine import Connection, connect, linked, select_table
from gossamer.query.schema import EVERY, SUPERSEDED, TELLS, WHEN, superseded, tables_that_ship
from gossamer.query.table_rewrites import TableChange, rewrite_tables
from gossamer.storage.tables.contract import VISIT, TableSpec
from gossamer.storage.tables.places import table_files

#: Where it is noted that every URL was visited once.
NOTE = "state/visited-once.json"

#: Bytes of tables from which a note is worth a file: below, the question takes some hundredths of a second.
WORTH_A_NOTE = 1 << 22


class VisitedOnce(msgspec.Struct, frozen=True):
    """Says of some files of `pages` that no URL is in them twice."""

    files: str
    """A digest of their names, sizes and times."""


def find_superseded(connection: Connection) -> bool:
    """Make the tables of visits that others came after; False where there is none."""
    pages = f"pages{EVERY}"
    again = f"SELECT 1 FROM {pages} GROUP BY hash(url) HAVING count(*) > 1 LIMIT 1"
    # Two URLs may have one hash: what is found by it is only worth a closer look.
    found = bool(connection.execute(again).fetchall())
    is_any = False
    for is_made, name in SUPERSEDED.items():
        # A table, not a view: DuckDB then knows how small it is, and asks it once for each row of what it is compared with.
        rows = superseded(is_made) if found else f"SELECT url, visit, fetched_at, attempt FROM {pages} WHERE false"
        connection.execute(f"CREATE TEMP TABLE {name} AS {rows}")
        is_any = is_any or bool(found and connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall())
    return is_any


def is_noted(directory: Path, files: Sequence[Path]) -> bool:
    """It is known of these files that every URL was visited once."""
    try:
        note = msgspec.json.decode((directory / NOTE).read_bytes(), type=VisitedOnce)
    except (OSError, msgspec.MsgspecError):
        return False
    return note.files == _digest(files)


def note_once(directory: Path, files: Sequence[Path]) -> None:
    """Keep that for later questions where it is worth it; a directory that cannot be written is asked anew each time."""
    if sum(path.stat().st_size for path in files) < WORTH_A_NOTE:
        return
    path = directory / NOTE
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        replace_file(path, msgspec.json.encode(VisitedOnce(_digest(files))))


def _digest(files: Sequence[Path]) -> str:
    told = [(path.name, status.st_size, status.st_mtime_ns) for path in files for status in (path.stat(),)]
    return hashlib.sha256(msgspec.json.encode(sorted(told))).hexdigest()


# Old versions that go.

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


class Chosen(msgspec.Struct, frozen=True):
    """Counts of :func:`choose`."""

    visits: int
    """Visits of the table `pages` that go."""
    records: int
    """Answers that go from the archive."""


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

#: The last visits of each URL, and the last that told something of the document: what views and `cat` show is among these.
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


def choose(directory: Path, scanned: Path, versions: int, out: Path) -> Chosen:
    """Say which visits go where so many versions of each URL stay.

    A visit stays that is among the last `versions` of its URL, or among the last `versions` that tell something of the document.
    One whose record a visit that stays repeats stays too.

    Args:
        directory: the crawl directory; every row of `pages` is in a table.
        scanned: a line of JSON for each capture of the archive, with :data:`SCANNED`.
        versions: at least 1.
        out: a folder that takes `visits.jsonl` (those that go), `staying.jsonl` (captures that stay in files that lose some),
            `files.jsonl` (these files) and `lost.jsonl` (digests without a record).
    """
    with scratch() as folder, connect(folder) as connection:
        place = Path(folder)
        (place / "out").symlink_to(out.resolve())
        connection.execute(f"CREATE TABLE captures AS {_read(linked(place, 'scanned', scanned), SCANNED)}")
        files = [
            linked(place, f"pages-{number}", path)
            for number, path in enumerate(table_files(directory, "pages").current)
        ]
        connection.execute(f"CREATE VIEW pages AS {select_table(tables_that_ship()['pages'], files)}")
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
            connection.execute(f"COPY ({sql}) TO '{place / 'out' / name}.jsonl' (FORMAT json)")
        return Chosen(
            _count(connection, f"SELECT count(*) FROM ({_GONE})"), _count(connection, "SELECT count(*) FROM going")
        )


def move_rows(directory: Path, moves: Path, visits: Path) -> int:
    """Take rows of visits that are gone out of the tables, and let the others name the new places; returns how many rows are gone.

    Args:
        moves: lines of JSON: `file` and `offset` of a record, `new_file` and `new_offset`.
        visits: as :func:`choose` writes them.
    """

    def prepare(connection: Connection, folder: Path) -> None:
        connection.execute(f"CREATE TABLE moves AS {_read(linked(folder, 'moves', moves), _MOVES)}")
        connection.execute(f"CREATE TABLE gone_visits AS {_read(linked(folder, 'visits', visits), _VISITS)}")

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


def _count(connection: Connection, sql: str) -> int:
    row = connection.execute(sql).fetchone()
    return int(row[0]) if row else 0
