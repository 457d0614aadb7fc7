"""The ring: who owns what is known from the members alone, and places are preferred."""

import pytest

from gossamer.agents.ring import PlaceTable, Ring, RingDesignation, RingSheet
from gossamer.engine.sheet import build
from gossamer.values.agents import Member, member
from gossamer.values.errors import UsageError

DOMAINS = [f"d{number}.example" for number in range(300)]


def test_the_owners_of_domains_are_the_same_in_every_release() -> None:
    """A crawl that goes on with another release must find its hosts where they were."""
    ring = Ring([Member("agent-00"), Member("agent-01"), Member("agent-02")])
    assert [ring.owner(domain)[-1] for domain in DOMAINS[:12]] == list("200201122100")


def test_hosts_go_to_agents_at_their_place_where_there_are_any() -> None:
    members = [Member("agent-00"), Member("agent-01", place="budapest"), Member("agent-02", place="budapest")]
    ring = Ring(members, PlaceTable(["hu=budapest", "bme.hu=vienna", ".no.=oslo"]))
    assert {ring.owner(f"d{number}.hu") for number in range(300)} == {"agent-01", "agent-02"}
    everywhere = {"agent-00", "agent-01", "agent-02"}
    assert {ring.owner(f"d{number}.no") for number in range(300)} == everywhere, "nobody stands in oslo"
    assert {ring.owner(domain) for domain in DOMAINS} == everywhere, "no rule speaks of these"
    assert PlaceTable(["hu=budapest", "bme.hu=vienna"]).place("www.bme.hu") == "vienna"
    assert PlaceTable(["example=x"]).place("example.com") == ""


def test_members_at_places_share_one_circle_where_no_rule_gives_hosts_to_places() -> None:
    """They are bound to machines there, and hosts change hands by stretches of the circle."""
    bound = Ring([Member("agent-00", place="oslo"), Member("agent-01")])
    free = Ring([Member("agent-00"), Member("agent-01")])
    assert bound.arcs("agent-00") == free.arcs("agent-00")


def test_addresses_go_by_their_narrowest_network_and_names_that_look_like_them_do_not() -> None:
    table = PlaceTable(
        ["192.0.2.0/24=oslo", "192.0.2.128/25=bergen", "2001:db8::/32=oslo", "hu=budapest", "192.0.2.200=tromso"]
    )
    domains = ["192.0.2.1", "192.0.2.129", "192.0.2.200", "2001:db8::1", "198.51.100.1", "bme.hu", "192.0.2.1.hu"]
    assert [table.place(one) for one in domains] == ["oslo", "bergen", "tromso", "oslo", "", "budapest", "budapest"]
    with pytest.raises(UsageError, match="names no network"):
        PlaceTable(["192.0.2.1/24=oslo"])


def test_a_finer_or_a_coarser_rule_decides_what_is_assigned_as_a_whole() -> None:
    agents = ("agent-00", "agent-01", "agent-02")
    hosts = [f"h{number}.example.com" for number in range(40)]
    by_host = RingDesignation(RingSheet(members=agents, division="host"))
    assert len({by_host.owner(host) for host in hosts}) == 3
    joined = RingDesignation(RingSheet(members=agents, together=(" ".join(DOMAINS),)))
    assert len({joined.owner(f"www.{domain}") for domain in DOMAINS}) == 1


def test_a_domain_that_moved_belongs_to_the_agent_that_took_it_and_the_others_stay() -> None:
    agents = ("agent-00", "agent-01")
    before, after = RingDesignation(RingSheet(members=agents)), RingDesignation(RingSheet(members=agents))
    moved = next(domain for domain in DOMAINS if before.owner(domain) == "agent-00")
    after.sheet, sheet = RingSheet(members=agents, moved=(f"{moved}=agent-01",)), after.sheet
    after.changed(sheet)
    assert after.owner(f"www.{moved}") == "agent-01"
    assert all(after.owner(domain) == before.owner(domain) for domain in DOMAINS if domain != moved)


@pytest.mark.parametrize("text", ["", "agent 1", "agent-01=x", "agent-01=-1", "agent-01@", "Agent"])
def test_a_member_that_cannot_be_read_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="names no agent"):
        RingDesignation(RingSheet(members=(text,)))


@pytest.mark.parametrize("text", ["agent-01", "agent-01=2.5", "agent-01@oslo", "agent-01=0.5@oslo"])
def test_a_member_is_written_as_it_is_read(text: str) -> None:
    assert str(member(text)) == text


def test_a_ring_of_nobody_or_of_two_with_one_name_is_refused() -> None:
    with pytest.raises(UsageError, match="one agent at least"):
        RingDesignation(build(RingSheet, {"members": []}))
    with pytest.raises(UsageError, match="two agents are called 'agent-00'"):
        Ring([Member("agent-00"), Member("agent-00", 2.0)])
    with pytest.raises(UsageError, match="names no place"):
        PlaceTable(["hu"])


def test_places_are_preferred_as_the_settings_say() -> None:
    members = ("agent-00", "agent-01=1@budapest")
    anywhere = RingDesignation(RingSheet(members=members))
    assert len({anywhere.owner(f"d{number}.hu") for number in range(50)}) == 2
    at_home = RingDesignation(RingSheet(members=members, places=("hu=budapest",)))
    assert {at_home.owner(f"d{number}.hu") for number in range(50)} == {"agent-01"}
