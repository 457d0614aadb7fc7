"""Fingerprints in memory: bounded, whatever comes."""

import random

from gossamer.storage.seen.contract import distance
from gossamer.storage.seen.memory import MAX_CANDIDATES, MemoryFingerprints, MemoryFingerprintsSheet


def test_the_oldest_leave_and_nothing_of_them_stays() -> None:
    index = MemoryFingerprints(MemoryFingerprintsSheet(capacity=100))
    choose = random.Random(2)
    given = [choose.getrandbits(64) for _ in range(1_000)]
    for number, fingerprint in enumerate(given):
        assert index.near(fingerprint, f"u{number}") == ""
    assert index.near(given[-1], "again") == "u999"
    assert index.near(given[0], "again") == ""
    assert len(index._urls) == 100
    assert all(sum(map(len, table.values())) == 100 for table in index._tables)


def test_pages_that_are_made_to_look_alike_cost_a_bounded_look() -> None:
    index = MemoryFingerprints(MemoryFingerprintsSheet(capacity=10_000))
    choose = random.Random(3)
    for number in range(3_000):
        index.near(choose.getrandbits(48) << 16 | 0xABCD, f"u{number}")
    assert max(len(places) for table in index._tables for places in table.values()) == MAX_CANDIDATES


def test_the_nearest_is_named() -> None:
    index = MemoryFingerprints()
    near, nearer = 0b1111, 0b1111 ^ (0b111111 << 30)
    assert index.near(near, "near") == index.near(nearer, "nearer") == ""
    between = nearer ^ (0b111 << 30)
    assert (distance(between, near), distance(between, nearer)) == (3, 3)
    assert index.near(nearer ^ 1, "page") == "nearer"
