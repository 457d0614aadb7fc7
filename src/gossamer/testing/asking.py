"""Conformance suite for politeness: run it over an implementation of your own."""

from collections.abc import Callable

from gossamer.contracts.politeness import Politeness
from gossamer.model.outcome import Outcome
from gossamer.model.ruling import What
from gossamer.model.task import Answer, Task
from gossamer.testing.clock import FakeClock


def check_politeness(make: Callable[[FakeClock], Politeness]) -> None:
    """Check that the contract's promises are kept.

    Args:
        make: returns a fresh provider that uses this clock, with a delay of at least a second and one live request per host.
    """
    _check_one_at_a_time(make)
    _check_rulings(make)
    _check_notes(make)
    _check_missed(make)


def _check_one_at_a_time(make: Callable[[FakeClock], Politeness]) -> None:
    clock = FakeClock()
    polite = make(clock)
    polite.put("a.test", "")
    assert polite.next(clock.monotonic()) == "a.test", "a host that was never asked may be asked at once"
    polite.begin(_task("http://a.test/1"), "", clock.monotonic())
    polite.put("a.test", "")
    polite.put("b.test", "")
    assert polite.next(clock.monotonic()) == "b.test", "another host does not wait for it"
    until = polite.next(clock.monotonic() + 3600)
    assert not isinstance(until, str), "a host with a live request is not given out again, however long it takes"
    polite.answered(_answer("http://a.test/1"))
    until = polite.next(clock.monotonic())
    assert isinstance(until, float), "nor at once after its answer"
    assert until >= clock.monotonic() + 1.0, "but when its delay is over"
    clock.jump(-86_400)
    assert polite.next(until) == "a.test", "whatever wall clocks do meanwhile"


def _check_missed(make: Callable[[FakeClock], Politeness]) -> None:
    clock = FakeClock()
    polite = make(clock)
    polite.put("nowhere.test", "")
    assert polite.next(clock.monotonic()) == "nowhere.test"
    polite.missed("nowhere.test")
    polite.put("nowhere.test", "")
    until = polite.next(clock.monotonic())
    assert isinstance(until, float), "a host whose name was not found is not given out again at once"
    assert until > clock.monotonic(), "but after a while"
    assert polite.next(until) == "nowhere.test", "without any request having begun"
    assert polite.note("nowhere.test"), "what is known of it can be kept"


def _check_rulings(make: Callable[[FakeClock], Politeness]) -> None:
    clock = FakeClock()
    polite = make(clock)
    assert polite.ruling(_answer("http://never.test/")).what is What.DONE, "a page that never began is done"
    expected = (
        (Outcome.OK, What.DONE),
        (Outcome.SERVER_ERROR, What.RETRY),
        (Outcome.CONNECT_FAILED, What.KEEP),
        (Outcome.RATE_LIMITED, What.POSTPONE),
    )
    for number, (outcome, what) in enumerate(expected):
        for is_known in (True, False):
            host = f"{'known' if is_known else 'news'}{number}.test"
            answer = _answer(f"http://{host}/", outcome)
            polite.put(host, "")
            assert polite.next(clock.monotonic()) == host, "every host gets its turn"
            polite.begin(_task(answer.url), "", clock.monotonic())
            if is_known:
                polite.answered(answer)
                polite.answered(answer)
            assert {polite.expected(answer).what for _ in range(2)} == {what}, (
                "what is expected is what the ruling will be"
            )
            assert polite.ruling(answer).what is what, f"{outcome} is ruled on once, whoever brings it first"


def _check_notes(make: Callable[[FakeClock], Politeness]) -> None:
    clock = FakeClock()
    polite = make(clock)
    polite.put("a.test", "")
    polite.next(clock.monotonic())
    polite.begin(_task("http://a.test/"), "", clock.monotonic())
    polite.answered(_answer("http://a.test/"))
    polite.put("a.test", "")
    opens = polite.next(clock.monotonic())
    note = polite.note("a.test")
    for clean in (True, False):
        again = make(clock)
        again.restore("a.test", note, clean=clean)
        again.put("a.test", "")
        until = again.next(clock.monotonic())
        assert isinstance(until, float) and isinstance(opens, float), "a host restored from its note still waits"
        assert until >= opens - 0.001, "no shorter than it would have; wall clocks count no finer"
    again = make(clock)
    again.restore("a.test", b"\xff not a note", clean=True)
    again.put("a.test", "")
    assert again.next(clock.monotonic()) == "a.test", "a note that cannot be read is none"


def _task(url: str) -> Task:
    return Task(url, url.split("/")[2])


def _answer(url: str, outcome: Outcome = Outcome.OK) -> Answer:
    return Answer(url, url.split("/")[2], outcome, 0.1)
