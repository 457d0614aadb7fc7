"""The URL-seen test on the disk: fingerprints in key order of their hosts, popular URLs in memory in front (M6).

Where depths are kept, the lowest depth that each URL was met at stands beside its fingerprint (design question 4).
"""

from collections.abc import Iterable, Mapping, Sequence

from gossamer.stores.ledger.keys import LedgerKeys
from gossamer.stores.ledger.store import Batch, RocksStore
from gossamer.stores.second_chance import SecondChance

#: New URLs that are remembered between question and commit, about 250 bytes each; then all are forgotten.
FRESH = 16_384

#: The greatest depth that is kept: no crawl that has a depth limit goes so deep.
DEEPEST = 0xFFFF


class SeenUrls:
    """Which URLs are seen. What is put becomes so with the batch, and known in front with `applied`."""

    def __init__(self, store: RocksStore, keys: LedgerKeys, recent: int, *, depths: bool = False) -> None:
        self.asked = 0
        self.missed = 0
        self.keeps_depths = depths
        self._store = store
        self._keys = keys
        self._recent = SecondChance(recent)
        self._fresh: dict[str, bytes] = {}
        """URLs that the store does not have, with their keys: what the stage asks, the committer offers soon after."""

    def __repr__(self) -> str:
        return f"<SeenUrls {self._recent!r} in front>"

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[tuple[str, bytes]]:
        """Those of `urls` that are new or known at a greater depth, in order, with their keys."""
        return [(url, key) for url, key, _ in self.weigh(urls, depth)]

    def weigh(self, urls: Sequence[str], depth: int = 0) -> list[tuple[str, bytes, int | None]]:
        """Those of `urls` that are new or known at a greater depth, in order, with their keys and known depths.

        Without depths, nothing that is known comes out.
        """
        rest = self._recent.misses(urls, depth)
        self.asked += len(urls)
        self.missed += len(rest)
        fresh, nearer = self._fresh, {}
        asked = [url for url in rest if url not in fresh]
        if asked:
            if len(fresh) > FRESH:
                fresh.clear()
                asked = rest
            keys = list(map(self._keys.url, asked))
            for url, key, value in zip(asked, keys, self._store.get_many("seen", keys), strict=True):
                if value is None:
                    fresh[url] = key
                    continue
                known = int.from_bytes(value) if self.keeps_depths else 0
                self._recent.insert(url, known)
                if known > depth:
                    nearer[url] = key, known
        found: list[tuple[str, bytes, int | None]] = []
        for url in rest:
            if url in fresh:
                found.append((url, fresh[url], None))
            elif url in nearer:
                found.append((url, *nearer[url]))
        return found

    def depths(self, urls: Sequence[str]) -> list[int | None]:
        """The lowest depth that each was met at; None where it was never met, or depths are not kept."""
        if not self.keeps_depths:
            return [None] * len(urls)
        rows = self._store.get_many("seen", list(map(self._keys.url, urls)))
        return [None if value is None else int.from_bytes(value) for value in rows]

    def put(self, urls: Mapping[str, bytes], depths: Mapping[str, int], batch: Batch) -> None:
        """Make these seen, by their keys, at these depths (0 where none is given), with the batch."""
        if not self.keeps_depths:
            for key in urls.values():
                batch.put("seen", key, b"")
            return
        for url, key in urls.items():
            batch.put("seen", key, min(depths.get(url, 0), DEEPEST).to_bytes(2))

    def drop(self, identities: Iterable[str], batch: Batch) -> None:
        """Make these unseen with the batch, as if they had never been met."""
        for identity in identities:
            batch.delete("seen", self._keys.url(identity))

    def dropped(self, identities: Iterable[str]) -> None:
        """The batch that made them unseen was written."""
        for identity in identities:
            self._recent.discard(identity)

    def applied(self, urls: Mapping[str, bytes], depths: Mapping[str, int]) -> None:
        """The batch that made them seen was written. Not before: what is in the table is never asked for on the disk."""
        for url in urls:
            self._fresh.pop(url, None)
            self._recent.insert(url, depths.get(url, 0) if self.keeps_depths else 0)
