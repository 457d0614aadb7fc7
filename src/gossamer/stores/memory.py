"""Seen sets in memory: for crawls that fit, for tests, and as the cache in front of a store on disk.

Place in the flow: the URL-seen stage asks `unseen` and `offer` with a page's links at once; the content-seen stage asks
`first` with a digest. Nothing here survives the process.
"""

import os
from collections.abc import Sequence
from typing import Annotated

from xxhash import xxh3_128_digest

from gossamer.contracts.seen import SeenSet
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import NoSettings, Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.stores.second_chance import SecondChance


class MemorySeen(Provider[NoSettings]):
    """Keeps every URL of the crawl in memory, as a 128-bit fingerprint. Contract: `seen.SeenSet`.

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
        """Those of `urls` that are new, in order; depths are not kept. Changes nothing."""
        seen, key = self._seen, self._key
        return [url for url in urls if xxh3_128_digest(url.encode(), key) not in seen]

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put: those of `urls` that are new, in order, each once."""
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
    """Answers for recent and popular URLs itself, and passes the rest on. Contract: `seen.SeenSet`, for any `behind`
    that keeps it.

    Its table holds only URLs that `behind` was offered, so a URL that it holds back is certainly seen.
    """

    behind: Uses[SeenSet]

    def __init__(self, sheet: RecentlySeenSheet | None = None) -> None:
        super().__init__(sheet)
        self._table = SecondChance(self.sheet.capacity)
        self.metrics.gauge("urls", lambda: len(self._table))

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        """Those of `urls` that may be new, in order; depths are not kept. Changes nothing but reference bits."""
        rest = self._misses(urls)
        return self.behind.unseen(rest, depth) if rest else rest

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Check and put: those of `urls` that are new, in order, each once."""
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
    """Remembers the first URL of every digest in memory. Contract: `seen.ContentIndex`. A document costs 223 bytes.

    Two documents do not share a SHA-1 by accident. A site that makes two such documents on purpose loses only the links
    of its own page.
    """

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._first: dict[str, str] = {}
        self.metrics.gauge("documents", lambda: len(self._first))

    def first(self, digest: str, url: str) -> str:
        """Empty if `digest` is new (it now belongs to `url`), otherwise the URL that it belongs to."""
        known = self._first.get(digest, "")
        if not known:
            self._first[digest] = url
        return known
