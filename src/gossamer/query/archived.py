"""Archived documents: as visits that were just fetched, and as a person reads them.

Place in the flow: :mod:`gossamer.analysis.reprocess` sends visits out of the archive through processors again, and the search index
takes the texts of such visits. The dashboard shows text, header fields and record beside the story of a URL, in bounded pieces, as
text and nothing else. `gossamer cat` writes documents out whole.
"""

from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec

from gossamer.documents import charset
from gossamer.documents.content_coding import undone
from gossamer.documents.text import all_text
from gossamer.query.archive import ArchivedDocument, ArchiveReader
from gossamer.storage.archive.reading import ArchivedRecord
from gossamer.storage.tables.manifest import damaged_index, read_notes
from gossamer.storage.tables.places import crawl_directory
from gossamer.values import media_type as mime
from gossamer.values.body import beginning
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.outcome import Note, Outcome
from gossamer.values.request_identity import Redirects, Requested
from gossamer.values.task import Task
from gossamer.values.url import canonical
from gossamer.values.visit import HTML_TYPES, Location, MobileOrigin, Response, Visit

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
    """The request beside the URL, as far as handlers see it: the archive alone has the bytes that were sent."""
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


def _brought(row: Mapping[str, Any]) -> MobileOrigin | None:
    form = row.get("brought")
    return MobileOrigin(row["crawler"], row["runtime"], "", 0, form) if form else None


#: Characters of a text or a source that are shown at most: more than a person reads in a window.
SHOWN = 200_000

#: Bytes that are decoded for them: a character takes four at most.
DECODED = 4 * SHOWN

#: Bytes of a header block that are shown at most.
SHOWN_HEAD = 64 << 10

#: Versions that are listed at most, the newest ones.
VERSIONS = 100


class ArchivedView(msgspec.Struct, frozen=True):
    """One version of a document."""

    url: str
    """Canonical."""
    at: str
    """When it was fetched, as the record has it."""
    media_type: str
    """By its bytes; empty where neither they nor the server say."""
    charset: str
    """Empty where the document is no text."""
    text: str
    """The text of a page for its readers; empty for other documents."""
    source: str
    """The document itself as text; empty where it is none."""
    is_cut: bool
    """Text or source go on behind what is shown."""
    trouble: str
    """Why the content coding could not be undone to the end; empty where it could."""
    head: str
    """The status line and header fields of the answer, without the values of cookies."""
    record: dict[str, str]
    """The fields of the record, names in lower case."""
    size: int
    """Bytes of the body as it came."""
    versions: list[str]
    """Times of all versions, as `20260301120000` (UTC), the newest first; a hundred at most."""


def view_archived(directory: Path, text: str, at: str = "") -> ArchivedView:
    """The versions of a URL in the archive of a crawl, which may be at work.

    Args:
        at: digits of a time, as `202603`: the version that stood at its end; empty for the last.

    Raises:
        UsageError: it is no URL or no time, or is not in the archive.
        CrawlDirectoryError: the archive or its index is damaged.
    """
    url = url_asked(text)
    check_moment(at)
    reader = reader_of(directory)
    document = reader.document(url, at)
    versions = list(dict.fromkeys(one.timestamp for one in reversed(reader.captures(url))))[:VERSIONS]
    return _view(url, document, versions)


def url_asked(text: str) -> str:
    """The canonical form of a URL that a person wrote. Raises UsageError."""
    try:
        return canonical(text.strip())
    except UnreadableUrl as error:
        raise UsageError(f"{error}; write it in full, as https://example.org/") from None


def check_moment(at: str) -> None:
    """Refuse a text that names no version. Raises UsageError."""
    if at and not (at.isascii() and at.isdigit() and len(at) <= 14):
        raise UsageError("a version is named by the digits of its time, as 20260301")


def reader_of(directory: Path) -> ArchiveReader:
    """A reader of the archive of a crawl, which may be at work.
    Raises UsageError: there is no crawl. Raises CrawlDirectoryError: the index of its archive is damaged."""
    place = crawl_directory(str(directory))
    notes = read_notes(place)
    if notes is not None and damaged_index(place, notes) is not None:
        raise CrawlDirectoryError(f"the index of {place} is damaged; `gossamer cat` makes it anew")
    return ArchiveReader(place)


def _view(url: str, document: ArchivedDocument, versions: list[str]) -> ArchivedView:
    record, source = document.record, document.source
    content, is_whole, trouble = content_of(source, DECODED)
    claim = mime.of_fields(source.headers)
    media_type = mime.sniff_media_type(
        content, claim, nosniff=source.header("x-content-type-options").lower() == "nosniff"
    )
    is_text = b"\0" not in content or charset.of_mark(content).startswith("utf-16")
    encoding = charset.sniff(content, claim) if is_text else ""
    markup = charset.to_utf8(content, encoding) if is_text else b""
    words = all_text(markup, SHOWN + 1) if media_type in HTML_TYPES else ""
    shown = markup.decode("utf-8", "replace")
    return ArchivedView(
        url=url,
        at=record.fields.get("warc-date", ""),
        media_type=media_type,
        charset=encoding,
        text=words[:SHOWN],
        source=shown[:SHOWN],
        is_cut=not is_whole or len(words) > SHOWN or len(shown) > SHOWN,
        trouble="its body was kept out of the archive" if document.is_kept_out else trouble,
        head=_head(record),
        record=record.fields,
        size=len(source.body),
        versions=versions,
    )


def content_of(source: ArchivedRecord, most: int) -> tuple[bytes, bool, str]:
    """The first `most` bytes of a document without content coding; whether that is all; why the coding could not be undone."""
    found = undone(source.headers, source.body)
    body = found.data if found.is_readable else b""
    return beginning(body, most)[:most], len(body) <= most, found.error or found.cut


def _head(record: ArchivedRecord) -> str:
    """The header block as text. A cookie may open an account, and the reading token must not."""
    lines = record.head[:SHOWN_HEAD].decode("latin-1").strip().split("\r\n")
    shown: list[str] = []
    is_cookie = False
    for line in lines:
        is_cookie = is_cookie if line[:1] in (" ", "\t") else line.lower().startswith(("set-cookie:", "set-cookie2:"))
        shown.append(
            line if not is_cookie else f"{line.partition('=')[0]}=(not shown)" if "=" in line else "(not shown)"
        )
    return "\n".join(shown)
