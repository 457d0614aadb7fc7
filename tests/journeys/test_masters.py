"""A crawl whose domains masters give away fetches what one by the ring does, whoever is killed or lost on the way."""

import asyncio
import os
import shutil
import signal
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path

import msgspec
import pytest
from tests.journeys.test_agents import (
    HOSTS,
    PAGES,
    crawled,
    options_for,
    seed_of,
    urls_in,
    web_of_hosts,
)
from tests.journeys.test_agents_joining import begun, check_whole, resumed, web
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.ended import opened_ledger
from gossamer.agents.handing_over import NOTE
from gossamer.agents.membership import designations
from gossamer.agents.ring import held_domains, let_go
from gossamer.analysis.verifying import verify
from gossamer.cli.main import main
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Assign, Checkpoint
from gossamer.crawls.control.wire import ControlRequest
from gossamer.engine.wiring import read
from gossamer.storage.ledger.moving import dropping, forget_seen
from gossamer.storage.ledger.parcels import at_once
from gossamer.storage.mailbox.shared_state import SHARED, SharedFile, count_older_mail
from gossamer.storage.members import members_of
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.testing.fakeweb import FakePage, FakeWeb, html
from gossamer.values.agents import agent_name
from gossamer.values.hosts import domain_point
from gossamer.values.task import Task
from gossamer.values.url import host_of

__all__ = ["web"]  # a fixture

LONG = pytest.mark.long


async def asked_of(directory: Path, request: ControlRequest) -> str:
    """Ask the running crawl for something to be done; returns the answer."""

    def ask() -> str:
        with Control(directory) as control:
            return control.do(request)

    return await asyncio.to_thread(ask)


def by_masters(web: FakeWeb, folder: Path, agents: int = 2, masters: int = 1, **more: object) -> SupervisedCrawl:
    options = options_for(web, folder, agents=agents, designation="master", masters=masters, **more)
    return SupervisedCrawl([seed_of(web)], options, tables=False)


@pytest.mark.parametrize(
    ("agents", "masters", "aliases"),
    [
        (3, 2, False),
        pytest.param(1, 1, False, marks=LONG),
        pytest.param(2, 1, False, marks=LONG),
        pytest.param(5, 2, False, marks=LONG),
        pytest.param(2, 2, True, marks=LONG),
        pytest.param(5, 1, True, marks=LONG),
    ],
)
def test_masters_bring_the_pages_that_the_ring_brings(agents: int, masters: int, aliases: bool, tmp_path: Path) -> None:
    aliased = range(0, HOSTS, 2) if aliases else ()
    settings = {"links": {"aliases": [f"www.h{host}.test=www.h{host + 1}.test" for host in aliased]}}
    by_master = {"agents": agents, "designation": "master", "masters": masters}
    with web_of_hosts() as web:
        for name, more in {"ring": {"agents": 2}, "masters": by_master}.items():
            options = options_for(web, tmp_path / name, **more)
            job = SupervisedCrawl([seed_of(web)], options, settings=settings if aliases else {}, tables=False)
            summary = asyncio.run(crawled(job))
            # The seed is fetched as it was given, also where its host has another name.
            there = (HOSTS - len(aliased)) * PAGES + bool(aliases)
            assert (summary.state, summary.pages, summary.queued) == ("finished", there, 0), name
    fetched = urls_in(tmp_path / "masters/logs/crawl.jsonl")
    assert fetched == urls_in(tmp_path / "ring/logs/crawl.jsonl")
    assert set(fetched.values()) == {1}
    owners = dict(designations(tmp_path / "masters"))
    assert owners.keys() == {f"h{host}.test" for host in range(HOSTS) if host == 0 or host not in aliased}
    assert len(set(owners.values())) == agents, "the least loaded agent gets a domain, so that each has some"
    for agent in map(agent_name, range(agents)):
        ours = urls_in(tmp_path / "masters/logs" / f"{agent}.jsonl")
        assert {url.split("/")[2].partition(":")[0].removeprefix("www.") for url in ours} == {
            domain for domain, owner in owners.items() if owner == agent
        }, "each page was fetched by the agent that its domain was given to"


def test_a_master_that_is_killed_and_one_that_is_lost_for_good_lose_nothing(tmp_path: Path) -> None:
    with web_of_hosts(pages=40, latency=0.03) as web:
        lines: list[str] = []
        options = options_for(web, tmp_path / "crawl", agents=2, designation="master", masters=2)
        job = SupervisedCrawl([seed_of(web)], options, report=lines.append, tables=False)

        async def kill(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several._supervisor is not None)
            masters = job.several.supervisor.masters
            for name in ("master-00", "master-01"):
                await awaited(lambda name=name: masters[name].has_worked)
                masters[name].kill()
            await awaited(lambda: all(one.restarts.count and one.is_alive for one in masters.values()))
            await awaited(lambda: masters["master-01"].news is not None and len(web.requests) > 150)
            shutil.rmtree(tmp_path / "crawl/state/master-01")
            masters["master-01"].kill()
            await awaited(lambda: masters["master-01"].is_gone)
            states = list[tuple[str, str]]()
            while states != [("master-00", "running"), ("master-01", "gone")]:  # a busy one may be late for once
                states = [(one.name, one.state) for one in (await job.several.standing(units=False)).each_master]
                await asyncio.sleep(0.01)
            agent = job.several.supervisor.agents["agent-01"]
            await awaited(lambda: agent.has_worked)
            agent.kill()

        summary = asyncio.run(crawled(job, kill))
        assert (summary.state, summary.pages, summary.queued) == ("finished", HOSTS * 40, 0)
    assert "master-01 is gone for good; its work falls to master-00" in lines
    assert sum("master-00 died (killed by signal 9); it is started again" in line for line in lines) == 1
    assert set(urls_in(tmp_path / "crawl/logs/crawl.jsonl").values()) == {1}


@pytest.mark.long
def test_what_waits_for_an_agent_that_stands_still_is_kept_by_others_that_may_die(tmp_path: Path) -> None:
    pages: dict[str, FakePage] = {}
    for host, page in product(range(HOSTS), range(40)):
        # Only pages of other hosts lead to a page, so that what is lost on its way is not found again.
        links = [f"http://www.h{(host + step) % HOSTS}.test/p{(page + more) % 40}" for step, more in ((1, 0), (3, 1))]
        pages[f"http://www.h{host}.test/p{page}"] = FakePage(html(f"{host}/{page}", links), latency=0.02)
    with FakeWeb(pages) as web:
        job = by_masters(web, tmp_path / "crawl", agents=3)

        async def stand_still(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 100)
            process = job.several.supervisor.agents["agent-01"].placed
            assert process is not None
            still = process.number
            os.kill(still, signal.SIGSTOP)
            # Its master has given what waits for it to others by then, and they have committed it.
            while not any(one.lag > 2.0 for one in (await job.several.standing(units=False)).each_master):
                await asyncio.sleep(0.05)
            for other in (job.several.supervisor.agents["agent-00"], job.several.supervisor.masters["master-00"]):
                other.kill()
            await awaited(lambda: job.several.supervisor.agents["agent-00"].restarts.count > 0)
            os.kill(still, signal.SIGCONT)

        summary = asyncio.run(crawled(job, stand_still))
        assert (summary.state, summary.pages, summary.queued) == ("finished", HOSTS * 40, 0)
    assert set(urls_in(tmp_path / "crawl/logs/crawl.jsonl").values()) == {1}


def test_domains_move_where_a_person_says_and_where_agents_leave_and_join(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, "--designation", "master", agents=3)
    before = dict(designations(directory))
    moved = next(domain for domain, agent in before.items() if agent == "agent-00")
    assert (
        main(["designations", str(directory), "--assign", f"www.{moved}=agent-01", "--assign", "new.test=agent-02"])
        == 0
    )
    assert dict(designations(directory, ["new.test", moved])) == {"new.test": "agent-02", moved: "agent-00"}
    done = resumed(directory, "--agents", "2")
    assert done.returncode == 0, done.stderr
    assert "agent-02 left and gave away" in done.stderr
    after = dict(designations(directory))
    assert after[moved] == "agent-01", "a person has said so"
    assert set(after.values()) == {"agent-00", "agent-01"}, "agent-02 has left"
    kept = {domain: agent for domain, agent in before.items() if agent != "agent-02" and domain != moved}
    assert {domain: after[domain] for domain in kept} == kept, "nothing else moves"
    check_whole(web, directory)
    assert not (directory / NOTE).exists()
    assert main(["delete", str(directory), moved]) == 0
    assert moved not in dict(designations(directory))
    path = directory / SHARED
    assert not any(moved.encode() in file.read_bytes() for file in path.parent.glob(f"{path.name}*")), (
        "no byte tells of it"
    )


@LONG
def test_a_domain_is_assigned_and_a_checkpoint_made_while_the_crawl_runs(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(pages=40, latency=0.03) as web:
        job = by_masters(web, directory, masters=2)

        async def steer(job: SupervisedCrawl) -> None:
            await awaited(lambda: len(web.requests) > 60)
            told = await asked_of(directory, Checkpoint("one"))
            assert "checkpoint one is kept" in told
            domain, agent = next(iter(designations(directory)))
            other = {"agent-00": "agent-01", "agent-01": "agent-00"}[agent]
            told = await asked_of(directory, Assign({domain: other}))
            assert f"{domain} moves to {other}" in told
            await awaited(lambda: dict(designations(directory, [domain])) == {domain: other})
            await awaited(lambda: len(web.requests) > 200)

        summary = asyncio.run(crawled(job, steer))
        assert (summary.state, summary.pages, summary.queued) == ("finished", HOSTS * 40, 0)
        assert set(urls_in(directory / "logs/crawl.jsonl").values()) == {1}
        assert main(["checkpoint", str(directory), "--restore", "one"]) == 0
        again = options_for(web, directory, resume=True)
        summary = asyncio.run(crawled(SupervisedCrawl([], again, tables=False)))
        assert (summary.state, summary.pages, summary.queued) == ("finished", HOSTS * 40, 0)


@LONG
@pytest.mark.parametrize("passing", range(1, 8))
def test_a_change_that_is_killed_is_finished_or_undone(web: FakeWeb, tmp_path: Path, passing: int) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, "--designation", "master", agents=3)
    killed = resumed(directory, "--agents", "2", crash=f"joining:{passing}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = resumed(directory, *(["--agents", "2"] if passing % 2 else []))
    assert done.returncode == 0, done.stderr
    check_whole(web, directory)
    assert not (directory / NOTE).exists()
    assert set(dict(designations(directory)).values()) <= {agent for agent in members_of(directory) if "=" not in agent}


@LONG
def test_the_part_of_a_lost_agent_is_found_again(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, "--designation", "master", agents=2)
    shutil.rmtree(directory / "state/agent-01")
    refused = resumed(directory)
    assert refused.returncode == 5
    assert "--accept-loss" in refused.stderr
    done = resumed(directory, "--accept-loss")
    assert done.returncode == 0, done.stderr
    found = urls_in(directory / "logs/crawl.jsonl")
    assert len(found) == 144, "all pages are there"
    assert verify(directory, deep=True).findings == []


@pytest.mark.long
def test_a_shared_table_that_is_anothers_is_refused_and_one_that_is_gone_is_made_again_where_a_person_says_so(
    web: FakeWeb, tmp_path: Path
) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, "--designation", "master", agents=2)
    before = {one: one.stat().st_mtime_ns for one in directory.rglob("*.toml")}
    with closing(SharedFile(directory)) as shared, shared.writing() as connection:
        connection.execute("UPDATE meta SET value = 'other' WHERE name = 'crawl'")
    foreign = resumed(directory)
    for file in (directory / SHARED).parent.glob("shared.sqlite*"):
        file.unlink()
    gone = resumed(directory)
    for refused, told in ((foreign, "belongs to another crawl (other)"), (gone, "is gone")):
        assert refused.returncode == 5
        assert told in refused.stderr
        assert refused.stderr.count("\n") == 1, refused.stderr
    assert {one: one.stat().st_mtime_ns for one in directory.rglob("*.toml")} == before, "nothing has changed"
    # URLs of one domain waited as mail, which is lost with the table.
    wiring = read(directory / CRAWL_FILE)
    with ExitStack() as stack:
        ledger = opened_ledger(directory, wiring.providers["ledger"].settings, "agent-01", stack)
        kept = held_domains(ledger)
        lost, point = kept[-1], domain_point(kept[-1])
        let_go(ledger, [lost])
        at_once(dropping(ledger, [(point, point)]))
        forget_seen(ledger, [(point, point)])
    done = resumed(directory, "--accept-loss")
    assert done.returncode == 0, done.stderr
    assert "the table of agents and their" in done.stderr
    assert "URLs that no agent has are queued again" in done.stderr
    owners = dict(designations(directory))
    assert {owners[domain] for domain in kept[:-1]} == {"agent-01"}
    assert lost in owners
    assert len(urls_in(directory / "logs/crawl.jsonl")) == 144, "all pages are there"
    assert verify(directory, deep=True).findings == []


def test_mail_that_an_older_version_has_left_is_brought_to_its_agent(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, "--designation", "master", agents=2)
    with ExitStack() as stack:
        # All that agent-01 has of one domain is a URL that a master of 0.2.0 kept for it, and that its finder owes no more.
        ledger = opened_ledger(directory, read(directory / CRAWL_FILE).providers["ledger"].settings, "agent-01", stack)
        domain = held_domains(ledger)[-1]
        let_go(ledger, [domain])
        at_once(dropping(ledger, [(domain_point(domain), domain_point(domain))]))
        forget_seen(ledger, [(domain_point(domain), domain_point(domain))])
    url = web.url(f"http://www.{domain}/p0")
    with closing(SharedFile(directory)) as shared, shared.writing() as connection:
        connection.execute("CREATE TABLE leases (master TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID")
        connection.execute("INSERT INTO leases VALUES ('master-00', 0)")
        connection.execute("CREATE TABLE mail (id INTEGER PRIMARY KEY, agent TEXT, master TEXT, task BLOB)")
        task = Task(url, host_of(url), 1, web.url("http://www.h0.test/p0"), "a href")
        connection.execute("INSERT INTO mail VALUES (1, 'agent-01', 'master-00', ?)", (msgspec.msgpack.encode(task),))
    done = resumed(directory)
    assert done.returncode == 0, done.stderr
    assert len(urls_in(directory / "logs/crawl.jsonl")) == 144, "all pages are there"
    with closing(SharedFile(directory)) as shared:
        assert count_older_mail(shared.reading) == 0
