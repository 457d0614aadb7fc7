"""Properties of the robots.txt reader and matcher, over any bytes and over files that look like one."""

import re

from hypothesis import given
from hypothesis import strategies as st

from gossamer.frontier.robots.rules import Decision, Matcher, PathForm, comparable_path, comparable_pattern, parse

NAMES = st.sampled_from(
    ["User-agent", "Allow", "Disallow", "Crawl-delay", "Sitemap", "Content-Usage", "dissalow", "x", "", "useragent"]
)
PATTERNS = st.text(alphabet="/ab*$%7e", max_size=12)
PATHS = st.text(alphabet="/ab*$%7eE~", max_size=14).map(lambda text: f"/{text}")
AGENTS = st.sampled_from(["gossamer", "Other", "*", "", "Gossamer/2"])
LINES = st.tuples(NAMES, st.sampled_from([": ", ":", " ", "\t", " # "]), st.one_of(AGENTS, PATTERNS)).map("".join)
FILES = st.lists(LINES, max_size=14).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda end: end.join(lines).encode())
)
RULES = st.lists(st.tuples(st.booleans(), PATTERNS), max_size=8)


def slowly(rules: list[tuple[bool, str]], path: str) -> bool:
    """The RFC's two sentences about precedence, with the engine of `re` in place of ours."""

    def fits(pattern: str) -> bool:
        body, end = (pattern[:-1], r"\Z") if pattern.endswith("$") else (pattern, "")
        return bool(re.match(".*".join(map(re.escape, body.split("*"))) + end, path, re.DOTALL))

    longest = {
        allow: max((len(p) for a, p in rules if a is allow and p and fits(p)), default=0) for allow in (True, False)
    }
    return longest[True] >= longest[False]


@given(st.binary(max_size=400), st.text(max_size=40), st.text(max_size=12), st.sampled_from(PathForm))
def test_no_bytes_and_no_url_are_too_much(data: bytes, url: str, agent: str, form: PathForm) -> None:
    rules = parse(data, form)
    assert isinstance(rules.decide(agent, url), Decision)
    assert rules.for_agent(agent).decide(agent, url) == rules.decide(agent, url)


@given(RULES, PATHS)
def test_the_fast_matcher_says_what_a_slow_one_says(rules: list[tuple[bool, str]], path: str) -> None:
    number = Matcher(rules).find(path)
    assert (number < 0 or rules[number][0]) == slowly(rules, path)


@given(FILES, PATHS)
def test_a_group_for_somebody_else_changes_nothing(data: bytes, path: str) -> None:
    url = f"http://a.test{path}"
    # Rules before the first User-agent line are nobody's; behind a stranger's they are the stranger's.
    more = b"User-agent: Stranger\nDisallow: /\nCrawl-delay: 7\n\n" + data
    assert parse(more).decide("gossamer", url).allowed == parse(data).decide("gossamer", url).allowed
    assert parse(more).delay("gossamer") == parse(data).delay("gossamer")


@given(FILES, PATHS)
def test_what_is_kept_for_an_agent_decides_as_the_file(data: bytes, path: str) -> None:
    rules, url = parse(data), f"http://a.test{path}"
    kept = rules.for_agent("Gossamer")
    assert kept.decide("Gossamer", url) == rules.decide("Gossamer", url)
    assert kept.delay("Gossamer") == rules.delay("Gossamer")
    assert kept.usage_of("Gossamer") == rules.usage_of("Gossamer")
    assert kept.for_agent("Gossamer").decide("Gossamer", url) == rules.decide("Gossamer", url)


@given(FILES, PATHS)
def test_line_ends_and_comments_do_not_matter(data: bytes, path: str) -> None:
    url = f"http://a.test{path}"
    lines = data.splitlines()
    remade = b"\r\n".join(line + b" # said " for line in lines)
    assert parse(remade).decide("gossamer", url).allowed == parse(data).decide("gossamer", url).allowed


@given(PATHS)
def test_a_comparable_form_is_its_own_comparable_form(path: str) -> None:
    assert comparable_path(comparable_path(path)) == comparable_path(path)
    assert comparable_pattern(comparable_pattern(path)) == comparable_pattern(path)
