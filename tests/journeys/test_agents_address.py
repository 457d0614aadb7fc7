"""An address or domain where several agents have hosts is asked as by one crawler: the server's own log says so."""

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.journeys.test_agents import crawled
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.simweb import ServeOptions, SimWeb, WebSpec, beside
from gossamer.simweb.audit.trace import read_trace
from gossamer.simweb.graph import WebGraph
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

GAP = 0.05


@pytest.mark.parametrize("kills", [0, pytest.param(2, marks=pytest.mark.long)])
def test_two_agents_keep_the_delay_of_an_address_that_they_share(tmp_path: Path, kills: int) -> None:
    log = tmp_path / "requests.log"
    spec = WebSpec(seed=4, pages=24, hosts=8, size_median=500, links=8, trap_share=0, flaky_share=0, dead_link_share=0)
    with beside(spec, ServeOptions(log=log)) as port:
        given = {
            "output": str(tmp_path / "crawl"),
            "scope": "any",
            "delay": 0,
            "domain_delay": 0,
            "ip_delay": GAP,
            "resolve": [f"*.sim=127.0.0.1:{port}"],
            "allow_network": ["127.0.0.0/8"],
            "agents": 2,
        }
        job = SupervisedCrawl([WebGraph(SimWeb(spec)).url(0)], build(all_options(), given), tables=False)

        async def kill(job: SupervisedCrawl) -> None:
            await awaited(lambda: job.several._supervisor is not None)
            for agent in list(job.several.supervisor.agents.values())[:kills]:
                await awaited(lambda agent=agent: agent.has_worked)
                agent.kill()

        summary = asyncio.run(crawled(job, kill))
    assert summary.state == "finished"
    assert summary.pages >= 20
    for name in ("agent-00", "agent-01"):
        assert (tmp_path / f"crawl/logs/{name}.jsonl").stat().st_size, "both have asked there"
    check_gaps([start / 1e6 for start in read_trace(log).start.tolist()])


def test_agents_that_divide_the_hosts_of_a_domain_keep_its_delay(tmp_path: Path) -> None:
    starts: list[float] = []
    hosts, pages = 6, 4

    def answer(request: FakeRequest) -> FakePage:
        starts.append(time.monotonic())
        links = "".join(f'<a href="http://h{h}.one.test/p{n}">x</a>' for h in range(hosts) for n in range(pages))
        return FakePage(links + request.target)

    urls = {f"http://h{h}.one.test/p{n}": answer for h in range(hosts) for n in range(pages)}
    with FakeWeb(urls) as web:
        given = {
            "output": str(tmp_path / "crawl"),
            "scope": "any",
            "delay": 0,
            "domain_delay": GAP,
            "robots": "ignore",
            "resolve": [web.resolve],
            "allow_network": ["127.0.0.0/8"],
            "agents": 2,
        }
        settings = {"ledger": {"division": "host"}}
        job = SupervisedCrawl(["http://h0.one.test/p0"], build(all_options(), given), settings=settings, tables=False)
        summary = asyncio.run(crawled(job))
    assert (summary.state, summary.pages) == ("finished", hosts * pages)
    for name in ("agent-00", "agent-01"):
        assert (tmp_path / f"crawl/logs/{name}.jsonl").stat().st_size, "both have asked there"
    check_gaps(starts)


def check_gaps(starts: list[float]) -> None:
    gaps = [after - before for before, after in pairwise(sorted(starts))]
    # The server's clock reads late where the machine is busy, and a gap that follows is shorter by as much.
    assert sum(gap < GAP / 2 for gap in gaps) <= len(gaps) // 6, sorted(gaps)[:20]
