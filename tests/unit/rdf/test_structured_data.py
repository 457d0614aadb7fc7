"""The processor of structured data, and the table that keeps what it finds."""

import msgspec
import pytest

from gossamer.documents.document import Document
from gossamer.parsing.findings import filled, read
from gossamer.rdf.page import StructuredDataProcessor, StructuredDataSheet
from gossamer.rdf.tables import TRIPLES, TriplesRow
from gossamer.rdf.terms import MAX_IRI, MAX_LITERAL, STRING
from gossamer.storage.logs import MAX_LINE_BYTES
from gossamer.storage.tables.contract import RowSource
from gossamer.testing import check_processor
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Item, Response, Statements, Triple, Visit

PAGE = (
    '<!doctype html><meta property="og:title" content="T"><body vocab="http://s.test/"><p property="name">N</p>'
    '<a rel=next href=2>x</a><i property="-">y</i>'
)


def visit(markup: str = PAGE) -> Visit:
    response = Response(Outcome.OK, headers=(("content-type", "text/html"),), body=markup.encode())
    return Visit(Task("http://a.test/", "a.test"), response, mime="text/html")


def test_a_page_gives_its_triples_items_and_counts() -> None:
    statements, item = StructuredDataProcessor().process(Document(visit()))
    assert isinstance(statements, Statements)
    assert [triple[1:3] for triple in statements.triples] == [
        ("http://ogp.me/ns#title", "T"),
        ("http://s.test/name", "N"),
    ]
    assert statements.counts == {"UnresolvedTerm": 1, "dropped": 2}
    assert item == Item("opengraph", "http://a.test/", {"og:title": ["T"]})


def test_the_rules_are_a_setting() -> None:
    processor = StructuredDataProcessor(StructuredDataSheet(drop=("http://s.test/name",), items=False))
    [statements] = processor.process(Document(visit()))
    assert isinstance(statements, Statements)
    assert "http://s.test/next" in {triple[1] for triple in statements.triples}
    assert "http://s.test/name" not in {triple[1] for triple in statements.triples}


def test_a_page_that_says_nothing_gives_nothing() -> None:
    assert list(StructuredDataProcessor().process(Document(visit("<p>text")))) == []


def test_it_keeps_the_promises_of_processors() -> None:
    check_processor(StructuredDataProcessor(), [visit(), visit("<p>text")])


def test_the_visit_bears_the_triples_and_the_counts_are_told() -> None:
    document = Document(visit())
    findings = read(document, [StructuredDataProcessor()], "plain")
    assert findings.counts == {"rdf:UnresolvedTerm": 1, "rdf:dropped": 2}
    assert len(filled(document.visit, findings).triples) == 2


def _rows(triples: list[Triple]) -> list[TriplesRow]:
    assert TRIPLES.rows is not None
    one = msgspec.structs.replace(visit(), id="v", triples=tuple(triples))
    return [row for row in TRIPLES.rows(RowSource(one, one.task, one.response)) if isinstance(row, TriplesRow)]


def test_no_triple_is_lost_between_frames() -> None:
    triples = [(f"s{n}", "p", "o" * 1_000, STRING, "") for n in range(2_500)]
    rows = _rows(triples)
    assert [subject for row in rows for subject in row.subject] == [triple[0] for triple in triples]
    assert len(rows) > 2


@pytest.mark.parametrize("letter", ["\u202e", "\U000e0001"])
def test_the_largest_triple_fits_in_a_line(letter: str) -> None:
    from gossamer.storage.logs import printable

    iri = letter * MAX_IRI
    [row] = _rows([(iri, iri, letter * MAX_LITERAL, iri, "en")])
    assert len(printable(msgspec.json.encode(row))) < MAX_LINE_BYTES
