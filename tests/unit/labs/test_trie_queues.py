"""The trie as the queue of a crawl: turns at every branch, and what the ledger promises holds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.labs.trie.queues import TrieQueues, TrieQueuesSheet, segments_of
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.values.task import Task


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[RocksLedger]:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    yield ledger
    ledger.abandon()


def queues(ledger: RocksLedger, *paths: str, **settings: int) -> TrieQueues:
    made = TrieQueues(TrieQueuesSheet(**settings))
    behind = LedgerFrontier()
    behind.ledger = ledger
    made.behind = behind
    with ledger.group() as group:
        group.push(Task(f"http://a.test{path}", "a.test") for path in paths)
    return made


def popped(made: TrieQueues, most: int = 1) -> list[str]:
    return [task.url.removeprefix("http://a.test") for task in made.pop("a.test", most)]


def test_each_branch_has_its_turn_before_one_of_them_comes_again(ledger: RocksLedger) -> None:
    made = queues(ledger, "/blog/1", "/blog/2", "/blog/3", "/shop/a/1", "/shop/a/2", "/shop/b/1", "/about")
    assert [state.host for state in made.admit(0.0)] == ["a.test"]
    order = [path for _ in range(7) for path in popped(made)]
    assert order[:3] == ["/blog/1", "/shop/a/1", "/about"]
    assert order[3:5] == ["/blog/2", "/shop/b/1"]
    assert order[5:] == ["/blog/3", "/shop/a/2"]
    assert popped(made) == []


def test_a_task_that_is_put_back_comes_next_and_one_of_a_host_that_rests_is_kept(ledger: RocksLedger) -> None:
    made = queues(ledger, "/a/1", "/b/1", "/c/1")
    made.admit(0.0)
    [task] = made.pop("a.test")
    made.put_back(task)
    assert len(made) == 3
    assert popped(made) == ["/a/1"]
    made.rest("a.test", 60.0)
    assert len(made) == 2
    with ledger.group() as group:
        assert group.done("http://a.test/a/1")
    assert made.admit(0.0) == []
    assert [state.host for state in made.admit(61.0)] == ["a.test"]
    assert sorted(popped(made, 9)) == ["/b/1", "/c/1"]


def test_a_kill_brings_back_what_took_turns(tmp_path: Path) -> None:
    for left in (4, 3):
        ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
        ledger.open()
        made = queues(ledger, *(f"/{name}" for name in "wxyz" if left == 4))
        made.admit(0.0)
        found = popped(made, 9)
        assert len(found) == left
        with ledger.group() as group:
            assert group.done(f"http://a.test{found[0]}")
        ledger.abandon()


def test_memory_is_bounded_whatever_hosts_have(ledger: RocksLedger) -> None:
    made = queues(ledger, *(f"/{number}" for number in range(50)), window=40, tasks=10)
    made.admit(0.0)
    seen = [path for _ in range(50) for path in popped(made) if made.metrics.snapshot()["taking_turns"] <= 10]
    assert sorted(seen) == sorted(f"/{number}" for number in range(50))


@pytest.mark.parametrize(
    ("url", "segments"),
    [
        ("http://a.test/", [""]),
        ("http://a.test/b/c?d=/e", ["b", "c", "?d=/e"]),
        ("http://a.test", [""]),
        ("http://a.test/b//", ["b", "", ""]),
    ],
)
def test_a_url_has_a_branch_for_each_segment(url: str, segments: list[str]) -> None:
    assert segments_of(url) == segments
