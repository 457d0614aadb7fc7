"""Agents join a crawl that rests, or are lost for good: what was queued is fetched, by whoever has its host now."""

import json
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import gave
from tests.sampling import sampled

from gossamer.agents.handing_over import NOTE, is_moving
from gossamer.analysis.verifying import verify
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.engine import processes
from gossamer.query.database import Database
from gossamer.storage.members import members_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb, html

HOSTS, PAGES = 12, 12


@pytest.fixture
def web() -> Iterator[FakeWeb]:
    """Each page leads to the next one of its host, and to one of the next host; the last ones of all hosts are the same."""
    pages: dict[str, FakePage] = {}
    for host in range(HOSTS):
        for page in range(PAGES):
            links = [f"/p{(page + 1) % PAGES}", f"http://www.h{(host + 1) % HOSTS}.test/p{page}"]
            body = html(f"{host}/{page}", links) if page < PAGES - 1 else html("same", ["/p0"])
            pages[f"http://www.h{host}.test/p{page}"] = FakePage(body, latency=0.05)
    with FakeWeb(pages) as served:
        yield served


def begun(web: FakeWeb, directory: Path, *more: str, agents: int = 2) -> None:
    """Crawl with these agents until a third of the pages is there, and stop."""
    given = [
        "--scope",
        "any",
        "--delay",
        0,
        "--resolve",
        web.resolve,
        "--allow-network",
        "127.0.0.0/8",
        "--traps",
        "report",
        *more,
    ]
    line = processes.command(
        "gossamer", "crawl", web.url("http://www.h0.test/p0"), *map(str, given), "-o", str(directory)
    )
    crawl = subprocess.Popen(
        [*line, *(("--agents", str(agents)) if agents > 1 else ())],
        env=processes.environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    web.wait_for(HOSTS * PAGES // 3, HUNG_AFTER)
    crawl.send_signal(signal.SIGINT)
    _, told = crawl.communicate(timeout=HUNG_AFTER)
    assert crawl.returncode == 3, told


def resumed(directory: Path, *more: str, crash: str = "") -> "subprocess.CompletedProcess[str]":
    environment = {**processes.environment(), **({"GOSSAMER_CRASH": crash} if crash else {})}
    line = processes.command("gossamer", "resume", str(directory), *more)
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=HUNG_AFTER, check=False)


def status(directory: Path) -> "subprocess.CompletedProcess[str]":
    line = processes.command("gossamer", "status", str(directory), "--json")
    return subprocess.run(
        line, env=processes.environment(), capture_output=True, text=True, timeout=HUNG_AFTER, check=True
    )


def pages_in(directory: Path) -> Counter[str]:
    rows = map(json.loads, (directory / "logs/crawl.jsonl").read_text().splitlines())
    return Counter(row["url"] for row in rows if row["event"] == "page" and row["outcome"] == "ok")


def check_whole(web: FakeWeb, directory: Path) -> None:
    """Every page was fetched once, and all that was committed is there."""
    found = pages_in(directory)
    assert (len(found), set(found.values())) == (HOSTS * PAGES, {1})
    assert len(web.requests) == HOSTS * PAGES, "the server was asked for each page once"
    told = verify(directory, deep=True)
    assert told.findings == []
    check_same(directory)
    assert standing_at_rest(directory).unique_documents == HOSTS * PAGES - HOSTS + 1


def check_refused_on_the_way(web: FakeWeb, directory: Path, *, is_refused: bool) -> None:
    """What is on its way between two agents cannot be deleted: it would come back. Nor is it in any checkpoint."""
    for line in (["delete", str(directory), web.url("http://www.h0.test/never")], ["checkpoint", str(directory)]):
        status, _, said = gave(*line)
        assert status == (5 if is_refused else 0), said
        assert ("were just changing hands" in said) is is_refused


@pytest.mark.long
@pytest.mark.parametrize("passing", [1, 2, 3, 4, 5, 6])
def test_a_crawl_goes_back_to_before_a_leave_that_was_killed(web: FakeWeb, tmp_path: Path, passing: int) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, agents=3)
    assert gave("checkpoint", str(directory), "before")[0] == 0
    before = len(web.requests)
    killed = resumed(directory, "--agents", "2", crash=f"joining:{passing}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    since = {web.url(f"http://{request.host}{request.target}") for request in web.requests[before:]}
    status, _, said = gave("checkpoint", str(directory), "--restore", "before")
    assert status == 0, said
    assert not (directory / NOTE).exists()
    done = resumed(directory)
    assert done.returncode == 0, done.stderr
    found = pages_in(directory)
    assert len(found) == HOSTS * PAGES
    assert {url for url, times in found.items() if times > 1} <= since
    assert verify(directory, deep=True).findings == []
    assert members_of(directory) == ("agent-00", "agent-01", "agent-02")


def check_same(directory: Path) -> None:
    """The pages that are the same name one of them as the first, whoever fetched them, and that one names none."""
    with Database(directory) as database:
        same = f"SELECT url, duplicate_of FROM pages WHERE ends_with(url, '/p{PAGES - 1}')"
        named = {str(url): copy_of for url, copy_of in database.ask(same)}
    [first] = {copy_of for copy_of in named.values() if copy_of}
    assert [url for url, copy_of in named.items() if not copy_of] == [first]
    assert len(named) == HOSTS


def test_agents_that_join_take_their_part_and_nothing_is_fetched_twice(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory)
    done = resumed(directory, "--agents", "4")
    assert done.returncode == 0, done.stderr
    assert "agent-02 and agent-03 joined and took" in done.stderr
    assert members_of(directory) == ("agent-00", "agent-01", "agent-02", "agent-03")
    check_whole(web, directory)
    assert (directory / "logs/agent-02.jsonl").stat().st_size
    assert not (directory / NOTE).exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "passing",
    [1, 2, 3, 4, 5, 6],
)
def test_a_join_that_is_killed_is_finished_or_undone(web: FakeWeb, tmp_path: Path, passing: int) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory)
    killed = resumed(directory, "--agents", "3", crash=f"joining:{passing}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    check_refused_on_the_way(web, directory, is_refused=passing > 1)
    done = resumed(directory, *(["--agents", "3"] if passing % 2 else []))
    assert done.returncode == 0, done.stderr
    check_whole(web, directory)
    assert not (directory / NOTE).exists()


@pytest.mark.long
@pytest.mark.parametrize(("agents", "then"), [(4, 2), (3, 1)])
def test_agents_that_leave_give_their_part_to_the_others(web: FakeWeb, tmp_path: Path, agents: int, then: int) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, agents=agents)
    done = resumed(directory, "--agents", str(then))
    assert done.returncode == 0, done.stderr
    assert f"agent-{agents - 1:02d} left and gave away" in done.stderr
    assert sum(name.endswith("=0") for name in members_of(directory)) == agents - then
    check_whole(web, directory)
    assert not (directory / NOTE).exists()
    assert json.loads(status(directory).stdout)["pages"] == HOSTS * PAGES, "those of the agents that left count"


def test_agents_join_a_crawl_that_one_process_began(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, agents=1)
    done = resumed(directory, "--agents", "3")
    assert done.returncode == 0, done.stderr
    assert "agent-01 and agent-02 joined and took" in done.stderr
    check_whole(web, directory)


def test_known_pages_are_visited_again_by_the_agents_that_join(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "c"
    begun(web, directory, agents=1)
    known = {(request.host, request.target) for request in web.requests}
    told = ["--agents", "2", "--recrawl", "every=1s", "--recrawl-rate", "100%"]
    line = processes.command("gossamer", "resume", str(directory), *told)
    crawl = subprocess.Popen(
        line, env=processes.environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    first, again = len(web.requests), set[tuple[str, str]]()
    while len(again) < HOSTS:
        web.wait_for(len(web.requests) + 1)
        again = known & {(request.host, request.target) for request in web.requests[first:]}
    crawl.send_signal(signal.SIGINT)
    _, said = crawl.communicate(timeout=HUNG_AFTER)
    assert crawl.returncode == 3, said
    assert verify(directory).findings == []


@pytest.mark.long
@pytest.mark.parametrize("passing", sampled([1, 2, 3, 4, 5, 6], 6))
def test_a_leave_that_is_killed_is_finished_or_undone(web: FakeWeb, tmp_path: Path, passing: int) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, agents=3)
    killed = resumed(directory, "--agents", "2", crash=f"joining:{passing}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = resumed(directory, *(["--agents", "2"] if passing % 2 else []))
    assert done.returncode == 0, done.stderr
    check_whole(web, directory)


@pytest.mark.long
@pytest.mark.parametrize("passing", [1, 2, 3, 4, 5])
def test_a_crawl_of_one_process_that_is_killed_while_it_is_divided_goes_on(
    web: FakeWeb, tmp_path: Path, passing: int
) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory, agents=1)
    killed = resumed(directory, "--agents", "2", crash=f"joining:{passing}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = resumed(directory, *(["--agents", "2"] if passing % 2 else []))
    assert done.returncode == 0, done.stderr
    check_whole(web, directory)


@pytest.mark.long
def test_the_part_of_a_lost_agent_is_found_again_from_the_pages_of_the_others(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory)
    before = pages_in(directory)
    shutil.rmtree(directory / "state/agent-01")
    refused = resumed(directory)
    assert refused.returncode == 5
    assert "state/agent-01/ledger is missing; bring state/agent-01 back from a copy" in refused.stderr
    done = resumed(directory, "--accept-loss")
    assert done.returncode == 0, done.stderr
    assert "the crawl goes on without the ledger of agent-01; 2 files of its archive and logs stay" in done.stderr
    assert "agent-01 was told" in done.stderr and "which pages of other agents lead to" in done.stderr
    after = pages_in(directory)
    assert len(after) == HOSTS * PAGES, "nothing is missing"
    assert before <= after, "what the lost agent has logged stays"
    assert set(after.values()) == {1, 2}, "its pages were fetched again, those of the other agent were not"
    assert verify(directory, deep=True).findings == []
    check_same(directory)


@pytest.mark.long
@pytest.mark.parametrize("passing", sampled([3, 1, 2], 3))
def test_a_kill_while_the_part_of_a_lost_agent_is_found_again_loses_nothing(
    web: FakeWeb, tmp_path: Path, passing: int
) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory)
    before = pages_in(directory)
    shutil.rmtree(directory / "state/agent-01")
    killed = resumed(directory, "--accept-loss", crash=f"joining:{passing}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = resumed(directory)  # the loss was accepted
    assert done.returncode == 0, done.stderr
    after = pages_in(directory)
    assert len(after) == HOSTS * PAGES, "nothing is missing"
    assert before <= after
    assert set(after.values()) <= {1, 2}, "no page was queued twice"
    assert verify(directory, deep=True).findings == []
    assert not is_moving(directory)


def test_a_crawl_that_lost_all_its_agents_cannot_go_on(web: FakeWeb, tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory)
    for agent in ("agent-00", "agent-01"):
        shutil.rmtree(directory / f"state/{agent}/ledger")
    refused = resumed(directory, "--accept-loss")
    assert refused.returncode == 5
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.long
def test_records_of_hosts_that_changed_hands_are_missed_when_the_file_of_their_writer_is_lost(
    web: FakeWeb, tmp_path: Path
) -> None:
    directory = tmp_path / "crawl"
    begun(web, directory)
    assert resumed(directory, "--agents", "4").returncode == 0
    for path in directory.glob("warc/*agent-00*"):
        path.unlink()
    done = resumed(directory, "--accept-loss")
    assert done.returncode == 0, done.stderr
    assert "of another agent is missing, and held" in done.stderr
    assert verify(directory, deep=True).findings == []
    assert len(pages_in(directory)) == HOSTS * PAGES
