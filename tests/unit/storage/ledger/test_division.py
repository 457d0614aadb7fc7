"""What is assigned to agents as a whole is fixed when a ledger is made."""

from pathlib import Path

import pytest

from gossamer.storage.ledger.layout import DOMAIN_BYTES
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.errors import UsageError
from gossamer.values.task import Task


def domains(ledger: RocksLedger, *hosts: str) -> set[bytes]:
    with ledger.rewriting() as rewriting:
        return {rewriting.keys.host(host)[:DOMAIN_BYTES] for host in hosts}


def test_a_division_is_kept_with_the_ledger_whoever_opens_it_later(tmp_path: Path) -> None:
    made = LedgerSheet(directory=str(tmp_path), division="host", together=("a.test b.test",))
    ledger = RocksLedger(made)
    ledger.open()
    with ledger.group() as group:
        group.push([Task("http://x.example.com/", "x.example.com")])
    ledger.close()
    for sheet in (made, LedgerSheet(directory=str(tmp_path))):
        ledger = RocksLedger(sheet)
        ledger.open()
        assert len(domains(ledger, "x.example.com", "y.example.com")) == 2
        assert len(domains(ledger, "x.a.test", "b.test")) == 1
        ledger.close()


def test_a_division_that_is_not_the_ledgers_is_refused_in_one_line(tmp_path: Path) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    ledger.close()
    with pytest.raises(UsageError, match="assigns each domain as a whole, and that is fixed"):
        RocksLedger(LedgerSheet(directory=str(tmp_path), division="host")).open()
