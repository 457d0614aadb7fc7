"""The trie as the seen set of a crawl: exact, on the disk, by prefixes, and kept with the ledger's groups.

Against the ledger's own (docs/benchmarks.md): hosts and domains can be counted, listed and forgotten, and URLs are told apart by
themselves, not by hashes. Filling and asking take several times as long.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated

from gossamer.flow.sheet import setting
from gossamer.stores.logged_seen import LoggedSeen, LoggedSeenSheet
from gossamer.stores.trie.keys import UrlKeys, prefixes_of, url_of
from gossamer.stores.trie.tree import DiskTrie


class TrieSeenSheet(LoggedSeenSheet, frozen=True):
    """Settings of :class:`TrieSeen`."""

    cache: Annotated[
        int,
        setting(
            "Keep at most this many unchanged chunks in memory; each has up to 400 nodes and takes about 100 KB.",
            unit="chunks",
            restart="it is part of the set that is open",
            ge=0,
        ),
    ] = 1_000


class TrieSeen(LoggedSeen[TrieSeenSheet]):
    """Keeps every URL of the crawl in a trie on the disk. Contract: `seen.SeenSet`."""

    kind = "trie"

    def __init__(self, sheet: TrieSeenSheet | None = None) -> None:
        super().__init__(sheet)
        self._keys = UrlKeys()

    def __len__(self) -> int:
        return len(self.trie) + len(self._staged)

    def opened(self) -> int:
        """Open the chunks."""
        self.trie = DiskTrie(self.home, self.sheet.cache, sync=self.sheet.sync)
        self.metrics.gauge("urls", lambda: len(self))
        self.metrics.gauge("chunks", lambda: self.trie.in_memory)
        self.metrics.gauge("loads", lambda: self.trie.loads)
        return self.trie.files.manifest.log

    def abandon(self) -> None:
        """Close the files and write nothing more."""
        self.trie.close()
        super().abandon()

    def has(self, url: str) -> bool:
        """Whether the trie holds a URL."""
        return self.trie.holds(self._keys.of(url))

    def add(self, urls: Iterable[str]) -> None:
        """Hold these."""
        for url in urls:
            self.trie.put(self._keys.of(url))

    def write(self, log: int) -> None:
        """Write the chunks that have changed."""
        self.trie.checkpoint(log)

    def drop(self, host: str) -> int:
        """Forget a host or domain."""
        return sum(map(self.trie.forget, prefixes_of(host)))

    # -- what a set of fingerprints cannot say

    def under(self, host: str) -> Iterator[str]:
        """Every URL of a host or domain and what lies below it: `example.org` has those of `www.example.org`."""
        self._settle()
        for prefix in prefixes_of(host):
            yield from map(url_of, self.trie.under(prefix))

    def count(self, host: str) -> int:
        """How many."""
        return sum(1 for _ in self.under(host))
