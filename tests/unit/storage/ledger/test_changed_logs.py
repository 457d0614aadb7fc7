"""A changed byte in a write-ahead log is told from the torn end that a kill leaves."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.errors import CrawlDirectoryError, LogDamaged

COMMITS = 60


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl's directory as a kill leaves it: commits that fit into a block of the log, and some that span several."""
    working = tmp_path_factory.mktemp("working")
    ledger = RocksLedger(LedgerSheet(directory=str(working)))
    ledger.open()
    for number in range(COMMITS):
        with ledger.group() as group:
            group.meta(f"value-{number}", os.urandom(40_000 if number % 20 == 5 else 90))
    killed = Path(shutil.copytree(working, tmp_path_factory.mktemp("killed") / "crawl"))
    ledger.close()
    return killed


@pytest.fixture
def crawl(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "crawl"))


def log_of(crawl: Path) -> Path:
    [log] = crawl.glob("state/*/ledger/*.log")
    return log


def commits(crawl: Path) -> int:
    """The commits that can be read, which are those before some point."""
    with RocksLedger(LedgerSheet(directory=str(crawl))).looking() as ledger:
        there = [bool(ledger.meta(f"value-{number}")) for number in range(COMMITS)]
    assert there == sorted(there, reverse=True)
    return sum(there)


def cuts(size: int) -> Iterator[int]:
    """Every length of the last pieces, and lengths of all kinds before them."""
    yield from range(size - 160, size + 1)
    yield from range(3_000, size, 3_001)
    for block in range(32_768, size, 32_768):
        yield from range(block - 9, block + 20, 4)


def test_a_log_that_ends_anywhere_is_one_of_an_honest_kill(crawl: Path) -> None:
    log = log_of(crawl)
    content = log.read_bytes()
    assert commits(crawl) == COMMITS
    kept = []
    for cut in sorted(cuts(len(content))):
        log.write_bytes(content[:cut])
        kept.append(commits(crawl))
    assert kept == sorted(kept)


@pytest.mark.parametrize("bit", [0, 6])
def test_a_changed_byte_in_the_log_is_told_and_nothing_is_written(crawl: Path, bit: int) -> None:
    log = log_of(crawl)
    content = log.read_bytes()
    for place in [*range(2_000, 2_160), *cuts(len(content) - 400)]:
        log.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
        with pytest.raises(LogDamaged, match="a byte of its write-ahead log has changed"):
            commits(crawl)
    before = log.read_bytes()
    with pytest.raises(CrawlDirectoryError, match="log has changed"):
        RocksLedger(LedgerSheet(directory=str(crawl))).open()
    assert log.read_bytes() == before


def test_sectors_that_a_power_cut_left_unwritten_are_no_damage(crawl: Path) -> None:
    log = log_of(crawl)
    content = log.read_bytes()
    for start in range(4_096, len(content) - 4_096, 8_192):
        log.write_bytes(content[:start] + bytes(4_096) + content[start + 4_096 :])
        assert commits(crawl) < COMMITS
