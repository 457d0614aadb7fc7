"""Every cluster keeps the promises of `agents.contract.Cluster`, and a cluster is found by its name."""

import asyncio
from pathlib import Path

import pytest
from tests.clusters import TwoAgents

from gossamer.agents.cluster import LocalCluster, cluster_of, local_cluster
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.files import shared_scratch
from gossamer.testing import check_cluster
from gossamer.values.errors import UsageError


@pytest.mark.forks
def test_processes_of_this_machine(tmp_path: Path) -> None:
    with shared_scratch() as folder:
        crawl = TwoAgents(tmp_path / "crawl", Path(folder))
        asyncio.run(check_cluster(lambda: local_cluster(crawl.needs), crawl))


def test_a_crawl_that_names_no_cluster_runs_on_this_machine_and_an_unknown_name_is_refused(tmp_path: Path) -> None:
    with shared_scratch() as folder:
        needs = TwoAgents(tmp_path / "crawl", Path(folder)).needs
    assert isinstance(cluster_of(needs), LocalCluster)
    with pytest.raises(UsageError, match=r"no cluster is called 'locl'; did you mean 'local'"):
        cluster_of(needs._replace(options=CrawlOptions(cluster="locl")))
