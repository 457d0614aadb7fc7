"""Reading a document costs what its size says: the worst that we know, each compared with itself at a fourth of its size."""

import random
from collections.abc import Callable

import pytest
from tests.costs import costs_its_size

from gossamer.documents.document import Document
from gossamer.parsing.feeds import FeedLinks, SitemapLinks
from gossamer.parsing.findings import read
from gossamer.parsing.html import HtmlLinks, HtmlLinksSheet
from gossamer.parsing.other_links import CssLinks, CssLinksSheet
from gossamer.rdf.page import StructuredDataProcessor
from gossamer.values.media_type import XHTML
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

Shape = Callable[[int], bytes]

_HTML = (HtmlLinks(HtmlLinksSheet(anchors=True, requisites=True)), StructuredDataProcessor())
PROCESSORS = {
    "text/html": _HTML,
    XHTML: _HTML,
    "application/xml": (FeedLinks(), SitemapLinks()),
    "text/css": (CssLinks(CssLinksSheet(requisites=True)),),
    "text/plain": (SitemapLinks(),),
}

_ROOT = b"<html xmlns='http://www.w3.org/1999/xhtml'>"


def repeated(piece: bytes, before: bytes = b"", after: bytes = b"") -> Shape:
    return lambda size: before + piece * (size // len(piece)) + after


def numbered(piece: bytes, before: bytes = b"") -> Shape:
    return lambda size: before + b"".join(piece.replace(b"%", b"%d" % i) for i in range(size // (len(piece) + 3)))


def noise(before: bytes = b"") -> Shape:
    return lambda size: before + random.Random(1).randbytes(size)


#: What is sent as which type.
SHAPES: dict[str, tuple[str, Shape]] = {
    "links": ("text/html", numbered(b"<a href=x%>y</a>")),
    "links without an end": ("text/html", repeated(b"<a href=x>y")),
    "links with references": ("text/html", repeated(b"<a href='&amp;&amp;'>&nbsp;</a>")),
    "elements without an end": ("text/html", repeated(b"<div>text ")),
    "tags that never come": ("text/html", repeated(b"<")),
    "quotes without an end": ("text/html", repeated(b'<a href="')),
    "comments without an end": ("text/html", repeated(b"<!--")),
    "comments": ("text/html", repeated(b"<!---->")),
    "scripts": ("text/html", repeated(b"<script></script>")),
    "scripts without an end": ("text/html", repeated(b"<script>")),
    "attributes": ("text/html", numbered(b"a%=b ", b"<p ")),
    "references": ("text/html", repeated(b"&amp;&#65;&nosuch ")),
    "meta": ("text/html", repeated(b"<meta name=a content=b>")),
    "link": ("text/html", repeated(b"<link rel=next href=a>")),
    "base": ("text/html", repeated(b"<base href=a>")),
    "roots": ("text/html", repeated(b"<html lang=a>")),
    "title": ("text/html", repeated(b"&amp;", b"<title>")),
    "srcset": ("text/html", repeated(b"a (", b"<img srcset='", b"'>")),
    "styles": ("text/html", repeated(b"<p style='a:url(x)'>")),
    "pictures behind elements": ("text/html", repeated(b"<p data-bg='url(/x)'>")),
    "candidates of a picture": ("text/html", repeated(b"/a 1x,", b"<p data-bgset='", b"'>")),
    "frames in attributes": (
        "text/html",
        repeated(b"<iframe srcdoc=\"&lt;iframe srcdoc='&amp;lt;a href=x>'>\"></iframe>"),
    ),
    "tables": ("text/html", repeated(b"<table><tr><td>x")),
    "one word": ("text/html", repeated(b"a")),
    "words": ("text/html", numbered(b"<p>word% and another one, too.")),
    "Chinese": ("text/html", repeated("漢字".encode())),
    "space": ("text/html", repeated(b" \n")),
    "declarations": ("text/html", repeated(b"<meta charset=x>")),
    "noise": ("text/html", noise()),
    **{
        f"noise in {name}": ("text/html", noise(b"<meta charset=%s>" % name.encode()))
        for name in ("shift_jis", "euc-jp", "iso-2022-jp", "gb18030", "big5", "euc-kr", "utf-16le", "windows-1251")
    },
    "escapes of ISO-2022-JP": ("text/html", repeated(b"\x1b$B!!\x1b(B", b"<meta charset=iso-2022-jp>")),
    "first halves of Shift_JIS": ("text/html", repeated(b"\x81 ", b"<meta charset=shift_jis>")),
    "XHTML": (XHTML, repeated(b"<p>x</p>", _ROOT, b"</html>")),
    "XHTML without an end": (XHTML, repeated(b"<p>", _ROOT)),
    "names in XHTML": (XHTML, numbered(b"<a%:x xmlns:a%='http://www.w3.org/1999/xhtml'>", _ROOT)),
    "entries": ("application/xml", repeated(b"<item><link>/a</link><pubDate>x</pubDate></item>", b"<rss>")),
    "entries without an end": ("application/xml", repeated(b"<item>", b"<rss>")),
    "bases": ("application/xml", repeated(b"<entry xml:base='a/'>", b"<feed>")),
    "links of an entry": ("application/xml", repeated(b"<link href='a'/>", b"<feed><entry>")),
    "times of an entry": ("application/xml", repeated(b"<updated>2020-01-01T00:00:00Z</updated>", b"<feed><entry>")),
    "names of a feed": ("application/xml", numbered(b"<a%:x xmlns:a%='u'>", b"<rss>")),
    "names of a root": ("application/xml", numbered(b"xmlns:a%='http://x/' ", b"<rss ")),
    "sitemap": ("application/xml", numbered(b"<url><loc>http://a.test/%</loc></url>", b"<urlset>")),
    "sitemap of others": ("application/xml", numbered(b"<url><loc>http://a%.test/</loc></url>", b"<urlset>")),
    "index": ("application/xml", numbered(b"<sitemap><loc>http://a.test/%</loc></sitemap>", b"<sitemapindex>")),
    "sections": ("application/xml", repeated(b"<![CDATA[", b"<rss>")),
    "instructions": ("application/xml", repeated(b"<?", b"<rss>")),
    "types": ("application/xml", repeated(b"<!DOCTYPE [")),
    "names of texts": ("application/xml", repeated(b"<link>&a;</link>", b"<!DOCTYPE a[<!ENTITY a '/a'>]><rss>")),
    "texts of names": (
        "application/xml",
        numbered(b"<!ENTITY a% '&a;'>", b"<!DOCTYPE a["),
    ),
    "lines": ("text/plain", numbered(b"http://a.test/%\n")),
    "sheets": ("text/css", repeated(b"@import '")),
    "addresses": ("text/css", repeated(b"url(x ")),
    "sets of pictures": ("text/css", repeated(b"image-set('a' (")),
    "comments of a sheet": ("text/css", repeated(b"/*")),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_reading_costs_what_the_size_of_the_document_says(kind: str) -> None:
    mime, shape = SHAPES[kind]

    def reading(size: int) -> Callable[[], object]:
        body = shape(size)
        charset = "" if b"charset" in body[:40] or body[:1] > b"~" else "; charset=utf-8"
        response = Response(Outcome.OK, headers=(("content-type", f"{mime}{charset}"),), body=body)
        document = Document(Visit(Task("http://a.test/sitemap", "a.test"), response, mime=mime))
        return lambda: read(document, PROCESSORS[mime], "full", language=True)

    assert costs_its_size(reading, 50_000)
