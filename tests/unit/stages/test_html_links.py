"""Which links an HTML page has."""

import pytest

from gossamer.model.errors import ParseSkipped
from gossamer.model.requisites import RELATIONS
from gossamer.model.visit import Found
from gossamer.reading.document import Document
from gossamer.reading.suspicion import MAX_DEPTH
from gossamer.stages.process.html import HtmlLinks, HtmlLinksSheet, candidates, refresh_target
from gossamer.testing.storing import visit


def document(page: bytes) -> Document:
    return Document(visit("http://a.test/dir/page", page))


def links(page: bytes, **settings: bool) -> list[Found]:
    return list(HtmlLinks(HtmlLinksSheet(**settings)).process(document(page)))


def hrefs(page: bytes, **settings: bool) -> list[str]:
    return [f"{found.relation}: {found.href}" for found in links(page, **settings)]


EVERYTHING = (
    b"<link rel='alternate' href=1><link rel=stylesheet href=2><link rel='alternate stylesheet' href=3><link href=4>"
    b"<meta http-equiv=Refresh content='5; URL=\"5\"'><img src=6><a href=7>t</a><map><area href=8></map>"
    b"<iframe src=9></iframe><script src=10></script><a name=x><a ><link rel=NEXT href=11><a href=12>"
)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1, 5, 7, 8, 9, 11, 12]),
        ({"link_elements": False}, [5, 7, 8, 9, 12]),
        ({"frames": False}, [1, 5, 7, 8, 11, 12]),
        ({"requisites": True}, [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12]),
        ({"requisites": True, "link_elements": False}, [2, 3, 5, 6, 7, 8, 9, 10, 12]),
    ],
    ids=str,
)
def test_elements_in_document_order(settings: dict[str, bool], expected: list[int]) -> None:
    assert [int(found.href) for found in links(EVERYTHING, **settings)] == expected
    # A page that the parser must not see has the same links.
    assert [int(found.href) for found in links(EVERYTHING + b"<i>" * 2 * MAX_DEPTH, **settings)] == expected


REQUISITES = (
    b"<link rel='alternate stylesheet' href=1><link rel='shortcut icon' href=2><link rel=preconnect href=3>"
    b"<link rel=preload imagesrcset='4.png 1x, 5.png 2x'><style>@import '6'; p{background:url(7)}</style><script src=8></script>"
    b"<body background=9><picture><source srcset='10 100w,11 200w'><img src=12 srcset='13, 14 2x'></picture>"
    b"<video src=15 poster=16><source src=17><track src=18></video><audio src=19></audio><embed src=20><object data=21></object>"
    b"<input type=image src=22><input src=23><svg><image xlink:href=24 /><use href='#a'/><use href='25#a'/></svg>"
    b"<p style='background:url(26)'><img src='data:image/png;base64,xx'><a style='background:url(27)' href=28>t</a>"
)


def test_requisites_are_what_a_browser_fetches() -> None:
    found = hrefs(REQUISITES, requisites=True)
    assert found == [
        "link stylesheet: 1",
        "link icon: 2",
        "link imagesrcset: 4.png",
        "link imagesrcset: 5.png",
        "css import: 6",
        "css url: 7",
        "script src: 8",
        "body background: 9",
        "source srcset: 10",
        "source srcset: 11",
        "img src: 12",
        "img srcset: 13",
        "img srcset: 14",
        "video src: 15",
        "video poster: 16",
        "source src: 17",
        "track src: 18",
        "audio src: 19",
        "embed src: 20",
        "object data: 21",
        "input src: 22",
        "image xlink:href: 24",
        "use href: 25#a",
        "css url: 26",
        "css url: 27",
        "a href: 28",
    ]
    assert {line.rpartition(":")[0] for line in found} - {"a href"} <= RELATIONS
    assert hrefs(REQUISITES) == ["a href: 28"]


def test_forms_are_followed_by_choice_and_only_where_they_ask() -> None:
    page = b"<form action=1></form><form action=2 method=GET></form><form action=3 method=post></form><form></form>"
    assert hrefs(page, forms=True) == ["form action: 1", "form action: 2"]
    assert hrefs(page) == []


@pytest.mark.parametrize(
    ("srcset", "urls"),
    [
        ("", []),
        ("a", ["a"]),
        (" a 1x , b 2x ", ["a", "b"]),
        ("a,b", ["a,b"]),
        ("a, b", ["a", "b"]),
        ("a 1x,b 2x", ["a", "b"]),
        ("a (x, y) 1x, b", ["a", "b"]),
        (",,a,,", ["a"]),
        ("data:image/png,x 1x, a 2x", ["a"]),
        ("a (", ["a"]),
    ],
)
def test_candidates(srcset: str, urls: list[str]) -> None:
    assert list(candidates(srcset)) == urls


def test_candidates_are_bounded_and_found_in_linear_time() -> None:
    assert len(list(candidates("a 1x, " * 100_000))) == 100
    assert list(candidates("," * 1_000_000)) == []
    assert len(list(candidates("a" * 1_000_000 + "," * 1_000_000))) == 1


def test_relations_name_tag_and_attribute() -> None:
    assert hrefs(b"<a href=a><area href=b><link rel=next href=c><frameset><frame src=d>") == [
        "a href: a",
        "area href: b",
        "link href: c",
    ]
    assert hrefs(b"<frameset><frame src=d>") == ["frame src: d"]
    assert hrefs(b"<meta http-equiv=refresh content='0;r'>") == ["meta content: r"]


@pytest.mark.parametrize("rel", ["nofollow", "UGC", "me  sponsored", "n&#111;follow"])
def test_nofollow_is_recorded(rel: str) -> None:
    page = f"<a href=x rel='{rel}'><area href=y rel='{rel}'><a href=z rel=nofollowing>".encode()
    assert [found.nofollow for found in links(page)] == [True, True, False]


def test_anchor_texts_are_folded_and_bounded_and_off_by_default() -> None:
    page = b"<a href=x> the\n <b>text</b>  here </a><a href=y>" + b"long " * 1000
    assert [found.anchor for found in links(page)] == ["", ""]
    first, second = [found.anchor for found in links(page, anchors=True)]
    assert first == "the text here"
    assert len(second) == 500


@pytest.mark.parametrize(
    ("page", "anchor"),
    [
        (b"<a href=x>one &amp two&lt;</a>three", "one & two<"),
        (b"<A HREF='x'>in <B>other</B> words</A>", "in other words"),
        (b"<a href=x>a <!-- < --> b<script>'<i>'</script> c <i title='>'>d</i></a>e", "a b c d"),
        (b"<a href=x title='>'>a<p>b</p></a>c", "ab"),
        (b"<td><a href=x>a</td><td>b", "a"),
        (b"<a href=x>a < b<a name=y>c", "a < b"),
        (b"<a href=x>a <i title='>'><a name=y>c", "a"),
        (b"<a href=x>a<!-- <a> -->", "a"),
        (b"<a href=x>", ""),
        (b"<a href=x><!-- < -->a</a>", "a"),
    ],
)
def test_an_anchor_is_the_text_up_to_the_end_of_its_link(page: bytes, anchor: str) -> None:
    assert [found.anchor for found in links(page, anchors=True)] == [anchor]
    assert next(found.anchor for found in links(page, anchors=True, requisites=True)) == anchor


@pytest.mark.parametrize(
    "tag",
    [
        b'<a href="x" rel="nofollow">',
        b'<a rel="nofollow" href="x">',
        b'<a class="rel" href="x" REL=nofollow>',
        b"<a\thref='x'/rel=nofollow>",
        b'<a data-href="y" title=\'href="z"\' href="x"rel="nofollow" href="w">',
    ],
)
def test_links_are_read_alike_however_they_are_written(tag: bytes) -> None:
    assert links(tag) == [Found("x", "a href", "", True)]


def test_pages_in_other_encodings() -> None:
    assert hrefs("<a href='größe'>".encode("utf-16")) == ["a href: größe"]
    assert hrefs(b"<meta charset=koi8-r><a href='\xc1'>") == ["a href: а"]


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=x", "x"),
        ("5", None),
        ("0", None),
        (" 1.5 , URL = 'a b' c", "a b"),
        ("0; x", "x"),
        ('0;url="x', "x"),
        ("url=x", None),
        ("10000000000;x", "x"),
        ("0;url=", None),
        ("", None),
    ],
)
def test_refresh(content: str, target: str | None) -> None:
    assert refresh_target(content) == target


@pytest.mark.parametrize(
    ("page", "base"),
    [
        (b"", "http://a.test/dir/page"),
        (b"<base><base href=/x/><base href=/y/>", "http://a.test/x/"),
        (b"<BASE HREF='http://b.test'>", "http://b.test/"),
        (b"<div><base href=/late/>", "http://a.test/late/"),
        (b"<base href='http://['><base href=/y/>", "http://a.test/dir/page"),
        (b"<base href='data:,x'>", "http://a.test/dir/page"),
        (b"<base href='javascript:1'>", "http://a.test/dir/page"),
        (b"<base href=''>", "http://a.test/dir/page"),
    ],
)
def test_base(page: bytes, base: str) -> None:
    assert document(page).base == base
    assert document(page + b"<i>" * 2 * MAX_DEPTH).base == base


def test_a_page_in_trouble_says_so_and_is_not_parsed() -> None:
    page = document(b"<title>t</title>" + b"<div>" * 2 * MAX_DEPTH)
    assert (page.trouble, page.title, page.charset) == ("parse_skipped", "t", "windows-1252")
    with pytest.raises(ParseSkipped, match="too_deep"):
        page.css("a")


def test_titles_are_folded_and_bounded() -> None:
    assert document(b"<title> a\n&amp;  b </title>").title == "a & b"
    assert len(document(b"<title>" + b"x" * 10_000).title) == 1_000
    assert document(b"<p>").title == ""


def test_an_empty_address_is_a_link_to_the_page_itself() -> None:
    page = b"<a href=''>1</a><a href>2</a><a class='x' href=\"\">3</a><area href=''><a>no</a><a >no</a><iframe src=''></iframe>"
    for settings in ({}, {"anchors": True}, {"requisites": True}):
        assert [(found.relation, found.href) for found in links(page, **settings)] == [("a href", "")] * 3 + [
            ("area href", "")
        ]
