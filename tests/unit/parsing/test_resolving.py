"""Found links become URLs."""

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.parsing.links import JoinCache, resolve_links, shipped_parameters
from gossamer.values.url import canonical
from gossamer.values.url_normalization import USUAL, Normaliser
from gossamer.values.visit import Found, Link

PAGE = "http://a.test/dir/page?q"


def resolve(*hrefs: str, base: str = PAGE, limit: int = 100) -> tuple[list[str], dict[str, int]]:
    links, rejected = resolve_links([Found(href) for href in hrefs], base, PAGE, JoinCache(), limit)
    return [link.url for link in links], rejected


def test_each_url_once_in_document_order() -> None:
    urls, rejected = resolve("b", "/a#x", "b#y", "../a", " c ", "//b.test", "?r")
    assert urls == [
        "http://a.test/dir/b",
        "http://a.test/a",
        "http://a.test/dir/c",
        "http://b.test/",
        "http://a.test/dir/page?r",
    ]
    assert rejected == {}


def test_most_links_need_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ada_url, "join_url", None)
    with pytest.raises(TypeError):
        resolve("a b")
    urls, _ = resolve("b", "c/d.html", "../e-f/", "../../g", "/h/i~1", "https://www.b.test/j/k_l.html")
    assert urls == [
        "http://a.test/dir/b",
        "http://a.test/dir/c/d.html",
        "http://a.test/e-f/",
        "http://a.test/g",
        "http://a.test/h/i~1",
        "https://www.b.test/j/k_l.html",
    ]


def test_a_whole_url_is_remembered_for_all_directories() -> None:
    cache = JoinCache()
    found = [Found("https://b.test/x%20y")]
    first, _ = resolve_links(found, "http://a.test/one/", PAGE, cache)
    assert [link.url for link in first] == [cache.absolute["https://b.test/x%20y"]]
    cache.absolute["https://b.test/x%20y"] = "https://b.test/remembered"
    again, _ = resolve_links(found, "http://a.test/two/", PAGE, cache)
    assert [link.url for link in again] == ["https://b.test/remembered"]


def test_a_page_that_leads_to_itself_has_one_such_link() -> None:
    for hrefs in (("#x", "", "page?q", "?q#y", PAGE), ("", "#x"), (PAGE,)):
        assert resolve(*hrefs) == ([PAGE], {})


def test_a_fragment_goes_on_from_the_base() -> None:
    assert resolve("#x", base="http://a.test/other") == (["http://a.test/other"], {})


def test_refusals_are_counted_by_rule() -> None:
    urls, rejected = resolve(
        "http://[",
        "http://[",
        "x" * 3000,
        "mailto:a@b",
        "javascript:void(0)",
        "made-up:x",
        "other-one:y",
        "ftp://a.test/",
    )
    assert urls == ["ftp://a.test/"]
    assert rejected == {
        "not_a_url": 2,
        "too_long": 1,
        "scheme:mailto": 1,
        "scheme:javascript": 1,
        "scheme:other": 2,
    }


def test_links_beyond_the_limit_are_cut_and_counted() -> None:
    urls, rejected = resolve(*(f"p{n}" for n in range(10)), limit=4)
    assert urls == [f"http://a.test/dir/p{n}" for n in range(4)]
    assert rejected == {"too_many_links": 6}


def test_the_limit_counts_urls_that_differ() -> None:
    urls, rejected = resolve(*(f"p{n % 5}#{n}" for n in range(100)), "mailto:x", "p0", limit=4)
    assert urls == [f"http://a.test/dir/p{n}" for n in range(4)]
    assert rejected == {"too_many_links": 1, "scheme:mailto": 1}


def test_one_followed_occurrence_is_enough() -> None:
    found = [Found("x", nofollow=True), Found("y", nofollow=True), Found("x", "area href")]
    links, _ = resolve_links(found, PAGE, PAGE, JoinCache())
    assert links == (
        Link("http://a.test/dir/x", "a href", "", False),
        Link("http://a.test/dir/y", "a href", "", True),
    )


def test_the_cache_stays_within_its_bound_and_changes_nothing() -> None:
    cache = JoinCache(capacity=20)
    for n in range(50):
        base = f"http://a.test/{n % 7}/"
        links, _ = resolve_links([Found(f"p{k}") for k in range(n % 9)], base, PAGE, cache)
        assert [link.url for link in links] == [f"{base}p{k}" for k in range(n % 9)]
        assert len(cache) <= 20


def test_links_are_brought_to_their_normal_form_once_each() -> None:
    normaliser = Normaliser(USUAL, shipped_parameters())
    found = [Found("x?utm_source=a"), Found("x"), Found("%78"), Found("page?q&gclid=1"), Found("y;jsessionid=1")]
    links, rejected = resolve_links(found, PAGE, PAGE, JoinCache(), normalise=normaliser)
    assert [link.url for link in links] == ["http://a.test/dir/x", PAGE, "http://a.test/dir/y"]
    assert rejected == {}


def test_a_redirect_to_another_spelling_of_its_page_is_followed_as_it_is_written() -> None:
    normaliser = Normaliser(USUAL, shipped_parameters())
    for href in ("page;jsessionid=1?q", "page?q&PHPSESSID=2"):
        links, _ = resolve_links([Found(href, "redirect")], PAGE, PAGE, JoinCache(), normalise=normaliser)
        assert [link.url for link in links] == [f"http://a.test/dir/{href}"]
    assert resolve_links([Found(PAGE, "redirect")], PAGE, PAGE, JoinCache(), normalise=normaliser) == ((), {})


def test_a_name_that_no_server_can_have_is_no_link() -> None:
    label = "a" * 63
    urls, rejected = resolve(
        f"http://{label}.test/",
        f"http://a{label}.test/",
        f"http://{'.'.join([label] * 4)}./",
        f"https://{label}.b.test",
    )
    assert urls == [f"http://{label}.test/", f"https://{label}.b.test/"]
    assert rejected == {"bad_host": 2}


def test_a_base_without_a_path_resolves_whole_urls_alone() -> None:
    assert resolve("x", "http://b.test/", base="data:,x") == (["http://b.test/"], {"not_a_url": 1})


def test_a_file_is_linked_to_by_files_alone() -> None:
    found = [Found("file:///etc/passwd"), Found("/etc/passwd")]
    cache = JoinCache()
    links, rejected = resolve_links(found, "http://a.test/", "http://a.test/", cache)
    assert ([link.url for link in links], rejected) == (["http://a.test/etc/passwd"], {"scheme:file": 1})
    links, rejected = resolve_links(found, "file:///srv/", "file:///srv/", cache)
    assert ([link.url for link in links], rejected) == (["file:///etc/passwd"], {})


@pytest.mark.parametrize("href", ["http:", "http:?a", "h\tttp:", "http:\n", "http: ", "http:#x", "HTTP:?a"])
def test_a_scheme_alone_goes_on_from_the_whole_base_each_time(href: str) -> None:
    cache = JoinCache()
    for base in ("http://a.test/?q=1/2", "http://a.test/", "http://a.test/x?r", "http://a.test/?q=1/2"):
        [link], _ = resolve_links([Found(href)], base, PAGE, cache)
        assert link.url == canonical(href, base)


PIECES = ["http:", "HTTPS:", "//", "/", "\\", "?", "#", ".", "..", "x", "b.test", " ", "\t", "\n", "%2e", ":", "@"]
ASKED = st.tuples(st.lists(st.sampled_from(PIECES), max_size=5), st.sampled_from(["", "x", "y", "?q=1/2", "x?r", "d/"]))


@given(st.lists(ASKED, max_size=8))
def test_what_was_remembered_is_what_the_parser_says(asked: list[tuple[list[str], str]]) -> None:
    cache = JoinCache()
    for pieces, place in asked:
        found, base = [Found("".join(pieces))], f"http://a.test/{place}"
        assert resolve_links(found, base, PAGE, cache) == resolve_links(found, base, PAGE, JoinCache())
