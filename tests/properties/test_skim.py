"""Whatever a page looks like, skimming it finds what the parser would have in its tree, by either way, in linear time."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from tests.costs import is_linear

from gossamer.documents.document import Document
from gossamer.documents.skim import Skim
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.testing.storage import visit
from gossamer.values.visit import Found
from tools.chores.reading import PLACE, Link, differences, links_of_skim, links_of_tree, said_by_skim, said_by_tree


def cut(pieces: str) -> list[str]:
    return pieces.split("|")


RAW = cut("script|style|textarea|title|xmp|noembed|noframes|iframe")
ODDS = [
    *(f"<{name}>" for name in RAW),
    *(f"</{name}>" for name in RAW),
    *cut(
        """<p>|</p>|<div title='|<div title=">|<div title="<|">|'|"|<|>|=|-|!|--|-->|--!>|<!--|<!-->|<!--->|<!--!>|<!-- > -->"""
    ),
    *cut("""<!x|<?x|</|</ |</>|x| |/|\n|&|&amp;|&copy|<b|<b >|</b |<br/>|<p a=b c='d'>|<i x=|<x a="b"c='>'>|\0|\r|ä"""),
    *cut(
        "<SCRIPT x='>'>|</SCRIPT >|<scripty>|<title/>|<style/>|<plaintext>|<template>|</template>|<template x='>'>|<form>|</form>"
    ),
    *cut("<html lang=x>|<head>|</head>|<body>|</body>|</html>|<noscript>|</noscript>"),
    *cut("<table>|</table>|<tr>|<td>|</td>|<select>|<option>|</select>"),
]
# `%d` is another number each time, so that links can be told apart.
SAID = [
    *cut(
        """<a href=%d>|<a href="%d">|<A class='x' HREF='%d' title='>'>|<a id="x" href="%d" rel="nofollow">|</a><a/href=%d>"""
    ),
    *cut("""<a href>|<a href=''>|<a href="">|<a >|<area href=''>|<iframe src="">"""),
    *cut(
        "<a href='%d&amp;&copy=&copy'>|<area href=%d>|<link rel=next href=%d>|<link rel=canonical href=%d>|<iframe src=%d>"
    ),
    *cut("<base href=/%d/>|<base>|<title>%d|<meta name=robots content=a%d>|<meta name=robots content=noindex>"),
]
GRAPHICS = cut(
    "<svg>|</svg>|<svg/>|<math>|</math>|<![CDATA[|]]>|<g>|</g>|<p>|<style>|</style>|<script>|</script>|<style/>|<textarea>"
)
PLAIN = cut(
    """<svg><path d="M"/></svg>|<svg a='b'><g><title>t</title><text>%d</text></g></svg>|<svg><style>a{}</style></svg>|<SVG a='>'>"""
    """|<svg><!-- c --><a href="%d">|<rdf:RDF>|<path>"""
)
HOLDERS = cut("<foreignObject>|</foreignObject>|<desc>|<mi>")
AROUND = cut("<div>|</div>|<table>|<td>|</td>|</table>|<b>|</b>|<li>|</li>")
MORE = cut("<frameset>|</frameset>|<frame src=%d>|<p style='background:url(%d)'>|<img src=%d>")


def soups(*vocabulary: str) -> st.SearchStrategy[bytes]:
    """Pages made of these pieces and of what pages say."""
    pieces = st.sampled_from(SAID) | st.sampled_from(vocabulary)
    return st.lists(pieces, max_size=20).map(
        lambda parts: "".join(part.replace("%d", str(n)) for n, part in enumerate(parts)).encode()
    )


def document(page: bytes, *, exactly: bool = False) -> Document:
    made = Document(visit(PLACE, b"\xef\xbb\xbf" + page))
    made.__dict__["skim"] = Skim(made.markup, exactly=exactly)
    return made


def links(page: Document, sheet: HtmlLinksSheet | None = None) -> list[Found]:
    return list(HtmlLinks(sheet).process(page))


@given(soups(*ODDS, *GRAPHICS, *PLAIN, *HOLDERS, *MORE))
def test_the_short_way_finds_what_the_exact_one_finds(page: bytes) -> None:
    short, exact = document(page), document(page, exactly=True)
    assert said_by_skim(short) == said_by_skim(exact)
    assert short.declared_language == exact.declared_language
    for sheet in (HtmlLinksSheet(anchors=True, forms=True), HtmlLinksSheet(requisites=True)):
        assert links(short, sheet) == links(exact, sheet)


def told_apart(links: Iterable[Link]) -> set[tuple[str, str, bool]]:
    """A link once, however often the parser repeated it, and without its text: the parser's repetitions cut it up."""
    return {link[:3] for link in links}


@given(soups(*ODDS))
def test_a_skim_finds_what_is_in_the_tree(page: bytes) -> None:
    skimmed = document(page)
    tree = LexborHTMLParser(skimmed.markup)
    assert told_apart(links_of_skim(skimmed)) == told_apart(links_of_tree(tree))
    assert said_by_skim(skimmed) == said_by_tree(tree, skimmed)


@given(soups(*GRAPHICS, *PLAIN, *AROUND))
@example(b"<a href=0><svg></a><a/href=2><![CDATA[<a href=4><a href=5>")
@example(b"<a href=0><svg></svg><a/href=2><![CDATA[<a href=4><a href=5>")
@example(b"<div><svg></div><title>of the page</title><a href=1><![CDATA[<a href=2>]]>")
@example(b"<svg><foreignObject><![CDATA[<a href=1>]]><title>of the page</title><a href=2>")
def test_links_in_graphics_and_formulas_are_those_of_the_tree(page: bytes) -> None:
    skimmed = document(page)
    tree = LexborHTMLParser(skimmed.markup)
    assert told_apart(links_of_skim(skimmed)) == told_apart(links_of_tree(tree))
    assert said_by_skim(skimmed) == said_by_tree(tree, skimmed)


@pytest.mark.parametrize(
    "page",
    [
        b"""<!doctype html><html lang=en><head><title>A &amp; B</title><base href=/there/><link rel="canonical" href="own">
        <meta name=robots content="noindex, nofollow"><script>if (a<b && c>d) document.write("<a href='no'>")</script></head>
        <body><!-- <a href=no> --><p>One <a class="x" href="one">link <code>with</code>
        text</a>, <A HREF='two?a=1&amp;b=2' rel="nofollow">an&nbsp;other</A> <img alt="a > b" src=x><a title="<b>" href=three>t</a>
        <table><tr><td><a href="four">4</a></td></tr></table><svg><title>s</title><a href=five><text>5</text></a></svg></html>""",
        b"<html><body>plain <a href=x>y</a> and <a name=z>no link</a></body></html>",
    ],
)
def test_whole_pages_differ_in_nothing_not_even_in_the_texts_of_links(page: bytes) -> None:
    count, found = differences(page)
    assert count > 0
    assert found == []


def test_a_difference_would_be_told() -> None:
    assert differences(b"<p><a href=1>x<p>y")[1] == ["link in the skim alone: ('a href', '1', False, 'xy')"] + [
        f"link in the tree alone: ('a href', '1', False, '{text}')" for text in "xy"
    ]


HOSTILE = {
    "open comments": b"<!--",
    "open comments, closed late": b"<!-- > ",
    "quotes in text": b'=">',
    "quotes and tags": b'=" <p ',
    "open tags": b"<a href=x ",
    "open quotes": b'<a href="x ',
    "scripts": b"<script>",
    "scripts in comments in scripts": b"<!--<script>",
    "styles in graphics": b"<svg><style/><",
    "character data": b"<svg><![CDATA[",
    "titles in graphics": b"<svg><title><",
    "ends of graphics": b"<svg><p></svg><style><",
    "graphics after graphics": b"<svg><g/></svg><style><",
    "graphics without end": b"<svg><g/><style>x</style>",
    "ends in graphics": b"<x><td><svg><g><style></x></x></x></x>",
    "templates": b"<template>",
    "links": b"<a href=x>",
    "links without end": b"<a href=x>t<b>",
    "styles": b"<p styl style",
    "framesets": b"<p><frameset><frame src=x>",
    "less than": b"<",
    "ends": b"</",
    "declarations": b"<!x",
    "references": b"<title>&a",
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_pages_are_skimmed_in_linear_time(shape: str) -> None:
    """Eight times the page, less than thirty times the work: quadratic would be sixty-four."""

    def work(size: int) -> None:
        made = document(HOSTILE[shape] * (size // len(HOSTILE[shape])))
        links(made, HtmlLinksSheet(anchors=True))
        links(made, HtmlLinksSheet(requisites=True))
        said_by_skim(made)

    assert is_linear(work, 40_000)
