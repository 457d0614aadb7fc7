"""A mobile crawler finds relevant what a stationary crawl with the same gates finds relevant."""

import asyncio
import http.client
import random
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.sheet import NoSettings, build
from gossamer.mobile.crawler import MobileCrawler, MobileProgram, TravelLimits
from gossamer.mobile.running import run_crawler
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import Answer, FakePage, FakeWeb
from gossamer.values.outcome import DOCUMENTS, Outcome, of_status
from gossamer.values.task import Task
from gossamer.values.visit import Record, Response, Visit

PAGES = 60
SUBJECTS = ("kidney", "heart disease", "cars", "gardens")

GATES: list[dict[str, Any]] = [
    {},
    {"store": "text(kidney, 'heart disease')"},
    {"store": "keywords(kidney, heart*) and size < 100KB", "expand": "not text(cars)"},
    {"store": "mime(text/html) and links >= 5 and language(en)", "expand": "title matches [02468]$", "depth": 3},
    {"store": "header(x-kind) and not path(/p/1*)", "follow": "not extension(pdf) and not query", "scope": "prefix"},
]


def site() -> dict[str, Answer]:
    """A small web with what real ones have: redirects, loops, bases, refreshes, feeds, duplicates, other encodings, dead links."""
    dice = random.Random(5)
    pages: dict[str, Answer] = {"/robots.txt": FakePage("User-agent: *\nDisallow: /secret\n", type="text/plain")}
    every = [f"/p/{at}" for at in range(PAGES)]
    for at, path in enumerate(every):
        targets = [
            *dice.sample(every, 4),
            "/moved",
            "/",
            f"/p/{at}?session={dice.randint(1, 3)}",
            "http://other.invalid/x",
        ]
        more = ['<a rel="nofollow" href="/disowned">x</a>', '<a href="/secret/a">x</a>', '<base href="/p/">']
        anchors = "".join(f'<a href="{target}">{target}</a>' for target in targets[: dice.randint(2, 8)])
        prose = f"<p>{' '.join(dice.choices(SUBJECTS, k=3))} are what this page is about, says number {at // 2}.</p>"
        fields = (("X-Kind", "odd"),) if at % 2 else ()
        head = f'<html lang="{dice.choice(["en", "de"])}"><title>Page {at}</title>'
        pages[path] = FakePage(f"{head}{dice.choice(more)}{anchors}{prose}", headers=fields)
    pages["/"] = "<title>Start 0</title>" + "".join(
        f'<a href="{path}">x</a>' for path in (*every[:5], "/news", "/a.pdf")
    )
    pages["/moved"] = FakePage(status=301, headers=(("Location", "/p/7"),))
    pages["/loop"] = FakePage(status=302, headers=(("Location", "/loop"),))
    pages["/news"] = FakePage(
        "<rss><channel><item><link>/p/50</link></item><item><link>/latin</link></item></channel></rss>",
        type="application/rss+xml",
    )
    pages["/latin"] = FakePage("<title>Üben</title><a href='/p/9?q=ü'>kidney</a>".encode("latin-1"), type="text/html")
    pages["/copy"] = pages["/p/50"] = '<title>Copy 0</title><a href="/copy">kidney</a><a href="/loop">x</a>'
    pages["/p/3"] = '<meta http-equiv=refresh content="0; url=/frames">'
    pages["/frames"] = '<iframe src="/p/20"></iframe><link rel=next href="/p/21">kidney'
    pages["/a.pdf"] = FakePage(b"%PDF-1.4", type="application/pdf")
    pages["/p/20"] = FakePage("<title>Gone 0</title>kidney", status=404)
    pages["/disowned"] = pages["/secret/a"] = "kidney"
    return pages


def stationary(web: FakeWeb, folder: Path, gates: dict[str, Any]) -> dict[str, int]:
    """The documents that a crawl keeps, each with its depth."""
    kept: dict[str, int] = {}

    class Keeper(Consumer[NoSettings]):
        """Notes the documents that passed `store`."""

        records: In[Record]

        def consume(self, record: Record) -> None:
            visit: Visit = record.visit
            if visit.response.outcome in DOCUMENTS and "store" not in visit.barred and not visit.is_robots:
                kept[visit.url] = visit.task.depth

    known = catalog()
    known.add("keeper", Keeper)
    filters = [f"{gate}: {gates[gate]}" for gate in ("follow", "expand", "store") if gate in gates]
    # One request at a time: pages come in order of depth, and each is at the depth of its shortest way.
    options: dict[str, Any] = {"output": str(folder / "crawl"), "delay": 0, "filter": filters, "traps": "report"}
    options |= {name: gates[name] for name in ("depth", "scope") if name in gates}
    job = Crawl([web.url("/")], build(all_options(), options), catalog=known, tables=False, subscribers=["keeper"])
    asyncio.run(job.run())
    return kept


def mobile(web: FakeWeb, gates: dict[str, Any]) -> dict[str, int]:
    """The documents that a mobile crawler brings home, each with its depth; its source is the same server."""
    connection = http.client.HTTPConnection(web.authority, timeout=HUNG_AFTER)

    def fetch(task: Task) -> Response:
        path = task.url.removeprefix(web.url("/")[:-1])
        if path.startswith("/secret"):
            return Response(Outcome.ROBOTS_DENIED)  # a source is what obeys robots.txt
        connection.request("GET", path)
        answer = connection.getresponse()
        fields = tuple((name.lower(), value) for name, value in answer.getheaders())
        return Response(of_status(answer.status), answer.status, headers=fields, body=answer.read())

    rest: dict[str, Any] = {name: gates[name] for name in ("follow", "expand", "store", "scope") if name in gates}
    program = MobileProgram(seeds=(web.url("/"),), limits=TravelLimits(depth=gates.get("depth")), **rest)
    pages = [page for batch in run_crawler(MobileCrawler(program), fetch) for page in batch.pages]
    connection.close()
    assert len(pages) == len({page.url for page in pages})
    return {page.url: page.depth for page in pages}


@pytest.mark.parametrize("gates", GATES, ids=str)
def test_a_mobile_crawler_finds_relevant_what_a_stationary_crawl_with_the_same_gates_keeps(
    gates: dict[str, Any], tmp_path: Path
) -> None:
    with FakeWeb(site()) as web:
        expected = stationary(web, tmp_path, gates)
        found = mobile(web, gates)
    assert found == expected
    assert len(found) >= 5
