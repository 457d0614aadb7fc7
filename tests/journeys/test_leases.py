"""Crawlers that share one queue by leases fetch what one process does, as politely, whichever of them dies or hangs."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.journeys.test_agents import options_for, seed_of, web_of_hosts
from tests.sampling import sampled
from tests.waiting import awaited

from gossamer.cli.main import main
from gossamer.crawls.control.messages import Change
from gossamer.crawls.control.steering import answer
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.crawlers import crawlers_of
from gossamer.crawls.leases import LeaseUrls
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.engine.wiring import read
from gossamer.simweb import ServeOptions, SimWeb, WebSpec, beside
from gossamer.simweb.audit import AuditOptions, audit
from gossamer.simweb.graph import WebGraph
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import UsageError

HOSTS, PAGES = 6, 12

#: A crawler that hangs is noticed soon, also where the machine is busy.
SOON = {"lease": {"lease": 2.0}, "take": {"renew": 0.2}}


async def crawled(job: Crawl, meanwhile: Callable[[Crawl], Awaitable[None]]) -> Summary:
    async with asyncio.timeout(HUNG_AFTER):
        beside_it = asyncio.create_task(meanwhile(job))
        summary = await job.run()
        await beside_it
        return summary


def leases_of(job: Crawl, crawler: str) -> LeaseUrls:
    [unit] = [one for one in job.units.components(LeaseUrls) if one.sheet.crawler == crawler]
    return unit


async def with_a_lease(job: Crawl, crawler: str) -> int:
    """The process of a crawler, in the middle of a fetch."""
    await awaited(lambda: job.fleet is not None and crawler in job.fleet.children and job.running is not None)
    unit = leases_of(job, crawler)
    await awaited(lambda: unit.metrics.snapshot()["leases"] > 0)
    assert job.fleet is not None
    return job.fleet.children[crawler].pid


def test_a_crawler_that_dies_and_one_that_hangs_give_their_urls_back_and_no_host_is_asked_too_soon(
    tmp_path: Path,
) -> None:
    log, delay = tmp_path / "requests.log", 0.1
    spec = WebSpec(
        seed=4, pages=50, hosts=16, size_median=1000, links=8, trap_share=0, flaky_share=0, dead_link_share=0
    )
    with beside(spec, ServeOptions(log=log)) as port:
        options = build(
            CrawlOptions,
            {
                "output": str(tmp_path / "crawl"),
                "scope": "any",
                "delay": delay,
                "domain_delay": delay,
                "resolve": [f"*.sim=127.0.0.1:{port}"],
                "allow_network": ["127.0.0.0/8"],
                "crawlers": 2,
            },
        )
        told: list[str] = []
        job = Crawl([WebGraph(SimWeb(spec)).url(0)], options, settings=SOON, report=told.append, tables=False)

        async def harm(job: Crawl) -> None:
            # Both at once: the first page is leased to one of them, so each is harmed when it has something.
            await asyncio.gather(kill(job), stop(job))

        async def kill(job: Crawl) -> None:
            os.kill(await with_a_lease(job, "crawler-1"), signal.SIGKILL)

        async def stop(job: Crawl) -> None:
            os.kill(await with_a_lease(job, "crawler-2"), signal.SIGSTOP)

        summary = asyncio.run(crawled(job, harm))
    judged = audit(log, AuditOptions(delay=0.98 * delay))
    assert (judged.host.overlapping, judged.host.below, judged.robots.breaches) == (0, 0, 0), judged.host.worst
    assert (judged.robots.asked_late, judged.coverage.missed) == (0, 0)
    assert summary.state == "finished"
    assert any("crawler-2 has not renewed its leases" in line for line in told)
    assert sum("it is started again" in line for line in told) == 2


@pytest.mark.long
def test_crawlers_may_be_more_or_fewer_or_none_when_a_crawl_goes_on(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    with web_of_hosts(HOSTS, PAGES) as web:
        pages = HOSTS * PAGES
        found = []
        for number, limit in ((2, pages // 3), (3, 2 * pages // 3), (0, None)):
            more = {"resume": number != 2, "crawlers": number, "max_pages": limit or pages + 1}
            job = Crawl([] if more["resume"] else [seed_of(web)], options_for(web, directory, **more), tables=False)
            summary = asyncio.run(job.run())
            found.append((summary.state, crawlers_of(read(directory / "crawl.toml"))))
        asked = Counter(one.host + one.target for one in web.requests)
    assert found == [("limit", 2), ("limit", 3), ("finished", 0)]
    assert (summary.pages, len(asked), max(asked.values())) == (pages, pages, 1)


def test_a_setting_of_a_stage_reaches_every_crawler(tmp_path: Path) -> None:
    async def change(job: Crawl) -> None:
        await awaited(lambda: job.working)
        await answer(job, Change({"max-links": "5000", "links.max_redirects": "7"}))
        with pytest.raises(UsageError, match="take 64 URLs at once; stop the crawl"):
            await answer(job, Change({"concurrency": "100"}))

    with web_of_hosts(HOSTS, PAGES, latency=0.02) as web:
        job = Crawl([seed_of(web)], options_for(web, tmp_path / "crawl", crawlers=2), tables=False)
        summary = asyncio.run(crawled(job, change))
    kept = read(tmp_path / "crawl" / "crawl.toml")
    assert summary.pages == HOSTS * PAGES
    for number in (1, 2):
        settings = kept.components[f"links-crawler-{number}"].settings
        assert (settings["max_links"], settings["max_redirects"]) == (5000, 7)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--agents", "2"], "leave out --agents"),
        (["--cookies", "host"], "leave out --cookies"),
        (["--strategy", "random-walk"], "choose another --strategy"),
    ],
)
def test_what_cannot_be_shared_is_refused_in_one_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["crawl", "http://a.test/", "--crawlers", "2", "-o", str(tmp_path / "crawl"), *options]
    assert main(given) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("how", sampled(["run", "crawl_sync"], 2))
def test_a_spider_and_a_program_that_reads_pages_take_crawlers_too(tmp_path: Path, how: str) -> None:
    spec = WebSpec(pages=12, hosts=1, size_median=500, trap_share=0, flaky_share=0, dead_link_share=0)
    with beside(spec) as port:
        url = WebGraph(SimWeb(spec)).url(0)
        given = f"delay=0.01, resolve=['*.sim=127.0.0.1:{port}'], allow_network=['127.0.0.0/8'], output='crawl'"
        program = {
            "run": f"""
import gossamer
spider = gossamer.Spider({url!r}, {given})
@spider.page()
def page(page):
    yield {{"url": page.url}}
    yield page.follow_all("a")
""",
            "crawl_sync": f"""
import gossamer
if __name__ == "__main__":
    print(*(page.url for page in gossamer.crawl_sync({url!r}, {given}, crawlers=2)), sep="\\n")
""",
        }[how]
        file = tmp_path / "program.py"
        file.write_text(program, encoding="utf-8")
        words = {"run": ["-m", "gossamer", "run", str(file), "--crawlers", "2", "--items", "items.jsonl"]}
        found = subprocess.run(
            [sys.executable, "-P", *words.get(how, [str(file)])],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HUNG_AFTER,
        )
    assert found.returncode == 0, found.stderr
    crawl = tmp_path / "crawl"
    assert crawlers_of(read(crawl / "crawl.toml")) == 2
    lines = (tmp_path / "items.jsonl").read_text().splitlines() if how == "run" else found.stdout.splitlines()
    rows = map(json.loads, (crawl / "logs" / "crawl.jsonl").read_text(encoding="utf-8").splitlines())
    pages = [row for row in rows if row.get("outcome") == "ok" and row["mime"] == "text/html"]
    assert len(lines) == len(pages) > 1
