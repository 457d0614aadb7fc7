"""Conformance suite for designations: run it over an implementation of your own."""

from collections import Counter
from collections.abc import Callable, Sequence

from gossamer.contracts.designating import Designation
from gossamer.model.agents import Member

#: Makes a designation of these members, with the usual rule: registered domains are assigned as a whole.
Make = Callable[[Sequence[Member]], Designation]

#: Enough domains for shares to show.
_DOMAINS = [f"d{number}.example" for number in range(3_000)]

#: How far a share may be from its due, as a factor: a circle of 1,024 points strays by 3 %, and three times that is rare.
_STRAY = 1.25


def check_designation(make: Make) -> None:
    """Check that a designation keeps its promises."""
    three = [Member("agent-00"), Member("agent-01"), Member("agent-02", 2.0)]
    before = _owners(make(three))
    assert set(before.values()) == {one.agent for one in three}, "a member has no domain, or an unknown agent has one"
    assert _owners(make(three[::-1])) == before, "the result depends on the order of the members"
    alone = make(three[:1])
    assert {alone.owner(host) for host in ("127.0.0.1", "localhost", "[::1]", "co.uk")} == {"agent-00"}
    _check_domains(make(three))
    _check_shares(three, before)
    more = [*three, Member("agent-03", 0.5)]
    after = _owners(make(more))
    moved = {domain for domain in _DOMAINS if before[domain] != after[domain]}
    assert moved, "a member that joined got nothing"
    assert {after[domain] for domain in moved} == {"agent-03"}, "a domain moved between members that were there before"
    left = _owners(make(more[1:]))
    moved = {domain for domain in _DOMAINS if left[domain] != after[domain]}
    assert {after[domain] for domain in moved} == {"agent-00"}, "a domain moved although its agent did not leave"


def _owners(designation: Designation) -> dict[str, str]:
    return {domain: designation.owner(domain) for domain in _DOMAINS}


def _check_domains(designation: Designation) -> None:
    for domain in [*_DOMAINS[:100], "bbc.co.uk"]:
        owners = {designation.owner(host) for host in (domain, f"www.{domain}", f"a.b.{domain}")}
        assert len(owners) == 1, f"the hosts of {domain} belong to {', '.join(sorted(owners))}"


def _check_shares(members: Sequence[Member], owners: dict[str, str]) -> None:
    counts, whole = Counter(owners.values()), sum(one.capacity for one in members)
    for one in members:
        due = len(_DOMAINS) * one.capacity / whole
        assert due / _STRAY < counts[one.agent] < due * _STRAY, (
            f"{one} has {counts[one.agent]} domains, {due:.0f} are due"
        )
