"""Bounds for the time between two visits: what can be written, what fits, and one clear line for what cannot be read."""

import pytest

from gossamer.engine.errors import SettingError
from gossamer.recrawl.policies import Bounds, IntervalRules

HOUR, DAY = 3_600.0, 86_400.0


def test_the_first_rule_that_fits_holds() -> None:
    rules = IntervalRules(('1h..1d: path("/news/**")', "..6h: host(a.test)", "7d..: extension(pdf)", "1d: query"))
    assert rules.of_page("http://a.test/news/1", "a.test") == Bounds(HOUR, DAY)
    assert rules.of_page("http://a.test/x.pdf", "a.test") == Bounds(None, 6 * HOUR)
    assert rules.of_page("http://b.test/x.pdf", "b.test") == Bounds(7 * DAY, None)
    assert rules.of_page("http://b.test/?x", "b.test") == Bounds(DAY, DAY)
    assert rules.of_page("http://b.test/", "b.test") == Bounds()


def test_the_name_of_a_host_wins_then_the_longest_pattern() -> None:
    rules = IntervalRules(
        min_by_host={"a.test": HOUR, "*.test": DAY}, max_by_host={"*.b.test": 2 * DAY, "*.test": 9 * DAY}
    )
    assert rules.of_host("a.test") == Bounds(HOUR, 9 * DAY)
    assert rules.of_host("www.b.test") == Bounds(DAY, 2 * DAY)
    assert rules.of_host("a.example") == Bounds()


@pytest.mark.parametrize(
    ("bounds", "least", "most"),
    [
        (Bounds(), HOUR, DAY),
        (Bounds(2 * DAY), 2 * DAY, 2 * DAY),
        (Bounds(None, 60.0), 60.0, 60.0),
        (Bounds(60.0, 90.0), 60.0, 90.0),
    ],
)
def test_coarser_bounds_give_way(bounds: Bounds, least: float, most: float) -> None:
    assert bounds.within(HOUR, DAY) == (least, most)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("1h..1d", "write MIN..MAX: EXPRESSION"),
        (": path(/x)", "write MIN..MAX: EXPRESSION"),
        ("..: path(/x)", "write MIN..MAX: EXPRESSION"),
        ("1 fortnight: path(/x)", "fortnight"),
        ("0s..1d: path(/x)", "not a time above 0"),
        ("2d..1d: path(/x)", "longer than the second"),
        ("1h..1d: pth(/x)", "did you mean 'path'"),
        ("1h..1d: depth < 3", "'depth' is not known here"),
        ("1h..1d: title matches x", "not known at gate"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused_with_what_is_wrong(rule: str, said: str) -> None:
    with pytest.raises(SettingError, match=said.replace("(", r"\(")) as caught:
        IntervalRules((rule,))
    assert rule in str(caught.value)


def test_a_time_of_a_host_is_above_0() -> None:
    with pytest.raises(SettingError, match=r"min_by_host.*a\.test"):
        IntervalRules(min_by_host={"a.test": 0.0})
