"""Checkpoints and changes of the graph while several agents work: no URL is lost, and nothing is half done."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.test_agents import crawled, options_for, seed_of, urls_in, web_of_hosts
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.handing_over import forget_note
from gossamer.analysis.verifying import verify
from gossamer.crawls.compiling import shipped
from gossamer.crawls.control import resting
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Change, Checkpoint, Checkpoints, CheckRewire, Decide, Rewire, Undo
from gossamer.crawls.control.wire import ControlRequest, RequestRefused
from gossamer.engine.wiring import read
from gossamer.storage.members import members_of, write_members
from gossamer.testing.fakeweb import FakeWeb

HOSTS, PAGES = 10, 24


async def asked(directory: Path, request: ControlRequest) -> Any:
    def ask() -> Any:
        with Control(directory) as control:
            return control.names(request) if isinstance(request, Checkpoints) else control.do(request)

    return await asyncio.to_thread(ask)


@pytest.mark.long
def test_a_checkpoint_of_agents_at_work_loses_no_url_when_the_crawl_goes_back_to_it(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES, latency=0.03) as web:

        async def keep(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 40)
            assert await asked(directory, Checkpoint("early")) == "checkpoint early is kept"
            with pytest.raises(RequestRefused, match="there is a checkpoint 'early' already"):
                await asked(directory, Checkpoint("early"))
            with pytest.raises(RequestRefused, match="a checkpoint cannot be called"):
                await asked(directory, Checkpoint("../up"))
            assert await asked(directory, Checkpoints()) == ["early"]
            job.stop()

        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), tables=False)
        stopped = asyncio.run(crawled(job, keep))
        assert (stopped.state, resting.checkpoints(directory)) == ("stopped", ["early"])
        # As if one of the two had left since: the checkpoint has hosts of both.
        write_members(directory, ("agent-00", "agent-01=0"))
        resting.restore(directory, "early", forget_note)
        assert members_of(directory) == ("agent-00", "agent-01")
        web.requests.clear()
        again = SupervisedCrawl([], options_for(web, directory, resume=True), tables=False)
        summary = asyncio.run(crawled(again))
        assert summary.state == "finished"
        assert len(urls_in(directory / "logs/crawl.jsonl")) == HOSTS * PAGES
        assert len(web.requests) > HOSTS * PAGES - stopped.pages, "what came after the checkpoint is fetched again"
    assert verify(directory, deep=True).findings == []


def test_the_graph_of_agents_at_work_is_changed_and_changed_back(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    mark = "[components.tally]\nsettings = {}\n[components.process]\nworkers = 2\n"
    told: list[str] = []
    lines: list[str] = []
    with web_of_hosts(pages=PAGES, latency=0.1) as web:

        async def rewire(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 20)
            assert "'process'" in await asked(directory, CheckRewire(mark))
            with pytest.raises(RequestRefused, match="unknown"):
                await asked(directory, Rewire("[components.x]\nuse = 'no-such-thing'"))
            with pytest.raises(RequestRefused, match="nothing to undo"):
                await asked(directory, Undo())
            with pytest.raises(RequestRefused, match="nothing is set aside"):
                await asked(directory, Decide(["0123456789"]))
            for request in (Rewire(mark, "mark.toml"), Undo()):
                supervisor = job.several.supervisor
                told.append(await asked(directory, request))
                await awaited(lambda supervisor=supervisor: job.several.supervisor is not supervisor)
            await awaited(lambda: all(agent.news is not None for agent in job.several.supervisor.agents.values()))
            told.append(await asked(directory, Change({"frontier.concurrency": "40"})))
            await asked(directory, Rewire(f"[components.links]\nsettings = {{ parameters = '{tmp_path}/nowhere' }}"))

        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), report=lines.append, tables=False)
        summary = asyncio.run(crawled(job, rewire))
        assert (summary.state, summary.pages) == ("finished", HOSTS * PAGES)
        assert len(web.requests) == HOSTS * PAGES, "nothing is fetched twice"
    assert told[0].startswith("changes component 'process' (all agents rest")
    assert told[1].startswith("changes component 'process'")
    kept = read(directory / "crawl.toml").components
    assert kept["process"].workers == shipped("default").components["process"].workers
    assert kept["frontier"].settings["concurrency"] == 40
    urls = urls_in(directory / "logs/crawl.jsonl")
    assert (len(urls), max(Counter(urls).values())) == (HOSTS * PAGES, 1)
    log = [json.loads(line) for line in (directory / "logs/steering.jsonl").read_text().splitlines()]
    assert [entry["do"] for entry in log] == ["rewire", "undo", "set", "rewire"]
    [back] = [line for line in lines if "is taken back" in line]
    assert "nowhere cannot be read" in back, "no agent could begin with it"
    assert "parameters" not in kept["links"].settings
    assert log[0]["source"] == "mark.toml"
    assert "change" not in log[0], "a change may hold a password"


def test_an_agent_that_got_nothing_has_finished(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 2) as web:
        job = SupervisedCrawl([web.url("/")], options_for(web, tmp_path / "crawl", agents=2), tables=False)
        summary = asyncio.run(crawled(job))
    now = standing_at_rest(tmp_path / "crawl")
    assert (summary.state, sorted(one.pages for one in now.each_agent)) == ("finished", [0, summary.pages])
    assert [one.state for one in now.each_agent] == ["finished", "finished"]
