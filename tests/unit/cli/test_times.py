"""Times on the command line: what is none is refused, with how one is written."""

import pytest

from gossamer.cli.helping import digits_of
from gossamer.values.errors import UsageError


@pytest.mark.parametrize(
    ("text", "digits"),
    [("2026", "2026"), ("20260301", "20260301"), ("2026-03-01T12:00:05Z", "20260301120005"), ("2026-03", "202603")],
)
def test_a_version_is_named_by_the_digits_of_its_time(text: str, digits: str) -> None:
    assert digits_of("--at", text) == digits


@pytest.mark.parametrize("text", ["soon", "", "12", "20260301x", "202603011200001", "7d"])
def test_what_is_no_time_is_refused_and_not_taken_for_no_time_at_all(text: str) -> None:
    with pytest.raises(UsageError, match="name a version by its time in UTC"):
        digits_of("--at", text)
