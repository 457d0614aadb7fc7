"""Queues by pages: what goes beyond the contract of task queues."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.labs.diverse import AT_FIRST, DiverseQueues, DiverseQueuesSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.clock import FakeClock
from gossamer.values.task import Task


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[RocksLedger]:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    yield ledger
    ledger.abandon()


def filled(ledger: RocksLedger, tasks: dict[str, int], **settings: float) -> DiverseQueues:
    queues = DiverseQueues(DiverseQueuesSheet(**settings))  # type: ignore[arg-type]
    queues.ledger, queues.behind = ledger, LedgerFrontier()
    queues.behind.ledger = ledger
    queues.clock = FakeClock()
    with ledger.group() as group:
        group.push(Task(f"http://{host}/{n}", host) for host, count in tasks.items() for n in range(count))
    return queues


def greedy(queues: DiverseQueues) -> Iterator[str]:
    """The host of each task, popped as a frontier would that stays with a host as long as it gives something."""
    idle = 0
    while len(queues):
        states = queues.admit(0.0)
        idle = 0 if states else idle + 1
        assert idle < 3, "hosts with tasks are never admitted"
        for state in states:
            while tasks := queues.pop(state.host):
                with queues.ledger.group() as group:
                    assert [group.done(task.url) for task in tasks] == [True]
                yield state.host


def test_no_host_has_more_than_its_share_of_a_page_while_others_have_tasks(ledger: RocksLedger) -> None:
    tasks = {"big.test": 400, **{f"h{n}.test": 40 for n in range(20)}}
    hosts = list(greedy(filled(ledger, tasks, page=100, threshold=0.1)))
    assert Counter(hosts) == tasks
    for start in range(0, 800, 100):
        assert max(Counter(hosts[start : start + 100]).values()) <= 10
    assert set(hosts[-300:]) == {"big.test"}, "what is left of one host comes in the end"


def test_nothing_is_lost_where_few_hosts_are_held_behind(tmp_path: Path) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path), held=3, turn=5, buffered=4, refill=2))
    ledger.open()
    tasks = {"big.test": 60, **{f"h{n}.test": n for n in range(1, 15)}}
    assert Counter(greedy(filled(ledger, tasks, page=20, threshold=0.2))) == tasks
    ledger.abandon()


def test_without_a_threshold_it_is_tuned_so_that_a_host_comes_once_a_second(ledger: RocksLedger) -> None:
    queues = filled(ledger, {f"h{n}.test": 100 for n in range(30)}, page=200)
    assert queues.threshold == AT_FIRST
    clock = queues.clock
    assert isinstance(clock, FakeClock)
    for number, _ in enumerate(greedy(queues)):
        if number % 20 == 0:
            asyncio.run(clock.advance(1.0))
        if number == 1_000:
            break
    assert queues.threshold == pytest.approx(1 / 20, rel=0.05)


def test_a_crawl_of_one_host_does_not_wait_for_others(ledger: RocksLedger) -> None:
    queues = filled(ledger, {"a.test": 50}, page=10, threshold=0.1)
    [state] = queues.admit(0.0)
    assert [len(queues.pop(state.host)) for _ in range(51)] == [1] * 50 + [0]


def test_when_all_have_had_their_shares_the_frontier_is_told_to_come_again(ledger: RocksLedger) -> None:
    queues = filled(ledger, {"a.test": 5, "b.test": 5}, page=10, threshold=0.1)
    for state in queues.admit(0.0):
        assert len(queues.pop(state.host)) == 1
    assert queues.next_due() == float("inf")
    assert queues.pop("a.test") == queues.pop("b.test") == []
    assert queues.next_due() == 0.0
    assert {state.host for state in queues.admit(0.0)} == {"a.test", "b.test"}
    assert queues.next_due() == float("inf")


def test_hosts_come_in_the_even_order_of_the_seeds_example(ledger: RocksLedger) -> None:
    queues = filled(ledger, {"1.test": 7, "2.test": 5, "3.test": 4, "4.test": 3, "5.test": 1}, page=20, threshold=1.0)
    order = [host.partition(".")[0] for host in greedy(queues)]
    assert " ".join(order) == "1 2 3 1 4 2 1 3 5 1 2 1 3 4 1 2 4 1 3 2"


def test_a_host_that_waits_for_politeness_keeps_nobody_waiting(ledger: RocksLedger) -> None:
    queues = filled(ledger, {"slow.test": 5, "a.test": 2, "b.test": 2}, page=9, threshold=1.0)
    others: list[str] = []
    for _ in range(20):
        for state in queues.admit(0.0):
            if state.host != "slow.test":
                while tasks := queues.pop(state.host):
                    others += [task.host for task in tasks]
    assert Counter(others) == {"a.test": 2, "b.test": 2}
    assert len(queues.pop("slow.test")) == 1, "it is held, and may have its task when its delay is over"


@pytest.mark.parametrize(("tasks", "rate"), [(100, 10), (1_000, 50), (10_000, 100)])
def test_tuned_to_the_pace_no_host_comes_twice_in_a_second(ledger: RocksLedger, tasks: int, rate: int) -> None:
    """Ridgway 2010, table 2: so many URLs at so many a second, of as many domains as are asked in a second."""
    queues = filled(ledger, {f"h{n}.test": tasks // rate for n in range(rate)})
    clock = queues.clock
    assert isinstance(clock, FakeClock)
    hosts = []
    for host in greedy(queues):
        hosts.append(host)
        if len(hosts) % rate == 0:
            asyncio.run(clock.advance(1.0))
    seconds = [hosts[at : at + rate] for at in range(0, tasks, rate)]
    assert len(hosts) == tasks
    assert max(max(Counter(second).values()) for second in seconds) == 1
