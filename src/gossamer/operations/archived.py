"""Visits out of the archive, as they were when they had just been fetched, and their texts.

Place in the flow: :mod:`gossamer.operations.reprocess` sends them through processors again; the search index takes their texts.
"""

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec

from gossamer.model.brought import Brought
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.model.notes import Note
from gossamer.model.outcome import Outcome
from gossamer.model.requesting import Redirects, Requested
from gossamer.model.task import Task
from gossamer.model.visit import HTML_TYPES, Location, Response, Visit
from gossamer.query.archive import ArchiveReader
from gossamer.reading.coding import undone
from gossamer.reading.document import Document
from gossamer.reading.text import MAX_TEXT, TEXTS, TextChoice
from gossamer.stores.warc_reading import ArchivedRecord

_PLAIN = Requested()


def archived_visit(reader: ArchiveReader, row: Mapping[str, Any]) -> Visit:
    """The visit that a row of `pages` tells of.

    Raises:
        UsageError: it repeats a document that is not in this archive.
        CrawlDirectoryError: the archive is damaged there.
        OSError: its body is large, and there is no room for it in the directory for temporary files.
    """
    record = source = reader.record(Location(row["warc_file"], row["warc_offset"], row["warc_length"]))
    if record.kind == "revisit" and row["outcome"] != Outcome.NOT_MODIFIED:
        source = reader.original(record, row["url"], row["digest"] or "")
    return Visit(
        task=Task(
            row["url"],
            row["host"],
            depth=row["depth"],
            source=row["discovered_from"] or "",
            relation=row["relation"],
            attempt=row["attempt"],
            request=_request(row),
        ),
        response=_response(row, record, source),
        id=row["visit"] or "",
        digest=row["digest"] or "",
        duplicate_of=row["duplicate_of"] or "",
    )


def _request(row: Mapping[str, Any]) -> Requested | None:
    """What was asked for beside the URL, as far as handlers see it: what was sent is in the archive alone."""
    mark, label, data = row.get("request") or "", row.get("label") or "", row.get("data")
    redirects: Redirects = "keep" if row.get("redirects") == "keep" else "follow"
    made = Requested(
        mark=mark,
        method=mark.partition(" ")[0] or "GET",
        label=label,
        data=b"" if data is None else msgspec.msgpack.encode(msgspec.json.decode(data)),
        redirects=redirects,
    )
    return None if made == _PLAIN else made


def _response(row: Mapping[str, Any], record: ArchivedRecord, source: ArchivedRecord) -> Response:
    body = source.body
    headers = record.headers
    found = undone(headers, body, whole=not row["truncated"])
    return Response(
        Outcome(row["outcome"]),
        status=row["status"],
        response_head=record.head,
        headers=headers,
        body=body,
        decoded=found.data if found.is_readable and found.data is not body else None,
        address=row["ip"] or "",
        started=row["fetched_at"].replace(tzinfo=UTC).timestamp(),
        elapsed=row["elapsed_ms"] / 1000,
        cut=row["truncated"] or "",
        error=row["error"] or "",
        session=row.get("session") or "",
        brought=_brought(row),
        notes=tuple(map(Note, (row["notes"] or "").split())),
    )


def _brought(row: Mapping[str, Any]) -> Brought | None:
    form = row.get("brought")
    return Brought(row["crawler"], row["runtime"], "", 0, form) if form else None


class ArchivedTexts:
    """Texts of visits. Contract: `query.search.index.TextReader`."""

    def __init__(self, directory: Path, choice: TextChoice = "main") -> None:
        self._reader = ArchiveReader(directory)
        self._choice = choice

    def text(self, row: Mapping[str, Any]) -> str | None:
        """The text of a page by the choice, all of a plain text; empty for what is neither, None where it cannot be read.

        Where there is more of it than is indexed, some of that is there as well.
        """
        mime = row["media_type"] or row["mime"] or ""
        if mime not in HTML_TYPES and mime != "text/plain":
            return ""
        try:
            visit = archived_visit(self._reader, row)
        except (UsageError, CrawlDirectoryError):
            return None
        if visit.is_part:
            return _beginning(visit.response.content)
        document = Document(visit, choice=self._choice)
        if mime in HTML_TYPES:
            return TEXTS[self._choice](document.markup, MAX_TEXT + 1)
        return _beginning(document.markup)


def _beginning(text: bytes) -> str:
    """A text as far as it is indexed, and a bit more if it is longer."""
    return text[: 4 * MAX_TEXT + 4].decode("utf-8", "replace")
