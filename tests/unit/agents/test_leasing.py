"""A URL on lease is brought, or goes back to the queue; nobody but the crawler that has the lease is listened to."""

import asyncio
from typing import Any

import pytest

from gossamer.crawls.leases import LeaseUrls, LeaseUrlsSheet, TakeLeases
from gossamer.testing.clock import FakeClock
from gossamer.testing.components import Stand
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, LeasedTask, LeaseRenewal, Task
from gossamer.values.visit import Response, Visit

TASKS = [Task(f"http://h{number}.test/", f"h{number}.test") for number in range(4)]


def visit_of(task: Task) -> Visit:
    return Visit(task, Response(Outcome.OK, status=200))


def answer_to(task: Task) -> Answer:
    return Answer(task.url, task.host, Outcome.OK, 0.1)


class Keeper:
    """A keeper's side at work, with a clock that stands still."""

    def __init__(self, **settings: Any) -> None:
        self.unit = LeaseUrls(LeaseUrlsSheet(crawler="crawler-1", lease=8.0, **settings))
        self.clock = self.unit.clock = FakeClock()
        self.ended: list[tuple[str, str]] = []
        self.unit.lapsed = lambda crawler, life: self.ended.append((crawler, life))
        self.stand = Stand(self.unit)

    async def leased(self) -> list[LeasedTask]:
        return await self.stand.made("leased")

    async def returned(self) -> list[Task]:
        return await self.stand.made("returned")


def test_a_crawler_gets_urls_once_it_is_there_and_as_many_as_it_has_room_for() -> None:
    async def scene() -> None:
        keeper = Keeper(slots=2)
        async with keeper.stand as stand:
            await stand.give("tasks", *TASKS)
            assert await keeper.leased() == []
            await stand.give("renewals", LeaseRenewal("a"))
            assert await keeper.leased() == [LeasedTask(task, "a") for task in TASKS[:2]]
            await stand.give("answered", answer_to(TASKS[0]))
            await stand.give("fetched", visit_of(TASKS[0]))
            assert await stand.made("answers") == [answer_to(TASKS[0])]
            assert await stand.made("visits") == [visit_of(TASKS[0])]
            assert await keeper.leased() == [LeasedTask(TASKS[2], "a")]

    asyncio.run(scene())


def test_a_crawler_that_begins_anew_has_given_back_what_it_had() -> None:
    async def scene() -> None:
        keeper = Keeper()
        async with keeper.stand as stand:
            await stand.give("renewals", LeaseRenewal("a"))
            await stand.give("tasks", *TASKS[:2])
            await stand.give("fetched", visit_of(TASKS[0]))
            await stand.give("renewals", LeaseRenewal("b"))
            assert await keeper.returned() == [TASKS[1]]
            await stand.give("tasks", TASKS[2])
            assert (await keeper.leased())[-1] == LeasedTask(TASKS[2], "b")

    asyncio.run(scene())


def test_leases_that_nobody_renews_run_out_and_what_comes_of_them_later_is_dropped() -> None:
    async def scene() -> None:
        keeper = Keeper()
        async with keeper.stand as stand:
            await stand.give("renewals", LeaseRenewal("a"))
            await stand.give("tasks", *TASKS[:2])
            await keeper.clock.advance(7.0)
            await stand.give("renewals", LeaseRenewal("a"))
            await keeper.clock.advance(7.0)
            assert (await keeper.returned(), keeper.ended) == ([], [])
            await keeper.clock.advance(4.0)
            assert (await keeper.returned(), keeper.ended) == (TASKS[:2], [("crawler-1", "a")])
            await stand.give("answered", answer_to(TASKS[0]))
            await stand.give("fetched", visit_of(TASKS[0]))
            assert await stand.made("answers") == await stand.made("visits") == []
            assert keeper.unit.metrics.counters["late"] == 1
            await stand.give("tasks", TASKS[2])
            assert [lease.task for lease in await keeper.leased()] == TASKS[:2]  # nothing new for who is silent

    asyncio.run(scene())


@pytest.mark.parametrize("is_lost", [False, True])
def test_it_ends_when_no_tasks_come_and_none_is_on_lease(is_lost: bool) -> None:
    async def scene() -> None:
        keeper = Keeper()
        async with keeper.stand as stand:
            await stand.give("renewals", LeaseRenewal("a"))
            await stand.give("tasks", TASKS[0])
            stand.end("tasks")
            await stand.settle()
            assert not stand.connectors["leased"].ended
            if is_lost:
                await stand.give("renewals", LeaseRenewal("b"))
                assert await keeper.returned() == [TASKS[0]]
            else:
                await stand.give("fetched", visit_of(TASKS[0]))
            await stand.settle()
            assert stand.connectors["leased"].ended
            stand.end("renewals", "answered", "fetched")
            await stand.settle()
            assert stand.ended

    asyncio.run(scene())


def test_a_crawler_renews_its_leases_and_takes_none_of_the_life_before() -> None:
    async def scene() -> None:
        crawler = TakeLeases()
        clock = crawler.clock = FakeClock()
        async with Stand(crawler) as stand:
            [first] = await stand.made("renewals")
            await stand.give("leased", LeasedTask(TASKS[0], "before"), LeasedTask(TASKS[1], first.life))
            assert await stand.made("tasks") == [TASKS[1]]
            await clock.advance(crawler.sheet.renew)
            assert await stand.made("renewals") == [first]
            stand.end("leased")
            await stand.settle()
            assert stand.ended

    asyncio.run(scene())


def test_every_life_has_a_name_of_its_own() -> None:
    async def name() -> str:
        async with Stand(TakeLeases()) as stand:
            [renewal] = await stand.made("renewals")
            return str(renewal.life)

    assert asyncio.run(name()) != asyncio.run(name())
