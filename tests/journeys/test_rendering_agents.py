"""Several agents render pages whose files lie at hosts of others: each asks there in its turn, and no host is asked too soon."""

import asyncio
import shutil
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.test_agents import crawled, options_for
from tests.waiting import awaited

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.analysis.verifying import verify
from gossamer.browser.chromium import PROGRAMS
from gossamer.cli.main import main
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb

pytestmark = pytest.mark.skipif(not any(map(shutil.which, PROGRAMS)), reason="there is no Chromium on this machine")

HOSTS, ROUTES, DELAY = 6, 36, 0.2

SHELL = "<!doctype html><title>Shop</title><script src=http://cdn.files.test/app.js></script><body><div id=root></div>"
SCRIPT = """
const route = location.pathname.split('/').pop();
fetch('http://api.files.test/api/' + route).then(answer => answer.json()).then(item => {
  document.title = 'Item ' + route;
  const links = item.links.map(link => `<a href="${link}">${link}</a>`).join(' ');
  document.getElementById('root').innerHTML = `<h1>Item ${route}</h1><p>${item.text}</p>${links}`;
});
"""


class Shops(FakeWeb):
    """An application at each of several hosts; its script and its data lie at hosts of one other domain."""

    def __init__(self) -> None:
        self.times = defaultdict[str, list[float]](list)
        super().__init__({}, otherwise=self.other)

    def other(self, request: FakeRequest) -> FakePage:
        last = request.target.rpartition("/")[2]
        if request.target == "/robots.txt":
            return FakePage("", status=404)
        if request.target == "/app.js":
            return FakePage(SCRIPT, type="text/javascript")
        if not request.target.startswith("/api/"):
            return FakePage(SHELL)
        number = int(last)
        words = " ".join(f"word{number}x{one}" for one in range(50))
        links = [address(one % ROUTES) for one in (2 * number + 1, 2 * number + 2)]
        body = f'{{"text": "{words}", "links": {links}}}'.replace("'", '"')
        return FakePage(body, type="application/json", headers=(("Access-Control-Allow-Origin", "*"),))

    def note(self, request: FakeRequest) -> None:
        self.times[request.host].append(time.monotonic())
        super().note(request)


def address(number: int) -> str:
    return f"http://www.h{number % HOSTS}.test/item/{number}"


async def watch(job: SupervisedCrawl, web: Shops) -> None:
    """Leave the crawl alone."""


async def kill(job: SupervisedCrawl, web: Shops) -> None:
    for name, requests in (("agent-01", 25), ("agent-00", 60)):
        await awaited(lambda: job.several._supervisor is not None)
        await awaited(lambda name=name: job.several.supervisor.agents[name].has_worked)
        await awaited(lambda requests=requests: sum(map(len, web.times.values())) > requests)
        job.several.supervisor.agents[name].kill()


async def grow(job: SupervisedCrawl, web: Shops) -> None:
    await awaited(lambda: len(web.times) > 3)
    assert await asyncio.to_thread(main, ["set", str(job.directory), "agents=2"]) == 0


@pytest.mark.parametrize(
    ("more", "meanwhile"),
    [
        ({"agents": 2}, watch),
        pytest.param({"agents": 2, "designation": "master", "masters": 1}, watch, marks=pytest.mark.long),
        pytest.param({"agents": 2}, kill, marks=pytest.mark.long),
        pytest.param({"max_agents": 2}, grow, marks=pytest.mark.long),
    ],
    ids=["agents", "masters", "killed", "joining"],
)
def test_pages_are_rendered_with_files_of_other_agents_hosts_and_no_host_is_asked_too_soon(
    more: dict[str, Any], meanwhile: Callable[[SupervisedCrawl, Shops], Awaitable[None]], tmp_path: Path
) -> None:
    directory = tmp_path / "c"
    with Shops() as web:
        options = options_for(web, directory, delay=DELAY, render="auto", min_free_disk=0, **more)
        job = SupervisedCrawl([web.url(address(0))], options)
        summary = asyncio.run(crawled(job, lambda job: meanwhile(job, web)))
        assert (summary.exit_code, summary.pages, summary.needs_browser) == (0, ROUTES, 0)
        for host, moments in web.times.items():
            gaps = [after - before for before, after in pairwise(sorted(moments))]
            # The server may write a request down late on a busy machine.
            assert min(gaps, default=DELAY) >= 0.8 * DELAY, host
    with Database(directory) as database:
        [[rendered]] = database.ask("SELECT count(*) FROM pages WHERE render = 'done' AND title LIKE 'Item %'")
        [[hosts, names]] = database.ask("SELECT count(*), count(DISTINCT host) FROM hosts")
    assert (rendered, hosts) == (ROUTES, names)
    assert verify(directory, deep=True).findings == []
