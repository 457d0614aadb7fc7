"""The even order of a page."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gossamer.labs.diverse import shares, spread

COUNTS = st.dictionaries(st.sampled_from("abcdefghij"), st.integers(min_value=0, max_value=40), max_size=10)


def test_the_example_of_the_seed_comes_out() -> None:
    order = spread({"1": 7, "2": 5, "3": 4, "4": 3, "5": 1})
    assert " ".join(order) == "1 2 3 1 4 2 1 3 5 1 2 1 3 4 1 2 4 1 3 2"
    assert [at for at, name in enumerate(order) if name == "1"] == [round(i * 20 / 7) for i in range(7)]


@given(COUNTS)
def test_nothing_is_lost_or_made(counts: dict[str, int]) -> None:
    assert Counter(spread(counts)) == Counter(counts)


@given(COUNTS)
def test_the_commonest_is_never_nearer_than_its_share_allows(counts: dict[str, int]) -> None:
    order = spread(counts)
    if order:
        name = max(counts, key=lambda one: counts[one])
        places = [at for at, other in enumerate(order) if other == name]
        gaps = [after - before for before, after in pairwise(places)]
        assert min(gaps, default=len(order)) >= len(order) // counts[name]


@given(COUNTS, st.integers(min_value=1, max_value=60))
def test_a_page_is_full_where_there_is_enough_and_everyone_gets_what_it_has_at_most(
    counts: dict[str, int], room: int
) -> None:
    given_out = shares(counts, room)
    assert sum(given_out.values()) == min(room, sum(counts.values()))
    assert all(1 <= count <= counts[name] for name, count in given_out.items())
