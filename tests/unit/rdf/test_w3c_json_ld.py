"""The W3C's tests of JSON-LD in HTML: the scripts of a page become the triples that the suite expects.

A crawl reads every script of a page, each as a document of its own, and puts its triples in the graph of the page. The suite asks
for other things as well; those tests are named with the reason.
"""

from pathlib import Path

import pyoxigraph as oxigraph
import pytest

from gossamer.documents.document import Document
from gossamer.rdf.page import StructuredData, structured_data
from gossamer.rdf.store.graphs import quads
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

PAGES = Path(__file__).with_name("w3c_json_ld_html")
SITE = "https://w3c.github.io/json-ld-api/tests/html/"

#: Test -> where its page stands: the option `base` of the suite, or its own address.
EQUAL = {
    **dict.fromkeys(("r001", "r005", "r006", "r007", "r010", "r018", "r020"), ""),
    "r019": "http://a.example.com/doc",
    "r021": "http://a.example.com/doc",
}
#: Tests whose script is invalid: a processor reports an error and gives nothing.
INVALID = ("r015", "r016", "r017")
#: Tests that do not pass as they are written; docs/structured-data.md says the same.
FAILING = {
    "r002": "it takes the first script only (`extractAllScripts: false`)",
    "r003": "the fragment of its URL names a script; a crawl's URLs have no fragments",
    "r004": "it joins all scripts to one document, so that `@graph` in one of them becomes a graph without a name",
    "r011": "the fragment of its URL names no element",
    "r012": "the fragment of its URL names an element that is no script",
    "r013": "the fragment of its URL names a script of another type",
    "r014": "a script that a comment of HTML is wrapped around is read, with a warning, as other readers do",
    "r022": "the fragment of its URL names a script",
}


def _read(name: str, url: str = "") -> StructuredData:
    body = (PAGES / f"{name}-in.html").read_bytes()
    response = Response(Outcome.OK, headers=(("content-type", "text/html"),), body=body)
    task = Task(url or f"{SITE}{name}-in.html", "w3c.github.io")
    return structured_data(Document(Visit(task, response, mime="text/html"), trouble=""), rules=())


def _canonical(found: oxigraph.Dataset) -> set[str]:
    found.canonicalize(oxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in found}


def _expected(name: str) -> list[oxigraph.Quad]:
    return list(oxigraph.parse((PAGES / f"{name}-out.nq").read_bytes(), oxigraph.RdfFormat.N_QUADS))


def _found(name: str, url: str = "") -> oxigraph.Dataset:
    return oxigraph.Dataset(quads(_read(name, url).triples))


def test_each_test_of_the_suite_is_looked_at() -> None:
    assert {page.name.partition("-")[0] for page in PAGES.glob("*-in.html")} == {*EQUAL, *INVALID, *FAILING}


@pytest.mark.parametrize("name", EQUAL)
def test_scripts_of_a_page_give_the_graph_that_the_w3c_expects(name: str) -> None:
    assert _canonical(_found(name, EQUAL[name])) == _canonical(oxigraph.Dataset(_expected(name)))


@pytest.mark.parametrize("name", INVALID)
def test_a_script_that_the_w3c_calls_invalid_gives_a_warning_and_nothing_else(name: str) -> None:
    found = _read(name)
    assert not found.triples
    assert found.counts["JsonLdError"] == 1


@pytest.mark.parametrize("name", ["r002", "r003"])
def test_all_scripts_of_a_page_are_read_where_the_w3c_asks_for_one_of_them(name: str) -> None:
    found = {(quad.predicate.value, str(quad.object)) for quad in _found(name)}
    some = {(quad.predicate.value, str(quad.object)) for quad in _expected(name) if "example" in quad.predicate.value}
    literal = {pair for pair in some if pair[1].startswith('"')}
    assert literal <= found
    assert {predicate for predicate, _ in found} >= {f"http://example.com/{word}" for word in ("foo", "bar")}


def test_a_script_in_a_comment_is_read_with_a_warning() -> None:
    found = _read("r014")
    assert "<!-- -->" in {value for _, _, value, *_ in found.triples}
    assert set(found.counts) == {"NearlyJson"}


def test_statements_of_several_scripts_stand_in_the_graph_of_the_page() -> None:
    together = oxigraph.Dataset(oxigraph.Quad(quad.subject, quad.predicate, quad.object) for quad in _expected("r004"))
    assert _canonical(_found("r004")) == _canonical(together)
