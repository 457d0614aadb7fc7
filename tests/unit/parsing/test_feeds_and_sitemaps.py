"""Links of feeds, of sitemaps and of plain text."""

import gzip
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from gossamer.documents.document import Document
from gossamer.parsing.contract import Processor
from gossamer.parsing.feeds import FeedLinks, SitemapLinks, SitemapSheet
from gossamer.parsing.other_links import TextLinks
from gossamer.testing.storage import visit
from gossamer.values.instants import ChangeHint
from gossamer.values.media_type import sniff_media_type
from gossamer.values.visit import Found, Item, Visit


def fetched(body: bytes, mime: str, url: str = "http://a.test/x", relation: str = "a href") -> Visit:
    seen = visit(url, body)
    return msgspec.structs.replace(
        seen,
        mime=sniff_media_type(body, mime),
        task=msgspec.structs.replace(seen.task, relation=relation),
        response=msgspec.structs.replace(seen.response, headers=(("content-type", mime),)),
    )


def said(things: Iterable[Found | Item]) -> list[str]:
    return [f"{one.relation}: {one.href}" for one in things if isinstance(one, Found)]


def links(processor: Processor, *about: str | bytes, **more: str) -> list[str]:
    body, mime = about
    assert isinstance(body, bytes) and isinstance(mime, str)
    return said(processor.process(Document(fetched(body, mime, **more))))


RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><link>http://a.test/</link><atom:link rel="self" href="/feed"/>
<item><title>x</title><link><![CDATA[ /one?a&b ]]></link><comments>/one#c</comments><enclosure url="/a.mp3" length="1"/>
<description>&lt;a href="/no"&gt;</description><guid>no</guid></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link rel="next" href="/2"/><entry><link href="/one"/>
<content type="video/mp4" src="/v"/><id>no</id></entry></feed>"""
RDF = b"""<rdf:RDF><channel rdf:about="no"><link>/</link></channel><item><link>/one</link></item></rdf:RDF>"""
JSON = (
    b"""{"home_page_url": "/", "next_url": "/2", "items": [{"id": "1", "url": "/1", "attachments": [{"url": "/a"}]}]}"""
)


@pytest.mark.parametrize(
    ("feed", "mime", "expected"),
    [
        (
            RSS,
            "application/rss+xml",
            ["link: http://a.test/", "link: /feed", "link: /one?a&b", "comments: /one#c", "enclosure: /a.mp3"],
        ),
        (
            RSS,
            "text/xml",
            ["link: http://a.test/", "link: /feed", "link: /one?a&b", "comments: /one#c", "enclosure: /a.mp3"],
        ),
        (ATOM, "application/atom+xml", ["link: /2", "link: /one", "content: /v"]),
        (RDF, "application/xml", ["link: /", "link: /one"]),
        (JSON, "application/feed+json", ["feed: /", "feed: /2", "item: /1", "item: /a"]),
        (b"<html><link>/x</link></html>", "application/xml", []),
    ],
)
def test_feeds(feed: bytes, mime: str, expected: list[str]) -> None:
    assert [line.partition(" ")[2] for line in links(FeedLinks(), feed, mime)] == expected


DATED_RSS = b"""<rss><channel><pubDate>Thu, 04 Mar 2021 05:06:07 GMT</pubDate><link>/</link>
<item><pubDate>Thu, 04 Mar 2021 05:06:07 GMT</pubDate><link>/a</link><enclosure url="/a.mp3"/></item>
<item><guid>http://a.test/b</guid><dc:date>2021-03-04</dc:date></item><item><link>/c</link></item></channel></rss>"""
DATED_ATOM = b"""<feed><updated>2021-03-05T00:00:00Z</updated><entry><published>2021-03-04</published><link href="/a"/>
<updated>2021-03-04T05:06:07Z</updated></entry><entry><link href="/b"/><updated>soon</updated></entry></feed>"""
DATED_JSON = b"""{"items": [{"url": "/a", "external_url": "/x", "date_published": "2021-03-04",
"date_modified": "2021-03-04T05:06:07Z"}]}"""


@pytest.mark.parametrize(
    ("feed", "mime", "dated"),
    [
        (DATED_RSS, "application/rss+xml", {"/a": 1_614_834_367, "http://a.test/b": 1_614_816_000}),
        (DATED_ATOM, "application/atom+xml", {"/a": 1_614_834_367}),
        (DATED_JSON, "application/feed+json", {"/a": 1_614_834_367}),
    ],
)
def test_the_page_of_an_entry_is_found_with_the_latest_time_that_the_feed_says(
    feed: bytes, mime: str, dated: dict[str, float]
) -> None:
    found = [one for one in FeedLinks().process(Document(fetched(feed, mime))) if isinstance(one, Found)]
    assert {one.href: one.said.changed_at for one in found if one.said is not None} == dated


def test_an_entry_with_more_links_than_are_held_loses_none() -> None:
    many = b"".join(b'<link href="/%d"/>' % number for number in range(200))
    feed = b"<feed><entry>" + many + b"<updated>2021-03-04</updated></entry></feed>"
    assert len(links(FeedLinks(), feed, "application/atom+xml")) == 200


def hrefs(feed: str) -> list[str]:
    return [line.partition(": ")[2] for line in links(FeedLinks(), feed.encode(), "application/xml")]


def test_addresses_go_on_from_the_nearest_xml_base_around_them() -> None:
    feed = """<feed xml:base="/blog/"><link href="."/><entry xml:base="2024/"><link href="a"/>
    <content src="b" xml:base="http://b.test/c/"/><link href="d" xml:base="e/"/></entry><entry><link href="f#g"/></entry>
    <logo xml:base="/x/"><link href="h"/></feed>"""
    assert hrefs(feed) == [
        "http://a.test/blog/",
        "http://a.test/blog/2024/a",
        "http://b.test/c/b",
        "http://a.test/blog/2024/e/d",
        "http://a.test/blog/f",
        "http://a.test/x/h",
    ]
    assert hrefs('<rss xml:base="/r/"><item><link>a</link><enclosure url="b"/></item></rss>') == [
        "http://a.test/r/a",
        "http://a.test/r/b",
    ]


SITE = """<!DOCTYPE rss [<!ENTITY site "http://s.test/"><!ENTITY deep '&site;d/'><!-- <!ENTITY no "x"> --><!ENTITY no SYSTEM "file:///x">
<!ENTITY marked "<b>x</b>"><!ENTITY loop "&loop;">]>"""
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("<link>&site;a?b=1&amp;c</link>", ["http://s.test/a?b=1&c"]),
        ("<enclosure url='&deep;a.mp3'/>", ["http://s.test/d/a.mp3"]),
        ("<link><![CDATA[/?a&site;b]]></link>", ["/?a&site;b"]),
        ("<link>/?a&unknown;b</link>", ["/?a&unknown;b"]),
        ("<link>/&no;</link><link>/&marked;</link><link>/&loop;</link><link>/one</link>", ["/one"]),
        ("<link>/&a11;</link><link>/one</link>", ["/one"]),
    ],
)
def test_a_name_that_a_feed_declares_stands_for_its_text_or_yields_no_link(link: str, expected: list[str]) -> None:
    doctype = SITE.replace("]>", f'<!ENTITY a0 "ha">{LAUGHS}]>')
    feed = f"{doctype}<rss><channel><item>{link}</item></channel></rss>".encode()
    assert [each.partition(": ")[2] for each in links(FeedLinks(), feed, "application/rss+xml")] == expected


def test_a_value_of_another_kind_costs_a_json_feed_nothing() -> None:
    feed = b"""{"home_page_url": null, "items": [{"url": null, "date_published": 5, "attachments": null}, {"url": "/1"}]}"""
    assert links(FeedLinks(), feed, "application/feed+json") == ["json item: /1"]


@pytest.mark.parametrize(
    ("feed", "expected"),
    [
        (
            """<rss xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:media="http://search.yahoo.com/mrss/"><channel>
            <item><slash:comments>3</slash:comments><media:link href='/no'/><media:content src='/no'/><link>/1</link>
            <undeclared:link>/no</undeclared:link><comments>/2</comments></item></channel></rss>""",
            ["/1", "/2"],
        ),
        (
            """<rss xmlns:a="http://www.w3.org/2005/Atom"><channel><a:link rel="next" href="/2"/><atom:link href="/3"/>
            <item><link xmlns="http://other.test/">/no</link><link>/1</link></item></channel></rss>""",
            ["/2", "/3", "/1"],
        ),
        (
            """<a:feed xmlns:a="http://www.w3.org/2005/Atom"><link href="/no"/><a:link href="/1"/><a:entry><link href="/no"/>
            <a:link href="/2"/></a:entry></a:feed>""",
            ["/1", "/2"],
        ),
        ("<feed><link href='/1'/><entry><link href='/2'/></entry></feed>", ["/1", "/2"]),
        (
            """<feed xmlns="http://www.w3.org/2005/Atom"><entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">
            <link href="/no"/><a href="/no"/></div></content><link href="/1"/></entry></feed>""",
            ["/1"],
        ),
        (
            """<a:feed xmlns:a="http://www.w3.org/2005/Atom" xmlns="http://www.w3.org/1999/xhtml"><a:entry><link href="/no"/>
            <a:link href="/1"/></a:entry></a:feed>""",
            ["/1"],
        ),
        (
            """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
            <item xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:source url="/no"/><link>/1</link></item></rdf:RDF>""",
            ["/1"],
        ),
        ('<rss><channel xmlns="http://backend.userland.com/RSS2"><item><link>/1</link></item></channel></rss>', ["/1"]),
        ('<rss xmlns="http://my.test/feeds"><item><link>/1</link></item></rss>', ["/1"]),
    ],
)
def test_only_elements_of_a_feeds_own_namespaces_hold_links(feed: str, expected: list[str]) -> None:
    assert hrefs(feed) == expected


def test_times_of_other_namespaces_are_none_of_the_entry() -> None:
    feed = """<rss xmlns:d="http://purl.org/dc/elements/1.1/" xmlns:x="http://other.test/"><item><link>/a</link>
    <x:date>2023-03-04</x:date><x:updated>2023-03-04</x:updated><d:date>2021-03-04</d:date></item></rss>"""
    [found] = FeedLinks().process(Document(fetched(feed.encode(), "application/rss+xml")))
    assert isinstance(found, Found) and found.said == ChangeHint(1_614_816_000.0)


def test_an_address_or_base_that_is_none_is_left_for_its_counter() -> None:
    assert hrefs(
        '<feed xml:base="http://["><link href="a"/><entry xml:base="/b/"><link href="http://["/></entry></feed>'
    ) == [
        "a",
        "http://[",
    ]


def test_an_item_without_a_link_is_found_by_its_permalink() -> None:
    feed = """<rss><channel><link>/</link><item><guid>http://a.test/1</guid></item>
    <item><guid isPermaLink="true"> HTTPS://a.test/2 </guid><title>t</title></item>
    <item><guid isPermaLink="false">http://a.test/no</guid></item><item><guid>tag:no</guid></item><item><guid>17</guid></item>
    <item><guid>http://a.test/no</guid><link>http://a.test/3</link></item><item><guid>http://a.test/4</guid>"""
    assert hrefs(feed) == ["/", "http://a.test/1", "HTTPS://a.test/2", "http://a.test/3", "http://a.test/4"]


def test_bases_of_a_hostile_feed_cost_linear_time() -> None:
    def work(count: int) -> float:
        feed = b"<feed xml:base='/a/'>" + b"<b xml:base='c/'></d>" * count
        feed += b"".join(b"<c xmlns:p%d='n'></d>" % number for number in range(count))
        document = Document(fetched(feed, "application/atom+xml"))
        assert document.markup
        best = float("inf")
        for _ in range(3):
            begun = time.process_time()
            assert list(FeedLinks().process(document)) == []
            best = min(best, time.process_time() - begun)
        return best

    small = max(work(1_000), 0.002)
    assert work(8_000) < 30 * small


def test_a_feed_sent_as_html_is_a_feed() -> None:
    assert links(FeedLinks(), RSS, "text/html")[0] == "rss link: http://a.test/"


@pytest.mark.parametrize("feed", [b'{"items": ' * 100_000, b'{"items": 1}', b"[]", b'{"items": [' * 5_000])
def test_json_that_is_no_feed_is_refused(feed: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        links(FeedLinks(), feed, "application/feed+json")


URLSET = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>
http://a.test/1?a&amp;b</loc><image:image><image:loc>http://a.test/no</image:loc></image:image></url>
<url><loc>http://b.test/off</loc></url><url><loc>/2</loc></url></urlset>"""
INDEX = b"<sitemapindex><sitemap><loc>http://a.test/s.xml</loc></sitemap></sitemapindex>"


def test_a_sitemap_speaks_for_its_own_host() -> None:
    sitemaps = SitemapLinks()
    assert links(sitemaps, URLSET, "application/xml") == ["sitemap loc: http://a.test/1?a&b", "sitemap loc: /2"]
    assert sitemaps.metrics.counters["off_host"] == 1


def test_a_sitemap_says_what_changed_in_any_order_and_what_cannot_be_read_is_nothing() -> None:
    entries = (
        b"<url><loc>/a</loc><lastmod>2021-03-04</lastmod><changefreq>Daily</changefreq></url>"
        b"<url><lastmod>1970-01-02T00:00:00Z</lastmod><loc>/b</loc></url>"
        b"<url><loc>/c</loc><lastmod>soon</lastmod><x:lastmod>2021-03-04</x:lastmod></url><url><loc>/d</loc></url>"
    )
    read = list(SitemapLinks().process(Document(fetched(b"<urlset>" + entries + b"</urlset>", "application/xml"))))
    assert {one.href: one.said for one in read} == {
        "/a": ChangeHint(1_614_816_000.0, "daily"),
        "/b": ChangeHint(86_400.0),
        "/c": None,
        "/d": None,
    }


def test_a_sitemap_may_be_packed_and_may_be_text() -> None:
    plain = b"http://a.test/1\nhttp://a.test/2\n"
    expected = ["sitemap loc: http://a.test/1", "sitemap loc: http://a.test/2"]
    packed = gzip.compress(plain)
    for relation in ("sitemap", "sitemap index"):
        assert links(SitemapLinks(), plain, "text/plain", relation=relation) == expected
        assert links(SitemapLinks(), packed, "application/octet-stream", relation=relation) == expected
    assert links(SitemapLinks(), packed, "application/x-gzip", url="http://a.test/Sitemap.txt.gz") == expected
    assert links(SitemapLinks(), gzip.compress(URLSET), "application/gzip", relation="sitemap")
    assert links(SitemapLinks(), plain, "text/plain") == []
    assert links(SitemapLinks(), gzip.compress(URLSET), "application/xml", url="http://a.test/map.xml.gz")


def test_an_index_of_itself_ends() -> None:
    relations = ["sitemap"]
    while found := links(SitemapLinks(), INDEX, "text/xml", relation=relations[-1]):
        relations.append(found[0].partition(":")[0])
    assert relations == ["sitemap", "sitemap index", "sitemap index index"]


def test_a_sitemap_is_read_up_to_its_limits() -> None:
    many = b"<urlset>" + b"".join(b"<loc>/%d</loc>" % n for n in range(50_001)) + b"</urlset>"
    sitemaps = SitemapLinks()
    assert len(links(sitemaps, many, "application/xml")) == 50_000
    bomb = gzip.compress(b"http://a.test/\n" * 1_000_000)
    short = SitemapLinks(SitemapSheet(max_bytes=150))
    assert len(links(short, bomb, "application/gzip", relation="sitemap")) == 10


def test_sitemaps_of_other_makers(test_data: Path) -> None:
    folder = test_data / "sitemaps-crawler-commons"

    def count(name: str, mime: str, host: str) -> int:
        body = (folder / name).read_bytes()
        return len(links(SitemapLinks(), body, mime, url=f"http://{host}/{name}", relation="sitemap"))

    assert count("sitemap-with-bom.txt", "text/plain", "www.domain.com") == 2
    assert count("sitemap.txt", "text/plain", "www.domain.com") == 2
    assert count("sitemap.txt.gz", "application/gzip", "www.example.com") == 5
    assert count("sitemap.badns.xml", "application/xml", "www.example.com") == 2
    assert count("sitemap.ns.xml", "application/xml", "www.example.com") == 2
    assert count("sitemap.index.xml", "application/xml", "example.com") == 15


def test_urls_in_plain_text() -> None:
    text = "See http://a.test/x, (https://a.test/y_(z)) or <HTTP://a.test/>. Not ftp://a.test/ nor http:// or xhttp://q"
    assert links(TextLinks(), text.encode(), "text/plain") == [
        "text url: http://a.test/x",
        "text url: https://a.test/y_(z)",
        "text url: HTTP://a.test/",
    ]


def test_so_many_urls_of_a_sitemap_are_taken() -> None:
    body = b"<urlset>" + b"".join(b"<url><loc>/%d</loc></url>" % number for number in range(5)) + b"</urlset>"
    document = Document(fetched(body, "application/xml", "http://a.test/sitemap.xml"))
    assert len(list(SitemapLinks(SitemapSheet(max_urls=3)).process(document))) == 3
    assert document.left_out == {"too_many_links": 2}
