"""Sessions of a spider keep the promises of their contract."""

from collections.abc import Callable

from gossamer.parsing.contract import SessionTurns
from gossamer.spiders.sessions import SessionPool, Sessions
from gossamer.values.outcome import Outcome
from gossamer.values.request_identity import requested
from gossamer.values.task import Task
from gossamer.values.visit import Response


def check_sessions(make: Callable[[], SessionTurns], blocked: int, limit: int) -> None:
    """Check that sessions keep the promises of their contract.

    Args:
        make: makes the sessions of a new run, two or more in turn.
        blocked: a status code for which they retire a session.
        limit: the most sessions that are retired.
    """
    sessions = make()
    plain = Task("http://a.test/", "a.test")
    named = Task("http://a.test/", "a.test", request=requested(session="anna"))
    turns = [sessions.session_for(plain) for _ in range(10)]
    assert all(turns) and len(set(turns)) > 1, "tasks do not go from one session to the next"
    assert sessions.session_for(named) == "anna", "a task is asked for by another session than it names"
    sessions.answered(turns[0], plain, Response(Outcome.OK, status=200, started=1e12))
    assert list(sessions.take_retired()) == [], "a session was retired although the server let it in"
    refused = Response(Outcome.CLIENT_ERROR, status=blocked, started=0.0)
    for _ in range(3):
        sessions.answered("anna", named, refused)
    assert list(sessions.take_retired()) == ["anna"], "a session is not retired once for what it asked before"
    assert list(sessions.take_retired()) == [], "a session is named twice"
    assert sessions.session_for(named) == "anna", "the name of a retired session is not in use"
    for _ in range(2 * limit):
        sessions.answered("anna", named, Response(Outcome.CLIENT_ERROR, status=blocked, started=1e12))
    assert len(sessions.take_retired()) == limit - 1, "more or fewer sessions are retired than the limit says"


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
