"""robots.txt: what is read, and how URLs are judged by it (RFC 9309, 2.2)."""

from pathlib import Path

import msgspec
import pytest

from gossamer.frontier.robots.rules import MAX_BYTES, MAX_DELAY, Decision, PathForm, Rules, parse, path_of

HOST = "http://a.test"


def allowed(text: str | bytes, path: str, agent: str = "gossamer", form: PathForm = PathForm.RFC9309) -> bool:
    data = text if isinstance(text, bytes) else text.encode()
    return parse(data, form).decide(agent, HOST + path).allowed


def everyone(*lines: str) -> str:
    return "\n".join(["User-agent: *", *lines])


def test_the_decision_names_the_rule_and_its_line() -> None:
    rules = parse(b"# us\r\nUser-agent: *\r\nDisallow: /a\r\nAllow: /a/b # but this\r\n")
    assert rules.decide("Gossamer", HOST + "/a/x") == Decision(False, "Disallow: /a", 3)
    assert rules.decide("Gossamer", HOST + "/a/b/c") == Decision(True, "Allow: /a/b", 4)
    assert rules.decide("Gossamer", HOST + "/") == Decision(True)


def test_the_longest_rule_wins_and_allow_wins_a_tie() -> None:
    text = everyone("Disallow: /a", "Allow: /a", "Allow: /a/b", "Disallow: /a/b/*", "Disallow: /*.gif$")
    assert allowed(text, "/a/")
    assert allowed(text, "/a/b")
    assert not allowed(text, "/a/b/")
    assert not allowed(text, "/x.gif")
    assert allowed(text, "/x.gif?")
    assert allowed(everyone("Disallow: /ab", "Allow: /*"), "/a/")
    assert allowed(everyone("Disallow: /x*", "Allow: /*y"), "/xy")


def test_groups_of_an_agent_are_merged_and_shadow_everyones() -> None:
    text = "User-agent: Gossamer\nDisallow: /a\nUser-agent: *\nDisallow: /c\nUser-agent: gossamer\nDisallow: /b"
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]
    assert [allowed(text, path, "Other") for path in ("/a", "/b", "/c")] == [True, True, False]


def test_an_agents_own_group_without_rules_allows_everything() -> None:
    assert allowed("User-agent: *\nDisallow: /\nUser-agent: gossamer", "/")


def test_no_other_line_ends_a_group() -> None:
    for line in ("Crawl-delay: 3", "Sitemap: http://a.test/s.xml", "Host: a.test", "", "# only a comment"):
        assert not allowed(f"User-agent: gossamer\n{line}\nUser-agent: other\nDisallow: /", "/x"), line


def test_a_product_token_is_matched_whole_and_in_any_case() -> None:
    assert not allowed("user-agent: GOSSAMER\nDisallow: /", "/")
    assert not allowed("user-agent: gossamer/2.0\nDisallow: /", "/")
    assert allowed("user-agent: goss\nDisallow: /", "/")
    assert allowed("user-agent: gossamer-news\nDisallow: /", "/")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_they_like(end: str) -> None:
    rules = parse(end.join(["", "User-agent: *", "", "Disallow: /x", ""]).encode())
    assert rules.decide("g", HOST + "/x") == Decision(False, "Disallow: /x", 4)


@pytest.mark.parametrize("mark", [b"", b"\xef", b"\xef\xbb", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(mark: bytes) -> None:
    assert not allowed(mark + b"User-agent: *\nDisallow: /", "/")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_behind_its_mark_is_decoded(encoding: str) -> None:
    assert not allowed(("\ufeffUser-agent: *\nDisallow: /ü").encode(encoding), "/%C3%BC")
    assert parse(everyone("Disallow: /").encode(encoding)).decide("g", HOST + "/").allowed


def test_equivalent_escapes_are_equal_in_the_rfcs_form() -> None:
    assert not allowed(everyone("Disallow: /%7Ejoe/"), "/~joe/")
    assert not allowed(everyone("Disallow: /~joe/"), "/%7ejoe/")
    assert not allowed(everyone("Disallow: /a%3cd"), "/a%3Cd")
    assert not allowed(everyone("Disallow: /ü"), "/%c3%bc")
    assert allowed(everyone("Disallow: /a%2Fb"), "/a/b")
    assert not allowed(everyone("Disallow: /a%2Ab$"), "/a*b")
    assert allowed(everyone("Disallow: /a%2Ab$"), "/axb")
    assert not allowed(everyone("Disallow: /a%24"), "/a$")
    assert not allowed(everyone("Disallow: /a$b"), "/a$b")
    assert allowed(everyone("Disallow: /%7Ejoe/"), "/~joe/", form=PathForm.BYTES)


def test_robots_txt_itself_is_always_allowed() -> None:
    assert allowed(everyone("Disallow: /"), "/robots.txt")
    assert not allowed(everyone("Disallow: /"), "/robots.txt?x")
    assert not allowed(everyone("Disallow: /"), "/robots.txt", form=PathForm.BYTES)


def test_misspelt_names_are_read_as_google_reads_them() -> None:
    for name in ("Dissallow", "dissalow", "Disalow", "diasllow", "Disallaw", "Disallowed"):
        assert not allowed(everyone(f"{name}: /x"), "/x"), name
    for name in ("desallow", "dis-allow", "noindex", "not-disallow"):
        assert allowed(everyone(f"{name}: /x"), "/x"), name
    for name in ("useragent", "user agent", "USER-AGENT"):
        assert not allowed(f"{name}: *\ndisallow /x", "/x"), name
    assert allowed("user agent *\ndisallow: /x", "/x"), "three words without a colon are no line"


def test_a_nul_ends_a_line() -> None:
    assert allowed(b"User-agent: *\nDisallow: \0/x", "/x")
    assert not allowed(b"User-agent: *\nDisallow: /x\0y", "/xz")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("10", 10.0),
        ("0.001", 0.001),
        (".5", 0.5),
        ("2.", 2.0),
        ("86400", 86400.0),
        ("1000000", MAX_DELAY),
        ("9" * 5000, MAX_DELAY),
        ("10 # seconds", 10.0),
        ("0", 0.0),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("1e9", None),
        ("", None),
        ("ten", None),
    ],
)
def test_crawl_delay(value: str, seconds: float | None) -> None:
    assert parse(everyone(f"Crawl-delay: {value}").encode()).delay("gossamer") == seconds


def test_the_longest_delay_of_an_agents_groups_counts_and_nobody_elses() -> None:
    text = b"User-agent: a\nCrawl-delay: 2\nAllow: /\nUser-agent: *\nCrawl-delay: 9\nUser-agent: A\nCrawl-delay: 5"
    assert parse(text).delay("a") == 5.0, "a delay is for the agents directly above it, though rules would be for both"
    assert parse(text).delay("b") == 9.0
    text = text.replace(b"9\n", b"9\nAllow: /\n")
    assert parse(text).delay("a") == 5.0
    assert parse(text).delay("b") == 9.0
    assert parse(b"Crawl-delay: 4\n" + text).delay("b") == 9.0


def test_a_crawl_delay_is_for_the_agents_directly_above_it_and_rules_merge() -> None:
    rules = parse(b"User-agent: slurp\nCrawl-delay: 60\nUser-agent: *\nCrawl-delay: 1\nDisallow: /no\n")
    assert (rules.delay("slurp"), rules.delay("gossamer")) == (60.0, 1.0)
    assert not rules.decide("slurp", HOST + "/no").allowed
    assert not rules.decide("gossamer", HOST + "/no").allowed
    rules = parse(b"User-agent: slurp\nUser-agent: *\nCrawl-delay: 60\nDisallow: /no\nCrawl-delay: 3\n")
    assert (rules.delay("slurp"), rules.delay("gossamer")) == (60.0, 60.0), "both stand directly above"
    rules = parse(b"User-agent: slurp\nCrawl-delay: 60\nUser-agent: *\nDisallow: /no\n")
    assert (rules.delay("slurp"), rules.delay("gossamer")) == (60.0, None)


#: Table 3 of Ridgway 2010: what its parser was tested on. Its rows 1 and 2 expect a denial that no rule gives: `/bad/` is no
#: beginning of `/bad`, and `/be` none of `/base`. RFC 9309 (2.2.2) matches by beginnings, so both are allowed.
TABLE_3 = """User-Agent: RDFaSbot
Allow: /bad/but/ok
Disallow: /be
Disallow: /bad/

User-Agent: *
Disallow: /secret/
Allow: /secondary/
"""


@pytest.mark.parametrize(
    ("agent", "path", "is_allowed"),
    [
        ("RDFaSbot", "/bad", True),
        ("RDFaSbot", "/base", True),
        ("RDFaSbot", "/bad/more", False),
        ("RDFaSbot", "/bad/but", False),
        ("RDFaSbot", "/bad/but/ok", True),
        ("RDFaSbot", "/bad/but/ok/and", True),
        ("RDFaSbot", "/bad/but/okeydokey", True),
        ("Googlebot", "/test/", True),
        ("Googlebot", "/secret/code", False),
        ("Googlebot", "/secondary/more-specific", True),
        ("RDFaSbot", "/secret/", True),
    ],
)
def test_the_eleven_verdicts_of_table_3_are_those_of_the_rfc(agent: str, path: str, is_allowed: bool) -> None:
    assert allowed(TABLE_3, path, agent) is is_allowed


def test_usage_preferences_and_sitemaps_are_recorded() -> None:
    text = everyone("Content-Usage: ai=n", "Allow: /", "Sitemap: /s.xml", "sitemap: /s.xml", "User-agent: a")
    rules = parse(("Content-Signal: search=yes\n" + text).encode())
    assert rules.sitemaps == ("/s.xml",)
    assert rules.usage_of("gossamer") == ("Content-Signal: search=yes", "Content-Usage: ai=n")
    assert rules.usage_of("a") == ("Content-Signal: search=yes",)
    assert rules.for_agent("gossamer").usage_of("gossamer") == rules.usage_of("gossamer")


def test_what_is_no_robots_txt_allows_everything_and_says_so() -> None:
    page = parse(b"<!DOCTYPE html><html><body><p>Welcome to our site</p></body></html>")
    assert page.decide("g", HOST + "/x").allowed and not page.readable
    assert parse(b"").readable and parse(b" \r\n# ours: none").readable
    assert parse(b"Sitemap: /x").readable


def test_only_the_first_mebibyte_is_read_and_all_of_that() -> None:
    filler = b"#" * (MAX_BYTES - 100) + b"\n"
    inside = b"User-agent: *\nDisallow: /in\n"
    outside = b"#" * 200 + b"\nDisallow: /out\n"
    rules = parse(filler + inside + outside)
    assert not rules.decide("g", HOST + "/in").allowed
    assert rules.decide("g", HOST + "/out").allowed


def test_a_line_of_a_mebibyte_is_read_whole() -> None:
    line = b"Disallow: /" + b"a" * 2**19 + b"*\n"
    rules = parse(b"User-agent: *\n" + line + b"Disallow: /x")
    assert rules.decide("g", HOST + "/" + "a" * 2**19).line == 2
    assert rules.decide("g", HOST + "/aa").allowed
    assert not rules.decide("g", HOST + "/x").allowed


def test_ten_thousand_stars_are_matched_in_linear_time() -> None:
    stars = everyone(
        "Disallow: /" + "*a" * 10_000 + "$", "Disallow: /" + "*" * 10_000 + "b", "Disallow: /*" + "a*" * 900
    )
    path = "/" + "a" * 2000
    assert parse(stars.encode()).decide("g", HOST + path).line == 4
    assert parse(stars.encode()).decide("g", HOST + path + "b").line == 3


def test_a_value_survives_encoding_and_judges_the_same() -> None:
    rules = parse(everyone("Disallow: /a*b$", "Crawl-delay: 3", "Content-Usage: x").encode()).for_agent("g")
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(rules), type=Rules)
    assert again == rules
    assert again.decide("g", HOST + "/a-b") == rules.decide("g", HOST + "/a-b") == Decision(False, "Disallow: /a*b$", 2)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://a.test/x?y#z", "/x?y"),
        ("http://a.test?y", "/?y"),
        ("http://a.test#/x", "/"),
        ("http://a.test", "/"),
        ("a.test/x", "/x"),
        ("//a.test/x", "/x"),
        ("/x://y", "/x://y"),
        ("", "/"),
        ("http://a.test;p", "/;p"),
    ],
)
def test_the_path_of_whatever_is_given_as_a_url(url: str, path: str) -> None:
    assert path_of(url) == path


def corpus(test_data: Path, name: str) -> Rules:
    path = test_data / "robots-crawler-commons" / name
    if not path.exists():
        pytest.skip("GOSSAMER_TEST_DATA holds no robots-crawler-commons")
    return parse(path.read_bytes())


#: File, agent, path -> allowed; judged by hand from the RFC's text.
COMMONS = [
    ("rfc9309-example-simple-robots.txt", "other", "/x.gif", False),
    ("rfc9309-example-simple-robots.txt", "other", "/publications/", True),
    ("rfc9309-example-simple-robots.txt", "foobot", "/example/page.html", True),
    ("rfc9309-example-simple-robots.txt", "foobot", "/example/page.htm", False),
    ("rfc9309-example-simple-robots.txt", "bazbot", "/example/page.html", False),
    ("rfc9309-example-simple-robots.txt", "quxbot", "/example/", True),
    ("rfc9309-example-longest-match-robots.txt", "foobot", "/example/page/disallowed.gif", False),
    ("rfc9309-example-longest-match-robots.txt", "foobot", "/example/page/x", True),
    ("rfc9309-example-rule-group-merging.txt", "examplebot", "/baz", False),
    ("rfc9309-example-rule-group-merging.txt", "bazbot", "/foo", True),
    ("merge-rules.txt", "wget", "/foo/bar/x", True),
    ("merge-rules.txt", "wget", "/tmp/bar", False),
    ("merge-rules.txt", "other", "/foo/bar", False),
    ("precedence-of-rules.txt", "wget", "/index.html", True),
    ("precedence-of-rules.txt", "wget", "/other", False),
    ("precedence-of-rules.txt", "testy", "/foo/bar", True),
    ("precedence-of-rules.txt", "testy", "/foo/x", False),
    ("crawl-delay-group-merging.txt", "mybot", "/private/", False),
    ("crawl-delay-group-merging.txt", "yourbot", "/login/", False),
    ("crawl-delay-group-merging.txt", "mybot", "/login/", True),
    ("extensions-group-merging.txt", "mybot", "/private/", False),
    ("extensions-group-merging.txt", "other", "/llms.txt", True),
    ("extensions-group-merging.txt", "other", "/x", False),
    ("malformed-path.txt", "g", "/wiki/Wikipedia_talk:Mediation_Committee/x", False),
    ("malformed-path.txt", "g", "/wiki/Wikipedia_talk%3Mediation_Committee/x", False),
    ("robots-with-utf8-bom.txt", "g", "/profile", False),
    ("robots-with-utf16le-bom.txt", "g", "/profile", False),
    ("robots-with-utf16be-bom.txt", "googlebot", "/x/output/print", False),
    ("twitter.com-robots.txt", "g", "/x?y", False),
    ("many-user-agents.txt", "wget", "/", False),
    ("wildcards.txt", "g", "/gp/cart/x", False),
]


@pytest.mark.parametrize(("name", "agent", "path", "expected"), COMMONS)
def test_crawler_commons_files_are_read_as_the_rfc_says(
    test_data: Path, name: str, agent: str, path: str, expected: bool
) -> None:
    assert corpus(test_data, name).decide(agent, HOST + path).allowed == expected


def test_crawler_commons_delays_and_sitemaps(test_data: Path) -> None:
    assert corpus(test_data, "astore.amazon.com-robots.txt").delay("g") == 5.0
    assert corpus(test_data, "dos-line-endings.txt").delay("g") == 1.0
    assert corpus(test_data, "crawl-delay-group-merging.txt").delay("mybot") == 10.0
    assert corpus(test_data, "crawl-delay-group-merging.txt").delay("g") == 30.0
    assert corpus(test_data, "sitemap-robots.txt").sitemaps == (
        "http://domain.com/sitemap.xml",
        "http://domain.com/dir/MixedCased-sitemap.xml",
    )
    assert len(corpus(test_data, "sitemap-robots-dedup.txt").sitemaps) == 1
    assert corpus(test_data, "extensions-group-merging.txt").usage_of("g") == (
        "Content-Signal: search=yes,ai-train=yes,ai-input=yes",
    )
