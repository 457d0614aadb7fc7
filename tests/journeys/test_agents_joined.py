"""Agents on machines of their own, in folders of their own, fetch what one crawl does, whichever process is killed on the way."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.test_agents import HOSTS, PAGES, gossamer, seed_of, urls_in, web_of_hosts
from tests.sampling import sampled
from tests.waiting import until

import gossamer as package
from gossamer.agents.cluster import living
from gossamer.backup.opening import FolderStore
from gossamer.engine import processes
from gossamer.engine.remote.handshake import SECRET_VARIABLE
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

AGENTS = ("agent-00", "agent-01")
MACHINES = ("oslo", "lima")
SPARE = "rome"

#: Words of commands that ask what a crawl has kept.
MORE = {"query": ["SELECT 1"], "export": ["--to", "urls", "-o", "urls"], "report": ["hosts"]}


class Cluster:
    """A supervisor and two machines; processes of this one, in folders of their own."""

    def __init__(self, folder: Path, web: FakeWeb, *more: object) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.address = f"127.0.0.1:{server.getsockname()[1]}"
        self.folder, self.directory = folder, folder / "crawl"
        self.joined = ("--cluster", "joined", "--listen", self.address)
        given = ("--scope", "any", "--delay", 0, "--resolve", web.resolve, "--allow-network", "127.0.0.0/8")
        self.command = (
            "crawl",
            seed_of(web),
            *given,
            *self.joined,
            "--agents",
            2,
            "-o",
            self.directory,
            "--json",
            *more,
        )
        self.processes: list[subprocess.Popen[str]] = []

    def begin(self, *words: object, **variables: str) -> "subprocess.Popen[str]":
        self.processes.append(gossamer(*words, **variables))
        return self.processes[-1]

    def begin_next(self, source: Path, *words: object) -> "subprocess.Popen[str]":
        """Begin a command of the package in another folder."""
        python, safe, _, *rest = processes.command("gossamer", *map(str, words))
        variables = processes.environment()
        variables[processes.PATH_VARIABLE] = os.pathsep.join((str(source), variables[processes.PATH_VARIABLE]))
        command = [python, safe, str(source / "gossamer/engine/processes.py"), *rest]
        self.processes.append(
            subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        return self.processes[-1]

    def machine(self, name: str, *more: object) -> "subprocess.Popen[str]":
        return self.begin("agent", "--join", self.address, "-o", self.folder / name, *more)

    def resume(self) -> "subprocess.Popen[str]":
        return self.begin("resume", self.directory, *self.joined, "--json")

    def agents(self) -> dict[str, int]:
        """The processes of agents, by the machines that have them."""
        names = (*AGENTS, "agent-02")
        return {name: number for name in (*MACHINES, SPARE) for number in living(self.folder / name, names).values()}

    def urls(self) -> Counter[str]:
        logs = [log for name in MACHINES for log in (self.folder / name / "logs").glob("agent-*.jsonl")]
        return sum(map(urls_in, logs), Counter[str]())


@contextlib.contextmanager
def cluster(folder: Path, web: FakeWeb, *more: object) -> Iterator[Cluster]:
    one = Cluster(folder, web, *more)
    try:
        yield one
    finally:
        for process in one.processes:
            process.kill()
            process.communicate()
        for number in one.agents().values():
            os.kill(number, signal.SIGKILL)


def ended(process: "subprocess.Popen[str]") -> tuple[str, str]:
    return process.communicate(timeout=HUNG_AFTER)


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, "a secret of these tests, and of no others")


@pytest.mark.long
def test_agents_that_join_fetch_the_pages_of_a_local_crawl_each_once(tmp_path: Path) -> None:
    with web_of_hosts() as web, cluster(tmp_path, web) as one:
        crawl = one.begin(*one.command)
        machines = [one.machine(name) for name in MACHINES]
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        summary = json.loads(out)
        assert (summary["state"], summary["pages"], summary["queued"]) == ("finished", HOSTS * PAGES, 0)
        for machine in machines:
            _, said = ended(machine)
            assert machine.returncode == 0, said
            assert "has ended here, and needs no agent" in said
        times = Counter(request.target + request.host for request in web.requests if request.target != "/robots.txt")
        assert set(times.values()) == {1}, "each page is asked for once, by one agent"
    assert len(one.urls()) == HOSTS * PAGES
    assert all((tmp_path / name / "warc").is_dir() for name in MACHINES), "each machine keeps its part"
    assert not (tmp_path / "crawl/warc").exists()
    for command in ("query", "export", "verify", "report"):
        asked = gossamer(command, one.directory, *MORE.get(command, ()))
        assert "ask its store, or the folders there" in ended(asked)[1]
        assert asked.returncode != 0
    resumed = gossamer("resume", one.directory)
    assert "go on with --cluster joined --listen HOST:PORT" in ended(resumed)[1], "no second agents begin it anew here"
    assert resumed.returncode == 2


def test_time_goes_on_for_a_crawl_whose_agents_wait_for_machines(tmp_path: Path) -> None:
    def seconds() -> float:
        told, _ = ended(gossamer("status", tmp_path / "crawl", "--json"))
        return float(json.loads(told)["seconds"]) if told else 0.0

    with web_of_hosts() as web, cluster(tmp_path, web) as one:
        crawl = one.begin(*one.command)
        until(lambda: seconds() > 0)
        # The crawl remembers how it stood when it looked for the first time: its clock was about there.
        before = seconds()
        until(lambda: seconds() > before + 1)
        crawl.send_signal(signal.SIGINT)
        ended(crawl)


@pytest.mark.long
def test_masters_beside_the_supervisor_divide_a_crawl_among_machines_whichever_process_is_killed(
    tmp_path: Path,
) -> None:
    masters = ("--designation", "master", "--masters", 2)
    with web_of_hosts(pages=PAGES * 2, latency=0.05) as web, cluster(tmp_path, web, *masters) as one:
        crawl = one.begin(*one.command)
        machines = {name: one.machine(name) for name in MACHINES}
        web.wait_for(30, HUNG_AFTER)
        os.kill(living(one.directory, ["master-00"])["master-00"], signal.SIGKILL)
        web.wait_for(len(web.requests) + 10, HUNG_AFTER)
        lost = one.agents()["oslo"]
        machines["oslo"].kill()
        os.kill(lost, signal.SIGKILL)
        ended(machines["oslo"])
        one.machine("oslo")
        until(lambda: len(one.agents()) == 2)
        crawl.kill()
        ended(crawl)
        crawl = one.resume()
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert (summary := json.loads(out))["pages"] == HOSTS * PAGES * 2, summary
        table, wrong = ended(one.begin("designations", one.directory))
        assert len(table.splitlines()) >= HOSTS and all(agent in table for agent in AGENTS), wrong
    assert (len(one.urls()), set(one.urls().values())) == (HOSTS * PAGES * 2, {1})
    assert not list(tmp_path.glob("[lo]*/state/masters/shared.sqlite"))
    (one.directory / "state/masters/shared.sqlite").unlink()
    refused = gossamer("resume", one.directory, *one.joined, "--accept-loss")
    assert "agents that hold domains are on machines of their own; bring it back" in ended(refused)[1]
    assert refused.returncode == 5
    assert not list(one.directory.glob("state/*/ledger")), "none is made here"


def test_a_machine_that_is_killed_goes_on_by_the_same_command(tmp_path: Path) -> None:
    with web_of_hosts(pages=PAGES * 2, latency=0.05) as web, cluster(tmp_path, web) as one:
        crawl = one.begin(*one.command)
        machines = {name: one.machine(name) for name in MACHINES}
        web.wait_for(40, HUNG_AFTER)
        lost = one.agents()["oslo"]
        machines["oslo"].kill()
        os.kill(lost, signal.SIGKILL)
        ended(machines["oslo"])
        one.machine("oslo")
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 2
    assert (len(one.urls()), set(one.urls().values())) == (HOSTS * PAGES * 2, {1})


def test_agents_go_on_with_the_next_supervisor_after_theirs_was_killed(tmp_path: Path) -> None:
    with web_of_hosts(pages=PAGES * 2, latency=0.05) as web, cluster(tmp_path, web) as one:
        crawl = one.begin(*one.command)
        for name in MACHINES:
            one.machine(name)
        web.wait_for(40, HUNG_AFTER)
        before = one.agents()
        crawl.kill()
        ended(crawl)
        web.wait_for(len(web.requests) + 10, HUNG_AFTER)
        crawl = one.resume()
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert "agent-00 and agent-01 went on without a supervisor, and have one again" in told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 2
        assert len(before) == 2
    assert (len(one.urls()), set(one.urls().values())) == (HOSTS * PAGES * 2, {1})


def test_a_crawl_of_joined_agents_is_stopped_asked_and_resumed_by_its_directory(tmp_path: Path) -> None:
    with web_of_hosts(pages=PAGES * 3, latency=0.05) as web, cluster(tmp_path, web) as one:
        crawl = one.begin(*one.command)
        machines = [one.machine(name) for name in MACHINES]
        web.wait_for(40, HUNG_AFTER)
        assert "paused" in ended(one.begin("pause", one.directory))[0]
        said, _ = ended(one.begin("status", one.directory, "--json"))
        nodes = {agent["name"]: agent["node"] for agent in json.loads(said)["each_agent"]}
        assert set(nodes) == set(AGENTS) and set(nodes.values()) == {socket.gethostname()}
        why, wrong = ended(one.begin("why", one.directory, seed_of(web)))
        assert "it was fetched: ok" in why, wrong
        assert ended(one.begin("stop", one.directory))[0]
        _, told = ended(crawl)
        assert crawl.returncode == 3, told
        for machine in machines:
            ended(machine)
            assert machine.returncode == 0
        said, _ = ended(one.begin("status", one.directory, "--json"))
        assert json.loads(said)["state"] == "stopped"
        crawl = one.resume()
        for name in MACHINES:
            one.machine(name)
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 3
    assert (len(one.urls()), set(one.urls().values())) == (HOSTS * PAGES * 3, {1})


def test_agents_join_and_leave_at_work_where_machines_wait_and_nothing_is_fetched_twice(tmp_path: Path) -> None:
    with web_of_hosts(pages=PAGES * 7, latency=0.1) as web, cluster(tmp_path, web) as one:
        crawl = one.begin(*one.command)
        for name in MACHINES:
            one.machine(name)
        web.wait_for(20, HUNG_AFTER)

        def owner() -> str:
            return ended(one.begin("designations", one.directory, "h3.test"))[0].split()[1]

        before = owner()
        [other] = {*AGENTS} - {before}
        said, wrong = ended(one.begin("designations", one.directory, "--assign", f"h3.test={other}"))
        assert f"h3.test moves to {other} (all agents rest for some seconds, and go on)" in said, wrong
        until(lambda: owner() == other)
        waits = "agents = 3 (as soon as a machine has joined for agent-02)"  # refused until all are at work again
        until(lambda: waits in ended(one.begin("set", one.directory, "agents=3"))[0])
        web.wait_for(len(web.requests) + 10, HUNG_AFTER)
        one.machine(SPARE)
        until(lambda: bool(living(tmp_path / SPARE, ["agent-02"])))
        web.wait_for(len(web.requests) + 20, HUNG_AFTER)
        said, wrong = ended(one.begin("set", one.directory, "agents=2"))
        assert "all agents rest for some seconds" in said, wrong
        until(lambda: not living(tmp_path / SPARE, ["agent-02"]))
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 7, told
        assert "agent-02 joined and took" in told and "agent-02 left and gave away" in told
        assert not asked_twice(web)
        spare = sum(map(urls_in, (tmp_path / SPARE / "logs").glob("agent-*.jsonl")), Counter[str]())
    assert len(spare) > 0 and len(one.urls() + spare) == HOSTS * PAGES * 7


@pytest.mark.long
@pytest.mark.parametrize("crash", sampled(["", *(f"joining:{number}" for number in range(1, 7))], 4))
@pytest.mark.parametrize("has_store", [False, True])
def test_a_supervisor_that_is_killed_while_agents_join_on_machines_finishes_that_when_it_goes_on(
    has_store: bool, crash: str, tmp_path: Path
) -> None:
    """With a store a machine is lost for good meanwhile, too: what it has published is all that it had, since all rest."""
    store = f"folder:{tmp_path / 'store'}"
    more = ("--store", store, "--lease", "4s", "--checkpoint-every", "1s") if has_store else ()
    with web_of_hosts(pages=PAGES * 4, latency=0.1) as web, cluster(tmp_path, web, *more) as one:
        crawl = one.begin(*one.command, **({"GOSSAMER_CRASH": crash} if crash else {}))
        machines = {name: one.machine(name) for name in (*MACHINES, SPARE)}
        until(lambda: len(one.agents()) == 2)
        web.wait_for(40, HUNG_AFTER)
        ended(one.begin("set", one.directory, "agents=3"))
        if crash:
            ended(crawl)
            assert crawl.returncode == -signal.SIGKILL
            if has_store:
                machines["oslo"].kill()
                ended(machines["oslo"])
                shutil.rmtree(tmp_path / "oslo")
                one.machine("oslo")
            crawl = one.resume()
        until(lambda: len(one.agents()) == 3)
        web.wait_for(len(web.requests) + 30, HUNG_AFTER)
        said, wrong = ended(one.begin("set", one.directory, "agents=2"))
        assert "all agents rest for some seconds" in said, wrong
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 4, told
        assert "left and gave away" in told
        assert not asked_twice(web)
        if has_store:
            asked = ("query", store, "select count(*), count(distinct url) from pages", "--format", "csv")
            rows, wrong = ended(one.begin(*asked))
            assert rows.splitlines()[1:] == [f"{HOSTS * PAGES * 4},{HOSTS * PAGES * 4}"], wrong


def test_an_agent_whose_supervisor_does_not_ask_pauses_and_goes_on_when_it_does(tmp_path: Path) -> None:
    with web_of_hosts(pages=PAGES * 3, latency=0.1) as web, cluster(tmp_path, web, "--lease", "4s") as one:
        crawl = one.begin(*one.command)
        machines = [one.machine(name) for name in MACHINES]
        web.wait_for(30, HUNG_AFTER)
        crawl.send_signal(signal.SIGSTOP)
        last = -1
        while last != len(web.requests):  # within the lease they fetch on
            last = len(web.requests)
            time.sleep(2.0)
        assert last < HOSTS * PAGES * 3
        assert len(one.agents()) == 2, "they pause, and do not end"
        crawl.send_signal(signal.SIGCONT)
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 3
        said = [ended(machine)[1] for machine in machines]
        assert all("so it pauses until one does" in lines and "has a supervisor again" in lines for lines in said)
    assert (len(one.urls()), set(one.urls().values())) == (HOSTS * PAGES * 3, {1})


def next_version(folder: Path) -> Path:
    """A folder that has the package with the next patch version."""
    source = Path(package.__file__).parent
    shutil.copytree(source, folder / "gossamer", ignore=shutil.ignore_patterns("__pycache__"))
    number = package.__version__.split(".")
    fresh = ".".join((*number[:2], str(int(number[2]) + 1)))
    (folder / "gossamer/_version.py").write_text(f'__version__ = "{fresh}"\n')
    return folder


def asked_twice(web: FakeWeb) -> list[str]:
    times = Counter(request.target + request.host for request in web.requests if request.target != "/robots.txt")
    return [page for page, count in times.items() if count > 1]


@pytest.mark.long
def test_agents_of_the_next_version_take_over_one_by_one_and_nothing_is_fetched_twice(tmp_path: Path) -> None:
    source = next_version(tmp_path / "next")
    with web_of_hosts(pages=PAGES * 4, latency=0.1) as web, cluster(tmp_path, web) as one:
        crawl = one.begin(*one.command)
        machines = {name: one.machine(name) for name in MACHINES}
        web.wait_for(30, HUNG_AFTER)
        for name in MACHINES:
            machines[name].terminate()
            assert (ended(machines[name]), machines[name].returncode)[1] == 0
            assert not living(tmp_path / name, AGENTS)
            one.begin_next(source, "agent", "--join", one.address, "-o", tmp_path / name)
            until(lambda name=name: bool(living(tmp_path / name, AGENTS)))
            web.wait_for(len(web.requests) + 10, HUNG_AFTER)
        crawl.kill()
        ended(crawl)
        crawl = one.begin_next(source, "resume", one.directory, *one.joined, "--json")
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert "agent-00 and agent-01 went on without a supervisor, and have one again" in told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 4
        assert not asked_twice(web)
    assert (len(one.urls()), set(one.urls().values())) == (HOSTS * PAGES * 4, {1})


def published(store: Path) -> int:
    """The agents that have a checkpoint in a store."""
    found = FolderStore(store)
    keys = [key for key in found.list("agents/") if key.endswith("/head.json")]
    return sum(bool(json.loads(found.get(key))["checkpoint"]) for key in keys)


@pytest.mark.long
@pytest.mark.parametrize("comes_back", sampled([False, True], 2))
def test_another_machine_goes_on_with_what_a_lost_one_has_in_the_store(comes_back: bool, tmp_path: Path) -> None:
    """The lost machine may have stood still alone, and come back too late: it is told so, and asks nothing more."""
    store = f"folder:{tmp_path / 'store'}"
    more = ("--store", store, "--lease", "4s", "--checkpoint-every", "1s")
    with web_of_hosts(pages=PAGES * 4, latency=0.1) as web, cluster(tmp_path, web, *more) as one:
        crawl = one.begin(*one.command)
        machines = {name: one.machine(name) for name in MACHINES}
        web.wait_for(60, HUNG_AFTER)
        until(lambda: published(tmp_path / "store") == 2)
        spare = one.machine(SPARE)
        lost = [one.agents()["oslo"], machines["oslo"].pid]
        for number in lost:
            os.kill(number, signal.SIGSTOP if comes_back else signal.SIGKILL)
        if not comes_back:
            shutil.rmtree(tmp_path / "oslo")
        until(lambda: bool(living(tmp_path / SPARE, AGENTS)))
        if comes_back:
            for number in lost:
                os.kill(number, signal.SIGCONT)
            _, said = ended(machines["oslo"])
            assert machines["oslo"].returncode == 2
            assert "went on elsewhere, so that its folder is out of date" in said
            until(lambda: not living(tmp_path / "oslo", AGENTS))
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert "has not been heard of for" in told
        assert ended(spare)[1].count("goes on here from its last checkpoint") == 1
        assert json.loads(out)["pages"] == HOSTS * PAGES * 4
        rows, wrong = ended(
            one.begin("query", store, "select count(*), count(distinct url) from pages", "--format", "csv")
        )
        assert rows.splitlines()[1:] == [f"{HOSTS * PAGES * 4},{HOSTS * PAGES * 4}"], wrong


@pytest.mark.long
def test_what_masters_gave_to_a_lost_machine_goes_on_elsewhere_and_a_lost_table_is_made_again_from_the_store(
    tmp_path: Path,
) -> None:
    store = f"folder:{tmp_path / 'store'}"
    more = ("--store", store, "--lease", "4s", "--checkpoint-every", "1s", "--designation", "master", "--masters", 2)
    with web_of_hosts(pages=PAGES * 4, latency=0.1) as web, cluster(tmp_path, web, *more) as one:
        crawl = one.begin(*one.command)
        machines = {name: one.machine(name) for name in MACHINES}
        web.wait_for(60, HUNG_AFTER)
        until(lambda: published(tmp_path / "store") == 2)
        one.machine(SPARE)
        for number in (one.agents()["oslo"], machines["oslo"].pid):
            os.kill(number, signal.SIGKILL)
        shutil.rmtree(tmp_path / "oslo")
        until(lambda: bool(living(tmp_path / SPARE, AGENTS)))
        web.wait_for(len(web.requests) + 10, HUNG_AFTER)
        ended(one.begin("stop", one.directory))
        _, told = ended(crawl)
        assert crawl.returncode == 3, told
        shutil.rmtree(one.directory)
        crawl = one.begin("resume", store, "-o", one.directory, *one.joined, "--json")
        for name in MACHINES:
            one.machine(f"{name}-again")
        _, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert "was made again from what the agents hold" in told
        asked = ("query", store, "select count(*), count(distinct url) from pages", "--format", "csv")
        rows, wrong = ended(one.begin(*asked))
        pages, urls = map(int, rows.splitlines()[1].split(","))
        assert urls == HOSTS * PAGES * 4, wrong
        assert pages - urls <= 2, "what is sent once more may meet a page that is in flight just then"


@pytest.mark.long
def test_a_machine_that_cannot_run_its_agent_ends_alone_and_another_one_has_the_agent_after_the_lease(
    tmp_path: Path,
) -> None:
    store = f"folder:{tmp_path / 'store'}"
    for name in AGENTS:  # a damaged ledger, whichever agent it gets
        (tmp_path / "lima/state" / name / "ledger").mkdir(parents=True)
        (tmp_path / "lima/state" / name / "ledger/CURRENT").write_text("MANIFEST-000001\n")
    with (
        web_of_hosts(pages=PAGES * 4, latency=0.1) as web,
        cluster(tmp_path, web, "--store", store, "--lease", "4s") as one,
    ):
        crawl = one.begin(*one.command)
        ends, _ = [one.machine(name) for name in ("lima", "oslo")]
        _, said = ended(ends)
        assert ends.returncode == 2
        assert "cannot run there; mend that, and give the same command again" in said.splitlines()[-1]
        assert crawl.poll() is None
        one.machine(SPARE)
        until(lambda: bool(living(tmp_path / SPARE, AGENTS)))
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert "and the others go on without it: " in told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 4
        assert not asked_twice(web)


@pytest.mark.long
def test_a_machine_that_is_told_to_end_hands_its_part_on_and_nothing_is_fetched_twice(tmp_path: Path) -> None:
    store = f"folder:{tmp_path / 'store'}"
    with (
        web_of_hosts(pages=PAGES * 4, latency=0.1) as web,
        cluster(tmp_path, web, "--store", store, "--lease", "4s") as one,
    ):
        crawl = one.begin(*one.command)
        leaves, _ = [one.machine(name) for name in MACHINES]
        web.wait_for(60, HUNG_AFTER)
        spare = one.machine(SPARE)
        leaves.terminate()
        ended(leaves)
        assert leaves.returncode == 0
        until(lambda: bool(living(tmp_path / SPARE, AGENTS)))
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert "died" not in told
        said = ended(spare)[1]
        assert "agent-00 goes on here from its last checkpoint" in said or "agent-01 goes on here from its last" in said
        assert "it had ended in order, so that nothing is fetched again" in said and "lost its ledger" not in said
        assert json.loads(out)["pages"] == HOSTS * PAGES * 4
        assert not asked_twice(web)


def test_a_crawl_whose_agents_are_here_goes_to_machines_by_a_store_alone(tmp_path: Path) -> None:
    with web_of_hosts(pages=1) as web, cluster(tmp_path, web) as one:
        words = [word for word in one.command if word not in one.joined][:-5]
        ended(one.begin(*words, "-o", one.directory, "--agents", 1))
        refused = one.begin("resume", one.directory, *one.joined, "--agents", 2)
        _, told = ended(refused)
        assert refused.returncode == 2
        assert "keep their parts here; add --store" in told and len(told.splitlines()) == 1
        assert (one.directory / "state/agent-00/ledger").exists()


@pytest.mark.long
def test_a_crawl_goes_on_from_its_store_on_machines_in_any_number_and_nothing_is_fetched_twice(tmp_path: Path) -> None:
    """From a laptop to two machines, and by another supervisor to three."""
    store = f"folder:{tmp_path / 'store'}"
    with web_of_hosts(pages=PAGES * 4, latency=0.1) as web, cluster(tmp_path, web) as one:
        words = [word for word in one.command if word not in one.joined][:-5]
        crawl = one.begin(*words, "-o", one.directory, "--agents", 1, "--store", store, "--lease", "4s")
        web.wait_for(30, HUNG_AFTER)
        ended(one.begin("stop", one.directory))
        assert (ended(crawl), crawl.returncode)[1] == 3

        crawl = one.begin("resume", one.directory, *one.joined, "--agents", 2)
        machines = [one.machine(name) for name in MACHINES]
        web.wait_for(len(web.requests) + 60, HUNG_AFTER)
        ended(one.begin("stop", one.directory))
        assert (ended(crawl), crawl.returncode)[1] == 3
        for machine in machines:
            ended(machine)

        fresh = tmp_path / "fresh"
        crawl = one.begin("resume", store, "-o", fresh, *one.joined, "--agents", 3, "--json")
        machines = [one.machine(f"{name}-again") for name in (*MACHINES, SPARE)]
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert (summary := json.loads(out))["pages"] == HOSTS * PAGES * 4, summary
        assert not asked_twice(web)
        assert all((ended(machine), machine.returncode)[1] == 0 for machine in machines)
        assert not list(fresh.glob("state/*/ledger"))
        rows, wrong = ended(
            one.begin("query", store, "select count(*), count(distinct url) from pages", "--format", "csv")
        )
        assert rows.splitlines()[1:] == [f"{HOSTS * PAGES * 4},{HOSTS * PAGES * 4}"], wrong


@pytest.mark.long
def test_a_crawl_that_lost_all_its_machines_goes_on_from_its_store_on_one(tmp_path: Path) -> None:
    store = f"folder:{tmp_path / 'store'}"
    more = ("--store", store, "--lease", "4s", "--checkpoint-every", "1s")
    with web_of_hosts(pages=PAGES * 3, latency=0.1) as web, cluster(tmp_path, web, *more) as one:
        crawl = one.begin(*one.command)
        machines = [one.machine(name) for name in MACHINES]
        web.wait_for(60, HUNG_AFTER)
        until(lambda: published(tmp_path / "store") == 2)
        for number in one.agents().values():
            os.kill(number, signal.SIGKILL)
        for process in (crawl, *machines):
            process.kill()
            ended(process)
        on = one.begin("resume", store, "-o", tmp_path / "here", "--json", "--take-over")
        out, told = ended(on)
        assert on.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 3
