"""Response heads: read and judged while they arrive, by the stricter of two readings. Pure.

libcurl is generous with heads that contradict themselves (DESIGN 9.16). A crawler that archives what it gets, and sends
the next request on the same connection, must not guess where an answer ends: such a head ends its fetch as
`protocol_failed`, and its connection with it (FAULTS 14-20; RFC 9112, sections 2.2, 5.1 and 6.3).
"""

import re

#: Largest head, status line included (FAULTS 14); nginx and Apache send at most 8-64 KB, browsers take 256 KB.
MAX_HEAD_BYTES = 64 * 1024

#: Most header fields in one head (FAULTS 14).
MAX_FIELDS = 200

#: Most interim (1xx) answers before the real one (FAULTS 15). Real servers send one, rarely two.
MAX_INTERIM = 10

#: Digits of the longest believable Content-Length: 10^18 bytes is more than any disk, and still fits 64 bits.
MAX_LENGTH_DIGITS = 18

_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r?\n\Z")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")

#: Bytes that a field may hold (RFC 9110, section 5.5: visible, space, tab, and 8-bit), and the two that end lines.
_PLAIN = bytes(byte for byte in range(256) if byte >= 32 and byte != 127) + b"\t"

Fields = tuple[tuple[str, str], ...]


class BrokenHead(Exception):
    """The server's fault: this head cannot be believed. The text says why, and never quotes more than a word of it."""


def status_of(line: bytes) -> int:
    """The status code of a status line.

    Raises:
        BrokenHead: it is none (`ICY 200`, a version of two digits, four digits of status, no space).
    """
    match = _STATUS_LINE.match(line)
    if match is None:
        raise BrokenHead("the answer does not begin with an HTTP status line")
    return int(match[1])


def parse(lines: list[bytes]) -> tuple[bytes, Fields]:
    """A head as it is archived, and its fields.

    Args:
        lines: status line, field lines and the empty line, each as received with its line end.

    Returns:
        The head with every line ended by CR LF, and name (lower case) and value of every field in order. A folded
        value (RFC 9112, section 5.2) is one value here and stays as received in the head.

    Raises:
        BrokenHead: control characters, a line without a name, or framing that contradicts itself.
    """
    raw = b"".join(lines)
    if raw.translate(None, _PLAIN) != b"\r\n" * len(lines):
        raw = _mended(lines)
    fields: list[tuple[str, str]] = []
    for line in raw.decode("latin-1").split("\r\n")[1:-2]:
        if line[:1] in (" ", "\t"):
            if not fields:
                raise BrokenHead("the first field has no name")
            name, value = fields.pop()
            fields.append((name, f"{value} {line.strip()}"))
            continue
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.match(name):
            raise BrokenHead("a field without a proper name")
        fields.append((name.lower(), value.strip(" \t")))
    return raw, tuple(fields)


def _mended(lines: list[bytes]) -> bytes:
    """The head with lines that ended by LF alone ended by CR LF (RFC 9112, section 2.2, lets a recipient read those)."""
    mended = [line.removesuffix(b"\n").removesuffix(b"\r") for line in lines]
    if any(line.translate(None, _PLAIN) for line in mended):
        raise BrokenHead("a control character in the head")
    return b"\r\n".join(mended) + b"\r\n"


def judge_framing(fields: Fields, *, version_10: bool = False) -> int | None:
    """The length that the head promises; None where the body ends by chunks or by closing.

    Raises:
        BrokenHead: two readers could disagree on where the body ends (FAULTS 16).
    """
    lengths = {value for name, value in fields if name == "content-length"}
    codings = [value for name, value in fields if name == "transfer-encoding"]
    if codings:
        if lengths:
            raise BrokenHead("both Content-Length and Transfer-Encoding")
        if version_10:
            raise BrokenHead("Transfer-Encoding in an HTTP/1.0 answer")
        if len(codings) > 1 or codings[0].lower() != "chunked":
            raise BrokenHead("a Transfer-Encoding that was not asked for")
        return None
    if not lengths:
        return None
    if len(lengths) > 1:
        raise BrokenHead("Content-Length twice, with different values")
    length = lengths.pop()
    if not (length.isascii() and length.isdigit()):
        raise BrokenHead("a Content-Length that is not a number")
    if len(length.lstrip("0")) > MAX_LENGTH_DIGITS:
        raise BrokenHead("a Content-Length beyond belief")
    return int(length)
