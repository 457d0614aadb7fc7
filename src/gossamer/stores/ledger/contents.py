"""The content-seen test on the disk: the URL that a document's bytes were first met at, by their digest."""

from collections.abc import Mapping

from gossamer.stores.ledger.remembered import Remembered
from gossamer.stores.ledger.store import Batch, Store

#: Digests that are remembered, claimed or looked up; about 300 bytes each. More than can be in flight at once.
REMEMBERED = 16_384


class SeenContents:
    """Owners of digests. A *claim* is a hint: until its page is kept, it is in memory only, and another may be kept first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claims: Remembered[str, str] = Remembered(REMEMBERED)

    def __repr__(self) -> str:
        return f"<SeenContents {len(self._claims)} remembered>"

    def __len__(self) -> int:
        return len(self._claims)

    def owner(self, digest: str) -> str:
        """The URL that is kept for a digest; empty where none is."""
        return (self._store.get("contents", _key(digest)) or b"").decode("utf-8", "surrogatepass")

    def claim(self, digest: str, url: str) -> str:
        """Empty if nobody has or claims `digest` (it is now claimed for `url`), otherwise who does."""
        known = self._claims.get(digest)
        if known is None:
            known = self.owner(digest)
            self._claims.set(digest, known or url)
        return known

    @staticmethod
    def put(owners: Mapping[str, str], batch: Batch) -> None:
        """Put owners into a batch."""
        for digest, url in owners.items():
            batch.put("contents", _key(digest), url.encode("utf-8", "surrogatepass"))

    def applied(self, owners: Mapping[str, str]) -> None:
        """These were written: whoever claimed the same is not the owner."""
        for digest, url in owners.items():
            self._claims.set(digest, url)


def _key(digest: str) -> bytes:
    return digest.encode("utf-8", "surrogatepass")
