"""Whole crawls in which it matters what the documents are: languages, near-duplicates, requisites, robots tags, sitemaps."""

from pathlib import Path

import pytest

from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.documents.document import MAX_DEPTH
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.testing.fakeweb import FakePage, FakeWeb

ENGLISH = "The committee has decided that the old bridge over the river will be replaced by a new one next year, because it is no "
ENGLISH += "longer safe for the many people who walk across it every day on their way to work and back home again."
GERMAN = "Der Ausschuss hat beschlossen, dass die alte Brücke über den Fluss im nächsten Jahr durch eine neue ersetzt wird, weil "
GERMAN += (
    "sie für die vielen Menschen, die sie jeden Tag auf dem Weg zur Arbeit überqueren, nicht mehr sicher genug ist."
)


def crawl(web: FakeWeb, folder: Path, **options: object) -> Summary:
    given = {"delay": 0, "output": str(folder / "crawl"), "per_host": 4, **options}
    return run(Crawl([web.url(web.root)], build(all_options(), given), tables=False))


def page(text: str, *links: str) -> str:
    return f"<html><p>{text}</p>" + "".join(f'<a href="{link}">x</a>' for link in links)


def test_a_language_crawl_keeps_one_language_and_follows_no_other(tmp_path: Path) -> None:
    pages = {
        "/": page(ENGLISH, "/en", "/de"),
        "/en": page(ENGLISH + "!", "/en2"),
        "/de": page(GERMAN, "/behind"),
        "/en2": page(ENGLISH + "?"),
        "/behind": page(ENGLISH),
    }
    with FakeWeb(pages) as web:
        summary = crawl(web, tmp_path, language=["en"])
        assert set(web.targets()) == {"/", "/en", "/de", "/en2"}
    assert (summary.pages, summary.outcomes) == (3, {"ok": 4})


@pytest.mark.parametrize("skip", [False, True])
def test_near_duplicates_are_reported_or_dropped(tmp_path: Path, skip: bool) -> None:
    long = " ".join(f"{ENGLISH} Number {n} of many." for n in range(60))
    pages = {
        "/": page("start", "/one"),
        "/one": page(long, "/two"),
        "/two": page(long.replace("Number 30", "Number thirty"), "/three"),
        "/three": page(GERMAN),
    }
    with FakeWeb(pages) as web:
        summary = crawl(web, tmp_path, near_duplicates="skip" if skip else "report")
        assert ("/three" in web.targets()) is not skip
    assert summary.pages == (2 if skip else 4)
    assert summary.cuts == ({"near-duplicate": 1} if skip else {})


def test_disowned_links_are_not_followed_unless_somebody_says_so(tmp_path: Path) -> None:
    pages = {
        "/": '<a rel="nofollow" href="/one">x</a><a href="/two">x</a>',
        "/one": "one",
        "/two": '<meta name="robots" content="nofollow"><a href="/three">x</a>',
        "/three": FakePage('<a href="/four">x</a>', headers=(("X-Robots-Tag", "otherbot: nofollow"),)),
        "/four": "four",
    }
    with FakeWeb(pages) as web:
        crawl(web, tmp_path)
        assert sorted(web.targets()) == ["/", "/two"]
    with FakeWeb(pages) as web:
        crawl(web, tmp_path / "more", follow_nofollow=True)
        assert sorted(web.targets()) == ["/", "/four", "/one", "/three", "/two"]


def test_page_requisites_are_fetched_off_scope_and_beyond_the_depth(tmp_path: Path) -> None:
    pages = {
        "http://a.test/": '<link rel=stylesheet href="http://cdn.test/s.css"><img src="/p.png"><a href="http://b.test/">x</a>',
        "http://cdn.test/s.css": FakePage("@import 'more.css'; p { background: url(/bg.png) }", type="text/css"),
        "http://cdn.test/more.css": FakePage("@import 'last.css'; q { background: url(q.png) }", type="text/css"),
        "http://cdn.test/last.css": FakePage("", type="text/css"),
        "http://cdn.test/bg.png": FakePage(b"x", type="image/png"),
        "http://cdn.test/q.png": FakePage(b"y", type="image/png"),
        "http://a.test/p.png": FakePage(b"z", type="image/png"),
        "http://b.test/": "elsewhere",
    }
    with FakeWeb(pages, root="http://a.test/") as web:
        crawl(web, tmp_path, page_requisites=True, depth=0, resolve=[web.resolve], allow_network=["127.0.0.0/8"])
        assert len(web.requests) == len(pages) - 2
    with FakeWeb(pages, root="http://a.test/") as web:
        crawl(web, tmp_path / "without", resolve=[web.resolve], allow_network=["127.0.0.0/8"])
        assert len(web.requests) == 1


def moved(target: str) -> FakePage:
    return FakePage("", status=302, headers=(("Location", target),))


def test_one_page_is_fetched_whole_also_where_its_parts_have_moved(tmp_path: Path) -> None:
    """As `wget -p` does: parts that moved come along, wherever they went; what moved pages to elsewhere does not."""
    pages = {
        "http://a.test/": '<link rel=stylesheet href="http://cdn.test/s"><img src="/p.png"><a href="/other">x</a><iframe src="http://b.test/">',
        "http://a.test/p.png": moved("http://img.test/p.png"),
        "http://img.test/p.png": moved("http://img2.test/p.png"),
        "http://img2.test/p.png": FakePage(b"z", type="image/png"),
        "http://cdn.test/s": moved("http://cdn2.test/s.css"),
        "http://cdn2.test/s.css": FakePage(
            "@import 'http://cdn.test/more'; p { background: url(/bg.png) }", type="text/css"
        ),
        "http://cdn2.test/bg.png": FakePage(b"x", type="image/png"),
        "http://cdn.test/more": moved("http://cdn2.test/more.css"),
        "http://cdn2.test/more.css": FakePage("@import 'http://cdn2.test/last.css';", type="text/css"),
        "http://cdn2.test/last.css": FakePage("", type="text/css"),
        "http://a.test/other": moved("http://b.test/"),
        "http://b.test/": "elsewhere",
    }
    given = {"page_requisites": True, "allow_network": ["127.0.0.0/8"]}
    left = {"page": 3, "host": 2}
    for scope, missing in left.items():
        with FakeWeb(pages, root="http://a.test/") as web:
            crawl(web, tmp_path / scope, **given, scope=scope, resolve=[web.resolve])
            fetched = {f"http://{one.host}{one.target}" for one in web.requests}
        assert "http://img2.test/p.png" in fetched and "http://cdn2.test/bg.png" in fetched
        assert len(pages) - len(fetched & set(pages)) == missing, sorted(set(pages) - fetched)
        assert not fetched & {"http://b.test/", "http://cdn2.test/last.css"}


def test_feeds_and_sitemaps_lead_on(tmp_path: Path) -> None:
    feed = "<rss><channel><item><link>/one</link></item></channel></rss>"
    sitemap = "<urlset><url><loc>/two</loc></url></urlset>"
    pages = {
        "/": '<link rel="alternate" href="/feed"><a href="/map.xml">x</a>',
        "/feed": FakePage(feed, type="application/rss+xml"),
        "/map.xml": FakePage(sitemap, type="application/xml"),
        "/one": "one",
        "/two": "two",
    }
    with FakeWeb(pages) as web:
        crawl(web, tmp_path)
        assert sorted(web.targets()) == sorted(pages)


def test_a_sitemap_on_another_host_that_robots_txt_names_leads_to_pages_of_the_site(tmp_path: Path) -> None:
    def listed(root: str, *urls: str) -> FakePage:
        return FakePage(
            f"<{root}>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + f"</{root}>", type="text/html"
        )

    pages = {
        "http://a.test/": "a page that links to nothing",
        "http://a.test/robots.txt": FakePage("Sitemap: http://b.test/of-a", type="text/plain"),
        "http://b.test/of-a": FakePage(b"", status=301, headers=(("Location", "http://b.test/moved"),)),
        "http://b.test/moved": listed("sitemapindex", "http://b.test/part", "http://c.test/part"),
        "http://b.test/part": listed("urlset", "http://a.test/one", "http://b.test/no", "http://c.test/no"),
        "http://a.test/one": "one",
        "http://b.test/no": "a page of another site",
        "http://c.test/no": "another",
        "http://c.test/part": listed("urlset", "http://a.test/two"),
    }
    with FakeWeb(pages, root="http://a.test/") as web:
        summary = crawl(web, tmp_path, sitemaps=True, resolve=[web.resolve], allow_network=["127.0.0.0/8"])
        fetched = {f"http://{one.host}{one.target}" for one in web.requests}
    assert fetched & set(pages) == {
        *(f"http://a.test/{name}" for name in ("", "robots.txt", "one")),
        *(f"http://b.test/{name}" for name in ("of-a", "moved", "part")),
    }
    assert summary.state == "finished"


def test_pages_without_a_type_are_pages_and_plain_text_is_not(tmp_path: Path) -> None:
    body = '<!doctype html><a href="/plain">x</a>'
    pages = {"/": FakePage(body, type=""), "/plain": FakePage(body.replace("plain", "no"), type="text/plain")}
    with FakeWeb(pages) as web:
        summary = crawl(web, tmp_path)
        assert sorted(web.targets()) == ["/", "/plain"]
    assert (summary.pages, summary.fetched) == (1, 2)


def test_links_of_pages_that_hang_parsers_are_followed_all_the_same(tmp_path: Path) -> None:
    hostile = "<a href='/first'>x</a>" + "<div>" * 3 * MAX_DEPTH + "<a href='/last'>x</a>"
    with FakeWeb({"/": hostile, "/first": "f", "/last": "l"}) as web:
        summary = crawl(web, tmp_path)
        assert sorted(web.targets()) == ["/", "/first", "/last"]
    assert summary.pages == 3


def test_the_tables_say_what_a_full_crawl_knows_of_a_page(tmp_path: Path) -> None:
    body = f'<html lang=en><link rel=canonical href="/real"><p>{ENGLISH}</p><a href="/x">the <b>anchor</b></a>'
    with FakeWeb({"/": body, "/x": "x"}) as web:
        crawl(web, tmp_path, analysis="full")
        base = web.url("/")
    with Database(tmp_path / "crawl") as tables:
        asked = f"SELECT canonical_url, language, simhash IS NOT NULL FROM pages WHERE url = '{base}'"
        assert list(tables.ask(asked)) == [(f"{base}real", "en", True)]
