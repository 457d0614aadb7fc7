"""Merges of a sieve: which waiting entries are new, which runs become one, and the files of finds that come of it.

Place in the flow: a merge sifts a buffer (:func:`sift`) and writes a file of finds (:func:`write_found`); the sieve takes items
out of these files, in the order of the merges, each from its beginning. The files do not say how far they count: until the end
that one was drained to is committed, its items come again after a reopening.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import compress, islice
from pathlib import Path

import msgspec
import numpy as np

from gossamer.storage.seen.runs import Highs, Lows, Mask, SieveKeys, SieveRun

#: Runs of about one size that become one. Each entry is rewritten once for each factor of so much: twice at 10^8.
FAN = 8

#: Entries of a run of the lowest size; smaller ones count as such.
SMALLEST = 4_096


class Sifted(msgspec.Struct):
    """The result of sifting a buffer."""

    high: Highs
    low: Lows
    """The new fingerprints, sorted: the next run."""
    new: Mask
    """For each entry of the buffer, in the order of the offers: it is the first of its URL, and new."""


def numbers(keys: SieveKeys) -> tuple[Highs, Lows]:
    """The fingerprints put together: host 3 and URL 5 bytes that sort, 4 bytes of the URL that confirm."""
    hosts = np.frombuffer(keys.hosts, ">u4").astype(np.uint64)
    digests = np.frombuffer(keys.digests, ">u8").reshape(-1, 2)
    high: Highs = hosts << np.uint64(40) | digests[:, 0].astype(np.uint64) >> np.uint64(24)
    low: Lows = (digests[:, 1] >> np.uint64(32)).astype(np.uint32)
    return high, low


def sift(keys: SieveKeys, runs: Iterable[SieveRun]) -> Sifted:
    """Which of these fingerprints, in the order of the offers, no run holds; each once."""
    high, low = numbers(keys)
    order = np.argsort(high)
    if _have_neighbours_apart(high[order], low[order]):
        order = np.lexsort((low, high))
    sorted_high, sorted_low = high[order], low[order]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (sorted_high[1:] != sorted_high[:-1]) | (sorted_low[1:] != sorted_low[:-1])
    # The sort is not stable: the first offer of a URL is the least of its places.
    places = np.minimum.reduceat(order, np.flatnonzero(starts)) if len(order) else order
    sorted_high, sorted_low = sorted_high[starts], sorted_low[starts]
    for run in runs:
        fresh = ~run.holds(sorted_high, sorted_low)
        sorted_high, sorted_low, places = sorted_high[fresh], sorted_low[fresh], places[fresh]
    new: Mask = np.zeros(len(high), np.bool_)
    new[places] = True
    return Sifted(sorted_high, sorted_low, new)


def _have_neighbours_apart(high: Highs, low: Lows) -> bool:
    """Different fingerprints share `high`: they must be sorted by `low` too, so that equal ones meet."""
    return bool(((high[1:] == high[:-1]) & (low[1:] != low[:-1])).any())


def crowded(sizes: Sequence[int]) -> list[int]:
    """Places of runs that are to become one, since :data:`FAN` are of about one size; empty where there are none."""
    tiers: dict[int, list[int]] = {}
    for place, size in enumerate(sizes):
        tiers.setdefault(_tier(size), []).append(place)
    for tier in sorted(tiers):
        if len(tiers[tier]) >= FAN:
            return tiers[tier]
    return []


def _tier(size: int) -> int:
    tier, bound = 0, SMALLEST * FAN
    while size >= bound:
        tier, bound = tier + 1, bound * FAN
    return tier


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

    def __len__(self) -> int:
        return sum(found.count for found in self._found)

    def open(self, path: Path) -> None:
        """Go on with a file of an earlier session, where what counts of it ends."""
        with path.open("rb") as file:
            at = file.seek(self._ends(path.name) or 0)
            found = FindsFile(path.name, path.stat().st_size, at, sum(1 for _ in file))
        (self._found if found.count else self._drained).append(found)

    def add(self, found: FindsFile) -> None:
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
