"""The content-seen test on the disk: the URL that a document's bytes were first met at, by their digest."""

from collections.abc import Iterable, Iterator, Mapping

from gossamer.stores.ledger.remembered import RecentlyUsed
from gossamer.stores.ledger.store import Batch, RocksStore

#: Digests that are remembered, claimed or looked up; about 360 bytes each. More than can be in flight at once.
REMEMBERED = 16_384

#: The first key that can be a digest: fingerprints lie before it.
_FIRST = b"\x02"

#: A URL, and whether the store has it; where not, it is who claims.
_Known = tuple[str, bool]


class SeenContents:
    """Owners of digests. A *claim* is a hint: until its page is kept, it is in memory only, and another may be kept first."""

    def __init__(self, store: RocksStore) -> None:
        self._store = store
        self._known: RecentlyUsed[str, _Known] = RecentlyUsed(REMEMBERED)

    def __repr__(self) -> str:
        return f"<SeenContents {len(self._known)} remembered>"

    def __len__(self) -> int:
        return len(self._known)

    def owner(self, digest: str) -> str:
        """The URL that is kept for a digest; empty where none is. What was claimed was asked for then: not again."""
        known = self._known.get(digest)
        if known is None:
            return self._kept(digest)
        url, is_kept = known
        return url if is_kept else ""

    def claim(self, digest: str, url: str) -> str:
        """Empty if nobody has or claims `digest` (it is now claimed for `url`), otherwise who does."""
        known = self._known.get(digest)
        if known is not None:
            return known[0]
        kept = self._kept(digest)
        self._known.set(digest, (kept or url, bool(kept)))
        return kept

    def _kept(self, digest: str) -> str:
        return (self._store.get("contents", _key(digest)) or b"").decode("utf-8", "surrogatepass")

    @staticmethod
    def put(owners: Mapping[str, str], batch: Batch) -> None:
        """Put owners into a batch."""
        for digest, url in owners.items():
            batch.put("contents", _key(digest), url.encode("utf-8", "surrogatepass"))

    def all(self) -> Iterator[tuple[str, str]]:
        """Every digest that is kept, and whose it is."""
        for key, url in self._store.scan("contents", _FIRST, b"\xff"):
            yield key.decode("utf-8", "surrogatepass"), url.decode("utf-8", "surrogatepass")

    @staticmethod
    def drop(digests: Iterable[str], batch: Batch) -> None:
        """Take owners away with a batch."""
        for digest in digests:
            batch.delete("contents", _key(digest))

    def dropped(self, digests: Iterable[str]) -> None:
        """These were taken away."""
        for digest in digests:
            self._known.forget(digest)

    def applied(self, owners: Mapping[str, str]) -> None:
        """These were written: whoever claimed the same is not the owner."""
        for digest, url in owners.items():
            self._known.set(digest, (url, True))


def _key(digest: str) -> bytes:
    return digest.encode("utf-8", "surrogatepass")
