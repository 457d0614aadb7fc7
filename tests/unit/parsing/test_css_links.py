"""What style sheets name."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.documents.document import Document
from gossamer.parsing.other_links import CssLinks, CssLinksSheet, css_links
from gossamer.testing.storage import visit
from gossamer.values.task import CSS_IMPORT, CSS_URL, belongs, redirect_of
from gossamer.values.visit import Found


@pytest.mark.parametrize(
    ("sheet", "found"),
    [
        ("", []),
        ("@import 'a.css';", ["import a.css"]),
        ('@import url("a.css") screen;', ["import a.css"]),
        ("@IMPORT/* x */ url( a.css );", ["import a.css"]),
        ("p { background: url(a.png) }", ["url a.png"]),
        ("p { background: URL( 'a b.png' ), url(c.png) }", ["url a b.png", "url c.png"]),
        ("@font-face { src: url(a.woff2) format('woff2'), url('b.woff') }", ["url a.woff2", "url b.woff"]),
        ("/* url(a) */ p { content: 'url(b)' } q { content: \"it's url(c)\" }", []),
        (r"p { background: url(a\ b\29 .png) }", ["url a b).png"]),
        ("p { background: url(data:image/png,x) url(#filter) url() }", []),
        ("@importx 'a'; @charset 'b';", []),
        ("p { background: url('a.png", ["url a.png"]),
        ("p { background: url(a.png", ["url a.png"]),
        ("a{b:image-set('a.png' 1x, url(b.png) 2x);c:'no'}", ["url a.png", "url b.png"]),
        ("a{b:-webkit-image-set(\"a\" type('image/avif'), 'b' type( \"no\"))}", ["url a", "url b"]),
        ("a{b:IMAGE-SET(linear-gradient(red, rgba(0,0,0,.5)) 1x, 'a(' 2x), url(b); c: 'no'}", ["url a(", "url b"]),
        ("a{b:image-set('a' 1x", ["url a"]),
        ("@namespace url(http://n.test/); @namespace s 'no'; a{b:url(c)}", ["url c"]),
        (r"p { background: url(\0.png) }", ["url \ufffd.png"]),
    ],
)
def test_urls_and_imports(sheet: str, found: list[str]) -> None:
    assert [f"{one.relation.removeprefix('css ')} {one.href}" for one in css_links(sheet)] == found


def test_sheets_are_read_only_where_requisites_are_wanted() -> None:
    document = Document(visit(body="p{background:url(ä)}".encode()))
    assert list(CssLinks().process(document)) == []
    [found] = CssLinks(CssLinksSheet(requisites=True)).process(document)
    assert found.href == "ä"


@pytest.mark.parametrize(
    "piece",
    [
        "url(",
        "@import ",
        "@import/*",
        "/*",
        "'",
        '"',
        "\\",
        "url('",
        "(",
        '@import url("\\',
        "image-set(",
        "image-set('a",
        "@namespace(",
    ],
)
def test_hostile_sheets_are_read_in_linear_time(piece: str) -> None:
    assert len(list(css_links(piece * 200_000))) <= 200_000


def test_of_the_urls_of_a_sheet_none_is_lost() -> None:
    assert len(list(css_links("".join(f"a{{b:url({n})}}" for n in range(20_000))))) == 20_000


@given(st.text(alphabet="url()@import'\"\\/* \n;a", max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert all(found.href for found in css_links(text))


def test_redirects_of_requisites_are_requisites_and_no_way_around_the_end() -> None:
    assert redirect_of("img src") == redirect_of(redirect_of("img src")) == "redirect img src"
    assert redirect_of("a href") == redirect_of("redirect") == redirect_of("seed") == "redirect"
    assert belongs("redirect img src", "img src") and not belongs("redirect", "a href")
    assert belongs(CSS_IMPORT, redirect_of("link stylesheet"))
    assert not belongs(CSS_IMPORT, redirect_of(CSS_IMPORT))
    assert not belongs("img src", redirect_of("img src"))


def test_the_way_of_requisites_ends() -> None:
    assert belongs("img src", "a href") and belongs("link stylesheet", "seed") and belongs(CSS_URL, CSS_IMPORT)
    assert belongs(CSS_IMPORT, "link stylesheet") and belongs(CSS_URL, "link stylesheet")
    assert not belongs(CSS_IMPORT, CSS_IMPORT)
    assert not belongs("img src", "object data")
    assert not belongs("a href", "a href")


def test_a_sheet_in_a_legacy_encoding_loses_no_quote_to_a_bad_byte() -> None:
    seen = visit("http://a.test/s.css", b"a{background:url('/1.png')} /* \x81*/ b{background:url('/2\x81')}")
    response = msgspec.structs.replace(seen.response, headers=(("content-type", "text/css; charset=shift_jis"),))
    document = Document(msgspec.structs.replace(seen, mime="text/css", response=response))
    found = CssLinks(CssLinksSheet(requisites=True)).process(document)
    assert [one.href for one in found if isinstance(one, Found)] == ["/1.png", "/2\ufffd"]
