"""Who is silent, and what one that was away has missed."""

from gossamer.agents.lending import GivenSettings
from gossamer.agents.supervised import LATE, SILENT_AFTER, Heartbeat


def test_one_that_does_not_answer_falls_silent_once_and_is_heard_again() -> None:
    beat = Heartbeat()
    fell = [beat.missed(LATE) for _ in range(9)]
    assert fell.count(True) == 1 and fell.index(True) == SILENT_AFTER / LATE - 1
    assert (beat.is_silent, beat.silences) == (True, 1)
    assert beat.heard() and not beat.is_silent and not beat.heard()
    assert not beat.missed(LATE), "the count begins anew"


def test_a_supervisor_that_stood_still_itself_takes_nobody_for_silent() -> None:
    beat = Heartbeat()
    assert not beat.missed(3600.0)
    assert beat.seconds < SILENT_AFTER


def test_one_that_was_away_is_told_the_last_value_of_each_setting_that_it_has_missed() -> None:
    given = GivenSettings(2)
    given.note("politeness", {"delay": 1.0})
    given.note("frontier", {"linger": 5.0, "concurrency": 9})
    given.note("politeness", {"delay": 2.0})
    assert given.unheard(0, 0) == {"politeness": {"delay": 2.0}, "frontier": {"linger": 5.0, "concurrency": 5}}
    assert given.unheard(1, 2) == {"politeness": {"delay": 2.0}}
    assert given.unheard(1, given.edition) == {}
    assert given.unheard(1, 1)["frontier"]["concurrency"] == 4, "what is for the whole crawl is divided"


def test_a_change_that_was_refused_is_told_to_nobody_else() -> None:
    given = GivenSettings(1)
    given.note("politeness", {"delay": 1.0})
    take_back = given.note("politeness", {"delay": 0.0})
    take_back()
    assert given.unheard(0, 0) == {"politeness": {"delay": 1.0}}
    given.note("frontier", {"linger": 5.0})
    assert given.unheard(0, 2) == {"frontier": {"linger": 5.0}}, "who had taken it does not miss the next one"
