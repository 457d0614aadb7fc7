"""Hosts and domains that are not asked any more."""

import random

import pytest

from gossamer.frontier.politeness.rules import Blocklist, LayerRules
from gossamer.frontier.politeness.schedule import Schedule
from gossamer.values.errors import UsageError


def test_an_entry_closes_the_name_and_what_is_below_it() -> None:
    closed = Blocklist(["example.org", "www.example.net"])
    for host, rule in (
        ("example.org", "example.org"),
        ("a.b.example.org", "example.org"),
        ("www.example.net", "www.example.net"),
        ("example.net", ""),
        ("notexample.org", ""),
        ("org", ""),
    ):
        assert closed.rule(host) == rule


def test_an_address_closes_itself_alone() -> None:
    closed = Blocklist(["192.0.2.1", "0.2.9", "::1"])
    assert closed.rule("192.0.2.1") == "192.0.2.1"
    assert closed.rule("::1") == "::1"
    assert closed.rule("7.192.0.2") == ""


@pytest.mark.parametrize("entry", ["Example.ORG", "*.example.org", ".example.org.", " example.org "])
def test_entries_are_compared_as_hosts_are_written_in_urls(entry: str) -> None:
    assert Blocklist([entry]).rule("example.org") == "example.org"
    assert Blocklist(["BÜCHER.example"]).rule("xn--bcher-kva.example")


@pytest.mark.parametrize(
    "entry", ["", "*", "http://example.org/", "a b", "user@example.org", "example.org/path", "a\nb", "a" * 300, "a..b"]
)
def test_what_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(UsageError, match="is not a host or domain"):
        Blocklist([entry])


def test_a_list_survives_as_plain_lines() -> None:
    closed = Blocklist(["example.org", "::1", "192.0.2.1"])
    again = Blocklist(closed.lines())
    assert list(again.lines()) == list(closed.lines())


def test_a_blocked_host_is_not_popped_again() -> None:
    closed = Blocklist()
    schedule = Schedule(LayerRules(), random.Random(1).random, is_blocked=lambda host, now: closed.rule(host))
    for host in ("www.example.org", "a.test"):
        schedule.put(host, host, "")
    closed.block("example.org")
    assert schedule.pop(0.0) == "a.test"
    assert schedule.blocked == ["www.example.org"]
