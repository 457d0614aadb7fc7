"""Instants are written as the standard library writes them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.dates import utc_text


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_an_instant_is_written_to_the_microsecond(second: int, microsecond: int) -> None:
    expected = datetime.fromtimestamp(second, UTC).replace(microsecond=microsecond)
    assert utc_text(second + microsecond / 1_000_000) == expected.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (59.9999999, "1970-01-01T00:01:00.000000Z"),
        (-0.5, "1969-12-31T23:59:59.500000Z"),
    ],
)
def test_what_rounds_to_a_whole_second_is_written_as_that(seconds: float, text: str) -> None:
    assert utc_text(seconds) == text
