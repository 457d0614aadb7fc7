"""A disk that is full: nothing of the group is kept, the error says so, and with room again the same group is kept."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import rocksdict

from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.task import Task

#: The child may write files of so many bytes only, which the system reports as it reports a full disk.
CHILD = """
import resource, signal, sys
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.task import Task
from gossamer.storage.ledger.ledger import RocksLedger, LedgerSheet
from gossamer.storage.ledger.providers import LedgerFrontier

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = RocksLedger(LedgerSheet(directory=sys.argv[1], cache=1 << 20, buffers=1 << 20))
ledger.open()
queues = LedgerFrontier()
queues.ledger = ledger

def keep(first):
    urls = [f"http://a.test/{first + n}/{'x' * 200}" for n in range(500)]
    with ledger.group() as group:
        assert group.offer(urls) == urls
        group.push(Task(url, "a.test") for url in urls)
        group.tally("host", "a.test", len(urls))

keep(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
kept, errors = 500, []
while len(errors) < 3:
    try:
        keep(kept)
        kept += 500
    except CrawlDirectoryError as error:
        errors.append(str(error))
        assert len(queues) == kept, "memory changed though nothing was kept"
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, resource.RLIM_INFINITY))
assert all("is full; make room" in error for error in errors), errors
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
keep(kept)
kept += 500
assert len(queues) == kept and ledger.tally("host", "a.test") == kept
ledger.abandon()
ledger.open()
assert len(queues) == kept == ledger.counters()["discovered"]
assert queues.admit(0.0)
assert len({task.url for task in queues.pop("a.test", 10**6)}) == kept
"""


def opened(directory: Path, kind: type[RocksLedger] = RocksLedger) -> tuple[RocksLedger, LedgerFrontier]:
    ledger = kind(LedgerSheet(directory=str(directory)))
    ledger.open()
    queues = LedgerFrontier()
    queues.ledger = ledger
    return ledger, queues


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit of the size of files")
def test_what_could_not_be_written_is_written_when_there_is_room(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("written", [False, True])
def test_a_failed_write_that_reached_the_disk_all_the_same_is_taken_up(tmp_path: Path, written: bool) -> None:
    is_full = False

    class Full(Batch):
        def write_to(self, database: rocksdict.Rdict) -> None:
            if written or not is_full:
                super().write_to(database)
            if is_full:
                raise OSError("No space left on device")

    class FullStore(RocksStore):
        batch_type = Full

    class FullLedger(RocksLedger):
        store_type = FullStore

    ledger, queues = opened(tmp_path, FullLedger)

    def keep() -> list[str]:
        with ledger.group() as group:
            new = group.offer(["http://a.test/1"])
            group.push(Task(url, "a.test") for url in new)
        return new

    is_full = True
    with pytest.raises(CrawlDirectoryError, match="is full"):
        keep()
    assert len(queues) == 0
    is_full = False
    assert keep() == ([] if written else ["http://a.test/1"])
    assert len(queues) == 1
    ledger.abandon()
    ledger, queues = opened(tmp_path)
    assert len(queues) == 1 == ledger.counters()["discovered"]
    ledger.close()
