"""Whatever agents join and leave: a domain moves only where it must, and everybody agrees."""

from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.agents import Member
from gossamer.services.designation.ring import PlaceTable, Ring

DOMAINS = [f"d{number}.{top}" for number in range(60) for top in ("hu", "no", "com")]
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
