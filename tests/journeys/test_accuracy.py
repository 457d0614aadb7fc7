"""Accuracy, as Ridgway 2010 measured it (section 6.3, table 7): of a site whose pages are known, a crawl finds every one."""

import json
from pathlib import Path
from urllib.parse import urlsplit

import pyoxigraph as oxigraph
import pytest
from tests.sampling import sampled
from tests.scattered import scattered

from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.rdf.store.asking import current_copy
from gossamer.simweb.text import SAID
from gossamer.testing.fakeweb import FakePage, FakeWeb
from tools.killing.programs import KnownSite, powers

#: Width of the tree -> its pages (the table's 8 is a slip for 7 = 1 + 2 + 4).
TABLE_7 = {1: 2, 2: 7, 3: 40, 4: 341, 5: 3906}


def pages_found(site: KnownSite, folder: Path) -> list[str]:
    """Crawl a site; the paths of the pages, from the crawl's own log."""
    moved = {path: FakePage(status=302, headers=(("Location", target),)) for path, target in site.redirects.items()}
    options = build(all_options(), {"delay": 0, "output": str(folder / "crawl"), "per_host": 8})
    with FakeWeb({**site.pages, **moved}) as web:
        run(Crawl([web.url("/")], options, tables=False))
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


def assert_exact_with_triples(width: int, triples: int, folder: Path) -> None:
    """Pages, rows of the table and quads of the store are those that the site says, and no others."""
    site, crawl = powers(width, triples), folder / "crawl"
    with FakeWeb(site.pages) as web:
        options = {"delay": 0, "output": str(crawl), "per_host": 8, "rdf": True}
        run(Crawl([web.url("/")], build(all_options(), options)))
    assert len(site.said) == triples * TABLE_7[width]
    with Database(crawl) as database:
        assert sorted(_target(url) for (url,) in database.ask("SELECT url FROM pages")) == sorted(site.expected)
        rows = [(_target(graph), said) for graph, said in database.ask("SELECT graph, object FROM triples")]
    assert sorted(rows) == sorted(site.said)
    with current_copy(crawl, 60.0) as copy:
        quads = list(oxigraph.Store.read_only(str(copy)))
    assert {quad.predicate.value for quad in quads} <= {SAID}
    assert sorted((_target(quad.graph_name.value), quad.object.value) for quad in quads) == sorted(site.said)


@pytest.mark.parametrize("triples", sampled([3, 0, 1, 2], 4))
@pytest.mark.parametrize("width", [1, 2, 3])
def test_every_triple_of_a_known_tree_is_found_and_found_once(width: int, triples: int, tmp_path: Path) -> None:
    # Rows 1 to 20 of the table without those of 341 and 3,906 pages. Its row 11 has 8 triples on 2 pages of 2, a slip for 4.
    assert_exact_with_triples(width, triples, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("triples", [0, 1, 2, 3])
@pytest.mark.parametrize("width", [4, 5])
def test_every_triple_of_the_larger_known_trees_is_found(width: int, triples: int, tmp_path: Path) -> None:
    assert_exact_with_triples(width, triples, tmp_path)


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
