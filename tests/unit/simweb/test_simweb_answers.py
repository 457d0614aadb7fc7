"""What the web answers, without any network."""

import re
import zlib

import pytest

from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.hosts import SimHost
from gossamer.simweb.page import PageKind, path_of
from gossamer.simweb.site import Conditions, SiteAnswer

SPEC = WebSpec(seed=3, pages=4000, hosts=60, trap_share=0.6)
NOTHING = Conditions()


@pytest.fixture
def web() -> SimWeb:
    return SimWeb(SPEC)


def ask(web: SimWeb, host: SimHost, target: str, when: Conditions = NOTHING, after: int = 0) -> SiteAnswer:
    door = web.door(host.name)
    assert door is not None
    return web.answer(door, target, when, web.spec.epoch + after)


def first(web: SimWeb, kind: PageKind) -> tuple[SimHost, int]:
    """Find a page of a kind."""
    for rank in range(len(web.hosts)):
        host = web.hosts.host(rank)
        for index in range(host.size):
            if web.pages.kind(host, index) is kind:
                return host, index
    raise AssertionError(f"no {kind!r} in this web")


def header(answer: SiteAnswer, name: str) -> str:
    found = re.search(rf"^{name}: (.*)\r$", answer.head.decode(), re.MULTILINE)
    return found[1] if found else ""


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    def page(seed: int) -> bytes:
        web = SimWeb(WebSpec(seed=seed))
        return ask(web, web.hosts.host(0), "/s2/123.html").body

    assert page(1) == page(1)
    assert page(1) != page(2)


def test_an_exact_duplicate_has_the_bytes_of_its_original(web: SimWeb) -> None:
    host, index = first(web, PageKind.DUPLICATE)
    original = web.pages.original(host, index)
    assert ask(web, host, path_of(index)).body == ask(web, host, path_of(original)).body


def test_a_near_duplicate_differs_from_its_original_in_a_few_words(web: SimWeb) -> None:
    host, index = first(web, PageKind.NEAR_DUPLICATE)
    here = set(ask(web, host, path_of(index)).body.split(b"\n"))
    there = set(ask(web, host, path_of(web.pages.original(host, index))).body.split(b"\n"))
    assert here != there
    assert len(here & there) > 0.6 * len(here)


def test_a_mirror_shows_the_pages_of_its_source(web: SimWeb) -> None:
    mirror = web.hosts.host(SPEC.hosts)
    source = web.hosts.host(mirror.source)
    for index in range(source.size):
        if web.pages.kind(source, index) is PageKind.PLAIN:
            assert ask(web, mirror, path_of(index)).body == ask(web, source, path_of(index)).body


def test_a_redirect_leads_to_a_page_of_its_host(web: SimWeb) -> None:
    host, index = first(web, PageKind.REDIRECT)
    answer = ask(web, host, path_of(index))
    assert answer.status in (301, 302, 303, 307, 308)
    assert header(answer, "Location") == f"http://{host.name}{path_of(web.pages.original(host, index))}"


def test_a_flaky_page_heals(web: SimWeb) -> None:
    host, index = first(web, PageKind.FLAKY)
    assert [ask(web, host, path_of(index)).status for _ in range(3)] == [503, 200, 200]


def test_a_copy_that_is_current_is_not_sent_again(web: SimWeb) -> None:
    host = web.hosts.host(0)
    fresh = ask(web, host, "/")
    by_tag = Conditions(if_none_match=header(fresh, "ETag"))
    by_date = Conditions(if_modified_since=header(fresh, "Last-Modified"))
    assert ask(web, host, "/", by_tag).status == 304
    assert ask(web, host, "/", by_date).status == 304
    assert ask(web, host, "/", by_tag).body == b""


def test_a_page_that_has_changed_is_sent_again_and_differs(web: SimWeb) -> None:
    host = web.hosts.host(0)
    old = ask(web, host, "/")
    tag = Conditions(if_none_match=header(old, "ETag"))
    later = ask(web, host, "/", tag, after=86_400 * 5000)
    assert later.status == 200
    assert later.body != old.body


@pytest.mark.parametrize("trap", ["calendar", "loop", "session", "facets", "soft404"])
def test_a_trap_never_runs_out_of_new_urls(web: SimWeb, trap: str) -> None:
    host = next(h for h in map(web.hosts.host, range(len(web.hosts))) if h.trap == trap)
    home = ask(web, host, "/").body.decode("latin-1")
    target = re.findall(r'href="([^"]+)" rel="more"', home)[0]
    seen = {target}
    for _ in range(50):
        links = re.findall(r'href="([^"]+)"', ask(web, host, target).body.decode())
        target = next(link for link in reversed(links) if link not in seen).replace("&amp;", "&")
        seen.add(target)
    assert len(seen) == 51


def test_sitemaps_name_pages_that_answer(web: SimWeb) -> None:
    host = web.hosts.host(0)
    listed = re.findall(rf"<loc>http://{host.name}([^<]+)</loc>", ask(web, host, "/sitemap.xml").body.decode())
    assert len(listed) > 100
    assert {ask(web, host, path).status for path in listed} <= {200, 503}


def test_an_image_is_a_png_whose_checksums_hold(web: SimWeb) -> None:
    body = ask(web, web.hosts.host(0), "/img/7.png").body
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(body[29:33]) == zlib.crc32(body[12:29])


def test_links_keep_to_the_way_in_which_the_crawler_names_hosts(web: SimWeb) -> None:
    host = web.hosts.host(0)
    named = web.door(f"{host.name}:8080")
    numbered = web.door("127.0.0.1:8080")
    assert named is not None
    assert numbered is not None
    page = web.answer(named, "/", NOTHING, web.spec.epoch).body.decode()
    assert re.search(r'href="http://[a-z0-9.]+\.sim:8080/', page)
    page = web.answer(numbered, "/", NOTHING, web.spec.epoch).body.decode()
    assert re.search(r'href="http://127\.128\.[0-9.]+:8080/', page)
    assert ".sim" not in page


def test_compression_is_offered_only_where_it_is_asked_for() -> None:
    web = SimWeb(WebSpec(compression=True))
    host = web.hosts.host(0)
    plain = ask(web, host, "/")
    packed = ask(web, host, "/", Conditions(gzip=True))
    assert header(plain, "Content-Encoding") == ""
    assert zlib.decompress(packed.body, 31) == plain.body
    assert header(plain, "ETag") != header(packed, "ETag")


def test_every_language_can_be_read_in_the_charset_that_its_host_names() -> None:
    web = SimWeb(WebSpec(pages=20_000, hosts=2000))
    charsets = set()
    for rank in range(len(web.hosts)):
        host = web.hosts.host(rank)
        charsets.add(host.charset)
        body = ask(web, host, "/").body
        assert f'lang="{host.language}"' in body.decode(host.charset)
    assert len(charsets) > 3
