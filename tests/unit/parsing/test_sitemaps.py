"""Sitemaps as servers really send them: damaged, joined, of the wrong type, and on other hosts."""

import bz2
import gzip
import random
import zlib
from collections.abc import Callable

import msgspec
import pytest

from gossamer.documents.charset import media_type_of
from gossamer.documents.document import Document
from gossamer.parsing.feeds import SitemapLinks, SitemapSheet
from gossamer.parsing.findings import Findings, read
from gossamer.parsing.scope import ScopeFilter, ScopeSheet
from gossamer.testing.storage import visit
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task, redirect_of
from gossamer.values.url import host_of
from gossamer.values.visit import Link, Response

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def urlset(*urls: str) -> bytes:
    listed = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="{NAMESPACE}">{listed}</urlset>'.encode()


def index(*urls: str) -> bytes:
    listed = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex>{listed}</sitemapindex>".encode()


def findings(
    body: bytes,
    claim: str = "application/xml",
    *,
    url: str = "http://a.test/s",
    relation: str = "sitemap",
    source: str = "http://a.test/robots.txt",
    sheet: SitemapSheet | None = None,
) -> Findings:
    seen = visit(url, body)
    response = msgspec.structs.replace(seen.response, headers=(("content-type", claim),))
    task = Task(url, host_of(url), source=source, relation=relation)
    seen = msgspec.structs.replace(seen, task=task, response=response, mime=media_type_of(response, relation))
    return read(Document(seen), [SitemapLinks(sheet)], "plain")


def hrefs(made: Findings) -> list[str]:
    return [one.href for one in made.found]


MANY = [f"http://a.test/{n}/{random.Random(n).random()}" for n in range(2_000)]  # does not pack well


def test_a_wrong_check_sum_costs_no_url_and_is_told() -> None:
    packed = bytearray(gzip.compress(urlset(*MANY)))
    packed[-6] ^= 1
    made = findings(bytes(packed), "application/x-gzip")
    assert hrefs(made) == MANY
    assert made.trouble.startswith("sitemap: its gzip is damaged (")


def test_of_a_gzip_that_is_broken_in_its_middle_all_before_counts() -> None:
    packed = gzip.compress(urlset(*MANY))
    for broken in (packed[: len(packed) // 2], packed[:20_000] + b"\xff" * 2_000 + packed[22_000:]):
        made = findings(broken, "application/x-gzip")
        assert 500 < len(made.found) < 2_000
        assert hrefs(made)[:500] == MANY[:500]
        assert "its gzip is damaged (" in made.trouble


@pytest.mark.parametrize("claimed", ["application/xml", "text/html"])
def test_what_a_program_has_warned_of_before_a_sitemap_loses_no_entry(claimed: str) -> None:
    made = findings(b"<br />\n<b>Warning</b>: x in <b>/a.php</b><br />\n" + urlset(*MANY), claimed)
    assert hrefs(made) == MANY
    assert made.trouble == "sitemap: other elements stand before its root"


@pytest.mark.parametrize("written", [zlib.compress, bz2.compress])
def test_a_sitemap_that_cannot_be_read_is_told(written: Callable[[bytes], bytes]) -> None:
    made = findings(written(urlset(*MANY)))
    assert (hrefs(made), made.trouble) == ([], "sitemap: it is neither XML nor a list of URLs")
    assert findings(b"").trouble == ""
    assert findings(written(urlset(*MANY)), relation="link").trouble == ""


def test_a_sitemap_that_ends_too_early_is_told() -> None:
    whole = urlset(*MANY)
    made = findings(whole[:-200])
    assert hrefs(made) == MANY[: len(hrefs(made))] and len(hrefs(made)) > len(MANY) - 5
    assert made.trouble == "sitemap: it ends too early"
    assert findings(whole).trouble == findings(index(*MANY[:3])).trouble == ""
    assert findings(f"<s:urlset xmlns:s='{NAMESPACE}'></s:urlset>".encode()).trouble == ""
    assert findings(b"<urlset />").trouble == ""


def test_half_a_url_at_a_broken_end_is_none() -> None:
    lines = "\n".join(MANY).encode()
    for whole in (urlset(*MANY), lines):
        for packed in (gzip.compress(whole[:-120])[:-9], gzip.compress(whole)[:-2_000]):
            found = hrefs(findings(packed, "application/gzip"))
            assert found == MANY[: len(found)] and len(found) > len(MANY) - 400
    assert hrefs(findings(lines, "text/plain")) == MANY


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-16-le", "utf-16", "utf-32-be", "utf-32-le", "utf-32"])
@pytest.mark.parametrize(
    "claim", ["text/xml", "text/xml; charset=utf-8", "text/xml; charset=utf-16", "text/html", "text/plain"]
)
def test_utf_16_and_32_are_known_without_a_mark(encoding: str, claim: str) -> None:
    behind_blanks = [b"\n " + urlset(*MANY[:3])] * ("16" in encoding)
    for whole in (urlset(*MANY[:3]), *behind_blanks, "\n".join(MANY[:3]).encode()):
        made = findings(whole.decode().encode(encoding), claim)
        assert (hrefs(made), made.trouble) == (MANY[:3], "")
    xml = visit("http://a.test/s", urlset("/1").decode().encode(encoding)).response
    assert media_type_of(xml, "sitemap") in ("application/xml", "text/plain"), (
        "a type that the processor of sitemaps is asked for"
    )


def test_markup_in_ascii_is_no_utf_16_whatever_its_server_says() -> None:
    assert hrefs(findings(urlset("/1"), "text/xml; charset=utf-16")) == ["/1"]


@pytest.mark.parametrize("between", [b"", b"\0" * 512])
def test_the_members_of_a_joined_gzip_are_read_as_one(between: bytes) -> None:
    whole = urlset(*MANY)
    joined = between.join(gzip.compress(whole[start : start + 10_000]) for start in range(0, len(whole), 10_000))
    made = findings(joined + between, "application/gzip")
    assert (hrefs(made), made.trouble) == (MANY, "")


def test_members_of_a_gzip_behind_other_bytes_are_told_to_be_lost() -> None:
    first, second = gzip.compress(urlset("/1")), gzip.compress(urlset("/2"))
    made = findings(first + b"-- part 2 --" + second, "application/gzip")
    assert (hrefs(made), "other bytes follow" in made.trouble) == (["/1"], True)


def test_what_is_called_gzip_may_be_plain_and_what_is_plain_may_be_packed_twice() -> None:
    plain, once = urlset("/1"), gzip.compress(urlset("/1"))
    for body in (plain, once, gzip.compress(once)):
        for claim in ("application/gzip", "application/x-gzip", "text/xml", "text/html", "image/png", ""):
            made = findings(body, claim)
            assert (hrefs(made), made.trouble) == (["/1"], "")


@pytest.mark.parametrize(
    "claim", ["text/html", "text/html; charset=UTF-8", "text/plain", "application/json", "text/css"]
)
@pytest.mark.parametrize("relation", ["sitemap", "sitemap index", "redirect sitemap", "sitemap elsewhere"])
def test_a_sitemap_that_was_named_is_read_whatever_its_type(claim: str, relation: str) -> None:
    mark = b"\xef\xbb\xbf"
    comment = b"<!-- generated --><?xml-stylesheet href='x'?>\n"
    prefixed = b'<sm:urlset xmlns:sm="%s"><sm:url><sm:loc>/1</sm:loc></sm:url></sm:urlset>' % NAMESPACE.encode()
    for body in (urlset("/1"), mark + urlset("/1"), urlset("/1")[21:], comment + urlset("/1")[21:], prefixed):
        assert hrefs(findings(body, claim, relation=relation)) == ["/1"], body
    assert hrefs(findings(mark + b"http://a.test/1\r\n", claim, relation=relation)) == ["http://a.test/1"]


def test_a_page_that_was_named_as_a_sitemap_stays_a_page() -> None:
    response = visit("http://a.test/", b"<!doctype html><title>Site map</title><a href=/1>1</a>").response
    assert media_type_of(response, "sitemap") == "text/html"


@pytest.mark.parametrize("root", ["urlset", "sitemapindex"])
def test_a_sitemap_is_no_page_though_its_server_says_so(root: str) -> None:
    for start in (b"", b'<?xml version="1.0"?>\n<!-- by hand -->\n', b'<?xml version="1.0"?><!DOCTYPE x>'):
        assert sniff_media_type(start + f"<{root} xmlns='x'><url>".encode(), "text/html") == "application/xml"
    assert sniff_media_type(f"<p>An &lt;{root}> is no page: <{root} >".encode(), "text/html") == "text/html"
    assert sniff_media_type(f'<?xml version="1.0"?><html><{root} ></html>'.encode(), "text/html") == "text/html"


def test_lines_of_a_text_that_are_no_urls_cost_no_other() -> None:
    text = b"# our pages\nHTTP://a.test/1\n\n  http://a.test/2  \nwww.a.test/3\nhttp://a.test/4"
    made = findings(text, "text/plain", url="http://a.test/urls.txt")
    assert hrefs(made) == ["HTTP://a.test/1", "http://a.test/2", "http://a.test/4"]


def test_limits_of_a_sitemap_are_told() -> None:
    few = findings(urlset(*MANY), sheet=SitemapSheet(max_urls=3))
    assert (hrefs(few), few.rejected) == (MANY[:3], {"too_many_links": 1_997})
    short = findings(urlset(*MANY), sheet=SitemapSheet(max_bytes=1_000))
    assert 5 < len(short.found) < 50
    assert short.trouble == "sitemap: only its first 1,000 bytes are read"
    packed = findings(gzip.compress(urlset(*MANY)), sheet=SitemapSheet(max_bytes=1_000))
    assert hrefs(packed) == hrefs(short)
    assert packed.trouble == "sitemap: more than 1000 bytes; 1,000 unpacked bytes are read"
    bomb = findings(gzip.compress(b"http://a.test/\n" * 10_000_000), "text/plain")
    assert 0 < len(bomb.found) <= 50_000
    assert "more than 200 times its size" in bomb.trouble


def test_a_sitemap_on_another_host_speaks_for_the_site_that_named_it() -> None:
    urls = ("http://a.test/1", "http://b.test/2", "http://c.test/3")
    there = {"url": "http://b.test/a.xml", "relation": "sitemap elsewhere"}
    assert hrefs(findings(urlset(*urls), **there)) == ["http://a.test/1", "http://b.test/2"]
    listed = findings(index("http://b.test/i.xml"), **there)
    assert [(one.href, one.relation) for one in listed.found] == [("http://b.test/i.xml", "sitemap index elsewhere")]
    deeper = findings(
        urlset(*urls), relation="sitemap index elsewhere", url="http://b.test/i.xml", source="http://b.test/a.xml"
    )
    assert hrefs(deeper) == list(urls), "it is the scope that says which of them are the crawl's"


def test_a_sitemap_that_has_moved_to_another_host_speaks_for_the_one_that_it_left() -> None:
    moved = findings(
        urlset("http://a.test/1", "http://c.test/3"),
        url="http://cdn.test/s.xml",
        relation=redirect_of("sitemap"),
        source="http://a.test/s.xml",
    )
    assert hrefs(moved) == ["http://a.test/1"]
    assert hrefs(findings(urlset("http://b.test/"), url="http://b.test/sitemap.xml", source="")) == ["http://b.test/"]


def test_a_sitemap_elsewhere_that_moves_to_a_third_host_loses_no_url_of_the_site_that_named_it() -> None:
    urls = ["http://a.test/1", "http://c.test/2"]
    for relation, source in (
        ("redirect sitemap elsewhere", "http://b.test/a.xml"),
        ("redirect sitemap", "http://a.test/s"),
    ):
        made = findings(urlset(*urls), url="http://c.test/s.xml", relation=relation, source=source)
        assert hrefs(made) == urls  # the scope keeps out what is not of the crawl


def test_sitemaps_elsewhere_pass_the_scope_and_pages_there_do_not() -> None:
    scope = ScopeFilter(ScopeSheet(seeds=("http://a.test/",)))
    source = Task("http://b.test/a.xml", "b.test", source="http://a.test/robots.txt", relation="sitemap elsewhere")
    links = [
        Link("http://a.test/1", "sitemap loc"),
        Link("http://b.test/1", "sitemap loc"),
        Link("http://b.test/i.xml", "sitemap index elsewhere"),
        Link("http://c.test/i.xml", "sitemap index elsewhere"),
        Link("http://c.test/a.xml", "redirect sitemap elsewhere"),
    ]
    assert scope.judge(links, source) == ["", "scope:host", "", "scope:host", ""]
    page = Task("http://a.test/", "a.test")
    assert scope.judge(links[1:], page) == ["scope:host"] * 4


def test_bytes_that_are_no_gzip_at_all_are_told() -> None:
    made = findings(b"\x1f\x8b\x08junk", "application/gzip")
    assert made.found == ()
    assert made.trouble.startswith("sitemap: its gzip is damaged (")
    raw = zlib.compress(urlset("/1"))
    assert findings(raw, "application/gzip").found == ()


@pytest.mark.parametrize("flags", [0, 8])
@pytest.mark.parametrize("claim", ["application/x-gzip", "application/octet-stream", "text/xml", ""])
def test_a_named_sitemap_in_gzip_is_one_with_the_name_of_its_file_or_without(claim: str, flags: int) -> None:
    packed = gzip.compress(urlset("http://a.test/one"))
    packed = packed[:3] + bytes([flags]) + packed[4:10] + b"sitemap.xml\0" * bool(flags) + packed[10:]
    response = Response(Outcome.OK, headers=(("Content-Type", claim),), body=packed)
    assert media_type_of(response, "sitemap") == "application/x-gzip"
