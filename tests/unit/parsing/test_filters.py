"""What the filters say beyond their contract: rules' names, redirects, settings that cannot be."""

import pytest

from gossamer.engine.errors import SettingError
from gossamer.parsing.filters import PatternFilter, PatternSheet
from gossamer.parsing.scope import SchemeFilter, SchemeSheet, Scope, ScopeFilter, ScopeSheet
from gossamer.values.task import Task
from gossamer.values.visit import Link

SEED = "http://a.test/docs/"
SOURCE = Task(SEED, host="a.test", depth=3)


def verdicts(rule: ScopeFilter | SchemeFilter | PatternFilter, *links: str | Link) -> list[str]:
    return list(rule.judge([Link(link) if isinstance(link, str) else link for link in links], SOURCE))


def test_rules_are_named() -> None:
    assert verdicts(ScopeFilter(ScopeSheet(seeds=(SEED,))), "http://b.test/") == ["scope:host"]
    assert verdicts(SchemeFilter(), "ftp://a.test/", "zzz://a.test/") == ["scheme:ftp", "scheme:other"]
    both = PatternFilter(PatternSheet(include=("x",), exclude=("y",)))
    assert verdicts(both, "http://a.test/xy", "http://a.test/z", "http://a.test/x") == ["exclude", "include", ""]


@pytest.mark.parametrize("scope", ["page", "prefix", "host", "domain", "any"])
def test_a_redirect_obeys_the_scope(scope: Scope) -> None:
    rule = ScopeFilter(ScopeSheet(scope=scope, seeds=(SEED,)))
    inside, outside = Link("https://a.test/docs/x", "redirect"), Link("http://b.test/", "redirect")
    assert verdicts(rule, inside) == [""]
    assert verdicts(rule, outside) == ["" if scope == "any" else f"scope:{scope}"]


def test_a_changed_sheet_draws_the_scope_anew() -> None:
    rule = ScopeFilter(ScopeSheet(seeds=(SEED,)))
    before, rule.sheet = rule.sheet, ScopeSheet(seeds=("http://b.test/",))
    rule.changed(before)
    assert verdicts(rule, SEED, "http://b.test/") == ["scope:host", ""]


def test_a_host_that_is_an_address_or_a_suffix_is_its_own_domain() -> None:
    rule = ScopeFilter(ScopeSheet(scope="domain", seeds=("http://10.0.0.1/", "http://[::1]/", "http://localhost/")))
    assert verdicts(rule, "http://10.0.0.1:8/", "http://[::1]:8/", "http://localhost/") == ["", "", ""]
    assert verdicts(rule, "http://10.0.0.2/", "http://0.1/", "http://x.localhost/")[0] == "scope:domain"


def test_schemes_are_whole_words() -> None:
    rule = SchemeFilter(SchemeSheet(schemes=("HTTP", "gopher")))
    assert verdicts(rule, "http://a.test/", "https://a.test/", "gopher://a.test/") == ["", "scheme:https", ""]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"exclude": ("(",)}, r"exclude: '\(' is not an RE2 pattern"),
        ({"include": (r"(?=x)",)}, "include: .* is not an RE2 pattern"),
        ({"include": ("ok", r"(a)\1")}, "include: .* is not an RE2 pattern"),
        ({"include": ("x" * 2000,)}, "at most 1024 bytes"),
        ({"include": ("a)|(b",)}, "is not an RE2 pattern"),
    ],
)
def test_a_bad_pattern_is_refused_in_one_line(values: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(SettingError, match=message) as raised:
        PatternFilter(PatternSheet(**values))
    assert "\n" not in str(raised.value)


def test_a_bad_seed_is_refused_in_one_line() -> None:
    with pytest.raises(SettingError, match=r"setting 'seeds': 'example.org' is not a URL"):
        ScopeFilter(ScopeSheet(seeds=("example.org",)))


def test_a_catastrophic_pattern_costs_nothing() -> None:
    rule = PatternFilter(PatternSheet(exclude=(r"^(a+)+$",)))
    assert verdicts(rule, "a" * 2000 + "!") == [""]


def test_what_a_page_shows_may_come_from_anywhere_one_hop_far() -> None:
    rule = ScopeFilter(ScopeSheet(seeds=(SEED,), requisites=True))
    shown, linked = Link("http://cdn.test/x.png", "img src"), Link("http://b.test/", "a href")
    assert verdicts(rule, shown, linked) == ["", "scope:host"]
    assert verdicts(ScopeFilter(ScopeSheet(seeds=(SEED,))), shown) == ["scope:host"]
    from_requisite = Task("http://cdn.test/frame.svg", host="cdn.test", relation="img src")
    assert list(rule.judge([shown, linked], from_requisite)) == ["scope:host", "scope:host"]
