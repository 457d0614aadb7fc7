"""Seen sets and flights in memory: for crawls that fit, for tests, and as the cache in front of a store on disk.

Place in the flow: the URL-seen stage asks `unseen` and `offer` with a page's links at once; the content-seen stage asks `first`
with a digest. :class:`MemoryFlights` holds the tasks between hand-out and commit, bounded by the crawl's concurrency. Nothing
here survives the process.

Fingerprints of recent pages are found again when three of their 64 bits differ, as in the ledger
(:mod:`gossamer.storage.ledger.seen`), but in as many tables as memory is given for; the oldest leave, and a look-up costs some ten
microseconds. That is for runs over an archive, and for wirings whose stages are all in other processes than the ledger.
"""

import os
from array import array
from collections.abc import Sequence
from itertools import islice
from typing import Annotated

from xxhash import xxh3_128_digest

from gossamer.documents.terms import THRESHOLD, distance
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.seen.caches import SecondChance
from gossamer.storage.seen.contract import SeenSet

#: One more block than bits may differ: then one block at least is the same (pigeonhole).
_BLOCKS = THRESHOLD + 1
_BITS = 64 // _BLOCKS
_MASK = (1 << _BITS) - 1

#: Candidates of one block that are kept. Honest ones number `capacity / 65536`; who makes more alike loses the oldest.
MAX_CANDIDATES = 256


class MemoryFingerprintsSheet(Sheet, frozen=True):
    """Settings of :class:`MemoryFingerprints`."""

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
        self._tables: tuple[dict[int, array[int]], ...] = tuple({} for _ in range(_BLOCKS))
        self.metrics.gauge("pages", lambda: len(self._urls))

    def near(self, fingerprint: int, url: str) -> str:
        best, place = THRESHOLD + 1, -1
        for table, block in zip(self._tables, _blocks(fingerprint), strict=True):
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
            self._forget(place)
            self._fingerprints[place], self._urls[place] = fingerprint, url.encode()
        else:
            self._fingerprints.append(fingerprint)
            self._urls.append(url.encode())
        for table, block in zip(self._tables, _blocks(fingerprint), strict=True):
            places = table.get(block)
            if places is None:
                places = table[block] = array("I")
            elif len(places) >= MAX_CANDIDATES:
                del places[0]
            places.append(place)

    def _forget(self, place: int) -> None:
        for table, block in zip(self._tables, _blocks(self._fingerprints[place]), strict=True):
            places = table.get(block)
            if places is None or place not in places:
                continue  # pushed out before
            places.remove(place)
            if not places:
                del table[block]


def _blocks(fingerprint: int) -> tuple[int, ...]:
    return tuple(fingerprint >> shift & _MASK for shift in range(0, 64, _BITS))


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
        """The identities that have been under way for longest, the oldest first."""
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
    """Settings of :class:`RecentlySeen`."""

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
        # What raises here was not taken: it must not enter the table, or it would be lost.
        new = self.behind.offer(rest)
        for url in rest:
            self._table.insert(url)
        return new

    def _misses(self, urls: Sequence[str]) -> list[str]:
        """Those of `urls` that are not in the table."""
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
