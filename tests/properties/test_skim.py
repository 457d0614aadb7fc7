"""Whatever a page looks like, skimming it finds what the parser would have in its tree, by either way, in linear time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from gossamer.model.document import Document
from gossamer.model.skim import Skim
from gossamer.model.visit import Found
from gossamer.stages.process.html import HtmlLinks, HtmlLinksSheet
from gossamer.testing.storing import visit


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
    *cut(
        "<a href='%d&amp;&copy=&copy'>|<area href=%d>|<link rel=next href=%d>|<link rel=canonical href=%d>|<iframe src=%d>"
    ),
    *cut("<base href=/%d/>|<base>|<title>%d|<meta name=robots content=a%d>|<meta name=robots content=noindex>"),
]
GRAPHICS = cut(
    "<svg>|</svg>|<svg/>|<math>|</math>|<![CDATA[|]]>|<g>|</g>|<p>|<style>|</style>|<script>|</script>|<style/>|<textarea>"
)
HOLDERS = cut("<foreignObject>|</foreignObject>|<desc>|<mi>")
MORE = cut("<frameset>|</frameset>|<frame src=%d>|<p style='background:url(%d)'>|<img src=%d>")


def soups(*vocabulary: str) -> st.SearchStrategy[bytes]:
    """Pages made of these pieces and of what pages say."""
    pieces = st.sampled_from(SAID) | st.sampled_from(vocabulary)
    return st.lists(pieces, max_size=20).map(
        lambda parts: "".join(part.replace("%d", str(n)) for n, part in enumerate(parts)).encode()
    )


def document(page: bytes, *, exactly: bool = False) -> Document:
    made = Document(visit("http://a.test/x/y", b"\xef\xbb\xbf" + page))
    made.__dict__["skim"] = Skim(made.markup, exactly=exactly)
    return made


def links(page: Document, sheet: HtmlLinksSheet | None = None) -> list[Found]:
    return list(HtmlLinks(sheet).process(page))


def said(page: Document) -> tuple[object, ...]:
    return page.title, page.base, page.canonical, page.directives


@given(soups(*ODDS, *GRAPHICS, *HOLDERS, *MORE))
def test_the_short_way_finds_what_the_exact_one_finds(page: bytes) -> None:
    short, exact = document(page), document(page, exactly=True)
    assert said(short) == said(exact)
    assert short.declared_language == exact.declared_language
    for sheet in (HtmlLinksSheet(anchors=True, forms=True), HtmlLinksSheet(requisites=True)):
        assert links(short, sheet) == links(exact, sheet)


def links_of_tree(tree: LexborHTMLParser) -> set[tuple[str, str, bool]]:
    """A link once, however often the parser repeated it."""
    found = set()
    for node in tree.css("a[href],area[href],link[href],iframe[src]"):
        read = node.attributes
        place = "src" if node.tag == "iframe" else "href"
        if read[place]:
            found.add((f"{node.tag} {place}", read[place] or "", read.get("rel") == "nofollow"))
    return found


def links_of_skim(page: Document) -> set[tuple[str, str, bool]]:
    return {(found.relation, found.href, found.nofollow) for found in links(page)}


def said_by_tree(tree: LexborHTMLParser, page: Document) -> tuple[object, ...]:
    title = tree.css_first("title")
    base = tree.css_first("base[href]")
    own = tree.head.css("link[rel=canonical][href]") if tree.head is not None else []
    metas = {node.attributes["content"] for node in tree.css("meta[name=robots]")}
    url = "http://a.test" + (base.attributes["href"] or "") if base is not None else page.url
    return (
        " ".join(title.text().split()) if title is not None else "",
        url,
        url.rpartition("/")[0] + f"/{own[0].attributes['href']}" if own else "",
        tuple(sorted(meta for meta in metas if meta)),
    )


@given(soups(*ODDS))
def test_a_skim_finds_what_is_in_the_tree(page: bytes) -> None:
    skimmed = document(page)
    tree = LexborHTMLParser(skimmed.markup)
    assert links_of_skim(skimmed) == links_of_tree(tree)
    assert said(skimmed) == said_by_tree(tree, skimmed)


@given(soups(*GRAPHICS))
def test_links_in_graphics_and_formulas_are_those_of_the_tree(page: bytes) -> None:
    if b"<title" in page:
        page = page.replace(b"<title", b"<b")
    skimmed = document(page)
    assert links_of_skim(skimmed) == links_of_tree(LexborHTMLParser(skimmed.markup))


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

    def work(size: int) -> float:
        page = HOSTILE[shape] * (size // len(HOSTILE[shape]))
        best = float("inf")
        for _ in range(3):
            begun = time.process_time()
            made = document(page)
            links(made, HtmlLinksSheet(anchors=True))
            links(made, HtmlLinksSheet(requisites=True))
            said(made)
            best = min(best, time.process_time() - begun)
        return best

    small = max(work(40_000), 0.002)
    assert work(320_000) < 30 * small
