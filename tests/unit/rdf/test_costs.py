"""No page costs its reader more than its size: the worst that we know, each compared with itself at a fourth of its size."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.costs import costs_its_size

from gossamer.documents.document import Document
from gossamer.rdf.jsonld import MAX_CHAIN
from gossamer.rdf.page import structured_data
from gossamer.values.errors import ReadApart
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

Shape = Callable[[int], str]


def page(markup: str, *, holds_up: bool) -> Document:
    headers = (("content-type", "text/html; charset=utf-8"),)
    response = Response("ok", headers=headers, body=markup.encode())  # type: ignore[arg-type]
    return Document(Visit(Task("http://a.test/", "a.test"), response, mime="text/html"), holds_up=holds_up)


def script(value: Any) -> str:
    return f'<!doctype html><script type="application/ld+json">{json.dumps(value)}</script>'


def scoped(count: int, *, value: Any = "v") -> dict[str, Any]:
    """Terms that have a context each: a parser copies all of them for each."""
    terms = {f"t{i}": {"@id": f"http://x.test/{i}", "@context": {}} for i in range(count)}
    return {"@context": terms, **{f"t{i}": value for i in range(count)}}


def typed(count: int) -> dict[str, Any]:
    inner = {"a": "http://x.test/a"}
    terms = {f"T{i}": {"@id": f"http://x.test/{i}", "@context": inner} for i in range(count)}
    return {"@context": terms, "@graph": [{"@type": f"T{i}", "a": "v"} for i in range(count)]}


def spread(count: int) -> dict[str, Any]:
    """A context that holds in nodes in each other."""
    node: dict[str, Any] = {"a": 1}
    for _ in range(150):
        node = {"b": node}
    terms = {
        "a": "http://x.test/a",
        "b": {"@id": "http://x.test/b", "@context": {f"s{i}": "a:s" for i in range(count)}},
    }
    return {"@context": terms, "@graph": [node] * (count // 150 + 1)}


def repeated(count: int) -> dict[str, Any]:
    """A context in each node, below one with many terms."""
    nodes = [{"@context": {}, f"t{i}": "v"} for i in range(count)]
    return {"@context": {f"t{i}": f"http://x.test/{i}" for i in range(count)}, "@graph": nodes}


def named(count: int) -> list[Any]:
    """The context of schema.org in each of many nodes, which use much of it."""
    from gossamer.rdf.jsonld import COERCED

    return [{"@context": "https://schema.org", term: "v"} for term in sorted(COERCED) for _ in range(count)]


def chained(count: int) -> dict[str, Any]:
    """Terms of which each stands for the next."""
    return {
        "@context": {f"t{i}": {"@id": f"t{i - 1}"} for i in range(count, 0, -1)} | {"t0": "http://x.test/"},
        "t5": 1,
    }


def names(count: int) -> dict[str, str]:
    """A name as long as the list of values beside it: a parser writes it once for each."""
    return {kind: f"http://x.test/{kind}{'y' * 20 * count}" for kind in ("subject", "key", "type")}


def nested(depth: int) -> dict[str, Any]:
    """A hundred values for each object that they lie in."""
    node: dict[str, Any] = {"http://x.test/a": list(range(depth * 100))}
    for _ in range(depth):
        node = {"http://x.test/b": node}
    return node


#: Scripts whose work is more than their size.
DEAR: dict[str, Callable[[int], Any]] = {
    "a context for each term": scoped,
    "a context for each term, with nodes": lambda count: scoped(count, value={"@id": "http://y.test/"}),
    "a context for each type": typed,
    "a context that spreads": spread,
    "a context in each node": repeated,
    "the context of schema.org in each node": lambda count: named(count // 12),
    "values in objects in each other": lambda count: nested(count // 25),
    "a long subject": lambda count: {"@id": names(count)["subject"], "http://x.test/a": list(range(count))},
    "a long key": lambda count: {names(count)["key"]: list(range(count))},
    "a long type": lambda count: {
        "@context": {"a": {"@id": "http://x.test/a", "@type": names(count)["type"]}},
        "a": [str(number) for number in range(count)],
    },
}


@pytest.mark.parametrize("kind", DEAR)
def test_scripts_that_cost_more_than_their_size_are_not_read_where_all_wait(kind: str) -> None:
    markup = script(DEAR[kind](4_000))
    with pytest.raises(ReadApart):
        structured_data(page(markup, holds_up=True))
    found = structured_data(page(markup, holds_up=False))
    assert found.counts["JsonLdError"] == 1, "nor anywhere, where it is this much"


@pytest.mark.parametrize("kind", DEAR)
def test_scripts_of_a_size_that_people_write_are_read_at_once(kind: str) -> None:
    found = structured_data(page(script(DEAR[kind](40)), holds_up=True))
    assert found.triples and "JsonLdError" not in found.counts


@pytest.mark.parametrize(
    "context",
    [
        {f"t{i}": f"t{i - 1}:a" for i in range(20_000, 0, -1)},
        {f"t{i}": {"@id": f"t{i - 1}"} for i in range(20_000, 0, -1)},
        {f"t{i}": {"@id": "http://x.test/", "@type": f"t{i - 1}:a"} for i in range(20_000, 0, -1)},
        {"a": "b:a", "b": "a:b"},
    ],
    ids=["prefixes", "terms", "types", "circle"],
)
def test_terms_that_stand_for_each_other_never_overflow_the_stack(context: dict[str, Any]) -> None:
    document = page(script({"@context": context, "t5": 1}), holds_up=False)
    found = structured_data(document)
    assert found.triples == [] and found.counts["JsonLdError"] == 1
    assert document.missed == "parse_skipped"


def test_a_chain_of_terms_that_people_could_write_is_followed() -> None:
    found = structured_data(page(script(chained(MAX_CHAIN - 1)), holds_up=True))
    assert [name for _, name, *_ in found.triples] == ["http://x.test/"]


def itemrefs(size: int) -> str:
    many = size // 120
    return "<div itemscope itemref=r></div>" * many + "<div id=r>" + "<i itemprop=a>b</i>" * many + "</div>"


def copied(size: int) -> str:
    many = size // 140
    copies = "".join(f"<p about='#{i}'><link property='rdfa:copy' href='#p'></p>" for i in range(many))
    said = "".join(f"<b property='http://x.test/{i}'>v</b>" for i in range(many))
    return f"{copies}<p resource='#p' typeof='rdfa:Pattern'>{said}</p>"


#: Pages by their size in bytes.
SHAPES: dict[str, Shape] = {
    "JSON-LD: keys": lambda size: script(
        {"@context": "https://schema.org", **{f"k{i}": "v" for i in range(size // 12)}}
    ),
    "JSON-LD: nodes": lambda size: script([{"@context": "https://schema.org", "name": "v"}] * (size // 50)),
    "JSON-LD: numbers": lambda size: script({"@context": "https://schema.org", "a": [1e300] * (size // 7)}),
    "JSON-LD: lists": lambda size: script(
        {"@context": "https://schema.org", "a": [json.loads("[" * 99 + "]" * 99)] * (size // 200)}
    ),
    "JSON-LD: scripts": lambda size: '<script type="application/ld+json">{}</script>' * (size // 46),
    "JSON-LD: unknown contexts": lambda size: script({"@context": [f"http://x.test/{i}" for i in range(size // 20)]}),
    "JSON-LD: steps up": lambda size: script({"http://x.test/": {"@id": "../a/" * (size // 5)}}),
    "JSON-LD: open comments": lambda size: f'<script type="application/ld+json">{"/* <!-- " * (size // 8)}</script>',
    "JSON-LD: open strings": lambda size: '<script type="application/ld+json">"' + '\\"' * (size // 2) + "</script>",
    "JSON-LD: commas": lambda size: f'<script type="application/ld+json">[1{", " * (size // 2)}]</script>',
    "microdata: references to one": itemrefs,
    "microdata: names": lambda size: "<p itemscope>" + f"<b itemprop='{' a' * 90}'>v</b>" * (size // 220),
    "microdata: texts in texts": lambda size: (
        "<p itemscope>" + "<div itemprop=a>x" * min(4_000, size // 30) + "y" * size
    ),
    "RDFa: names": lambda size: "<p vocab='http://x.test/'>" + f"<b property='{' a' * 90}'>v</b>" * (size // 220),
    "RDFa: prefixes": lambda size: "".join(
        f"<p prefix='p{i}: http://x.test/{i}' property=p1:a>" for i in range(size // 60)
    ),
    "RDFa: declared in each other": lambda size: (
        "".join(f"<b prefix='p{i}: http://x.test/{i}' property=p1:a>" for i in range(min(4_000, size // 60)))
        + "y" * (size // 2)
    ),
    "RDFa: waiting relations": lambda size: (
        "<div vocab='http://x.test/' rel='"
        + " ".join(f"r{i}" for i in range(size // 20))
        + "'>"
        + "<a about='#a'></a>" * (size // 40)
    ),
    "RDFa: lists": lambda size: "<p vocab='http://x.test/'>" + "<b property=a inlist>x</b>" * (size // 28),
    "RDFa: lists of others": lambda size: (
        "<p vocab='http://x.test/'>"
        + "".join(f"<b about='#{i}' rel=a inlist resource='#x'>x</b>" for i in range(size // 50))
    ),
    "RDFa: texts in texts": lambda size: (
        "<p vocab='http://x.test/'>" + "<div property=a>x" * min(4_000, size // 30) + "y" * size
    ),
    "RDFa: markup in markup": lambda size: (
        "<div property='a:b' datatype='rdf:XMLLiteral'>x" * min(4_000, size // 60) + "<i>y</i>" * (size // 18)
    ),
    "RDFa: copies": copied,
    "RDFa: steps up": lambda size: f"<a about='{'../' * (size // 3)}' property='http://x.test/'>x</a>",
    "meta": lambda size: "".join(f"<meta property='og:{i}' content=x>" for i in range(size // 36)),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_reading_costs_what_the_size_of_the_page_says(kind: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        document = page("<!doctype html>" + SHAPES[kind](size), holds_up=False)
        return lambda: structured_data(document, rules=())

    assert costs_its_size(reading, 25_000)
