"""Importance while the crawl runs: cash moves with the groups of the ledger, and decides who comes first."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.frontier.contract import LEVELS
from gossamer.labs.opic import (
    ACCOUNTS,
    SINK,
    UNIT,
    UNITS,
    Account,
    AccountState,
    OpicLedger,
    OpicQueues,
    level_of,
    unpacked,
)
from gossamer.labs.opic import given as give
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.testing.storage import visit
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Link


class Crawl:
    """A ledger with OPIC before it, crawled as a frontier would, one task at a time."""

    def __init__(self, directory: Path) -> None:
        self.store = RocksLedger(LedgerSheet(directory=str(directory)))
        self.store.open()
        self.ledger = OpicLedger()
        self.ledger.behind = self.store
        self.ledger.open()
        behind = LedgerFrontier()
        behind.ledger = self.store
        self.queues = OpicQueues()
        self.queues.behind, self.queues.ledger, self.queues.store = behind, self.ledger, self.store
        self.held: list[str] = []

    def seed(self, *urls: str) -> None:
        with self.ledger.group() as group:
            group.push(Task(url, host_of(url)) for url in group.offer(urls))

    def pop(self, chance: random.Random) -> Task | None:
        for _ in range(3):
            self.held += [state.host for state in self.queues.admit(0.0) if state.host not in self.held]
            while self.held:
                host = chance.choice(self.held)
                if tasks := self.queues.pop(host):
                    return tasks[0]
                self.held.remove(host)
        return None

    def commit(self, task: Task, links: list[str], *, fails: bool = False) -> None:
        """Keep the visit of a task whose page has these links."""
        made = msgspec.structs.replace(visit(task.url), task=task, links=tuple(map(Link, links)))
        with self.ledger.group() as group:
            new = group.offer(links)
            group.push(Task(url, host_of(url), task.depth + 1, task.url, "a href") for url in new)
            assert group.visited(made, None)
            if fails:
                raise RuntimeError("the group fails")

    def cash(self) -> int:
        """All that there is, in accounts and in the sink."""
        return sum(unpacked(value).cash for _, value in self.store.spaces.walk(ACCOUNTS)) + self.ledger.total(SINK)


def test_cash_is_neither_lost_nor_made_and_each_page_comes_once_through_kills_and_failures(tmp_path: Path) -> None:
    chance = random.Random(4)
    urls = [f"http://h{n % 7}.test/{n}" for n in range(150)]
    web = {url: chance.sample(urls, chance.randrange(12)) for url in urls}
    web[urls[0]] += urls[1:30]
    reached, front = {urls[0]}, [urls[0]]
    while front:
        new = set(web[front.pop()]) - reached
        reached |= new
        front += new
    crawl, visits = Crawl(tmp_path), Counter[str]()
    crawl.seed(urls[0])
    flying: list[Task] = []
    while (task := crawl.pop(chance)) is not None or flying:
        if task is not None:
            flying.append(task)
            if chance.random() < 0.4:
                continue
        done = flying.pop(chance.randrange(len(flying)))
        if chance.random() < 0.1:
            with pytest.raises(RuntimeError):
                crawl.commit(done, web[done.url], fails=True)
            crawl.queues.put_back(done)
        else:
            crawl.commit(done, web[done.url])
            visits[done.url] += 1
        assert crawl.cash() == UNIT * crawl.ledger.total(UNITS) == UNIT * visits.total()
        if chance.random() < 0.05:
            crawl.store.abandon()
            crawl, flying = Crawl(tmp_path), []
    assert visits == Counter(reached)
    assert len(crawl.queues) == 0 and crawl.store.queues.in_flight == 0
    assert crawl.store.counters()["discovered"] == len(reached), "who waits twice was discovered once"
    counters = crawl.store.counters()
    assert counters["moved_up"] > 10
    assert not counters.get("raised"), "pages that move up are called exceptions of the user's code"
    crawl.store.close()


def test_a_page_to_which_more_and_more_lead_overtakes_those_before_it(tmp_path: Path) -> None:
    crawl, chance = Crawl(tmp_path), random.Random(1)
    crawl.seed(*(f"http://a.test/hub{n}" for n in range(10)))
    order = []
    while (task := crawl.pop(chance)) is not None:
        order.append(task.url)
        number = task.url.rpartition("hub")[2]
        links = [f"http://a.test/{number}-{n}" for n in range(30)] + ["http://a.test/z"] if number.isdigit() else []
        crawl.commit(task, links)
    assert len(order) == 10 + 300 + 1
    assert order.index("http://a.test/z") < 20, "it was met with the others, behind thirty of the first hub"
    crawl.store.abandon()


def test_a_task_that_is_tried_again_is_not_tried_before_its_time(tmp_path: Path) -> None:
    crawl, chance = Crawl(tmp_path), random.Random(1)
    crawl.seed("http://a.test/")
    task = crawl.pop(chance)
    assert task is not None
    crawl.commit(task, ["http://a.test/slow", *(f"http://a.test/{n}" for n in range(40))])
    others = []
    slow = None
    while (task := crawl.pop(chance)) is not None:
        if task.url.endswith("slow"):
            assert slow is None, "its copies are not tried while it waits"
            slow = task
            with crawl.ledger.group() as group:
                assert group.done(task.identity)
                group.later(msgspec.structs.replace(task, attempt=2), 100.0)
        else:
            others.append(task.url)
            crawl.commit(task, ["http://a.test/slow"])
    assert len(others) == 40 and slow is not None
    assert crawl.queues.wake(99.0) == 0 and crawl.queues.wake(100.0) == 1
    again = crawl.pop(chance)
    assert again is not None and again.url == slow.url and again.attempt == 2
    crawl.store.abandon()


@given(st.integers(0, 1 << 50), st.lists(st.booleans(), max_size=40))
def test_a_visit_gives_all_it_has_and_one_unit(cash: int, visited: list[bool]) -> None:
    page = Account(cash)
    targets = [Account(7, state=AccountState.VISITED if is_visited else AccountState.QUEUED) for is_visited in visited]
    sunk = give(page, targets)
    assert page.cash == 0 and page.state == AccountState.VISITED
    assert sunk + sum(target.cash - 7 for target in targets) == cash + UNIT
    waiting = {target.cash for target in targets if target.state == AccountState.QUEUED}
    assert len(waiting) <= 1, "in equal parts"


def test_more_cash_is_never_less_urgent() -> None:
    levels = [level_of(cash) for cash in (0, 1, UNIT >> 9, UNIT >> 4, UNIT, UNIT << 2, UNIT << 4, UNIT << 30)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == LEVELS - 1 and levels[-1] == 0


def test_an_account_is_read_as_it_was_written() -> None:
    account: Any = Account(12, 3, AccountState.QUEUED, 2, 1)
    read = unpacked(account.packed())
    assert [getattr(read, name) for name in Account.__slots__] == [getattr(account, name) for name in Account.__slots__]
