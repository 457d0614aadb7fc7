"""An agent that stands still holds up nobody else, learns what it has missed when it goes on, and begins again when it does not."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.test_agents import HOSTS, PAGES, crawled, options_for, seed_of, urls_in, web_of_hosts
from tests.journeys.test_agents_steered import asked
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.supervised import SupervisedProcess
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Change, Continue, Pause, ReadUnit
from gossamer.crawls.control.picture import UnitInstances
from gossamer.crawls.control.standing import SILENT
from gossamer.values.agents import at_work


def process_number(agent: SupervisedProcess) -> int:
    assert agent.placed is not None
    return agent.placed.number


async def both_at_work(job: SupervisedCrawl) -> None:
    await awaited(lambda: job.several._supervisor is not None)
    await awaited(lambda: all(agent.has_worked for agent in job.several.supervisor.agents.values()))


async def settings_of(directory: Path, unit: str) -> dict[str, Any]:
    def ask() -> UnitInstances:
        with Control(directory) as control:
            return control.told(ReadUnit(unit), UnitInstances)

    return {one.agent: one.settings for one in (await asyncio.to_thread(ask)).instances}


def test_an_agent_that_stood_still_learns_what_it_has_missed_without_beginning_again(tmp_path: Path) -> None:
    with web_of_hosts(pages=2 * PAGES, latency=0.05) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, tmp_path / "crawl", agents=2), tables=False)

        async def meanwhile(job: SupervisedCrawl) -> None:
            await both_at_work(job)
            still, other = job.several.supervisor.agents.values()
            os.kill(process_number(still), signal.SIGSTOP)
            try:
                await awaited(lambda: still.is_late)
                before = other.news.report.commits if other.news else 0
                await asked(tmp_path / "crawl", Change({"frontier.linger": "7s"}))
                await asked(tmp_path / "crawl", Pause())
                await asked(tmp_path / "crawl", Continue())
                await awaited(lambda: other.news is not None and other.news.report.commits > before)
            finally:
                os.kill(process_number(still), signal.SIGCONT)
            await awaited(lambda: still.edition == other.edition == 1)
            told = await settings_of(tmp_path / "crawl", "frontier")
            assert {one["linger"] for one in told.values()} == {7.0} and len(told) == 2

        summary = asyncio.run(crawled(job, meanwhile))
        assert (summary.state, summary.pages) == ("finished", 2 * HOSTS * PAGES)
        assert job.several.supervisor.restarts == 0
        assert len(web.requests) == 2 * HOSTS * PAGES, "nothing was fetched twice"


def test_an_agent_that_stays_silent_is_told_of_and_begins_again(tmp_path: Path) -> None:
    with web_of_hosts(pages=2 * PAGES, latency=0.05) as web:
        options = options_for(web, tmp_path / "crawl", agents=2)
        settings = {"frontier": {"silence": 6.0}}
        lines: list[str] = []
        job = SupervisedCrawl([seed_of(web)], options, settings=settings, report=lines.append, tables=False)

        async def meanwhile(job: SupervisedCrawl) -> None:
            await both_at_work(job)
            still = next(iter(job.several.supervisor.agents.values()))
            os.kill(process_number(still), signal.SIGSTOP)
            await awaited(lambda: still.beat.is_silent)
            standing = await job.several.standing(units=False)
            silent, well = sorted(standing.each_agent, key=lambda one: one.state != SILENT)
            assert (silent.name, silent.state, silent.silences) == (still.name, SILENT, 1)
            assert silent.silent_seconds >= 5 and not well.silent_seconds
            assert "silent" in [problem.what for problem in standing.problems]
            await awaited(lambda: job.several.supervisor.restarts == 1 and still.news is not None)

        summary = asyncio.run(crawled(job, meanwhile))
        assert (summary.state, summary.pages) == ("finished", 2 * HOSTS * PAGES)
        assert [line for line in lines if "is silent" in line and "started again" in line]
        assert [line for line in lines if "died (killed by signal 9); it is started again" in line]
    assert set(urls_in(tmp_path / "crawl/logs/crawl.jsonl").values()) == {1}, "no page is committed twice"


@pytest.mark.long
def test_a_master_that_stays_silent_begins_again(tmp_path: Path) -> None:
    with web_of_hosts(pages=2 * PAGES, latency=0.05) as web:
        options = options_for(web, tmp_path / "crawl", agents=2, designation="master")
        job = SupervisedCrawl([seed_of(web)], options, settings={"frontier": {"silence": 6.0}}, tables=False)

        async def meanwhile(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 20)
            [master] = job.several.supervisor.masters.values()
            os.kill(process_number(master), signal.SIGSTOP)
            await awaited(lambda: master.restarts.count == 1 and master.news is not None)
            assert master.beat.silences == 1

        summary = asyncio.run(crawled(job, meanwhile))
        assert (summary.state, summary.pages) == ("finished", 2 * HOSTS * PAGES)
        assert at_work(job.several.roster.members) == ("agent-00", "agent-01")
