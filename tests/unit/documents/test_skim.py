"""The tags that a crawler asks for, found without a tree: what counts where, and what is bounded."""

import pytest
from tests.sampling import sampled

from gossamer.documents.document import Document
from gossamer.documents.markup import MAX_ATTRIBUTES
from gossamer.documents.skim import MAX_KEPT, MAX_PECULIAR, Skim, Tag
from gossamer.parsing.contract import MAX_FOUND
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.testing.storage import visit


def hrefs(page: bytes, **settings: bool) -> list[str]:
    sheet = HtmlLinksSheet(**settings)
    return [found.href for found in HtmlLinks(sheet).process(Document(visit("http://a.test/dir/page", page)))]


def test_a_skim_is_tags_and_the_spans_between_them() -> None:
    made = Skim(b"<title>t</title><p>x<a href=1>y</a><!-- < --><a href='>'>z")
    assert [made.markup[slice(*piece)] if isinstance(piece, tuple) else piece.name for piece in made.pieces] == [
        b"title",
        b"<p>x<a href=1>y</a>",
        b"a",
        b"z",
    ]
    assert [type(piece) for piece in made.tags] == [Tag, Tag]


def test_tags_are_those_that_a_tokenizer_sees() -> None:
    page = b"""<!doctype html><!-- <a href=1> --><A HREF=2 href=3>x</a ><!--><a href=4 ><i "a="><a href=5>" </i>
        <script>"<a href=6>"</scripty></SCRIPT ><title></title><a<b href=7></ a href=8></3><?php <a href=9>?>
        <textarea><a href=10></textarea><e title='>' x="><a href=11>"><!--!><a href=12>--><a href=13 <a href=14>
        <script><!--<script></script><a href=15>--></script><noembed><a href=16></noembed x><xmp><a href=17></xmp>
        <a title="<a href=18>" href=19><![CDATA[<a href=20>]]><plaintext><a href=21>"""
    assert hrefs(page) == ["2", "4", "13", "19"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (b"<template><a href=1><template></template><a href=2></template><a href=3>", ["3"]),
        (b"<noscript><a href=1></noscript><select><a href=2></select>", ["1", "2"]),
        (
            b"<svg><a href=1><a xlink:href=2><title><a href=3></a></title><style><a href=4></style></svg>",
            ["1", "2", "3", "4"],
        ),
        # The end tag of the title is ignored, since a link of HTML is open in it.
        (b"<svg><title><a href=1></title><style><a href=2></style></svg>", ["1"]),
        (b"<svg><style/><script/><a href=1><![CDATA[<a href=2>]]></svg><style><a href=3></style>", ["1"]),
        (b"<svg><p><title><a href=1></title><![CDATA[<a href=2>]]>", []),
        (b"<svg><foreignObject><title><a href=1></title></foreignObject><title/><a href=2></svg>", ["2"]),
        (b"<math><mi><style><a href=1></style></mi><style><a href=2></style>", ["2"]),
        (b"<table><a href=1><td><a href=2></table>", ["1", "2"]),
        (b"<p><a href=1><p>x<p>y</a>", ["1"]),
        (b"<frameset><frame src=1></frameset>", ["1"]),
        (b"<link><p><frameset><frame src=1></frameset>", ["1"]),
        (b"<a href=1>text</a><frameset><frame src=2></frameset>", ["1"]),
        (b"<body><frameset><frame src=2></frameset>", []),
    ],
)
def test_what_counts_where_it_stands(page: bytes, expected: list[str]) -> None:
    assert hrefs(page) == expected


def test_a_form_in_a_form_is_none() -> None:
    page = b"<form action=1><form action=2></form><form action=3><template></form></template><form action=4>"
    assert hrefs(page, forms=True) == ["1", "3"]


@pytest.mark.parametrize(
    ("page", "head"),
    [
        (b"<!doctype html> <html><head><title>a<b</title><script>x<y</script></head> <link>", None),
        (b"<link>text", b"text"),
        (b"<head></head><noscript>", b"<noscript>"),
        (b"<head><noscript><link></noscript><p>", b"<p>"),
        (b"<template>text<p></template><base><body>", b"<body>"),
        (b"<!-- c --><?x?></p></br>", b"</br>"),
        (b"<meta><1>", b"<1>"),
        (b"", None),
    ],
)
def test_a_head_ends_at_the_first_thing_that_none_can_hold(page: bytes, head: bytes | None) -> None:
    assert page[Skim(page).head_end :] == (head or b"")


def test_a_page_of_many_peculiar_places_is_read_to_its_end() -> None:
    page = b"<p title='>'><a href=x>" * 2 * MAX_PECULIAR
    made = Skim(page)
    assert made.is_exact
    assert hrefs(page) == ["x"] * 2 * MAX_PECULIAR


@pytest.mark.parametrize("before", [b"", b"<p>", b"<p title='>'>" * (MAX_PECULIAR + 1), b"<template>"])
@pytest.mark.parametrize("end", [b">", b"", b" x='>'>"])
def test_a_tag_with_too_many_attributes_is_noticed_wherever_it_stands(before: bytes, end: bytes) -> None:
    def page(count: int) -> bytes:
        return before + b"<p " + b" ".join(b"a%d" % n for n in range(count)) + end

    assert Skim(page(MAX_ATTRIBUTES + 10)).is_crowded
    assert not Skim(page(MAX_ATTRIBUTES - 10)).is_crowded


PECULIAR = b"<p title='>'>" * (MAX_PECULIAR + 1)


def test_tags_that_are_kept_are_bounded_and_those_that_are_left_out_are_counted() -> None:
    page = Document(visit("http://a.test/", b"".join(b"<area href=%d>" % n for n in range(MAX_KEPT + 100))))
    assert len(page.skim.pieces) == MAX_KEPT
    list(HtmlLinks().process(page))
    assert page.left_out == {"unread_tags": 100, "too_many_links": MAX_KEPT - MAX_FOUND}
    assert len(Skim(b"<title>t</title><p>" * 1_000).tags) == 1


@pytest.mark.parametrize("before", [b"", PECULIAR], ids=["in spans", "exactly"])
@pytest.mark.parametrize(
    "anchor",
    sampled(
        [
            b"<a href=a.html#%d>",
            b'<a class=x HREF="a.html?x&y#%d" id=i>',
            b"<a href='#%d'>",
            b"<a href=''>",
            b"<a name=x>",
        ],
        2,
    ),
)
def test_a_link_behind_any_number_of_links_to_the_same_places_is_found(before: bytes, anchor: bytes) -> None:
    anchors = (anchor % n if b"%d" in anchor else anchor for n in range(2 * MAX_KEPT + 1))
    page = Document(visit("http://a.test/", before + b"".join(anchors) + b"<a href=last>"))
    assert list(HtmlLinks().process(page))[-1].href == "last"
    assert page.left_out == {}


def test_of_too_many_links_those_in_front_are_kept_and_the_others_counted() -> None:
    page = Document(visit("http://a.test/", b"".join(b"<a href=%d>" % n for n in range(4 * MAX_FOUND))))
    found = [one.href for one in HtmlLinks().process(page)]
    assert found == [str(n) for n in range(MAX_FOUND)]
    assert page.left_out == {"too_many_links": 3 * MAX_FOUND}


def test_tags_that_differ_in_more_than_a_fragment_are_all_kept() -> None:
    links = [b"a#1 rel=nofollow", b"a#2", b"a&#49;", b"a&#50;", b"'a #1'", b"'a #2'", b"'b#1' title='#'", b"a?#1"]
    page = PECULIAR + b"".join(b"<a href=%s>" % link for link in links) + b"<a href=a#3>" * (MAX_KEPT + 1)
    assert hrefs(page)[: len(links)] == ["a#1", "a#2", "a1", "a2", "a #1", "a #2", "b#1", "a?#1"]


@pytest.mark.parametrize(
    ("page", "title", "base"),
    [
        (
            b"<svg><title>of a drawing</title><base href=/no/></svg><title>of the page</title><base href=/b/>",
            "of the page",
            "/b/",
        ),
        (b"<p><svg><title>of a drawing</title></svg><math><title>t</title>", "", "/dir/page"),
        (b"<svg><foreignObject><title>of the page</title></foreignObject></svg>", "of the page", "/dir/page"),
        (b"<svg><g><desc></desc></g></svg><p><title>of the page</title>", "of the page", "/dir/page"),
        (b"<frameset><title>of nothing</title><base href=/no/><frame src=x></frameset>", "", "/dir/page"),
        (
            b"<title>of the page</title><frameset><title>of nothing</title><frame src=x></frameset>",
            "of the page",
            "/dir/page",
        ),
        (b"<p><base href=/no/></p><frameset><frame src=x></frameset>", "", "/dir/page"),
        (b"<p>text<frameset><title>of the page</title>", "of the page", "/dir/page"),
    ],
)
def test_title_and_base_are_those_of_the_page_not_of_graphics_or_frames(page: bytes, title: str, base: str) -> None:
    document = Document(visit("http://a.test/dir/page", page))
    assert (document.title, document.base) == (title, f"http://a.test{base}")


def test_no_robots_tag_is_in_a_page_of_frames() -> None:
    page = b"<frameset><meta name=robots content=noindex></frameset>"
    assert Document(visit("http://a.test/", page)).directives == ()


@pytest.mark.parametrize(
    "graphics",
    [
        b"<svg><g><path d='M'/></g></svg>",
        b'<svg class="x" width=5><text>t</text></svg>',
        b"<SVG><g><title>t</title><a href='#x'/></SVG>",
        b"<svg><style>a{}</style><script>x</script><!-- c --></svg>",
        b"<svg><rdf:RDF><cc:Work></cc:Work></rdf:RDF></svg>",
        b"<svg><svg/><g></svg>",
        b"<svg>" + b"<g>" * 100 + b"</svg>",
        b"<svg/>",
        b"<svg><p>out</p></svg>",
        b"<!-- <svg> -->",
        b"<!-- <p><svg> -->",
        b"<p title='<svg>'>",
        b"<script>'<svg>'</script>",
    ],
)
def test_behind_graphics_that_ended_tags_are_those_of_the_page_again(graphics: bytes) -> None:
    styles = b"<style><a href=1></style><a href=2>"
    assert hrefs(graphics + styles)[-1:] == ["2"]
    assert "1" not in hrefs(b"<div>" + graphics + styles + graphics + styles + b"</div>")


def test_a_place_within_graphics_is_in_them_wherever_these_end() -> None:
    assert hrefs(b"<svg><g><title>t</title><![CDATA[<a href=1>]]></g></svg><a href=2>") == ["2"]
    assert hrefs(b"<svg><g/></svg><svg><style><a href=1></style></svg>") == ["1"]


def test_an_end_tag_of_what_is_around_graphics_ends_them() -> None:
    assert hrefs(b"<a href=0><svg></a><a/href=2><![CDATA[<a href=4><a href=5>") == ["0", "2", "5"]
    assert hrefs(b"<a href=0><svg></svg><a/href=2><![CDATA[<a href=4><a href=5>") == ["0", "2", "5"]
    assert hrefs(b"<div><svg><g></div><style><a href=1></style><a href=2>") == ["2"]
    assert hrefs(b"<a href=0><svg><a href=1></a><style><a href=2></style></svg>") == ["0", "1", "2"]


@pytest.mark.parametrize(
    "page",
    [
        b"<title>T</title><link rel=canonical href=/c><meta name=author content=A><body><p>text",
        b"<title>T</title><!-- <body> --><meta name=author content=A><link rel=canonical href=/c><body><p>text",
        b"<script>'<body>'</script><title>T</title><base href=/b/><body><p>text",
        b"<body><title>T</title><base href=/b/><meta property=article:published_time content=2026-01-02><p>text",
        b"<p>text<body><link rel=canonical href=/c>",
        b"<title>T</title><base href=/b/><frameset><frame src=f></frameset><body>",
        b"<title>T</title><body><svg><title>graphic</title></svg><time datetime=2026-01-02>",
    ],
)
def test_a_page_states_the_same_whether_its_head_alone_is_read_or_all_of_it(page: bytes) -> None:
    some, every = (Document(visit("https://example.org/", page)) for _ in range(2))
    assert every.skim
    stated = [(one.title, one.base, one.canonical, one.metadata) for one in (some, every)]
    assert stated[0] == stated[1]
