"""JSON-LD in pages."""

from typing import Any

import pytest

from gossamer.rdf.jsonld import MAX_DEPTH
from gossamer.rdf.terms import TYPE

SCHEMA = "http://schema.org/"


def script(text: str) -> str:
    return f'<!doctype html><title>t</title><script type="application/ld+json">{text}</script><p>text'


def test_a_script_with_the_context_of_schema_org_becomes_triples(read: Any) -> None:
    found = read(
        script(
            '{"@context": "https://schema.org/", "@id": "#p", "@type": "Product", "name": "P", "url": "/p", '
            '"releaseDate": "2020-01-02", "offers": {"@type": "Offer", "price": 3}}'
        )
    )
    said = {(name, value, datatype) for subject, name, value, datatype, _ in found.triples if subject.endswith("#p")}
    assert said >= {
        (TYPE, f"{SCHEMA}Product", ""),
        (f"{SCHEMA}name", "P", "http://www.w3.org/2001/XMLSchema#string"),
        (f"{SCHEMA}url", "http://a.test/p", ""),
        (f"{SCHEMA}releaseDate", "2020-01-02", f"{SCHEMA}Date"),
    }
    assert len(found.triples) == 7 and not found.counts


def test_a_context_that_is_not_known_is_named_and_what_needs_none_is_read(read: Any) -> None:
    found = read(
        script(
            '{"@context": ["https://other.test/c.jsonld", {"n": "http://s.test/n"}], "n": "N", "lost": 1, "http://s.test/m": 2}'
        )
    )
    assert {(name, value) for _, name, value, *_ in found.triples} == {
        ("http://s.test/n", "N"),
        ("http://s.test/m", "2"),
    }
    assert [(warned.kind, warned.about) for warned in found.warnings] == [
        ("UnknownContext", "https://other.test/c.jsonld")
    ]


def test_blank_nodes_of_scripts_are_not_those_of_others(read: Any) -> None:
    one = '<script type="application/ld+json">{"@id": "_:b1", "http://s.test/n": "N"}</script>'
    subjects = {subject for subject, *_ in read(f"{one}{one}").triples}
    assert len(subjects) == 2


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "",
        '{"@context": {"@vocab": 3}, "a": 1}',
        '{"a": "' + "x" * 4_000_000 + '"}',
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"http://s.test/n": ' + "[" * (MAX_DEPTH + 1) + "1" + "]" * (MAX_DEPTH + 1) + "}",
    ],
)
def test_a_script_that_is_none_is_counted(text: str, read: Any) -> None:
    found = read(script(text))
    assert found.triples == [] and found.counts["JsonLdError"] == 1


@pytest.mark.parametrize(
    ("number", "text", "datatype"),
    [
        ("5", "5", "integer"),
        ("5.0", "5", "integer"),
        ("-1.0e2", "-100", "integer"),
        ("18446744073709551616", "18446744073709551616", "integer"),
        ("1e20", "100000000000000000000", "integer"),
        ("-123456789012345678901", "-123456789012345678901", "integer"),
        ("1e21", "1.0E21", "double"),
        ("123456789012345678901234567890", "1.234567890123457E29", "double"),
        ("12345678.123456789", "1.234567812345679E7", "double"),
        ("0.30000000000000004", "3.0E-1", "double"),
        ("1e-7", "1.0E-7", "double"),
        ("1.7976931348623157e308", "1.7976931348623157E308", "double"),
        ("1e999", "INF", "double"),
        ("-1e999", "-INF", "double"),
        ("1" + "0" * 400, "INF", "double"),
        ("9" * 5_000, "INF", "double"),
    ],
)
def test_a_number_is_written_as_json_ld_says_and_costs_its_script_nothing(
    number: str, text: str, datatype: str, read: Any
) -> None:
    found = read(
        script(f'{{"http://s.test/m": "{"7" * 30}.", "http://s.test/n": [{number}, {{"@value": {number}}}, "N"]}}')
    )
    said = {(value, kind.partition("#")[2]) for _, _, value, kind, _ in found.triples}
    assert said == {(text, datatype), ("N", "string"), ("7" * 30 + ".", "string")}


def test_a_number_of_a_million_digits_is_no_trouble(read: Any) -> None:
    found = read(script('{"@context": "https://schema.org", "price": ' + "9" * 1_000_000 + "}"))
    assert len(found.triples) + found.counts["JsonLdError"] == 1


@pytest.mark.parametrize("text", ["null", "5", "-1e3", "true", '"x"', "[]", "{}", "[null]", "[1, [2]]", "  null  "])
def test_a_script_that_says_nothing_of_anything_costs_the_others_nothing(text: str, read: Any) -> None:
    found = read(script(text) + script('{"@context": "https://schema.org", "name": "N"}'))
    assert [value for _, _, value, *_ in found.triples] == ["N"]
    assert not found.counts
