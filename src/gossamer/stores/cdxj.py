"""CDXJ: the index by which replay tools find a capture (`KEY TIMESTAMP {JSON}` lines, sorted byte by byte).

Place in the flow: rows of the `pages` log are committed with their visits, and become a sorted *run* when their segment is
closed; runs are merged into `index.cdxj` when a crawl stops, and by `export`. So nothing is indexed that was not
committed, and memory holds one segment at most. Keys: :mod:`gossamer.stores.surt`.

Merging drops lines of the same capture, which is named by file and offset: what a kill made twice, or what was made again from
the archive and stood in a row log too, is there once.
"""

import heapq
import itertools
import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import msgspec

from gossamer.model.brought import PART_DIGEST, PART_TYPES, BroughtForm
from gossamer.model.outcome import Outcome
from gossamer.stores.printable import printable
from gossamer.stores.surt import surt

#: The index, inside the crawl directory (docs/kept.md).
INDEX = "index.cdxj"

#: Files that are merged at once: far below what a process may open (fault 105).
FAN_IN = 64

#: Bytes that a merge reads ahead in each of them.
_READ_AHEAD = 1 << 16


class Capture(msgspec.Struct, frozen=True, gc=False):
    """What an index line is made from: some columns of a `pages` row, by the same names."""

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
    """What was asked for beside the URL: replay tools ask for GETs."""
    warc_file: str = ""
    warc_offset: int = 0
    warc_length: int = 0


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """The JSON of a line; values are strings, as the tools of the field write them."""

    url: str
    mime: str
    status: str
    digest: str
    length: str
    offset: str
    filename: str


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
    is_revisit = capture.duplicate_of or capture.outcome is Outcome.NOT_MODIFIED
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
    )
    timestamp = "".join(letter for letter in capture.fetched_at[:19] if letter.isdigit())
    return f"{surt(capture.url)} {timestamp} ".encode() + printable(_encoder.encode(entry)) + b"\n"


def write_run(rows: Iterable[bytes], path: Path) -> int:
    """Index the lines of one closed segment of `pages` into a sorted run; returns how many captures it has.

    Args:
        rows: whole lines, as many as fit into memory at once.
        path: replaced at once when the run is whole.
    """
    decoder = msgspec.json.Decoder(Capture)
    found = (index_line(decoder.decode(row)) for row in rows if not row.isspace())
    lines = sorted(line for line in found if line is not None)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(b"".join(lines))
    fresh.replace(path)
    return len(lines)


def merge(sorted_files: Sequence[Path], target: Path, workspace: Path) -> int:
    """Merge sorted files into `target`, which is replaced at once when the whole is written; returns its lines.

    Args:
        sorted_files: of any number and size; `target` itself may be among them.
        target: the index.
        workspace: a directory for what lies between, when there are more files than are merged at once.
    """
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
    """Key and time of a line, with the blank behind each. A key may hold any bracket, and no blank.

    Raises:
        ValueError: it is no line of an index.
    """
    return line[: line.index(b" ", line.index(b" ") + 1) + 1]


def read_line(line: bytes) -> IndexedCapture:
    """A line of an index.

    Raises:
        ValueError: it is none; `msgspec.DecodeError` is one.
    """
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
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return [
            found for line in _lines_from(data, _first(data, key), key) if (found := read_line(line)).entry.url == url
        ]


def _first(data: mmap.mmap, key: bytes) -> int:
    """The offset of the first line that is not before `key`."""
    low, high = 0, len(data)
    while low < high:
        middle = data.rfind(b"\n", 0, (low + high) // 2) + 1
        middle = max(middle, low)
        end = data.find(b"\n", middle) + 1 or len(data)
        if data[middle:end] < key:
            low = end
        else:
            high = middle
    return low


def _lines_from(data: mmap.mmap, start: int, key: bytes) -> Iterator[bytes]:
    while start < len(data) and data[start : start + len(key)] == key:
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def found_in(rows: Iterable[bytes], url: str) -> list[IndexedCapture]:
    """As :func:`find`, in rows of `pages` that no index has yet."""
    decoder = msgspec.json.Decoder(Capture)
    quick = _encoder.encode(url)
    lines = (index_line(decoder.decode(row)) for row in rows if quick in row)
    return sorted(
        (found for line in lines if line is not None and (found := read_line(line)).entry.url == url),
        key=lambda found: found.timestamp,
    )
