"""The pages of a crawl as words: title, facts and Markdown of each document that has text, out of the archive.

Place in the flow: :mod:`gossamer.words.exporting` writes them, :mod:`gossamer.words.tools` reads one for a model. Rows of the table
`pages` say where each document lies in the archive; HTML, plain text and PDF have words.
"""

import datetime
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.metadata import PageMetadata
from gossamer.query.archive import ArchiveReader
from gossamer.query.archived import archived_visit
from gossamer.query.database import Database
from gossamer.query.schema import EVERY, TELLS
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.words.options import TYPES
from gossamer.words.pdf import PdfReading
from gossamer.words.reading import TROUBLES, words_of


class WordsPage(msgspec.Struct, frozen=True, kw_only=True):
    """One document in words."""

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
        """Nothing is read yet.

        Args:
            images: whether images stay in Markdown.
            anchors: whether headings carry their ids, for chunks.
        """
        self._archive = ArchiveReader(directory)
        self._images, self._anchors = images, anchors
        self._pdf = PdfReading()
        self.left_out: Counter[str] = Counter()
        """Documents that have no words, or not all of them, by trouble: see :data:`gossamer.words.reading.TROUBLES`."""

    def __enter__(self) -> "WordsReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._pdf.close()

    def read(self, row: Mapping[str, Any]) -> WordsPage | None:
        """The document that a row of `pages` tells of; None where the archive does not have it or it has no words."""
        try:
            visit = archived_visit(self._archive, row)
        except (UsageError, CrawlDirectoryError):
            self.left_out["no_body"] += 1
            return None
        mime = row["media_type"] or visit.media_type
        found = words_of(Document(visit), mime, self._pdf, images=self._images, anchors=self._anchors)
        self.left_out[found.trouble] += bool(found.trouble)
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


def told(left_out: Mapping[str, int]) -> list[str]:
    """The counts of a reader in words."""
    return [
        f"{number:,} {'document' if number == 1 else 'documents'}: {TROUBLES[trouble]}"
        for trouble, number in sorted(left_out.items())
        if number
    ]


def instant_text(value: Any) -> str:
    """A time of a table, which is in UTC, as ISO 8601."""
    return value.replace(tzinfo=datetime.UTC).isoformat().replace("+00:00", "Z") if value else ""


def rows_of(
    database: Database, condition: str = "true", values: Sequence[object] = (), mark: datetime.datetime | None = None
) -> Iterator[dict[str, Any]]:
    """Rows of documents that have words, in the order of URLs: the version of each that stands, or stood at a time.

    Args:
        database: the crawl.
        condition: SQL that rows fulfil as well.
        values: those of it.
        mark: the time.
    """
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
