"""Whatever agents join and leave: a domain moves only where it must, and everybody agrees."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gossamer.agents.ring import PlaceTable, Ring, moving
from gossamer.values.agents import Member
from gossamer.values.hosts import domain_point

DOMAINS = [f"d{number}.{top}" for number in range(60) for top in ("hu", "no", "com")]
POINTS = {domain: domain_point(domain) for domain in DOMAINS}
PLACES = PlaceTable(["hu=budapest", "no=oslo"])

members = st.lists(
    st.builds(
        Member,
        st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True),
        st.sampled_from([0.01, 0.3, 1.0]),
        st.sampled_from(["", "budapest", "oslo"]),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one.agent,
)


@given(members, st.data())
def test_a_join_only_takes_and_a_leave_only_gives(those: list[Member], data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(those))
    rest = [other for other in those if other is not one]
    whole = Ring(those, PLACES)
    assert all(whole.owner(domain) in {other.agent for other in those} for domain in DOMAINS)
    if rest:
        without = Ring(rest, PLACES)
        moved = [domain for domain in DOMAINS if without.owner(domain) != whole.owner(domain)]
        assert {whole.owner(domain) for domain in moved} <= {one.agent}


@given(members, st.randoms())
def test_every_agent_computes_the_same_owners(those: list[Member], chance: object) -> None:
    shuffled = list(those)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    ours, theirs = Ring(those, PLACES), Ring(shuffled, PLACES)
    assert [ours.owner(domain) for domain in DOMAINS] == [theirs.owner(domain) for domain in DOMAINS]


@given(members)
def test_the_arcs_of_all_agents_are_the_whole_circle_and_tell_the_owner(those: list[Member]) -> None:
    ring = Ring([Member(one.agent, one.capacity) for one in those])
    arcs = sorted((*arc, one.agent) for one in those for arc in ring.arcs(one.agent))
    assert arcs[0][0] == 0
    assert arcs[-1][1] == 2**32 - 1
    assert all(one[1] + 1 == other[0] for one, other in pairwise(arcs))
    for domain, point in POINTS.items():
        [agent] = [agent for first, last, agent in arcs if first <= point <= last]
        assert agent == ring.owner(domain)


@given(members, members)
def test_a_domain_moves_with_the_stretch_that_moves(before: list[Member], after: list[Member]) -> None:
    one, other = (Ring([Member(member.agent, member.capacity) for member in those]) for those in (before, after))
    owners = {domain: (one.owner(domain), other.owner(domain)) for domain in DOMAINS}
    moves = moving(one, other)
    for giver in before:
        for taker in after:
            arcs = moves.get((giver.agent, taker.agent), ())
            for domain, point in POINTS.items():
                is_in = any(first <= point <= last for first, last in arcs)
                assert is_in is (owners[domain] == (giver.agent, taker.agent))
