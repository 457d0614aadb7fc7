"""Crash points: the N-th passing of one point, nothing else."""

import pytest

from gossamer.engine.errors import SettingError
from gossamer.engine.files import Point, crasher


def test_the_process_dies_at_the_passing_that_was_named() -> None:
    passed: list[int] = []
    killed: list[int] = []
    at = crasher("before-commit:3", lambda: killed.append(len(passed)))
    for number in range(6):
        passed.append(number)
        at(Point.BEFORE_COMMIT)
        at(Point.AFTER_COMMIT)
    assert killed == [3]


def test_nothing_happens_where_nothing_was_asked_for() -> None:
    at = crasher("", lambda: pytest.fail("it died"))
    for point in Point:
        at(point)


@pytest.mark.parametrize("text", ["before-commit", "before-commit:0", "before-commit:x", "elsewhere:1", ":"])
def test_what_is_no_crash_point_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(SettingError, match=r"must be POINT:N .* checkpoint, restoring, recovery"):
        crasher(text)
