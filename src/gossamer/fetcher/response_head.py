"""Response heads: read and judged before a byte of the body is taken, by the stricter of two readings. Pure.

libcurl is generous with heads that contradict themselves. A crawler that archives what it gets, and sends
the next request on the same connection, must not guess where an answer ends: such a head ends its fetch as
`protocol_failed`, and its connection with it (RFC 9112, sections 2.2, 5.1 and 6.3). An untidy head, which
leaves no doubt about that end, is read as libcurl and browsers read it, and noted: a line that is no field, as a script's
warning is none, is passed over.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from gossamer.values.outcome import Note
from gossamer.values.patterns import lazy_pattern

#: Most interim (1xx) answers before the real one.
MAX_INTERIM = 10

#: Digits of the longest believable Content-Length: 10^18 bytes is more than any disk, and still fits 64 bits.
MAX_LENGTH_DIGITS = 18

#: Servers say the same of every page, so most lines were met before and are remembered: at most so many, each at most
#: so long, 4 MB in all.
_MOST_REMEMBERED = 4096
_REMEMBERED = 256

_STATUS_LINE = lazy_pattern(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r?\n\Z")
_TIDY, _NO_INTERIM = (b"HTTP/1.1 ", b"HTTP/1.0 "), (b"2", b"3", b"4", b"5")
#: As Chromium reads one: in letters of either case, of any version, behind four bytes at most, with blanks of any number.
_UNTIDY_STATUS_LINE = lazy_pattern(
    rb"[^\r\n]{0,4}?HTTP(?:/[^ \t\r\n]*+)?[ \t]++([0-9]{3})(?![0-9])[^\r\n]*+\r?\n\Z", re.IGNORECASE
)
#: Bytes before a status line that are passed over, so many line ends among them.
_MOST_BEFORE = 4
_TOKEN = lazy_pattern(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")

#: Bytes that a field may hold (RFC 9110, section 5.5: visible, space, tab, and 8-bit).
_PLAIN = bytes(byte for byte in range(256) if byte >= 32 and byte != 127) + b"\t"

#: Bytes that end a field for some reader: no field may hold one (RFC 9110, section 5.5).
_ENDS = b"\0\r\n"

#: Bytes that no name of a field may hold.
_NO_TOKEN = bytes(byte for byte in range(256) if not _TOKEN.match(bytes((byte,))))

#: Fields by which the end of an answer is found: libcurl does not know them by an untidy name, others do.
_FRAMING = frozenset({"content-length", "transfer-encoding"})

#: The interim status behind which no other comes.
_SWITCHING = 101

Field = tuple[str, str]


class Head(msgspec.Struct, frozen=True):
    """A head that can be believed."""

    status: int
    raw: bytes
    """As it is archived: every line ended by CR LF, then the empty line."""
    fields: tuple[Field, ...]
    """Names in lower case, in order."""
    content_coding: str
    """All values of Content-Encoding, joined."""
    notes: tuple[Note, ...] = ()
    """Its untidy parts."""


class Caps(msgspec.Struct, frozen=True):
    """How large a head may be."""

    size: int = 64 * 1024
    """Bytes, status line included. libcurl alone would take 300 KB."""
    fields: int = 4000
    """Header fields. libcurl alone would take 5,000; their bytes are bounded beside."""


CAPS = Caps()


class BrokenHead(Exception):
    """The server's fault: this head cannot be believed. The text says why, and never quotes more than a word of it."""


class IncompleteHead(Exception):
    """Nothing is wrong with the lines so far, but they are not a head yet."""


def final(lines: Sequence[bytes], caps: Caps = CAPS) -> Sequence[bytes]:
    """The lines of the last head in what one request received: interim (1xx) heads before it are left out.

    Args:
        lines: every header line, as received with its line end, perhaps without the last ones; trailer fields may
            follow a final head, and are left out, too.
        caps: how large it may be.

    Raises:
        IncompleteHead: the final head has not ended yet.
        BrokenHead: more than :data:`MAX_INTERIM` interim heads, or the caps on bytes and fields.
    """
    start = interim = size = 0
    for position, line in enumerate(lines):
        size += len(line)
        if size > caps.size:
            raise BrokenHead(f"the answer has more than {caps.size} bytes of header fields")
        if position - start > caps.fields + 1:
            raise BrokenHead(f"the answer has more than {caps.fields} header fields")
        if line == b"\r\n" or line == b"\n":
            if position == start and sum(map(len, lines[:position])) < _MOST_BEFORE:
                start = position + 1  # an empty line before the status line
                continue
            if not 100 <= (status := _status_of(lines[start])[0]) < 200 or status == _SWITCHING:
                return lines[start : position + 1]
            start = position + 1
            interim += 1
            if interim > MAX_INTERIM:
                raise BrokenHead(f"the server sent more than {MAX_INTERIM} interim answers")
    raise IncompleteHead


def read(lines: Sequence[bytes], caps: Caps = CAPS) -> Head:
    """Read and judge what one request received, as :func:`final` takes it. Raises IncompleteHead: the final head has not ended
    yet; BrokenHead: the caps; line ends and NUL characters in a field; framing that two readers could take for different
    things."""
    raw = b"".join(lines)
    # One whole head and nothing else, within the caps, as nearly every answer is: no need to look at every line.
    if not (
        lines
        and lines[-1] == b"\r\n"
        and lines.index(b"\r\n") == len(lines) - 1
        and len(lines) <= caps.fields + 2
        and len(raw) <= caps.size
        and lines[0][:9] in _TIDY
        and lines[0][9:10] in _NO_INTERIM
        and b"\n" not in lines
    ):
        lines = final(lines, caps)
        raw = b"".join(lines)
    status, of_line = _status_of(lines[0])
    notes = list(of_line)
    try:
        fields = list(map(_known.__getitem__, lines[1:-1]))
    except _UntidyField:
        fields = [field for line in lines[1:-1] if (field := _read_untidy(line, notes))]
    if raw.count(b"\r\n") != len(lines):
        # Lines ended by LF alone may be read (RFC 9112, section 2.2), and are archived like the others.
        raw = b"\r\n".join(line.rstrip(b"\r\n") for line in lines) + b"\r\n"
    named = dict(fields)
    if "transfer-encoding" in named or len(named) != len(fields):
        _judge_framing(fields, notes, version_10=raw.startswith(b"HTTP/1.0"))
        named["content-encoding"] = ",".join(value for name, value in fields if name == "content-encoding")
    elif "content-length" in named:
        length = named["content-length"]
        _judge_length(length if "," not in length else _one_length([length], notes), notes)
    coding = named.get("content-encoding", "")
    return Head(status, raw, tuple(fields), coding, tuple(dict.fromkeys(notes)))


@lru_cache(maxsize=64)  # of at most 256 KiB each: longer ones were refused before
def _status_of(line: bytes) -> tuple[int, tuple[Note, ...]]:
    """The status code, and what is untidy about its line; refuses `ICY 200`, and four digits of status."""
    match = _STATUS_LINE.match(line)
    notes: tuple[Note, ...] = () if match else (Note.STATUS_LINE,)
    match = match or _UNTIDY_STATUS_LINE.match(line)
    strange = line.rstrip(b"\r\n").translate(None, _PLAIN)
    if match is None or strange.translate(None, _ENDS) != strange:
        raise BrokenHead("the answer does not begin with an HTTP status line")
    return int(match[1]), (*notes, Note.CONTROL_CHARACTER) if strange else notes


class _UntidyField(Exception):
    """A field that is read with care, or not at all."""


def _read_untidy(line: bytes, notes: list[Note]) -> Field | None:
    """A field of a head in which some line is untidy, None for a line that is no field; untidy lines go to the notes."""
    name, colon, value = line.removesuffix(b"\n").removesuffix(b"\r").partition(b":")
    bare = name.rstrip(b" \t")
    if not colon or bare != name or not _TOKEN.match(bare):
        if bare.translate(None, _NO_TOKEN).decode().lower() in _FRAMING and colon:
            raise BrokenHead("the name of a field that decides where the answer ends has other characters beside it")
        notes.append(Note.SPACED_NAME if colon and _TOKEN.match(bare) else Note.NO_FIELD)
    if strange := line.removesuffix(b"\n").removesuffix(b"\r").translate(None, _PLAIN):
        if strange.translate(None, _ENDS) != strange:
            raise BrokenHead("a header field holds a line end or a NUL character")
        notes.append(Note.CONTROL_CHARACTER)
    if not colon or not _TOKEN.match(bare):
        return None
    return bare.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")


class _Known(dict[bytes, Field]):
    """Fields by their line. A hit costs no Python call; when full, everything is forgotten, which is soon made good."""

    def __missing__(self, line: bytes) -> Field:
        name, _, value = line.partition(b":")
        value = value.removesuffix(b"\n").removesuffix(b"\r")
        if not _TOKEN.match(name) or value.translate(None, _PLAIN) or len(name) == len(line):
            raise _UntidyField
        field = name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
        if len(line) <= _REMEMBERED:
            if len(self) >= _MOST_REMEMBERED:
                self.clear()
            self[line] = field
        return field


_known = _Known()


def _judge_framing(fields: Sequence[Field], notes: list[Note], *, version_10: bool) -> None:
    lengths = [value for name, value in fields if name == "content-length"]
    codings = [
        word.strip(" \t").lower() for name, value in fields if name == "transfer-encoding" for word in value.split(",")
    ]
    if codings and lengths:
        raise BrokenHead("the answer has both Content-Length and Transfer-Encoding")
    if any(coding in _NO_CODING for coding in codings):
        notes.append(Note.NO_CODING)
        codings = [coding for coding in codings if coding not in _NO_CODING]
    if codings and version_10:
        raise BrokenHead("the answer has Transfer-Encoding, but its version is HTTP/1.0")
    if any(coding != "chunked" for coding in codings):
        raise BrokenHead("the answer has a Transfer-Encoding that was not asked for")
    if len(codings) > 1:
        notes.append(Note.CHUNKED_TWICE)
    if lengths:
        _judge_length(_one_length(lengths, notes), notes)


def _one_length(values: Sequence[str], notes: list[Note]) -> str:
    """The one value that all fields and lists of lengths agree on (RFC 9110, section 8.6)."""
    lengths = [word.strip(" \t") for value in values for word in value.split(",")]
    if len(set(lengths)) > 1:
        raise BrokenHead("Content-Length is given twice, with different values")
    if len(lengths) > 1:
        notes.append(Note.LENGTH_TWICE)
    return lengths[0]


#: Codings of a transfer that change nothing of it.
_NO_CODING = ("identity", "")


def _judge_length(length: str, notes: list[Note]) -> None:
    if not length or length.startswith("+"):
        notes.append(Note.LOOSE_LENGTH)
        length = length[1:] or "0" * (not length)
    if not (length.isascii() and length.isdigit()):
        raise BrokenHead("Content-Length is not a number")
    if len(length.lstrip("0")) > MAX_LENGTH_DIGITS:
        raise BrokenHead("Content-Length is impossibly large")
