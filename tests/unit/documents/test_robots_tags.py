"""Meta robots and X-Robots-Tag: what a page says to which robot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.documents.statements import MAX_DIRECTIVE, MAX_DIRECTIVES, concerns, directives


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], set()),
        (["noindex"], {"noindex"}),
        (["NoIndex , NOFOLLOW"], {"noindex", "nofollow"}),
        (["none"], {"none", "noindex", "nofollow"}),
        (["noarchive", "nofollow"], {"noarchive", "nofollow"}),
        (["otherbot: noindex, nofollow"], set()),
        (["Gossamer: noindex, noarchive"], {"noindex", "noarchive"}),
        (["otherbot: noindex, gossamer: nofollow"], {"nofollow"}),
        (["nosnippet, otherbot: noindex"], {"nosnippet"}),
        (["max-snippet:20, noindex"], {"max-snippet: 20", "noindex"}),
        (
            ["unavailable_after: Sat, 01 Jan 2028 00:00:00 GMT, noindex"],
            {"unavailable_after: sat, 01 jan 2028 00:00:00 gmt", "noindex"},
        ),
        (
            ["otherbot: unavailable_after: 25 Jun 2030 15:00:00 PST", "unavailable_after: 2030-06-25"],
            {"unavailable_after: 2030-06-25"},
        ),
        (["gossamer: unavailable_after: 2030-06-25"], {"unavailable_after: 2030-06-25"}),
        ([",, ,"], set()),
        (["noindex; nofollow"], {"noindex", "nofollow"}),
        (["'noindex', \"nofollow\". ..."], {"noindex", "nofollow"}),
        (["NOINDEX;NOFOLLOW;"], {"noindex", "nofollow"}),
        (["noindex nofollow"], {"noindex", "nofollow"}),
        (["noindex\tnofollow\nnoarchive|nosnippet/none"], {"noindex", "nofollow", "noarchive", "nosnippet", "none"}),
        (
            ["noindex，nofollow、noarchive+nosnippet&nocache!"],
            {"noindex", "nofollow", "noarchive", "nosnippet", "nocache"},
        ),
        (["nofollow: true; NoIndex:1"], {"nofollow", "true", "noindex", "1"}),
        (["otherbot: noindex nofollow; gossamer: noarchive nosnippet"], {"noarchive", "nosnippet"}),
        (["noindex max-snippet: 20 nofollow"], {"noindex", "max-snippet: 20", "nofollow"}),
        (
            ["nofollow unavailable_after: 25 Jun 2030 15:00:00 PST; noindex"],
            {"nofollow", "unavailable_after: 25 jun 2030 15:00:00 pst", "noindex"},
        ),
    ],
)
def test_directives_for_everyone_and_for_this_agent_are_joined(values: list[str], expected: set[str]) -> None:
    assert directives(values, "gossamer") == expected


def test_a_meta_tag_speaks_to_everyone_or_to_the_agent_it_names() -> None:
    assert concerns("ROBOTS", "Gossamer") and concerns(" gossamer ", "Gossamer")
    assert not concerns("googlebot", "Gossamer")


@given(st.lists(st.text(max_size=80), max_size=8), st.text(max_size=10))
def test_whatever_a_page_says_is_read_and_bounded(values: list[str], agent: str) -> None:
    found = directives(values, agent)
    assert len(found) <= MAX_DIRECTIVES + 2
    assert all(len(directive) <= MAX_DIRECTIVE and directive for directive in found)


def test_a_page_cannot_say_more_than_is_kept() -> None:
    found = directives([",".join(f"x{n}" for n in range(100_000)), "noindex, " + "y" * 100_000], "gossamer")
    assert len(found) <= MAX_DIRECTIVES
    assert max(map(len, found)) <= MAX_DIRECTIVE
