"""Pages of a crawl written as Markdown, a file each or as JSON lines, and as chunks: all of them, or what changed since a time.

Place in the flow: `gossamer export --to markdown` and `--to chunks` call it. Pages are read one by one, so memory is flat.

Promises: a file is a function of the page; what has no words is counted, and the command tells it. Chunks since a mark are those
that are *new*, *changed* (in the place of another one under the same headings) and *gone*; a program that applies them to what was
exported at the mark has what an export of all of them has now.
"""

import contextlib
import datetime
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import msgspec

from gossamer.engine.files import scratch
from gossamer.query.convert import convert
from gossamer.query.database import Database
from gossamer.query.engine import PARQUET, connect
from gossamer.query.schema import EVERY
from gossamer.values.errors import UsageError
from gossamer.words.chunks import OVERLAP, WORDS, Chunk, chunks, ids_of
from gossamer.words.pages import WordsPage, WordsReader, instant_text, rows_of, told

#: URLs whose older versions are asked for at once.
_AT_ONCE = 200


class WordsWritten(msgspec.Struct, frozen=True):
    """The sums of an export."""

    pages: int
    rows: int
    """Files, or lines."""
    mark: str
    """The time of the last visit that was seen: what `--since` takes next time; empty where there was none."""
    remarks: list[str]
    """Documents without words, or with less than all of them, in words."""


class ChunkRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of chunks."""

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
    directory: Path, target: Path | None, names: Mapping[str, str] | None, *, images: bool = False
) -> WordsWritten:
    """Write every page as Markdown.

    Args:
        target: a folder with `names`, otherwise a file; None for standard output.
        names: URL -> name of its file without `.md`; None for JSON lines.
        images: whether images stay, as links.

    Raises:
        UsageError: html-to-markdown is not installed.
    """
    pages, folders = 0, set[Path]()
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(_opened(directory))
        mark = _last_visit(database)
        reader = stack.enter_context(WordsReader(directory, images=images))
        out = stack.enter_context(_out(target)) if names is None else None
        for row in rows_of(database):
            page = reader.read(row)
            if page is None:
                continue
            pages += 1
            if out is not None:
                out.write(msgspec.json.encode(page).decode() + "\n")
            elif target is not None and names is not None:
                file = target / f"{names[page.url]}.md"
                if file.parent not in folders:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    folders.add(file.parent)
                file.write_text(front_matter(page) + page.markdown, encoding="utf-8", errors="replace")
    return WordsWritten(pages, pages, mark, told(reader.left_out))


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
        _row(page, at, chunk, id_) for at, (chunk, id_) in enumerate(zip(found, ids_of(page.url, found), strict=True))
    ]


def _row(page: WordsPage, position: int, chunk: Chunk, id_: str) -> ChunkRow:
    return ChunkRow(
        id=id_,
        url=page.url,
        anchor=chunk.anchor,
        title=page.title,
        headings=chunk.headings,
        position=position,
        words=chunk.words,
        text=chunk.text,
        language=page.language,
        published=page.metadata.published,
        fetched_at=page.fetched_at,
        digest=page.digest,
    )


def write_chunks(
    directory: Path,
    target: Path | None,
    *,
    words: int = WORDS,
    overlap: int = OVERLAP,
    since: datetime.datetime | None = None,
) -> WordsWritten:
    """Write the chunks of every page, or what changed since a time.

    Args:
        target: a file of JSON lines, or of Parquet if its name ends so; None for standard output.
        words: of a chunk at most.
        overlap: words of the chunk before that are repeated.
        since: the time; as another export told it for its mark.

    Raises:
        UsageError: the overlap is not smaller than a chunk, or html-to-markdown is not installed.
    """
    if overlap >= words:
        raise UsageError(f"an overlap of {overlap} words leaves nothing new in a chunk of {words}: make it smaller")
    pages = rows = 0
    is_parquet = target is not None and target.suffix == ".parquet"
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(_opened(directory))
        mark = _last_visit(database)
        reader = stack.enter_context(WordsReader(directory, anchors=True))
        folder = Path(stack.enter_context(scratch("gossamer-chunks-")))
        with _out(folder / "chunks.jsonl" if is_parquet else target) as out:
            changes = (
                _all(database, reader, words, overlap)
                if since is None
                else _since(database, reader, words, overlap, since)
            )
            for found in changes:
                pages += 1
                rows += len(found)
                out.writelines(msgspec.json.encode(row).decode() + "\n" for row in found)
        if is_parquet and target is not None:
            _as_parquet(folder, target)
    return WordsWritten(pages, rows, mark, told(reader.left_out))


def _all(database: Database, reader: WordsReader, words: int, overlap: int) -> Iterator[list[ChunkRow]]:
    for row in rows_of(database):
        page = reader.read(row)
        if page is not None:
            yield chunk_rows(page, words, overlap)


def _since(
    database: Database, reader: WordsReader, words: int, overlap: int, since: datetime.datetime
) -> Iterator[list[ChunkRow]]:
    """What changed in each page that was visited since, page by page; nothing of pages that say what they said."""
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
            if found := difference(*(_chunks_of(reader, row, words, overlap) for row in (old, new))):
                yield found


def _chunks_of(reader: WordsReader, row: Mapping[str, Any] | None, words: int, overlap: int) -> list[ChunkRow]:
    page = reader.read(row) if row is not None else None
    return chunk_rows(page, words, overlap) if page is not None else []


def difference(before: list[ChunkRow], now: list[ChunkRow]) -> list[ChunkRow]:
    """What leads from the chunks that a page had to those that it has."""
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


def _last_visit(database: Database) -> str:
    [(last,)] = database.ask(f"SELECT max(fetched_at) FROM pages{EVERY}")  # noqa: S608
    return instant_text(last)


@contextlib.contextmanager
def _out(target: Path | None) -> Iterator[TextIO]:
    if target is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    fresh = target.with_name(f"{target.name}.new")
    with fresh.open("w", encoding="utf-8", errors="replace") as out:
        yield out
    fresh.replace(target)


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
    fresh = target.with_name(f"{target.name}.new")
    fresh.write_bytes((folder / "chunks.parquet").read_bytes())
    fresh.replace(target)
