"""What is lent keeps the promises of `frontier.contract`, and goes back into the queues when a host is recalled."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

from gossamer.frontier.contract import Lender, LentHosts
from gossamer.mobile.manager.lent import LendingLedger, LentSheet, LentUrls
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import MobileOrigin, Response, Visit


class BothSides(Lender, LentHosts, Protocol):
    """Both sides of a lender: for the ledger in front, and for the frontier."""


#: Closes what is open as a kill would, opens ledger and lender again, and starts the lender; at first both are empty. `a.test` has
#: a runtime and `b.test` has none; the ledger is the one that lends (`lending-ledger`).
ReopenLent = Callable[[], Awaitable[tuple[Ledger, BothSides]]]


class _NotKept(Exception):
    """Makes a group fail."""


async def check_lending(reopen: ReopenLent) -> None:
    """Check that a lender, behind the ledger that lends, keeps its promises."""
    ledger, lender = await reopen()
    assert [lender.lends(f"{letter}.test") for letter in "ab"] == [True, False]
    assert not lender.is_out and lender.pages == 0
    tasks = [Task(f"http://{letter}.test/{number}", f"{letter}.test", 1) for letter in "ab" for number in range(3)]
    try:
        with ledger.group() as group:
            group.push(tasks)
            raise _NotKept
    except _NotKept:
        pass
    assert not lender.is_out, "a group that failed lent something"
    with ledger.group() as group:
        group.push(tasks)
    assert ledger.counters()["lent"] == 3 and ledger.counters()["discovered"] == 6
    ledger, lender = await reopen()
    assert lender.is_out and ledger.counters()["lent"] == 3, "a kill lost a lent task"
    with ledger.group() as group:
        group.push(tasks[:1])
    assert ledger.counters()["lent"] == 3, "a task that was lent twice counts twice"
    came = [Visit(task, _brought("whole")) for task in tasks[:2]] + [Visit(tasks[2], _brought("text"))]
    with ledger.group() as group:
        for visit in came[:2]:
            assert group.visited(visit, None)
    assert ledger.counters()["lent"] == 1 and ledger.document(tasks[0].url) is not None
    with ledger.group() as group:
        group.visited(came[2], None)
    assert lender.is_out, "a part without links is kept until its crawler has ended"
    told: list[str] = []
    lender.watch(lambda: told.append("news"), lambda: None)
    lender.end()
    ledger, lender = await reopen()
    assert lender.is_out, "the end of a run ended a lease that is out"


def _brought(form: str) -> Response:
    brought = MobileOrigin("c1", "https://runtime.test", "", 0, "whole" if form == "whole" else "text")
    return Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=b"<p>x", brought=brought)


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
