"""The registered domain of a host, from the rules of its top-level domain alone."""

import pytest
from publicsuffixlist import PublicSuffixList

from gossamer.values.errors import UsageError
from gossamer.values.hosts import below_suffix, domain_rule, registered_domain

#: Hosts of each kind of rule, and of none.
HOSTS = [
    "www.bbc.co.uk",
    "bbc.co.uk",
    "co.uk",
    "uk",
    "example.com",
    "a.b.example.com",
    "com",
    "localhost",
    "a.localhost",
    "b.unknown",
    "a.b.unknown",
    "unknown",
    "city.kobe.jp",
    "www.city.kobe.jp",
    "a.kobe.jp",
    "b.a.kobe.jp",
    "www.ck",
    "a.b.ck",
    "user.github.io",
    "github.io",
    "a..b",
    "www.xn--85x722f.xn--55qx5d.cn",
    "xn--55qx5d.cn",
    "xn--p1ai",
    "x.xn--p1ai",
    "a.b.xn--p1ai",
    "xn--nonsense-",
    "a.xn--99999999",
    "x.\u0440\u0444",
    "a.\ud800",
    "example.com.",
    "Example.COM",
    "//",
    "a.//",
]


def test_the_rules_of_one_top_level_domain_say_what_the_whole_list_says() -> None:
    whole = PublicSuffixList()
    assert {host: below_suffix(host) for host in HOSTS} == {host: whole.privatesuffix(host) for host in HOSTS}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "co.uk", "localhost", ""])
def test_a_host_without_a_registered_domain_is_its_own(host: str) -> None:
    assert registered_domain(host) == host


def test_the_assignable_domain_is_the_registered_one_unless_a_rule_is_finer_or_coarser() -> None:
    usual = domain_rule("domain", ())
    assert [usual.assignable(host) for host in ("a.bbc.co.uk", "127.0.0.1", "::1", "localhost", "*.bbc.co.uk")] == [
        "bbc.co.uk",
        "127.0.0.1",
        "::1",
        "localhost",
        "bbc.co.uk",
    ]
    finer = domain_rule("host", ["bbc.co.uk, BBC.com"])
    hosts = ("a.example.com", "b.example.com", "news.bbc.co.uk", "www.bbc.com", "bbc.com", "*.example.com")
    found = [finer.assignable(host) for host in hosts]
    assert found == ["a.example.com", "b.example.com", "bbc.co.uk", "bbc.co.uk", "bbc.co.uk", "example.com"]


def test_a_rule_that_cannot_hold_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="not a registered domain; write 'bbc"):
        domain_rule("domain", ["www.bbc.com"])
    with pytest.raises(UsageError, match="stands in two groups"):
        domain_rule("domain", ["bbc.com bbc.co.uk", "example.com bbc.com"])
