"""Pages change by a Poisson process that can be asked at any moment."""

import pytest

from gossamer.simweb import draws
from gossamer.simweb.site import DAY, ChangeHistory

NOW = 1_767_225_600


def test_the_last_change_is_never_in_the_future_and_never_goes_back() -> None:
    changes = ChangeHistory()
    for page in range(50):
        bits = draws.draw(3, page)
        moments = [NOW + step * DAY // 5 for step in range(100)]
        found = [changes.last(bits, moment) for moment in moments]
        assert found == sorted(found)
        assert all(change <= moment for change, moment in zip(found, moments, strict=True))


def test_the_moment_of_a_change_already_shows_it() -> None:
    changes = ChangeHistory()
    bits = draws.draw(3, 1)
    when = changes.last(bits, NOW)
    assert changes.last(bits, when) == when
    assert changes.last(bits, when - 1) < when


def test_pages_change_as_often_as_their_interval_says() -> None:
    changes = ChangeHistory()
    seen = expected = 0.0
    for page in range(400):
        bits = draws.draw(9, page)
        interval = changes.interval(bits)
        if interval > 2 * 365 * DAY:
            continue  # twenty of those would reach back before 1970
        moment = NOW
        # Walking from change to change backwards over twenty intervals counts them all.
        while moment > NOW - 20 * interval:
            moment = changes.last(bits, moment) - 1
            seen += 1
        seen -= 1
        expected += 20
    assert seen == pytest.approx(expected, rel=0.05)
