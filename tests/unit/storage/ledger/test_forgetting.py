"""What is lost is forgotten: its URL is fetched again, and nothing refers to its bytes any more."""

from pathlib import Path

import msgspec
import pytest

from gossamer.storage.ledger.deleting import forget
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.opening import readable
from gossamer.testing.storage import visit
from gossamer.values.task import Task
from gossamer.values.visit import Location


def opened(directory: Path) -> RocksLedger:
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    ledger.open()
    return ledger


def keep(ledger: RocksLedger, url: str, digest: str, place: Location | None, duplicate_of: str = "") -> None:
    """Let a page be discovered, fetched and kept."""
    one = msgspec.structs.replace(visit(url), digest=digest, duplicate_of=duplicate_of)
    with ledger.group() as group:
        group.offer([url])
        group.push([one.task])
    for host in ledger.queues.admit(0.0, 100):
        while ledger.queues.pop(host, 100):
            pass
    with ledger.group() as group:
        group.first(digest, url)
        assert group.visited(one, place)


@pytest.fixture
def ledger(tmp_path: Path) -> RocksLedger:
    """One document in a file that is lost, its copy in one that is not, and one that has nothing to do with either."""
    ledger = opened(tmp_path)
    keep(ledger, "http://a.test/lost", "LOST", Location("warc/1", 0, 10))
    keep(ledger, "http://b.test/copy", "LOST", Location("warc/2", 0, 10), "http://a.test/lost")
    keep(ledger, "http://c.test/kept", "KEPT", Location("warc/2", 10, 10))
    keep(ledger, "http://d.test/same", "KEPT", Location("warc/2", 20, 10), "http://c.test/kept")
    return ledger


def is_gone(place: Location) -> bool:
    return place.file == "warc/1"


def test_lost_documents_and_copies_of_them_are_fetched_again_and_no_others(ledger: RocksLedger) -> None:
    pages = ledger.counters()["pages"]
    assert forget(ledger, is_gone, {"warc/1": None}) == 2
    assert ledger.document("http://a.test/lost") is None
    assert ledger.document("http://b.test/copy") is None
    assert ledger.document("http://d.test/same") is not None
    waiting = [task.url for host in ledger.queues.admit(0.0, 100) for task in ledger.queues.pop(host, 100)]
    assert sorted(waiting) == ["http://a.test/lost", "http://b.test/copy"]
    assert ledger.counters()["discovered"] == 4
    assert ledger.counters()["pages"] == pages - 2
    assert ledger.contents.owner("LOST") == ""
    assert ledger.contents.owner("KEPT") == "http://c.test/kept"
    assert set(ledger.committed_ends()) == {"warc/2"}
    ledger.abandon()


def test_forgetting_survives_the_process_and_twice_is_once(ledger: RocksLedger, tmp_path: Path) -> None:
    forget(ledger, is_gone, {})
    ledger.abandon()
    again = opened(tmp_path)
    assert forget(again, is_gone, {"warc/1": None, "warc/2": 20}) == 0
    assert len(again.queues) == 2
    assert again.committed_ends() == {"warc/2": 20}
    again.abandon()


def test_a_ledger_where_nothing_can_be_written_is_read_through_a_folder_of_our_own(
    ledger: RocksLedger, tmp_path: Path
) -> None:
    ledger.close()
    there = ledger.places.ledger
    before = {path.name for path in there.iterdir()}
    with readable(there, lambda path, mode: False) as beside:
        assert beside != there
        mirrored = RocksLedger(LedgerSheet(directory=str(beside.parent), agent="agent-00"))
        mirrored.places.ledger = beside
        with mirrored.looking():
            assert mirrored.document("http://c.test/kept") is not None
    assert {path.name for path in there.iterdir()} == before
    assert not beside.exists()


def test_a_task_is_found_again_as_it_was_found_first(ledger: RocksLedger) -> None:
    forget(ledger, is_gone, {})
    [found] = [
        task for host in ledger.queues.admit(0.0, 100) for task in ledger.queues.pop(host, 100) if "a.test" in task.url
    ]
    origin = visit("http://a.test/lost").task
    assert found == Task(origin.url, origin.host, origin.depth, origin.source, origin.relation)
    ledger.abandon()


def test_a_request_that_is_no_plain_get_is_not_repeated(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    keep(ledger, "http://a.test/lost", "LOST", Location("warc/1", 0, 10))
    row = ledger.document("http://a.test/lost")
    assert row is not None
    posted = msgspec.structs.replace(row, mark="POST 1")
    with ledger.group() as group:
        group.undo(posted)
    assert len(ledger.queues) == 0
    [found] = [row for row in ledger.documents() if row.mark]
    assert found == msgspec.structs.replace(posted, location=None)
    ledger.abandon()
