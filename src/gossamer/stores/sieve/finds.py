"""What a sieve has found to be new: files in the order of the merges, each drained from its beginning.

Place in the flow: a merge writes a file of finds (:func:`write_found`), and the sieve takes items out of it. How far a file
counts is not for it to say: until the end that it was drained to is committed, its items come again after a reopening.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable
from itertools import compress, islice
from pathlib import Path

import msgspec

from gossamer.stores.sieve.merging import Sifted

#: File of the sieve -> the byte at which what counts of it ends; None: all of it counts.
Ends = Callable[[str], int | None]


class FindsFile(msgspec.Struct):
    """A file of finds, and how far it was drained."""

    file: str
    size: int
    at: int
    count: int
    """Items that were not drained."""


class Finds:
    """The files of finds of a sieve."""

    def __init__(self, directory: Path, ends: Ends) -> None:
        self._directory = directory
        self._ends = ends
        self._found: deque[FindsFile] = deque()
        self._drained: list[FindsFile] = []

    def __repr__(self) -> str:
        return f"<Finds in {self._directory}: {len(self)} items>"

    def __len__(self) -> int:
        return sum(found.count for found in self._found)

    def open(self, path: Path) -> None:
        """Go on with a file of an earlier session, where what counts of it ends."""
        with path.open("rb") as file:
            at = file.seek(self._ends(path.name) or 0)
            found = FindsFile(path.name, path.stat().st_size, at, sum(1 for _ in file))
        (self._found if found.count else self._drained).append(found)

    def add(self, found: FindsFile) -> None:
        """A merge has written this file."""
        self._found.append(found)

    def take(self, most: int) -> tuple[list[bytes], str, int]:
        """Up to `most` lines of one file; the file, and its byte behind them. No line, where nothing is left."""
        while self._found:
            found = self._found[0]
            with (self._directory / found.file).open("rb") as file:
                file.seek(found.at)
                lines = list(islice(file, most))
            found.at += sum(map(len, lines))
            found.count -= len(lines)
            if found.count <= 0:
                self._drained.append(self._found.popleft())
            if lines:
                return lines, found.file, found.at
        return [], "", 0

    def counting(self) -> list[FindsFile]:
        """Files that were drained to the end, and count as such; they are taken off the list."""
        counting = []
        for found in self._drained:
            end = self._ends(found.file)
            if end is None or end >= found.size:
                counting.append(found)
        self._drained = [found for found in self._drained if found not in counting]
        return counting


def write_found(
    directory: Path, number: int, pieces: Iterable[list[bytes]], sifted: Sifted, *, sync: bool
) -> FindsFile:
    """Write what is new of the lines of a log; no file where that is nothing. In the thread of a merge."""
    new, name = sifted.new, f"found-{number:08}.jsonl"
    path, at, size = directory / name, 0, 0
    with path.open("wb", buffering=0) as out:
        for lines in pieces:
            chosen = b"\n".join(compress(lines, new[at : at + len(lines)].tolist()))
            at += len(lines)
            if chosen:
                size += out.write(chosen + b"\n")
        if sync:
            os.fsync(out.fileno())
    if not size:
        path.unlink()
    return FindsFile(name, size, 0, len(sifted.high))
