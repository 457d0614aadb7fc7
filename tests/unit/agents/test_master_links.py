"""An agent sends to the master that it prefers, and to another one while that one is silent."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from gossamer.agents.held_domains import MASTERS
from gossamer.agents.master_links import MasterLinks, MasterLinksSheet
from gossamer.storage.mailbox.contract import OwedTask
from gossamer.testing import FakeClock
from gossamer.values.task import Task

Run = Callable[[Coroutine[Any, Any, None]], None]


class Owed:
    """What is owed to masters, in memory. Contract: `exchanging.Owing`."""

    def __init__(self) -> None:
        self.waiting: deque[OwedTask] = deque()
        self.done: list[str] = []
        self._more = asyncio.Event()

    def owe(self, *urls: str) -> None:
        self.waiting += [OwedTask(MASTERS, Task(url, "a.test"), b"", b"") for url in urls]
        self._more.set()

    async def take(self, agent: str, most: int) -> Sequence[OwedTask]:
        while not self.waiting:
            self._more.clear()
            await self._more.wait()
        return [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        self.done += [one.task.url for one in owed]


def urls(owed: Sequence[OwedTask]) -> list[str]:
    return [one.task.url for one in owed]


async def linked(clock: FakeClock, *masters: str) -> tuple[MasterLinks, Owed]:
    links, owed = MasterLinks(MasterLinksSheet(masters=masters)), Owed()
    links.behind, links.clock = owed, clock
    await links.start()
    return links, owed


def test_what_a_silent_master_has_goes_to_another_one_until_it_is_heard_again(run: Run) -> None:
    async def check() -> None:
        clock = FakeClock()
        links, owed = await linked(clock, "master-01", "master-00")
        second = asyncio.ensure_future(links.take("master-00", 9))
        owed.owe("a", "b")
        first = await links.take("master-01", 9)
        assert urls(first) == ["a", "b"]
        await clock.advance(4.0)
        assert not second.done(), "one that may be slow is no silent one"
        owed.owe("c")
        waiting = asyncio.ensure_future(links.take("master-01", 1))
        await clock.advance(0.1)
        assert urls(await waiting) == ["c"]
        idle = asyncio.ensure_future(links.take("master-01", 1))
        await clock.advance(2.0)
        assert urls(await second) == ["a", "b", "c"], "all that the silent one has"
        owed.owe("d")
        third = await links.take("master-00", 9)
        assert urls(third) == ["d"]
        assert not idle.done()
        links.delivered(first)
        owed.owe("e")
        assert urls(await idle) == ["e"], "it is heard again, and preferred"
        links.delivered(third)
        assert owed.done == ["a", "b", "d"]
        await links.stop()

    run(check())


def test_what_is_owed_while_a_master_falls_silent_goes_to_the_other_one_whichever_comes_first(run: Run) -> None:
    async def check(turns: int) -> None:
        clock = FakeClock()
        links, owed = await linked(clock, "master-01", "master-00")
        sent: dict[str, list[str]] = {"master-00": [], "master-01": []}

        async def send(master: str) -> None:
            while True:
                sent[master] += urls(await links.take(master, 9))

        owed.owe("a")
        senders = [asyncio.ensure_future(send(master)) for master in sent]
        await clock.advance(4.9)
        assert sent == {"master-00": [], "master-01": ["a"]}
        passing = asyncio.ensure_future(clock.advance(0.2, turns=1))
        for _ in range(turns):
            await asyncio.sleep(0)
        owed.owe("b")
        await passing
        await clock.advance(0.1)
        assert sorted(sent["master-00"]) == ["a", "b"], turns
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
        await links.stop()

    for turns in range(12):
        run(check(turns))


def test_a_lone_master_is_waited_for(run: Run) -> None:
    async def check() -> None:
        clock = FakeClock()
        links, owed = await linked(clock, "master-00")
        owed.owe("a")
        await links.take("master-00", 9)
        await clock.advance(60.0)
        owed.owe("b")
        assert urls(await links.take("master-00", 9)) == ["b"]
        assert links.metrics.snapshot()["silent"] == 0
        await links.stop()

    run(check())
