"""Sessions of a spider keep the promises of their contract."""

from gossamer.spiders.sessions import SessionPool, Sessions
from gossamer.testing import check_sessions
from gossamer.values.task import Task


def test_the_sessions_of_a_spider_keep_their_promises() -> None:
    check_sessions(lambda: SessionPool(Sessions(3, limit=5), lambda: 1000.0), blocked=403, limit=5)


def test_a_page_that_was_refused_goes_to_whoever_is_freshest() -> None:
    pool = SessionPool(Sessions(3), lambda: 1000.0)
    first, again = Task("http://a.test/", "a.test"), Task("http://a.test/", "a.test", attempt=2)
    for _ in range(6):
        pool.session_for(first)
    pool.retire("2", 500.0)
    assert [pool.session_for(again) for _ in range(2)] == ["2", "2"]
    pool.refresh("3")
    assert pool.session_for(again) == "3", "who logs in again is as good as new"
    assert [pool.session_for(first) for _ in range(3)] == ["1", "2", "3"], "others take turns all the same"
