"""Agents join and leave while a crawl runs, as people say, or stop one by hand: nothing is lost, nothing is fetched twice."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journeys.test_agents import crawled, options_for, seed_of, urls_in, web_of_hosts
from tests.sampling import sampled
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.analysis.verifying import verify
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Change, Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import RequestRefused
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions
from gossamer.storage.members import members_of
from gossamer.testing.fakeweb import FakeWeb

HOSTS, PAGES = 10, 24


def pages_asked(web: FakeWeb) -> Counter[str]:
    return Counter(request.host + request.target for request in web.requests if request.target != "/robots.txt")


def check_whole(asked: Counter[str], directory: Path) -> None:
    assert len(asked) == HOSTS * PAGES
    assert set(asked.values()) == {1}, "each page was asked for once"
    assert set(urls_in(directory / "logs/crawl.jsonl").values()) == {1}
    assert verify(directory, deep=True).findings == []


def test_agents_join_and_leave_while_the_crawl_runs(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    told: list[str] = []
    now: list[CrawlStanding] = []

    def ask(agents: int) -> None:
        with Control(directory) as control:
            control.ask(Change({"agents": str(agents)}))

    def ask_for_few_requests() -> None:
        with Control(directory) as control, pytest.raises(RequestRefused, match="1 cannot be divided among 2 agents"):
            control.ask(Change({"concurrency": "1"}))

    def look() -> None:
        with Control(directory) as control:
            now.append(control.told(Status(), CrawlStanding))

    with web_of_hosts(pages=PAGES, latency=0.15) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2, concurrency=6), report=told.append)

        async def change(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.has_begun)
            await asyncio.to_thread(ask_for_few_requests)
            for number in (3, 1):
                seen = len(web.requests)
                await awaited(lambda seen=seen: len(web.requests) > seen + 20)
                await asyncio.to_thread(ask, number)
                await awaited(lambda number=number: len(job.several.supervisor.agents) == number)
                await awaited(lambda: all(agent.news is not None for agent in job.several.supervisor.agents.values()))
            with pytest.raises(RequestRefused, match="cannot be divided among 8 agents"):
                await asyncio.to_thread(ask, 8)
            await asyncio.to_thread(look)

        summary = asyncio.run(crawled(job, change))
        asked = pages_asked(web)
    assert (summary.state, summary.pages) == ("finished", HOSTS * PAGES)
    assert members_of(directory) == ("agent-00", "agent-01=0", "agent-02=0")
    assert any("agent-02 joined and took" in line for line in told)
    assert any("agent-01 and agent-02 left and gave away" in line for line in told)
    assert now[0].pages >= 40, "those of the agents that left count"
    check_whole(asked, directory)


@pytest.mark.long
@pytest.mark.parametrize("end", sampled([SupervisedCrawl.stop, SupervisedCrawl.abort], 2))
def test_a_crawl_that_ends_while_its_agents_begin_again_is_kept(
    end: Callable[[SupervisedCrawl], None], tmp_path: Path
) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2))

        async def change(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 30)
            job.several.roster.want(job.several.graph, 3)
            job.several.rest()
            await awaited(lambda: len(job.several.supervisor.agents) == 3)
            assert job.several.has_begun and not job.several.supervisor.has_begun, (
                "the new supervisor has not heard of anybody"
            )
            end(job)

        summary = asyncio.run(crawled(job, change))
        assert (summary.state, (directory / "crawl.toml").exists()) == ("stopped", True)
        before, kept = pages_asked(web), urls_in(directory / "logs/crawl.jsonl").keys()
        web.requests.clear()
        job = SupervisedCrawl([], options_for(web, directory, resume=True))
        summary = asyncio.run(job.run())
        after = pages_asked(web)
    assert (summary.state, summary.pages, len(job.several.roster.members)) == ("finished", HOSTS * PAGES, 3)
    # An abort cuts off what agents that had just begun had in flight before they heard of it: that is asked for again.
    cut = {page for page in before if f"http://{page}" not in kept}
    assert len(cut) <= (CrawlOptions().concurrency if end is SupervisedCrawl.abort else 0)
    assert (before & after).keys() == cut
    check_whole(before + after - Counter(cut), directory)


def test_an_agent_that_is_stopped_by_hand_leaves_and_others_get_its_hosts(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    told: list[str] = []
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), report=told.append)

        async def stop(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 30)
            process = job.several.supervisor.agents["agent-00"].placed
            assert process is not None
            os.kill(process.number, signal.SIGTERM)

        summary = asyncio.run(crawled(job, stop))
        asked = pages_asked(web)
    assert (summary.state, summary.pages) == ("finished", HOSTS * PAGES)
    assert members_of(directory) == ("agent-00=0", "agent-01")
    assert any("agent-00 was stopped; the other agents get its hosts" in line for line in told)
    check_whole(asked, directory)


@pytest.mark.long
@pytest.mark.parametrize("agents", [1, 2, 3, 5])
def test_the_pages_are_those_of_one_agent_with_kills_joins_and_leaves(tmp_path: Path, agents: int) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        alone = run(Crawl([seed_of(web)], options_for(web, tmp_path / "one"), tables=False))
        expected = set(urls_in(tmp_path / "one/logs/crawl.jsonl"))
        web.requests.clear()
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=agents), report=lambda line: None)

        async def disturb(job: SupervisedCrawl) -> None:
            if agents == 1:
                await awaited(lambda: len(web.requests) > 20)
                job.others.resize(2)
                await awaited(lambda: job.lone is None and job.several.has_begun)
            for number in (agents % 5 + 1, agents):
                seen = len(web.requests)
                await awaited(lambda seen=seen: len(web.requests) > seen + 20)
                victim = next(agent for agent in job.several.supervisor.agents.values() if agent.has_worked)
                deaths = job.several.supervisor.restarts
                victim.kill()
                await awaited(lambda deaths=deaths: job.several.supervisor.restarts > deaths)
                await awaited(lambda: all(agent.news is not None for agent in job.several.supervisor.agents.values()))
                job.others.resize(number)
                await awaited(lambda number=number: len(job.several.supervisor.agents) == number)
                await awaited(lambda: all(agent.news is not None for agent in job.several.supervisor.agents.values()))

        summary = asyncio.run(crawled(job, disturb))
        again = pages_asked(web)
    assert (summary.state, summary.pages) == ("finished", alone.pages)
    assert set(urls_in(directory / "logs/crawl.jsonl")) == expected
    # A kill takes what one agent had in flight, and nothing else is asked for twice.
    assert sum(count - 1 for count in again.values()) <= 2 * CrawlOptions().concurrency
    assert verify(directory, deep=True).findings == []
