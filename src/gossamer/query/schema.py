"""The tables and their columns: documented here, and only ever added to (INTERFACE)."""

from collections.abc import Iterable, Iterator

import msgspec

from gossamer.model.outcome import DOCUMENTS, ERRORS
from gossamer.model.visit import HTML_TYPES


class Column(msgspec.Struct, frozen=True):
    """One column of a table."""

    name: str
    type: str
    """DuckDB's name of the type."""
    doc: str
    absent: str = "NULL"
    """What stands there where a row log leaves the column out, as SQL."""


class Table(msgspec.Struct, frozen=True):
    """One table: what is in it, and how its rows come out of a row log."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    logged: str
    """The columns of the row log, as DuckDB's JSON reader takes them."""
    select: str
    """From the log (`{log}`) to the columns."""

    @property
    def empty(self) -> str:
        """The table without rows: so that a column is there before a row of it is."""
        columns = ", ".join(f'CAST(NULL AS {column.type}) AS "{column.name}"' for column in self.columns)
        return f"SELECT {columns} WHERE false"

    @property
    def names(self) -> Iterator[str]:
        """The columns' names."""
        return (column.name for column in self.columns)


def _plain(name: str, doc: str, *columns: Column, only: str = "") -> Table:
    """A table whose rows stand in its log as they are; `only` leaves out others, as SQL."""
    logged = ", ".join(f"'{column.name}': '{column.type}'" for column in columns)
    select = ", ".join(
        f'"{column.name}"'
        if column.absent == "NULL"
        else f'coalesce("{column.name}", {column.absent}) AS "{column.name}"'
        for column in columns
    )
    return Table(name, doc, columns, f"{{{logged}}}", f"SELECT {select} FROM {{log}}{only and f' WHERE {only}'}")


PAGES = _plain(
    "pages",
    "Every fetch that ended, one row for each visit. `NULL` where there is nothing to say.",
    Column("url", "VARCHAR", "The canonical URL that was fetched."),
    Column("canonical_url", "VARCHAR", "What the page says its URL is (`rel=canonical`), resolved."),
    Column("host", "VARCHAR", "Host name, without port."),
    Column("domain", "VARCHAR", "Registered domain of the host; the host itself where it has none."),
    Column("ip", "VARCHAR", "Address that answered."),
    Column("status", "INTEGER", "Status code of the answer; 0 where there was none."),
    Column("outcome", "VARCHAR", "How the fetch ended: one of the closed list in `outcomes.md`."),
    Column("mime", "VARCHAR", "Media type that the server claims, without parameters."),
    Column(
        "media_type",
        "VARCHAR",
        "Media type that the document's bytes show; `mime` where nobody looked at them.",
        "mime",
    ),
    Column("charset", "VARCHAR", "Character encoding that the document was read in."),
    Column(
        "language",
        "VARCHAR",
        "Language as an ISO 639-1 code: of the text with `--details full`, otherwise as the page declares it.",
    ),
    Column("title", "VARCHAR", "Text of the first `title` element."),
    Column("depth", "INTEGER", "Links from the nearest seed."),
    Column("discovered_from", "VARCHAR", "The URL that it was found on."),
    Column("relation", "VARCHAR", "How it was found: `seed`, `redirect`, or tag and attribute, as `a href`."),
    Column("fetched_at", "TIMESTAMP", "When the request was sent, UTC."),
    Column("elapsed_ms", "DOUBLE", "Milliseconds from then to the last byte."),
    Column("bytes", "BIGINT", "Length of the body as archived, with its content coding."),
    Column("digest", "VARCHAR", "SHA-1 of the body as archived, base32: the payload digest of the archive."),
    Column("sha256", "VARCHAR", "SHA-256 of the same bytes, hexadecimal."),
    Column("simhash", "UBIGINT", "Fingerprint of the text: near-duplicates differ in few bits."),
    Column("duplicate_of", "VARCHAR", "URL of the first document with the same bytes."),
    Column("near_duplicate_of", "VARCHAR", "URL of an earlier page whose fingerprint differs in at most three bits."),
    Column(
        "discarded", "VARCHAR", "Why the page is not wanted: `language:de`, `near-duplicate`. Its body is not kept."
    ),
    Column("warc_file", "VARCHAR", "File that holds the response or revisit record, inside the crawl directory."),
    Column("warc_offset", "BIGINT", "Where in it the record begins."),
    Column("warc_length", "BIGINT", "Bytes of the record as stored."),
    Column("noarchive", "BOOLEAN", "The page asks that no copy be kept: the record has no body.", "false"),
    Column("etag", "VARCHAR", "The field `ETag`."),
    Column("last_modified", "VARCHAR", "The field `Last-Modified`, as sent."),
    Column("attempt", "INTEGER", "1 for the first try."),
    Column("truncated", "VARCHAR", "Why the body is not whole: `length`, `time`, `disconnect`."),
    Column("error", "VARCHAR", "What failed, in the words of the library or system."),
    Column(
        "notes",
        "VARCHAR",
        "What of the answer was read although its standard does not allow it: words of `outcomes.md`, parted by spaces.",
    ),
    Column("trouble", "VARCHAR", "What went wrong while the page was processed."),
    Column("links", "INTEGER", "Links that passed the filters.", "0"),
    Column("new", "INTEGER", "Of these, URLs that had not been seen.", "0"),
    Column("rejected", "JSON", "How many links each rule refused."),
    # The log has them too, since the index of the archive is made of it.
    only="relation <> 'robots'",
)

LINKS = Table(
    "links",
    "Every link of every page to another, each once, those that the filters refused too; kept where `tables` of the log names it.",
    (
        Column("source", "VARCHAR", "The page's URL."),
        Column("target", "VARCHAR", "The link, resolved and canonical."),
        Column("relation", "VARCHAR", "Tag and attribute, as `a href`; `redirect` for the target of one."),
        Column("anchor", "VARCHAR", "Text of the link, where it is kept."),
        Column("nofollow", "BOOLEAN", "The page does not vouch for it."),
    ),
    "{source: 'VARCHAR', target: 'VARCHAR[]', relation: 'VARCHAR[]', anchor: 'VARCHAR[]', nofollow: 'BOOLEAN[]'}",
    "SELECT source, unnest(target) AS target, "
    "unnest(coalesce(relation, list_transform(target, lambda x: 'a href'))) AS relation, "
    "unnest(coalesce(anchor, list_transform(target, lambda x: ''))) AS anchor, "
    "unnest(coalesce(nofollow, list_transform(target, lambda x: false))) AS nofollow FROM {log}",
)

ITEMS = _plain(
    "items",
    "What processors took out of pages.",
    Column("kind", "VARCHAR", "What it is, as the processor calls it."),
    Column("url", "VARCHAR", "The page's URL."),
    Column("data", "JSON", "The item: `data->>'$.price'` takes a field out of it."),
)

#: What the ledger tells of hosts; the table `hosts` joins it with what the pages show.
HOST_NOTES = _plain(
    "host_notes",
    "What the ledger had written down of hosts, at several times; `hosts` has the newest.",
    Column("host", "VARCHAR", "Host name, without port."),
    Column("domain", "VARCHAR", "Registered domain."),
    Column("ip", "VARCHAR", "Address that answered last."),
    Column("robots_state", "VARCHAR", "Where robots exclusion stands."),
    Column("robots_date", "TIMESTAMP", "When robots.txt was last fetched, UTC."),
    Column("delay", "DOUBLE", "Seconds between two requests, as politeness had them last."),
    Column(
        "delay_reason",
        "VARCHAR",
        "Why the delay is no shorter: `setting`, `latency`, `robots`, `errors` or `refusals`.",
    ),
    Column("pages", "BIGINT", "Successful HTML documents."),
    Column(
        "errors",
        "BIGINT",
        "Requests that failed, for robots.txt too: those whose outcome is an error in `outcomes.md`.",
    ),
    Column("first_seen", "TIMESTAMP", "First request, UTC."),
    Column("last_seen", "TIMESTAMP", "Last request, UTC."),
    Column("at", "TIMESTAMP", "When this was written down, UTC."),
)

#: `hosts` is no log: see :data:`HOSTS_VIEW`.
HOSTS = Table(
    "hosts",
    "What is known of each host: counted from `pages`, with the newest of `host_notes`.",
    HOST_NOTES.columns[:-1],
    "",
    "",
)

#: Tables that row logs are turned into, by name.
LOGGED = {table.name: table for table in (PAGES, LINKS, ITEMS, HOST_NOTES)}


def _list(words: Iterable[str]) -> str:
    """Words as SQL lists them."""
    return ", ".join(f"'{word}'" for word in sorted(words))


#: Which rows of `pages` are pages: as `Visit.is_page` has it. Tables of older programs have no `media_type`.
_IS_PAGE = (
    f"outcome IN ({_list(DOCUMENTS)}) AND coalesce(media_type, mime) IN ({_list(HTML_TYPES)}) AND discarded IS NULL"
)

#: `hosts`: what pages show, and the newest note of the ledger where there is one. The note alone knows of robots.txt and of names
#: without an address; what was fetched after it stands in `pages` alone.
HOSTS_VIEW = f"""
SELECT coalesce(n.host, p.host) AS host, coalesce(n.domain, p.domain) AS domain, coalesce(p.ip, n.ip) AS ip,
       n.robots_state, n.robots_date, n.delay, n.delay_reason,
       coalesce(p.pages, n.pages, 0) AS pages, coalesce(greatest(p.errors, n.errors), 0) AS errors,
       coalesce(p.first_seen, n.first_seen) AS first_seen, coalesce(p.last_seen, n.last_seen) AS last_seen
FROM (
    SELECT host, any_value(domain) AS domain, arg_max(ip, fetched_at) AS ip,
           count(*) FILTER ({_IS_PAGE}) AS pages, count(*) FILTER (outcome IN ({_list(ERRORS)})) AS errors,
           min(fetched_at) AS first_seen, max(fetched_at) AS last_seen
    FROM pages GROUP BY host
) p FULL JOIN (
    SELECT * FROM host_notes QUALIFY row_number() OVER (PARTITION BY host ORDER BY "at" DESC) = 1
) n ON p.host = n.host
"""
