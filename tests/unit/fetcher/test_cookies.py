"""Cookies go back to who set them, within bounds (RFC 6265; fault 27)."""

import pytest

from gossamer.fetcher.cookies import IN_ALL, MAX_FIELD, PER_DOMAIN, CookieJar

NOW = 1_700_000_000.0


def jar(url: str, *cookies: str) -> CookieJar:
    made = CookieJar()
    made.receive(url, tuple(("set-cookie", cookie) for cookie in cookies), NOW)
    return made


@pytest.mark.parametrize(
    ("url", "cookie", "asked", "sent"),
    [
        ("http://a.test/", "a=1", "http://a.test/x", "a=1"),
        ("http://a.test/", "a=1", "http://b.a.test/", ""),
        ("http://a.test/", "a=1", "https://a.test:8443/", "a=1"),
        ("http://www.a.com/", "a=1; Domain=a.com", "http://b.a.com/", "a=1"),
        ("http://www.a.com/", "a=1; domain=.A.com", "http://a.com/", "a=1"),
        ("http://www.a.com/", "a=1; Domain=a.com", "http://xa.com/", ""),
        ("http://www.a.com/", "a=1; Domain=b.com", "http://b.com/", ""),
        ("http://www.a.com/", "a=1; Domain=b.www.a.com", "http://b.www.a.com/", ""),
        ("http://a.co.uk/", "a=1; Domain=co.uk", "http://b.co.uk/", ""),
        ("http://a.co.uk/", "a=1; Domain=co.uk", "http://a.co.uk/", ""),
        ("http://a.com/", "a=1; Domain=com", "http://b.com/", ""),
        ("http://a.github.io/", "a=1; Domain=github.io", "http://b.github.io/", ""),
        ("http://github.io/", "a=1; Domain=github.io", "http://github.io/", "a=1"),
        ("http://github.io/", "a=1; Domain=github.io", "http://b.github.io/", ""),
        ("http://127.0.0.1/", "a=1; Domain=0.0.1", "http://127.0.0.1/", ""),
        ("http://127.0.0.1:8/", "a=1", "http://127.0.0.1:9/", "a=1"),
        ("http://[::1]/", "a=1", "http://[::1]/", "a=1"),
        ("http://a.test/d/x", "a=1", "http://a.test/d/y", "a=1"),
        ("http://a.test/d/x", "a=1", "http://a.test/dd", ""),
        ("http://a.test/d/x", "a=1; Path=/e", "http://a.test/e/f", "a=1"),
        ("http://a.test/d/x", "a=1; Path=/e", "http://a.test/ef", ""),
        ("http://a.test/", "a=1; Path=../..", "http://a.test/", "a=1"),
        ("https://a.test/", "a=1; Secure", "http://a.test/", ""),
        ("https://a.test/", "a=1; Secure", "https://a.test/", "a=1"),
        ("http://a.test/", "a=1; Secure", "https://a.test/", ""),
        ("http://a.test/", "__Secure-a=1", "https://a.test/", ""),
        ("https://a.test/", "__Host-a=1; Secure; Path=/", "https://a.test/", "__Host-a=1"),
        ("https://a.test/x/", "__Host-a=1; Secure", "https://a.test/x/", ""),
        ("http://a.test/", "a=1; Max-Age=0", "http://a.test/", ""),
        ("http://a.test/", "a=1; Max-Age=-5", "http://a.test/", ""),
        ("http://a.test/", "a=1; Max-Age=" + "9" * 400, "http://a.test/", "a=1"),
        ("http://a.test/", "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.test/", ""),
        ("http://a.test/", "a=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT", "http://a.test/", "a=1"),
        ("http://a.test/", "a=1; Expires=never", "http://a.test/", "a=1"),
        ("http://a.test/", "a=" + "x" * 5000, "http://a.test/", ""),
        ("http://a.test/", "a=" + "x" * (1 << 20), "http://a.test/", ""),
        ("http://a.test/", "a=1\x01", "http://a.test/", ""),
        ("http://a.test/", "a=1\x7f", "http://a.test/", ""),
        ("http://a.test/", "n=J\xc3\xb6rg", "http://a.test/", "n=J\xc3\xb6rg"),
        ("http://a.test/", "n=Voil\xc3\xa0; Path=/", "http://a.test/", "n=Voil\xc3\xa0"),
        ("http://a.test/", "a[0]=1", "http://a.test/", "a[0]=1"),
        ("http://a.test/", "AMCV_1@AdobeOrg=2", "http://a.test/", "AMCV_1@AdobeOrg=2"),
        ("http://a.test/", "a b=1\t2", "http://a.test/", "a b=1\t2"),
        ("http://a.test/", "a=1; Max-Age=0; Max-Age=x", "http://a.test/", ""),
        ("http://a.test/", "a=1; Expires=Mon, 01 Jan 1990 00:00:00 GMT; Max-Age=9", "http://a.test/", "a=1"),
    ],
)
def test_who_gets_a_cookie(url: str, cookie: str, asked: str, sent: str) -> None:
    assert jar(url, cookie).field(asked, NOW) == sent


def test_a_cookie_ends_when_it_says_and_never_later_than_is_believed() -> None:
    kept = jar("http://a.test/", "a=1; Max-Age=10", "b=2")
    assert kept.field("http://a.test/", NOW + 9) == "a=1; b=2"
    assert kept.field("http://a.test/", NOW + 11) == "b=2"
    assert kept.field("http://a.test/", NOW + 401 * 86_400) == ""


def test_a_new_value_replaces_the_old_and_longer_paths_go_first() -> None:
    kept = jar("http://a.test/d/", "a=1; Path=/", "a=2; Path=/d", "a=3; Path=/")
    assert kept.field("http://a.test/d/x", NOW) == "a=2; a=3"
    assert len(kept) == 2


def test_a_cookie_keeps_its_place_whatever_its_value_becomes() -> None:
    kept = jar("http://w.a.com/", "a=1", "b=2; Domain=a.com", "c=3", "a=4")
    assert kept.field("http://w.a.com/", NOW) == "a=4; b=2; c=3"
    again = CookieJar()
    for domain, cookie in kept.every():
        again.keep(domain, cookie, NOW)
    assert again.field("http://w.a.com/", NOW) == "a=4; b=2; c=3"


def test_a_cookie_bomb_is_cut_to_what_a_host_may_keep_and_a_request_may_hold() -> None:
    kept = CookieJar()
    for start in range(0, 10_000, 100):
        fields = tuple(("set-cookie", f"c{n}={'x' * 1000}") for n in range(start, start + 100))
        kept.receive("http://a.test/", fields, NOW)
    assert len(kept) <= PER_DOMAIN
    assert 0 < len(kept.field("http://a.test/", NOW)) <= MAX_FIELD


def test_all_hosts_together_keep_a_bounded_number() -> None:
    kept = CookieJar()
    for host in range(1000):
        kept.receive(f"http://h{host}.test/", tuple(("set-cookie", f"c{n}=1") for n in range(10)), NOW)
    assert len(kept) <= IN_ALL
    assert kept.field("http://h0.test/", NOW) == ""
    assert kept.field("http://h999.test/", NOW).count("=") == 10
