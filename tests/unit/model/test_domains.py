"""The registered domain of a host, from the rules of its top-level domain alone."""

import pytest
from publicsuffixlist import PublicSuffixList

from gossamer.model.domains import below_suffix, registered_domain

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
