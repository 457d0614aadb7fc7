"""What is lent keeps the promises of `frontier.seams`, and goes back into the queues when a host is recalled."""

from pathlib import Path
from typing import Any

from gossamer.mobile.manager.lent import LendingLedger, LentSheet, LentUrls
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing import check_lending
from gossamer.values.task import Task


class Opened:
    """A ledger and what it lends, opened again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger: RocksLedger | None = None

    async def again(self) -> tuple[Ledger, LentUrls]:
        if self.ledger is not None:
            self.ledger.abandon()
        self.ledger, lending = RocksLedger(LedgerSheet(directory=str(self.folder))), LendingLedger()
        self.ledger.open()
        lent = LentUrls(LentSheet(runtimes={"a.test": "https://runtime.test"}))
        lent.ledger = self.ledger
        lending.behind, lending.lent = self.ledger, lent
        await lent.start()
        return lending, lent


def test_lent_urls(tmp_path: Path, run: Any) -> None:
    opened = Opened(tmp_path)
    run(check_lending(opened.again))
    assert opened.ledger is not None
    opened.ledger.abandon()


def test_a_recalled_host_is_queued_and_its_urls_count_once(tmp_path: Path, run: Any) -> None:
    async def check() -> None:
        opened = Opened(tmp_path)
        ledger, lent = await opened.again()
        tasks = [Task(f"http://a.test/{number}", "a.test", 1) for number in range(3)]
        with ledger.group() as group:
            group.push(tasks)
        with ledger.group() as group:
            lent.assign(list(lent.of_host("a.test"))[:1], "c1", group)
        assert sorted(one.crawler for one in lent.of_host("a.test")) == ["", "", "c1"]
        with ledger.group() as group:
            lent.recall("a.test", list(lent.of_host("a.test")), group)
        assert not lent.is_out and not lent.lends("a.test") and opened.ledger is not None
        assert len(opened.ledger.queues) == 3 and ledger.counters()["discovered"] == 3
        opened.ledger.abandon()

    run(check())
