"""The limit of depth in the ledger: pages whose links a lower limit cut come out until they were announced, killed or not."""

from pathlib import Path

import msgspec
import pytest

from gossamer.engine.errors import SettingError
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.storage import visit
from gossamer.values.task import Task

pytestmark = pytest.mark.stores

#: Depth of each visited page.
PAGES = {f"http://h{n % 3}.test/{n}": n % 6 for n in range(40)}


def opened(folder: Path, depth: int | None) -> RocksLedger:
    ledger = RocksLedger(LedgerSheet(directory=str(folder), depth=depth, cache=1 << 20, buffers=1 << 20))
    ledger.open()
    return ledger


def fill(ledger: RocksLedger) -> None:
    """Visit the pages, each at its depth, and queue one more that is not visited."""
    queues = LedgerFrontier()
    queues.ledger = ledger
    tasks = [Task(url, url.split("/")[2], depth) for url, depth in PAGES.items()]
    waiting = Task("http://w.test/", "w.test", 3)
    with ledger.group() as group:
        group.push(group.meet([*tasks, waiting]).new)
    queues.admit(0.0)
    with ledger.group() as group:
        for host in ("h0.test", "h1.test", "h2.test"):
            for task in queues.pop(host, 100):
                group.visited(msgspec.structs.replace(visit(), task=task), None)


def change(ledger: RocksLedger, depth: int | None) -> None:
    before, ledger.sheet = ledger.sheet, msgspec.structs.replace(ledger.sheet, depth=depth)
    ledger.changed(before)


def owed(ledger: RocksLedger, most: int) -> list[str]:
    """All that is owing, announced at once."""
    found: list[str] = []
    while ledger.depths.is_owing:
        pages = ledger.depths.owing(most)
        assert len(pages) <= most
        assert [page.url for page in ledger.depths.owing(most)] == [page.url for page in pages], (
            "until it was announced"
        )
        found += [page.url for page in pages]
        ledger.depths.announced()
    return found


def at(*depths: int) -> list[str]:
    return sorted(url for url, depth in PAGES.items() if depth in depths)


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_pages_at_the_old_limit_and_deeper_come_out_once_when_the_limit_rises(most: int, tmp_path: Path) -> None:
    ledger = opened(tmp_path, 3)
    fill(ledger)
    assert not ledger.depths.is_owing, "nothing was cut by another limit"
    change(ledger, 5)
    assert sorted(owed(ledger, most)) == at(3, 4, 5)
    change(ledger, 1)
    assert (ledger.depths.is_owing, ledger.depths.limit) == (False, 1)
    change(ledger, 2)
    assert sorted(owed(ledger, most)) == at(1, 2)
    change(ledger, None)
    assert sorted(owed(ledger, most)) == at(2, 3, 4, 5)
    ledger.close()


@pytest.mark.parametrize("most", [1, 7])
def test_a_kill_costs_no_page_and_at_most_one_batch_comes_again(most: int, tmp_path: Path) -> None:
    ledger = opened(tmp_path, 2)
    fill(ledger)
    change(ledger, 4)
    found: list[str] = []
    while ledger.depths.is_owing:
        found += [page.url for page in ledger.depths.owing(most)]
        ledger.abandon()
        ledger = opened(tmp_path, 4)
        found += [page.url for page in ledger.depths.owing(most)]
        ledger.depths.announced()
    assert sorted(set(found)) == at(2, 3, 4)
    assert len(found) <= 2 * len(set(found))
    ledger.abandon()
    ledger = opened(tmp_path, 4)
    assert not ledger.depths.is_owing
    ledger.close()


def test_a_limit_that_rose_between_two_runs_is_made_good_by_the_second(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 1)
    fill(ledger)
    ledger.close()
    ledger = opened(tmp_path, 2)
    assert sorted(owed(ledger, 100)) == at(1, 2)
    ledger.close()


def test_who_looks_at_a_ledger_changes_nothing_of_its_limit(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 1)
    fill(ledger)
    ledger.close()
    other = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    with other.looking():
        assert other.depth_of(list(PAGES)) == list(PAGES.values()), "depths are there, whoever asks"
    ledger = opened(tmp_path, 1)
    assert not ledger.depths.is_owing
    ledger.close()


def test_a_crawl_that_kept_no_depths_gets_no_limit(tmp_path: Path) -> None:
    ledger = opened(tmp_path, None)
    fill(ledger)
    assert ledger.depths.limit is None
    with pytest.raises(SettingError, match="began without a limit of depth"):
        change(ledger, 2)
    ledger.close()
    with pytest.raises(SettingError, match="began without a limit of depth"):
        opened(tmp_path, 2)


def test_what_is_given_up_is_met_as_new_also_after_a_kill(tmp_path: Path) -> None:
    ledger = opened(tmp_path, 3)
    queues = LedgerFrontier()
    queues.ledger = ledger
    task = Task("http://a.test/x", "a.test", 3)
    with ledger.group() as group:
        group.push(group.meet([task]).new)
        group.tally("host", "a.test", 1)
    queues.admit(0.0)
    [popped] = queues.pop("a.test", 1)
    with ledger.group() as group:
        assert group.give_up(popped)
        assert not group.give_up(popped), "it is in flight no more"
    ledger.abandon()
    ledger = opened(tmp_path, 3)
    assert (ledger.counters()["discovered"], ledger.tally("host", "a.test"), len(ledger.queues)) == (0, 0, 0)
    with ledger.group() as group:
        assert group.meet([task]).new == [task]
    ledger.close()
