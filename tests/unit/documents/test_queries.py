"""Query strings are in the encoding of their document, as browsers send them."""

from urllib.parse import quote

import msgspec
import pytest
from webencodings.labels import LABELS

from gossamer.documents import legacy_encodings
from gossamer.documents.charset import in_charset
from gossamer.documents.document import Document
from gossamer.parsing.contract import Processor
from gossamer.parsing.feeds import FeedLinks, SitemapLinks
from gossamer.parsing.findings import filled, read
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.parsing.links import LinkResolver
from gossamer.testing.storage import visit
from gossamer.values.url import canonical
from gossamer.values.visit import Visit

PAGE = "http://a.test/dir/page"


def links(page: bytes) -> list[str]:
    """The URLs of a page's links, as the crawl asks for them."""
    made: Visit = visit(PAGE, page)
    findings = read(Document(made), [HtmlLinks(HtmlLinksSheet(requisites=True, forms=True))], "plain")
    [done] = LinkResolver().filter(filled(made, findings))
    return [link.url for link in done.links]


def query(text: str, charset: str) -> str:
    return canonical(in_charset(f"?{text}", PAGE, charset), PAGE).partition("?")[2]


def test_a_query_is_sent_in_the_encoding_of_its_page_and_a_path_in_utf8() -> None:
    page = '<meta charset=euc-kr><a href="/s?q=한글">a</a><a href="/한?q=1#한">b</a>'.encode("euc-kr")
    assert links(page) == ["http://a.test/s?q=%C7%D1%B1%DB", "http://a.test/%ED%95%9C?q=1"]


def test_forms_frames_images_and_refreshes_speak_the_encoding_of_the_page_too() -> None:
    page = """<meta charset=windows-1251><meta http-equiv=refresh content="0;url=/r?я"><form action="/f?я"></form>
    <iframe src="/i?я"></iframe><img srcset="/s?я 2x"><area href="/a?я"><link rel=next href="/l?я">"""
    assert sorted(links(page.encode("windows-1251"))) == [f"http://a.test/{n}?%FF" for n in "afilrs"]


def test_what_is_in_a_style_sheet_of_the_page_is_utf8() -> None:
    page = '<meta charset=windows-1251><p style="background:url(/b?я)"><style>@import "/c?я";</style>'
    assert links(page.encode("windows-1251")) == ["http://a.test/b?%D1%8F", "http://a.test/c?%D1%8F"]


def test_base_and_canonical_url_are_read_as_links_are() -> None:
    page = "<meta charset=koi8-r><base href='/b?я'><link rel=canonical href='/c?я'>".encode("koi8-r")
    document = Document(visit(PAGE, page))
    assert (document.base, document.canonical) == ("http://a.test/b?%D1", "http://a.test/c?%D1")


@pytest.mark.parametrize(
    ("charset", "word"),
    [("euc-kr", "한글"), ("shift_jis", "日本"), ("windows-1251", "ж"), ("iso-8859-2", "ł"), ("koi8-r", "ж")],
)
def test_a_sitemap_in_a_legacy_encoding_is_read_by_what_it_declares(charset: str, word: str) -> None:
    body = f"<?xml version='1.0' encoding='{charset}'?><urlset><url><loc>http://a.test/{word}?q={word}</loc></url></urlset>"
    made = msgspec.structs.replace(visit("http://a.test/", body.encode(charset)), mime="application/xml")
    [done] = LinkResolver().filter(filled(made, read(Document(made), [SitemapLinks()], "plain")))
    assert [link.url for link in done.links] == [f"http://a.test/{quote(word)}?q={quote(word)}"]


@pytest.mark.parametrize(
    ("processor", "body"),
    [
        (
            SitemapLinks(),
            "<?xml version='1.0' encoding='koi8-r'?><urlset><url><loc>http://a.test/?я</loc></url></urlset>",
        ),
        (FeedLinks(), "<?xml version='1.0' encoding='koi8-r'?><feed><link href='?я'/></feed>"),
    ],
)
def test_sitemaps_and_feeds_ask_in_utf8_whatever_they_are_written_in(processor: Processor, body: str) -> None:
    made = msgspec.structs.replace(visit("http://a.test/", body.encode("koi8-r")), mime="application/xml")
    [done] = LinkResolver().filter(filled(made, read(Document(made), [processor], "plain")))
    assert [link.url for link in done.links] == ["http://a.test/?%D1%8F"]


@pytest.mark.parametrize("charset", ["utf-8", "utf-16le", "utf-16be", "replacement", ""])
def test_pages_in_unicode_ask_in_utf8(charset: str) -> None:
    assert query("q=ß", charset) == "q=%C3%9F"


def test_a_letter_that_the_encoding_lacks_is_sent_as_its_number() -> None:
    assert query("q=€한&x=ß", "iso-8859-2") == "q=%26%238364%3B%26%2354620%3B&x=%DF"


def test_a_scheme_that_is_not_the_webs_asks_in_utf8() -> None:
    assert in_charset("ws://a.test/?ß", PAGE, "windows-1252") == "ws://a.test/?ß"
    assert in_charset("?ß", "gopher://a.test/", "windows-1252") == "?ß"
    assert in_charset("FTP://a.test/?ß", PAGE, "windows-1252") == "FTP://a.test/?%DF"


def test_what_the_url_parser_drops_is_no_part_of_a_query() -> None:
    assert canonical(in_charset(" \t?a\n=ß b \r\n", PAGE, "windows-1252"), PAGE) == f"{PAGE}?a=%DF%20b"


# Each was read off the indexes of the Encoding standard.
STANDARD = [
    ("shift_jis", "表①纊ｱ¥‾−ⅰ", "%95\\%87@%FA\\%B1\\~%81|%FA@"),
    ("euc-jp", "表①纊ｱ¥‾−ⅰ", "%C9%BD%AD%A1%F9%A1%8E%B1\\~%A1%DD%FC%F1"),
    ("iso-2022-jp", "aあ①ｱ¥b", "a%1B$B$%22-!%%22%1B(J\\b%1B(B"),
    ("iso-2022-jp", "あ한", "%1B$B$%22%1B(B%26%2354620%3B"),
    ("euc-kr", "똠뷁", "%8Cc%94%EE"),
    ("gbk", "€㐁é", "%80%26%2313313%3B%A8%A6"),
    ("gb18030", "€ḿ", "%A2%E3%A8%BC"),
    ("big5", "十€猪㕵", "%A4Q%A3%E1%FER%26%2313685%3B"),
    ("windows-1252", "\x81€", "%81%80"),
    ("x-user-defined", "\uf7ff", "%FF"),
    ("koi8-u", "ў═", "%AE%A0"),
    ("windows-1255", "\u05ba", "%CA"),
]


@pytest.mark.parametrize(("charset", "text", "sent"), STANDARD)
def test_letters_are_encoded_as_the_standard_says_where_the_codec_of_python_does_not(
    charset: str, text: str, sent: str
) -> None:
    assert query(text, charset) == sent


# What encoders take for something else on purpose; two signs that Python's codec reads as others, which have cells, too; and
# places for private use that GB 18030 has given to letters since, which are still written there.
GIVEN_AWAY = set(
    "\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864"
)
TAKEN_FOR_OTHERS = {
    "gbk": GIVEN_AWAY,
    "gb18030": GIVEN_AWAY,
    **{key: {"¥", "‾", "−"} for key in ("shift_jis", "euc-jp", "iso-2022-jp")},
    "big5": {"\u2215", "\ufe68"},
}


@pytest.mark.parametrize("charset", sorted({*LABELS.values()} - {"utf-8", "utf-16be", "utf-16le", "replacement"}))
def test_every_letter_that_an_encoding_writes_it_reads_again(charset: str) -> None:
    written = 0
    others = TAKEN_FOR_OTHERS.get(charset, set())
    if charset == "iso-2022-jp":
        others = others | set(map(chr, range(0xFF61, 0xFFA0)))
    for code in (
        *range(0x80, 0xD800),
        *range(0xE000, 0xFF00, 7),
        *range(0xF780, 0xF800),
        *range(0xFF00, 0xFFF0),
        *range(0x20000, 0x20100),
    ):
        letter = chr(code)
        encoded = legacy_encodings.encode(letter, charset, lambda _: b"")
        if encoded and letter not in others:
            written += 1
            assert legacy_encodings.decode(encoded, charset) == letter, hex(code)
    assert written > 80
