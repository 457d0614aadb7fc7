"""What a page can hold, what is dropped, and how it is written."""

import io
from collections.abc import Collection
from typing import Any

import pyoxigraph as oxigraph
import pytest

from gossamer.documents.document import Document
from gossamer.documents.skim import MAX_PECULIAR, MAX_REMEMBERED
from gossamer.rdf.names import MAX_VALUES
from gossamer.rdf.page import DROPPED, dropping, sign_of, structured_data
from gossamer.rdf.store.graphs import FORMATS, quads, write_graph
from gossamer.rdf.terms import STRING, XHV

OPENGRAPH = (
    '<!doctype html><head><title>t</title><meta property="og:title" content="T"><meta name="DC.creator" content="C">'
)


def test_a_page_without_structured_data_is_not_parsed(document: Any) -> None:
    page = document(
        "<!doctype html><title>t</title><p>Some <a rel=nofollow href=x>text</a> about the property of types."
    )
    assert sign_of(page).is_nothing
    assert structured_data(page).triples == []
    assert "tree" not in page.__dict__


def test_what_stands_in_the_head_alone_needs_no_tree_of_the_body(document: Any) -> None:
    page = document(f"{OPENGRAPH}<body><p>text")
    found = structured_data(page)
    assert [(name, value) for _, name, value, *_ in found.triples] == [("http://ogp.me/ns#title", "T")]
    assert [(item.kind, item.values) for item in found.items] == [
        ("opengraph", {"og:title": ["T"]}),
        ("dublin-core", {"DC.creator": ["C"]}),
    ]
    assert "tree" not in page.__dict__


@pytest.mark.parametrize(
    "head",
    [
        "<html lang=en><head><meta property='og:title' content='a&amp;b'><title property='og:x'>t &lt; u</title>",
        "<html prefix='x: http://x.test/'>\n<head prefix='y: http://y.test/'><meta property='x:a y:b' content=c>",
        "<!-- <head prefix='y: http://y.test/'> --><html><head><meta property='y:a' content=c>",
        "<html vocab='http://s.test/'><head resource='#x'><meta property=a content=b></head><meta property=b content=c>",
        "<html><html lang=de><head><meta property='og:a' content=b>",
        "<meta property='og:a' content=b><base href='/other'><link property='og:b' href=c>",
        "<html><head><template><meta property='og:a' content=b></template><noscript><meta property='og:c' content=d></noscript>",
        "<html xmlns:z='http://z.test/'><head><meta property='z:a' content=b><script property='og:s'>1 < 2 &amp; 3</script>",
        "<html itemscope itemtype='http://s.test/T'><head><meta itemprop=name content=N><title itemprop=title>a</title>",
    ],
)
def test_a_head_says_without_a_tree_what_it_says_with_one(head: str, document: Any) -> None:
    page = document(f"<!doctype html>{head}<body><p>text")
    assert sign_of(page).head_only
    assert structured_data(page, rules=()).triples == structured_data(page, rules=(), searching=False).triples


def test_any_element_of_a_head_may_show_a_sign(document: Any) -> None:
    for head, is_sign in (
        ("<head typeof='http://s.test/T'>", True),
        ("<noscript PROPERTY = x></noscript>", True),
        ("<link rel='cc:license' href=x>", True),
        ("<meta name=x content=y>" * (MAX_PECULIAR + 1) + "<meta property='og:x' content=y>", True),
        (f"<meta content='{'x' * MAX_REMEMBERED}' property='og:x'>", True),
        ("<meta name=x content=property><script>a.property = 1</script><!-- <p property=x> -->", False),
    ):
        assert sign_of(document(f"<!doctype html>{head}<title>t</title><body><p>text")).is_nothing is not is_sign, head


def test_a_script_may_write_its_type_with_a_reference(document: Any) -> None:
    for kind in ("application/ld+json", "Application/LD+JSON; charset=utf-8", "application/ld&#x2B;json"):
        page = document(f"""<script type='{kind}'>{{"http://s.test/n": 1}}</script>""")
        assert len(structured_data(page).triples) == 1, kind
    assert sign_of(document("<script type='application/json&#x20;'>{}</script>")).is_nothing


@pytest.mark.parametrize(
    "body",
    [
        "<p TypeOf = 'http://s.test/T'>",
        "<p property='og:x'>y",
        "<a rel='cc:license' href=x>",
        "<a rev='http://s.test/r' href=x>",
        "<a rel=license href=x>",
        "<p ItemScope><i itemprop=x>y",
    ],
)
def test_what_stands_in_the_body_is_found(body: str, document: Any) -> None:
    page = document(f"<!doctype html><title>t</title><body>{body}")
    assert not sign_of(page).head_only
    assert structured_data(page).triples


@pytest.mark.parametrize(
    "body",
    [
        "<div xmlns:rev='http://a.test/'>",
        "<i data-property=a>",
        "<i data-rev='x'>",
        "<p>typeof = 3, myvocab=2",
        "<i :property=a>",
    ],
)
def test_attributes_whose_names_only_end_alike_are_no_sign(body: str, document: Any) -> None:
    assert sign_of(document(f"<!doctype html><title>t</title><body>{body}text")).is_nothing


@pytest.mark.parametrize(
    "body", ["<i\nproperty=a>", "<i id='x'property=a>", '<i id="x"typeof=a>', "<i/rev=a>", "<i\tVOCAB = a>"]
)
def test_whatever_may_stand_before_an_attribute_does_not_hide_it(body: str, document: Any) -> None:
    assert sign_of(document(f"<!doctype html><title>t</title><body>{body}text")).rdfa


def test_a_page_that_the_parser_may_not_see_keeps_its_scripts(document: Any) -> None:
    nested = "<p property=x>" + "<div>" * 20_000
    page = document(f'<script type="application/ld+json">{{"http://s.test/n": 1}}</script>{nested}')
    found = structured_data(page)
    assert len(found.triples) == 1 and found.counts["parse_skipped"] == 1


def test_links_for_browsers_are_dropped_and_counted(document: Any) -> None:
    page = document('<body vocab="http://s.test/"><a rel="next license" href=2>x</a><a property=next>3</a>')
    found = structured_data(page)
    assert {(name, value) for _, name, value, *_ in found.triples} == {
        ("http://s.test/license", "http://a.test/dir/2"),
        ("http://s.test/next", "3"),
    }
    assert found.dropped["next"] == 1
    assert len(structured_data(page, rules=()).triples) == 4


def test_a_rule_is_a_predicate_or_a_link_type() -> None:
    from collections import Counter

    triples = [("s", f"{XHV}icon", "o", "", ""), ("s", "http://s.test/p", "o", STRING, "")]
    assert dropping(triples, DROPPED, Counter()) == triples[1:]
    assert dropping(triples, {"http://s.test/p"}, Counter()) == triples[:1]


@pytest.mark.parametrize("form", ["nquads", "turtle", "jsonld"])
def test_what_a_page_says_breaks_no_format_and_no_terminal(form: str) -> None:
    texts = ['"\\\n\r\t\x00\x1b[2J\u202e\u2028 <b>]]> \U0001f600', "plain"]
    triples = [("http://a.test/", "http://s.test/p", text, STRING, "") for text in texts]
    out = io.StringIO()
    write_graph(quads(triples, "http://a.test/"), form, out)
    assert all(character.isprintable() or character in "\n\t" for character in out.getvalue())
    back = oxigraph.parse(out.getvalue(), FORMATS[form])
    assert {quad.object.value for quad in back} == set(texts)


def test_a_name_that_is_no_iri_is_counted() -> None:
    from collections import Counter

    left_out: Counter[str] = Counter()
    assert list(quads([("x", "http://s.test/p", "y", "", "")], "http://a.test/", left_out)) == []
    assert left_out["not_an_iri"] == 1


LINKED = """<!doctype html><head><title>t</title><base href="/in/"><meta name=description content="About it">
<meta name=Author content=A>
<meta name=viewport content=x><meta property="x:y" content=z><meta name=author><link rel="canonical License" href="page">
<link rel=stylesheet href=a.css><link rel=license><body><link rel=author href="mailto:a@b.test">"""


def items_of(page: Document, rules: Collection[str] = DROPPED) -> dict[str, dict[str, list[str]]]:
    return {item.kind: item.values for item in structured_data(page, rules=rules).items}


def test_other_meta_elements_and_links_are_items_but_for_those_that_serve_browsers(document: Any) -> None:
    assert items_of(document(LINKED)) == {
        "meta": {"description": ["About it"], "Author": ["A"]},
        "link": {
            "canonical": ["http://a.test/in/page"],
            "license": ["http://a.test/in/page"],
            "author": ["mailto:a@b.test"],
        },
    }


def test_the_rules_of_the_filter_say_which_elements_are_items(document: Any) -> None:
    found = items_of(document(LINKED), {"meta:description", "meta:author", "canonical", "license"})
    assert found == {
        "meta": {"viewport": ["x"]},
        "link": {"stylesheet": ["http://a.test/in/a.css"], "author": ["mailto:a@b.test"]},
    }


def test_links_lead_where_a_browser_would_go(document: Any) -> None:
    page = document(
        "<!doctype html><base href='/a/b?q=/x'><link rel=author href=' c'><link rel=author href='?d'><link rel=author href='#e'>"
        "<link rel=author href='/f'><link rel=author href='//g.test'><link rel=author href='  '><link rel=author href='.'>"
    )
    assert items_of(page)["link"]["author"] == [
        "http://a.test/a/c", "http://a.test/a/b?d", "http://a.test/a/b?q=/x#e", "http://a.test/f", "http://g.test",
        "http://a.test/a/",
    ]  # fmt: skip


def test_a_page_of_endless_items_keeps_a_thousand(document: Any) -> None:
    page = "".join(f"<meta name=n{number} content=c>" for number in range(MAX_VALUES + 5))
    assert sum(len(values) for values in items_of(document(page))["meta"].values()) == MAX_VALUES
