"""Accuracy, as Ridgway 2010 measured it (section 6.3, table 7): of a site whose pages are known, a crawl finds every one."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gossamer.assembly.crawl import Crawl, run
from gossamer.assembly.options import CrawlOptions
from gossamer.flow.sheet import build
from gossamer.simweb.exact import KnownSite, powers, scattered
from gossamer.testing.fakeweb import FakePage, FakeWeb

#: Width of the tree -> its pages (the table's 8 is a slip for 7 = 1 + 2 + 4).
TABLE_7 = {1: 2, 2: 7, 3: 40, 4: 341, 5: 3906}


def pages_found(site: KnownSite, folder: Path) -> list[str]:
    """Crawl a site; the paths of the pages, from the crawl's own log."""
    moved = {path: FakePage(status=302, headers=(("Location", target),)) for path, target in site.redirects.items()}
    with FakeWeb({**site.pages, **moved}) as web:
        run(Crawl([web.url("/")], build(CrawlOptions, {"delay": 0, "output": str(folder / "crawl"), "per_host": 8})))
    rows = map(json.loads, (folder / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines())
    return [_target(str(row["url"])) for row in rows if row["outcome"] == "ok"]


def _target(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def assert_exact(site: KnownSite, folder: Path) -> None:
    found = pages_found(site, folder)
    assert sorted(found) == sorted(site.expected)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_page_of_a_known_tree_is_found_and_found_once(width: int, tmp_path: Path) -> None:
    site = powers(width)
    assert len(site.expected) == TABLE_7[width]
    assert_exact(site, tmp_path)


@pytest.mark.parametrize("seed", range(20))
def test_every_page_of_a_site_at_random_is_found_and_nothing_else(seed: int, tmp_path: Path) -> None:
    assert_exact(scattered(seed), tmp_path)


@pytest.mark.long
def test_every_page_of_the_largest_known_tree_is_found(tmp_path: Path) -> None:
    site = powers(5)
    assert len(site.expected) == TABLE_7[5]
    assert_exact(site, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_every_page_of_a_hundred_more_sites_is_found_and_nothing_else(seed: int, tmp_path: Path) -> None:
    assert_exact(scattered(seed), tmp_path)
