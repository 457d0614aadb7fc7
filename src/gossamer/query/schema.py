"""Tables in SQL: how rows come out of row logs, and which views a question sees. All is made from the tables' declarations.

Place in the flow: :mod:`convert`, :mod:`engine` and :mod:`feeds` read logs by :func:`select_from_log`, :mod:`database` makes
views. Of a table that is made of visits there are two: `pages_all` has the rows of every visit, `pages` those of the latest
visit of each URL.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gossamer.storage.tables.contract import VISIT, ColumnSpec, TableSpec, shipped
from gossamer.storage.tables.places import declared
from gossamer.storage.tables.row_tables import COARSE, FINE_FOR, HOST_NOTES, SAMPLES
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import ANSWERED, DOCUMENTS, ERRORS, TRANSIENT, Outcome, PageChange
from gossamer.values.request_identity import WITH_COOKIES

#: Added to the name of a table for the view that has the rows of every visit.
EVERY = "_all"

#: The columns that tell visits of a URL apart in rows of older programs, which have no id.
WHEN = ("fetched_at", "attempt")

#: Bytes of the largest line of a row log, with room to spare.
LARGEST_LINE = 8 << 20

#: `hosts` is no log: see :data:`HOSTS_VIEW`.
HOSTS = TableSpec(
    "hosts", "Each host: counted from `pages_all`, with the newest of `host_notes`.", HOST_NOTES.spec.columns[:-1]
)


def tables_that_ship() -> dict[str, TableSpec]:
    return {table.name: table.spec for table in shipped()}


def tables_of(directory: Path) -> dict[str, TableSpec]:
    """The tables of a crawl, by name: those that ship, and those that its agents declared."""
    ours = tables_that_ship()
    return {**ours, **{name: spec for name, spec in declared(directory).items() if name not in {*ours, HOSTS.name}}}


def documented() -> list[TableSpec]:
    """The tables that are there whether they have rows or not, in the order in which they are told."""
    specs = list(tables_that_ship().values())
    return [*specs[:2], HOSTS, *specs[2:]]


# -- out of the log


def empty(table: TableSpec) -> str:
    """The table without rows: so that a column is there before a row of it is."""
    columns = ", ".join(f'CAST(NULL AS {column.type}) AS "{column.name}"' for column in table.columns)
    return f"SELECT {columns} WHERE false"


def select_from_log(table: TableSpec, logs: Sequence[Path]) -> str:
    """SQL that reads a table's rows out of row logs; their names hold nothing that SQL or a wildcard could mean."""
    names = ", ".join(f"'{path}'" for path in logs)
    types = ", ".join(f"'{one.name}': '{one.type}{'[]' if one.is_many else ''}'" for one in table.columns)
    first = next((one.name for one in table.columns if one.is_many), "")
    columns = ", ".join(f'{_value(one, first)} AS "{one.name}"' for one in table.columns)
    log = (
        f"read_json([{names}], format = 'newline_delimited', columns = {{{types}}}, "
        f"maximum_object_size = {LARGEST_LINE})"
    )
    where = ""
    if table.without is not None:
        name, value = table.without
        where = f' WHERE "{name}" IS DISTINCT FROM {literal(value)}'
    return f"SELECT {columns} FROM {log}{where}"


def _value(column: ColumnSpec, first: str) -> str:
    """The value in a row of the table where the log has a row, or a frame of them."""
    name = f'"{column.name}"'
    if column.host_of:
        urls = f'"{column.host_of}"'
        return f"unnest(list_transform({urls}, lambda x: {host_of('x')}))" if column.is_many else host_of(urls)
    if column.is_many:
        if column.name == first:
            return f"unnest({name})"
        return f'unnest(coalesce({name}, list_transform("{first}", lambda x: {literal(column.fill)})))'
    if column.same_as:
        return f'coalesce({name}, "{column.same_as}")'
    return name if column.fill is None else f"coalesce({name}, {literal(column.fill)})"


def host_of(url: str) -> str:
    """SQL of the host of a canonical URL, as `values.url.host_of` has it; `url` is SQL that is written several times."""
    authority = f"split_part({url}, '/', 3)"
    # Nearly all URLs are of the web and name no port: two comparisons and two short searches.
    plain = (
        f"(starts_with({url}, 'https://') OR starts_with({url}, 'http://')) "
        f"AND NOT contains({authority}, ':') AND NOT contains({authority}, '?')"
    )
    whole = (
        f"CASE WHEN regexp_matches({url}, '^[^:]*://[^/]*/') THEN {authority} ELSE split_part({authority}, '?', 1) END"
    )
    named = f"trim(regexp_replace({whole}, ':[0-9]*$', ''), '[]')"
    nameless = f"{url}[:strpos({url}, ':')]"
    other = f"CASE WHEN regexp_matches({url}, '^[^:]*://') THEN {named} ELSE {nameless} END"
    return f"CASE WHEN {plain} THEN {authority} ELSE {other} END"


def mark_of(url: str) -> str:
    """SQL of 64 bits by which a URL is told apart from others where texts are too long to be held. DuckDB's own hash gives URLs
    that differ in two digits at the right distance the same value: 129 pairs of a million numbered pages. Together with that of
    the text read backwards, none of ten million."""
    return f"hash({url}, reverse({url}))"


def literal(value: object) -> str:
    """A plain value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return "'{}'".format(str(value).replace("'", "''"))


def titled(text: str) -> dict[str, str]:
    """Statements that are written one below the other, each under `-- TITLE`; behind a colon stands what it shows, for people."""
    blocks = (block.partition("\n") for block in re.split(r"(?m)^-- ", text)[1:])
    return {head.partition(":")[0]: sql.strip() for head, _, sql in blocks}


def words(words: Iterable[str]) -> str:
    """Some words as the inside of `IN (...)`, always in one order."""
    return ", ".join(literal(str(word)) for word in sorted(words))


def lasting(name: str, rows: str) -> str:
    """SQL of those of a table's rows that are kept: of `samples`, those of every five minutes and all of the last day."""
    if name != SAMPLES.name:
        return rows
    return f"""SELECT * FROM ({rows})
        QUALIFY every >= {COARSE} OR taken_at > max(taken_at) OVER (PARTITION BY agent) - INTERVAL {FINE_FOR} SECOND"""


# -- views

#: Visits after which what earlier ones found holds no more: the server answered for good, and did not say that nothing changed.
TELLING = ANSWERED - TRANSIENT - {Outcome.NOT_MODIFIED}


def tells(outcome: str, change: str | None) -> bool:
    """Whether what earlier visits found holds no more after a row of `pages` with these. A page that is missing for the first time
    may be there again: nothing is taken away before it is gone."""
    return outcome in TELLING and change != PageChange.MISSING


#: The same as SQL.
TELLS = f"outcome IN ({words(TELLING)}) AND change IS DISTINCT FROM '{PageChange.MISSING}'"


def superseded(telling: bool) -> str:
    """SQL of the visits that another visit of the same URL came after; URLs that were visited once cost a hash each. With
    `telling`, only visits count that say something of the document, and only such ones come after others."""
    pages = f"pages{EVERY}"
    these = f"SELECT * FROM {pages} WHERE {TELLS}" if telling else f"SELECT * FROM {pages}"
    # A page that is known by more than its URL, as the answer to a form, comes after answers to the same form alone.
    # Where redirects led back with other cookies, the answer is that of the URL.
    request = f"split_part(coalesce(nullif(request, ''), 'GET'), '{WITH_COOKIES}', 1)"
    again = f"SELECT hash(url, {request}) FROM ({these}) GROUP BY 1 HAVING count(*) > 1"
    # A row that looks like the last visit is not hidden: rows of older programs have no id, and one row must always be left.
    key = VISIT if telling else f"row({VISIT}, fetched_at, attempt)"
    return (
        f"SELECT url, {VISIT}, fetched_at, attempt FROM ({these}) WHERE hash(url, {request}) IN ({again}) "
        f"WINDOW last_first AS (PARTITION BY url, {request} ORDER BY fetched_at DESC, attempt DESC, {VISIT} DESC) "
        f"QUALIFY {key} IS DISTINCT FROM first_value({key}) OVER last_first"
    )


def latest(table: TableSpec, every: str) -> str:
    """SQL of the rows of the latest visits, out of the view `every`. A table that the fetch itself makes shows the last visit of
    a URL. The rows that processing made hold until a later visit finds something else: an answer `304`, or one that did not come,
    takes nothing away."""
    if table.page is None:
        return f'SELECT * FROM "{every}"'
    same = f's.url = t."{table.page}" AND s.{VISIT} IS NOT DISTINCT FROM t."{VISIT}"'
    same += "".join(f" AND s.{name} = t.{name}" for name in WHEN if name in table.names)
    return f'SELECT * FROM "{every}" t WHERE NOT EXISTS (SELECT 1 FROM {SUPERSEDED[table.is_made]} s WHERE {same})'


#: The view of the URL that each document of `copies` was met at first; no question names it.
FIRST_COPIES = "first_copies"


def first_copies(copies: str) -> str:
    """SQL of the first URL of each document that several agents keep, out of SQL of the rows of `copies`."""
    first = "row_number() OVER (PARTITION BY digest ORDER BY met_at, url) = 1"
    return f"SELECT digest, url FROM ({copies}) QUALIFY {first}"


def with_copies(pages: str) -> str:
    """SQL of the rows of `pages`, of every visit, in which `duplicate_of` names the first URL of all agents. A document of one
    agent alone, and what is no document, have what their agent wrote; a page that was visited again has its own URL where its
    bytes were the same."""
    document = f"p.outcome = '{Outcome.OK}' AND p.bytes > 0 AND p.request IS NULL AND f.digest = p.digest"
    named = "CASE WHEN f.url IS NULL OR p.duplicate_of = p.url THEN p.duplicate_of ELSE nullif(f.url, p.url) END"
    return f"""
    SELECT p.* REPLACE ({named} AS duplicate_of) FROM ({pages}) p LEFT JOIN {FIRST_COPIES} f ON {document}
    """


def with_shells(pages: str) -> str:
    """SQL of the same rows, in which no page that needs a browser is a copy of another: its bytes are the shell of an application,
    and say nothing of what readers see. The rows on the disk name the first one, since the archive has a `revisit` of it.
    """
    named = "CASE WHEN needs_browser AND duplicate_of <> url THEN NULL ELSE duplicate_of END"
    return f"SELECT * REPLACE ({named} AS duplicate_of) FROM ({pages})"


#: The views of visits that others came after, by whether what processing found is meant; no question names them.
SUPERSEDED = {False: "superseded_visits", True: "superseded_documents"}

#: Which rows of `pages` are pages: as `Visit.is_page` has it. Tables of older programs have no `media_type`.
IS_PAGE = (
    f"outcome IN ({words(DOCUMENTS)}) AND coalesce(media_type, mime) IN ({words(HTML_TYPES)}) AND discarded IS NULL"
)

#: `hosts`: what pages show, and the newest note of the ledger where there is one. The note alone knows of robots.txt and of names
#: without an address; later fetches stand in `pages_all` alone.
HOSTS_VIEW = f"""
SELECT coalesce(n.host, p.host) AS host, coalesce(n.domain, p.domain) AS domain, coalesce(p.ip, n.ip) AS ip,
       n.robots_state, n.robots_date, n.delay, n.delay_reason,
       coalesce(p.pages, n.pages, 0) AS pages, coalesce(greatest(p.errors, n.errors), 0) AS errors,
       coalesce(p.first_seen, n.first_seen) AS first_seen, coalesce(p.last_seen, n.last_seen) AS last_seen
FROM (
    SELECT host, any_value(domain) AS domain, arg_max(ip, fetched_at) AS ip,
           count(*) FILTER ({IS_PAGE}) AS pages, count(*) FILTER (outcome IN ({words(ERRORS)})) AS errors,
           min(fetched_at) AS first_seen, max(fetched_at) AS last_seen
    FROM pages{EVERY} GROUP BY host
) p FULL JOIN (
    SELECT * FROM host_notes QUALIFY row_number() OVER (PARTITION BY host ORDER BY "at" DESC) = 1
) n ON p.host = n.host
"""
