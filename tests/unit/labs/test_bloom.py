"""A Bloom filter as a seen set."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.labs.bloom import BloomSeen, BloomSeenSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.errors import UsageError


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[RocksLedger]:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    yield ledger
    ledger.abandon()


def opened(ledger: RocksLedger, *, capacity: int = 5_000, error: float = 0.01, gathered: int = 700) -> BloomSeen:
    seen = BloomSeen(
        BloomSeenSheet(directory=ledger.sheet.directory, capacity=capacity, error=error, gathered=gathered)
    )
    seen.ledger = ledger
    seen.open()
    return seen


def offered_in_a_group_that_fails(seen: BloomSeen, url: str) -> None:
    with seen.ledger.group():
        assert seen.offer([url]) == [url]
        raise RuntimeError


def test_false_positives_and_lost_pages_are_those_that_it_tells(ledger: RocksLedger) -> None:
    seen = opened(ledger)
    urls = [f"http://h{n % 10}.test/{n}" for n in range(5_000)]
    lost = sum(50 - len(seen.offer(urls[at : at + 50])) for at in range(0, 5_000, 50))
    assert seen.unseen(urls) == [], "what was offered is never new again"
    strangers = [f"http://other.test/{n}" for n in range(20_000)]
    rate = 1 - len(seen.unseen(strangers)) / 20_000
    assert rate == pytest.approx(0.01, abs=0.003)
    assert rate == pytest.approx(seen.false_positives, abs=0.003)
    assert 0 < seen.state.lost < 25 and lost == pytest.approx(seen.state.lost, abs=12)
    seen.abandon()


def test_a_kill_leaves_what_the_ledger_has_kept(ledger: RocksLedger) -> None:
    seen = opened(ledger)
    urls = [f"http://a.test/{n}" for n in range(2_000)]
    kept = [url for at in range(0, 2_000, 40) for url in seen.offer(urls[at : at + 40])]
    with pytest.raises(RuntimeError):
        offered_in_a_group_that_fails(seen, "http://lost.test/")
    seen.abandon()
    again = opened(ledger)
    assert again.unseen([*kept, "http://lost.test/"]) == ["http://lost.test/"]
    assert again.state.urls == len(kept)
    again.abandon()


def test_a_filter_keeps_its_size(ledger: RocksLedger) -> None:
    seen = opened(ledger)
    seen.offer(["http://a.test/"])
    seen.close()
    with pytest.raises(UsageError, match="another size"):
        opened(ledger, capacity=6_000)
