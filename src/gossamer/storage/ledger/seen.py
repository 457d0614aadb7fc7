"""Which URLs, contents and texts a crawl has seen, on the disk, with recent ones in memory in front (M6, S12).

Place in the flow: the stages ask these through :mod:`~gossamer.storage.ledger.providers`, and groups of the ledger put into
them. URLs are fingerprints in the key order of their hosts; where depths are kept, the lowest depth that each URL was met at
stands beside its fingerprint. Of a document's bytes the digest leads to the URL that they were first met at.

Fingerprints of texts are found again when three of their 64 bits differ (Manku, Jain, Das Sarma; WWW 2007). Two such fingerprints
agree in one of four blocks of 16 bits at least, so four tables by block find all candidates. The fingerprints of one block lie in
four *chunks* of a few each, which are filled one generation after the other: the last three generations and the beginning of the
fourth are remembered, and a chunk of an older generation is written over. So there are never more than 5 x 65,536 x 4 keys, nothing
is deleted, and a look-up is four short scans::

    contents  0, table, block 2, slot   generation 4, fingerprints 8 each
    contents  0, 4, block 2, slot       generation 4, keys of documents 20 each: whose the fingerprints of table 0 are
    contents  1                         the generation, and how many fingerprints it has

docs/decisions/0014-what-is-learnt.md says why it is built so, and at which cost.
"""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gossamer.storage.ledger.layout import LedgerKeys, after
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.storage.seen.contract import THRESHOLD, distance
from gossamer.storage.seen.memory import BLOCK_BITS, BLOCKS, RecentlyUsed, SecondChance, blocks
from gossamer.values.ledger_rows import DocumentRow

#: New URLs that are remembered between question and commit, about 250 bytes each; then all are forgotten.
FRESH = 16_384

#: The greatest depth that is kept: no crawl that has a depth limit goes so deep.
DEEPEST = 0xFFFF


class SeenUrls:
    """The URLs that are seen. URLs that are put become so with the batch, and known in front with `applied`."""

    def __init__(self, store: RocksStore, keys: LedgerKeys, recent: int, *, depths: bool = False) -> None:
        self.asked = 0
        self.missed = 0
        self.keeps_depths = depths
        self._store = store
        self._keys = keys
        self._recent = SecondChance(recent)
        self._fresh: dict[str, bytes] = {}
        """URLs that the store does not have, with their keys: what the stage asks, the committer offers soon after."""

    def unseen(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        return [url for url, _, _ in self.weigh(urls, depth)]

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
        for identity in identities:
            batch.delete("seen", self._keys.url(identity))

    def forget(self) -> None:
        """Ask the store again for what it did not have: it may have got it since."""
        self._fresh.clear()

    def dropped(self, identities: Iterable[str]) -> None:
        for identity in identities:
            self._recent.discard(identity)

    def applied(self, urls: Mapping[str, bytes], depths: Mapping[str, int]) -> None:
        """The batch that made them seen was written. Not before: a URL in the table is never asked for on the disk."""
        for url in urls:
            self._fresh.pop(url, None)
            self._recent.insert(url, depths.get(url, 0) if self.keeps_depths else 0)


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

    def __len__(self) -> int:
        return len(self._known)

    def owner(self, digest: str) -> str:
        """The URL that is kept for a digest; empty where none is. A claimed digest was looked up then, and is not again."""
        known = self._known.get(digest)
        if known is None:
            return self._kept(digest)
        url, is_kept = known
        return url if is_kept else ""

    def claim(self, digest: str, url: str) -> str:
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
        for digest, url in owners.items():
            batch.put("contents", _key(digest), url.encode("utf-8", "surrogatepass"))

    def all(self) -> Iterator[tuple[str, str]]:
        for key, url in self._store.scan("contents", _FIRST, b"\xff"):
            yield key.decode("utf-8", "surrogatepass"), url.decode("utf-8", "surrogatepass")

    @staticmethod
    def drop(digests: Iterable[str], batch: Batch) -> None:
        for digest in digests:
            batch.delete("contents", _key(digest))

    def dropped(self, digests: Iterable[str]) -> None:
        for digest in digests:
            self._known.forget(digest)

    def applied(self, owners: Mapping[str, str]) -> None:
        """These were written: other claims of the same digests are void."""
        for digest, url in owners.items():
            self._known.set(digest, (url, True))


def _key(digest: str) -> bytes:
    return digest.encode("utf-8", "surrogatepass")


#: Generations that are remembered, the one that is being filled among them.
SLOTS = 4

#: Fingerprints of one chunk for each that honest pages put there, and at least: who makes more alike loses the oldest of them.
CROWD, LEAST_CROWD = 4, 64

#: Fingerprints of pages that are in flight, some 300 bytes each: more than there are slots, and few enough to be looked through.
CLAIMS = 1_024

_FINGERPRINT, _KEY, _GENERATION = 8, 20, 4
_TABLE, _STATE = b"\x00", b"\x01"
_OWNERS = BLOCKS

#: How fingerprints lie in a chunk: as the machine reads them. All machines that we run on read them alike.
_ORDER = sys.byteorder

_rows = msgspec.msgpack.Decoder(DocumentRow)


class KeptFingerprints:
    """Fingerprints of pages that are kept, and claims of pages in flight. A claim is a hint, as one of a digest is."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys
        self._claims: OrderedDict[int, str] = OrderedDict()
        state = store.get("contents", _STATE)
        self._generation, self._filled = (
            (0, 0) if state is None else msgspec.msgpack.decode(state, type=tuple[int, int])
        )
        self._written = self._generation, self._filled
        self._size = 0
        """Fingerprints of a generation."""
        self._crowd = LEAST_CROWD
        self.dropped = 0
        """Fingerprints that a crowd of others pushed out."""

    def __len__(self) -> int:
        """How many are remembered, as far as generations of this size tell."""
        return min(self._generation, SLOTS - 1) * self._size + self._filled

    @property
    def forgotten(self) -> int:
        """How many have been written over, as far as generations of this size tell."""
        return max(0, self._generation - SLOTS + 1) * self._size

    def compare(self, capacity: int) -> None:
        """Remember about so many from now on: between three quarters and all of them."""
        self._size = max(1, capacity // SLOTS)
        self._crowd = max(LEAST_CROWD, CROWD * self._size >> BLOCK_BITS)

    def near(self, fingerprint: int, url: str) -> str:
        best, found = THRESHOLD + 1, ""
        for claimed, owner in self._claims.items():
            apart = distance(fingerprint, claimed)
            if apart < best:
                best, found = apart, owner
        nearest, oldest = None, self._generation - SLOTS
        for table, block in enumerate(blocks(fingerprint)):
            prefix = _prefix(table, block)
            for _, chunk in self._store.scan("contents", prefix, after(prefix)):
                if int.from_bytes(chunk[:_GENERATION]) <= oldest:
                    continue
                for candidate in memoryview(chunk)[_GENERATION:].cast("Q"):
                    apart = (candidate ^ fingerprint).bit_count()
                    if apart < best:
                        best, nearest = apart, candidate
        if nearest is not None:
            found = self._owner(nearest) or found
        if not found:
            self._claims[fingerprint] = url
            if len(self._claims) > CLAIMS:
                self._claims.popitem(last=False)
        return found

    def is_claimed(self, fingerprint: int, url: str) -> bool:
        """Whether a page in flight is the first with this fingerprint: one that is kept is to be remembered."""
        return self._claims.get(fingerprint) == url

    def _owner(self, fingerprint: int) -> str:
        """The URL of a kept fingerprint; empty where a crowd has pushed out whose it was."""
        block = blocks(fingerprint)[0]
        fingerprints, owners = (_prefix(table, block) for table in (0, _OWNERS))
        for key, chunk in self._store.scan("contents", fingerprints, after(fingerprints)):
            known = memoryview(chunk)[_GENERATION:].cast("Q").tolist()
            if fingerprint not in known:
                continue
            keys = self._store.get("contents", owners + key[len(fingerprints) :]) or b""
            start = _GENERATION + _KEY * known.index(fingerprint)
            row = self._store.get("documents", keys[start : start + _KEY])
            if row is not None:
                return _rows.decode(row).url
        return ""

    def put(self, originals: Mapping[int, str], batch: Batch) -> None:
        """Remember these, of which there are some."""
        generation, filled = self._generation, self._filled
        added: list[tuple[bytes, bytes, bytes]] = []
        for fingerprint, url in originals.items():
            if filled >= self._size:
                generation, filled = generation + 1, 0
            filled += 1
            slot, mark = bytes([generation % SLOTS]), generation.to_bytes(_GENERATION)
            parts = blocks(fingerprint)
            entry = fingerprint.to_bytes(_FINGERPRINT, _ORDER)
            added += [(_prefix(table, block) + slot, mark, entry) for table, block in enumerate(parts)]
            added.append((_prefix(_OWNERS, parts[0]) + slot, mark, self._keys.url(url)))
        keys = list(dict.fromkeys(key for key, _, _ in added))
        chunks = dict(zip(keys, self._store.get_many("contents", keys), strict=True))
        for key, mark, entry in added:
            chunk = chunks[key]
            if chunk is None or chunk[:_GENERATION] != mark:
                chunk = mark  # it begins anew with each generation, and is bounded
            elif len(chunk) >= _GENERATION + self._crowd * len(entry):
                chunk = mark + chunk[_GENERATION + len(entry) :]
                self.dropped += len(entry) == _KEY
            chunks[key] = chunk + entry
        for key, chunk in chunks.items():
            batch.put("contents", key, chunk or b"")
        batch.put("contents", _STATE, msgspec.msgpack.encode((generation, filled)))
        self._written = generation, filled

    def applied(self, originals: Mapping[int, str]) -> None:
        self._generation, self._filled = self._written
        for fingerprint in originals:
            self._claims.pop(fingerprint, None)


def _prefix(table: int, block: int) -> bytes:
    return _TABLE + bytes([table]) + block.to_bytes(2)
