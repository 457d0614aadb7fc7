"""Every store of ours keeps the promises of `storage.archive.contract` and `storage.seen.contract`."""

from pathlib import Path

import pytest

from gossamer.labs.bloom import BloomSeen, BloomSeenSheet
from gossamer.labs.trie.queues import TrieSeen, TrieSeenSheet
from gossamer.storage.archive.warc import NoArchive, WarcArchive, WarcSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.logs import LOG_PATH, JsonLog, JsonLogSheet
from gossamer.storage.seen.memory import (
    MemoryContents,
    MemoryFingerprints,
    MemoryFingerprintsSheet,
    MemorySeen,
    RecentlySeen,
    RecentlySeenSheet,
)
from gossamer.storage.seen.providers import LedgerSieve, SieveSeen, SieveSheet
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.testing.seen import check_content_index, check_fingerprint_index, check_seen_set, check_task_sieve
from gossamer.testing.storage import check_archive, check_row_log, hostile_visits, visit
from gossamer.values.visit import Location

READERS = ["warcio", "fastwarc"]


def read_record(reader: str, directory: Path, location: Location) -> tuple[str, str, bytes]:
    """One record's type, target URI and block, by somebody else's reader from exactly the bytes of the location."""
    data = (directory / location.file).read_bytes()[location.offset : location.offset + location.length]
    return read_bytes(reader, data)


def read_bytes(reader: str, data: bytes) -> tuple[str, str, bytes]:
    """The one record of these bytes."""
    import io

    if reader == "warcio":
        warcio = pytest.importorskip("warcio.archiveiterator")
        [(kind, uri, block)] = [
            (r.rec_type, r.rec_headers.get_header("WARC-Target-URI"), r.raw_stream.read())
            for r in warcio.ArchiveIterator(io.BytesIO(data), no_record_parse=True)
        ]
        return kind, uri, block
    fastwarc = pytest.importorskip("fastwarc.warc")
    [(kind, uri, block)] = [
        (r.headers["WARC-Type"], r.headers["WARC-Target-URI"], r.reader.read())
        for r in fastwarc.ArchiveIterator(io.BytesIO(data), parse_http=False)
    ]
    return kind, uri, block


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("rotate", [1, 10**9], ids=["many files", "one file"])
def test_warc_archive(tmp_path: Path, reader: str, rotate: int) -> None:
    archive = WarcArchive(WarcSheet(directory=str(tmp_path), rotate_bytes=rotate))
    check_archive(archive, lambda location: read_record(reader, tmp_path, location))


def test_no_archive_has_no_location_for_anything() -> None:
    visits = [visit(), *hostile_visits()]
    assert NoArchive().append(visits) == [None] * len(visits)


def test_json_log(tmp_path: Path) -> None:
    log = JsonLog(JsonLogSheet(directory=str(tmp_path)))
    check_row_log(log, (tmp_path / LOG_PATH).read_bytes)


def test_table_log(tmp_path: Path) -> None:
    log = TableLog(TableLogSheet(directory=str(tmp_path), tables=("pages", "links", "items")))
    check_row_log(log, (tmp_path / LOG_PATH).read_bytes)


def test_memory_seen() -> None:
    check_seen_set(MemorySeen())


@pytest.mark.parametrize("capacity", [1, 2, 50, 100_000])
def test_recently_seen_in_front_of_memory_seen(capacity: int) -> None:
    seen = RecentlySeen(RecentlySeenSheet(capacity=capacity))
    seen.behind = MemorySeen()
    check_seen_set(seen)


@pytest.mark.parametrize(("gathered", "cache"), [(1, 0), (300, 2), (100_000, 1_000)])
def test_trie_seen(tmp_path: Path, gathered: int, cache: int) -> None:
    seen = TrieSeen(TrieSeenSheet(directory=str(tmp_path), gathered=gathered, cache=cache))
    seen.ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    seen.ledger.open()
    seen.open()
    check_seen_set(seen, urls=300 if gathered == 1 else 2_000)
    seen.close()
    seen.ledger.close()


def test_bloom_seen_where_it_is_never_full(tmp_path: Path) -> None:
    seen = BloomSeen(BloomSeenSheet(directory=str(tmp_path), capacity=1_000_000, error=1e-9, gathered=500))
    seen.ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    seen.ledger.open()
    seen.open()
    check_seen_set(seen)
    seen.close()
    seen.ledger.close()


@pytest.mark.parametrize("capacity", [1, 60, 10_000])
@pytest.mark.parametrize("recent", [1, 500])
def test_sieve(tmp_path: Path, capacity: int, recent: int) -> None:
    seen = SieveSeen(SieveSheet(directory=str(tmp_path), capacity=capacity, recent=recent))
    seen.open()
    check_seen_set(seen, urls=300 if capacity == 1 else 2_000)
    seen.close()


@pytest.mark.parametrize("capacity", [1, 60, 10_000])
def test_sieve_of_tasks_in_a_ledger(tmp_path: Path, capacity: int) -> None:
    opened: list[tuple[RocksLedger, LedgerSieve]] = []

    def reopen() -> tuple[RocksLedger, LedgerSieve]:
        close()
        ledger, sieve = (
            RocksLedger(LedgerSheet(directory=str(tmp_path))),
            LedgerSieve(SieveSheet(directory=str(tmp_path), capacity=capacity, recent=50)),
        )
        ledger.open()
        sieve.ledger = ledger
        sieve.open()
        opened.append((ledger, sieve))
        return ledger, sieve

    def close() -> None:
        if opened:
            ledger, sieve = opened.pop()
            sieve.close()
            ledger.abandon()

    check_task_sieve(reopen)
    close()


def test_memory_contents() -> None:
    check_content_index(MemoryContents())


@pytest.mark.parametrize("seed", range(5))
def test_memory_fingerprints(seed: int) -> None:
    check_fingerprint_index(MemoryFingerprints(MemoryFingerprintsSheet(capacity=500)), seed=seed)
