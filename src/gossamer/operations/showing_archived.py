"""An archived document as a person reads it: text, header fields and record, in bounded pieces, as text and nothing else.

Place in the flow: the dashboard shows it beside the story of a URL. `gossamer cat` writes documents out whole.
"""

from pathlib import Path

import msgspec

from gossamer.model import mime
from gossamer.model.body import beginning
from gossamer.model.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.model.url import canonical
from gossamer.model.visit import HTML_TYPES
from gossamer.query.archive import ArchivedDocument, ArchiveReader
from gossamer.query.noted import damaged_index, read_notes
from gossamer.query.places import crawl_directory
from gossamer.reading import charset
from gossamer.reading.coding import undone
from gossamer.reading.text import all_text
from gossamer.stores.warc_reading import ArchivedRecord

#: Characters of a text or a source that are shown at most: more than anybody reads in a window.
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
    """What a page says to its readers; empty of what is no HTML."""
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
    """What the archive of a crawl, which may be at work, has of a URL.

    Args:
        directory: the crawl's.
        text: the URL.
        at: digits of a time, as `202603`: the version that stood at its end; empty for the last.

    Raises:
        UsageError: it is no URL or no time, or is not in the archive.
        CrawlDirectoryError: the archive or its index is damaged.
    """
    try:
        url = canonical(text.strip())
    except UnreadableUrl as error:
        raise UsageError(f"{error}; write it in full, as https://example.org/") from None
    if at and not (at.isascii() and at.isdigit() and len(at) <= 14):
        raise UsageError("a version is named by the digits of its time, as 20260301")
    reader = reader_of(directory)
    document = reader.document(url, at)
    versions = list(dict.fromkeys(one.timestamp for one in reversed(reader.captures(url))))[:VERSIONS]
    return _view(url, document, versions)


def reader_of(directory: Path) -> ArchiveReader:
    """What reads the archive of a crawl, which may be at work.

    Raises:
        UsageError: there is no crawl.
        CrawlDirectoryError: the index of its archive is damaged.
    """
    place = crawl_directory(str(directory))
    notes = read_notes(place)
    if notes is not None and damaged_index(place, notes) is not None:
        raise CrawlDirectoryError(f"the index of {place} is damaged; `gossamer cat` makes it anew")
    return ArchiveReader(place)


def _view(url: str, document: ArchivedDocument, versions: list[str]) -> ArchivedView:
    record, source = document.record, document.source
    content, is_whole, trouble = content_of(source, DECODED)
    claim = mime.of_fields(source.headers)
    media_type = mime.sniff(content, claim, nosniff=source.header("x-content-type-options").lower() == "nosniff")
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
