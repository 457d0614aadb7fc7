"""Addresses of a replay: those that were given out show one thing, for a time; no other address shows anything."""

from hypothesis import given
from hypothesis import strategies as st

from gossamer.analysis.replaying import REPLAY, ReplayAddresses, ReplayAsked

ASKED = ReplayAsked("crawl-1", "http://a.test/?a=1&b=%26#x", "20260301120000", 1_000)
ADDRESSES = ReplayAddresses(b"s" * 32)


def query(asked: ReplayAsked = ASKED) -> str:
    path, _, query = ADDRESSES.of(asked).partition("?")
    assert path == REPLAY
    return query


def test_an_address_means_what_it_was_made_for_until_its_time_is_over() -> None:
    assert ADDRESSES.read(query().encode(), 1_000) == ASKED
    assert ADDRESSES.read(query().encode(), 1_001) is None


def test_an_address_that_was_changed_or_made_elsewhere_shows_nothing() -> None:
    made = query()
    for old, new in (
        ("crawl-1", "crawl-2"),
        ("a.test", "b.test"),
        ("20260301", "20260302"),
        ("until=1000", "until=9000"),
    ):
        assert old in made
        assert ADDRESSES.read(made.replace(old, new).encode(), 0) is None
    assert ReplayAddresses(b"t" * 32).read(made.encode(), 0) is None
    assert ADDRESSES.read(made.partition("&sign=")[0].encode(), 0) is None
    assert ADDRESSES.read(made.partition("sign=")[0].encode() + b"sign=%C3%A9", 0) is None


@given(st.builds(ReplayAsked, st.text(), st.text(), st.text(), st.integers(0, 2**40)))
def test_whatever_a_page_links_to_is_read_back_as_it_was(asked: ReplayAsked) -> None:
    assert ADDRESSES.read(query(asked).encode(), 0) == asked


@given(st.binary())
def test_any_bytes_for_an_address_are_refused_in_silence(text: bytes) -> None:
    assert ADDRESSES.read(text, 0) is None
