"""How an agent ended, by its ledger: also where its disk goes, or its files change, while that is read."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gossamer.agents.ended import end_of_ledger
from gossamer.crawls.damage import _ends_of_other
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.errors import LedgerDamaged


class Unplugged(RocksLedger):
    """A ledger whose disk goes when the first look at it ends."""

    @contextmanager
    def looking(self, snapshot: Path | None = None) -> Iterator["Unplugged"]:
        with super().looking(snapshot):
            yield self
        shutil.rmtree(self.places.state)


class Compacted(RocksLedger):
    """A ledger of which a file went before the first look at it."""

    looks = 0

    @contextmanager
    def looking(self, snapshot: Path | None = None) -> Iterator["Compacted"]:
        self.looks += 1
        if self.looks == 1:
            raise LedgerDamaged("a file is missing")
        with super().looking(snapshot):
            yield self


def written(ledger: RocksLedger) -> RocksLedger:
    ledger.open()
    with ledger.group() as group:
        group.written("logs/crawl.jsonl", 7)
    ledger.close()
    return ledger


def test_an_agent_whose_disk_goes_while_it_is_looked_at_has_lost_its_ledger(tmp_path: Path) -> None:
    ledger = written(Unplugged(LedgerSheet(directory=str(tmp_path))))
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc" / "crawl-agent-00-20260101000000-00000.warc.gz").touch()
    end = end_of_ledger(tmp_path, ledger)
    assert (end.standing, end.is_clean) == (None, False)
    assert "is missing" in end.damage


def test_what_another_agent_has_committed_is_read_again_where_a_file_of_it_went_meanwhile(tmp_path: Path) -> None:
    ledger = Compacted(LedgerSheet(directory=str(tmp_path)))
    written(ledger)
    assert _ends_of_other(ledger) == {"logs/crawl.jsonl": 7}
    assert ledger.looks == 2
