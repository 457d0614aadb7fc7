"""Agents that Ray places fetch what one crawl does, whatever is killed on the way.

Ray lives in an environment of its own: `./gossamer dev ray` makes it and runs this.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.journeys.test_agents import HOSTS, PAGES, seed_of, urls_in, web_of_hosts
from tests.journeys.test_agents_joined import published
from tests.ray_node import ray_environment, ray_node, ray_python
from tests.waiting import until

import gossamer
from gossamer.agents.cluster import living
from gossamer.storage.members import holder_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

AGENTS = ("agent-00", "agent-01")


class Place:
    """A Ray cluster, and crawls that are begun in a folder of downloads, where strangers' files lie."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.environment = folder, {**ray_environment(), "RAY_ADDRESS": address}
        self.begun: list[subprocess.Popen[str]] = []

    def begin(self, *words: object, **variables: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [ray_python(), "-P", "-m", "gossamer", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.environment, **variables},
            cwd=self.folder,
        )
        self.begun.append(process)
        return process

    def crawl(self, name: str, web: FakeWeb, *more: object, **variables: str) -> "subprocess.Popen[str]":
        given = ("--scope", "any", "--delay", 0, "--resolve", web.resolve, "--allow-network", "127.0.0.0/8")
        more = (*more, "--agents", 2) if "--agents" not in more else more
        return self.begin("crawl", seed_of(web), *given, "--cluster", "ray", "-o", name, "--json", *more, **variables)

    def machines(self, name: str) -> list[Path]:
        return sorted((self.folder / f"{name}.nodes").glob("*"))

    def agents(self, name: str) -> dict[str, int]:
        """The processes of agents."""
        return {agent: number for path in self.machines(name) for agent, number in living(path, AGENTS).items()}

    def urls(self, name: str) -> Counter[str]:
        logs = [log for path in self.machines(name) for log in (path / "logs").glob("agent-*.jsonl")]
        return sum(map(urls_in, logs), Counter[str]())


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as name,
        ray_node(Path(name) / "r", ray_environment()) as address,
    ):
        place = Place(Path(name), address)
        try:
            yield place
        finally:
            for process in place.begun:
                process.kill()
                process.communicate()


def ended(process: "subprocess.Popen[str]") -> tuple[str, str]:
    return process.communicate(timeout=HUNG_AFTER)


def parent_of(number: int) -> int:
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])


def asked_of_autoscaler(place: Place) -> list[dict[str, int]]:
    """What the autoscaler of Ray is to have room for."""
    program = (
        "import ray; from ray._private import ray_constants as names; from ray.experimental import internal_kv as kept\n"
        "ray.init(log_to_driver=False); print(kept._internal_kv_get(names.AUTOSCALER_RESOURCE_REQUEST_CHANNEL).decode())"
    )
    told = subprocess.check_output([ray_python(), "-P", "-c", program], env=place.environment, text=True)
    found: list[dict[str, int]] = json.loads(told.splitlines()[-1])
    return found


def supervisor(directory: Path) -> int:
    """The process that supervises a crawl."""
    return int(holder_of(directory / "state/supervisor/lock"))


def is_there(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_agents_on_ray_fetch_each_page_once_and_import_nothing_from_the_folder_of_the_program(place: Place) -> None:
    planted = place.folder / "msgspec.py"
    planted.write_text(
        f"import os, sys\nopen({str(place.folder / 'imported')!r}, 'a').write(f'{{sys.argv}}\\n')\nraise SystemExit(9)\n"
    )
    with web_of_hosts() as web:
        crawl = place.crawl("clean", web)
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        summary = json.loads(out)
        assert (summary["state"], summary["pages"], summary["queued"]) == ("finished", HOSTS * PAGES, 0)
        asked = Counter(request.target + request.host for request in web.requests if request.target != "/robots.txt")
        assert set(asked.values()) == {1}, "each page is asked for once, by one agent"
    assert (len(place.urls("clean")), len(place.machines("clean"))) == (HOSTS * PAGES, 2)
    assert not (place.folder / "imported").exists()
    until(lambda: not place.agents("clean"))
    # Ray does put that folder before all others: a worker of a program that was begun there imports the file.
    work = "ray.remote(lambda: __import__('msgspec')).options(max_retries=0)"
    program = f"import ray\nray.init(log_to_driver=False)\nray.get({work}.remote())"
    subprocess.run(
        [ray_python(), "-c", program], cwd=place.folder, env=place.environment, capture_output=True, check=False
    )
    assert (place.folder / "imported").exists()
    planted.unlink()


def test_an_archive_is_processed_by_tasks_of_ray_as_by_one_process(place: Place) -> None:
    with web_of_hosts() as web:
        given = ("--scope", "any", "--delay", 0, "--resolve", web.resolve, "--allow-network", "127.0.0.0/8")
        crawl = place.begin("crawl", seed_of(web), *given, "-o", "archived", "--json")
        assert (ended(crawl), crawl.returncode)[1] == 0

    def links() -> str:
        words = ("query", "archived", "select * from links order by all", "--format", "csv")
        return ended(place.begin(*words))[0]

    before = links()
    planted = place.folder / "msgspec.py"
    planted.write_text("raise SystemExit(9)\n")
    reprocess = place.begin("reprocess", "archived", "--cluster", "ray", "--json")
    out, told = ended(reprocess)
    planted.unlink()
    assert reprocess.returncode == 0, told
    done = json.loads(out)
    assert (done["documents"], done["unreadable"]) == (HOSTS * PAGES, 0)
    assert (links(), before.count("\n")) == (before, done["tables"]["links"] + 1)
    for words, said in (
        (("--cluster", "rai"), "no cluster that processes an archive is called 'rai'; did you mean 'ray'?"),
        (("--cluster", "ray", "--render"), "a browser are on this machine alone; leave --cluster out"),
    ):
        refused = place.begin("reprocess", "archived", *words)
        assert said in (told := ended(refused)[1])
        assert (refused.returncode, len(told.splitlines())) == (2, 1)


def wheel(folder: Path) -> Path:
    """This package, as its wheel has it."""
    made, name = folder / "gossamer-wheel.whl", f"gossamer-{gossamer.__version__}.dist-info/METADATA"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        root = Path(gossamer.__file__).parent
        for path in root.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                packed.write(path, Path("gossamer") / path.relative_to(root))
        packed.writestr(name, f"Metadata-Version: 2.1\nName: gossamer\nVersion: {gossamer.__version__}\n")
    return made


def test_agents_run_the_code_of_a_wheel_that_ray_brings_to_their_machines(place: Place) -> None:
    (place.folder / "broken.whl").write_bytes(b"no wheel")
    with web_of_hosts(pages=PAGES * 2, latency=0.1) as web:
        crawl = place.crawl("wheels", web, "--agent-wheel", wheel(place.folder))
        until(lambda: len(place.agents("wheels")) == 2)
        for agent in place.agents("wheels").values():
            assert "working_dir_files" in Path(f"/proc/{agent}/cmdline").read_text(), "the file that began it is Ray's"
        out, told = ended(crawl)
        assert (crawl.returncode, json.loads(out)["pages"]) == (0, HOSTS * PAGES * 2), told
        for words, why in (
            (
                ("--agent-wheel", "broken.whl"),
                "--agent-wheel broken.whl cannot be read as a wheel: File is not a zip file",
            ),
            (("--agent-wheel", "no.whl"), "--agent-wheel no.whl cannot be read as a wheel: [Errno 2]"),
        ):
            refused = place.crawl("unwheeled", web, *words)
            assert why in (said := ended(refused)[1])
            assert (refused.returncode, len(said.splitlines())) == (2, 1)


def test_an_agent_ends_with_the_worker_of_ray_and_another_one_goes_on_with_its_part(place: Place) -> None:
    with web_of_hosts(pages=PAGES * 2, latency=0.05) as web:
        crawl = place.crawl("worker", web)
        web.wait_for(40)
        agent = place.agents("worker")["agent-00"]
        machine = parent_of(agent)
        worker = parent_of(machine)
        assert "AgentHost" in Path(f"/proc/{worker}/cmdline").read_text()
        os.kill(worker, signal.SIGKILL)
        until(lambda: not is_there(machine) and not is_there(agent))
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 2
    assert (len(place.urls("worker")), set(place.urls("worker").values())) == (HOSTS * PAGES * 2, {1})


def test_a_crawl_goes_on_when_its_command_is_gone_and_is_found_and_steered_by_its_name_from_any_folder(
    place: Place,
) -> None:
    with web_of_hosts(pages=PAGES * 4, latency=0.5) as web:
        crawl = place.crawl("alone", web)
        until(lambda: len(place.agents("alone")) == 2)
        before = place.agents("alone")
        crawl.kill()
        ended(crawl)
        web.wait_for(len(web.requests) + 10)
        out, told = ended(place.begin("status", "ray:alone", "--json"))
        now = json.loads(out)
        assert (now["state"], now["crawl"]) == ("running", "alone"), told
        _, told = ended(place.begin("status", "ray:other"))
        assert told == "gossamer: no crawl called 'other' has a supervisor on this Ray cluster; there is ray:alone\n"
        stopped = place.begin("stop", "ray:alone")
        assert (ended(stopped), stopped.returncode)[1] == 0
        until(lambda: not place.agents("alone"))
        assert len(before) == 2
        crawl = place.begin("resume", "alone", "--cluster", "ray", "--json")
        out, told = ended(crawl)
        assert (crawl.returncode, json.loads(out)["pages"]) == (0, HOSTS * PAGES * 4), told
    assert (len(place.urls("alone")), set(place.urls("alone").values())) == (HOSTS * PAGES * 4, {1})


def test_agents_on_ray_go_on_with_the_next_supervisor(place: Place) -> None:
    with web_of_hosts(pages=PAGES * 2, latency=0.2) as web:
        crawl = place.crawl("driver", web)
        until(lambda: len(place.agents("driver")) == 2)
        before = place.agents("driver")
        os.kill(parent_of(supervisor(place.folder / "driver")), signal.SIGKILL)
        web.wait_for(len(web.requests) + 10)
        _, told = ended(crawl)
        assert "the supervisor has gone with its worker of Ray or its node; gossamer resume" in told
        crawl = place.begin("resume", "driver", "--cluster", "ray", "--json")
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert "agent-00 and agent-01 went on without a supervisor, and have one again" in told
        assert (len(before), json.loads(out)["pages"]) == (2, HOSTS * PAGES * 2)
    assert (len(place.urls("driver")), set(place.urls("driver").values())) == (HOSTS * PAGES * 2, {1})


@pytest.mark.parametrize("is_on_ray", [True, False])
def test_a_crawl_goes_on_from_its_store_when_all_of_ray_is_lost(is_on_ray: bool, place: Place, tmp_path: Path) -> None:
    """On another cluster, or without any."""
    store = f"folder:{tmp_path / 'store'}"
    more = ("--store", store, "--lease", "4s", "--checkpoint-every", "1s")
    with (
        web_of_hosts(pages=PAGES * 2, latency=0.1) as web,
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as name,
    ):
        with ray_node(Path(name) / "r", ray_environment()) as lost:
            crawl = place.crawl("lost", web, *more, RAY_ADDRESS=lost)
            web.wait_for(40)
            until(lambda: published(tmp_path / "store") == 2)
            before = place.agents("lost")
        crawl.kill()
        ended(crawl)
        until(lambda: not any(map(is_there, before.values())))
        shutil.rmtree(place.folder / "lost")
        shutil.rmtree(place.folder / "lost.nodes")
        here = tmp_path / "here"
        cluster = ("--cluster", "ray") if is_on_ray else ("--cluster", "local")
        on = place.begin("resume", store, "-o", here, *cluster, "--json", "--take-over")
        out, told = ended(on)
        assert on.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 2, told
        assert here.with_name("here.nodes").is_dir() is is_on_ray
        rows, wrong = ended(
            place.begin("query", store, "select count(*), count(distinct url) from pages", "--format", "csv")
        )
        assert rows.splitlines()[1:] == [f"{HOSTS * PAGES * 2},{HOSTS * PAGES * 2}"], wrong


def test_masters_divide_a_crawl_on_ray_whose_agents_join_and_leave_at_work(place: Place) -> None:
    with web_of_hosts(pages=PAGES * 4, latency=0.5) as web:
        crawl = place.crawl("masters", web, "--agents", 1, "--designation", "master", "--masters", 2)
        web.wait_for(30)
        said, wrong = ended(place.begin("set", "masters", "agents=2"))
        assert "agents = 2" in said, wrong
        until(lambda: len(place.agents("masters")) == 2)
        web.wait_for(len(web.requests) + 30)
        said, wrong = ended(place.begin("set", "masters", "agents=1"))
        assert "all agents rest for some seconds" in said, wrong
        until(lambda: len(place.agents("masters")) == 1)
        out, told = ended(crawl)
        assert crawl.returncode == 0, told
        assert json.loads(out)["pages"] == HOSTS * PAGES * 4, told
        asked = Counter(request.target + request.host for request in web.requests if request.target != "/robots.txt")
        assert set(asked.values()) == {1}
    assert len(place.urls("masters")) == HOSTS * PAGES * 4


def test_an_agent_without_room_waits_and_the_crawl_says_for_what(place: Place) -> None:
    with web_of_hosts(pages=PAGES * 2, latency=0.05) as web:
        crawl = place.crawl("crowded", web, "--agents", 3)
        assert crawl.stderr is not None
        lines = list[str]()
        while "no room" not in (line := crawl.stderr.readline()):
            assert line, lines
            lines.append(line)
        assert (
            "each agent needs one processor of Ray, of which 0 of 2 are free; its autoscaler is asked for more" in line
        )
        assert asked_of_autoscaler(place) == [{"CPU": 1}] * 3
        crawl.send_signal(signal.SIGINT)
        ended(crawl)
        assert (crawl.returncode, asked_of_autoscaler(place)) == (3, [])
    until(lambda: not place.agents("crowded"))


def test_agents_that_are_bound_to_a_place_work_on_nodes_with_its_label_and_wait_for_such_a_node(place: Place) -> None:
    with web_of_hosts(pages=PAGES * 2, latency=0.05) as web:
        crawl = place.crawl("bound", web, "--agent-place", "agent-00=oslo", "--agent-place", "agent-01=place=lima")
        assert crawl.stderr is not None
        lines = list[str]()
        while "no node of Ray" not in (line := crawl.stderr.readline()):
            assert line, lines
            lines.append(line)
        assert "agent-01: no node of Ray has the label place=lima; begin one with `ray start --labels`" in line
        assert list(place.agents("bound")) == ["agent-00"]
        crawl.send_signal(signal.SIGTERM)
        _, told = ended(crawl)
        assert (crawl.returncode, "SIGTERM" in told) == (3, False)
        refused = place.crawl("misplaced", web, "--agent-place", "agent-00=a=/b")
        assert "--agent-place: 'a=/b' names no label of Ray: " in (told := ended(refused)[1])
        assert (refused.returncode, len(told.splitlines())) == (2, 1)
    until(lambda: not place.agents("bound"))


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (
            {"RAY_AUTH_TOKEN": "2e" * 32},
            "the Ray cluster wants its token, and has not got the right one; set RAY_AUTH_MODE=token",
        ),
        ({"RAY_ADDRESS": "127.0.0.1:1"}, "no Ray cluster answers at 127.0.0.1:1 (Connection refused); begin one with"),
        (
            {"RAY_ADDRESS": "ray://127.0.0.1:1"},
            "RAY_ADDRESS=ray://127.0.0.1:1: begin the crawl on a node of the cluster",
        ),
        ({"RAY_ADDRESS": "nowhere"}, "RAY_ADDRESS 'nowhere': write HOST:PORT"),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_told_in_one_line(
    place: Place, variables: dict[str, str], told: str
) -> None:
    with web_of_hosts() as web:
        crawl = place.crawl(f"refused-{abs(hash(told))}", web, **variables)
        _, said = ended(crawl)
    assert crawl.returncode == 2
    assert told in said and len(said.splitlines()) == 1
