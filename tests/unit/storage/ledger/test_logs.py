"""A write-ahead log that is missing among several is noticed before a ledger is opened."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import rocksdict

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.store import missing_between
from gossamer.values.errors import CrawlDirectoryError

#: Bytes of a value: some fit into one block of a log, others span several.
SIZES = (3, 700, 33_000, 70_000)


@contextmanager
def at_work(path: Path) -> Iterator[None]:
    """A store with several logs, as a crawl that is killed leaves them: one family keeps what the others have written already."""
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(1 << 18)
    options.set_max_total_wal_size(1 << 26)
    options.set_disable_auto_compactions(True)
    database = rocksdict.Rdict(str(path), options, {"kept": options, "written": options})
    kept, written = (database.get_column_family(name) for name in ("kept", "written"))
    kept[b"first"] = b"stays in the first log"
    for number in range(200):
        batch = rocksdict.WriteBatch(raw_mode=True)
        for more in range(number % 4 + 1):
            batch.put(
                b"%d-%d" % (number, more),
                b"x" * SIZES[number % len(SIZES)],
                database.get_column_family_handle("written"),
            )
        database.write(batch)
        written[b"%d" % number] = b"alone"
    yield
    database.close()


def copied(store: Path, killed: Path) -> None:
    """The logs that a store has on the disk, as its process would leave them."""
    killed.mkdir()
    for path in store.glob("*.log"):
        shutil.copy(path, killed)


def test_a_log_that_is_missing_between_two_others_is_found(tmp_path: Path) -> None:
    with at_work(tmp_path / "store"):
        copied(tmp_path / "store", tmp_path / "killed")
    logs = sorted((tmp_path / "killed").glob("*.log"))
    assert len(logs) > 3
    assert missing_between(tmp_path / "killed") == ""
    for before, gone, behind in zip(logs, logs[1:], logs[2:], strict=False):
        content = gone.read_bytes()
        gone.unlink()
        assert missing_between(tmp_path / "killed") == f"{before.name} and {behind.name}"
        gone.write_bytes(content)


def test_a_log_that_ends_in_the_middle_of_a_batch_is_no_gap(tmp_path: Path) -> None:
    with at_work(tmp_path / "store"):
        copied(tmp_path / "store", tmp_path / "killed")
    last = max((tmp_path / "killed").glob("*.log"))
    content = last.read_bytes()
    for cut in (0, 3, 20, len(content) // 2, len(content) - 1):
        last.write_bytes(content[:cut])
        assert missing_between(tmp_path / "killed") == ""


def test_a_ledger_without_one_of_its_logs_is_refused_with_the_names_of_those_beside_it(tmp_path: Path) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    ledger.close()
    with at_work(tmp_path / "store"):
        logs = sorted((tmp_path / "store").glob("*.log"))
        for path in ledger.places.ledger.glob("*.log"):
            path.unlink()
        for path in (logs[0], logs[2]):
            shutil.copy(path, ledger.places.ledger)
    for way in (ledger.open, lambda: ledger.looking().__enter__()):
        with pytest.raises(CrawlDirectoryError, match=f"missing between {logs[0].name} and {logs[2].name}"):
            way()
