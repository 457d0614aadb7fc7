"""Fingerprints of URLs for the sieve, the table of recent URLs in front of it (row M6), and runs: sorted fingerprints in files.

Host and URL are apart in a fingerprint, so that the URLs of a host lie together in every run.

Twelve bytes: 3 of the host, 9 of the whole URL. Two different URLs of one host share theirs with odds of 2^-72, of two hosts
2^-96 at most. A collision would lose a URL: for 10^8 URLs the odds that any is lost are 1e-6 if all are on one host, and
1e-12 if they are on a million. (With 64 bits in all, 24 of them the host's, a host of a million pages would lose one in
every second crawl.) Hosts that share their 3 bytes lie in one another's place, and nothing else.

In front of the sieve stand recent and popular URLs (:class:`Recent`), in two generations, so that many are let in at once for
little. URLs that are met again move to the young generation; when that is full, the old one is forgotten and the young one
grows old. The popular ones stay, as in a table with reference bits (:mod:`gossamer.storage.seen.memory`), at a third of its
cost where most are new.

Runs never change, and are asked for many fingerprints at a time, in the order of the file. A fingerprint is two numbers: `high`
(host 3 bytes, URL 5) sorts, `low` (URL 4 bytes) confirms. Entries that share `high` stand in any order, so a look-up goes on while
`high` stays the same; among 10^8 URLs of one host some 4,500 pairs do.
Behind the entries stands the first `high` of each block; these are kept in memory and say which blocks a look-up needs. These
blocks are read some megabytes at a time, never mapped, so that pages of files do not count as this process's memory.

The manifest says which runs stand, and how far the offers are merged: one small file, replaced as a whole. Files that it does not
name were left by a merge that did not end, and are removed.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_digest, xxh3_128_digest

from gossamer.engine.files import replace_file
from gossamer.storage.members import read_kept
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import Remembered

#: Bytes of the host's part: 3, padded in front so that they can be read as a number.
HOST_BYTES = 4

#: Beginnings of URLs whose host part is remembered at once, about 180 bytes each; then all are forgotten.
REMEMBERED = 65_536


class SieveKeys:
    """Fingerprints that were made and not yet put together, in order; 20 bytes each. Putting them together is
    arithmetic on many at a time (:func:`numbers`)."""

    __slots__ = ("digests", "hosts")

    def __init__(self) -> None:
        self.hosts = bytearray()
        self.digests = bytearray()

    def __len__(self) -> int:
        return len(self.hosts) // HOST_BYTES

    def add(self, keys: "SieveKeys") -> None:
        self.hosts += keys.hosts
        self.digests += keys.digests


class FingerprintMaker:
    """Makes them. XXH3 resists accidents, not people, so it is keyed with a secret that no server knows."""

    __slots__ = ("_hosts", "_secret")

    def __init__(self, secret: int) -> None:
        self._secret = secret
        self._hosts = Remembered(self._host, REMEMBERED)

    def of(self, urls: Iterable[str]) -> SieveKeys:
        """The fingerprints of canonical URLs, in order."""
        known, secret, keys = self._hosts, self._secret, SieveKeys()
        digests: list[bytes] = []
        hosts: list[bytes] = []
        beginning, host = "\n", b""
        for url in urls:
            # Links of a page come host by host: mostly it is that of the one before.
            if not url.startswith(beginning):
                # A beginning that ends at a slash behind `https://` holds the whole authority.
                slash = url.find("/", 8)
                beginning = url[: slash + 1] if slash > 0 else f"{url}/"
                host = known[beginning]
                if slash < 0:
                    beginning = "\n"  # it says nothing of the next one
            hosts.append(host)
            digests.append(xxh3_128_digest(url.encode(), secret))
        keys.hosts += b"".join(hosts)
        keys.digests += b"".join(digests)
        return keys

    def _host(self, beginning: str) -> bytes:
        # Without the scheme: the same host by http and https is one place.
        name = beginning.partition("//")[2] or beginning
        return b"\0" + xxh3_64_digest(name.encode(), self._secret)[: HOST_BYTES - 1]


class Recent:
    """At most `capacity` strings; 130 bytes each where they have 55 characters."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, capacity: int) -> None:
        self._half = (capacity + 1) // 2
        self._young: set[str] = set()
        self._old: set[str] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def misses(self, strings: Sequence[str]) -> list[str]:
        """Those that are not here, in order; the others are recent again."""
        young, old = self._young, self._old
        rest = [string for string in strings if string not in young]
        if not old or not rest:
            return rest
        fresh = [string for string in rest if string not in old]
        if len(fresh) < len(rest):
            met = old.intersection(rest)
            old -= met
            self.add(met)
        return fresh

    def add(self, strings: "Sequence[str] | set[str]") -> None:
        self._young.update(strings)
        if len(self._young) >= self._half:
            self._old = self._young
            self._young = set()


# -- runs

#: One entry of a file.
RECORD = np.dtype([("high", "<u8"), ("low", "<u4")])

#: Entries to a block, 6 KB: a crawl that is on some hosts reads little of a run. Part of the form of the files.
BLOCK = 512

#: Bytes of a block's beginning in the file, and in memory: 1.6 MB for 10^8 entries.
FENCE = np.dtype("<u8")

#: Blocks that are looked through at once, 3 MB.
SLICE = 512

#: So many blocks between two that are needed are read with these: that is cheaper than another read.
GAP = 1

#: Entries of a run that a merge of runs holds in memory.
CHUNK = 65_536

Highs = NDArray[np.uint64]
Lows = NDArray[np.uint32]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]
Records = NDArray[np.void]


class RunEntry(msgspec.Struct, frozen=True):
    """A run as the manifest names it."""

    file: str
    count: int


class SieveRun:
    def __init__(self, directory: Path, entry: RunEntry) -> None:
        """Open it and read the beginnings of its blocks. Raises CrawlDirectoryError: it is missing, or not as long as it must
        be."""
        self.entry = entry
        self.path = directory / entry.file
        self.count = entry.count
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._damaged(error.strerror or "it cannot be opened") from None
        size, blocks = self.count * RECORD.itemsize, -(-self.count // BLOCK)
        if os.fstat(self._descriptor).st_size != size + blocks * FENCE.itemsize:
            self.close()
            raise self._damaged("its length is not what the manifest says")
        self._fences: Highs = np.frombuffer(os.pread(self._descriptor, blocks * FENCE.itemsize, size), FENCE)

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, start: int, stop: int) -> Records:
        return np.frombuffer(self._bytes(start, stop), RECORD)

    def _bytes(self, start: int, stop: int) -> bytes:
        size = RECORD.itemsize
        data = os.pread(self._descriptor, (stop - start) * size, start * size)
        if len(data) != (stop - start) * size:
            raise self._damaged("it ends too early")
        return data

    def holds(self, high: Highs, low: Lows) -> Mask:
        """Which of these fingerprints are in the run. They are sorted by `high`; blocks without any are not read."""
        found: Mask = np.zeros(len(high), np.bool_)
        if not self.count or not len(high):
            return found
        first = np.maximum(np.searchsorted(self._fences, high, "left") - 1, 0)
        behind = np.maximum(np.searchsorted(self._fences, high, "right"), first + 1)
        # Blocks that each look-up needs and none before it: they are cut into slices of about as many.
        needed = np.cumsum(behind - np.maximum(first, np.concatenate((first[:1], behind[:-1]))))
        cuts = np.searchsorted(needed, np.arange(0, needed[-1], SLICE), "right")
        edges = np.unique(np.concatenate((cuts, [len(high)])))
        at = 0
        for end in edges[edges > 0].tolist():
            records = self._blocks(first[at:end], behind[at:end])
            found[at:end] = _held(records, high[at:end], low[at:end])
            at = end
        return found

    def _blocks(self, first: Places, behind: Places) -> Records:
        """The entries of these stretches of blocks, one behind another, and of small gaps between them."""
        breaks = np.flatnonzero(first[1:] > behind[:-1] + GAP)
        starts = [int(first[0]), *first[breaks + 1].tolist()]
        stops = [*behind[breaks].tolist(), int(behind[-1])]
        stretches = zip(starts, stops, strict=True)
        parts = [self._bytes(start * BLOCK, min(stop * BLOCK, self.count)) for start, stop in stretches]
        return np.frombuffer(b"".join(parts), RECORD)

    def _damaged(self, what: str) -> CrawlDirectoryError:
        return CrawlDirectoryError(f"the run {self.path} is damaged: {what}; go back to a checkpoint")


def _held(records: Records, high: Highs, low: Lows) -> Mask:
    highs = np.ascontiguousarray(records["high"])
    lows = records["low"]
    found: Mask = np.zeros(len(high), np.bool_)
    at = np.searchsorted(highs, high, "left")
    open_ones = np.arange(len(high))
    while len(open_ones):
        open_ones = open_ones[at[open_ones] < len(highs)]
        open_ones = open_ones[highs[at[open_ones]] == high[open_ones]]
        hits = lows[at[open_ones]] == low[open_ones]
        found[open_ones[hits]] = True
        open_ones = open_ones[~hits]
        at[open_ones] += 1
    return found


def write_run(directory: Path, file: str, parts: Iterable[tuple[Highs, Lows]], *, sync: bool) -> SieveRun:
    """Write sorted parts, one behind another, as a new run, and open it. A file of this name was never named in a
    manifest, and is replaced."""
    path, count = directory / file, 0
    fences: list[bytes] = []
    with path.open("wb") as out:
        for high, low in parts:
            records = np.empty(len(high), RECORD)
            records["high"], records["low"] = high, low
            out.write(records.tobytes())
            fences.append(high[-count % BLOCK :: BLOCK].astype(FENCE).tobytes())
            count += len(high)
        out.write(b"".join(fences))
        out.flush()
        if sync:
            os.fsync(out.fileno())
    return SieveRun(directory, RunEntry(file, count))


def in_order(runs: Iterable[SieveRun]) -> Iterator[tuple[Highs, Lows]]:
    """All entries of several runs, sorted; a bounded part of each is in memory."""
    heads = [_Head(run) for run in runs]
    while heads := [head for head in heads if head.fill()]:
        # Up to here every run is read: a later entry of any of them is not smaller.
        pivot = min(head.last for head in heads)
        taken = [head.take(pivot) for head in heads]
        high = np.concatenate([part[0] for part in taken])
        low = np.concatenate([part[1] for part in taken])
        order = np.argsort(high)
        yield high[order], low[order]


class _Head:
    """How far a merge has read a run."""

    def __init__(self, run: SieveRun) -> None:
        self._run = run
        self._next = 0
        self._high: Highs = np.empty(0, np.uint64)
        self._low: Lows = np.empty(0, np.uint32)

    @property
    def last(self) -> int:
        return int(self._high[-1])

    def fill(self) -> bool:
        if not len(self._high) and self._next < self._run.count:
            stop = min(self._next + CHUNK, self._run.count)
            records = self._run.read(self._next, stop)
            self._next = stop
            self._high = np.ascontiguousarray(records["high"])
            self._low = np.ascontiguousarray(records["low"])
        return len(self._high) > 0

    def take(self, pivot: int) -> tuple[Highs, Lows]:
        cut = int(np.searchsorted(self._high, np.uint64(pivot), "right"))
        taken = self._high[:cut], self._low[:cut]
        self._high, self._low = self._high[cut:], self._low[cut:]
        return taken


# -- merges: which waiting entries are new, which runs become one, and the files of finds that come of it

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
    sorted_high, sorted_low = high[order], low[order]
    if ((sorted_high[1:] == sorted_high[:-1]) & (sorted_low[1:] != sorted_low[:-1])).any():
        # Different fingerprints share `high`: they must be sorted by `low` too, so that equal ones meet.
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


def crowded(sizes: Sequence[int]) -> list[int]:
    """Places of runs that are to become one, since :data:`FAN` are of about one size; empty where there are none."""
    tiers: dict[int, list[int]] = {}
    for place, size in enumerate(sizes):
        tier, bound = 0, SMALLEST * FAN
        while size >= bound:
            tier, bound = tier + 1, bound * FAN
        tiers.setdefault(tier, []).append(place)
    for tier in sorted(tiers):
        if len(tiers[tier]) >= FAN:
            return tiers[tier]
    return []


class FindsFile(msgspec.Struct):
    """A file of finds, and how far it was drained."""

    file: str
    size: int
    at: int
    count: int
    """Items that were not drained."""


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


# The manifest.

FILE = "manifest.json"

#: The form of the files. A newer one is refused.
VERSION = 1


class SieveManifest(msgspec.Struct, frozen=True):
    secret: str
    """Key of the fingerprints, in hexadecimal."""
    merged: int = 0
    """The last log of offers that is merged; later ones wait."""
    runs: tuple[RunEntry, ...] = ()
    mark: int = 0
    """How far the ledger was, at least: an older one went back to a checkpoint."""
    version: int = VERSION


def read(directory: Path) -> SieveManifest | None:
    """The manifest of a sieve; None where there is no sieve yet. Raises CrawlDirectoryError: it is damaged, or of a newer
    version."""
    path, advice = directory / FILE, "go back to a checkpoint"
    found = read_kept(path, SieveManifest, advice)
    if found is None:
        if any(directory.glob("run-*")):
            raise CrawlDirectoryError(f"{path} is missing; {advice}")
        return None
    if found.version > VERSION:
        raise CrawlDirectoryError(
            f"{path} is of version {found.version}, this program knows {VERSION}; use a newer one"
        )
    return found


def write(directory: Path, manifest: SieveManifest, *, sync: bool) -> None:
    """Replace the manifest. With `sync`, it and the names of the other files survive a power cut."""
    replace_file(directory / FILE, msgspec.json.format(msgspec.json.encode(manifest)), sync=sync)
