"""Agents join and leave a crawl with a store, and are lost with their folders meanwhile: all pages are there once."""

import asyncio
import json
import os
import pathlib
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.journeys.test_agents import crawled, options_for, seed_of, web_of_hosts
from tests.stores import AGENTS, ROUND, SEVERAL, Site, check_web, on
from tests.waiting import awaited, until

from gossamer.agents.cluster import living
from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.handing_over import NOTE
from gossamer.cli.showing import rows_of
from gossamer.storage.logs import MARK
from gossamer.storage.members import members_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.agents import at_work

ALL = ("agent-00", "agent-01", "agent-02")

#: A publication that an agent makes as soon as it works is this late at least, so that an agent can be lost before it.
SLOWLY = ["--checkpoint-every", "3s"]

#: Pages that the crawl has before its agents change: by then all agents have hosts.
BEFORE = 150


def begun(one: Site, *more: str) -> "subprocess.Popen[bytes]":
    process = one.crawl("first", *more)
    until(lambda: one.pages_of_store() and sum(map(len, (one.pages("first", name) for name in logs(one)))) > BEFORE)
    return process


def logs(one: Site) -> list[str]:
    return [path.stem for path in (one.folder / "first" / "logs").glob("*.jsonl")]


def set_agents(one: Site, number: int) -> None:
    told = one.run("set", str(one.folder / "first"), f"agents={number}")
    assert told.returncode == 0, told.stderr


def have_changed(one: Site, number: int, times: int) -> bool:
    """So many agents are at work, after so many divisions."""
    state = one.folder / "first" / "state"
    try:
        is_done = json.loads((state / "division.json").read_bytes()) == times
    except FileNotFoundError:
        return False
    return is_done and not (one.folder / "first" / NOTE).exists() and len(living(one.folder / "first", ALL)) == number


def has_published(one: Site, times: int) -> bool:
    return bool(one.head("agent-00")["division"] == times)


def have_ended(job: SupervisedCrawl) -> bool:
    """All agents rest, and none of their processes is left: one that still publishes would write its folder anew."""
    supervisor = job.several.supervisor
    return supervisor.is_resting and all(agent.has_ended for agent in supervisor.agents.values())


def check_end(one: Site, name: str, process: "subprocess.Popen[bytes]") -> None:
    assert process.wait(HUNG_AFTER) == 0, one.said(name)
    check_web(one, name)
    for place in (str(one.folder / name), one.store):
        whole = one.run("verify", "--deep", place)
        assert whole.returncode == 0, whole.stdout + whole.stderr


@pytest.mark.long
@pytest.mark.parametrize("first", [1, 2])
def test_agents_join_leave_and_join_again_while_the_crawl_has_a_store(first: int, tmp_path: Path) -> None:
    with on("folder", tmp_path) as one:
        process = begun(one, *(SEVERAL if first > 1 else ()))
        for times, number in enumerate((3, 1, 2), 2):
            set_agents(one, number)
            until(partial(have_changed, one, number, times))
            until(partial(has_published, one, times))
        check_end(one, "first", process)
        assert [one.head(agent)["members"] for agent in ALL] == [["agent-00", "agent-01", "agent-02=0"]] * 3

        assert not list((tmp_path / "first" / "state").glob("*/parcels/*")), "those who took have published"


def test_a_crawl_that_its_first_agent_has_left_goes_on_elsewhere_with_what_was_set_since(tmp_path: Path) -> None:
    with on("folder", tmp_path) as one:
        process = begun(one, *SEVERAL)
        os.kill(living(tmp_path / "first", ALL)["agent-00"], signal.SIGTERM)
        until(lambda: have_changed(one, 1, 2))
        told = one.run("set", str(tmp_path / "first"), "archive.rotate_bytes=123MB")
        assert told.returncode == 0, told.stderr
        since = one.head("agent-01")["count"]
        until(lambda: one.head("agent-01")["division"] == 2 and one.head("agent-01")["count"] > since + 1)
        one.lose("first", process)
        process = one.resume("second", "--take-over")
        check_end(one, "second", process)
        assert one.head("agent-01")["members"] == ["agent-00=0", "agent-01"]
        assert "123000000" in (tmp_path / "second" / "crawl.toml").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "lost",
    [["agent-02"], ["agent-01"], ["agent-00", "agent-02"], ["agent-01", "agent-02"]],
    ids=["who took", "who gave", "the first and who took", "both"],
)
def test_agents_that_are_killed_with_their_folders_before_they_publish_what_they_gave_or_took_lose_nothing(
    lost: list[str], tmp_path: Path
) -> None:
    with on("folder", tmp_path) as one:
        process = begun(one, *SEVERAL, *SLOWLY)
        set_agents(one, 3)
        until(lambda: have_changed(one, 3, 2))
        numbers = living(tmp_path / "first", lost)
        for agent in lost:
            os.kill(numbers[agent], signal.SIGSTOP)
        assert all(one.head(agent).get("division", 0) < 2 for agent in lost), "they have published"
        for agent in lost:
            (tmp_path / "first" / "state" / agent).rename(tmp_path / f"lost-{agent}")
            os.kill(numbers[agent], signal.SIGKILL)
        check_end(one, "first", process)


@pytest.mark.parametrize("late", [MARK, NOTE], ids=["resting", "changing"])
def test_an_agent_that_loses_its_folder_while_all_rest_is_brought_back_before_agents_change(
    late: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, told, lost = tmp_path / "crawl", list[str](), tmp_path / "lost"
    replace = pathlib.Path.replace
    with web_of_hosts(pages=20, latency=0.1) as web:
        options = options_for(web, directory, agents=2, store=str(tmp_path / "store"), checkpoint_every=1.0)
        job = SupervisedCrawl([seed_of(web)], options, report=told.append)

        def lose(file: Path, target: Path) -> Path:
            if target == directory / late and not lost.exists() and have_ended(job):
                (directory / "state" / "agent-01").rename(lost)
            return replace(file, target)

        async def change(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.has_begun and len(web.requests) > 30)
            job.several.roster.want(job.several.graph, 3)
            job.several.rest()

        monkeypatch.setattr(pathlib.Path, "replace", lose)
        summary = asyncio.run(crawled(job, change))
        asked = {request.host + request.target for request in web.requests if request.target != "/robots.txt"}
    assert any("agent-01 has lost its ledger, and goes on from its last checkpoint" in line for line in told), told
    assert (summary.state, summary.pages) == ("finished", len(asked))


@pytest.mark.long
def test_an_agent_that_is_killed_while_the_store_is_away_begins_again_and_the_crawl_goes_on_when_it_is_there(
    tmp_path: Path,
) -> None:
    with on("folder", tmp_path) as one:
        process = begun(one, *SEVERAL)
        until(one.all_have_published)
        store = Path(one.store)
        away = store.rename(tmp_path / "away")
        os.kill(living(tmp_path / "first", AGENTS)["agent-01"], signal.SIGKILL)
        until(lambda: process.poll() is not None or "asking no host until it is there" in one.said("first"))
        away.rename(store)
        check_end(one, "first", process)


@pytest.mark.parametrize("is_stopped", [False, True], ids=["until it is there", "until a stop"])
def test_agents_that_rest_while_the_store_is_away_wait_with_their_change(is_stopped: bool, tmp_path: Path) -> None:
    directory, told, store, away = tmp_path / "crawl", list[str](), tmp_path / "store", tmp_path / "away"
    shown = list[str]()

    def report(line: str) -> None:
        told.append(line)
        if "all agents rest until it is there" in line:
            shown.extend(text for title, text in rows_of(job.several.glance(), 0.0) if "the store" in text)
            if is_stopped:
                job.stop()
            else:
                away.rename(store)

    with web_of_hosts(pages=40, latency=0.1) as web:
        options = options_for(web, directory, agents=2, store=str(store), checkpoint_every=1.0)
        job = SupervisedCrawl([seed_of(web)], options, report=report)

        async def change(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several.working and len(job.several.glance().stored) == len(AGENTS))
            job.several.roster.want(job.several.graph, 3)
            job.several.rest()
            store.rename(away)

        summary = asyncio.run(crawled(job, change))
        asked = {request.host + request.target for request in web.requests if request.target != "/robots.txt"}
    assert sum("all agents rest until it is there" in line for line in told) == 1, told
    assert shown == [f"{agent}: the store cannot be reached, and no host is asked until it can" for agent in AGENTS]
    if is_stopped:
        assert summary.state == "stopped"
    else:
        assert (summary.state, summary.pages) == ("finished", len(asked))


def test_a_crawl_that_goes_on_with_other_agents_while_its_store_is_away_waits_with_them(tmp_path: Path) -> None:
    directory, told, store, away = tmp_path / "crawl", list[str](), tmp_path / "store", tmp_path / "away"

    async def stop(job: SupervisedCrawl) -> None:
        await awaited(lambda: job.several.has_begun and len(web.requests) > 30)
        job.stop()

    def report(line: str) -> None:
        told.append(line)
        if "all agents rest until it is there" in line:
            away.rename(store)

    with web_of_hosts(pages=20, latency=0.1) as web:
        options = options_for(web, directory, agents=2, store=str(store), checkpoint_every=1.0)
        assert asyncio.run(crawled(SupervisedCrawl([seed_of(web)], options), stop)).state == "stopped"
        store.rename(away)
        later = options_for(web, directory, agents=3, resume=True)
        summary = asyncio.run(crawled(SupervisedCrawl([], later, report=report)))
        asked = {request.host + request.target for request in web.requests if request.target != "/robots.txt"}
    assert sum("all agents rest until it is there" in line for line in told) == 1, told
    assert (summary.state, summary.pages) == ("finished", len(asked))
    assert at_work(members_of(directory)) == ALL


@pytest.mark.long
@pytest.mark.parametrize("lost", ["agent-00", "agent-01", "both", "the machine"])
def test_domains_that_a_person_gives_to_an_agent_are_lost_with_none_of_them(lost: str, tmp_path: Path) -> None:
    hosts = sorted({str(urlsplit(url).hostname) for url in ROUND.expected()})
    with on("folder", tmp_path) as one:
        process, crawl, name = begun(one, *SEVERAL, *SLOWLY), str(tmp_path / "first"), "first"
        rows = [line.split() for line in one.run("designations", crawl, *hosts).stdout.splitlines()]
        given = [domain for domain, agent in rows if agent == "agent-00"][:30]
        told = one.run("designations", crawl, *(f"--assign={domain}=agent-01" for domain in given))
        assert told.returncode == 0, told.stderr
        assert f"{given[0]} moves to agent-01 (all agents rest" in told.stdout
        until(lambda: have_changed(one, 2, 2))
        if lost == "the machine":
            until(lambda: any(one.head(agent)["division"] == 2 for agent in AGENTS))
            one.lose("first", process)
            process, name = one.resume("second", "--take-over"), "second"
        for agent in AGENTS if lost == "both" else (lost,):
            if (number := living(tmp_path / "first", AGENTS).get(agent)) is not None:
                (tmp_path / "first" / "state" / agent).rename(tmp_path / f"lost-{agent}")
                os.kill(number, signal.SIGKILL)
        check_end(one, name, process)
        rows = [line.split() for line in one.run("designations", str(tmp_path / name), *given).stdout.splitlines()]
        assert {agent for _, agent in rows} == {"agent-01"}


@pytest.mark.parametrize(
    ("late", "number"),
    [(["agent-01"], 3), (["agent-02"], 3), (["agent-00", "agent-01"], 3), (["agent-01"], 1)],
    ids=["who gave", "who took", "all who gave", "who left"],
)
@pytest.mark.long
def test_a_machine_that_is_lost_before_all_agents_have_published_how_they_changed_loses_nothing(
    late: list[str], number: int, tmp_path: Path
) -> None:
    with on("folder", tmp_path) as one:
        process = begun(one, *SEVERAL, *SLOWLY)
        places = [Path(one.store, "agents", agent) for agent in late]
        set_agents(one, number)
        # All have published that they rest, and change nothing in the store until they are at work: that may be a moment, and
        # links are made in less than one.
        until(lambda: all(one.head(agent).get("holder", "") == "" for agent in ALL))
        for place in places:
            if place.exists():
                shutil.copytree(place, tmp_path / "rested" / place.name, copy_function=os.link)
        joining = [agent for agent in late if agent not in AGENTS]
        for agent in joining:  # once it has published, the others keep nothing for it
            # It has begun, and publishes in a moment. Before that, a process has its ledger which takes what others give, while
            # all rest: they wait for that one.
            until((tmp_path / "first" / "state" / agent / "store.json").exists)
            os.kill(living(tmp_path / "first", joining)[agent], signal.SIGSTOP)
        assert all(one.head(agent).get("division", 0) < 2 for agent in late)
        others = [agent for agent in ALL[: max(2, number)] if agent not in joining]
        until(lambda: all(one.head(agent).get("division") == 2 for agent in others))
        one.lose("first", process)
        for place in places:
            shutil.rmtree(place, ignore_errors=True)
            if (tmp_path / "rested" / place.name).exists():
                shutil.copytree(tmp_path / "rested" / place.name, place)
        process = one.resume("second", "--take-over")
        check_end(one, "second", process)
