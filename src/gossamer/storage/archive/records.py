"""WARC/1.1 records as bytes: pure construction, no file and no clock. :mod:`gossamer.storage.archive.warc` writes them.

Written by hand because a record costs less than a library's call: one join of bytes, one SHA-1 over the block, one gzip
member. Format: ISO 28500:2017 (WARC/1.1); revisit profile: section 6.7.2.

Nothing that a server sends reaches a field unjudged (fault 67): URIs are printable ASCII, addresses are made of
address characters, truncation words come from a closed list, and the header block of the server is either well-formed
or rewritten line by line. Block lengths are counted from the bytes that are written.

A response record bears the digest of its payload and none of its block. The standard leaves both to the writer
(section 5.8); a block's digest is a second hash of nearly the same bytes with another beginning, so that nothing of the
first can serve for it; and gzip's CRC-32 guards the whole record already. It would be 27 us for a page of 39 kB.
"""

import os
import struct
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from itertools import chain

import msgspec
from isal import igzip_lib, isal_zlib

from gossamer.documents.statements import NO_COPY
from gossamer.storage.archive.contract import has_copy
from gossamer.values.body import Body, StoredBody, pieces, sha1_base32
from gossamer.values.instants import utc_text
from gossamer.values.outcome import Outcome
from gossamer.values.patterns import lazy_pattern
from gossamer.values.visit import PART_DIGEST, PART_TYPES, MobileOrigin, Response, Visit

#: igzip level 2: as fast as 0 and 1 on pages within the noise, 9 % smaller than 0; level 3 takes 2.6 times as long.
COMPRESSION_LEVEL = 2

#: Bytes of a record that one stored block of deflate holds (RFC 1951, 3.2.4). A body that came in a content coding is not packed
#: again: that would save 2 % of a small page, the header fields, and cost forty times the copy; of a large one it saves less.
MOST_STORED = 65_535
_STORED = struct.Struct("<BHH")
_GZIP_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_GZIP_TAIL = struct.Struct("<LL")

#: Window of 32 KiB, with gzip's head and tail (zlib's `wbits`).
_GZIP_FORMAT = 31

REVISIT_PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED_PROFILE = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

#: The words that section 5.13 allows; anything else is `unspecified`.
TRUNCATION_WORDS = frozenset({"length", "time", "disconnect", "unspecified"})

#: Chunk framing is gone from the archived body, so a reader that trusted this field would try to take it off again.
#: The field is kept under a name that tells what it was (design question 10).
ORIGINAL_TRANSFER_ENCODING = b"X-Archive-Orig-Transfer-Encoding"

# The alternatives never overlap, so matching is linear although `re` backtracks.
_WELL_FORMED_HEAD = lazy_pattern(rb"(?:[\t\x20-\x7e\x80-\xff]+\r\n)+\r\n")
_TRANSFER_ENCODING = lazy_pattern(rb"(?im)^transfer-encoding(?=[ \t]*:)")
_LINE_END = lazy_pattern(rb"\r\n|\r|\n")
_CONTROL_BYTE = lazy_pattern(rb"[\x00-\x08\x0a-\x1f\x7f]")
_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_NOT_IN_URI = lazy_pattern(rb"[^\x21-\x7e]|[<>\"]")
_MIME_WITH_CHARSET = lazy_pattern(
    r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}(?: ?; ?charset=\"?[A-Za-z0-9_.:+-]{1,60}\"?)?"
)
_ADDRESS = lazy_pattern(r"[0-9A-Fa-f:.]{2,45}")


class RecordForm(Enum):
    """How the archive keeps an answer."""

    WHOLE = auto()
    """A response record, with the body."""
    DUPLICATE = auto()
    """A revisit record: the same bytes were archived under another URL or date (section 6.7.2)."""
    NOT_MODIFIED = auto()
    """A revisit record: the server says that nothing changed since (section 6.7.3)."""
    HEAD_ONLY = auto()
    """A response record cut behind its header block: the page asks that no copy of it be kept (row C9)."""


class Written(msgspec.Struct, frozen=True, gc=False):
    """The records of one visit, compressed; the last of them is the response (or revisit) record."""

    data: bytes
    start: int
    """Bytes before the response record."""
    rest: Iterator[bytes] | None = None
    """The gzip member of a response record whose body is on disk: made as it is taken, so that it is never in memory."""
    dom: int = 0
    """Bytes of the record before it that holds the rendered page; 0 where there is none."""


def record_id() -> str:
    """A new record identifier: a random UUID in angle brackets, at a third of the cost of `uuid.uuid4`."""
    text = os.urandom(16).hex()
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}>"


def uri_field(uri: str) -> str:
    """A URI for a header field. Canonical URLs pass unchanged; other characters than printable ASCII are percent-encoded."""
    if uri.isascii() and uri.isprintable() and " " not in uri and "<" not in uri and ">" not in uri and '"' not in uri:
        return uri
    return _NOT_IN_URI.sub(lambda m: b"%%%02X" % m[0][0], uri.encode("utf-8", "replace")).decode("ascii")


def text_field(text: str) -> str:
    """A text for a header field or a warcinfo line: control characters and line separators become one space."""
    if text.isprintable():  # so none of these is in it: a fifth of the cost of looking for each
        return text.strip()
    return _CONTROL.sub(" ", text).strip()


def http_head(head: bytes) -> bytes:
    """A header block that ends once, at its end.

    A well-formed one passes byte for byte, but for the name of `Transfer-Encoding`. In any other, bare CR and LF end a
    line as CR LF does, empty lines go, and control characters are written as `%XX` (fault 19).
    """
    if _WELL_FORMED_HEAD.fullmatch(head) is None:
        lines = [_CONTROL_BYTE.sub(lambda m: b"%%%02X" % m[0][0], line) for line in _LINE_END.split(head)]
        head = b"".join(line + b"\r\n" for line in lines if line.strip()) + b"\r\n"
        if head == b"\r\n":
            return b"HTTP/0.9 000\r\n\r\n"  # a block without a first line has no end that readers agree on
    # Nearly none has the field here, and a look at a copy in lower case costs a third of the search for it.
    return _TRANSFER_ENCODING.sub(ORIGINAL_TRANSFER_ENCODING, head) if b"transfer-enc" in head.lower() else head


def member(fields: str, block: bytes, body: bytes = b"", *, is_coded: bool = False) -> bytes:
    """One record as one gzip member: `fields` are whole lines, without version, length and the empty line at the end; `body`, the
    rest of the block, is apart so that a page is copied once; if it `is_coded`, it is packed already."""
    head = f"WARC/1.1\r\n{fields}Content-Length: {len(block) + len(body)}\r\n\r\n".encode()
    record = b"".join((head, block, body, b"\r\n\r\n"))
    if not is_coded:
        return igzip_lib.compress(record, COMPRESSION_LEVEL, igzip_lib.COMP_GZIP)
    made: list[bytes | memoryview] = [_GZIP_HEAD]
    for start in range(0, len(record), MOST_STORED):
        stored = memoryview(record)[start : start + MOST_STORED]
        is_last = start + MOST_STORED >= len(record)
        made += (_STORED.pack(is_last, len(stored), len(stored) ^ MOST_STORED), stored)
    return b"".join((*made, _GZIP_TAIL.pack(isal_zlib.crc32(record), len(record))))


def member_pieces(fields: str, block: bytes, body: Body) -> Iterator[bytes]:
    """The same record as :func:`member` makes, compressed as it is taken: no more than a piece of it is in memory."""
    packer = isal_zlib.compressobj(COMPRESSION_LEVEL, isal_zlib.DEFLATED, _GZIP_FORMAT)
    head = f"WARC/1.1\r\n{fields}Content-Length: {len(block) + len(body)}\r\n\r\n".encode()
    for piece in chain((head, block), pieces(body), (b"\r\n\r\n",)):
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def warcinfo(file_name: str, at: float, lines: Mapping[str, str]) -> bytes:
    """The record that opens each file (section 6.2): who crawled, with what. Empty values are left out."""
    told = {"format": "WARC File Format 1.1", **lines}
    block = "".join(f"{name}: {text_field(value)}\r\n" for name, value in told.items() if text_field(value)).encode()
    fields = (
        f"WARC-Type: warcinfo\r\nWARC-Record-ID: {record_id()}\r\nWARC-Date: {utc_text(at)}\r\n"
        f"WARC-Filename: {text_field(file_name)}\r\nWARC-Block-Digest: sha1:{sha1_base32(block)}\r\n"
        "Content-Type: application/warc-fields\r\n"
    )
    return member(fields, block)


def form_of(visit: Visit) -> RecordForm:
    """How an answer is to be kept. An answer that it repeats has a body in the archive: no other document owns its digest."""
    if visit.response.outcome is Outcome.NOT_MODIFIED and not visit.response.body:
        return RecordForm.NOT_MODIFIED
    if not has_copy(visit):
        return RecordForm.HEAD_ONLY
    return RecordForm.DUPLICATE if original_of(visit) else RecordForm.WHOLE


def original_of(visit: Visit) -> str:
    """The URL of the first document whose answer has the same bytes; empty where this is the first."""
    return visit.duplicate_of if visit.rendered is None or not visit.rendered.dom else visit.rendered.answer_of


def exchange(
    visit: Visit,
    at: float,
    form: RecordForm = RecordForm.WHOLE,
    *,
    original_at: float = 0.0,
    lines: Mapping[str, str] | None = None,
) -> Written:
    """The records of a visit that is answered: the request, sent `at` that time; what is known beside it (`metadata`), if there
    are `lines`; and the answer. The document that it repeats was fetched at `original_at`, or 0 where that is not known."""
    response, target, response_id = visit.response, uri_field(visit.url), record_id()
    common = f"WARC-Date: {utc_text(at)}\r\nWARC-Target-URI: {target}\r\n"
    block = "".join(f"{name}: {told}\r\n" for name, value in (lines or {}).items() if (told := text_field(value)))
    before, dom = b"", b""
    if block:  # the metadata record (section 6.6)
        before = member(
            f"WARC-Type: metadata\r\nWARC-Record-ID: {record_id()}\r\n{common}WARC-Concurrent-To: {response_id}\r\n"
            "Content-Type: application/warc-fields\r\n",
            block.encode(),
        )
    if _ADDRESS.fullmatch(response.address):
        common += f"WARC-IP-Address: {response.address}\r\n"
    if response.request_head:
        sent = visit.task.request
        before = (
            member(
                f"WARC-Type: request\r\nWARC-Record-ID: {record_id()}\r\n{common}WARC-Concurrent-To: {response_id}\r\n"
                "Content-Type: application/http;msgtype=request\r\n",
                http_head(response.request_head),
                b"" if sent is None else sent.body,
            )
            + before
        )
    if visit.rendered is not None and form is not RecordForm.HEAD_ONLY:
        if visit.rendered.picture:
            before += _made("view", target, at, response_id, "image/png", visit.rendered.picture)
        if visit.rendered.dom:
            dom = _made("dom", target, at, response_id, "text/html; charset=utf-8", visit.rendered.dom)
        before += dom
    fields = f"WARC-Record-ID: {response_id}\r\n{common}"
    if not response.response_head:
        return _resource(visit, before, fields, form, original_at)
    head = http_head(response.response_head)
    if form is RecordForm.HEAD_ONLY:
        answer = member(_response_fields("unspecified", fields), head)
    elif form is RecordForm.NOT_MODIFIED:
        answer = _revisit(NOT_MODIFIED_PROFILE, visit.url, original_at, fields, head)
    else:
        fields += f"WARC-Payload-Digest: sha1:{_digest(visit)}\r\n"
        if form is RecordForm.DUPLICATE:
            answer = _revisit(REVISIT_PROFILE, original_of(visit), original_at, fields, head)
        else:
            fields = _response_fields(response.cut, fields)
            if type(response.body) is StoredBody:
                return Written(before, len(before), member_pieces(fields, head, response.body), len(dom))
            answer = member(fields, head, response.body, is_coded=response.decoded is not None)
    return Written(before + answer, len(before), dom=len(dom))


def _made(kind: str, target: str, at: float, response_id: str, media_type: str, data: bytes) -> bytes:
    """A `resource` record (section 6.4) with something that was made of a page, under a name of its own, as other crawlers have it:
    it is no second capture of the page."""
    return member(
        f"WARC-Type: resource\r\nWARC-Record-ID: {record_id()}\r\nWARC-Date: {utc_text(at)}\r\n"
        f"WARC-Target-URI: urn:{kind}:{target}\r\nWARC-Concurrent-To: {response_id}\r\n"
        f"WARC-Block-Digest: sha1:{sha1_base32(data)}\r\nContent-Type: {media_type}\r\n",
        data,
    )


def _resource(visit: Visit, before: bytes, fields: str, form: RecordForm, original_at: float) -> Written:
    """The records of what did not come by HTTP: a `resource` record holds the document alone (section 6.4).

    A part that a mobile crawler made of a document is a `conversion` (section 6.8).
    """
    response = visit.response
    record, brought = "conversion" if visit.is_part else "resource", response.brought
    if brought is not None and brought.is_part:
        kind = f"{PART_TYPES[brought.form]}; charset=utf-8"
    else:  # a mobile crawler tells what the site said, with the character encoding
        told = response.content_type if brought is not None else response.mime
        kind = told if _MIME_WITH_CHARSET.fullmatch(told) else "application/octet-stream"
    if form is RecordForm.HEAD_ONLY:
        answer = member(f"{_cut('unspecified')}WARC-Type: {record}\r\n{fields}Content-Type: {kind}\r\n", b"")
        return Written(before + answer, len(before))
    fields += f"WARC-Payload-Digest: sha1:{_digest(visit)}\r\n"
    if form is RecordForm.DUPLICATE:
        answer = _revisit(REVISIT_PROFILE, original_of(visit), original_at, fields, b"", kind)
        return Written(before + answer, len(before))
    fields = f"WARC-Type: {record}\r\n{fields}{_cut(response.cut)}Content-Type: {kind}\r\n"
    if type(response.body) is StoredBody:
        return Written(before, len(before), member_pieces(fields, b"", response.body))
    answer = member(fields, response.body)
    return Written(before + answer, len(before))


def _digest(visit: Visit) -> str:
    """The digest is ours, but it crossed stages: a value that is not base32 must not reach a field."""
    digest = visit.digest.removeprefix(PART_DIGEST)
    return digest if digest.isalnum() and digest.isascii() else sha1_base32(visit.response.body)


def lines_beside(visit: Visit, form: RecordForm) -> dict[str, str]:
    """The fields of a visit's metadata record, by the names of section 6.6 where it has some; empty: there is no record."""
    task, lines = visit.task, {}
    if task.source:
        lines["via"] = task.source
        lines["relation"] = task.relation
    if task.request is not None and task.request.mark:
        lines["request"] = task.request.mark
    if visit.trouble:
        lines["trouble"] = visit.trouble
    if visit.response.error:
        lines["error"] = visit.response.error
    if visit.response.notes:
        lines["notes"] = " ".join(visit.response.notes)
    if form is RecordForm.HEAD_ONLY:
        lines["noarchive"] = visit.barred.get("store", NO_COPY)
    if lines:
        lines["fetchTimeMs"] = f"{visit.response.elapsed * 1000:.0f}"
    return lines


def lines_of_journey(response: Response, brought: MobileOrigin) -> dict[str, str]:
    """The crawler that brought a document, and the claims of its runtime, which no request of ours has confirmed."""
    claimed = {"status": response.status, "headers": response.headers}
    return {
        "runtime": brought.runtime,
        "crawler": brought.crawler,
        "program": f"sha256:{brought.program}",
        "sequence": str(brought.sequence),
        "claimedDigest": f"sha1:{brought.digest}",
        "claimedSize": str(brought.size),
        "claimedHead": msgspec.json.encode(claimed).decode(),
    }


def _response_fields(cut: str, fields: str) -> str:
    return f"WARC-Type: response\r\n{fields}{_cut(cut)}Content-Type: application/http;msgtype=response\r\n"


def _cut(word: str) -> str:
    return f"WARC-Truncated: {word if word in TRUNCATION_WORDS else 'unspecified'}\r\n" if word else ""


def _revisit(
    profile: str,
    original: str,
    original_at: float,
    fields: str,
    head: bytes,
    kind: str = "application/http;msgtype=response",
) -> bytes:
    """A revisit record holds the header block alone; the payload is in the record that it refers to."""
    if original_at:
        fields += f"WARC-Refers-To-Date: {utc_text(original_at)}\r\n"
    fields = (
        f"WARC-Type: revisit\r\n{fields}WARC-Profile: {profile}\r\n"
        f"WARC-Refers-To-Target-URI: {uri_field(original)}\r\nWARC-Truncated: length\r\n"
        f"WARC-Block-Digest: sha1:{sha1_base32(head)}\r\nContent-Type: {kind}\r\n"
    )
    return member(fields, head)
