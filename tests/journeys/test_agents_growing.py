"""A crawl that one process begins, and that others join while it runs: by the rule, or because a person says so."""

import asyncio
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journeys.test_agents import options_for, seed_of, urls_in, web_of_hosts
from tests.waiting import awaited, until

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.joining import Growth, Load
from gossamer.analysis.verifying import verify
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Change, CheckChange, Pause, Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import RequestRefused
from gossamer.crawls.summary import Summary
from gossamer.engine import processes
from gossamer.storage.members import members_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

HOSTS, PAGES = 10, 24


class After(Growth):
    """Wants two agents as soon as something has happened."""

    def __init__(self, happened: Callable[[], bool]) -> None:
        super().__init__()
        self._happened = happened
        self.asked: list[Load] = []

    def hear(self, now: float, agents: int, most: int, load: Load) -> int:
        self.asked.append(load)
        return 2 if self._happened() else 1


def check_whole(web: FakeWeb, directory: Path) -> None:
    asked = Counter(request.host + request.target for request in web.requests if request.target != "/robots.txt")
    assert len(asked) == HOSTS * PAGES
    assert set(asked.values()) == {1}, "each page was asked for once"
    assert set(urls_in(directory / "logs/crawl.jsonl").values()) == {1}
    assert verify(directory, deep=True).findings == []


def stood(directory: Path) -> CrawlStanding:
    with Control(directory) as control:
        return control.told(Status(), CrawlStanding)  # type: ignore[no-any-return]


def test_another_agent_joins_when_one_core_is_too_little(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    told: list[str] = []
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        rule = After(lambda: len(web.requests) > 60)
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory), report=told.append, growth=rule)

        async def crawled() -> tuple[CrawlStanding, Summary]:
            async with asyncio.timeout(HUNG_AFTER):
                running = asyncio.create_task(job.run())
                await awaited(lambda: bool(members_of(directory)))
                between = await asyncio.to_thread(stood, directory)  # commands wait while the crawl changes hands
                return between, await running

        between, summary = asyncio.run(crawled())
        check_whole(web, directory)
    assert (summary.state, summary.pages, summary.queued) == ("finished", HOSTS * PAGES, 0)
    assert between.pages >= 40, "nobody sees it begin at nothing"
    assert summary.pages_per_second == pytest.approx(HOSTS * PAGES / summary.seconds, rel=0.01), "it was one run"
    assert any("agent-01 joined and took" in line for line in told)
    assert members_of(directory) == ("agent-00", "agent-01")
    assert rule.asked


def test_a_person_lets_others_join_and_a_pause_outlives_it(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, max_agents=1, concurrency=6))

        def grown() -> CrawlStanding | None:
            now = stood(directory) if members_of(directory) else None
            return now if now is not None and now.agents == 2 else None

        def steer() -> CrawlStanding:
            with Control(directory) as control:
                assert control.told(Status(), CrawlStanding).alone == "no more are allowed"
                with pytest.raises(RequestRefused, match="cannot be divided among 8 agents"):
                    control.ask(CheckChange({"agents": "8"}))
                control.ask(Pause())
                control.ask(Change({"agents": "2"}))
            return until(grown)

        async def crawled() -> CrawlStanding:
            async with asyncio.timeout(HUNG_AFTER):
                running = asyncio.create_task(job.run())
                await awaited(lambda: len(web.requests) > 60)
                now = await asyncio.to_thread(steer)
                job.stop()
                assert (await running).exit_code == 3
                return now

        now = asyncio.run(crawled())
        assert now.state == "paused"
        assert now.limits == {}
    assert "max_agents = 2" in (directory / "crawl.toml").read_text(), "it stays as many as a person has said"


@pytest.mark.long
@pytest.mark.parametrize(
    "crash",
    ["joining:1", "joining:3", "resting"],
)
def test_a_crawl_that_is_killed_while_it_is_divided_goes_on_whole(crash: str, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        given = ["--scope", "any", "--delay", "0", "--resolve", web.resolve, "--allow-network", "127.0.0.0/8"]
        line = processes.command("gossamer", "crawl", seed_of(web), *given, "--traps", "report", "-o", str(directory))
        at = {} if crash == "resting" else {"GOSSAMER_CRASH": crash}
        crawl = subprocess.Popen(line, env={**processes.environment(), **at}, stderr=subprocess.DEVNULL)
        web.wait_for(60)
        with Control(directory) as control:
            control.ask(Change({"agents": "2"}))
        if crash == "resting":
            os.kill(crawl.pid, signal.SIGKILL)
        assert crawl.wait(HUNG_AFTER) == -signal.SIGKILL
        again = processes.command("gossamer", "resume", str(directory), "--agents", "2")
        done = subprocess.run(
            again, env=processes.environment(), capture_output=True, text=True, timeout=HUNG_AFTER, check=False
        )
        assert done.returncode == 0, done.stderr
        asked = Counter(request.host + request.target for request in web.requests if request.target != "/robots.txt")
    assert len(asked) == HOSTS * PAGES
    assert sum(asked.values()) <= HOSTS * PAGES + (64 if crash == "resting" else 0), "nothing was in flight"
    assert set(urls_in(directory / "logs/crawl.jsonl").values()) == {1}
    assert verify(directory, deep=True).findings == []


@pytest.mark.long
def test_a_crawl_that_cannot_be_divided_says_so_and_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    with web_of_hosts(pages=6, latency=0.1) as web:
        options = options_for(web, tmp_path / "crawl", strategy="random-walk", max_pages=100, concurrency=4)
        job = SupervisedCrawl([seed_of(web)], options, report=told.append, growth=After(lambda: True))
        summary = asyncio.run(job.run())
    assert summary.state == "limit"
    [line] = [line for line in told if "the processor is busy" in line]
    assert "a random walk" in line
    assert not members_of(tmp_path / "crawl")
