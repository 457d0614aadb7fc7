"""Fingerprints in the ledger: bounded, found again by who goes on, whatever comes."""

import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gossamer.storage.ledger.layout import LedgerKeys
from gossamer.storage.ledger.reader import LedgerSheet
from gossamer.storage.ledger.seen import LEAST_CROWD, SLOTS, KeptFingerprints
from gossamer.storage.ledger.store import RocksStore
from gossamer.storage.seen.contract import THRESHOLD
from gossamer.testing.storage import check_fingerprint_index
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.outcome import Outcome

KEYS = LedgerKeys(1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksStore]:
    made = RocksStore(tmp_path / "ledger", LedgerSheet(cache=1 << 20, buffers=1 << 20, log=1 << 20), create=True)
    yield made
    made.close()


def opened(store: RocksStore, capacity: int = 1_000) -> KeptFingerprints:
    index = KeptFingerprints(store, KEYS)
    index.compare(capacity)
    return index


def keep(store: RocksStore, index: KeptFingerprints, pages: dict[int, str], *, are_claimed: bool = False) -> None:
    """Commit pages with these fingerprints, as a group does."""
    batch = store.batch()
    for fingerprint, url in pages.items():
        assert are_claimed or index.near(fingerprint, url) == ""
        row = DocumentRow(url, Outcome.OK, 200, 0.0, 0, 1, "a href", "", 0)
        batch.put("documents", KEYS.url(url), msgspec.msgpack.encode(row))
    index.put(pages, batch)
    store.write(batch)
    index.applied(pages)


class Committing:
    """An index whose pages are kept some time after they were compared."""

    def __init__(self, store: RocksStore, every: int) -> None:
        self.store = store
        self.every = every
        self.index = opened(store)
        self.claimed: dict[int, str] = {}

    def near(self, fingerprint: int, url: str) -> str:
        found = self.index.near(fingerprint, url)
        if not found:
            self.claimed[fingerprint] = url
        if len(self.claimed) >= self.every:
            keep(self.store, self.index, self.claimed, are_claimed=True)
            self.claimed = {}
            self.index = opened(self.store)
        return found


@pytest.mark.parametrize("every", [1, 7, 1_000])
def test_it_keeps_the_promises_of_the_contract(store: RocksStore, every: int) -> None:
    check_fingerprint_index(Committing(store, every), seed=every)


def near_to(fingerprint: int, choose: random.Random) -> int:
    for bit in choose.sample(range(64), THRESHOLD):
        fingerprint ^= 1 << bit
    return fingerprint


def test_what_was_kept_is_found_by_who_goes_on_and_what_was_claimed_is_not(store: RocksStore) -> None:
    choose = random.Random(1)
    given = {choose.getrandbits(64): f"http://a.test/{number}" for number in range(500)}
    first = opened(store)
    keep(store, first, given)
    lost = choose.getrandbits(64)
    assert first.near(lost, "http://a.test/lost") == ""
    assert first.near(near_to(lost, choose), "http://a.test/x") == "http://a.test/lost"
    second = opened(store)
    assert len(second) == 500
    for fingerprint, url in given.items():
        assert second.near(near_to(fingerprint, choose), "http://a.test/y") == url
    assert second.near(lost, "http://a.test/lost") == "", "a page that was never kept is a new one"


def test_the_oldest_are_forgotten_and_the_keys_are_bounded(store: RocksStore) -> None:
    choose = random.Random(2)
    index = opened(store, capacity=80)
    given = [choose.getrandbits(64) for _ in range(1_000)]
    for start in range(0, len(given), 25):
        keep(store, index, {given[n]: f"http://a.test/{n}" for n in range(start, start + 25)})
    assert 60 <= len(index) <= 80
    assert index.forgotten + len(index) == len(given)
    again = opened(store, capacity=80)
    found = [again.near(fingerprint, "http://b.test/") for fingerprint in given]
    assert found[:-80] == [""] * (len(given) - 80)
    assert found[-60:] == [f"http://a.test/{number}" for number in range(940, 1_000)]


def test_pages_that_are_made_to_look_alike_cost_a_bounded_look(store: RocksStore) -> None:
    choose = random.Random(3)
    index = opened(store)
    alike = [choose.getrandbits(48) << 16 | 0xABCD for _ in range(SLOTS * LEAST_CROWD)]
    for number, fingerprint in enumerate(alike):
        keep(store, index, {fingerprint: f"http://a.test/{number}"})
    sizes = [len(value) for key, value in store.scan("contents", b"\x00", b"\x01")]
    assert max(sizes) <= 4 + 20 * LEAST_CROWD
    assert index.dropped > 0
    assert opened(store).near(alike[-1], "http://b.test/") == f"http://a.test/{len(alike) - 1}"


def test_the_nearest_is_named_be_it_kept_or_in_flight(store: RocksStore) -> None:
    index = opened(store)
    near, nearer = 0b1111, 0b1111 ^ (0b111111 << 30)
    keep(store, index, {near: "http://a.test/near"})
    assert index.near(nearer, "http://a.test/nearer") == ""
    assert index.near(nearer ^ 1, "page") == "http://a.test/nearer"
    assert index.near(near ^ 1, "page") == "http://a.test/near"


def test_another_capacity_forgets_nothing_at_once(store: RocksStore) -> None:
    choose = random.Random(4)
    given = {choose.getrandbits(64): f"http://a.test/{number}" for number in range(100)}
    keep(store, opened(store, capacity=800), given)
    for capacity in (8, 80_000):
        index = opened(store, capacity)
        assert [index.near(fingerprint, "http://b.test/") for fingerprint in given] == list(given.values())
