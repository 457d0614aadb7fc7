"""DuckDB as this package uses it: how it is opened, how row logs and Parquet are named to it, how tables are written, and the
views and words that SQL lacks.

Place in the flow: everything of this room that asks or writes tables opens its connection here;
:class:`gossamer.query.database.Database` makes the views beside the tables, for `gossamer query` and for reports. It is imported
as `_duckdb`, the module that all of it is in: `duckdb` around it adds data frames and other guests, for 60 ms of CPU at the end
of every crawl.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Self

import _duckdb
import msgspec

from gossamer.engine.files import scratch, too_little_memory
from gossamer.query.schema import TELLS, empty, host_of, mark_of, select_from_log, titled, words
from gossamer.storage.tables.contract import TableSpec
from gossamer.values.errors import UsageError
from gossamer.values.outcome import ERRORS, Outcome, PageChange

Connection = _duckdb.DuckDBPyConnection
Error = _duckdb.Error
StatementType = _duckdb.StatementType

#: Memory that DuckDB may take while it converts; beyond, it spills to the disk.
MEMORY = "256MB"

#: Rows of a Parquet file that are packed together. DuckDB's own 122,880 cost the converter 40 MB more.
ROW_GROUP = 20_480

#: How tables are written.
PARQUET = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}"


def connect(workspace: str, memory: str = MEMORY, threads: int = 1) -> Connection:
    """A connection in memory that keeps to `memory` and spills into `workspace`. Raises UsageError: the system gives too little."""
    if why := too_little_memory():
        raise UsageError(why)
    connection = _duckdb.connect(config={"memory_limit": memory, "threads": threads, "temp_directory": workspace})
    connection.execute("SET preserve_insertion_order = true")
    return connection


def select_table(table: TableSpec | None, files: Sequence[Path], logs: Sequence[Path] = ()) -> str:
    """SQL that reads a table out of Parquet files and row logs, with the columns that it has to have; where no declaration says
    them, those of its files, of which there has to be one."""
    parts = [empty(table)] if table is not None else []
    if files:
        # Their names hold nothing that SQL or a wildcard could mean.
        names = ", ".join(f"'{path}'" for path in files)
        parts.append(f"SELECT * FROM read_parquet([{names}], union_by_name = true)")
    if table is not None and logs:
        parts.append(select_from_log(table, logs))
    return " UNION ALL BY NAME ".join(parts)


def linked(folder: Path, name: str, path: Path) -> Path:
    """A name for a file or directory that SQL can hold."""
    link = folder / f"{name}{path.suffix}"
    link.symlink_to(path.resolve())
    return link


class ParquetWriter:
    """Writes Parquet files, each whole or not at all; a context manager. One DuckDB serves for all, and is opened when the first
    is written: opening takes 20 ms, a small table 2. It sees files through links under names of our own, since it would read
    wildcards into those of the user."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._links = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()
        self._stack.close()

    @cached_property
    def _folder(self) -> Path:
        return Path(self._stack.enter_context(scratch()))

    @cached_property
    def connection(self) -> Connection:
        return connect(str(self._folder))

    def rest(self) -> None:
        """Give back the memory that DuckDB has come to hold. Views are gone; the next table opens DuckDB anew."""
        connection = self.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    def link(self, path: Path) -> Path:
        self._links += 1
        return linked(self._folder, f"link-{self._links}", path)

    def view(self, name: str, sql: str) -> None:
        """Give an answer a name for what is written later."""
        self.connection.execute(f'CREATE VIEW "{name}" AS {sql}')

    def write(self, sql: str, target: Path) -> None:
        """The answer as the file `target`."""
        self.prepare(sql, target)[0].replace(target)

    def prepare(self, sql: str, target: Path) -> tuple[Path, int]:
        """The answer beside the file `target`, under the name that is returned, and the number of its rows: the caller puts it into
        its place."""
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f"{target.name}.new")
        shown = self.link(target.parent) / fresh.name
        [[rows]] = self.connection.execute(f"COPY ({sql}) TO '{shown}' ({PARQUET})").fetchall()
        return fresh, int(rows)


#: Outcomes of the target of a broken link: a dead link is an answer of the server, everything else a failure.
BROKEN = ERRORS | {Outcome.CLIENT_ERROR}

#: Redirects that are followed to say where a link ends: more than a crawl's own limit.
MOST_HOPS = 20

#: Visits that say so of a known page changed nothing, or nothing yet.
QUIET = (PageChange.UNCHANGED, PageChange.MISSING)

#: Bits in which the fingerprints of two texts differ that have nothing in common: half of them, by chance.
UNLIKE_BITS = 32

#: Macros: name and arguments -> what it stands for.
MACROS = {"host(url)": host_of("url")}

#: View -> its SQL.
VIEWS = titled(f"""
-- page_links: links with what is known of both ends; `target_outcome` is NULL where the target was not fetched
SELECT l.source, l.target, l.relation, l.anchor, l.nofollow, l.source_host, l.target_host,
       l.source_host = l.target_host AS is_internal,
       s.title AS source_title, s.depth AS source_depth, s.domain AS source_domain,
       t.outcome AS target_outcome, t.status AS target_status, t.error AS target_error, t.title AS target_title,
       t.domain AS target_domain, coalesce(t.media_type, t.mime) AS target_mime, l.visit
FROM links l LEFT JOIN pages s ON s.url = l.source LEFT JOIN pages t ON t.url = l.target

-- page_items: items with the page that they were found on
SELECT i.kind, i.url, i.data, p.title, p.host, p.domain, p.language, p.depth, p.fetched_at, i.visit
FROM items i LEFT JOIN pages p ON p.url = i.url

-- page_triples: triples with the page that says them
SELECT t.graph, t.subject, t.predicate, t.object, t.datatype, t.language, p.title, p.host, p.domain,
       p.language AS page_language, p.depth, p.fetched_at, t.visit
FROM triples t LEFT JOIN pages p ON p.url = t.graph

-- host_links: how many links lead from a host to a host, and from how many pages
SELECT source_host, target_host, count(*) AS links, count(DISTINCT {mark_of("source")}) AS pages
FROM links GROUP BY ALL
""")


class Derived(msgspec.Struct, frozen=True):
    """A table that is made when a question first names it: as a view it would be made again and again within one answer."""

    steps: dict[str, str]
    """Names and SQL, in order; the last one is the table itself."""
    needs: tuple[str, ...] = ()
    """Other such tables that have to be there before."""


#: Table -> how it is made.
DERIVED = {
    # Each URL that redirects, where its chain ends and how; `is_loop` where it comes back.
    "redirect_ends": Derived(
        titled(f"""
-- passing_links: all that is asked of links here and for those that are broken: their targets are long to read, and read once
SELECT source, target, relation, anchor, nofollow, visit FROM links
WHERE relation LIKE 'redirect%'
   OR target IN (SELECT url FROM pages WHERE outcome IN ({words(BROKEN | {Outcome.REDIRECT})}))

-- redirect_steps
SELECT source AS url, target FROM passing_links WHERE relation LIKE 'redirect%'

-- redirect_ends
WITH RECURSIVE chain(url, target, hops) AS (
    SELECT url, target, 1 FROM redirect_steps
    UNION ALL
    SELECT c.url, s.target, c.hops + 1 FROM chain c JOIN redirect_steps s ON s.url = c.target
    WHERE c.hops < {MOST_HOPS} AND c.target <> c.url
)
SELECT p.url, p.status, c.target AS "end", c.hops, c.hops >= {MOST_HOPS} OR c.target = c.url AS is_loop,
       e.outcome AS end_outcome, e.status AS end_status, e.error AS end_error
FROM (SELECT url, arg_max(target, hops) AS target, max(hops) AS hops FROM chain GROUP BY url) c
JOIN pages p ON p.url = c.url AND p.outcome = 'redirect' LEFT JOIN pages e ON e.url = c.target
""")
    ),
    # Links that lead to nothing, by way of redirects too: dead links, names without an address, servers that fail.
    "broken_links": Derived(
        titled(f"""
-- broken_urls
SELECT url, outcome, status, error, NULL::VARCHAR AS "end" FROM pages WHERE outcome IN ({words(BROKEN)})
UNION ALL
SELECT url, CASE WHEN is_loop THEN 'redirect' ELSE end_outcome END, coalesce(end_status, status),
       CASE WHEN is_loop THEN 'redirects in a loop' ELSE end_error END, "end"
FROM redirect_ends WHERE is_loop OR end_outcome IN ({words(BROKEN)})

-- broken_links
SELECT l.source, l.target, l.relation, l.anchor, l.nofollow, b.outcome, b.status, b.error, b."end",
       host(l.source) AS source_host, host(l.target) AS target_host, l.visit
FROM passing_links l JOIN broken_urls b ON b.url = l.target WHERE l.relation NOT LIKE 'redirect%'
"""),
        needs=("redirect_ends",),
    ),
    # Changes that visits of known pages found (`--recrawl`), each beside the visit before that found the page.
    "changes": Derived(
        titled(f"""
-- changed_urls
SELECT DISTINCT url FROM pages_all WHERE change <> '' AND change NOT IN ({words(QUIET)})

-- changes
SELECT url, host, fetched_at, change, judged_by, title, status, bytes, digest, visit,
       round(greatest(0, 1 - changed_bits / {UNLIKE_BITS}.0), 3) AS similarity,
       lag(fetched_at) OVER w AS fetched_before, lag(title) OVER w AS title_before,
       lag(status) OVER w AS status_before, lag(bytes) OVER w AS bytes_before,
       lag(digest) OVER w AS digest_before, lag(visit) OVER w AS visit_before
FROM pages_all WHERE url IN (SELECT url FROM changed_urls) AND {TELLS}
WINDOW w AS (PARTITION BY url, request ORDER BY fetched_at, attempt, visit)
QUALIFY change <> '' AND change NOT IN ({words(QUIET)})
""")
    ),
}
