"""Conformance suite for sieves of tasks: run it over an implementation of your own."""

import asyncio
import random
from collections.abc import Callable

from gossamer.contracts.ledger import Ledger
from gossamer.contracts.sieving import TaskSieve
from gossamer.model.task import Task

#: Closes what is open as a kill would, and opens it again: the ledger and its sieve. At first it opens them empty.
Reopen = Callable[[], tuple[Ledger, TaskSieve]]


class _Broken(Exception):
    """A failing stage raises this inside a group."""


def check_task_sieve(reopen: Reopen, *, urls: int = 600, seed: int = 1) -> None:
    """Check that a sieve of tasks, empty at first, keeps its promises through failing groups and kills.

    Args:
        reopen: opens the sieve, which is empty at first.
        urls: number of different URLs that are offered, more than are merged at once.
        seed: of the random order of all events.
    """
    choose = random.Random(seed)
    tasks = [
        Task(f"http://h{n % 9}.test/{n}", f"h{n % 9}.test", n, f"http://s.test/{n}", "a href") for n in range(urls)
    ]
    ledger, sieve = reopen()
    assert not len(sieve) and not sieve.ready, "an empty sieve has nothing to do"
    offered: set[str] = set()
    came_out: list[Task] = []
    while len(offered) < urls:
        batch = [tasks[int(urls * choose.random() ** 2)] for _ in range(choose.randrange(1, 40))]
        batch += [task for task in tasks if task.url not in offered][:5]
        fails = choose.random() < 0.1
        held_back = {task.url for task in batch} - set(sieve.unseen([task.url for task in batch]))
        assert held_back <= offered, "unseen held back a new URL"
        try:
            with ledger.group() as group:
                sieve.offer(batch, group)
                drained = sieve.drain(group, choose.randrange(1, 50))
                if fails:
                    raise _Broken
        except _Broken:
            # Whoever cannot keep a group stops, and begins again from what is kept.
            ledger, sieve = reopen()
            continue
        offered.update(task.url for task in batch)
        came_out += drained
        if choose.random() < 0.05:
            ledger, sieve = reopen()
        if choose.random() < 0.2:
            sieve.flush()
    for _ in range(2):
        came_out += _rest(ledger, sieve)
        _check(came_out, {task.url: task for task in tasks})
        ledger, sieve = reopen()
        with ledger.group() as group:
            sieve.offer(tasks, group)
    assert _rest(ledger, sieve) == [], "a URL came out twice"


def _rest(ledger: Ledger, sieve: TaskSieve) -> list[Task]:
    """Return all tasks that the sieve still holds."""
    rest: list[Task] = []
    while len(sieve):
        sieve.flush()
        asyncio.run(sieve.merged())
        with ledger.group() as group:
            rest += sieve.drain(group, 100)
    return rest


def _check(came_out: list[Task], by_url: dict[str, Task]) -> None:
    urls = [task.url for task in came_out]
    assert len(set(urls)) == len(urls), "a URL came out twice"
    assert set(urls) == set(by_url), "a new URL never came out"
    assert all(by_url[task.url] == task for task in came_out), "a task came out changed"
