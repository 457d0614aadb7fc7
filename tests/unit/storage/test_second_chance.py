"""What is discarded from the table of popular strings is met as new, and its slot is used again."""

from hypothesis import given
from hypothesis import strategies as st

from gossamer.storage.seen.memory import SecondChance

STRINGS = st.sampled_from(["a", "b", "c", "d", "e"])


@given(steps=st.lists(st.tuples(st.sampled_from(["insert", "discard", "ask"]), STRINGS), max_size=60))
def test_what_was_discarded_is_missed_until_it_is_inserted_again(steps: list[tuple[str, str]]) -> None:
    table = SecondChance(3)
    inserted: set[str] = set()
    for what, string in steps:
        if what == "insert":
            table.insert(string)
            inserted.add(string)
            assert table.misses([string]) == [], "it is held"
        elif what == "discard":
            table.discard(string)
            inserted.discard(string)
        missed = table.misses(["a", "b", "c", "d", "e"])
        assert set("abcde") - set(missed) <= inserted
        assert len(table) <= 3
