"""Instants as text agree with the standard library, to the last digit."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.dates import utc_text


def test_an_instant_is_written_in_utc_with_microseconds() -> None:
    assert utc_text(1772366400.25) == "2026-03-01T12:00:00.250000Z"
    assert utc_text(0) == "1970-01-01T00:00:00.000000Z"
    assert utc_text(-0.5) == "1969-12-31T23:59:59.500000Z"
    assert utc_text(1772366399.9999999) == "2026-03-01T12:00:00.000000Z"


@given(whole=st.integers(-(2**31), 2**33), millionths=st.floats(0, 1_000_001))
def test_it_is_the_instant_that_the_standard_library_rounds_to(whole: int, millionths: float) -> None:
    seconds = whole + millionths / 1e6
    assert utc_text(seconds) == datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:26] + "Z"
