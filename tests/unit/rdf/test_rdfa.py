"""RDFa beyond the W3C's tests: what the reader promises of hostile and odd pages."""

from typing import Any

import pytest

from gossamer.rdf import terms
from gossamer.rdf.names import MAX_PREFIXES
from gossamer.rdf.rdfa import MAX_NESTED_TEXTS
from gossamer.rdf.terms import FIRST, NIL, REST

PAGE = "http://a.test/dir/page"
S = "http://s.test/"


def test_a_page_says_what_its_attributes_say(said: Any) -> None:
    page = '<div vocab="http://s.test/" typeof="T" resource="#x"><b property="n">N</b><a property="u" href="/u">x</a></div>'
    x = f"{PAGE}#x"
    assert said(page) == {(x, terms.TYPE, f"{S}T"), (x, f"{S}n", "N"), (x, f"{S}u", "http://a.test/u")}


def test_a_link_is_the_subject_of_what_stands_in_it_and_of_nothing_behind_it(said: Any) -> None:
    page = (
        '<body vocab="http://s.test/"><a href="/1"><b property="n">in</b></a><a href="/2">x</a><i property="n">out</i>'
    )
    assert said(page) == {("http://a.test/1", f"{S}n", "in"), (PAGE, f"{S}n", "out")}


def test_what_stands_in_a_neighbour_without_attributes_is_no_part_of_the_element_before_it(said: Any) -> None:
    page = (
        '<body vocab="http://s.test/"><p about="#1" property="n">one</p><div><i property="n">two</i></div>'
        '<p rel="r">none</p><div class="x"><i resource="#2">three</i></div>'
        '<a href="#3">x</a><div><p><i property="n">four</i></p></div>'
    )
    assert said(page) == {(f"{PAGE}#1", f"{S}n", "one"), (PAGE, f"{S}n", "two"), (PAGE, f"{S}n", "four")}


def test_a_link_beside_content_is_the_subject(said: Any) -> None:
    page = '<body vocab="http://s.test/"><a href="/1" property="n" content="c">x</a><a href="/2" property="n">x</a>'
    assert said(page) == {("http://a.test/1", f"{S}n", "c"), (PAGE, f"{S}n", "http://a.test/2")}


def test_what_waits_for_an_object_gets_each_that_comes(said: Any) -> None:
    page = '<div vocab="http://s.test/"><p rel="r"><i resource="#1"></i><a href="/2"></a></p></div>'
    assert said(page) == {(PAGE, f"{S}r", f"{PAGE}#1"), (PAGE, f"{S}r", "http://a.test/2")}


def test_a_list_keeps_its_order(read: Any) -> None:
    page = '<p vocab="http://s.test/"><i property="n" inlist>b</i><i property="n" inlist>a</i><i property="n" inlist>c</i></p>'
    triples = read(page).triples
    following = {subject: value for subject, name, value, *_ in triples if name == terms.REST}
    first = {subject: value for subject, name, value, *_ in triples if name == terms.FIRST}
    node = next(value for _, name, value, *_ in triples if name == f"{S}n")
    items = []
    while node != terms.NIL:
        items.append(first[node])
        node = following[node]
    assert items == ["b", "a", "c"]


def test_a_vocabulary_is_expanded_on_request_alone(read: Any) -> None:
    page = '<p vocab="http://purl.org/dc/terms/"><i property="created">2001</i></p>'
    dates = [f"http://purl.org/dc/{name}" for name in ("terms/date", "elements/1.1/date")]
    assert not {name for _, name, *_ in read(page).triples} & set(dates)
    assert {name for _, name, *_ in read(page, expanding=True).triples} >= set(dates)


def test_what_is_not_understood_is_counted_and_named(read: Any) -> None:
    found = read('<p property="nonsense" rel="[x:y]" about="[u:v]">text</p>' + '<i property="other"></i>' * 60)
    assert found.counts["UnresolvedTerm"] == 61
    assert [warned.about for warned in found.warnings if warned.kind == "UnresolvedCURIE"] == ["[x:y]", "[u:v]"]
    assert len(found.warnings) == terms.MAX_WARNINGS


def test_xhtml_that_is_no_xml_is_read_as_html_and_says_so(read: Any) -> None:
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><p property="http://s.test/n">N</html>'
    found = read(page, "application/xhtml+xml")
    assert [triple[:3] for triple in found.triples] == [(PAGE, f"{S}n", "N")]
    assert found.counts["DocumentError"] == 1


def test_no_entity_of_a_page_is_expanded(read: Any) -> None:
    page = (
        '<!DOCTYPE html [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>'
        '<html xmlns="http://www.w3.org/1999/xhtml"><body property="http://s.test/n">&a;&b;</body></html>'
    )
    found = read(page, "application/xhtml+xml")
    assert found.counts["DocumentError"] == 1
    assert all("aaaa" not in value and "root" not in value for _, _, value, *_ in found.triples)


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        (
            '<body vocab="http://s.test/">' + "".join(f"<i property=n{n}>x</i>" for n in range(25_000)),
            "too_many_triples",
        ),
        ('<body vocab="http://s.test/">' + "<i property=n inlist>x</i>" * 25_000, "too_many_triples"),
        (
            '<body vocab="http://s.test/"><div rel="'
            + " ".join(f"r{n}" for n in range(100))
            + '">'
            + "<p about=x></p>" * 5_000,
            "too_many_triples",
        ),
        ('<body vocab="http://s.test/">' + "<span property=n>" * 100 + "text", "too_many_nested_texts"),
        (
            "<body>"
            + "".join(f'<div prefix="p{n}: http://e/">' for n in range(2 * MAX_PREFIXES))
            + "<i property=p1:x>",
            "too_many_prefixes",
        ),
        (
            '<body vocab="http://s.test/"><i property=n content="' + "x" * (terms.MAX_LITERAL + 1) + '">',
            "literal_too_long",
        ),
        ('<body vocab="http://s.test/"><a property=n href="/' + "x" * terms.MAX_IRI + '">', "iri_too_long"),
    ],
)
def test_what_is_over_a_limit_is_left_out_and_counted(page: str, kind: str, read: Any) -> None:
    found = read(page)
    assert found.counts[kind] > 0
    assert len(found.triples) <= terms.MAX_TRIPLES


@pytest.mark.parametrize(
    "page",
    [
        '<body prefix="e: http://e.test/{long}">' + "<i property=e:n>x</i>" * 2_000,
        '<body vocab="http://e.test/{long}">' + "<i property=n>x</i>" * 2_000,
        '<base href="http://e.test/{long}"><body vocab="http://s.test/">' + "<a property=n href='#x'>x</a>" * 2_000,
        '<body vocab="http://s.test/" lang="{tag}">' + "<i property=n>x</i>" * 2_000,
        '<body itemscope itemtype="http://e.test/{long}/T">' + "<i itemprop=n>x</i>" * 2_000,
    ],
)
def test_a_long_name_is_not_made_again_for_each_that_uses_it(page: str, read: Any) -> None:
    found = read(page.format(long="x" * 1_000_000, tag="a-" * 500_000 + "a"))
    assert sum(map(len, map("".join, found.triples))) < 100_000


def test_many_long_names_are_cut(read: Any) -> None:
    context = '{"p": "http://e.test/' + "x" * (terms.MAX_IRI - 40) + '/"}'
    keys = ", ".join(f'"p:{number:040}": 1' for number in range(1_000))
    found = read(f'<script type="application/ld+json">{{"@context": {context}, {keys}}}</script>')
    assert found.triples == [] and found.counts["iri_too_long"] == terms.MAX_LEFT_OUT + 1
    page = f'<body prefix="e: http://e.test/{"x" * 8_000}">' + "".join(f"<i property=e:{n}>x</i>" for n in range(3_000))
    assert read(page).counts["too_much_text"] == 1


@pytest.mark.parametrize("meaning", ['"%s"', '{"@id": "%s"}', '{"@id": "x:y", "@context": {"q": "%s"}}'])
def test_a_context_with_a_name_that_is_too_long_is_not_read(read: Any, meaning: str) -> None:
    context = '{"p": ' + meaning % ("http://e.test/" + "x" * terms.MAX_IRI) + "}"
    found = read(f'<script type="application/ld+json">{{"@context": {context}, "p:1": 1}}</script>')
    assert found.triples == []
    assert [warned.kind for warned in found.warnings] == ["JsonLdError"]


def test_texts_in_texts_are_read_only_so_deep(read: Any) -> None:
    page = '<body vocab="http://s.test/">' + "".join(f"<span property=n{n}>" for n in range(50)) + "text"
    assert len([1 for *_, datatype, _ in read(page).triples if datatype]) == MAX_NESTED_TEXTS


def test_patterns_that_copy_each_other_come_to_an_end(said: Any) -> None:
    page = (
        '<div vocab="http://s.test/"><p resource="#1" typeof="rdfa:Pattern">'
        '<link property="rdfa:copy" href="#2"><i property=a>1</i></p>'
        '<p resource="#2" typeof="rdfa:Pattern"><link property="rdfa:copy" href="#1"><i property=b>2</i></p>'
        '<p resource="#me"><link property="rdfa:copy" href="#1"></p></div>'
    )
    me = f"{PAGE}#me"
    assert {triple for triple in said(page) if triple[0] == me} == {(me, f"{S}a", "1"), (me, f"{S}b", "2")}


def test_an_iri_holds_nothing_that_breaks_a_line_of_triples(read: Any) -> None:
    found = read('<a vocab="http://s.test/" property=n href="http://x.test/> <a b\n&quot;{}\x1b">')
    [link] = [value for _, name, value, *_ in found.triples if name == f"{S}n"]
    assert not set(link) & set('<>"{}\x1b \n')


def _lists(found: Any) -> dict[tuple[str, str], list[list[str]]]:
    """The lists of a page, by subject and property."""
    triples = list(found.triples)
    first = {subject: value for subject, name, value, *_ in triples if name == FIRST}
    rest = {subject: value for subject, name, value, *_ in triples if name == REST}
    lists: dict[tuple[str, str], list[list[str]]] = {}
    for subject, name, node, *_ in triples:
        if name not in (FIRST, REST) and (node in first or node == NIL):
            items = []
            while node in first:
                items.append(first[node])
                node = rest[node]  # noqa: PLW2901
            lists.setdefault((subject.rpartition("/")[2], name.rpartition("/")[2]), []).append(items)
    return lists


@pytest.mark.parametrize(
    ("markup", "lists"),
    [
        (  # test 0226 of the W3C
            "<p property=v inlist>1</p><span rel=n resource=r><p property=v inlist>2</p></span><p property=v inlist>3</p>",
            {("s", "v"): [["1", "3"]], ("r", "v"): [["2"]]},
        ),
        (  # test 0227
            "<p property=v inlist>1</p><span rel=n><p about=r property=v inlist>2</p></span><p property=v inlist>3</p>",
            {("s", "v"): [["1", "3"]], ("r", "v"): [["2"]]},
        ),
        (
            "<span rel=n resource=r><i property=v inlist>1</i><b><i property=v inlist>2</i></b></span>",
            {("r", "v"): [["1", "2"]]},
        ),
        (
            "<p property=n resource=r typeof=T><i property=v inlist>1</i><i property=v inlist>2</i></p>",
            {("r", "v"): [["1", "2"]]},
        ),
        (
            "<p rel=v inlist resource=r><i property=v inlist>1</i></p><i property=v inlist>2</i>",
            {("s", "v"): [["http://a.test/dir/r", "2"]], ("r", "v"): [["1"]]},
        ),
        (
            "<p about=r rel=n resource=q><i property=v inlist>1</i></p><p about=q property=v inlist>2</p>",
            {("q", "v"): [["1"], ["2"]]},
        ),
        (
            "<p rel=v inlist><a href=q></a><a href=r></a></p>",
            {("s", "v"): [["http://a.test/dir/q", "http://a.test/dir/r"]]},
        ),
        ("<p rel=v inlist></p>", {("s", "v"): [[]]}),
    ],
)
def test_a_list_has_the_items_of_its_own_subject(read: Any, markup: str, lists: dict[tuple[str, str], Any]) -> None:
    found = _lists(read(f'<body vocab="http://s.test/" about="s">{markup}'))
    assert found == lists
