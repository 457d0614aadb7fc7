"""SPARQL and search from the browser: answers of this crawl, cut to what is shown, and ended when they take too long."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.datastructures import QueryParams

from gossamer.cli.main import main
from gossamer.dashboard.questions import LimitedAnswers, Questions, answerable
from gossamer.query.contract import SearchQuestion, TripleQuestion
from gossamer.rdf.store.asking import CELL, answer
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.errors import UsageError

#: A product whose name would like to be a script and is too long for a cell, and a page of words.
PAGES = {
    "/": '<html lang="en"><title>Spiders</title><p>Spiders weave their webs in the barn. <a href="/product">p</a>',
    "/product": '<html lang="en"><title>A barn</title><p>Nothing weaves here, but the barn is red.'
    '<script type="application/ld+json">'
    + json.dumps({"@context": "https://schema.org", "@type": "Product", "name": f"\t\n{'x' * 3_000}"})
    + "</script>",
}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl with triples and an index."""
    directory = tmp_path_factory.mktemp("words") / "crawl"
    with FakeWeb(PAGES) as web:
        options = ["-o", str(directory), "--rdf", "--delay", "0", "--quiet"]
        assert main(["crawl", web.url("/"), *options]) == 0
    assert main(["index", str(directory)]) == 0
    return directory


def sparql(directory: Path, query: str) -> Any:
    return msgspec.json.decode(asyncio.run(Questions().triples(directory, query)))


def search(directory: Path, query: str) -> Any:
    return msgspec.json.decode(asyncio.run(Questions().words(directory, QueryParams(query))))


def test_rows_and_graphs_of_the_triples_are_answered_as_text(crawl: Path) -> None:
    found = sparql(crawl, "SELECT ?type ?name { ?x a ?type; schema:name ?name }")
    assert found["columns"] == ["type", "name"]
    [[kind, name]] = found["rows"]
    assert kind.endswith("schema.org/Product>")
    assert name.startswith('"\\t\\n') and len(name) == CELL
    assert sparql(crawl, "ASK { ?x a ?type }")["rows"] == [["true"]]
    graph = sparql(crawl, "CONSTRUCT { ?x a ?type } WHERE { ?x a ?type }")
    assert "Product" in graph["graph"] and (graph["columns"], graph["rows"]) == ([], [])


def test_an_answer_is_read_no_further_than_it_is_shown(crawl: Path) -> None:
    every = "SELECT ?a { { ?a ?b ?c } UNION { ?d ?e ?a } UNION { ?f ?a ?g } }"
    given = TripleQuestion(directory=str(crawl), memory=2 << 30, seconds=20, rows=3, query=every)
    found = answer(given)
    assert (len(found.rows), found.is_more) == (3, True)


@pytest.mark.parametrize(
    "query", ["", "SELECT", "SELECT * { SERVICE <http://127.0.0.1:9/> { ?a ?b ?c } }", "x" * 10_001, "CLEAR ALL"]
)
def test_what_is_no_question_to_the_triples_is_refused_in_words(crawl: Path, query: str) -> None:
    with pytest.raises(UsageError):
        sparql(crawl, query)


def test_a_question_to_the_triples_that_takes_too_long_is_ended_and_leaves_no_copy(crawl: Path) -> None:
    many = " ".join(map(str, range(40)))
    rows = " ".join(f"{{ SELECT ?a{n} {{ VALUES ?a{n} {{ {many} }} }} }}" for n in range(7))
    with pytest.raises(UsageError, match="gossamer sparql"):
        asyncio.run(Questions(3.0).triples(crawl, f"SELECT (sum(?a1 * ?a2) AS ?n) {{ {rows} }}"))
    assert list((crawl / "triples" / "copies").iterdir()) == []


def test_documents_are_searched_filtered_counted_and_paged(crawl: Path) -> None:
    both = search(crawl, "words=barn")
    assert both["total"] == 2 and both["facets"]["host"] == {"127.0.0.1": 2}
    assert len(search(crawl, "words=barn&start=1")["hits"]) == 1
    [hit] = search(crawl, "words=barn&type=schema:Product&host=127.0.0.1&language=en")["hits"]
    assert hit["title"] == "A barn"
    assert search(crawl, "words=barn&host=elsewhere.test")["total"] == 0
    assert search(crawl, "words=")["total"] == 2
    with pytest.raises(UsageError, match="cannot be read"):
        search(crawl, "words=title%3A(")


def test_a_crawl_without_index_and_triples_says_how_to_have_them(crawl: Path, tmp_path: Path) -> None:
    assert answerable(crawl).sparql == answerable(crawl).search == ""
    (tmp_path / "crawl.toml").touch()
    assert "crawl.toml is empty" in answerable(tmp_path).sparql, "the crawl is shown, damaged as it is"
    (tmp_path / "crawl.toml").write_text("# a wiring without a log\n")
    lacks = answerable(tmp_path)
    assert "gossamer index" in lacks.search and "--rdf" in lacks.sparql
    with pytest.raises(UsageError, match="gossamer index"):
        search(tmp_path, "words=x")
    with pytest.raises(UsageError, match="--rdf"):
        sparql(tmp_path, "ASK { ?a ?b ?c }")


def test_the_advice_to_a_person_whose_answer_takes_too_long_fits_what_was_asked(tmp_path: Path) -> None:
    endless = LimitedAnswers("gossamer.search.indexing:answer_search", 0.0, 0, advice="look at the text instead")
    with pytest.raises(UsageError, match="there was no answer within 0 seconds; look at the text instead"):
        asyncio.run(endless.to(SearchQuestion(directory=str(tmp_path))))
