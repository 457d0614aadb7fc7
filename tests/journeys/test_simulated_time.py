"""Crawls on a simulated clock: the order of events is the test's, hours take a second, and a crawl repeats exactly (row R6)."""

import asyncio
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gossamer.assembly.catalog import catalog
from gossamer.assembly.compiling import shipped
from gossamer.assembly.crawl import Crawl
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.summary import Summary
from gossamer.flow import wiring as wirings
from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import host_of, path_of
from gossamer.model.visit import Response
from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.site import Conditions
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import html
from gossamer.testing.simulated import SimulatedLoop


class Answered(NamedTuple):
    """What a web of a test says to one request."""

    status: int
    body: bytes
    latency: float
    """Seconds."""
    fields: tuple[tuple[str, str], ...] = (("content-type", "text/html"),)


Web = Callable[[str, float], Answered]
"""From a URL and the seconds since the crawl began, the answer."""

OUTCOMES = {2: Outcome.OK, 3: Outcome.REDIRECT, 4: Outcome.CLIENT_ERROR, 5: Outcome.SERVER_ERROR}


class Ran(NamedTuple):
    """A crawl that has ended."""

    summary: Summary
    asked: list[tuple[float, str]]
    """When what was asked for, in seconds since the crawl began."""
    rows: list[dict[str, Any]]
    """Of its log."""


def module_of(web: Web, asked: list[tuple[float, str]]) -> type[Provider[NoSettings]]:
    """A protocol module that answers out of a function instead of the network."""

    class Simulated(Provider[NoSettings]):
        async def fetch(self, task: Task) -> Response:
            started, began = self.clock.now(), self.clock.monotonic()
            asked.append((began, task.url))
            answer = web(task.url, began)
            await self.clock.sleep(answer.latency)
            return Response(
                OUTCOMES[answer.status // 100],
                status=answer.status,
                headers=answer.fields,
                body=answer.body,
                started=started,
                elapsed=self.clock.monotonic() - began,
            )

    return Simulated


def crawl(web: Web, hosts: list[str], folder: Path, **options: Any) -> Ran:
    """Crawl a web that is a function, from the root of its first host, on a clock that nobody waits for."""
    asked: list[tuple[float, str]] = []
    known, clock = catalog(), FakeClock()
    known.add("simulated", module_of(web, asked))
    text = wirings.to_toml(shipped("default")).replace('http = "http"', 'http = "simulated"', 1)
    wiring = wirings.parse(text + '\n[providers.simulated]\nuse = "simulated"\n', "simulated.toml")
    given = {"scope": "any", "delay": 1.0, "resolve": tuple(f"{name}=127.0.0.1:80" for name in hosts), **options}
    job = Crawl(
        [f"http://{hosts[0]}/"],
        CrawlOptions(output=str(folder), **given),
        wiring=wiring,
        settings={"dns": {"allow_networks": ["127.0.0.0/8"]}},
        catalog=known,
        tables=False,
        clock=clock,
    )
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(clock)) as runner:
        summary = runner.run(job.run())
    rows = [json.loads(line) for line in (folder / "logs" / "crawl.jsonl").read_text().splitlines()]
    return Ran(summary, asked, rows)


# -- a crawl repeats


def simulated(seed: int) -> tuple[Web, list[str]]:
    """A simulated web of a dozen hosts with traps and flaky pages; how long an answer takes depends on the answer alone."""
    spec = WebSpec(seed=seed, pages=400, hosts=12, links=8.0, navigation=4, size_median=2048, size_limit=20_000)
    web = SimWeb(spec)

    def answered(url: str, moment: float) -> Answered:
        door = web.door(host_of(url))
        assert door is not None, url
        answer = web.answer(door, path_of(url), Conditions(), int(moment))
        lines = [line.split(": ", 1) for line in answer.head.decode("latin-1").split("\r\n")[1:] if line]
        fields = tuple((name.lower(), value) for name, value in lines)
        latency = 0.01 + len(url) * 7 % 31 / 97 + len(answer.body) % 1009 / 1000
        return Answered(answer.status, answer.body, latency, fields)

    return answered, [web.hosts.name(rank) for rank in range(len(web.hosts))]


def without_names(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows but for what is random so that no two crawls share it: the crawl's part of each visit's name, and the identifiers of
    records, which decide where the archive has them."""
    return [
        {
            name: value.partition("-")[2] if name == "visit" else value
            for name, value in row.items()
            if not name.startswith("warc_")
        }
        for row in rows
    ]


def test_one_agent_on_a_simulated_clock_repeats_exactly(tmp_path: Path) -> None:
    one, two = (crawl(*simulated(seed=7), tmp_path / name, max_pages=250) for name in ("one", "two"))
    assert one.summary.pages == 250
    assert len({host_of(url) for _, url in one.asked}) > 10
    assert one.asked == two.asked, "the same requests at the same instants"
    assert without_names(one.rows) == without_names(two.rows)
    assert (one.summary.outcomes, one.summary.cuts) == (two.summary.outcomes, two.summary.cuts)


# -- the racing graph of Ridgway 2010, figures 14 and 15: found on a long way first, links count from the short one

RACING = {"/": ["/2", "/3"], "/2": ["/3"], "/3": ["/4", "/5", "/6", "/7", "/8"]}


def racing(latencies: dict[str, float]) -> Web:
    """The graph, each page after its own latency."""

    def answered(url: str, moment: float) -> Answered:
        path = path_of(url)
        if path == "/robots.txt":
            return Answered(404, b"", 0.001)
        return Answered(200, html(path, RACING.get(path, [])).encode(), latencies.get(path, 0.01))

    return answered


ORDERS = [dict(zip(("/", "/2", "/3"), times, strict=True)) for times in itertools.product((0.001, 60.0), repeat=3)]


@pytest.mark.parametrize("latencies", ORDERS, ids=lambda latencies: "-".join(map(str, latencies.values())))
def test_the_racing_graph_of_seed_002_has_eight_pages_whatever_comes_first(
    latencies: dict[str, float], tmp_path: Path
) -> None:
    draw = random.Random(str(latencies))
    latencies = {f"/{n}": draw.random() for n in range(4, 9)} | latencies
    for number, per_host in enumerate((1, 8)):
        ran = crawl(racing(latencies), ["a.test"], tmp_path / str(number), depth=2, delay=0.0, per_host=per_host)
        fetched = [path_of(url) for _, url in ran.asked if not url.endswith("/robots.txt")]
        assert sorted(fetched) == ["/", *(f"/{n}" for n in range(2, 9))], "each once"
        assert (ran.summary.state, ran.summary.pages, ran.summary.cuts) == ("finished", 8, {})
