"""The table of recently seen URLs by the thesis' rule holds back only what it was given, and never grows beyond its size."""

from hypothesis import given
from hypothesis import strategies as st

from gossamer.storage.seen.memory import SaturatingTable

URLS = st.lists(st.sampled_from([f"http://a.test/{n}" for n in range(12)]), max_size=60)


@given(capacity=st.integers(1, 14), urls=URLS)
def test_what_the_table_holds_back_was_given_to_it_and_it_never_outgrows_its_size(
    capacity: int, urls: list[str]
) -> None:
    table, given_before = SaturatingTable(capacity), set[str]()
    for url in urls:
        if table.misses([url]):
            table.insert(url)
        else:
            assert url in given_before
        given_before.add(url)
        assert url in table
        assert len(table) <= capacity


@given(capacity=st.integers(2, 10), data=st.data())
def test_saturation_erases_what_was_not_referenced_and_keeps_the_rest_for_one_turn_more(
    capacity: int, data: st.DataObject
) -> None:
    table = SaturatingTable(capacity)
    first = [f"http://a.test/{n}" for n in range(capacity)]
    for url in first:
        table.insert(url)
    kept = data.draw(st.sets(st.sampled_from(first), max_size=capacity - 1))
    table.misses(sorted(kept))
    table.insert("http://b.test/")
    assert {url for url in first if url in table} == kept
    # Their bits are clear: at the next saturation they go, unless they are referenced again.
    for n in range(capacity - len(table)):
        table.insert(f"http://c.test/{n}")
    table.insert("http://d.test/")
    assert not any(url in table for url in first)


def test_where_everything_was_referenced_the_table_begins_again() -> None:
    table = SaturatingTable(2)
    for url in ("http://a.test/", "http://b.test/"):
        table.insert(url)
    table.misses(["http://a.test/", "http://b.test/"])
    table.insert("http://c.test/")
    assert len(table) == 1
    assert "http://c.test/" in table
