"""Pages of a crawl written as Markdown, a file each or as JSON lines, and as chunks: all of them, or what changed since a time.

Place in the flow: `gossamer export --to markdown` and `--to chunks` call it. Rows of the table `pages` say where each document lies
in the archive. Pages are read one by one, so memory is flat.

Promises: a file is a function of the page; what has no words is counted, and the command tells it. Chunks since a mark are those
that are *new*, *changed* (in the place of another one under the same headings) and *gone*; a program that applies them to what was
exported at the mark has what an export of all of them has now.
"""

import contextlib
import datetime
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec

from gossamer.crawls.control.client import holder
from gossamer.documents.document import Document
from gossamer.documents.markdown import PageMetadata
from gossamer.engine.files import in_place_of, scratch
from gossamer.query.archive import ArchiveReader, archived_visit
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.engine import PARQUET, connect
from gossamer.query.schema import EVERY, TELLS
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.words.chunks import OVERLAP, WORDS, chunks, ids_of
from gossamer.words.options import TYPES
from gossamer.words.pdf import PdfReading
from gossamer.words.reading import LeftOut, words_of

#: URLs whose older versions are asked for at once.
_AT_ONCE = 200

#: A visit of a crawl at work is in the tables so long after it began, at most: its fetch is given up after two minutes.
_UNDER_WAY = datetime.timedelta(minutes=10)


class WordsPage(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    title: str
    markdown: str
    language: str = ""
    media_type: str = ""
    fetched_at: str
    """ISO 8601, UTC."""
    digest: str = ""
    """SHA-1 of the document, in base 32, as the archive has it."""
    canonical: str = ""
    metadata: PageMetadata = PageMetadata()


class WordsReader:
    """Reads documents of a crawl as words, and counts what was not whole. A context manager."""

    def __init__(self, directory: Path, *, images: bool = False, anchors: bool = False) -> None:
        """Nothing is read yet. Images stay in Markdown, and headings carry their ids for chunks, by choice."""
        self._archive = ArchiveReader(directory)
        self._images, self._anchors = images, anchors
        self._pdf = PdfReading()
        self.left_out = LeftOut()

    def __enter__(self) -> "WordsReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._pdf.close()

    def read(self, row: Mapping[str, Any]) -> WordsPage | None:
        """The document that a row of `pages` tells of; None where the archive does not have it or it has no words."""
        try:
            visit = archived_visit(self._archive, row)
        except (UsageError, CrawlDirectoryError):
            self.left_out.add("no_body", row["url"])
            return None
        mime = row["media_type"] or visit.media_type
        found = words_of(Document(visit), mime, self._pdf, images=self._images, anchors=self._anchors)
        self.left_out.add(found.trouble, row["url"])
        if not found.markdown:
            return None
        return WordsPage(
            url=row["url"],
            title=row["title"] or found.title,
            markdown=found.markdown,
            language=row["language"] or "",
            media_type=mime,
            fetched_at=instant_text(row["fetched_at"]),
            digest=row["digest"] or "",
            canonical=found.canonical,
            metadata=found.metadata,
        )


def instant_text(value: Any) -> str:
    """A time of a table, which is in UTC, as ISO 8601."""
    return value.replace(tzinfo=datetime.UTC).isoformat().replace("+00:00", "Z") if value else ""


def rows_of(
    database: Database, condition: str = "true", values: Sequence[object] = (), mark: datetime.datetime | None = None
) -> Iterator[dict[str, Any]]:
    """Rows of documents that have words and fulfil a condition in SQL, in the order of URLs: the version of each that stands,
    or stood at a time."""
    types = ", ".join(f"'{one}'" for one in TYPES)
    then = [mark.astimezone(datetime.UTC).replace(tzinfo=None)] if mark else []
    # An answer to a form is no page of its URL.
    answer = database.ask(
        f"SELECT * FROM (SELECT * FROM pages{EVERY} WHERE {TELLS} AND coalesce(nullif(request, ''), 'GET') = 'GET'"  # noqa: S608
        f"{' AND fetched_at <= ?' if then else ''} "
        "QUALIFY row_number() OVER (PARTITION BY url ORDER BY fetched_at DESC, attempt DESC) = 1) "
        f"WHERE outcome IN ('ok', 'truncated') AND media_type IN ({types}) AND ({condition}) ORDER BY url",
        [*then, *values],
    )
    return (dict(zip(answer.columns, row, strict=True)) for row in answer)


class WordsWritten(msgspec.Struct, frozen=True):
    """The sums of an export."""

    pages: int
    rows: int
    """Files, or lines."""
    remarks: list[str]
    """Documents without words, or with less than all of them, in words."""
    mark: str = ""
    """The time that `--since` takes next: of the last visit, or ten minutes before it where the crawl is at work; empty where there
    was none, and of an export of Markdown."""


class ChunkRow(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    change: str = "new"
    """`new`, `changed` or `gone`."""
    replaces: str = ""
    """The id of the chunk in the place of which a changed one stands."""
    url: str
    anchor: str = ""
    title: str = ""
    headings: tuple[str, ...] = ()
    position: int = 0
    """Of the chunk in its page, from 0."""
    words: int = 0
    text: str = ""
    language: str = ""
    published: str = ""
    fetched_at: str = ""
    digest: str = ""
    """Of the document, as the archive has it."""


def write_markdown(
    directory: Path,
    target: Path | None,
    named: Callable[[Iterable[tuple[str, str]]], Mapping[str, str]] | None = None,
    *,
    images: bool = False,
) -> WordsWritten:
    """Write every page as Markdown: into a folder, or as JSON lines to a file or standard output where no files are `named`.
    Images stay by choice, as links. `named`: names of files without `.md`, by URL, for pages with their media types. Raises
    UsageError: html-to-markdown is not installed."""
    pages, folders = 0, set[Path]()
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(_opened(directory))
        reader = stack.enter_context(WordsReader(directory, images=images))
        out = stack.enter_context(_out(target)) if named is None else None
        names = named((row["url"], row["media_type"]) for row in rows_of(database)) if named is not None else {}
        for row in rows_of(database):
            if named is not None and row["url"] not in names:
                continue  # a crawl at work has brought it since
            page = reader.read(row)
            if page is None:
                continue
            pages += 1
            if out is not None:
                out.write(msgspec.json.encode(page).decode() + "\n")
            elif target is not None:
                file = target / f"{names[page.url]}.md"
                if file.parent not in folders:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    folders.add(file.parent)
                file.write_text(front_matter(page) + page.markdown, encoding="utf-8", errors="replace")
    return WordsWritten(pages, pages, reader.left_out.told())


def front_matter(page: WordsPage) -> str:
    """Facts of a page as YAML; each is a JSON text, which YAML reads the same."""
    facts = {"title": page.title, "url": page.url, "canonical": page.canonical if page.canonical != page.url else ""}
    facts |= {"language": page.language, **msgspec.to_builtins(page.metadata), "fetched_at": page.fetched_at}
    lines = [f"{name}: {msgspec.json.encode(text).decode()}" for name, text in facts.items() if text]
    return "\n".join(["---", *lines, "---", "", ""])


def chunk_rows(page: WordsPage, words: int, overlap: int) -> list[ChunkRow]:
    """The chunks of a page."""
    found = list(chunks(page.markdown, words, overlap))
    return [
        ChunkRow(
            id=id_,
            url=page.url,
            anchor=chunk.anchor,
            title=page.title,
            headings=chunk.headings,
            position=at,
            words=chunk.words,
            text=chunk.text,
            language=page.language,
            published=page.metadata.published,
            fetched_at=page.fetched_at,
            digest=page.digest,
        )
        for at, (chunk, id_) in enumerate(zip(found, ids_of(page.url, found), strict=True))
    ]


def write_chunks(
    directory: Path,
    target: Path | None,
    *,
    words: int = WORDS,
    overlap: int = OVERLAP,
    since: datetime.datetime | None = None,
) -> WordsWritten:
    """Write the chunks of every page, or what changed since the time that another export told for its mark: to a file of JSON
    lines, or of Parquet if its name ends so, or to standard output. Raises UsageError: the overlap is not smaller than a chunk,
    or html-to-markdown is not installed."""
    if overlap >= words:
        raise UsageError(f"an overlap of {overlap} words leaves nothing new in a chunk of {words}: make it smaller")
    pages = rows = 0
    is_parquet = target is not None and target.suffix == ".parquet"
    is_at_work = bool(holder(directory))
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(_opened(directory))
        # The time for the next `--since`. Of a crawl at work, visits may still come that began before the last one that is there.
        [(last,)] = database.ask(f"SELECT max(fetched_at) FROM pages{EVERY}")  # noqa: S608
        mark = instant_text(last - _UNDER_WAY if last and is_at_work else last)
        reader = stack.enter_context(WordsReader(directory, anchors=True))
        folder = Path(stack.enter_context(scratch("gossamer-chunks-")))
        with _out(folder / "chunks.jsonl" if is_parquet else target) as out:
            everything = (chunk_rows(page, words, overlap) for row in rows_of(database) if (page := reader.read(row)))
            changes = everything if since is None else _since(database, reader, words, overlap, since)
            for found in changes:
                pages += 1
                rows += len(found)
                out.writelines(msgspec.json.encode(row).decode() + "\n" for row in found)
        if is_parquet and target is not None:
            _as_parquet(folder, target)
    return WordsWritten(pages, rows, reader.left_out.told(), mark)


def _since(
    database: Database, reader: WordsReader, words: int, overlap: int, since: datetime.datetime
) -> Iterator[list[ChunkRow]]:
    """The changes in each page that was visited since, page by page; nothing of pages that say what they said."""
    then = since.astimezone(datetime.UTC).replace(tzinfo=None)
    visited = database.ask(f"SELECT DISTINCT url FROM pages{EVERY} WHERE fetched_at > ? ORDER BY url", [then])  # noqa: S608
    urls = [url for (url,) in visited]
    for start in range(0, len(urls), _AT_ONCE):
        some = urls[start : start + _AT_ONCE]
        among = f"url IN ({', '.join('?' * len(some))})"
        before = {row["url"]: row for row in rows_of(database, among, some, since)}
        now = {row["url"]: row for row in rows_of(database, among, some)}
        for url in some:
            old, new = before.get(url), now.get(url)
            if old and new and old["digest"] == new["digest"]:
                continue
            pages = [reader.read(row) if row is not None else None for row in (old, new)]
            if found := difference(*(chunk_rows(page, words, overlap) if page else [] for page in pages)):
                yield found


def difference(before: list[ChunkRow], now: list[ChunkRow]) -> list[ChunkRow]:
    """The steps from the chunks that a page had to those that it has."""
    kept = {row.id for row in before} & {row.id for row in now}
    replaced: defaultdict[tuple[str, ...], list[ChunkRow]] = defaultdict(list)
    for row in before:
        if row.id not in kept:
            replaced[row.headings].append(row)
    found = []
    for row in now:
        if row.id in kept:
            continue
        others = replaced[row.headings]
        found.append(msgspec.structs.replace(row, change="changed", replaces=others.pop(0).id) if others else row)
    gone = [row for rows in replaced.values() for row in rows]
    return found + [ChunkRow(id=row.id, change="gone", url=row.url, headings=row.headings) for row in gone]


def _opened(directory: Path) -> Database:
    convert(directory)
    return Database(directory)


@contextlib.contextmanager
def _out(target: Path | None) -> Iterator[TextIO]:
    if target is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with in_place_of(target) as fresh, fresh.open("w", encoding="utf-8", errors="replace") as out:
        yield out


def _as_parquet(folder: Path, target: Path) -> None:
    columns = dict.fromkeys(ChunkRow.__struct_fields__, "VARCHAR")
    columns |= {"headings": "VARCHAR[]", "position": "INTEGER", "words": "INTEGER"}
    named = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
    connection = connect(str(folder))
    try:
        connection.execute(
            f"COPY (SELECT * FROM read_json('{folder}/chunks.jsonl', format='newline_delimited', columns={{{named}}})) "  # noqa: S608
            f"TO '{folder}/chunks.parquet' ({PARQUET})"
        )
    finally:
        connection.close()
    with in_place_of(target) as fresh:
        shutil.copyfile(folder / "chunks.parquet", fresh)
