"""Seen sets and flights in memory: for crawls that fit and for tests; and bounded tables in front of a store on disk.

Place in the flow: the URL-seen stage asks `unseen` and `offer` with a page's links at once; the content-seen stage asks `first`
with a digest. :class:`MemoryFlights` holds the tasks between hand-out and commit, bounded by the crawl's concurrency. Nothing
here survives the process.

Links follow Zipf's law, so a small table of recent and popular strings answers most questions of a seen set (Hunyadi 2007,
section 5.3.1). It holds the strings themselves, never fingerprints. Beside each string stands the depth that it is known at, so
that a URL which is met nearer to the seeds is no hit. A hit sets the string's reference bit. Full tables differ:
:class:`SecondChance` replaces one string at a time, by a hand that clears bits and takes the first entry without one;
:class:`SaturatingTable` follows the thesis, erases every string without a bit, and clears the others. :class:`RecentlyUsed`
remembers values in two generations: that is cheaper for each use than an exact order of uses.

Fingerprints of recent pages are found again when three of their 64 bits differ, as in the ledger
(:mod:`gossamer.storage.ledger.seen`), but in as many tables as memory is given for; the oldest leave, and a look-up costs some ten
microseconds. That is for runs over an archive, and for wirings whose stages are all in other processes than the ledger.
"""

import os
from array import array
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Annotated, Generic, TypeVar

from xxhash import xxh3_128_digest

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.seen.contract import THRESHOLD, SeenSet, distance

#: The greatest depth that one byte holds: a string that is known only deeper is not held.
DEEPEST = 255


class SecondChance:
    """At most `capacity` strings; 172 bytes each where they have 55 characters."""

    __slots__ = ("_depths", "_hand", "_referenced", "_slots", "_strings")

    def __init__(self, capacity: int) -> None:
        self._slots: dict[str, int] = {}
        self._strings: list[str] = []
        self._referenced = bytearray(capacity)
        self._depths = bytearray(capacity)
        self._hand = 0

    def __len__(self) -> int:
        return len(self._strings)

    def misses(self, strings: Sequence[str], depth: int = 0) -> list[str]:
        find, referenced, depths = self._slots.get, self._referenced, self._depths
        rest = []
        for string in strings:
            slot = find(string)
            if slot is None or depths[slot] > depth:
                rest.append(string)
            else:
                referenced[slot] = 1
        return rest

    def insert(self, string: str, depth: int = 0) -> None:
        """Hold this string, in the place of another where the table is full; of two depths the lesser is kept."""
        slot = self._slots.get(string)
        if slot is not None:
            self._depths[slot] = min(self._depths[slot], depth)
            return
        if depth > DEEPEST:
            return
        strings, referenced = self._strings, self._referenced
        if len(strings) < len(referenced):
            slot = len(strings)
            strings.append(string)
        else:  # the first string without a reference leaves the table
            slot = self._hand
            while referenced[slot]:
                referenced[slot] = 0
                slot = (slot + 1) % len(strings)
            # One that was discarded may stand in another slot by now.
            if self._slots.get(strings[slot]) == slot:
                del self._slots[strings[slot]]
            self._hand = (slot + 1) % len(strings)
            strings[slot] = string
        self._slots[string] = slot
        self._depths[slot] = depth

    def discard(self, string: str) -> None:
        """Hold this string no more; its slot is the next to be vacated that has no reference."""
        slot = self._slots.pop(string, None)
        if slot is not None:
            self._referenced[slot] = 0


class SaturatingTable:
    """At most `capacity` strings."""

    __slots__ = ("_capacity", "_entries")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: dict[str, int] = {}
        """String -> twice the depth, plus the reference bit: a pair would take 56 bytes more for each."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, string: object) -> bool:
        """Whether a string is held; this is no reference."""
        return string in self._entries

    def misses(self, strings: Sequence[str], depth: int = 0) -> list[str]:
        """Those that are not in the table, or known only at a greater depth, in order; the others get their reference bit."""
        entries = self._entries
        find, bound = entries.get, 2 * depth + 1
        rest = []
        for string in strings:
            entry = find(string)
            if entry is None or entry > bound:
                rest.append(string)
            else:
                entries[string] = entry | 1
        return rest

    def insert(self, string: str, depth: int = 0) -> None:
        """Hold this string; of two depths the lesser is kept. Where all others were referenced, none of them can stay."""
        entry = self._entries.get(string)
        if entry is not None:
            self._entries[string] = min(entry, 2 * depth + (entry & 1))
            return
        while len(self._entries) >= self._capacity:
            self._entries = {kept: known - 1 for kept, known in self._entries.items() if known & 1}
        self._entries[string] = 2 * depth


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """At most `capacity` entries: the half that was used last stays, what was not used since is forgotten together."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __contains__(self, key: K) -> bool:
        return key in self._young or key in self._old

    def get(self, key: K) -> V | None:
        """The value of a key, which is now among those used last; None where it is not remembered."""
        value = self._young.get(key)
        if value is None and key in self._old:
            value = self._old[key]
            self.set(key, value)
        return value

    def set(self, key: K, value: V) -> None:
        self._old.pop(key, None)
        self._young[key] = value
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}

    def forget(self, key: K) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)


#: One more block than bits may differ: then one block at least is the same (pigeonhole).
BLOCKS = THRESHOLD + 1
BLOCK_BITS = 64 // BLOCKS
_MASK = (1 << BLOCK_BITS) - 1

#: Candidates of one block that are kept. Honest ones number `capacity / 65536`; who makes more alike loses the oldest.
MAX_CANDIDATES = 256


class MemoryFingerprintsSheet(Sheet, frozen=True):
    capacity: Annotated[
        int,
        setting(
            "Remember at most this many pages; each takes about 330 bytes.",
            unit="pages",
            restart="the table has a fixed size",
            ge=1,
            le=10_000_000,
        ),
    ] = 200_000


class MemoryFingerprints(Provider[MemoryFingerprintsSheet]):
    """Finds near-duplicates among the last pages, in memory. Contract: `FingerprintIndex`."""

    keeps_state = True

    def __init__(self, sheet: MemoryFingerprintsSheet | None = None) -> None:
        super().__init__(sheet)
        self._fingerprints = array("Q")
        self._urls: list[bytes] = []
        self._next = 0
        self._tables: tuple[dict[int, array[int]], ...] = tuple({} for _ in range(BLOCKS))
        self.metrics.gauge("pages", lambda: len(self._urls))

    def near(self, fingerprint: int, url: str) -> str:
        best, place = THRESHOLD + 1, -1
        for table, block in zip(self._tables, blocks(fingerprint), strict=True):
            for candidate in table.get(block, ()):
                apart = distance(fingerprint, self._fingerprints[candidate])
                if apart < best:
                    best, place = apart, candidate
        if place >= 0:
            return self._urls[place].decode()
        self._remember(fingerprint, url)
        return ""

    def _remember(self, fingerprint: int, url: str) -> None:
        place = self._next
        self._next = (place + 1) % self.sheet.capacity
        if place < len(self._urls):
            for table, block in zip(self._tables, blocks(self._fingerprints[place]), strict=True):
                places = table.get(block)
                if places is not None and place in places:  # otherwise it was pushed out before
                    places.remove(place)
                    if not places:
                        del table[block]
            self._fingerprints[place], self._urls[place] = fingerprint, url.encode()
        else:
            self._fingerprints.append(fingerprint)
            self._urls.append(url.encode())
        for table, block in zip(self._tables, blocks(fingerprint), strict=True):
            places = table.get(block)
            if places is None:
                places = table[block] = array("I")
            elif len(places) >= MAX_CANDIDATES:
                del places[0]
            places.append(place)


def blocks(fingerprint: int) -> tuple[int, ...]:
    """Its parts, of which one at least is the same in a fingerprint near to it."""
    return tuple(fingerprint >> shift & _MASK for shift in range(0, 64, BLOCK_BITS))


class MemoryFlights(Provider[NoSettings]):
    """Remembers which tasks are being fetched, in memory."""

    keeps_state = True

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._open: dict[str, int] = {}
        self.metrics.gauge("open", lambda: len(self._open))

    def depart(self, identity: str) -> None:
        """This task was handed out: twice at once where walks cross."""
        self._open[identity] = self._open.get(identity, 0) + 1

    def oldest(self, most: int) -> list[str]:
        return list(islice(self._open, most))

    def arrive(self, identity: str) -> bool:
        """True once for each departure."""
        count = self._open.get(identity, 0)
        if count > 1:
            self._open[identity] = count - 1
        elif count:
            del self._open[identity]
        return count > 0


class MemorySeen(Provider[NoSettings]):
    """Keeps every URL of the crawl in memory, as a 128-bit fingerprint. Contract: `SeenSet`.

    A URL takes 83 bytes at one million URLs, and 0.17 us to look up. A collision would lose a URL; among n URLs its
    probability is n²/2^129, which is 1.5e-23 for 100 million. XXH3 does not resist people who look for collisions, so
    it is keyed with a number that no server can know.
    """

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._key = int.from_bytes(os.urandom(8))
        self._seen: set[bytes] = set()
        self.metrics.gauge("urls", lambda: len(self._seen))

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        seen, key = self._seen, self._key
        return [url for url in urls if xxh3_128_digest(url.encode(), key) not in seen]

    def offer(self, urls: Sequence[str]) -> list[str]:
        seen, key = self._seen, self._key
        new = []
        for url in urls:
            fingerprint = xxh3_128_digest(url.encode(), key)
            if fingerprint not in seen:
                seen.add(fingerprint)
                new.append(url)
        return new


class RecentlySeenSheet(Sheet, frozen=True):
    capacity: Annotated[
        int,
        setting(
            "Hold at most this many URLs; a URL of 55 characters takes 171 bytes.",
            unit="URLs",
            restart="the table has a fixed size",
            ge=1,
        ),
    ] = 65_536


class RecentlySeen(Provider[RecentlySeenSheet]):
    """Answers for recent and popular URLs itself, and passes the rest on. Contract: `SeenSet`, for any `behind`
    that keeps it.

    Its table holds only URLs that `behind` was offered, so a URL that it holds back is certainly seen.
    """

    behind: Uses[SeenSet]

    def __init__(self, sheet: RecentlySeenSheet | None = None) -> None:
        super().__init__(sheet)
        self._table = SecondChance(self.sheet.capacity)
        self.metrics.gauge("urls", lambda: len(self._table))

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        rest = self._misses(urls)
        return self.behind.unseen(rest, depth) if rest else rest

    def offer(self, urls: Sequence[str]) -> list[str]:
        rest = self._misses(urls)
        if not rest:
            return rest
        # URLs at which this raises were not taken: they must not enter the table, or they would be lost.
        new = self.behind.offer(rest)
        for url in rest:
            self._table.insert(url)
        return new

    def _misses(self, urls: Sequence[str]) -> list[str]:
        rest = self._table.misses(urls)
        self.metrics.count("asked", len(urls))
        self.metrics.count("hits", len(urls) - len(rest))
        return rest


class MemoryContents(Provider[NoSettings]):
    """Remembers the first URL of every digest in memory. Contract: `ContentIndex`. A document costs 223 bytes.

    Two documents do not share a SHA-1 by accident. A site that makes two such documents on purpose loses only the links
    of its own page.
    """

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._first: dict[str, str] = {}
        self.metrics.gauge("documents", lambda: len(self._first))

    def first(self, digest: str, url: str) -> str:
        known = self._first.get(digest, "")
        if not known:
            self._first[digest] = url
        return known
