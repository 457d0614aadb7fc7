"""Domains go from one agent to another while both fetch on: nothing is lost or fetched twice, and no host is asked too early."""

import asyncio
import json
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from tests.journeys.test_agents import crawled, options_for, seed_of, urls_in, web_of_hosts
from tests.sampling import sampled
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.handing_over import NOTE, read_moved
from gossamer.agents.joining import Balance, Load, Wish
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.errors import UsageError

HOSTS, PAGES = 10, 24
AGENTS = ("agent-00", "agent-01")


def domains_of(agent: str) -> list[str]:
    ring = RingDesignation(RingSheet(members=AGENTS))
    return [domain for host in range(HOSTS) if ring.owner(domain := f"h{host}.test") == agent]


def check_whole(web: FakeWeb, directory: Path, twice: int = 0) -> None:
    asked = Counter(request.host + request.target for request in web.requests if request.target != "/robots.txt")
    assert len(asked) == HOSTS * PAGES
    assert sum(count - 1 for count in asked.values()) <= twice, "each page was asked for once, but what a kill took"
    assert len(urls_in(directory / "logs/crawl.jsonl")) == HOSTS * PAGES
    assert verify(directory, deep=True).findings == []
    assert not (directory / NOTE).exists()


async def fetched(web: FakeWeb, more: int) -> None:
    seen = len(web.requests)
    await awaited(lambda: len(web.requests) > seen + more)


def test_domains_move_to_and_fro_while_both_agents_fetch(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    there, back = domains_of("agent-00")[:3], domains_of("agent-01")[:1]
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2))

        async def move(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.has_begun)
            await fetched(web, 40)
            moves = job.several.moves
            assert (await moves.move("agent-00", "agent-01", there)).tasks
            await fetched(web, 20)
            await moves.move("agent-01", "agent-00", [*there[:1], *back])
            with pytest.raises(UsageError, match="other domains are moving"):
                await asyncio.gather(*(moves.move("agent-00", "agent-01", [name]) for name in there[:1] * 2))

        summary = asyncio.run(crawled(job, move))
        check_whole(web, directory)
    assert (summary.state, summary.queued) == ("finished", 0)
    assert (summary.pages, summary.discovered, summary.hosts) == (HOSTS * PAGES, HOSTS * PAGES, HOSTS)
    assert read_moved(directory) == {**dict.fromkeys(there, "agent-01"), **dict.fromkeys(back, "agent-00")}


def test_a_person_gives_a_domain_to_another_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, domain = tmp_path / "crawl", domains_of("agent-00")[0]
    given = ["designations", str(directory), "--assign", f"www.{domain}=agent-01"]
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), tables=False)

        async def assign(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.has_begun)
            await fetched(web, 20)
            assert [await asyncio.to_thread(main, given) for _ in range(2)] == [0, 0]
            assert await asyncio.to_thread(main, [*given[:-1], f"{domain}=agent-07"]) == 2

        assert asyncio.run(crawled(job, assign)).state == "finished"
    told = capsys.readouterr()
    assert told.out == f"agent-01 has {domain} of agent-00 now\nnothing has to move\n"
    assert "'agent-07' is not an agent at work" in told.err
    assert main(["designations", str(directory), domain]) == 0
    assert capsys.readouterr().out == f"{domain}\tagent-01\n"
    assert main(given) == 2
    assert "only while it runs" in capsys.readouterr().err


def test_hosts_that_move_are_not_asked_too_early(tmp_path: Path) -> None:
    delay, domain = 0.4, domains_of("agent-00")[0]
    with web_of_hosts(pages=8) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, tmp_path / "crawl", agents=2, delay=delay), tables=False)

        async def move(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.has_begun)
            for number, (giver, taker) in enumerate((AGENTS, AGENTS[::-1]), 1):
                enough = 2 * number
                await awaited(lambda enough=enough: sum(domain in one.host for one in web.requests) > enough)
                await job.several.moves.move(giver, taker, [domain])

        assert asyncio.run(crawled(job, move)).state == "finished"
    rows = map(json.loads, (tmp_path / "crawl/logs/crawl.jsonl").read_text().splitlines())
    starts = sorted(
        datetime.fromisoformat(row["fetched_at"]).timestamp()
        for row in rows
        if row["event"] == "page" and domain in row["url"]
    )
    assert len(starts) == 8
    assert min(later - earlier for earlier, later in pairwise(starts)) >= 0.9 * delay


@pytest.mark.parametrize("victim", AGENTS)
@pytest.mark.parametrize("step", sampled(["take", "hold", "give", "drop"], 4))
def test_a_move_in_which_an_agent_is_killed_is_finished(tmp_path: Path, victim: str, step: str) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2))
        killed = list[str]()

        def kill(now: str) -> None:
            if now == step and not killed:
                killed.append(victim)
                job.several.supervisor.agents[victim].kill()

        async def move(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.has_begun)
            await fetched(web, 40)
            job.several.moves.before_step = kill
            await job.several.moves.move("agent-00", "agent-01", domains_of("agent-00")[:2])

        assert asyncio.run(crawled(job, move)).state == "finished"
        check_whole(web, directory, twice=64)
    assert killed


@pytest.mark.parametrize("step", sampled(["take", "give", "drop"], 3))
def test_a_move_whose_crawl_is_killed_is_finished_by_the_next_run(tmp_path: Path, step: str) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), tables=False)

        def abort(now: str) -> None:
            if now == step:
                job.abort()
                raise asyncio.CancelledError

        async def move() -> None:
            beside = asyncio.create_task(job.run())
            await awaited(lambda: job.several.has_begun)
            await fetched(web, 40)
            job.several.moves.before_step = abort
            moving = asyncio.create_task(job.several.moves.move("agent-00", "agent-01", domains_of("agent-00")[:2]))
            await beside
            await asyncio.gather(moving, return_exceptions=True)

        asyncio.run(move())
        assert (directory / NOTE).exists()
        on = SupervisedCrawl([], options_for(web, directory, resume=True, agents=3))
        assert asyncio.run(crawled(on)).state == "finished"
        check_whole(web, directory, twice=64)


class Uneven(Balance):
    """Finds one agent busy as soon as something has happened, then the other one."""

    def __init__(self, web: FakeWeb) -> None:
        super().__init__()
        self._web = web
        self.said = 0

    def hear(self, now: float, loads: dict[str, Load]) -> Wish | None:  # type: ignore[override]
        if self.said == 2 or len(self._web.requests) < 30 + 60 * self.said:
            return None
        self.said += 1
        return Wish(*AGENTS, 0.5) if self.said == 1 else Wish(*AGENTS[::-1], 0.5)


def test_domains_go_from_a_busy_agent_to_an_idle_one_and_back(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    told: list[str] = []
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), report=told.append)
        job.others.balance = Uneven(web)
        assert asyncio.run(job.run()).pages == HOSTS * PAGES
        check_whole(web, directory)
    assert any(line.startswith("agent-00 took ") and " from agent-01 in " in line for line in told), told
    assert any(line.startswith("agent-01 took ") and " from agent-00 in " in line for line in told), told


@pytest.mark.long
def test_domains_that_moved_stay_where_they_are_when_agents_join_and_go_home_when_theirs_leaves(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    domains = domains_of("agent-00")[:2]
    with web_of_hosts(pages=PAGES, latency=0.1) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2))

        async def change(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.has_begun)
            await fetched(web, 20)
            await job.several.moves.move("agent-00", "agent-01", domains)
            for number in (3, 1):
                job.others.resize(number)
                with pytest.raises(UsageError, match="all agents rest"):
                    await job.several.moves.move("agent-01", "agent-00", domains)
                await awaited(lambda number=number: len(job.several.supervisor.agents) == number)
                await awaited(lambda: all(agent.news is not None for agent in job.several.supervisor.agents.values()))
                if number == 3:
                    assert read_moved(directory) == dict.fromkeys(domains, "agent-01")
                await fetched(web, 10)

        assert asyncio.run(crawled(job, change)).state == "finished"
        check_whole(web, directory)
    assert read_moved(directory) == {}
