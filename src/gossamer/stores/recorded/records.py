"""A record brought back as the answer that it was: status line, header fields, body.

Place in the flow: `server` asks here with the URL of a request. Fields that speak of one connection are left out, and the length is
that of the body as it is stored; everything else goes out as it came, content coding included.
"""

from __future__ import annotations

import contextlib
import io
from typing import Final, NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from gossamer.stores.recorded.index import RecordPlace, ReplayIndex

MOST: Final = 1 << 30
"""Bytes of a body that are served; a larger one is cut."""

HOPS: Final = 3
"""Revisits of revisits that are followed to a body."""

_OF_A_CONNECTION: Final = frozenset(
    ("connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)


class Stored(NamedTuple):
    """An answer as it was recorded."""

    status: bytes
    """Code and reason, as `200 OK`."""
    fields: list[tuple[bytes, bytes]]
    body: bytes
    seconds: float
    """The time that it took when it was recorded."""


def stored(index: ReplayIndex, url: str, most: int = MOST) -> Stored | None:
    """The recorded answer to a canonical URL, with at most this many bytes of its body; None where there is none, or its record
    cannot be read."""
    place = index.place(url)
    if place is None:
        return None
    answer = _read(place, most)
    if answer is None:
        return None
    hops, whole = 0, place
    while whole.revisit and hops < HOPS:
        original = index.place(whole.revisit)
        if original is None:
            return None
        whole, hops = original, hops + 1
    if whole is not place:
        origin = _read(whole, most)
        if origin is None:
            return None
        answer = answer._replace(body=origin.body)
    return answer._replace(seconds=index.seconds(url))


def _read(place: RecordPlace, most: int) -> Stored | None:
    with place.file.open("rb") as file, contextlib.redirect_stderr(io.StringIO()):
        file.seek(place.offset)
        try:
            record = next(iter(ArchiveIterator(file, arc2warc=True)), None)
            if record is None:
                return None
            body = record.raw_stream.read(most)
        except (ArchiveLoadFailed, OSError):
            return None
    if record.http_headers is None:
        kind = (record.rec_headers.get_header("Content-Type") or "application/octet-stream").encode(
            "latin-1", "replace"
        )
        return Stored(b"200 OK", [(b"Content-Type", kind)], body, 0.0)
    fields = [(name.strip(), value.strip()) for name, value in record.http_headers.headers]
    if any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in fields):
        body = _without_chunks(body)
    kept = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace").replace(b"\r", b"").replace(b"\n", b" "))
        for name, value in fields
        if name.lower() not in _OF_A_CONNECTION
    ]
    status = record.http_headers.statusline.encode("latin-1", "replace")
    return Stored(status if status[:3].isdigit() else b"200 OK", kept, body, 0.0)


def _without_chunks(body: bytes) -> bytes:
    """A chunked body put together; one that is not in chunks after all, as it is (some archives take them out)."""
    found: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at, at + 32)
        size = body[at:end].split(b";")[0].strip() if end >= 0 else b""
        try:
            length = int(size, 16)
        except ValueError:
            return b"".join(found) if found else body
        if length <= 0:
            return b"".join(found)
        found.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
