"""The trie of URLs: what goes beyond the contract of seen sets."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.stores.trie import TrieSeen, parts_of, url_of

HOSTS = [
    "example.org",
    "www.example.org",
    "example.com",
    "a.test:8080",
    "192.0.2.1",
    "192.0.2.1:81",
    "[2001:db8::1]",
    "[::1]:90",
    "org",
]

PATHS = ["", "/", "//", "/a", "/a/", "/a/b", "/a//b", "/a/b/", "/b", "/ab", "/ab?a=/", "/?a=/", "/a/b/a?b"]

URLS = st.builds(
    lambda scheme, host, path: f"{scheme}://{host}{path}",
    st.sampled_from(["http", "https"]),
    st.sampled_from(HOSTS),
    st.sampled_from(PATHS),
)


@settings(deadline=None)
@given(URLS)
def test_a_url_can_be_told_from_its_place(url: str) -> None:
    assert url_of(*parts_of(url)) == url


@settings(deadline=None)
@given(st.lists(st.lists(URLS, max_size=8), max_size=8))
def test_it_knows_what_a_set_knows(batches: list[list[str]]) -> None:
    trie, known = TrieSeen(), set[str]()
    for batch in batches:
        assert trie.unseen(batch) == [url for url in batch if url not in known]
        assert trie.offer(batch) == list(dict.fromkeys(url for url in batch if url not in known))
        known.update(batch)
        assert len(trie) == len(known)
    for host in ["org", "example.org", "192.0.2.1", "test", "[::1]", "[2001:db8::1]"]:
        names = {url: url.split("/")[2] for url in known}
        below = {url for url, name in names.items() if _is_below(name, host)}
        assert set(trie.under(host)) == below and trie.count(host) == len(below)


def _is_below(authority: str, domain: str) -> bool:
    host = authority if authority.endswith("]") else authority.rpartition(":")[0] or authority
    return host == domain or host.endswith(f".{domain}")


def test_a_domain_is_forgotten_whole_and_nothing_else() -> None:
    trie = TrieSeen()
    trie.offer(
        ["http://example.org/", "http://www.example.org/a/b", "https://www.example.org/a", "http://example.com/"]
    )
    assert trie.forget("example.org") == 3
    assert trie.forget("example.org") == trie.forget("never.test") == 0
    assert list(trie.under("com")) == ["http://example.com/"] and len(trie) == 1
    assert trie.offer(["http://example.org/", "http://example.com/"]) == ["http://example.org/"]


def test_a_path_of_a_thousand_parts_is_no_trouble() -> None:
    url = "http://a.test" + "/x" * 1_000
    trie = TrieSeen()
    assert trie.offer([url, url]) == [url]
    assert list(trie.under("a.test")) == [url]
