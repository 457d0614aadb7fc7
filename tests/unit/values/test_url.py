"""Canonical URLs under attack (faults 32-36): what is judged is what is fetched, and no text costs much."""

import pytest

from gossamer.values.addresses import place_of
from gossamer.values.errors import UnreadableUrl, UrlTooLong
from gossamer.values.url import (
    MAX_TEXT,
    are_plain,
    canonical,
    endpoint_of,
    host_of,
    is_machine,
    path_of,
    place_of_site,
    plain_host,
    site_of,
)


@pytest.mark.parametrize(
    ("text", "url", "host"),
    [
        ("http://user:pass@a.test/", "http://a.test/", "a.test"),
        ("http://a.test\\@evil.test/", "http://a.test/@evil.test/", "a.test"),
        ("http://evil.test#@a.test/", "http://evil.test/", "evil.test"),
        ("http://a.test:80@evil.test:81/", "http://evil.test:81/", "evil.test"),
        ("http://a.te\tst\n/\r", "http://a.test/", "a.test"),
        ("  http:a.test", "http://a.test/", "a.test"),
        ("http:///a.test/", "http://a.test/", "a.test"),
        ("http://a.test@/b@c", None, None),
        ("http://a%2etest/", "http://a.test/", "a.test"),
        ("http://a.test%00.evil.test/", None, None),
        ("http://0x7f.1/", "http://127.0.0.1/", "127.0.0.1"),
        ("http://2130706433/", "http://127.0.0.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "http://127.0.0.1/", "127.0.0.1"),
        ("http://127.1./", "http://127.0.0.1/", "127.0.0.1"),
        ("http://１２７.０.０.１/", "http://127.0.0.1/", "127.0.0.1"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "::ffff:7f00:1"),
        ("http://256.256.256.256/", None, None),
        ("http://Bücher.test/", "http://xn--bcher-kva.test/", "xn--bcher-kva.test"),
        ("http://pаypal.test/", "http://xn--pypal-4ve.test/", "xn--pypal-4ve.test"),
        ("http://💩.test/", "http://xn--ls8h.test/", "xn--ls8h.test"),
        ("http://a\u200db.test/", None, None),
        ("http://אa.test/", None, None),
        ("http://xn--\u00fc.test/", None, None),
    ],
)
def test_what_is_judged_is_what_is_fetched(text: str, url: str | None, host: str | None) -> None:
    if url is None:
        with pytest.raises(UnreadableUrl):
            canonical(text)
    else:
        assert canonical(text) == url
        assert host_of(url) == endpoint_of(url)[0] == host


@pytest.mark.parametrize(
    "text",
    [
        "http://" + "ü" * 1_000_000,
        "http://a.test/" + "ü" * 1_000_000,
        "http://" + "a@" * 500_000 + "b/",
        "http://a.test/" + "a/" * 300_000 + "../" * 300_000,
        "http://a.test/" + "\t" * 1_000_000,
    ],
    ids=["host", "path", "users", "dots", "blanks"],
)
def test_a_link_of_a_megabyte_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(UrlTooLong):
        canonical(text)
    assert len(text) > MAX_TEXT, "otherwise the parser has had 30 ms of work, and fault 36 allows 10"


@pytest.mark.parametrize(
    "url", ["echo:x", "echo:x/y?z", "echo:http://victim.test/x", "echo:?u=ftp://victim.test:21/", "e:/a//b://c"]
)
def test_a_url_without_an_authority_goes_by_its_scheme_whatever_it_holds(url: str) -> None:
    scheme, _, rest = url.partition(":")
    assert (host_of(url), endpoint_of(url), site_of(url), path_of(url)) == (f"{scheme}:", ("", 0), "", rest)
    assert not is_machine(host_of(url))


@pytest.mark.parametrize(
    "url", ["http://a.test/", "http://[::]/", "http://[fe80::]:8/", "http://[::1]/", "gopher://127.0.0.1/"]
)
def test_no_name_of_a_host_is_taken_for_a_scheme(url: str) -> None:
    assert is_machine(host_of(url))


def test_what_looks_like_a_user_in_a_url_without_an_authority_is_left() -> None:
    assert canonical("echo:http://who@a.test/") == "echo:http://who@a.test/"


def test_files_of_this_machine_are_on_no_host() -> None:
    assert host_of("file:///x") == ""
    assert not is_machine("")


@pytest.mark.parametrize(
    ("url", "is_plain"),
    [
        ("http://a.test/", True),
        ("https://a-1.b.test/x/y.html?a=1&b=%20", True),
        ("http://127.0.0.1/", True),
        ("http://localhost:8080/", True),
        ("http://a.test:60999/x", True),
        ("http://a.test/a,b/(c);d=1!/@e'?q[]=1", False),
        ("http://a.test/a,b/(c);d=1!/@e'?q=1:2,@/x?", True),
        ("http://a.test", False),
        ("http://a.test:80/", False),
        ("http://a.test:70000/", False),
        ("http://a.test:080/", False),
        ("http://a.test/a|b^c", False),
        ("http://A.test/", False),
        ("http://a.test/../b", False),
        ("http://a.test/%2e%2E/b", False),
        ("http://xn--bcher-kva.test/", False),
        ("http://a.test/#b", False),
        ("http://0x7f.1/", False),
        ("http://a.test/ b", False),
        (f"http://a.test/{'x' * 2048}", False),
    ],
)
def test_many_urls_are_taken_as_they_are_only_where_the_parser_would_leave_each(url: str, is_plain: bool) -> None:
    assert are_plain((url, "http://b.test/")) == is_plain
    assert not is_plain or canonical(url) == url


@pytest.mark.parametrize(
    "url", ["http://a.test/", "https://a.test/x", "http://a.test:8080/", "https://[::1]/", "ftp://[::1]:3/"]
)
def test_a_site_names_the_place_that_is_connected_to(url: str) -> None:
    host, port = endpoint_of(url)
    assert place_of_site(site_of(url)) == place_of(host, port)
    assert place_of_site("file://") == place_of_site("") == ""


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("http://a.test:8080/x?y=z", True),
        ("http://192.0.2.1/", True),
        ("http://a.test:80/", False),
        ("https://a.test:443/", False),
        ("http://a.test/./x", False),
        ("http://a.test/%2e/x", False),
        ("http://a.test", False),
        ("http://A.test/", False),
        ("http://a.test/x\nhttp://b.test/", False),
        ("http://a.test/\n", False),
        ("http://xn--9ca.test/", False),
        ("http://a.test/\u00e9", False),
    ],
)
def test_many_urls_at_once_are_judged_as_each_alone(url: str, plain: bool) -> None:
    many = [f"http://h{number}.test/p" for number in range(2_000)]
    assert are_plain(tuple(many))
    for place in (0, 1_000, 2_000):
        assert are_plain((*many[:place], url, *many[place:])) is plain is bool(plain_host(url))
