"""Every store of ours keeps the promises of `storage.archive.contract` and `storage.seen.contract`."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from gossamer.labs.bloom import BloomSeen, BloomSeenSheet
from gossamer.labs.trie.queues import TrieSeen, TrieSeenSheet
from gossamer.storage.archive.warc import NoArchive, WarcArchive, WarcSheet
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.logs import LOG_PATH
from gossamer.storage.seen.memory import (
    MemoryContents,
    MemoryFingerprints,
    MemoryFingerprintsSheet,
    MemorySeen,
    RecentlySeen,
    RecentlySeenSheet,
)
from gossamer.storage.seen.providers import LedgerSieve, SieveSeen, SieveSheet
from gossamer.storage.tables.log import JsonLog, JsonLogSheet, TableLog, TableLogSheet
from gossamer.testing.storage import (
    check_archive,
    check_content_index,
    check_fingerprint_index,
    check_seen_set,
    hostile_visits,
    unanswered,
    visit,
)
from gossamer.values.task import Task
from gossamer.values.visit import Location

#: Closes what is open as a kill would, and opens it again: the ledger and its sieve. At first it opens them empty.
Reopen = Callable[[], tuple[Ledger, LedgerSieve]]


class _Broken(Exception):
    """A failing stage raises this inside a group."""


def check_task_sieve(reopen: Reopen, *, urls: int = 600, seed: int = 1) -> None:
    """Check that a sieve of tasks, empty at first, keeps its promises through failing groups and kills.

    Args:
        reopen: opens the sieve, which is empty at first.
        urls: number of different URLs that are offered, more than are merged at once.
        seed: of the random order of all events.
    """
    choose = random.Random(seed)
    tasks = [
        Task(f"http://h{n % 9}.test/{n}", f"h{n % 9}.test", n, f"http://s.test/{n}", "a href") for n in range(urls)
    ]
    ledger, sieve = reopen()
    assert not len(sieve) and not sieve.ready, "an empty sieve has nothing to do"
    offered: set[str] = set()
    came_out: list[Task] = []
    while len(offered) < urls:
        batch = [tasks[int(urls * choose.random() ** 2)] for _ in range(choose.randrange(1, 40))]
        batch += [task for task in tasks if task.url not in offered][:5]
        fails = choose.random() < 0.1
        held_back = {task.url for task in batch} - set(sieve.unseen([task.url for task in batch]))
        assert held_back <= offered, "unseen held back a new URL"
        try:
            with ledger.group() as group:
                sieve.offer(batch, group)
                drained = sieve.drain(group, choose.randrange(1, 50))
                if fails:
                    raise _Broken
        except _Broken:
            # Whoever cannot keep a group stops, and begins again from what is kept.
            ledger, sieve = reopen()
            continue
        offered.update(task.url for task in batch)
        came_out += drained
        if choose.random() < 0.05:
            ledger, sieve = reopen()
        if choose.random() < 0.2:
            sieve.flush()
    for _ in range(2):
        came_out += _sifted_rest(ledger, sieve)
        _check(came_out, {task.url: task for task in tasks})
        ledger, sieve = reopen()
        with ledger.group() as group:
            sieve.offer(tasks, group)
    assert _sifted_rest(ledger, sieve) == [], "a URL came out twice"


def _sifted_rest(ledger: Ledger, sieve: LedgerSieve) -> list[Task]:
    """Return all tasks that the sieve still holds."""
    rest: list[Task] = []
    while len(sieve):
        sieve.flush()
        asyncio.run(sieve.merged())
        with ledger.group() as group:
            rest += sieve.drain(group, 100)
    return rest


def _check(came_out: list[Task], by_url: dict[str, Task]) -> None:
    urls = [task.url for task in came_out]
    assert len(set(urls)) == len(urls), "a URL came out twice"
    assert set(urls) == set(by_url), "a new URL never came out"
    assert all(by_url[task.url] == task for task in came_out), "a task came out changed"


def check_row_log(log: TableLog | JsonLog, read: Callable[[], bytes]) -> None:
    """Check that a row log keeps its promises.

    Args:
        log: empty.
        read: returns the whole log as another process sees it, one row a line.
    """
    log.append([], [])
    visits = [visit(), unanswered()]
    log.append(visits, [Location("warc/a.warc.gz", 1, 2), None])
    text = read()
    assert len(text) in log.ends().values(), "ends name the log and where it ends"
    assert not log.ends(), "ends are those since the last call"
    rows = _rows(text)
    assert [row["url"] for row in rows] == [one.url for one in visits], "one row for each visit, in order"
    assert rows[0]["warc_offset"] == 1, "the row says where the record is"
    assert "warc_offset" not in rows[1], "a row without a record says where one is"

    hostile = hostile_visits()
    before = len(rows)
    log.append(hostile, [None] * len(hostile))
    text = read()
    rows = _rows(text)[before:]
    pages = [row for row in rows if row["event"] == "page"]
    items = [row for row in rows if row["event"] == "item"]
    assert len(pages) == len(hostile), "one event is one line, whatever a server sent"
    assert len(items) == sum(len(one.items) for one in hostile), "one line for each item"
    assert [row.get("title", "") for row in pages] == [one.title for one in hostile], "escaping changed a text"
    shown = text.decode()
    assert not [c for c in shown if c != "\n" and not c.isprintable()], "a control character stands in the log"


def _rows(text: bytes) -> list[dict[str, object]]:
    assert text.endswith(b"\n"), "the last row is not a whole line"
    return [msgspec.json.decode(line, type=dict[str, object]) for line in text.splitlines()]


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
