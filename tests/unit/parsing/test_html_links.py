"""Which links an HTML page has."""

import time
from html import escape

import msgspec
import pytest

from gossamer.documents.document import MAX_DEPTH, Document
from gossamer.documents.skim import Skim
from gossamer.documents.statements import MAX_FIELD_LINKS
from gossamer.parsing.contract import MAX_FOUND
from gossamer.parsing.findings import before
from gossamer.parsing.html import MAX_WITHIN, HtmlLinks, HtmlLinksSheet, refresh_target
from gossamer.parsing.other_links import candidates
from gossamer.testing.storage import visit
from gossamer.values.errors import ParseSkipped
from gossamer.values.task import RELATIONS
from gossamer.values.visit import Found


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


TABLE = (
    b"<table background=1><thead background=2><tr BackGround = '3'><th background=4 title='a>b'>x"
    b"<tbody background=5 style='color:red'>"
    b"<tr><td background=6>background= is a word</td></tr><tfoot background='7'></tfoot></table><div background=no>"
)


def test_pictures_behind_parts_of_a_table_are_requisites() -> None:
    tags = ["table", "thead", "tr", "th", "tbody", "td", "tfoot"]
    expected = [f"{tag} background: {number}" for number, tag in enumerate(tags, 1)]
    assert hrefs(TABLE, requisites=True) == expected
    assert hrefs(TABLE) == []
    assert {line.partition(":")[0] for line in expected} <= RELATIONS
    exactly = document(TABLE)
    exactly.__dict__["skim"] = Skim(exactly.markup, exactly=True)
    assert [one.href for one in HtmlLinks(HtmlLinksSheet(requisites=True)).process(exactly)] == list("1234567")


def test_pictures_that_a_script_moves_into_place_are_requisites() -> None:
    page = (
        b"<img src=data:image/gif;base64,x data-src=/1.jpg data-srcset='/2.jpg 1x, /3.jpg 2x'><img data-original=4.png>"
        b"<img data-lazy-src=/5 data-lazy-srcset='/6 1x' data-lazy=true data-lazyload=1 data-original-set='/7 1x'>"
        b"<img data-cfsrc=/8 data-src-id=x/y data-title=a.b data-flickity-lazyload=/9 data-echo=http://b.test/10>"
        b"<source data-srcset='/11, /12 2x'><img data-src='{{ photo.url }}' data-lazy='[1.5]'><div data-src=/no></div>"
        b"<img data-src='' data-original='#a.b' data-hi-res-src=/13>"
    )
    expected = [*("1.jpg", "2.jpg", "3.jpg", "4.png"), *"56789", "10", "11", "12", "13"]
    found = links(page, requisites=True)
    assert [one.href.rpartition("/")[2] for one in found if not one.href.startswith("data:")] == expected
    assert {one.relation for one in found} <= RELATIONS
    assert hrefs(page) == []
    many = b"<img " + b" ".join(b"data-%s-src" % (b"a-" * 3 + b"%d" % n) for n in range(1_900)) + b" data-src=/1>"
    assert hrefs(many, requisites=True) == ["img data-src: /1"]
    assert hrefs(b"<img data-" + b"a-" * 100_000 + b"src=/1 data-src=/2>", requisites=True) == ["img data-src: /2"]


def test_pictures_that_a_script_moves_behind_elements_are_requisites() -> None:
    page = (
        b"<div data-bg=/1><section DATA-BACKGROUND-IMAGE='url(/2)'><a href=/l data-bg=\"3.jpg\">x</a><p data-bgset='/4 1x, /5 2x'>"
        b"<td data-bg='/6?a&amp;b' background=/7><li data-lazy-background='url(\"/8\"), url(/9)'><img src=/10 data-bg=/11>"
        b"<b data-bg-color=#fff data-bg-ratio=16/9 data-bg=0.5 data-background-color='rgba(0,0,0,.5)' data-bg='{a:/no}'>"
    )
    images = ["/1", "/2", "3.jpg", "/4", "/5", "/6?a&b", "/8", "/9", "/11"]
    everything = hrefs(page, requisites=True)
    assert [one for one in everything if one.startswith("css")] == [f"css url: {image}" for image in images]
    assert {"a href: /l", "td background: /7", "img src: /10"} < set(everything)
    assert hrefs(page) == ["a href: /l"]


def test_scripts_and_filters_of_graphics_are_requisites() -> None:
    page = b"<svg><filter><feImage href=1/><feImage xlink:href=2/></filter><script href=3></script><script xlink:href=4 /></svg>"
    expected = ["feimage href: 1/", "feimage xlink:href: 2/", "script href: 3", "script xlink:href: 4"]
    assert hrefs(page, requisites=True) == expected


def test_media_that_a_script_moves_into_place_are_requisites_and_lazy_frames_are_documents() -> None:
    page = (
        b"<video data-src=/1.mp4 data-poster=/2.jpg poster=/3.jpg></video><audio data-lazy-src=/4.ogg></audio>"
        b"<iframe data-src=/5></iframe><iframe src=about:blank data-lazy-src=/6></iframe><embed data-src=/no>"
    )
    frames = ["iframe data-src: /5", "iframe data-src: /6", "iframe src: about:blank"]
    assert hrefs(page) == frames
    media = ["video poster: /3.jpg", "video data-src: /1.mp4", "video data-src: /2.jpg", "audio data-src: /4.ogg"]
    found = links(page, requisites=True)
    assert [f"{one.relation}: {one.href}" for one in found if one.relation in RELATIONS] == media
    assert hrefs(page, requisites=True) == [*media, *frames]
    assert hrefs(page, frames=False) == []


WITHIN = (
    b'<a href=0></a><iframe src=about:blank srcdoc="&lt;link rel=stylesheet href=/1.css&gt;&lt;img src=2&gt;'
    b"&lt;a href=&quot;3&quot;&gt;"
    b"x&lt;/a&gt;&lt;iframe srcdoc='&amp;lt;a href=4&amp;gt;deep'&gt;&lt;/iframe&gt;&lt;title&gt;t&lt;/title&gt;\"></iframe>"
    b"<iframe srcdoc='<base href=/b/><a href=5>'></iframe><a href=6>"
)


def test_a_page_within_an_iframe_has_links_and_requisites() -> None:
    expected = [
        "a href: 0",
        "iframe src: about:blank",
        "a href: 3",
        "a href: 4",
        "a href: http://a.test/b/5",
        "a href: 6",
    ]
    assert hrefs(WITHIN) == expected
    assert hrefs(WITHIN, frames=False) == [expected[0], *expected[2:]]
    assert hrefs(WITHIN, requisites=True) == [*expected[:2], "link stylesheet: /1.css", "img src: 2", *expected[2:]]
    assert [one.anchor for one in links(WITHIN, anchors=True)][2:4] == ["x", "deep"]
    page = document(WITHIN)
    assert (page.title, page.base) == ("", "http://a.test/dir/page")


def test_pages_within_pages_are_read_so_deep_and_the_rest_is_told() -> None:
    inner = "<a href=x>"
    for _ in range(MAX_WITHIN + 1):
        inner = f'<iframe srcdoc="{escape(inner)}"></iframe><a href=y>'
    page = document(inner.encode())
    found = list(HtmlLinks().process(page))
    assert [one.href for one in found] == ["y"] * (MAX_WITHIN + 1)
    assert page.missed == f"pages in pages are read {MAX_WITHIN} deep"
    assert sum(page.left_out.values()) == 1


def answered(page: bytes, *fields: str, mime: str = "text/html") -> Document:
    seen = visit("http://a.test/dir/page", page)
    response = msgspec.structs.replace(
        seen.response, headers=(("content-type", mime), *(("link", one) for one in fields))
    )
    return Document(msgspec.structs.replace(seen, response=response, mime=mime))


FIELDS = (
    '</c>; rel="canonical", <p2>; rel=next; title="a, <b>; rel=up", <http://b.test/fr>;rel="x alternate"; hreflang=fr',
    '<s.css>; rel=preload; as=style,</i>; rel=preload; imagesrcset="1.png 1x, 2.png 2x", <no>; rel=preconnect, <no>',
    '<http://[>; rel=next, <no>; anchor="/other"; rel=next, <yes>; anchor="/dir/page"; REL = Next; rel=up',
    '<no>; anchor="#x"; rel=next',
    "</f\xc3\xbc>; rel=icon, garbage <q>; rel=prev ; rel=no, <no>; rel*=UTF-8''next",
)


def test_link_fields_lead_where_the_elements_would() -> None:
    page = answered(b"<base href=/elsewhere/><a href=x>", *FIELDS)
    documents = ["a.test/c", "a.test/dir/p2", "b.test/fr", "a.test/dir/yes", "a.test/dir/q"]
    found = [(one.relation, one.href.removeprefix("http://")) for one in HtmlLinks().process(page)]
    assert found == [*(("header link", href) for href in documents), ("a href", "x")]
    shown = HtmlLinks(HtmlLinksSheet(requisites=True, link_elements=False)).process(page)
    assert [f"{one.relation}: {one.href}" for one in shown] == [
        "link preload: http://a.test/dir/s.css",
        "link preload: http://a.test/i",
        "link imagesrcset: 1.png",
        "link imagesrcset: 2.png",
        "link icon: http://a.test/f%C3%BC",
        "a href: x",
    ]


def test_the_canonical_url_of_a_header_is_that_of_the_document_where_its_head_names_none() -> None:
    assert answered(b"x", *FIELDS).canonical == "http://a.test/c"
    assert answered(b"<link rel=canonical href=/own>", *FIELDS).canonical == "http://a.test/own"
    assert answered(b"%PDF-", *FIELDS, mime="application/pdf").canonical == "http://a.test/c"
    assert (
        answered(b"x", "<http://[>; rel=canonical, </b>; rel='canonical', <//c.test/>; rel=canonical").canonical
        == "http://c.test/"
    )


def test_what_follows_from_the_header_of_a_document_that_is_no_page() -> None:
    document = answered(b"%PDF-", *FIELDS, mime="application/pdf")
    assert [one.href for one in before(document)][:2] == ["http://a.test/c", "http://a.test/dir/p2"]
    assert before(answered(b"x", *FIELDS)) == ()


@pytest.mark.parametrize("part", ["<", '<x>;"', "<x>;a=", '<x>;a="\\', "<x>;a ", "<x>,", ";a"])
def test_hostile_link_fields_cost_linear_time(part: str) -> None:
    def work(size: int) -> float:
        page = answered(b"x", "<x>" + part * (size // len(part)))
        begun = time.process_time()
        assert len(page.field_links) <= MAX_FIELD_LINKS
        return max(time.process_time() - begun, 0.001)

    assert work(60_000) < 30 * min(work(6_000) for _ in range(3))


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
        ("a\xa0b 1x,\u2003c\x0b 2x, d\x85e\u2028\t1x", ["a\xa0b", "\u2003c\x0b", "d\x85e\u2028"]),
    ],
)
def test_candidates(srcset: str, urls: list[str]) -> None:
    assert list(candidates(srcset)) == urls


def test_candidates_are_all_found_in_linear_time() -> None:
    assert len(list(candidates("a 1x, " * 100_000))) == 100_000
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


@pytest.mark.parametrize("rel", ["nofollow", "UGC", "me  sponsored", "n&#111;follow", "noopener,nofollow", "ugc, me"])
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


@pytest.mark.parametrize(
    "before", [b"", b"<p property=name>Signed</p>", b"<a href=0>small</a><a\nhref=0>x</a>", b'x="y<z"<A<b>']
)
@pytest.mark.parametrize("tag", [b"<A href=1>", b"<A\nHREF='1'>", b'<A/href="1">', b'<A rel="next" href="1">'])
def test_links_in_capitals_are_found_whatever_stands_around_them(before: bytes, tag: bytes) -> None:
    page = b"<body><p>text</p>" + before + tag + b"t</A><p typeof=Thing>" + tag + b"<article>t</article>"
    assert [found.href for found in links(page) if found.href != "0"] == ["1", "1"]
    assert Skim(page).has_sign


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


@pytest.mark.parametrize("page", [b"<img srcset='%s'>", b"<style>%s</style>", b"<p style='%s'>"])
def test_one_tag_with_very_many_urls_is_bounded_and_the_rest_is_counted(page: bytes) -> None:
    form = b"%d 1x," if b"srcset" in page else b"url(%d)"
    made = document(page % b"".join(form % number for number in range(2 * MAX_FOUND)))
    found = HtmlLinks(HtmlLinksSheet(requisites=True)).process(made)
    assert len(list(found)) == MAX_FOUND
    assert made.left_out == {"too_many_links": MAX_FOUND}
