"""What is deleted from a ledger is nowhere in it, and every other task, row and host is as it was."""

import random
from pathlib import Path

import msgspec
import pytest

from gossamer.storage.ledger.deleting import LedgerDeletion, delete, hosts_of
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.storage import visit
from gossamer.values.hosts import DeletionTarget
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of

pytestmark = pytest.mark.stores

HOSTS = ["gone.test", "www.gone.test", "a.www.gone.test", "begone.test", "kept.test", "gone.test.kept.test"]

TARGETS = [
    DeletionTarget("host", "gone.test"),
    DeletionTarget("host", "www.gone.test"),
    DeletionTarget("host", "nowhere.test"),
    DeletionTarget("url", "http://gone.test/7"),
    DeletionTarget("url", "http://kept.test/300"),
]


def opened(directory: Path) -> RocksLedger:
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    ledger.open()
    return ledger


def deleted(ledger: RocksLedger, target: DeletionTarget, *, forget: bool) -> LedgerDeletion:
    return delete(ledger, target, hosts_of(ledger, target), forget=forget)


def task_of(url: str, level: int = 0) -> Task:
    return msgspec.structs.replace(visit(url).task, host=host_of(url), level=level)


class Filled:
    """A ledger that random work was done with, and what must be in it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.random = random.Random(seed)
        self.done: set[str] = set()
        self.waiting: set[str] = set()
        self.aside: set[str] = set()
        ledger = opened(directory)
        for part in range(3):
            self._discover(ledger, part)
            self._fetch(ledger)
        ledger.abandon()  # what is in flight is found again by the next opening

    def _discover(self, ledger: RocksLedger, part: int) -> None:
        for host in HOSTS:
            urls = [f"http://{host}/{number}" for number in range(part * 200, part * 200 + self.random.randint(1, 200))]
            tasks = [task_of(url, self.random.choice((0, 3))) for url in urls]
            later = [task for task in tasks if self.random.random() < 0.1]
            aside = [task for task in tasks if task not in later and self.random.random() < 0.1]
            with ledger.group() as group:
                group.offer(urls)
                group.push(task for task in tasks if task not in later and task not in aside)
                for task in later:
                    group.later(task, 5.0 + part)
                group.set_aside(Family(f"*.{host}", "/*"), aside)
                group.host(HostState(host, b"note"))
            self.waiting.update(task.url for task in tasks if task not in aside)
            self.aside.update(task.url for task in aside)

    def _fetch(self, ledger: RocksLedger) -> None:
        ledger.queues.admit(0.0, 100)
        for host in self.random.sample(HOSTS, 3):
            tasks = ledger.queues.pop(host, self.random.randint(1, 250))
            ended = [task for task in tasks if self.random.random() < 0.7]
            with ledger.group() as group:
                for task in ended:
                    one = msgspec.structs.replace(visit(task.url), task=task)
                    assert group.visited(one, None)
            self.done.update(task.url for task in ended)
            self.waiting.difference_update(task.url for task in ended)


def drained(ledger: RocksLedger) -> list[Task]:
    """Every task that is handed out, each ended."""
    found: list[Task] = []
    while True:
        with ledger.group() as group:
            group.woken(ledger.queues.delayed.due(1e6))
        hosts = ledger.queues.admit(1e6, 100)
        if not hosts:
            return found
        for host in hosts:
            while tasks := ledger.queues.pop(host, 100):
                found += tasks
                with ledger.group() as group:
                    for task in tasks:
                        assert group.done(task.identity)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_not_deleted_waits_is_aside_and_is_done_as_before(
    tmp_path: Path, seed: int, target: DeletionTarget
) -> None:
    before = Filled(tmp_path, seed)
    ledger = opened(tmp_path)
    told = deleted(ledger, target, forget=False)
    ledger.close()

    ledger = opened(tmp_path)
    rows = {row.url for row in ledger.documents()}
    assert rows == {url for url in before.done if not target.has(url)}
    assert told.documents == len(before.done) - len(rows)
    aside = {task.url for row in ledger.aside() for task in ledger.aside_tasks(row.family)}
    assert aside == {url for url in before.aside if not target.has(url)}
    assert sum(row.count for row in ledger.aside()) == ledger.counters()["set_aside"] == len(aside)
    assert {state.host for state in ledger.hosts()} == {host for host in HOSTS if not target.has_host(host)}
    waiting = {url for url in before.waiting if not target.has(url)}
    assert len(ledger.queues) == len(waiting)
    assert sorted(task.url for task in drained(ledger)) == sorted(waiting)
    assert len(ledger.queues) == 0
    assert told.tasks == len(before.waiting) - len(waiting) + len(before.aside) - len(aside)
    # Seen for ever, so that no link to it makes a task again.
    assert all(ledger.is_seen(url) for url in before.done | before.waiting | before.aside)
    ledger.close()


def test_a_url_that_nobody_has_met_counts_as_seen_once_it_is_deleted(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    deleted(ledger, DeletionTarget("url", "http://gone.test/never"), forget=False)
    with ledger.group() as group:
        assert group.offer(["http://gone.test/never", "http://gone.test/other"]) == ["http://gone.test/other"]
    ledger.close()


def test_a_ledger_that_was_closed_in_order_is_still_so_after_a_deletion(tmp_path: Path) -> None:
    opened(tmp_path).close()
    ledger = opened(tmp_path)
    deleted(ledger, DeletionTarget("host", "gone.test"), forget=False)
    assert ledger.is_clean
    ledger.close()


def test_what_is_forgotten_was_never_seen_and_the_rest_was(tmp_path: Path) -> None:
    before = Filled(tmp_path, 1)
    ledger = opened(tmp_path)
    target = DeletionTarget("host", "gone.test")
    deleted(ledger, target, forget=True)
    for url in before.done | before.waiting | before.aside:
        assert ledger.is_seen(url) is not target.has(url)
    ledger.close()


def test_no_byte_of_a_deleted_name_is_left_in_the_tables_of_the_ledger(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    url = "http://very-private-name.test/page"
    with ledger.group() as group:
        group.offer([url])
        group.push([task_of(url)])
        group.host(HostState("very-private-name.test"))
    ledger.close()
    ledger = opened(tmp_path)
    deleted(ledger, DeletionTarget("host", "very-private-name.test"), forget=False)
    ledger.close()
    opened(tmp_path).close()  # the log of what was written is dropped by the next opening
    files = [path for path in (tmp_path / "state").rglob("*") if path.suffix in (".sst", ".log")]
    assert files
    assert [path.name for path in files if b"very-private-name" in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("target", "url", "goes"),
    [
        (DeletionTarget("host", "gone.test"), "https://gone.test:8443/x", True),
        (DeletionTarget("host", "gone.test"), "https://a.gone.test/", True),
        (DeletionTarget("host", "gone.test"), "https://begone.test/", False),
        (DeletionTarget("host", "gone.test"), "https://kept.test/?u=http://gone.test/", False),
        (DeletionTarget("host", "gone.test"), "gone.test", False),
        (DeletionTarget("host", "::1"), "http://[::1]:8080/", True),
        (DeletionTarget("url", "https://gone.test/a"), "https://gone.test/a", True),
        (DeletionTarget("url", "https://gone.test/a"), "https://gone.test/ab", False),
    ],
)
def test_a_target_has_its_own_urls_and_no_others(target: DeletionTarget, url: str, goes: bool) -> None:
    assert target.has(url) is goes


def test_a_host_that_has_only_a_queue_is_forgotten_also_where_the_first_attempt_took_the_queue(tmp_path: Path) -> None:
    ledger, target, url = opened(tmp_path), DeletionTarget("host", "gone.test"), "http://www.gone.test/queued"
    with ledger.group() as group:
        assert group.offer([url]) == [url]
        group.push([task_of(url)])
    found = hosts_of(ledger, target)
    delete(ledger, target, (), forget=True)  # as far as the queues, and no farther
    assert "www.gone.test" not in hosts_of(ledger, target), "nothing tells of it any more"
    delete(ledger, target, found, forget=True)
    with ledger.group() as group:
        assert group.offer([url]) == [url], "it counts as never seen"
    ledger.close()
