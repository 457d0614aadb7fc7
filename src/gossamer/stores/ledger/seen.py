"""The URL-seen test on the disk: fingerprints in key order of their hosts, popular URLs in memory in front (M6)."""

from collections.abc import Iterable, Sequence

from gossamer.stores.ledger.keys import Keys
from gossamer.stores.ledger.store import Batch, Store
from gossamer.stores.second_chance import SecondChance

#: New URLs that are remembered between question and commit, about 250 bytes each; then all are forgotten.
FRESH = 16_384


class SeenUrls:
    """Which URLs are seen. What is put becomes so with the batch, and known in front with `applied`."""

    def __init__(self, store: Store, keys: Keys, recent: int) -> None:
        self.asked = 0
        self.missed = 0
        self._store = store
        self._keys = keys
        self._recent = SecondChance(recent)
        self._fresh: dict[str, bytes] = {}
        """URLs that the store does not have, with their keys: what the stage asks, the committer offers soon after."""

    def __repr__(self) -> str:
        return f"<SeenUrls {self._recent!r} in front>"

    def unseen(self, urls: Sequence[str]) -> list[tuple[str, bytes]]:
        """Those of `urls` that are new, in order, with their keys."""
        rest = self._recent.misses(urls)
        self.asked += len(urls)
        self.missed += len(rest)
        fresh = self._fresh
        asked = [url for url in rest if url not in fresh]
        if asked:
            if len(fresh) > FRESH:
                fresh.clear()
                asked = rest
            keys = list(map(self._keys.url, asked))
            for url, key, value in zip(asked, keys, self._store.get_many("seen", keys), strict=True):
                if value is None:
                    fresh[url] = key
                else:
                    self._recent.insert(url)
        return [(url, fresh[url]) for url in rest if url in fresh]

    @staticmethod
    def put(keys: Iterable[bytes], batch: Batch) -> None:
        """Make these seen, with the batch."""
        for key in keys:
            batch.put("seen", key, b"")

    def applied(self, urls: Iterable[str]) -> None:
        """The batch that made them seen was written. Not before: what is in the table is never asked for on the disk."""
        for url in urls:
            self._fresh.pop(url, None)
            self._recent.insert(url)
