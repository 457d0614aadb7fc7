"""A crawl of several agents fetches what a crawl of one does, whoever is killed on the way, and ends when all of it is done."""

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.waiting import awaited, until

from gossamer.agents.cluster import living
from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.handing_over import is_moving
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.agents.supervised import MOST_VAIN
from gossamer.agents.supervisor import AgentEnded
from gossamer.analysis.removals import delete, target_of
from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.facts import HostsNow
from gossamer.crawls.control.messages import (
    BlockHosts,
    Change,
    Continue,
    Pause,
    ReadGraph,
    ReadHost,
    ReadHosts,
    SetHost,
    Status,
    Why,
)
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.wire import ControlRequest, RequestRefused
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.summary import Summary
from gossamer.engine import processes
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.sheet import build
from gossamer.engine.wiring import read
from gossamer.query.database import Database
from gossamer.simweb import ServeOptions, SimWeb, WebSpec, beside
from gossamer.simweb.audit import AuditOptions, audit
from gossamer.simweb.graph import WebGraph
from gossamer.storage.ledger.opening import ProcessLock
from gossamer.storage.members import members_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb, html
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.url import host_of

HOSTS, PAGES = 10, 12

Meanwhile = Callable[[SupervisedCrawl], Awaitable[None]]


def web_of_hosts(
    hosts: int = HOSTS, pages: int = PAGES, latency: float = 0.0, *, same: Collection[int] = ()
) -> FakeWeb:
    """Each page leads to the next one of its host and to one of another host, so that most links are another agent's.

    The hosts of these numbers have one more page each, and its bytes are the same on all of them.
    """
    chance = random.Random(5)
    found: dict[str, FakePage] = {}
    for host in range(hosts):
        for number in range(pages):
            links = [f"/p{(number + 1) % pages}"]
            other, page = chance.randrange(hosts), chance.randrange(pages)
            links += ["/same"] if host in same else []
            links += [f"http://www.h{(host + 1) % hosts}.test/p{number}", f"http://www.h{other}.test/p{page}"]
            found[f"http://www.h{host}.test/p{number}"] = FakePage(html(f"{host}/{number}", links), latency=latency)
        if host in same:
            found[f"http://www.h{host}.test/same"] = FakePage(html("same", []), latency=latency)
    return FakeWeb(found)


def options_for(web: FakeWeb, folder: Path, **more: object) -> CrawlOptions:
    given = {
        "output": str(folder),
        "scope": "any",
        "delay": 0,
        "resolve": [web.resolve],
        "allow_network": ["127.0.0.0/8"],
        "traps": "report",
        **more,
    }
    return build(all_options(), given)


def seed_of(web: FakeWeb) -> str:
    return web.url("http://www.h0.test/p0")


async def crawled(job: SupervisedCrawl, meanwhile: Meanwhile | None = None) -> Summary:
    """Run to the end; `meanwhile` runs beside it."""
    async with asyncio.timeout(HUNG_AFTER):
        beside = asyncio.create_task(meanwhile(job)) if meanwhile else None
        summary = await job.run()
        if beside is not None:
            await beside
        return summary


def urls_in(path: Path) -> Counter[str]:
    rows = map(json.loads, path.read_text().splitlines())
    return Counter(row["url"] for row in rows if row["event"] == "page" and row["outcome"] == "ok")


@pytest.mark.parametrize(
    "agents", [2, pytest.param(3, marks=pytest.mark.long), pytest.param(5, marks=pytest.mark.long)]
)
def test_several_agents_fetch_the_pages_that_one_fetches(agents: int, tmp_path: Path) -> None:
    with web_of_hosts() as web:
        alone = run(Crawl([seed_of(web)], options_for(web, tmp_path / "one"), tables=False))
        asked = Counter(web.targets())
        web.requests.clear()
        job = SupervisedCrawl([seed_of(web)], options_for(web, tmp_path / "many", agents=agents), tables=False)
        summary = asyncio.run(crawled(job))
        assert summary.state == alone.state == "finished"
        assert summary.pages == alone.pages == HOSTS * PAGES
        assert (summary.fetched, summary.hosts, summary.queued) == (alone.fetched, alone.hosts, 0)
        assert Counter(web.targets()) == asked, "each page and each robots.txt is asked for once, by one agent"
    one, many = (urls_in(tmp_path / name / "logs/crawl.jsonl") for name in ("one", "many"))
    assert many == one
    of_agents = [urls_in(path) for path in sorted((tmp_path / "many/logs").glob("agent-*.jsonl"))]
    assert len(of_agents) == agents
    assert all(of_agents), "each agent had a part"
    assert sum(of_agents, Counter()) == one
    at_rest = standing_at_rest(tmp_path / "many")
    assert (at_rest.state, at_rest.pages, at_rest.queued) == ("finished", HOSTS * PAGES, 0)


@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.long)])
def test_an_agent_that_is_killed_comes_back_and_nothing_is_lost(kills: int, tmp_path: Path) -> None:
    with web_of_hosts(pages=PAGES * kills, latency=0.02, same=range(HOSTS)) as web:
        there = HOSTS * PAGES * kills + HOSTS
        lines: list[str] = []
        options = options_for(web, tmp_path / "crawl", agents=2)
        job = SupervisedCrawl([seed_of(web)], options, report=lines.append, tables=False)

        async def kill(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several._supervisor is not None)
            for number in range(kills):
                agent = list(job.several.supervisor.agents.values())[number % 2]
                seen = len(web.requests)
                await awaited(lambda agent=agent, seen=seen: agent.has_worked and len(web.requests) > seen + 10)
                agent.kill()
                await awaited(lambda number=number: job.several.supervisor.restarts > number)

        summary = asyncio.run(crawled(job, kill))
        assert job.several.supervisor.restarts == kills
        assert sum("it is started again" in line for line in lines) == kills
        assert (summary.state, summary.pages) == ("finished", there)
        assert summary.unique_documents == there - HOSTS + 1, "no copy is missed or counted twice"
        asked = Counter(request.target + request.host for request in web.requests if request.target != "/robots.txt")
        assert len(asked) == there
        assert sum(asked.values()) - len(asked) <= kills * 32, "what was in flight is fetched again, and no more"
    assert set(urls_in(tmp_path / "crawl/logs/crawl.jsonl").values()) == {1}, "no page is committed twice"
    assert [len(those) for _, those in same_documents(tmp_path / "crawl")] == [HOSTS], "all name one first document"


def test_the_limit_of_pages_is_reached_and_never_exceeded_by_all_agents_together(tmp_path: Path) -> None:
    with web_of_hosts() as web:
        job = SupervisedCrawl(
            [seed_of(web)], options_for(web, tmp_path / "crawl", agents=2, max_pages=50), tables=False
        )
        summary = asyncio.run(crawled(job))
        assert (summary.state, summary.limit, summary.pages) == ("limit", "max_pages", 50)
        assert summary.queued
        again = options_for(web, tmp_path / "crawl", resume=True, max_pages=HOSTS * PAGES + 10)
        summary = asyncio.run(crawled(SupervisedCrawl([], again, tables=False)))
        assert (summary.state, summary.pages, summary.queued) == ("finished", HOSTS * PAGES, 0)
    assert set(urls_in(tmp_path / "crawl/logs/crawl.jsonl").values()) == {1}


def test_agents_that_are_told_to_stop_keep_what_they_have_and_the_crawl_goes_on(tmp_path: Path) -> None:
    with web_of_hosts(latency=0.05) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, tmp_path / "crawl", agents=2), tables=False)

        async def stop(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 20)
            job.stop()

        summary = asyncio.run(crawled(job, stop))
        assert (summary.state, summary.exit_code) == ("stopped", 3)
        assert 0 < summary.pages < HOSTS * PAGES
        assert standing_at_rest(tmp_path / "crawl").state == "stopped"
        with pytest.raises(UsageError, match="divided among 2 agents"):
            Crawl([], options_for(web, tmp_path / "crawl", resume=True))
        on = SupervisedCrawl([], options_for(web, tmp_path / "crawl", resume=True), tables=False)
        summary = asyncio.run(crawled(on))
        assert (summary.state, summary.pages) == ("finished", HOSTS * PAGES)
        assert len(web.requests) == HOSTS * PAGES, "what was in flight was finished"


def gossamer(*arguments: object, **variables: str) -> "subprocess.Popen[str]":
    command = processes.command("gossamer", *map(str, arguments))
    return subprocess.Popen(
        command,
        env={**processes.environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def holders(directory: Path) -> list[int]:
    """The processes that have locks of the crawl: its supervisor and its agents."""
    return [int(path.read_text()) for path in directory.glob("state/*/lock") if path.read_text().strip()]


@pytest.mark.parametrize("kills", [2, pytest.param(8, marks=pytest.mark.long)])
def test_agents_work_on_without_their_supervisor_and_the_next_one_takes_them_over(kills: int, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=PAGES * kills, latency=0.05) as web:
        given = ["--scope", "any", "--delay", 0, "--resolve", web.resolve, "--allow-network", "127.0.0.0/8"]
        # The limit is reached before all is fetched: shares that were lent must not be lent again.
        limit = HOSTS * PAGES * kills - 20
        crawl = gossamer("crawl", seed_of(web), *given, "--agents", 2, "--max-pages", limit, "-o", directory)
        agents: set[int] = set()
        for kill in range(kills):
            web.wait_for(len(web.requests) + 20)
            until(lambda: len(living(directory, ["agent-00", "agent-01"])) == 2)
            found = set(living(directory, ["agent-00", "agent-01"]).values())
            assert not kill or found == agents, "they are those of before"
            agents = found
            crawl.kill()
            crawl.communicate(timeout=HUNG_AFTER)
            web.wait_for(len(web.requests) + 10)
            assert all(map(is_alive, agents)), "they work on"
            crawl = gossamer("resume", directory, "--json")
        out, told = crawl.communicate(timeout=HUNG_AFTER)
        assert crawl.returncode == 0, told
        assert "agent-00 and agent-01 went on without a supervisor" in told
        summary = json.loads(out)
        assert (summary["state"], summary["pages"]) == ("limit", limit)
        assert len(web.requests) == limit, "nobody died who fetches"
        until(lambda: not any(map(is_alive, agents)))
    urls = urls_in(directory / "logs/crawl.jsonl")
    assert (len(urls), set(urls.values())) == (limit, {1})


def test_agents_without_a_supervisor_say_so_and_are_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=40, latency=0.1) as web:
        given = ["--scope", "any", "--delay", 0, "--resolve", web.resolve, "--allow-network", "127.0.0.0/8"]
        first = gossamer("crawl", seed_of(web), *given, "--agents", 2, "-o", directory)
        web.wait_for(20)
        agents = living(directory, ["agent-00", "agent-01"])
        first.kill()
        first.communicate(timeout=HUNG_AFTER)
        assert main(["status", str(directory)]) == 5
        assert "agent-00 and agent-01 work on; gossamer resume" in capsys.readouterr().err
        assert main(["stop", str(directory)]) == 0
        assert "agent-01, which has no supervisor: stopping" in capsys.readouterr().out
        until(lambda: not any(map(is_alive, agents.values())))
        pages = standing_at_rest(directory).pages
        assert pages == len(web.requests) < HOSTS * 40, "what was in flight is kept"


def test_agents_that_are_taken_over_with_other_settings_rest_and_begin_again(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(latency=0.05) as web:
        given = ["--scope", "any", "--delay", 0, "--resolve", web.resolve, "--allow-network", "127.0.0.0/8"]
        first = gossamer("crawl", seed_of(web), *given, "--agents", 2, "-o", directory)
        web.wait_for(20)
        before = living(directory, ["agent-00", "agent-01"])
        first.kill()
        first.communicate(timeout=HUNG_AFTER)
        second = gossamer("resume", directory, "--agents", 3, "--delay", "0.001", "--json")
        out, told = second.communicate(timeout=HUNG_AFTER)
        assert second.returncode == 0, told
        assert "agent-02 joined" in told
        assert json.loads(out)["pages"] == HOSTS * PAGES
        until(lambda: not any(map(is_alive, before.values())))  # a process may go a moment after its last word
        assert len(web.requests) == HOSTS * PAGES
    assert len(urls_in(directory / "logs/crawl.jsonl")) == HOSTS * PAGES


def test_a_crawl_has_one_supervisor(tmp_path: Path) -> None:
    with web_of_hosts(hosts=2, pages=2) as web:
        options = options_for(web, tmp_path / "crawl", agents=2)
        assert asyncio.run(crawled(SupervisedCrawl([seed_of(web)], options, tables=False))).pages == 4
        before = (tmp_path / "crawl/crawl.toml").read_bytes()
        lock = ProcessLock(tmp_path / "crawl/state/supervisor/lock")
        again = options_for(web, tmp_path / "crawl", resume=True, max_pages=100)
        with pytest.raises(CrawlDirectoryError, match=f"in use by process {os.getpid()}"):
            asyncio.run(crawled(SupervisedCrawl([], again, tables=False)))
        lock.close()
        assert (tmp_path / "crawl/crawl.toml").read_bytes() == before, "nothing has changed"


def test_an_agent_whose_files_are_another_crawls_ends_the_crawl_in_one_line(tmp_path: Path) -> None:
    with web_of_hosts(hosts=2, pages=2) as web:
        for name in ("one", "other"):
            options = options_for(web, tmp_path / name, agents=2)
            asyncio.run(crawled(SupervisedCrawl([seed_of(web)], options, tables=False)))
        shutil.rmtree(tmp_path / "one/state/agent-01")
        shutil.copytree(tmp_path / "other/state/agent-01", tmp_path / "one/state/agent-01")
        job = SupervisedCrawl([], options_for(web, tmp_path / "one", resume=True), tables=False)
        with pytest.raises(AgentEnded, match=r"agent-01 cannot run: .* belongs to another crawl") as refused:
            asyncio.run(crawled(job))
        assert refused.value.exit_code == 5
        assert not any(
            map(is_alive, (agent.placed.number for agent in job.several.supervisor.agents.values() if agent.placed))
        )


@pytest.mark.parametrize(
    ("part", "more"),
    [
        pytest.param("", {}, marks=pytest.mark.long),
        ("ledger", {}),
        pytest.param("", {"designation": "master"}, marks=pytest.mark.long),
    ],
)
def test_an_agent_that_is_lost_for_good_begins_again_and_the_others_work_on(
    part: str, more: dict[str, Any], tmp_path: Path
) -> None:
    with web_of_hosts(pages=30, latency=0.03) as web:
        lines: list[str] = []
        options = options_for(web, tmp_path / "crawl", agents=3, **more)
        settings = {"frontier": {"silence": 1.0}}
        job = SupervisedCrawl([seed_of(web)], options, settings=settings, report=lines.append)
        before = dict[str, Any]()

        async def lose(job: SupervisedCrawl) -> None:
            await losing("agent-01", web, part)(job)
            before.update((name, agent.placed) for name, agent in job.several.supervisor.agents.items())

        summary = asyncio.run(crawled(job, lose))
        assert (summary.state, summary.exit_code, summary.queued) == ("finished", 0, 0)
        after = {name: agent.placed for name, agent in job.several.supervisor.agents.items()}
        assert [name for name in after if after[name] is not before[name]] == ["agent-01"], "the others worked on"
    assert len(urls_in(tmp_path / "crawl/logs/crawl.jsonl")) == HOSTS * 30
    text = "\n".join(lines)
    assert "agent-01 has lost its ledger; if state/agent-01 is not brought back from a copy within 1 s" in text
    assert "the crawl goes on without the ledger of agent-01" in text
    assert re.search(r"agent-01 was told [1-9]\d* URLs of its domains again", text)
    assert list(members_of(tmp_path / "crawl")) == ["agent-00", "agent-01", "agent-02"]
    assert not is_moving(tmp_path / "crawl")
    assert verify(tmp_path / "crawl", deep=True).findings == []


def losing(name: str, web: FakeWeb, part: str = "", until_told: list[str] | None = None) -> Meanwhile:
    """Take an agent's folder, or a part of it, away and end its process once it has fetched something.

    It comes back as soon as these lines say that it is missed, where there are any.
    """

    async def lose(job: SupervisedCrawl) -> None:
        await awaited(lambda: job.several._supervisor is not None and job.several.supervisor.agents[name].has_worked)
        await awaited(lambda: len(web.requests) > 60)
        folder = job.directory / "state" / name / part
        job.several.supervisor.agents[name].kill()
        away = folder.rename(job.directory.parent / "away")
        if until_told is not None:
            await awaited(lambda: any(f"{name} has lost its ledger" in line for line in until_told))
            away.rename(folder)

    return lose


def test_a_folder_that_is_brought_back_in_time_costs_nothing(tmp_path: Path) -> None:
    with web_of_hosts(pages=30, latency=0.03) as web:
        lines: list[str] = []
        job = SupervisedCrawl(
            [seed_of(web)], options_for(web, tmp_path / "crawl", agents=2), report=lines.append, tables=False
        )
        summary = asyncio.run(crawled(job, losing("agent-01", web, until_told=lines)))
        assert (summary.state, summary.pages) == ("finished", HOSTS * 30)
    assert any("agent-01 has its ledger again" in line for line in lines)
    assert set(urls_in(tmp_path / "crawl/logs/crawl.jsonl").values()) == {1}


def test_a_crawl_that_cannot_find_again_what_an_agent_has_lost_is_not_whole(tmp_path: Path) -> None:
    with web_of_hosts(pages=30, latency=0.03, same=range(HOSTS)) as web:
        lines: list[str] = []
        options = options_for(web, tmp_path / "crawl", agents=2)
        settings = {"frontier": {"silence": 0.5}}
        job = SupervisedCrawl([seed_of(web)], options, settings=settings, report=lines.append, tables=False)

        async def lose(job: SupervisedCrawl) -> None:
            log = tmp_path / "crawl/logs/agent-01.jsonl"
            await awaited(lambda: log.exists() and b"/same" in log.read_bytes())
            for url, page in list(web.pages.items()):  # no page leads there any more
                web.pages[url] = msgspec.structs.replace(page, body=str(page.body).replace("/same", "/p0"))
            await losing("agent-01", web)(job)

        summary = asyncio.run(crawled(job, lose))
    assert (summary.state, summary.exit_code) == ("incomplete", 4)
    assert any("that agent-01 had fetched could not be found again, such as http://" in line for line in lines)


def test_a_crawl_of_several_agents_is_steered_as_one(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    known: dict[str, Any] = {}

    def asked(request: ControlRequest) -> Any:
        with Control(directory) as control:
            return control.told(request, CrawlStanding) if isinstance(request, Status) else control.ask(request)

    with web_of_hosts(latency=0.15) as web:

        async def steer(job: SupervisedCrawl) -> None:
            def ask(request: ControlRequest) -> "asyncio.Future[Any]":
                return asyncio.ensure_future(asyncio.to_thread(asked, request))

            await awaited(lambda: len(web.requests) > 10)
            known["running"] = await ask(Status(units=True))
            await ask(Pause())
            known["paused"] = await ask(Status())
            await ask(Change({"frontier.concurrency": "7", "max_pages": str(HOSTS * PAGES - PAGES - 5)}))
            await ask(BlockHosts(["h3.test"]))
            count = len(web.requests)
            known["why"] = await ask(Why("http://www.h0.test/p0"))
            known["graph"] = await ask(ReadGraph())
            await ask(SetHost("www.h1.test", {"max_pages": str(2 * PAGES)}))
            known["host"] = await ask(ReadHost("www.h1.test"))
            known["hosts"] = await ask(ReadHosts([f"www.h{number}.test" for number in range(HOSTS)]))
            with pytest.raises(RequestRefused, match="cannot be divided among 9 agents"):
                await ask(Change({"agents": "9"}))
            known["while paused"] = len(web.requests) - count
            await ask(Continue())

        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2), tables=False)
        summary = asyncio.run(crawled(job, steer))
    running, paused = known["running"], known["paused"]
    assert (running.state, paused.state) == ("running", "paused")
    assert running.process == os.getpid()
    assert running.pages > 0
    assert running.hosts > 1
    metrics = {unit.name: unit.metrics for unit in running.units}
    assert metrics["commit"].keys()
    assert known["while paused"] <= 1, "what was in flight when it paused"
    assert b'"is_seen":true' in bytes(known["why"].value)
    assert b'"agents":["agent-00","agent-01"]' in bytes(known["graph"].value)
    assert b'"given":{"max_pages":%d}' % (2 * PAGES) in bytes(known["host"].value), (
        "the agent that has the host answers"
    )
    now = msgspec.json.decode(bytes(known["hosts"].value), type=HostsNow).hosts
    blocked = {name: one.blocked_by for name, one in now.items()}
    assert blocked == {f"www.h{number}.test": "h3.test" if number == 3 else "" for number in range(HOSTS)}
    assert (summary.state, summary.limit, summary.pages) == ("limit", "max_pages", HOSTS * PAGES - PAGES - 5)
    log = (directory / "logs/steering.jsonl").read_text()
    assert [json.loads(line)["do"] for line in log.splitlines()] == ["pause", "set", "block", "set-host", "continue"]
    kept = read(directory / "crawl.toml")
    assert kept.components["frontier"].settings["concurrency"] == 7
    assert kept.providers["politeness"].settings["blocked"] == ["h3.test"]
    late = [one for one in web.requests if one.host.startswith("www.h3.test")]
    assert len(late) < PAGES, "a blocked host is asked for nothing more"


def test_no_host_is_asked_twice_at_once_or_too_soon_by_several_agents_with_a_kill(tmp_path: Path) -> None:
    log, delay = tmp_path / "requests.log", 0.1
    spec = WebSpec(
        seed=4, pages=80, hosts=24, size_median=1000, links=8, trap_share=0, flaky_share=0, dead_link_share=0
    )
    with beside(spec, ServeOptions(log=log)) as port:
        options = build(
            CrawlOptions,
            {
                "output": str(tmp_path / "crawl"),
                "scope": "any",
                "delay": delay,
                "domain_delay": delay,
                "resolve": [f"*.sim=127.0.0.1:{port}"],
                "allow_network": ["127.0.0.0/8"],
                "agents": 2,
            },
        )
        job = SupervisedCrawl([WebGraph(SimWeb(spec)).url(0)], options, tables=False)

        async def kill(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several._supervisor is not None)
            for agent in job.several.supervisor.agents.values():
                await awaited(lambda agent=agent: agent.has_worked)
                agent.kill()

        summary = asyncio.run(crawled(job, kill))
        assert job.several.supervisor.restarts == 2
    judged = audit(log, AuditOptions(delay=delay / 2))  # the server's clock reads late where the machine is busy
    assert (judged.host.overlapping, judged.host.below, judged.robots.breaches) == (0, 0, 0), judged.host.worst
    assert judged.domain.most_in_flight <= 4
    assert judged.robots.asked_late == 0
    assert judged.coverage.missed == 0
    assert summary.pages > 50


def same_documents(directory: Path) -> list[tuple[str, list[str]]]:
    """The URL that pages which are the same name as their first, and all of them in the order in which they were fetched."""
    with Database(directory) as database:
        rows = list(
            database.ask("SELECT url, duplicate_of FROM pages WHERE ends_with(url, '/same') ORDER BY fetched_at, url")
        )
    firsts = {str(named or url) for url, named in rows}
    return [(first, [str(url) for url, _ in rows]) for first in firsts]


def test_what_several_agents_kept_is_verified_asked_and_deleted_as_one(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    ring = RingDesignation(RingSheet(members=("agent-00", "agent-01")))
    owners = {ring.owner(f"www.h{host}.test"): host for host in range(4)}
    with web_of_hosts(hosts=4, pages=3, same=owners.values()) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, directory, agents=2))
        summary = asyncio.run(crawled(job))
        assert (summary.pages, summary.unique_documents) == (14, 13)
    assert standing_at_rest(directory).unique_documents == 13
    assert verify(directory, deep=True).findings == []
    [(first, those)] = same_documents(directory)
    assert (first, len(those)) == (those[0], 2), "the first one of all agents, and it is nobody's copy"
    with Database(directory) as database:
        question = "SELECT count(DISTINCT url), count(DISTINCT split_part(warc_file, '-', 3)) FROM pages"
        assert [tuple(row) for row in database.ask(question)] == [(14, 2)]
    for line in (directory / "logs/agent-00.jsonl", directory / "logs/agent-01.jsonl", directory / "logs/crawl.jsonl"):
        assert line.read_bytes().count(b"\n") > 3
    delete(directory, target_of(host_of(first)), 1_800_000_000.0)
    assert same_documents(directory) == [(those[1], those[1:])], "the other one is nobody's copy any more"
    for path in (directory / "logs").glob("*.jsonl"):
        rows = map(json.loads, path.read_text().splitlines())
        assert not any(f"{host_of(first)}/" in row.get("url", "") for row in rows), path
    assert verify(directory, deep=True).findings == []
    on = SupervisedCrawl([], build(all_options(), {"output": str(directory), "resume": True}), tables=False)
    summary = asyncio.run(crawled(on))
    assert (summary.pages, summary.fetched, summary.unique_documents) == (10, 14, 10), (
        "the pages of that host are gone, and nothing is asked for again"
    )


def test_verbose_says_where_the_line_of_each_url_is_when_several_agents_crawl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts() as web:
        words = ["crawl", seed_of(web), "-o", str(directory), "--scope", "any", "--delay", "0", "--agents", "2"]
        words += ["--resolve", web.resolve, "--allow-network", "127.0.0.0/8", "--contact", "me@example.org"]
        assert main([*words, "--max-pages", "9", "--verbose", "--quiet"]) == 0
    assert f"read these lines in {directory}/logs/crawl.jsonl" in capsys.readouterr().err
    assert (directory / "logs" / "crawl.jsonl").read_text(encoding="utf-8").count('"event":"page"') >= 9


@pytest.mark.long
def test_an_agent_that_dies_whenever_it_starts_is_given_up_with_a_clear_word(tmp_path: Path) -> None:
    with web_of_hosts(latency=0.5) as web:
        job = SupervisedCrawl([seed_of(web)], options_for(web, tmp_path / "crawl", agents=2), tables=False)

        async def kill(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several._supervisor is not None)
            agent = job.several.supervisor.agents["agent-01"]
            while agent.restarts.count < MOST_VAIN:
                agent.kill()
                await asyncio.sleep(0.005)

        with pytest.raises(
            ComponentFailed, match=r"agent-01 died 8 times .*; see its messages above. .* resume goes on"
        ):
            asyncio.run(crawled(job, kill))
        assert not any(agent.is_alive for agent in job.several.supervisor.agents.values())
        on = SupervisedCrawl([], options_for(web, tmp_path / "crawl", resume=True), tables=False)
        assert asyncio.run(crawled(on)).pages == HOSTS * PAGES, "what was kept is kept"


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "value"), [("max_bytes", 2_000), ("max_time", 1.5), ("until", "title matches 3/4"), ("total_time", 1.5)]
)
def test_a_limit_that_one_agent_reaches_ends_the_crawl_of_all(limit: str, value: object, tmp_path: Path) -> None:
    with web_of_hosts(latency=0.3) as web:
        job = SupervisedCrawl(
            [seed_of(web)], options_for(web, tmp_path / "crawl", agents=2, **{limit: value}), tables=False
        )
        summary = asyncio.run(crawled(job))
    assert (summary.state, summary.limit) == ("limit", limit)
    assert 0 < summary.pages < HOSTS * PAGES
    assert bool(summary.goal) == (limit == "until")
