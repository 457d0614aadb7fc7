"""`logs/crawl.jsonl`: one event a line, for people with `grep` and `jq`, in the order of the commits.

Place in the flow: the committing component calls `append` with a group's visits and the archive's locations. A visit
gives one line with `"event": "page"`, each item of a user's processor one with `"event": "item"`. The columns of a page
line bear the names of the `pages` table, so that a query is the same over both.

Everything in a row was written by a stranger (FAULTS 70). JSON escapes C0 controls; this module also escapes every
other character that is not printable: DEL, C1 controls, line separators, bidirectional and other format controls, which
a terminal or a pager would obey. Lone surrogates become U+FFFD, since no strict JSON reader takes them (FAULTS 58).
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.dates import utc_text
from gossamer.model.outcome import Outcome
from gossamer.model.visit import Location, Visit
from gossamer.stores.files import AppendFile

#: The log's place inside the crawl directory (DESIGN 7).
LOG_PATH = "logs/crawl.jsonl"

#: Bytes read at first to find the end of the last whole line; doubled until it is found.
TAIL_BYTES = 1 << 16

_NOT_ASCII = re.compile("[\x7f-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class PageRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag="page"):
    """One visit. A column at its default (empty, or 0 where that is the default) is left out of the line."""

    url: str
    host: str
    status: int
    outcome: Outcome
    fetched_at: str
    """When the request was sent, as in the archive: `2026-03-01T12:00:00.000000Z`."""
    elapsed_ms: float
    bytes: int
    """Length of the body as archived."""
    depth: int
    attempt: int
    relation: str
    discovered_from: str = ""
    mime: str = ""
    charset: str = ""
    title: str = ""
    ip: str = ""
    digest: str = ""
    """SHA-1 of the body as archived, base32."""
    duplicate_of: str = ""
    warc_file: str = ""
    warc_offset: int | None = None
    warc_length: int | None = None
    truncated: str = ""
    error: str = ""
    trouble: str = ""
    links: int = 0
    """Links that passed the filters."""
    new: int = 0
    """Of these, URLs that had not been seen."""
    rejected: dict[str, int] = {}
    """Links that each rule refused."""


class ItemRow(msgspec.Struct, frozen=True, tag_field="event", tag="item"):
    """One item that a user's processor took out of a page."""

    kind: str
    url: str
    data: object


Row = PageRow | ItemRow


def page_row(visit: Visit, location: Location | None) -> PageRow:
    """The row of a visit and of the record that keeps it."""
    task, response = visit.task, visit.response
    return PageRow(
        url=task.url,
        host=task.host,
        status=response.status,
        outcome=response.outcome,
        fetched_at=utc_text(response.started),
        elapsed_ms=round(response.elapsed * 1000, 3),
        bytes=len(response.body),
        depth=task.depth,
        attempt=task.attempt,
        relation=task.relation,
        discovered_from=task.source,
        mime=response.mime,
        charset=visit.charset,
        title=visit.title,
        ip=response.address,
        digest=visit.digest,
        duplicate_of=visit.duplicate_of,
        warc_file=location.file if location else "",
        warc_offset=location.offset if location else None,
        warc_length=location.length if location else None,
        truncated=response.cut,
        error=response.error,
        trouble=visit.trouble,
        links=len(visit.links),
        new=len(visit.new),
        rejected=visit.rejected,
    )


def line(row: Row, encoder: msgspec.json.Encoder) -> bytes:
    """One row as one line of JSON, its newline included.

    Raises:
        TypeError: an item's value is nothing that JSON can hold.
    """
    try:
        text = encoder.encode(row)
    except UnicodeEncodeError:  # lone surrogates, which a processor can have put into an item
        text = encoder.encode(_without_surrogates(msgspec.to_builtins(row)))
    if not text.isascii() or b"\x7f" in text:
        shown = text.decode()
        if not shown.isprintable():
            text = _NOT_ASCII.sub(_escape, shown).encode()
    return text + b"\n"


def _escape(match: re.Match[str]) -> str:
    """One character, as a JSON escape where it cannot be seen or does something to its surroundings."""
    character = match[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


def _without_surrogates(value: object) -> object:
    """A copy of plain values in which lone surrogates are U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(inner) for inner in value]
    return value


class JsonLogSheet(Sheet, frozen=True):
    """Settings of :class:`JsonLog`."""

    directory: Annotated[
        str, setting("The crawl directory; the log is `logs/crawl.jsonl` in it.", restart="it is part of the open file")
    ] = "."
    sync: Annotated[
        bool, setting("Force each group to the disk before it counts as written: survives a power cut.")
    ] = False


class JsonLog(Provider[JsonLogSheet]):
    """Writes the log. Contract: `storing.RowLog`. The file is made at the first event."""

    def __init__(self, sheet: JsonLogSheet | None = None) -> None:
        super().__init__(sheet)
        self._file: AppendFile | None = None
        self._encoder = msgspec.json.Encoder()

    async def stop(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, visits: Sequence[Visit], locations: Sequence[Location | None]) -> None:
        """Write a group's lines in one write.

        Raises:
            OSError: the group could not be written; nothing of it is in the file.
        """
        lines: list[bytes] = []
        for visit, location in zip(visits, locations, strict=True):
            lines.append(line(page_row(visit, location), self._encoder))
            lines += [self._item(ItemRow(item.kind, item.url, item.value)) for item in visit.items]
        if not lines:
            return
        if self._file is None:
            self._file = _open(Path(self.sheet.directory, LOG_PATH))
        self._file.append(b"".join(lines), sync=self.sheet.sync)
        self.metrics.count("lines", len(lines))

    def _item(self, row: ItemRow) -> bytes:
        """An item's line. A value that JSON cannot hold is written as its `repr`: no processor stops the log."""
        try:
            return line(row, self._encoder)
        except (TypeError, ValueError, RecursionError):
            self.metrics.count("items_without_json")
            return line(ItemRow(row.kind, row.url, repr(row.data)), self._encoder)


def _open(path: Path) -> AppendFile:
    """The log, cut back to its last whole line: what a kill tore was never acknowledged."""
    file = AppendFile(path, fresh=False)
    length = TAIL_BYTES
    while True:
        tail = file.tail(length)
        whole = tail.rfind(b"\n") + 1
        if whole or length >= file.end:
            break
        length *= 2
    if whole < len(tail):
        file.cut_back(file.end - (len(tail) - whole))
    return file
