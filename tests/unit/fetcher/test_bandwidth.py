"""The bandwidth of a crawl where its bytes come in: pieces wait, in order, and their wait is nobody's fault.

A machine under load makes transfers slower and never faster, so what is judged here is how soon bytes may come.
"""

import asyncio
import time
from typing import Any

import pytest

from gossamer.engine.unit import BURST
from gossamer.fetcher.driver import Valve
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task

SIZE = 200_000
PAGES = {f"/{number}": FakePage("x" * SIZE) for number in range(4)}


def task(url: str) -> Task:
    return Task(url, host="host")


def test_no_second_lets_more_through_than_the_rate_and_a_tenth() -> None:
    now = [0.0]
    valve: Valve[object] = Valve(100_000.0, lambda: now[0], lambda transfer: None)
    through: list[tuple[float, int]] = []
    for number in range(400):
        amount = 1000 + number * 37 % 5000
        through.append((now[0] + valve.take(amount), amount))
        now[0] += 0.004
    assert through == sorted(through, key=lambda one: one[0]), "in the order in which they came"
    for began, _ in through:
        assert sum(amount for when, amount in through if began <= when < began + 1.0) <= 100_000 * (1 + BURST) + 6000
    assert through[-1][0] < sum(amount for _, amount in through) / 100_000 + 1.0, "and nothing of it is left unused"


def test_a_valve_lets_so_many_times_the_rate_through_as_the_agent_is_lent() -> None:
    valve: Valve[object] = Valve(100_000.0, lambda: 0.0, lambda transfer: None)
    valve.lend(0.5)
    valve.take(100_000)
    assert valve.take(1) == pytest.approx(2.0 - BURST, abs=1e-3)
    valve.lend(2.0)
    valve.take(99_999)
    assert valve.take(1) == pytest.approx((2.0 - BURST) / 4 + 0.5, abs=1e-3), (
        "what is not paid for is paid at the new rate"
    )
    assert (valve.taken, valve.rate) == (200_001, 200_000.0)


@pytest.mark.parametrize("at_once", [1, 4])
def test_bodies_come_in_no_faster_than_the_bandwidth_however_large_each_is(
    run: Any, fetching: Any, at_once: int
) -> None:
    rate = 800_000.0

    async def body() -> None:
        async with FakeWeb(PAGES) as web, fetching(web, HttpSheet(bandwidth=rate)) as module:
            began, responses = time.monotonic(), []
            for first in range(0, len(PAGES), at_once):
                urls = [web.url(f"/{number}") for number in range(first, first + at_once)]
                responses += await asyncio.gather(*(module.fetch(task(url)) for url in urls))
            took = time.monotonic() - began
            assert took >= len(PAGES) * SIZE / rate - BURST - 0.1
            assert [(one.outcome, len(one.body)) for one in responses] == [(Outcome.OK, SIZE)] * len(PAGES)

    run(body())


def test_the_wait_for_the_bandwidth_is_neither_latency_nor_a_reason_to_give_up(run: Any, fetching: Any) -> None:
    sheet = HttpSheet(bandwidth=SIZE / 1.5, deadline=1.0, least_speed=SIZE, speed_window=0.5)

    async def body() -> None:
        async with FakeWeb(PAGES) as web, fetching(web, sheet) as module:
            began = time.monotonic()
            response = await module.fetch(task(web.url("/0")))
            took = time.monotonic() - began
            assert took > 1.0, "longer than the deadline, and slower than the least speed"
            assert response.outcome is Outcome.OK, response.error
            assert response.elapsed < took - 0.9

    run(body())


def test_a_transfer_that_ends_while_it_waits_for_the_bandwidth_leaves_nothing_behind(run: Any, fetching: Any) -> None:
    async def body() -> None:
        async with FakeWeb(PAGES) as web, fetching(web, HttpSheet(bandwidth=SIZE / 4.0)) as module:
            waiting = asyncio.create_task(module.fetch(task(web.url("/0"))))
            await asyncio.wait([waiting], timeout=0.3)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            # Who comes next has a handle of its own, and the turn of the piece that waited comes to nothing.
            response = await module.fetch(task(web.url("/missing")))
            assert response.status == 404
            await asyncio.sleep(0.4)

    run(body())


def test_a_body_beyond_its_cap_is_cut_there_under_a_bandwidth_too(run: Any, fetching: Any) -> None:
    async def body() -> None:
        sheet = HttpSheet(bandwidth=SIZE * 2.0, max_body=50_000)
        async with FakeWeb(PAGES) as web, fetching(web, sheet) as module:
            response = await module.fetch(task(web.url("/0")))
            assert (response.outcome, len(response.body), response.cut) == (Outcome.TRUNCATED, 50_000, "length")

    run(body())
