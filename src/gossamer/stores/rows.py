"""Rows: what is told of a visit in log and tables, and how a row becomes a line. Pure; the same line serves both.

Place in the flow: :mod:`gossamer.stores.rowlog` writes these lines for people, :mod:`gossamer.stores.tablelog` for
the tables, whose columns bear the same names. What the columns mean: :mod:`gossamer.query.schema`.

Everything in a row was written by a stranger (FAULTS 70). JSON escapes C0 controls; :func:`line` also escapes every
other character that is not printable: DEL, C1 controls, line separators, bidirectional and other format controls, which
a terminal or a pager would obey. Lone surrogates become U+FFFD, since no strict JSON reader takes them (FAULTS 58).
"""

import re

import msgspec

from gossamer.model import body as bodies
from gossamer.model.dates import utc_text
from gossamer.model.domains import registered_domain
from gossamer.model.kept import HostState
from gossamer.model.outcome import Outcome
from gossamer.model.robots_tags import keeps_copy
from gossamer.model.visit import Item, Link, Location, Visit
from gossamer.stores.printable import printable

#: Bytes of an item's line. Whoever reads rows holds a line in memory, and one page must not fill the log (FAULTS 74).
MAX_ITEM_BYTES = 4 << 20

#: Links in one frame: 500 of the longest URLs with anchors that are all escapes stay below what a reader takes as one line.
MAX_FRAME_LINKS = 500

#: Characters of ETag and Last-Modified that are kept (FAULTS 78).
MAX_VALIDATOR = 512

_SURROGATE = re.compile("[\ud800-\udfff]")


class PageRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag="page"):
    """One visit. A column at its default (empty, or 0 where that is the default) is left out of the line."""

    url: str
    host: str
    domain: str
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
    canonical_url: str = ""
    mime: str = ""
    media_type: str = ""
    """What the document's bytes show, where that is not `mime`."""
    charset: str = ""
    language: str = ""
    title: str = ""
    ip: str = ""
    digest: str = ""
    """SHA-1 of the body as archived, base32."""
    sha256: str = ""
    simhash: int | None = None
    duplicate_of: str = ""
    near_duplicate_of: str = ""
    discarded: str = ""
    etag: str = ""
    last_modified: str = ""
    noarchive: bool = False
    warc_file: str = ""
    warc_offset: int | None = None
    warc_length: int | None = None
    truncated: str = ""
    error: str = ""
    notes: str = ""
    """What of the answer was read although its standard does not allow it: words, parted by spaces."""
    trouble: str = ""
    links: int = 0
    """Links that passed the filters."""
    new: int = 0
    """Of these, URLs that had not been seen."""
    rejected: dict[str, int] = {}
    """Links that each rule refused."""


class RobotsRow(PageRow, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag="robots"):
    """A request for robots.txt: indexed like a page, and none."""


class ItemRow(msgspec.Struct, frozen=True, tag_field="event", tag="item"):
    """One item that a user's processor took out of a page."""

    kind: str
    url: str
    data: object


class LinksRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The links of one page, column by column: a frame of 58 links costs a tenth of 58 rows.

    A column that is the same for all links is left out: no anchor, no `nofollow`, relation `a href`.
    """

    source: str
    target: list[str]
    relation: list[str] = []
    anchor: list[str] = []
    nofollow: list[bool] = []


class HostRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the ledger knows of a host, as of an instant; the newest row of a host counts."""

    host: str
    domain: str
    at: str
    ip: str = ""
    robots_state: str = ""
    robots_date: str = ""
    delay: float | None = None
    delay_reason: str = ""
    pages: int | None = None
    errors: int | None = None
    first_seen: str = ""
    last_seen: str = ""


Row = PageRow | ItemRow | LinksRow | HostRow


def page_row(visit: Visit, location: Location | None, *, sha256: bool = False) -> PageRow:
    """The row of a visit and of the record that keeps it; `sha256`: hash the body too (33 us for 39 kB)."""
    task, response = visit.task, visit.response
    body = response.body
    row = RobotsRow if visit.is_robots else PageRow
    return row(
        url=task.url,
        host=task.host,
        domain=registered_domain(task.host),
        status=response.status,
        outcome=response.outcome,
        fetched_at=utc_text(response.started),
        elapsed_ms=round(response.elapsed * 1000, 3),
        bytes=len(body),
        depth=task.depth,
        attempt=task.attempt,
        relation=task.relation,
        discovered_from=task.source,
        canonical_url=visit.canonical,
        mime=response.mime,
        media_type=visit.media_type if visit.media_type != response.mime else "",
        charset=visit.charset,
        language=visit.language,
        title=visit.title,
        ip=response.address,
        digest=visit.digest,
        sha256=bodies.sha256(body) if sha256 and body else "",
        simhash=visit.simhash or None,
        duplicate_of=visit.duplicate_of,
        near_duplicate_of=visit.near_duplicate_of,
        discarded=visit.discarded,
        etag=response.header("etag")[:MAX_VALIDATOR],
        last_modified=response.header("last-modified")[:MAX_VALIDATOR],
        noarchive=not keeps_copy(visit.directives, response.headers),
        warc_file=location.file if location else "",
        warc_offset=location.offset if location else None,
        warc_length=location.length if location else None,
        truncated=response.cut,
        error=response.error,
        notes=" ".join(response.notes),
        trouble=visit.trouble,
        links=len(visit.links),
        new=len(visit.new),
        rejected=visit.rejected,
    )


def links_rows(visit: Visit) -> list[LinksRow]:
    """The frames of a page's links, those that the filters refused at the end."""
    links = [*visit.links, *visit.refused]
    return [
        _links_row(visit.url, links[start : start + MAX_FRAME_LINKS]) for start in range(0, len(links), MAX_FRAME_LINKS)
    ]


def _links_row(source: str, links: list[Link]) -> LinksRow:
    relations = [link.relation for link in links]
    anchors = [link.anchor for link in links]
    nofollow = [link.nofollow for link in links]
    return LinksRow(
        source,
        [link.url for link in links],
        [] if relations.count("a href") == len(relations) else relations,
        anchors if any(anchors) else [],
        nofollow if True in nofollow else [],
    )


def host_row(state: HostState, at: float) -> HostRow:
    """The row of what the ledger keeps of a host, as of `at` (seconds since the epoch)."""
    return HostRow(
        host=state.host,
        domain=registered_domain(state.host),
        at=utc_text(at),
        ip=state.address,
        robots_state=state.robots_state,
        robots_date=utc_text(state.robots_date) if state.robots_date else "",
        delay=state.delay if state.delay_reason else None,
        delay_reason=state.delay_reason,
        pages=state.counters.get("pages"),
        errors=state.counters.get("errors"),
        first_seen=utc_text(state.first_seen) if state.first_seen else "",
        last_seen=utc_text(state.last_seen) if state.last_seen else "",
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
    return printable(text) + b"\n"


def item_line(item: Item, encoder: msgspec.json.Encoder) -> tuple[bytes, str]:
    """An item's line, and what was wrong with its value: empty, `items_without_json` or `items_too_large`.

    A value that JSON cannot hold is written as its `repr`, one that is too large by its size: no processor stops a log.
    """
    trouble = ""
    try:
        text = line(ItemRow(item.kind, item.url, item.value), encoder)
    except (TypeError, ValueError, RecursionError):
        trouble = "items_without_json"
        text = line(ItemRow(item.kind, item.url, repr(item.value)), encoder)
    if len(text) > MAX_ITEM_BYTES:
        told = {"too_large": len(text), "most": MAX_ITEM_BYTES}
        return line(ItemRow(item.kind[:256], item.url, told), encoder), "items_too_large"
    return text, trouble


def _without_surrogates(value: object) -> object:
    """A copy of plain values in which lone surrogates are U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_surrogates(inner) for inner in value]
    return value
