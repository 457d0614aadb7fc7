"""A crawl that sends crawlers comes to what a stationary crawl with the same gates comes to, whatever happens on the way."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.analysis.verifying import verify
from gossamer.crawls.catalog import catalog
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.sheet import build
from gossamer.engine.unit import Provider
from gossamer.mobile.contract import CrawlerStanding, RuntimeLink, RuntimeOffer, RuntimeRefused, RuntimeUnavailable
from gossamer.mobile.manager.links import HomeRuntime, RuntimesSheet
from gossamer.mobile.wire import MAGIC
from gossamer.query.archive import ArchiveReader
from gossamer.query.database import Database
from gossamer.testing.fakeweb import Answer, FakePage, FakeWeb
from gossamer.values.outcome import of_status
from gossamer.values.task import Task
from gossamer.values.visit import Response

PAGES = 40
SEEDS = ("http://a.test/", "http://b.test/")
GATES = ("store: text(kidney)", "expand: not text(cars)")


def web() -> dict[str, Answer]:
    """Three sites that link to each other, with redirects, a duplicate and dead links each."""
    pages: dict[str, Answer] = {}
    for at in range(PAGES):
        words = "kidney" if at % 4 == 0 else "cars" if at % 7 == 0 else "gardens"
        for host, other in (("a", "b"), ("b", "c"), ("c", "a")):
            links = [f"/p/{2 * at + 1}", f"/p/{2 * at + 2}", "/", f"http://{other}.test/p/{at}", "http://d.test/x"]
            body = "".join(f'<a href="{link}">{words}</a>' for link in links)
            pages[f"http://{host}.test/p/{at}"] = f"<title>{at}</title><p>About {words}, {host} {at}.</p>{body}"
    for host in "abc":
        named = "".join(f'<a href="/{name}">x</a>' for name in ("p/0", "moved", "copy", "lost", "round"))
        pages[f"http://{host}.test/"] = f"<title>Start {host}</title>{named} kidney"
        for name, to in (("lost", "/on"), ("on", "/gone"), ("round", "/again"), ("again", "/round")):
            pages[f"http://{host}.test/{name}"] = FakePage(status=302, headers=(("Location", to),))
        pages[f"http://{host}.test/moved"] = FakePage(status=301, headers=(("Location", "/p/3"),))
        pages[f"http://{host}.test/copy"] = pages[f"http://{host}.test/p/4"]
    return pages


def fetching(served: FakeWeb, asked: list[str]) -> Callable[[], Callable[[Task], Response]]:
    """Pages of the fake web as a source: beside the data, nobody asks over a network."""

    def fetch(task: Task) -> Response:
        asked.append(task.url)
        answer = served.pages.get(task.url, FakePage("not found", status=404))
        page = answer if isinstance(answer, FakePage) else FakePage(str(answer))
        fields = (("content-type", page.type), *((name.lower(), value) for name, value in page.headers))
        body = page.body if isinstance(page.body, bytes) else page.body.encode()
        return Response(of_status(page.status), page.status, headers=fields, body=body)

    return lambda: fetch


def crawled(
    served: FakeWeb,
    folder: Path,
    runtime: RuntimeLink | None = None,
    manager: dict[str, Any] | None = None,
    blocked: tuple[str, ...] = (),
    **given: Any,
) -> Summary:
    """A crawl over the sites; it sends crawlers if there is a runtime."""

    class TheRuntime(Provider[RuntimesSheet]):
        def link(self, address: str, host: str) -> RuntimeLink:
            assert runtime is not None
            return runtime

        async def stop(self) -> None:
            if isinstance(runtime, HomeRuntime):
                await runtime.close()

    options: dict[str, Any] = {
        "output": str(folder),
        "delay": 0,
        "domain_delay": 0,
        "ip_delay": 0,
        "traps": "report",
        "retries": 0,
        "filter": GATES,
        "scope": "any",
        "never": ("test.d",),
        "contact": "tests@example.org",
        "resolve": (f"*.test=127.0.0.1:{served.port}",),
        "allow_network": ("127.0.0.0/8",),
        **given,
    }
    known, settings = catalog(), dict[str, dict[str, Any]]()
    if blocked:
        settings["politeness"] = {"blocked": list(blocked)}
    if runtime is not None:
        known.add("configured-runtimes", TheRuntime)
        options |= {"mobile": True, "runtime": (f"*.test={folder.parent}",)} if not given.get("resume") else {}
        settings["crawlers"] = {"gather": 0.02, **(manager or {})}
    made: CrawlOptions = build(all_options(), options)
    job = Crawl(() if made.resume else SEEDS, made, catalog=known, settings=settings)
    return asyncio.run(job.run())


def found(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with Database(folder) as database:
        return list(database.ask(sql))


def kept(folder: Path) -> dict[str, bytes]:
    """The documents that the archive has, with their bytes."""
    reader = ArchiveReader(folder)
    rows = found(folder, "SELECT url FROM pages WHERE outcome = 'ok' AND warc_file IS NOT NULL")
    documents = {url: bytes(reader.document(url).source.body) for (url,) in rows}
    return {url: body for url, body in documents.items() if body}


def test_a_crawl_that_sends_crawlers_keeps_what_a_stationary_one_keeps(tmp_path: Path) -> None:
    asked: list[str] = []
    with FakeWeb(web()) as served:
        crawled(served, tmp_path / "stationary")
        served.requests.clear()
        summary = crawled(served, tmp_path / "mobile", HomeRuntime(fetching(served, asked)))
        by_home = {request.header("user-agent") for request in served.requests} - {""}
    expected, mobile = kept(tmp_path / "stationary"), kept(tmp_path / "mobile")
    assert mobile == expected and len(expected) > 15
    assert not by_home, "home itself asked for pages of hosts that were lent"
    assert summary.state == "finished" and summary.queued == 0 and summary.pages == len(expected)
    assert summary.outcomes["irrelevant"] > 10
    by_form = "SELECT brought, count(*), count(DISTINCT crawler) FROM pages GROUP BY 1 ORDER BY 1 DESC"
    rows = found(tmp_path / "mobile", by_form)
    assert rows[0][:2] == ("whole", len(expected)) and rows[0][2] >= 2
    dead = "SELECT url, outcome, status FROM pages WHERE outcome = 'client_error' AND url NOT LIKE '%//d.test/%' ORDER BY 1"
    errors = found(tmp_path / "mobile", dead)
    assert errors == found(tmp_path / "stationary", dead) and len(errors) > 10
    moved = 'SELECT url, "end", is_loop FROM redirect_ends ORDER BY 1, 2'
    redirects = found(tmp_path / "mobile", moved)
    assert redirects == found(tmp_path / "stationary", moved) and len(redirects) == 3 * 5
    told = len(errors) + len(redirects)
    assert rows[1:] == [("row", told, rows[1][2])], (
        "errors and redirects have rows, and nothing else that is not relevant"
    )
    linked = "SELECT source, target FROM links ORDER BY 1, 2"
    sources = set(expected)
    broken = "SELECT source, target, outcome FROM broken_links ORDER BY 1, 2"
    told_broken = found(tmp_path / "mobile", broken)
    assert told_broken == [row for row in found(tmp_path / "stationary", broken) if row[0] in sources]
    assert {("http://a.test/", f"http://a.test/{name}") for name in ("lost", "round")} < {
        row[:2] for row in told_broken
    }
    assert found(tmp_path / "mobile", linked) == [
        row for row in found(tmp_path / "stationary", linked) if row[0] in sources | {url for url, *_ in redirects}
    ]
    assert not verify(tmp_path / "mobile", deep=True).findings


@pytest.mark.parametrize("manager", [{"hosts": 3}, {"per_host": 2}])
def test_a_crawler_to_several_hosts_and_several_to_one_bring_the_same(manager: dict[str, Any], tmp_path: Path) -> None:
    with FakeWeb(web()) as served:
        crawled(served, tmp_path / "usual", HomeRuntime(fetching(served, [])))
        summary = crawled(served, tmp_path / "other", HomeRuntime(fetching(served, [])), manager)
    pages = "SELECT url, outcome, brought FROM pages_all ORDER BY 1"
    assert found(tmp_path / "other", pages) == found(tmp_path / "usual", pages)
    assert kept(tmp_path / "other") == kept(tmp_path / "usual")
    assert summary.state == "finished" and summary.queued == 0
    hosts = "SELECT count(DISTINCT split_part(url, '/', 3)) FROM pages_all GROUP BY crawler"
    sent = "SELECT count(DISTINCT crawler) FROM pages_all GROUP BY split_part(url, '/', 3)"
    most = max(row[0] for row in found(tmp_path / "other", hosts if "hosts" in manager else sent))
    assert most > 1


def test_parts_come_home_as_conversions_and_are_no_duplicates_of_wholes(tmp_path: Path) -> None:
    with FakeWeb(web()) as served:
        summary = crawled(
            served,
            tmp_path / "parts",
            HomeRuntime(fetching(served, [])),
            mobile_content=("text", "links"),
            bring_elements=("title",),
            irrelevant="rows",
        )
    reader = ArchiveReader(tmp_path / "parts")
    page = reader.document("http://a.test/p/4")
    assert page.source.kind == "conversion" and page.source.fields["content-type"] == "text/plain; charset=utf-8"
    assert b"About kidney, a 4." in bytes(page.source.body) and b"<" not in bytes(page.source.body)
    rows = found(
        tmp_path / "parts",
        "SELECT url, title, digest, media_type, links FROM pages WHERE brought = 'text' ORDER BY url",
    )
    assert all(digest.startswith("part:") and kind == "text/html" for _, _, digest, kind, _ in rows)
    assert len(rows) == summary.pages
    irrelevant = found(tmp_path / "parts", "SELECT count(*) FROM pages WHERE outcome = 'irrelevant'")
    assert irrelevant == [(summary.outcomes["irrelevant"],)] and summary.outcomes["irrelevant"] > 10
    items = found(tmp_path / "parts", "SELECT url, data->>'$.text' FROM items WHERE kind = 'element'")
    assert ("http://a.test/p/4", "4") in items
    assert not verify(tmp_path / "parts", deep=True).findings


class Unreliable:
    """A link that breaks off at every third call, also when the other side has heard it, and forgets a crawler."""

    def __init__(self, behind: HomeRuntime, forgets: int = 0) -> None:
        self.behind = behind
        self.calls = self.sent = 0
        self._forgets = forgets
        self._dice = random.Random(3)

    async def offer(self) -> RuntimeOffer:
        return await self.behind.offer()

    async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
        self.sent += 1
        await self._broken()
        return await self.behind.send(identity, crawler)

    async def batch(self, identity: str, sequence: int, wait: float) -> bytes | CrawlerStanding:
        await self._broken()
        if self._forgets:
            self._forgets -= 1
            return CrawlerStanding("unknown")
        answer = await self.behind.batch(identity, sequence, wait)
        if isinstance(answer, bytes):
            await self._broken()
        return answer

    async def acknowledge(self, identity: str, sequence: int) -> CrawlerStanding:
        await self._broken()
        return await self.behind.acknowledge(identity, sequence)

    async def cancel(self, identity: str) -> CrawlerStanding:
        return await self.behind.cancel(identity)

    async def close(self) -> None:
        await self.behind.close()

    async def _broken(self) -> None:
        self.calls += 1
        if self._dice.random() < 0.3:
            raise RuntimeUnavailable("the line broke")


def test_a_link_that_breaks_off_and_a_runtime_that_forgets_lose_and_double_nothing(tmp_path: Path) -> None:
    with FakeWeb(web()) as served:
        crawled(served, tmp_path / "stationary")
        link = Unreliable(HomeRuntime(fetching(served, [])), forgets=1)
        summary = crawled(served, tmp_path / "mobile", link, {"lease": 60.0})
    assert kept(tmp_path / "mobile") == kept(tmp_path / "stationary")
    assert link.sent > 2 and summary.state == "finished"
    twice = found(tmp_path / "mobile", "SELECT url FROM pages_all GROUP BY url HAVING count(*) > 1")
    assert twice == []


def test_hosts_of_a_runtime_that_does_not_answer_are_fetched_from_home(tmp_path: Path) -> None:
    class Gone(Unreliable):
        async def _broken(self) -> None:
            raise RuntimeUnavailable("nobody is there")

    with FakeWeb(web()) as served:
        crawled(served, tmp_path / "stationary")
        link = Gone(HomeRuntime(fetching(served, [])))
        summary = crawled(served, tmp_path / "mobile", link, {"reach": 0.05, "tries": 1})
    assert kept(tmp_path / "mobile") == kept(tmp_path / "stationary")
    assert summary.state == "finished"


def test_a_runtime_of_an_older_version_is_sent_what_it_knows(tmp_path: Path) -> None:
    class Older(Unreliable):
        async def _broken(self) -> None:
            return

        async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
            self.sent += 1
            if crawler[len(MAGIC)] > 1:
                raise RuntimeRefused("version", "no version of crawlers in common: here 1, there 2")
            return await super().send(identity, crawler)

    with FakeWeb(web()) as served:
        crawled(served, tmp_path / "stationary")
        served.requests.clear()
        link = Older(HomeRuntime(fetching(served, [])))
        summary = crawled(served, tmp_path / "mobile", link)
    assert kept(tmp_path / "mobile") == kept(tmp_path / "stationary") and summary.state == "finished"
    assert not served.requests, "home itself fetched what a crawler of the older version could have brought"
    told = found(tmp_path / "mobile", "SELECT outcome FROM pages WHERE brought = 'row' GROUP BY 1")
    assert told == [("client_error",)]


def test_a_limit_of_pages_is_never_exceeded_and_can_be_raised_later(tmp_path: Path) -> None:
    with FakeWeb(web()) as served:
        crawled(served, tmp_path / "stationary")
        first = crawled(served, tmp_path / "mobile", HomeRuntime(fetching(served, [])), max_pages=7)
        assert first.state == "limit" and 0 < first.pages <= 7 and first.queued > 0
        crawled(served, tmp_path / "mobile", HomeRuntime(fetching(served, [])), resume=True, max_pages=100_000)
    assert kept(tmp_path / "mobile") == kept(tmp_path / "stationary")
