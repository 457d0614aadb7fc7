"""Every cluster keeps the promises of `agents.contract.Cluster`, and a cluster is found by its name."""

import asyncio
import socket
from pathlib import Path

import pytest
from tests.clusters import TwoAgents

from gossamer.agents.cluster import LocalCluster, cluster_of, local_cluster
from gossamer.agents.joined.machine import JoinedMachine
from gossamer.agents.joined.welcoming import JoinedCluster
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.files import scratch
from gossamer.engine.remote.handshake import SECRET_VARIABLE
from gossamer.testing import check_cluster
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import UsageError

SECRET = b"a secret of this test, and of no other"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


#: Clusters of supervisors that are gone, whose processes work on: Python would warn of these when it lets go of them.
GONE: list[LocalCluster] = []


@pytest.mark.forks
def test_processes_of_this_machine(tmp_path: Path) -> None:
    with scratch(shared=True) as folder:
        crawl = TwoAgents(tmp_path / "crawl", Path(folder))

        def make() -> LocalCluster:
            GONE.append(local_cluster(crawl.needs))
            return GONE[-1]

        asyncio.run(check_cluster(make, crawl))


def test_a_crawl_that_names_no_cluster_runs_on_this_machine_and_an_unknown_name_is_refused(tmp_path: Path) -> None:
    with scratch(shared=True) as folder:
        needs = TwoAgents(tmp_path / "crawl", Path(folder)).needs
    assert isinstance(cluster_of(needs), LocalCluster)
    with pytest.raises(UsageError, match=r"no cluster is called 'locl'; did you mean 'local'"):
        cluster_of(needs._replace(options=CrawlOptions(cluster="locl")))
    with pytest.raises(UsageError, match="--agent-wheel lets Ray bring code to its machines"):
        cluster_of(needs._replace(options=CrawlOptions(agent_wheel=("own.whl",))))


@pytest.mark.forks
def test_machines_that_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, SECRET.decode())
    port = free_port()

    async def checked() -> None:
        with scratch(shared=True) as folder:
            crawl = TwoAgents(tmp_path / "crawl", Path(folder), cluster="joined", listen=f"127.0.0.1:{port}")
            machines = [JoinedMachine(tmp_path / name, f"127.0.0.1:{port}", "", SECRET, print) for name in ("a", "b")]
            work = [asyncio.create_task(machine.run()) for machine in machines]
            await check_cluster(lambda: JoinedCluster(crawl.needs), crawl)
            async with asyncio.timeout(HUNG_AFTER):
                await asyncio.gather(*work)

    asyncio.run(checked())
