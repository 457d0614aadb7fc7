"""Rates of a whole crawl of several agents: kept by all together, used by whoever has work, and remembered."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.test_agents import crawled, options_for
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.testing.fakeweb import FakePage, FakeWeb, html

PAGES = 1_500

SEED = "http://www.h0.test/"

#: Bytes of a page, without its links.
SIZE = 20_000


def shares_of(job: SupervisedCrawl, rate: str) -> Mapping[str, float]:
    """Agent -> its share, by what it has said last."""
    if job.several._supervisor is None:
        return {}
    news = [agent.news for agent in job.several.supervisor.agents.values() if agent.news is not None]
    return {one.report.agent: one.rates[rate].share for one in news if rate in one.rates}


def web_of_one_host() -> FakeWeb:
    """One site, so that one of two agents has nothing to do."""
    pages = {f"http://www.h0.test/p{number}": FakePage(html(str(number), []) + " " * SIZE) for number in range(PAGES)}
    pages[SEED] = FakePage(html("all", [f"/p{number}" for number in range(PAGES)]))
    return FakeWeb(pages)


@pytest.mark.parametrize(
    ("rate", "value"), [("bandwidth", 3_000_000), pytest.param("rate", 150, marks=pytest.mark.long)]
)
def test_a_busy_agent_uses_what_an_idle_one_leaves_and_keeps_it_for_the_next_run(
    tmp_path: Path, rate: str, value: float
) -> None:
    given: dict[str, Any] = {rate: value, "concurrency": 8}
    seen: list[Mapping[str, float]] = []

    async def until_it_is_lent(job: SupervisedCrawl) -> None:
        await awaited(lambda: max(shares_of(job, rate).values(), default=0.0) > 1.5)
        job.stop()

    async def look(job: SupervisedCrawl) -> None:
        await awaited(lambda: len(shares_of(job, rate)) == 2)
        seen.append(shares_of(job, rate))
        job.stop()

    with web_of_one_host() as web:
        began = time.monotonic()
        job = SupervisedCrawl([web.url(SEED)], options_for(web, tmp_path / "crawl", agents=2, **given), tables=False)
        summary = asyncio.run(crawled(job, until_it_is_lent))
        seconds = time.monotonic() - began
        used = summary.bytes if rate == "bandwidth" else summary.fetched
        # Each agent may have saved a tenth of a second, and what is in flight at first is booked, and not known.
        assert used <= value * (seconds + 0.2) + 8 * (SIZE if rate == "bandwidth" else 1)
        again = SupervisedCrawl([], options_for(web, tmp_path / "crawl", resume=True, **given), tables=False)
        asyncio.run(crawled(again, look))
    assert sorted(seen[0].values())[1] > 1.5, "it begins with what it was lent"
    assert sum(seen[0].values()) <= 2.0 + 1e-6


def test_agents_pass_the_limit_of_bytes_only_by_what_is_in_flight_however_the_work_is_divided(tmp_path: Path) -> None:
    limit, concurrency = 1_000_000, 8
    with web_of_one_host() as web:
        given = options_for(web, tmp_path / "crawl", agents=2, max_bytes=limit, concurrency=concurrency)
        summary = asyncio.run(crawled(SupervisedCrawl([web.url(SEED)], given, tables=False)))
        assert (summary.state, summary.limit) == ("limit", "max_bytes")
        assert limit <= summary.bytes <= limit + concurrency * 2 * SIZE
