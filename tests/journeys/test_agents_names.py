"""Names of one host are one agent's, and what was committed under another name stays when the table of names changes."""

import asyncio
from pathlib import Path

import pytest
from tests.journeys.test_agents import crawled, options_for, urls_in

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.analysis.why import story_of
from gossamer.query.database import Database
from gossamer.storage.members import members_of
from gossamer.testing.fakeweb import FakePage, FakeWeb, html

AGENTS = ("agent-00", "agent-01")


def two_names() -> tuple[str, str]:
    """Two domains that the ring gives to different agents."""
    ring = RingDesignation(RingSheet(members=AGENTS))
    names = [f"n{number}.test" for number in range(20)]
    first = names[0]
    return first, next(name for name in names if ring.owner(name) != ring.owner(first))


def test_domains_that_are_kept_together_have_one_agent() -> None:
    first, other = two_names()
    ring = RingDesignation(RingSheet(members=AGENTS, together=(f"{first} {other} 192.0.2.7",)))
    assert len({ring.owner(host) for host in (first, other, f"www.{other}", "192.0.2.7")}) == 1


@pytest.mark.long
def test_pages_stay_when_another_name_becomes_the_only_one(tmp_path: Path) -> None:
    first, other = two_names()
    directory = tmp_path / "crawl"
    pages = {
        f"http://{name}/p{page}": FakePage(
            html(f"{name} {page}", [f"http://{link}/p{page + 1}" for link in (first, other)])
        )
        for name in (first, other)
        for page in range(6)
    }
    with FakeWeb(pages) as web:
        options = options_for(web, directory, agents=2, depth=2)
        seeds = [web.url(f"http://{first}/p0")]
        assert asyncio.run(crawled(SupervisedCrawl(seeds, options))).state == "finished"
        before = set(urls_in(directory / "logs/crawl.jsonl"))
        assert any(other in url for url in before)
        names = {"links": {"aliases": [f"{other}={first}"]}}
        again = options_for(web, directory, resume=True, depth=6)
        asyncio.run(crawled(SupervisedCrawl([], again, settings=names)))
    assert members_of(directory) == AGENTS
    after = set(urls_in(directory / "logs/crawl.jsonl"))
    assert after >= before
    assert {url for url in after if first in url} == {url for url in pages if first in url}
    with Database(directory) as database:
        kept = {str(url) for (url,) in database.ask("SELECT url FROM pages WHERE outcome = 'ok'")}
    assert kept == after
    for url in before:
        assert story_of(directory, url).visits, "why tells of it, whichever agent has it"
