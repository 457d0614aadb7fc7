"""Canonical URLs and resolved links agree with the WHATWG parser, whatever the input."""

import json
from pathlib import Path
from typing import Any

import ada_url
from hypothesis import given
from hypothesis import strategies as st

from gossamer.parsing.links import JoinCache, resolve_links, shipped_parameters
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import MAX_URL_BYTES, canonical
from gossamer.values.url_normalization import STEPS, Normaliser, Step
from gossamer.values.visit import Found

#: What URLs are made of, and what breaks them.
PIECES = st.one_of(
    st.sampled_from(
        ("http://", "https:", "//", "/", "a", "b.test", ":8080", ":80", "?q=", "#f", "..", ".", "%2e", "[::1]")
    ),
    st.sampled_from(
        ("%41", "%7e", ";jsessionid=1", "/(S(a1))", "&", "utm_a=1", "sid=a1b2c3d4", "/index.html", "www.", "b.test.")
    ),
    st.sampled_from(
        (" ", "\t", "\n", "@", "ü", "\\", "mailto:", "javascript:x", "\x00", "%", "u:p", "ftp://", "file:", "\ud800")
    ),
)
HREFS = st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=30))
#: What a page can hold: its text is well-formed by the time that anybody reads it.
PAGE_HREFS = HREFS.map(lambda text: text.encode("utf-8", "replace").decode())
BASES = st.sampled_from(
    ["http://a.test/", "http://a.test/d/e/f?q/r", "https://b.test:8443/x#y", "ftp://a.test/d/", "http://a.test/d/e/"]
).map(canonical)
CACHE = JoinCache(capacity=500)


@given(text=HREFS, base=BASES)
def test_the_canonical_form_is_a_fixed_point(text: str, base: str) -> None:
    try:
        url = canonical(text, base)
    except UnreadableUrl:
        return
    assert canonical(url) == url
    assert canonical(url, "http://elsewhere.test/") == url
    assert "#" not in url
    assert url.isascii()
    assert url.isprintable()
    assert len(url) <= MAX_URL_BYTES


@given(text=HREFS, base=BASES, steps=st.sets(st.sampled_from(STEPS)))
def test_a_normal_form_is_canonical_and_its_own_normal_form(text: str, base: str, steps: set[Step]) -> None:
    normaliser = Normaliser(steps, shipped_parameters())
    try:
        url = normaliser(canonical(text, base))
    except UnreadableUrl:
        return
    assert normaliser(url) == url
    assert canonical(url) == url


@given(hrefs=st.lists(PAGE_HREFS, max_size=10), base=BASES, page=BASES)
def test_links_agree_with_the_parser(hrefs: list[str], base: str, page: str) -> None:
    links, rejected = resolve_links([Found(href) for href in hrefs], base, page, CACHE)
    expected: list[str] = []
    refused = 0
    for href in hrefs:
        try:
            url = canonical(ada_url.join_url(base, href))
        except (ValueError, UnicodeError):
            refused += 1
            continue
        if "://" not in url[:64] or (url.startswith("file:") and not base.startswith("file:")):
            refused += 1
        elif url not in expected:
            expected.append(url)
    assert [link.url for link in links] == expected
    assert sum(rejected.values()) == refused
    assert len(CACHE) <= 500


#: What links that the parser would leave alone are made of, and what looks like it.
PLAIN_PIECES = st.sampled_from(
    [
        *(
            "../",
            "..",
            "./",
            ".",
            "/",
            "//",
            "a",
            "Z9_",
            "-",
            "~x",
            "x.html",
            ".hid",
            "%2e",
            "%41",
            ":",
            "c|",
            "?q",
            "?",
        ),
        *(
            "http://",
            "https://",
            "b.test/",
            "a-b.c9.org/",
            "A.test/",
            "b.test",
            "xn--",
            "xn--bcher-kva.test/",
            "-.test/",
        ),
        *(
            "1.2.3.4/",
            "0x7f.1/",
            "b.0x1/",
            "b.1/",
            "a..b/",
            "b_c.test/",
            "b.test:80/",
            "u@b.test/",
            "a" * 64,
            "b." * 130,
        ),
    ]
)


@given(pieces=st.lists(PLAIN_PIECES, min_size=1, max_size=7), base=BASES)
def test_a_link_that_needs_no_parser_is_what_the_parser_makes_of_it(pieces: list[str], base: str) -> None:
    href = "".join(pieces)
    links, rejected = resolve_links([Found(href)], base, "http://page.test/", JoinCache())
    try:
        url = canonical(href, base)
    except UnreadableUrl:
        assert (links, sum(rejected.values())) == ((), 1)
        return
    if url.startswith(("http://", "https://")) and rejected != {"bad_host": 1}:
        assert [link.url for link in links] == [url]


def test_the_standards_own_cases(test_data: Path) -> None:
    cases = json.loads((test_data / "url-wpt" / "urltestdata.json").read_text(encoding="utf-8"))
    wrong = [case for case in cases if isinstance(case, dict) and not _agrees(case)]
    assert len(cases) > 500
    assert wrong == []


def _agrees(case: dict[str, Any]) -> bool:
    base = case.get("base")
    try:
        url = canonical(case["input"], base)
    except UnreadableUrl:
        return bool(case.get("failure"))
    if case.get("failure"):
        return False
    expected = case["href"].partition("#")[0]
    if case["username"] or case["password"]:
        expected = expected.replace(f"{expected.partition('://')[2].partition('@')[0]}@", "", 1)
    return bool(url == expected)
