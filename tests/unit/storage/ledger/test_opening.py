"""A ledger that is being written can be read; one that is damaged says so."""

from pathlib import Path

import pytest

from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.reader import LedgerSheet
from gossamer.storage.ledger.store import RocksStore, damaged
from gossamer.values.errors import LedgerDamaged


class StoreBesideAWriter(RocksStore):
    """Opens as if the owner of the files had put a new log in the place of one just then."""

    openings = 0

    def __init__(self, path: Path, limits: LedgerSheet, *, create: bool = False, read_only: bool = False) -> None:
        if read_only:
            type(self).openings += 1
            if type(self).openings < 3:
                (path / f"note-{type(self).openings}").touch()
                raise damaged(path, "No such file or directory: 000008.log")
        super().__init__(path, limits, create=create, read_only=read_only)


class AlwaysMissing(RocksStore):
    """Opens as if a file of it were missing."""

    openings = 0

    def __init__(self, path: Path, limits: LedgerSheet, *, create: bool = False, read_only: bool = False) -> None:
        if read_only:
            type(self).openings += 1
            raise damaged(path, "No such file or directory: 000008.log")
        super().__init__(path, limits, create=create, read_only=read_only)


def ledger_of(directory: Path, store: type[RocksStore]) -> RocksLedger:
    """A ledger at rest, to be opened by `store`."""

    class Ledger(RocksLedger):
        store_type = store

    ledger = Ledger(LedgerSheet(directory=str(directory)))
    ledger.open()
    ledger.close()
    return ledger


def test_a_file_that_its_owner_replaces_while_it_is_opened_is_no_damage(tmp_path: Path) -> None:
    with ledger_of(tmp_path, StoreBesideAWriter).looking() as ledger:
        assert ledger.committed_ends() == {}
    assert StoreBesideAWriter.openings == 3


def test_a_file_that_is_missing_from_a_directory_that_stays_the_same_is_damage(tmp_path: Path) -> None:
    with pytest.raises(LedgerDamaged, match=r"000008\.log"), ledger_of(tmp_path, AlwaysMissing).looking():
        pass
    assert AlwaysMissing.openings == 1
