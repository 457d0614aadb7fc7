"""Documents by URL, and the index by which they are found.

Place in the flow: `gossamer cat` and :mod:`gossamer.analysis.reprocess` find documents here, in the index, in runs that are not
merged yet, and in row logs that have no run yet; it works while the crawl runs. :mod:`gossamer.query.convert` has the index made
again from the archive where it is lost or cut: of committed records alone, and of none that cannot be read.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from gossamer.documents import charset
from gossamer.documents.content_coding import undone
from gossamer.documents.statements import NO_COPY
from gossamer.documents.text import all_text
from gossamer.storage.archive.cdxj import Capture, IndexedCapture, IndexEntry, find, found_in, index_line
from gossamer.storage.archive.contract import INDEX
from gossamer.storage.archive.reading import CAPTURES, MADE, ArchivedRecord, Gap, Span, is_readable, read_record, scan
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.tables.manifest import damaged_index, read_notes
from gossamer.storage.tables.places import crawl_directory, segments
from gossamer.values import media_type as mime
from gossamer.values.body import Rendered, RenderedHow, beginning
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.media_type import HTML_TYPES, essence
from gossamer.values.outcome import TRANSIENT, Note, Outcome, of_status
from gossamer.values.request_identity import Action, Redirects, Requested
from gossamer.values.task import Task
from gossamer.values.url import canonical
from gossamer.values.visit import Location, MobileOrigin, Response, Visit


class ArchivedDocument(msgspec.Struct, frozen=True):
    """The records of one fetch in the archive."""

    record: ArchivedRecord
    """The response or revisit record of the fetch itself."""
    source: ArchivedRecord
    """The record that holds the body: another one where the fetch brought the same bytes again."""
    rendered: ArchivedRecord | None = None
    """The record of the page as a browser showed it; None where none did."""

    @property
    def is_kept_out(self) -> bool:
        """A rule of the crawl kept the body out of the archive: the record ends behind the header block."""
        one = self.source
        return one.kind != "revisit" and one.fields.get("warc-truncated") == "unspecified" and not one.body


class ArchiveReader:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def captures(self, url: str) -> list[IndexedCapture]:
        """Every capture of a canonical URL, the oldest first."""
        # Logs, then runs, then the index: a row moves on in this order, and is in the next place before it leaves one.
        found: set[IndexedCapture] = set()
        for segment in segments(self.directory):
            if segment.table == "pages":
                with contextlib.suppress(FileNotFoundError), segment.path.open("rb") as rows:
                    found.update(found_in((row for row in rows if row.endswith(b"\n")), url))
        for run in self.directory.glob("state/*/index/*.cdxj"):
            found.update(find(run, url))
        found.update(find(self.directory / INDEX, url))
        return sorted(found, key=lambda one: (one.timestamp, one.entry.filename, int(one.entry.offset)))

    def document(self, url: str, at: str = "") -> ArchivedDocument:
        """The version of a document that stands last, or stood at the end of a time (digits, as `202603`), with its body: an
        answer of a failing server takes no other's place. Raises UsageError: there is none. Raises CrawlDirectoryError: the
        archive is damaged there."""
        captures = [one for one in self.captures(url) if not at or one.timestamp[: len(at)] <= at]
        # An answer with such a status says nothing of the document (as :data:`gossamer.query.schema.TELLING` has it).
        codes = {one.entry.status for one in captures if one.entry.status.isdigit()}
        passing = {code for code in codes if of_status(int(code)) in TRANSIENT}
        captures = [one for one in captures if one.entry.status not in passing] or captures
        if not captures and not (self.directory / WARC_DIRECTORY).is_dir():
            raise UsageError(f"{self.directory} has no archive: its crawl ran with --no-warc, or archived nothing")
        if not captures:
            when = f" as it was at {at}" if at else ""
            raise UsageError(f"{url} is not in the archive of {self.directory}{when}; `gossamer why` tells its story")
        entry, record = captures[-1].entry, self.read(captures[-1])
        rendered = self.record(_place(entry).rendered) if entry.dom else None
        return ArchivedDocument(record, self.original(record, url, entry.digest.removeprefix("sha1:")), rendered)

    def read(self, capture: IndexedCapture) -> ArchivedRecord:
        return self.record(_place(capture.entry))

    def record(self, place: Location) -> ArchivedRecord:
        """The record that lies there. Raises CrawlDirectoryError: it cannot be read."""
        return read_record(self.directory, place)

    def original(self, record: ArchivedRecord, url: str, digest: str = "") -> ArchivedRecord:
        """The record that holds the body: itself, or the one that a revisit refers to. That is the one of the date that it names,
        otherwise one with this digest, otherwise the last one before. Raises UsageError: it is not in this archive."""
        if record.kind != "revisit":
            return record
        target = record.fields.get("warc-refers-to-target-uri", url)
        date = _digits(record.fields.get("warc-refers-to-date", ""))
        at = _digits(record.fields.get("warc-date", ""))
        others = [one for one in self.captures(target) if one.entry.mime != "warc/revisit"]
        chosen = (
            [one for one in others if date and one.timestamp == date]
            or [one for one in others if digest and one.entry.digest == f"sha1:{digest}"]
            or [one for one in others if one.timestamp <= at]
        )
        if not chosen:
            raise UsageError(f"{url} was fetched again unchanged, and the document it repeats is not in this archive")
        return self.read(chosen[-1])


def _place(entry: IndexEntry) -> Location:
    file = f"{WARC_DIRECTORY}/{Path(entry.filename).name}"
    return Location(file, int(entry.offset), int(entry.length), int(entry.dom or 0))


def _digits(date: str) -> str:
    return "".join(letter for letter in date[:19] if letter.isdigit())


# The index made again. It reads all of the archive, and holds the lines of one part of it at a time.

#: Lines that are sorted at once: 30 MB of them.
_LINES = 100_000


def archive_ends(directory: Path) -> dict[str, int]:
    """The archive files of a crawl, inside its directory, and how far each is committed by its ledgers.
    Raises CrawlDirectoryError: a ledger cannot be read."""
    ends: dict[str, int] = {}
    for path in sorted((directory / STATE_DIRECTORY).glob("*/ledger")):
        ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=path.parent.name))
        with ledger.looking():
            ends.update(ledger.committed_ends())
    return {file: end for file, end in sorted(ends.items()) if file.startswith(f"{WARC_DIRECTORY}/")}


def runs_of(directory: Path, workspace: Path, damaged: Callable[[str, Gap], None]) -> list[Path]:
    """Sorted runs in `workspace` with a line for every capture of the archive that was committed and can be shown; `damaged` is
    told of each gap, with the name of its file."""
    lines = (
        line
        for file, end in archive_ends(directory).items()
        if is_readable(directory / file)
        for capture in captures(directory, file, end, damaged)
        if (line := index_line(capture)) is not None
    )
    runs: list[Path] = []
    while part := sorted(islice(lines, _LINES)):
        runs.append(workspace / f"again-{len(runs)}")
        runs[-1].write_bytes(b"".join(part))
    return runs


def captures(directory: Path, file: str, end: int, damaged: Callable[[str, Gap], None]) -> Iterator[Capture]:
    beside, dom = b"", 0
    for found in scan(directory / file, end):
        if isinstance(found, Gap):
            damaged(file, found)
        elif found.kind == "metadata":
            beside = found.told
        elif found.kind == MADE:
            dom = found.length  # the rendered page stands last before the answer
        else:
            if found.kind in CAPTURES:
                # Of a page that did not let a copy be kept, there is a record cut behind its header block, which says so.
                told = _told(beside, b"noarchive")
                is_cut = not found.size and found.kind != "revisit" and "warc-truncated" in found.fields
                kept = not is_cut or (bool(told) and NO_COPY not in told)
                yield capture_of(found, file, is_kept=kept, request=_told(beside, b"request"), dom_length=dom)
            beside, dom = b"", 0


def _told(beside: bytes, name: bytes) -> str:
    """A field of the record beside an answer; empty where it has none."""
    lines = (line for line in beside.split(b"\r\n") if line.startswith(name + b":"))
    return next(lines, b"").partition(b":")[2].strip().decode("utf-8", "replace")


def capture_of(span: Span, file: str, *, is_kept: bool, request: str = "", dom_length: int = 0) -> Capture:
    """The source of an index line, read out of a record of this archive file that holds an answer. The record beside it says
    whether a copy was to be kept, and what was asked for beside the URL; the one before it may hold the rendered page."""
    fields = span.fields
    lines = span.head.split(b"\r\n")
    words = lines[0].split(None, 2)
    kinds = (line.partition(b":")[2] for line in lines[1:] if line.lower().startswith(b"content-type:"))
    mime = next(kinds, b"").decode("latin-1") if span.head else fields.get("content-type", "")
    first = fields.get("warc-refers-to-target-uri", "") if span.kind == "revisit" else ""
    is_not_modified = fields.get("warc-profile", "").endswith("/server-not-modified")
    return Capture(
        url=fields.get("warc-target-uri", ""),
        fetched_at=fields.get("warc-date", ""),
        outcome=Outcome.NOT_MODIFIED if is_not_modified else Outcome.OK,
        status=int(words[1]) if len(words) > 1 and words[1].isdigit() else 0,
        mime=essence(mime),
        digest=fields.get("warc-payload-digest", "").removeprefix("sha1:"),
        duplicate_of=first,
        answer_of=first if dom_length else "",
        dom_length=dom_length,
        noarchive=not is_kept,
        request=request,
        warc_file=file,
        warc_offset=span.offset,
        warc_length=span.length,
    )


# Archived documents: as visits that were just fetched, and as a person reads them, in bounded pieces, as text and nothing else.

_PLAIN = Requested()


def archived_visit(reader: ArchiveReader, row: Mapping[str, Any]) -> Visit:
    """The visit that a row of `pages` tells of. Raises UsageError: it, or the document that it repeats, is not in this archive.
    Raises CrawlDirectoryError: the archive is damaged there. Raises OSError: its body is large, and there is no room for it in
    the directory for temporary files."""
    if not row["warc_file"]:
        raise UsageError(f"{row['url']} was not archived")
    record = source = reader.record(Location(row["warc_file"], row["warc_offset"], row["warc_length"]))
    if record.kind == "revisit" and row["outcome"] != Outcome.NOT_MODIFIED:
        source = reader.original(record, row["url"], row["digest"] or "")
    # The request beside the URL, as far as handlers see it: the archive alone has the bytes that were sent.
    mark, data = row.get("request") or "", row.get("data")
    redirects: Redirects = "keep" if row.get("redirects") == "keep" else "follow"
    made = Requested(
        mark=mark,
        method=mark.partition(" ")[0] or "GET",
        label=row.get("label") or "",
        data=b"" if data is None else msgspec.msgpack.encode(msgspec.json.decode(data)),
        redirects=redirects,
        render=True if row.get("actions") else None,
        actions=msgspec.json.decode(row.get("actions") or b"[]", type=tuple[Action, ...]),
    )
    found = undone(record.headers, source.body, whole=not row["truncated"])
    return Visit(
        task=Task(
            row["url"],
            row["host"],
            depth=row["depth"],
            source=row["discovered_from"] or "",
            relation=row["relation"],
            attempt=row["attempt"],
            request=None if made == _PLAIN else made,
        ),
        response=Response(
            Outcome(row["outcome"]),
            status=row["status"],
            response_head=record.head,
            headers=record.headers,
            body=source.body,
            decoded=found.data if found.is_readable and found.data is not source.body else None,
            address=row["ip"] or "",
            started=row["fetched_at"].replace(tzinfo=UTC).timestamp(),
            elapsed=row["elapsed_ms"] / 1000,
            cut=row["truncated"] or "",
            error=row["error"] or "",
            session=row.get("session") or "",
            brought=MobileOrigin(row["crawler"], row["runtime"], "", 0, row["brought"]) if row.get("brought") else None,
            notes=tuple(map(Note, (row["notes"] or "").split())),
        ),
        id=row["visit"] or "",
        digest=row["digest"] or "",
        duplicate_of=row["duplicate_of"] or "",
        rendered=_rendered(reader, row),
    )


def _rendered(reader: ArchiveReader, row: Mapping[str, Any]) -> Rendered | None:
    """The page as a browser showed it, where one did."""
    length = row.get("dom_length") or 0
    how: RenderedHow | Literal[""] = row.get("render") or ("done" if length else "")
    if not how:
        return None
    place = Location(row["warc_file"], row["warc_offset"], row["warc_length"], length)
    counts = msgspec.json.decode(row.get("wants") or b"{}", type=dict[str, int])
    dom = beginning(reader.record(place.rendered).body) if length else b""
    return Rendered(
        how, dom, counts=counts, seconds=row.get("render_seconds") or 0.0, gained=row.get("gained_links") or 0
    )


#: Characters of a text or a source that are shown at most: more than a person reads in a window.
SHOWN = 200_000

#: Bytes that are decoded for them: a character takes four at most.
DECODED = 4 * SHOWN

#: Bytes of a header block that are shown at most.
SHOWN_HEAD = 64 << 10

#: Versions that are listed at most, the newest ones.
VERSIONS = 100


class ArchivedView(msgspec.Struct, frozen=True):
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
    """The version of a URL in the archive of a crawl, which may be at work, that stood at the end of a time (digits, as
    `202603`); empty for the last. Raises UsageError: it is no URL or no time, or is not in the archive. Raises
    CrawlDirectoryError: the archive or its index is damaged."""
    url = url_asked(text)
    check_moment(at)
    reader = reader_of(directory)
    document = reader.document(url, at)
    versions = list(dict.fromkeys(one.timestamp for one in reversed(reader.captures(url))))[:VERSIONS]
    record, source = document.record, document.rendered or document.source
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


#: The form of a host and its port, where a scheme is missing.
_PORT = re.compile(r"\s*[\w.-]+:\d+(?:/|\s*\Z)")


def url_asked(text: str) -> str:
    """The canonical form of a URL that a person wrote. Raises UsageError."""
    if _PORT.match(text):
        raise UsageError(f"{text!r} has no scheme; did you mean http://{text}?")
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
