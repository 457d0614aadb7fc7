"""CDXJ: the index by which replay tools find a capture (`KEY TIMESTAMP {JSON}` lines, sorted byte by byte), and its keys.

Place in the flow: rows of the `pages` log are committed with their visits, and become a sorted *run* when their segment is
closed; runs are merged into `index.cdxj` when a crawl stops, and by `export`. So nothing is indexed that was not
committed, and memory holds one segment at most. Merging drops lines of the same capture, which is named by file and offset: it is
there once, although a kill made it twice, or it was made again from the archive and stood in a row log too.

A key is a SURT, the form of a URL by which archives sort and look up (`com,example)/path?a=1`). Replay tools find a capture
only if their key and that of the index are the same byte for byte, so this is the rule of the Internet Archive's tools, from
which pywb, cdxj-indexer and py-wacz take theirs: scheme, `www.` and default port go; host labels are reversed; path and query
are unescaped as long as that changes them, escaped once and put in lower case; dots and empty segments of the path are
resolved, its last slash goes; session numbers go; arguments are sorted. Several URLs may share a key, which is why an index
line names the URL.
"""

import heapq
import itertools
import mmap
import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from gossamer.engine.files import replace_file
from gossamer.storage.logs import printable
from gossamer.values.outcome import Outcome
from gossamer.values.patterns import lazy_pattern
from gossamer.values.url import authority_of, endpoint_of, path_of
from gossamer.values.visit import PART_DIGEST, PART_TYPES, BroughtForm

# SURT keys. Pure, and tested against those of pywb.

#: Characters beside letters and digits that are written as they are; all others become `%xx`.
_PLAIN = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"

_WWW = lazy_pattern(r"www\d*\.")

#: Session numbers in paths of ASP.NET: `/(S(24 characters))/` or `/(24 characters)/` before a page.
_PATH_SESSIONS = (
    lazy_pattern(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.DOTALL),
    lazy_pattern(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.DOTALL),
)

#: Arguments that are session numbers, each up to the next `&` or the end.
_QUERY_SESSIONS = tuple(
    lazy_pattern(rf"{pattern}(?=&|\Z)", re.IGNORECASE)
    for pattern in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)


def surt(url: str) -> str:
    """The key of a canonical URL."""
    host, port = endpoint_of(url)
    if not host:
        return url
    path, _, query = path_of(url).partition("?")
    www = _WWW.match(host)
    name = ",".join(reversed(host[www.end() if www else 0 :].split(".")))
    # A canonical URL writes no default port, so one that is written belongs to the key.
    at = f":{port}" if authority_of(url).endswith(f":{port}") else ""
    kept: list[bytes] = []
    for segment in _unescaped(path).split(b"/")[1:]:
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    path = ("/" + "/".join(quote_from_bytes(segment, safe=_PLAIN) for segment in kept if segment)).lower()
    for pattern in _PATH_SESSIONS:
        if match := pattern.fullmatch(path):
            path = match[1] + match[2]
    query = quote_from_bytes(_unescaped(query), safe=_PLAIN)
    for pattern in _QUERY_SESSIONS:
        for match in [*pattern.finditer(query)][-1:]:
            query = query[: match.start()] + query[match.end() + 1 :]
    arguments = sorted(argument.split("=", 1) for argument in query.lower().split("&"))
    return f"{name}{at}){path}" + ("?" + "&".join(map("=".join, arguments)) if query else "")


def _unescaped(text: str) -> bytes:
    """Unescaped until nothing changes: a URL is short, so the rounds are few."""
    data = text.encode("utf-8", "replace")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return data


#: Files that are merged at once: far below what a process may open (fault 105).
FAN_IN = 64

#: Bytes that a merge reads ahead in each of them.
_READ_AHEAD = 1 << 16


class Capture(msgspec.Struct, frozen=True, gc=False):
    """The columns of a `pages` row that make an index line, by the same names."""

    url: str
    fetched_at: str = ""
    outcome: Outcome = Outcome.OK
    status: int = 0
    mime: str = ""
    digest: str = ""
    duplicate_of: str = ""
    noarchive: bool = False
    brought: BroughtForm | Literal[""] = ""
    """How it came, if a mobile crawler brought it."""
    request: str = ""
    """The rest of a request that is no plain GET: replay tools ask for GETs."""
    warc_file: str = ""
    warc_offset: int = 0
    warc_length: int = 0
    dom_length: int = 0
    """Of the record before it with the rendered page."""
    answer_of: str = ""
    """Of a rendered page: the URL whose answer has the same bytes."""


class IndexEntry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The JSON of a line; values are strings, as the tools of the field write them."""

    url: str
    mime: str
    status: str
    digest: str
    length: str
    offset: str
    filename: str
    dom: str = ""
    """Length of the record before it with the rendered page; other tools pass over it."""


class IndexedCapture(msgspec.Struct, frozen=True):
    """A capture that was found in an index."""

    timestamp: str
    """`20260301120000`."""
    entry: IndexEntry


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(IndexEntry)


def index_line(capture: Capture) -> bytes | None:
    """The line of a capture, its newline included; None where the archive holds no copy that could be shown."""
    if not capture.warc_file or capture.noarchive or not (capture.request or "GET").startswith("GET"):
        return None
    part = PART_TYPES.get(capture.brought) if capture.brought else None
    first = capture.answer_of if capture.dom_length else capture.duplicate_of
    is_revisit = first or capture.outcome is Outcome.NOT_MODIFIED
    is_http = capture.url.startswith("http") and not capture.brought
    entry = IndexEntry(
        url=capture.url,
        mime="warc/revisit" if is_revisit else part or capture.mime or "unk",
        # A `resource` record has none, whatever code an FTP server said: the dash of all CDX formats, as pywb's indexer does.
        status=str(capture.status) if is_http and capture.status else "-",
        digest=f"sha1:{capture.digest.removeprefix(PART_DIGEST)}" if capture.digest else "-",
        length=str(capture.warc_length),
        offset=str(capture.warc_offset),
        filename=capture.warc_file.rpartition("/")[2],
        dom=str(capture.dom_length or ""),
    )
    timestamp = "".join(letter for letter in capture.fetched_at[:19] if letter.isdigit())
    return f"{surt(capture.url)} {timestamp} ".encode() + printable(_encoder.encode(entry)) + b"\n"


def write_run(rows: Iterable[bytes], path: Path) -> int:
    """Index the lines of one closed segment of `pages`, as many as fit into memory at once, into a sorted run, which is replaced
    when it is whole; returns how many captures it has."""
    decoder = msgspec.json.Decoder(Capture)
    found = (index_line(decoder.decode(row)) for row in rows if not row.isspace())
    lines = sorted(line for line in found if line is not None)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, b"".join(lines))
    return len(lines)


def merge(sorted_files: Sequence[Path], target: Path, workspace: Path) -> int:
    """Merge sorted files, of any number and size, into the index `target`, which may be among them and is replaced when the whole
    is written; returns its lines. Files between, when there are more than are merged at once, lie in `workspace`."""
    files, count = list(sorted_files), itertools.count()
    while len(files) > FAN_IN:
        between = workspace / f"merge-{next(count)}"
        _merge_into(files[:FAN_IN], between)
        files = [*files[FAN_IN:], between]
    fresh = target.with_name(f"{target.name}.new")
    lines = _merge_into(files, fresh)
    fresh.replace(target)
    return lines


def _merge_into(files: Sequence[Path], target: Path) -> int:
    lines = 0
    with ExitStack() as stack:
        readers = [stack.enter_context(path.open("rb", buffering=_READ_AHEAD)) for path in files]
        out = stack.enter_context(target.open("wb", buffering=_READ_AHEAD))
        before, instant = b"", b""
        places: set[tuple[str, str]] = set()
        for line in heapq.merge(*readers):
            if line == before:
                continue
            same = instant_of(line)
            if same != instant:
                instant, places, before = same, set(), line
            else:  # few lines have URL and second in common: only these are read
                if before:
                    places.add(_place(before))
                    before = b""
                if (place := _place(line)) in places:
                    continue
                places.add(place)
            out.write(line)
            lines += 1
    return lines


def _place(line: bytes) -> tuple[str, str]:
    entry = read_line(line).entry
    return entry.filename, entry.offset


def instant_of(line: bytes) -> bytes:
    """Key and time of a line, with the blank behind each. A key may hold any bracket, and no blank. Raises ValueError: it is no
    line of an index."""
    return line[: line.index(b" ", line.index(b" ") + 1) + 1]


def read_line(line: bytes) -> IndexedCapture:
    """A line of an index. Raises ValueError: it is none; `msgspec.DecodeError` is one."""
    head = instant_of(line)
    return IndexedCapture(head.split()[1].decode("ascii"), _decoder.decode(line[len(head) :]))


def find(path: Path, url: str) -> list[IndexedCapture]:
    """The captures of a canonical URL in a sorted file, the oldest first; none where the file is not there.

    Cost: a binary search, whatever the size.
    """
    try:
        if not path.stat().st_size:
            return []
    except FileNotFoundError:
        return []
    key = surt(url).encode() + b" "
    captures = []
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start, high = 0, len(data)  # the first line that is not before the key
        while start < high:
            middle = max(data.rfind(b"\n", 0, (start + high) // 2) + 1, start)
            end = data.find(b"\n", middle) + 1 or len(data)
            if data[middle:end] < key:
                start = end
            else:
                high = middle
        while start < len(data) and data[start : start + len(key)] == key:
            end = data.find(b"\n", start) + 1 or len(data)
            captures.append(read_line(data[start:end]))
            start = end
    return [capture for capture in captures if capture.entry.url == url]


def found_in(rows: Iterable[bytes], url: str) -> list[IndexedCapture]:
    """As :func:`find`, in rows of `pages` that no index has yet."""
    decoder = msgspec.json.Decoder(Capture)
    quick = _encoder.encode(url)
    lines = (index_line(decoder.decode(row)) for row in rows if quick in row)
    return sorted(
        (found for line in lines if line is not None and (found := read_line(line)).entry.url == url),
        key=lambda found: found.timestamp,
    )
