"""The trie as the seen set of a crawl, and as a queue by itself (Ridgway 2010, section 4.6)."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from gossamer.engine.sheet import setting
from gossamer.labs.trie.chunks import UrlKeys, prefixes_of, url_of
from gossamer.labs.trie.nodes import Mark, Node
from gossamer.labs.trie.tree import DiskTrie
from gossamer.storage.seen.logged import LoggedSeen, LoggedSeenSheet

# The trie as the seen set of a crawl: exact, on the disk, by prefixes, and kept with the ledger's groups.
#
# Against the ledger's own (docs/benchmarks.md): hosts and domains can be counted, listed and forgotten, and URLs are told
# apart by themselves, not by hashes. Filling and asking take several times as long.


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
        return sum(1 for _ in self.under(host))


# The trie as a queue (Ridgway 2010, section 4.6, "XTrie"): URLs that wait are taken by turns at every branch.
#
# Every node knows how many URLs wait at or below it, and whose turn was last among its children. A walk from the root takes
# the next child with something to do, so that domains take turns, then their hosts, then the parts of a host's paths. In
# the seed clearing a mark asked all peers up to the root, "hundreds of nodes", and the queue was given up for that; a
# number in the place of the inherited mark takes as many steps as the key has branches.


class TrieTurns:
    """What waits in a trie.

    Args:
        trie: its marks are changed.
    """

    def __init__(self, trie: DiskTrie) -> None:
        self._trie = trie
        self._keys = UrlKeys()
        self.taken: dict[str, None] = dict.fromkeys(trie.files.manifest.taken)
        """Keys of what was handed out and not finished."""
        for key in list(self.taken):
            self.put_back(url_of(key))

    def __len__(self) -> int:
        return self._trie.root.to_do

    def push(self, url: str) -> bool:
        """Queue a URL; False, and nothing, where the trie has it already, waiting or not."""
        return self._trie.put(self._keys.of(url), Mark.TO_DO)

    def take(self) -> str | None:
        """The URL whose turn it is, which does not wait any more; None where none waits."""
        trie = self._trie
        node, path, key = trie.root, [trie.root], ""
        while node.mark != Mark.TO_DO:
            if not node.to_do:
                return None
            node = _next_turn(node, trie.kids_of(node))
            path.append(node)
            key += node.text
        node.mark = Mark.URL
        trie.add_to_do(path, -1)
        trie.trim()
        self.taken[key] = None
        return url_of(key)

    def done(self, url: str) -> bool:
        """A taken URL is finished: it never waits again. False for one that neither was taken nor waits."""
        key = self._keys.of(url)
        if key in self.taken:
            del self.taken[key]
            return True
        return self._mark(key, Mark.TO_DO, Mark.URL)

    def put_back(self, url: str) -> bool:
        """A taken URL waits again; False for one that was not taken."""
        key = self._keys.of(url)
        if key not in self.taken:
            return False
        del self.taken[key]
        return self._mark(key, Mark.URL, Mark.TO_DO)

    def _mark(self, key: str, before: Mark, after: Mark) -> bool:
        path = self._trie.path_to(key)
        is_so = path is not None and path[-1].mark == before
        if path is not None and is_so:
            path[-1].mark = after
            self._trie.add_to_do(path, 1 if after == Mark.TO_DO else -1)
        self._trie.trim()
        return is_so


def _next_turn(node: Node, kids: dict[str, Node]) -> Node:
    """The child whose turn it is, among those with something to do."""
    waiting = sorted(first for first, kid in kids.items() if kid.to_do)
    first = next((first for first in waiting if first > node.turn), waiting[0])
    node.turn = first
    return kids[first]
