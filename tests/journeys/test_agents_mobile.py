"""Agents that send mobile crawlers bring home together what a crawl of one brings home, and nothing twice."""

import asyncio
from pathlib import Path
from typing import Any

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.query.database import Database

HOSTS, PAGES = 5, 12


def site(folder: Path, number: int) -> Path:
    """A site of files that leads into two others: what one agent's crawler finds is the other agent's to visit."""
    root = folder / f"site{number}"
    root.mkdir(mode=0o755)
    (root / "index.html").write_text('<title>Start</title><a href="/0.html">first</a>')
    for at in range(PAGES):
        links = [f"/{2 * at + 1}.html", f"/{2 * at + 2}.html"]
        links += [f"http://site{(number + far) % HOSTS}.example/{3 * at % PAGES}.html" for far in (1, 2)]
        body = "".join(f'<a href="{link}">on</a>' for link in links if int(link.rpartition("/")[2][:-5]) < PAGES)
        (root / f"{at}.html").write_text(f"<title>Page {at}</title><p>Of site {number}.</p>{body}")
    return root


def pages(folder: Path) -> list[tuple[Any, ...]]:
    """Every row of a page, with the way that it came."""
    with Database(folder) as database:
        return sorted(database.ask("SELECT url, outcome, brought FROM pages_all"))


def test_agents_that_send_crawlers_bring_home_what_a_crawl_of_one_does(tmp_path: Path) -> None:
    runtimes = tuple(f"site{number}.example={site(tmp_path, number)}" for number in range(HOSTS))
    given = {"mobile": True, "runtime": runtimes, "scope": "any", "contact": "tests@example.org"}
    # One seed: all other sites are reached by what crawlers of either agent find out of their hosts.
    seeds = ["http://site0.example/"]
    settings = {"crawlers": {"gather": 0.02}}
    lone = Crawl(seeds, build(all_options(), {**given, "output": str(tmp_path / "one")}), settings=settings)
    asyncio.run(lone.run())
    many = build(all_options(), {**given, "output": str(tmp_path / "two"), "agents": 2})
    summary = asyncio.run(SupervisedCrawl(seeds, many, settings=settings).run())
    expected = pages(tmp_path / "one")
    assert len(expected) == HOSTS * PAGES + 1
    assert {brought for _, _, brought in expected} == {"whole"}
    assert pages(tmp_path / "two") == expected
    assert summary.state == "finished" and summary.queued == 0 and summary.pages == len(expected)
    shares = [path.stat().st_size for path in sorted((tmp_path / "two/logs").glob("agent-*.jsonl"))]
    assert len(shares) == 2 and all(shares), "each agent had hosts to send crawlers to"
