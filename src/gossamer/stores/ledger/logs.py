"""Whether the write-ahead logs of a store follow each other: one that is missing among several shows in the numbers of the others.

Place in the flow: the ledger asks before it is opened. The library numbers everything that is written, from one log to the next
without a gap, and replays what logs there are without asking whether one is missing between them; what stood in that one would be
gone in silence. Of a log only the heads of its records are read.

A log is a row of blocks, a block a row of pieces: checksum (4 bytes), length (2), kind (1), and in the numbered kinds the log's
number (4). A batch is one piece or several; it begins with its first number (8 bytes) and how many it takes (4).
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

_BLOCK = 32_768
_HEAD = struct.Struct("<IHB")
_BATCH = struct.Struct("<QI")

#: Kinds of pieces: the whole of a batch, its first, middle and last; the same with the number of their log.
_WHOLE, _FIRST, _LAST = (1, 5), (2, 6), (4, 8)
_NUMBERED = range(5, 9)


def missing_between(folder: Path) -> str:
    """The two logs between which one is missing, in words; empty where they follow each other.

    What is not there any more when it is read was given up meanwhile by whoever writes, with all logs before it.
    """
    paths = sorted(folder.glob("*.log"), key=lambda one: (len(one.name), one.name))
    before, expected = "", 0
    for path in paths if len(paths) > 1 else ():
        try:
            numbers = _numbers(path)
        except FileNotFoundError:
            before = ""
            continue
        if numbers is None:
            continue
        first, following = numbers
        if before and first > expected:
            return f"{before} and {path.name}"
        before, expected = path.name, following
    return ""


def _numbers(path: Path) -> tuple[int, int] | None:
    """The number of a log's first batch, and the one that follows its last whole batch; None without a whole batch."""
    first = begun = following = None
    with path.open("rb") as file:
        if not path.stat().st_size:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for kind, start, length in _pieces(data):
                if (kind in _WHOLE or kind in _FIRST) and length >= _BATCH.size:
                    number, count = _BATCH.unpack_from(data, start)
                    first, begun = number if first is None else first, number + count
                if kind in _WHOLE or kind in _LAST:
                    following = begun
    return None if first is None or following is None else (first, following)


def _pieces(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Kind of each piece, where its content begins, and the bytes of it; up to the first that is not whole."""
    at, size = 0, len(data)
    while at + _HEAD.size <= size:
        left = _BLOCK - at % _BLOCK
        if left < _HEAD.size:
            at += left
            continue
        _, length, kind = _HEAD.unpack_from(data, at)
        start = at + _HEAD.size + (4 if kind in _NUMBERED else 0)
        at = at + _HEAD.size + length if kind not in _NUMBERED else start + length
        if not kind or at > size:
            return
        yield kind, start, length
