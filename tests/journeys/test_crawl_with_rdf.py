"""A crawl with `--rdf`: what its pages say lies in the table `triples`, and is made again from the archive."""

from pathlib import Path

import pytest

from gossamer.cli.main import main
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.rdf.store.store import TripleStore
from gossamer.testing.fakeweb import FakeWeb

PAGES = {
    "/": '<meta property="og:title" content="T"><a rel="next" href="/product">p</a><a href="/none">n</a>',
    "/product": '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product", "name": "P"}</script>',
    "/none": "<p>text",
}
TRIPLES = "SELECT graph, predicate, object, datatype FROM triples ORDER BY ALL"


def _crawled(web: FakeWeb, folder: Path, **options: object) -> Path:
    given = {"delay": 0, "output": str(folder / "crawl"), "per_host": 4, **options}
    run(Crawl([web.url("/")], build(all_options(), given)))
    return folder / "crawl"


def _rows(crawl: Path, query: str) -> list[tuple[object, ...]]:
    with Database(crawl) as database:
        return list(database.ask(query))


def _expected(web: FakeWeb) -> list[tuple[str, ...]]:
    text = "http://www.w3.org/2001/XMLSchema#string"
    return sorted(
        [
            (web.url("/"), "http://ogp.me/ns#title", "T", text),
            (web.url("/product"), "http://schema.org/name", "P", text),
            (web.url("/product"), "http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "http://schema.org/Product", ""),
        ]
    )


def test_a_crawl_keeps_what_its_pages_say(tmp_path: Path) -> None:
    with FakeWeb(PAGES) as web:
        crawl = _crawled(web, tmp_path, rdf=True)
    assert _rows(crawl, TRIPLES) == _expected(web)
    assert _rows(crawl, "SELECT kind FROM items") == [("opengraph",)]
    assert _rows(crawl, "SELECT count(*) FROM triples JOIN pages USING (visit)") == [(3,)]


def test_a_crawl_that_was_not_asked_keeps_none(tmp_path: Path) -> None:
    with FakeWeb(PAGES) as web:
        crawl = _crawled(web, tmp_path)
    assert not list(crawl.glob("state/*/rows/*triples*"))


def test_a_crawl_of_pages_that_say_nothing_starts_no_process_for_their_triples(tmp_path: Path) -> None:
    with FakeWeb({"/": "<p>text"}) as web:
        crawl = _crawled(web, tmp_path, rdf=True, triple_store="http://127.0.0.1:9/update")
        assert not list(crawl.glob("triples/*"))
        assert not list(crawl.glob("state/triple-stores/*/*.sqlite"))


def test_a_store_that_has_graphs_is_fed_although_the_table_has_lost_its_rows(tmp_path: Path) -> None:
    with FakeWeb(PAGES) as web:
        crawl = _crawled(web, tmp_path, rdf=True)
        host = web.url("/").split("/")[2].partition(":")[0]
    assert main(["delete", str(crawl), host]) == 0
    with TripleStore(crawl) as store:
        assert not list(store.open())


def test_an_old_crawl_gets_its_triples_from_the_archive_and_keeps_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeWeb(PAGES) as web:
        crawl = _crawled(web, tmp_path)
    question = "SELECT ?o { GRAPH ?g { ?s ?p ?o } } ORDER BY ?o"
    assert main(["sparql", str(crawl), question]) == 2
    assert "reprocess" in capsys.readouterr().err
    assert main(["reprocess", str(crawl), "--rdf"]) == 0
    assert _rows(crawl, TRIPLES) == _expected(web)
    # A run that is not asked for triples takes none away.
    assert main(["reprocess", str(crawl)]) == 0
    assert _rows(crawl, TRIPLES) == _expected(web)
    assert main(["sparql", str(crawl), question]) == 0
    assert main(["delete", str(crawl), web.url("/product")]) == 0
    assert [row[0] for row in _rows(crawl, TRIPLES)] == [web.url("/")]
    capsys.readouterr()
    assert main(["sparql", str(crawl), question, "-f", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["o", "T"]


def test_triples_are_made_anew_from_the_archive_and_none_twice(tmp_path: Path) -> None:
    with FakeWeb(PAGES) as web:
        crawl = _crawled(web, tmp_path, rdf=True)
    assert main(["reprocess", str(crawl)]) == 0
    assert _rows(crawl, TRIPLES) == _expected(web)
