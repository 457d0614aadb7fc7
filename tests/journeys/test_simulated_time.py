"""Crawls on a simulated clock: the order of events is the test's, hours take a second, and a crawl repeats exactly (row R6)."""

import asyncio
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.summary import Summary
from gossamer.engine import wiring as wirings
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.site import Conditions
from gossamer.testing.clock import FakeClock, SimulatedLoop
from gossamer.testing.fakeweb import html
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of, path_of
from gossamer.values.visit import Response


class Answered(NamedTuple):
    """What a web of a test says to one request."""

    status: int
    body: bytes
    latency: float
    """Seconds."""
    fields: tuple[tuple[str, str], ...] = (("content-type", "text/html"),)


Web = Callable[[str, float], Answered]
"""From a URL and the seconds since the crawl began, the answer."""

OUTCOMES = {
    429: Outcome.RATE_LIMITED,
    2: Outcome.OK,
    3: Outcome.REDIRECT,
    4: Outcome.CLIENT_ERROR,
    5: Outcome.SERVER_ERROR,
}


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
                OUTCOMES.get(answer.status) or OUTCOMES[answer.status // 100],
                status=answer.status,
                headers=answer.fields,
                body=answer.body,
                started=started,
                elapsed=self.clock.monotonic() - began,
            )

    return Simulated


def crawl(
    web: Web,
    hosts: list[str],
    folder: Path,
    clock: FakeClock | None = None,
    begun: Callable[[Crawl], None] = lambda job: None,
    **options: Any,
) -> Ran:
    """Crawl a web that is a function, from the root of its first host, on a clock that nobody waits for.

    `clock`: one that other crawls have used, so that time goes on; `begun` is called with the crawl before it runs.
    """
    asked: list[tuple[float, str]] = []
    known, clock = catalog(), clock or FakeClock()
    known.add("simulated", module_of(web, asked))
    text = wirings.to_toml(shipped("default")).replace('http = "http"', 'http = "simulated"', 1)
    wiring = wirings.parse(text + '\n[providers.simulated]\nuse = "simulated"\n', "simulated.toml")
    given = {"scope": "any", "delay": 1.0, "resolve": tuple(f"{name}=127.0.0.1:80" for name in hosts), **options}
    is_new = not options.get("resume")
    job = Crawl(
        [f"http://{hosts[0]}/"] if is_new else [],
        CrawlOptions(output=str(folder), **given),
        wiring=wiring if is_new else None,
        settings={"dns": {"allow_networks": ["127.0.0.0/8"]}},
        catalog=known,
        tables=False,
        clock=clock,
    )
    begun(job)
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(clock)) as runner:
        summary = runner.run(job.run())
    log = folder / "logs" / "crawl.jsonl"
    # A crawl to which nothing came leaves nothing.
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
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
    """Rows but for what is random so that no two crawls share it: the crawl's part of each visit's name, which the sum of
    its line has too, and the identifiers of records, which decide where the archive has them."""
    return [
        {
            name: value.partition("-")[2] if name == "visit" else value
            for name, value in row.items()
            if name != "line_sum" and not name.startswith("warc_")
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


# -- how long a crawl lasts, and what it has done by then


def a_site(pages: int, answers: Callable[[int, float], Answered]) -> Web:
    """A site whose root links to numbered pages, which answer as they are told to."""

    def answered(url: str, moment: float) -> Answered:
        path = path_of(url)
        if path == "/robots.txt":
            return Answered(404, b"", 0.001)
        if path == "/":
            return Answered(200, html(path, [f"/{number}" for number in range(pages)]).encode(), 0.1)
        return answers(int(path[1:]), moment)

    return answered


def refusing(answers: Callable[[int], bool]) -> Callable[[int, float], Answered]:
    """Pages of a site of which some answer 503 with `Retry-After: 1`."""

    def answered(number: int, moment: float) -> Answered:
        if answers(number):
            return Answered(503, b"", 0.1, (("content-type", "text/html"), ("retry-after", "1")))
        return Answered(200, html(f"/{number}", []).encode(), 0.1)

    return answered


def test_a_site_with_many_broken_pages_has_the_retries_that_are_due_and_ends(tmp_path: Path) -> None:
    broken = {number for number in range(60) if number % 4 == 1} | {57, 58, 59}
    ran = crawl(a_site(60, refusing(broken.__contains__)), ["a.test"], tmp_path / "c")
    asked = [path_of(url) for _, url in ran.asked if path_of(url) not in ("/", "/robots.txt")]
    assert {asked.count(f"/{number}") for number in broken} == {2}, "each has its second try, and the third is not due"
    assert ran.summary.state == "incomplete" and ran.summary.queued == len(broken)
    moments = [moment for moment, _ in ran.asked]
    assert max(later - earlier for earlier, later in itertools.pairwise(moments)) < 12.0, "none waits long"


@pytest.mark.parametrize("broken", [8, 20])
def test_a_site_whose_first_links_are_broken_brings_all_its_other_pages(broken: int, tmp_path: Path) -> None:
    ran = crawl(a_site(60, refusing(lambda number: number < broken)), ["a.test"], tmp_path / "c")
    assert ran.summary.pages == 1 + 60 - broken, "the root, and every page that is not broken"
    assert (ran.summary.state, ran.summary.queued) == ("incomplete", broken)
    first_clean = next(moment for moment, url in ran.asked if url.endswith(f"/{broken}"))
    assert first_clean < 6 * 60.0


def test_a_host_that_is_down_is_asked_for_twenty_pages_and_then_ends_the_crawl(tmp_path: Path) -> None:
    ran = crawl(a_site(60, refusing(lambda number: True)), ["a.test"], tmp_path / "c")
    assert (ran.summary.state, ran.summary.pages, ran.summary.queued) == ("incomplete", 1, 60)
    assert len(ran.asked) < 30 and ran.asked[-1][0] < 7 * 60.0


@pytest.mark.parametrize("refused", [{0}, {20}, {0, 1, 2, 3, 4}], ids=["first", "middle", "five"])
def test_pages_that_are_always_answered_429_keep_no_other_page_waiting(refused: set[int], tmp_path: Path) -> None:
    def answers(number: int, moment: float) -> Answered:
        if number in refused:
            return Answered(429, b"", 0.1, (("content-type", "text/html"), ("retry-after", "1")))
        return Answered(200, html(f"/{number}", []).encode(), 0.1)

    ran = crawl(a_site(60, answers), ["a.test"], tmp_path / "c")
    assert ran.summary.pages == 61 - len(refused)
    assert (ran.summary.state, ran.summary.queued) == ("incomplete", len(refused))
    assert ran.summary.discovered == 61, "a page that is put off was found once"


def test_a_host_that_answers_429_to_everything_ends_a_crawl_that_lingers_for_ever_and_loses_no_page(
    tmp_path: Path,
) -> None:
    clock, folder = FakeClock(), tmp_path / "c"

    def refuses(number: int, moment: float) -> Answered:
        return Answered(429, b"", 0.1, (("content-type", "text/html"),))

    first = crawl(a_site(8, refuses), ["a.test"], folder, clock, linger="forever")
    assert (first.summary.state, first.summary.pages, first.summary.queued) == ("incomplete", 1, 8)
    assert len(first.asked) < 20
    asyncio.run(clock.advance(600.0))
    again = crawl(a_site(8, refusing(lambda number: False)), ["a.test"], folder, clock, resume=True)
    assert (again.summary.state, again.summary.pages) == ("finished", 9)


def test_a_robots_txt_that_comes_back_within_the_linger_brings_the_pages_of_its_site(tmp_path: Path) -> None:
    def answered(url: str, moment: float) -> Answered:
        if path_of(url) == "/robots.txt":
            return Answered(503 if moment < 9.0 else 404, b"", 0.01)
        return Answered(200, html(path_of(url), []).encode(), 0.01)

    ran = crawl(answered, ["a.test"], tmp_path / "c")
    assert (ran.summary.state, ran.summary.pages) == ("finished", 1)
    out_of_reach = crawl(lambda url, moment: Answered(503, b"", 0.01), ["a.test"], tmp_path / "d")
    assert (out_of_reach.summary.state, out_of_reach.summary.queued) == ("incomplete", 1)
    assert out_of_reach.asked[-1][0] - out_of_reach.asked[0][0] < 30.0, "the next request is due in ten minutes"


# -- hosts wait across runs as they would have


def with_a_crawl_delay(url: str, moment: float) -> Answered:
    if path_of(url) == "/robots.txt":
        return Answered(200, b"User-agent: *\nCrawl-delay: 300\n", 0.01, (("content-type", "text/plain"),))
    return Answered(200, html(path_of(url), [f"/{number}" for number in range(9)]).encode(), 0.01)


def test_a_host_waits_its_whole_delay_after_a_kill_also_where_a_run_between_asked_nothing(tmp_path: Path) -> None:
    clock, folder = FakeClock(), tmp_path / "c"
    jobs: list[Crawl] = []

    def dies_at_the_third_page(url: str, moment: float) -> Answered:
        if path_of(url) == "/1":
            jobs[-1].abort()
        return with_a_crawl_delay(url, moment)

    first = crawl(dies_at_the_third_page, ["a.test"], folder, clock, jobs.append)
    assert (first.summary.state, path_of(first.asked[-1][1])) == ("stopped", "/1")
    last = first.asked[-1][0]

    # This run has no time for a request, and ends in order.
    second = crawl(with_a_crawl_delay, ["a.test"], folder, clock, resume=True, max_time=100.0)
    assert (second.summary.limit, second.asked) == ("max_time", [])
    third = crawl(with_a_crawl_delay, ["a.test"], folder, clock, resume=True, max_time=2000.0)
    assert third.asked[0][0] - last >= 300.0
    moments = [moment for moment, _ in third.asked]
    assert min(later - earlier for earlier, later in itertools.pairwise(moments)) >= 300.0


def test_a_retry_after_outlives_the_run_in_which_it_was_said(tmp_path: Path) -> None:
    clock, folder = FakeClock(), tmp_path / "c"

    def busy(url: str, moment: float) -> Answered:
        if path_of(url) == "/robots.txt":
            return Answered(404, b"", 0.01)
        if path_of(url) == "/":
            return Answered(200, html("/", ["/1", "/2"]).encode(), 0.01)
        return Answered(429, b"", 0.01, (("retry-after", "500"),)) if moment < 400.0 else Answered(200, b"<p>", 0.01)

    first = crawl(busy, ["a.test"], folder, clock)
    assert first.summary.state == "incomplete"
    again = crawl(busy, ["a.test"], folder, clock, resume=True)
    assert again.asked == [], "it is not due within the linger"
    third = crawl(busy, ["a.test"], folder, clock, resume=True, linger="forever")
    assert third.summary.pages == 3
    assert third.asked[0][0] - first.asked[-1][0] >= 500.0
