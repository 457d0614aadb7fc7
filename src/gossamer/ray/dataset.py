"""The documents of a crawl as a Ray dataset: which there are, and how they are divided among read tasks.

Place in the flow: a program calls :func:`documents`. The tables are asked once, here; :mod:`gossamer.ray.source` ships each task
its rows of them, and reads the archive where Ray lets the task run.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gossamer.backup.elsewhere import is_store, read_here
from gossamer.documents.markdown import as_markdown, needs
from gossamer.engine.sheet import nearest
from gossamer.query.database import Database
from gossamer.query.schema import TELLS, words
from gossamer.storage.recovery import in_store
from gossamer.storage.tables.places import CRAWL_FILE, crawl_directory
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.outcome import DOCUMENTS
from gossamer.values.request_identity import WITH_COOKIES

if TYPE_CHECKING:
    from ray.data import Dataset

#: The columns that there are, and whether one is made of what the archive has; the others stand in the tables.
COLUMNS = {
    "url": False,
    "time": False,
    "type": False,
    "status": False,
    "body": True,
    "text": True,
    "markdown": True,
    "items": False,
    "error": True,
}

#: Bytes of the archive that one task reads: some 15,000 pages. Ray starts a task within milliseconds, so smaller ones gain nothing,
#: and one that is lost with its machine is read again as a whole, so larger ones lose more.
TASK_BYTES = 128 << 20

#: Bytes that every row counts as at least, so that the rows of a task are bounded where no archive was kept.
_LEAST = 1_000

#: The version of each document that stands: the last answer that says something of it, as an export has it. Answers to other
#: requests than a plain one are documents of their own.
_STANDING = f"""
SELECT * FROM pages_all WHERE {TELLS} QUALIFY row_number() OVER (
    PARTITION BY url, split_part(coalesce(nullif(request, ''), 'GET'), '{WITH_COOKIES}', 1) ORDER BY fetched_at DESC, attempt DESC
) = 1
"""

#: Where the bytes of a document lie that several visits brought: the first record of them, which the others repeat.
_FIRSTS = """
SELECT digest, arg_min({'file': warc_file, 'offset': warc_offset, 'length': warc_length}, fetched_at) AS place
FROM pages_all WHERE outcome = 'ok' AND warc_file IS NOT NULL AND NOT noarchive AND kept_out IS NULL
GROUP BY digest HAVING count(*) > 1
"""

_ITEMS = """
SELECT url, visit, list({'kind': kind, 'data': CAST(data AS VARCHAR)}) AS items FROM items_all GROUP BY ALL
"""


#: Columns of a row that always go to a task; and those by which it reads the archive.
_TOLD = ("url", "fetched_at", "status", "warc_file", "warc_length")
_READ = (
    "host", "outcome", "digest", "visit", "bytes", "truncated", "noarchive", "kept_out", "warc_offset", "dom_length", "render",
    "brought", "crawler", "runtime",
)  # fmt: skip


class DocumentsTask(NamedTuple):
    """The rows that one task reads, in the order of the archive."""

    rows: list[dict[str, Any]]
    files: dict[str, str]
    """Their archive files: name in the crawl directory -> the file, or the text of the link of one that is in a store alone."""
    bytes: int
    """Of their records."""


def documents(
    place: "str | Path",
    columns: Sequence[str] = ("url", "time", "type", "status", "body"),
    *,
    task_bytes: int = TASK_BYTES,
) -> "Dataset":
    """The documents of a crawl as a Ray dataset: of each URL the version that stands, in the order of the archive.

    Args:
        place: the crawl directory, or the URL of its store. Where Ray has several machines, all of them must reach it.
        columns: those that are wanted, in this order. `url`; `time` when it was fetched, UTC; `type`, its media type by its bytes;
            `status`; `body`, the bytes without content coding, at most 16 MiB; `text` and `markdown`, the words of HTML, plain
            text and PDF, null for others; `items`, what processors found, each `kind` and `data` as JSON; `error`, why body and
            words are null though they were asked for, otherwise empty.
        task_bytes: bytes of the archive that one read task takes.

    Raises:
        UsageError: there is no crawl, or no such column, or a package is not installed.
        CrawlDirectoryError: the crawl is damaged, or its store cannot be read.
    """
    if not columns or isinstance(columns, str):
        raise UsageError(f"columns={columns!r}: name some of {', '.join(COLUMNS)}, as columns=['url', 'text']")
    for name in columns:
        if name not in COLUMNS:
            raise UsageError(f"columns={name!r}: documents have no such column{nearest(name, COLUMNS)}")
    try:
        from ray.data import read_datasource

        from gossamer.ray.source import CrawlDatasource
    except ImportError:
        raise needs("ray", "Ray Data", "gossamer.ray.documents()") from None
    if "markdown" in columns:
        as_markdown(b"", "")  # its package is missed here, and not by the hundredth task
    name, store = str(place), ""
    if not Path(name, CRAWL_FILE).exists() and is_store(name):
        crawl, store = read_here(name)
    else:
        crawl = crawl_directory(name)
    with Database(crawl) as database:
        parts = tasks(database, crawl, columns, task_bytes)
        return read_datasource(CrawlDatasource(parts, columns, store or str(crawl.resolve())))


def tasks(database: Database, crawl: Path, columns: Collection[str], most: int) -> Iterator[DocumentsTask]:
    """The documents of a crawl, each task with records of `most` bytes, and one record more. Raises CrawlDirectoryError: a table is
    damaged."""
    if damaged := database.damage_to("items pages" if "items" in columns else "pages"):
        raise CrawlDirectoryError(f"{crawl}: {damaged[0]}; bring it back from a copy")
    reads = any(COLUMNS[name] for name in columns)
    items = (
        f"LEFT JOIN ({_ITEMS}) i ON i.url = p.url AND i.visit IS NOT DISTINCT FROM p.visit"
        if "items" in columns
        else ""
    )
    answer = database.ask(
        f"SELECT {', '.join(f'p.{name}' for name in (*_TOLD, *(_READ if reads else ())))}, coalesce(media_type, mime) AS type"
        f"{', f.place' if reads else ''}{', i.items' if items else ''} FROM ({_STANDING}) p "
        f"{f'LEFT JOIN ({_FIRSTS}) f ON f.digest = p.digest ' if reads else ''}{items} "
        f"WHERE outcome IN ({words(DOCUMENTS)}) ORDER BY warc_file, warc_offset"
    )
    rows: list[dict[str, Any]] = []
    size = 0
    for values in answer:
        row = dict(zip(answer.columns, values, strict=True))
        rows.append(row)
        size += max(row["warc_length"] or 0, _LEAST)
        if size >= most:
            yield _task(crawl, rows, size)
            rows, size = [], 0
    if rows:
        yield _task(crawl, rows, size)


def _task(crawl: Path, rows: list[dict[str, Any]], size: int) -> DocumentsTask:
    read = [row for row in rows if "place" in row]
    names = {row["warc_file"] for row in read} | {row["place"]["file"] for row in read if row["place"]}
    files: dict[str, str] = {}
    for name in filter(None, names):
        # The text of a link to what is in a store leads there from every machine.
        far = in_store(crawl / name)
        files[name] = str((crawl / name).resolve()) if far is None else far.target
    return DocumentsTask(rows, files, size)
