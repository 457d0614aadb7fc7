"""Politeness providers keep the contract, whatever clocks do."""

from collections.abc import Callable

import msgspec
import pytest

from gossamer.frontier.contract import Politeness
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.testing.clock import FakeClock
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Disposition, Task


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
    assert polite.ruling(_answer("http://never.test/")).what is Disposition.DONE, "a page that never began is done"
    expected = (
        (Outcome.OK, Disposition.DONE),
        (Outcome.SERVER_ERROR, Disposition.RETRY),
        (Outcome.CONNECT_FAILED, Disposition.KEEP),
        (Outcome.RATE_LIMITED, Disposition.POSTPONE),
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


def test_politeness_by_host_keeps_the_contract() -> None:
    def make(clock: FakeClock) -> HostPoliteness:
        provider = HostPoliteness(PolitenessSheet(delay=2.0, domain_delay=0.0, ip_delay=0.0))
        provider.clock = clock
        return provider

    check_politeness(make)


def test_a_note_of_an_earlier_version_is_read() -> None:
    # As version 0.1 wrote it: with a back-off, which is not known any more, and without what came later.
    pace = {"latency": 0.2, "crawl_delay": 7.0, "backoff": 40.0, "until": 30.0, "clean": 3, "errors": 1, "strain": 1}
    clock = FakeClock()
    note = msgspec.msgpack.encode({"written": clock.now(), "rest": 4.0, "pace": pace, "circuit": None})
    provider = HostPoliteness(PolitenessSheet())
    provider.clock = clock
    provider.restore("a.test", note, clean=True)
    assert provider.metrics.snapshot().get("notes_unreadable", 0) == 0
    assert provider.delay("a.test") == 7.0
    assert provider.delay_reason("a.test") == "robots"
    assert provider.waits("a.test", clock.monotonic()) == 30.0


def test_adaptive_politeness_keeps_the_contract() -> None:
    def make(clock: FakeClock) -> HostPoliteness:
        provider = HostPoliteness(PolitenessSheet(domain_delay=0.0))
        provider.clock = clock
        return provider

    check_politeness(make)


def begun_at_once(sheet: PolitenessSheet, *hosts: tuple[str, str]) -> int:
    """To how many of these hosts, each with its address, requests can be under way together."""
    clock, begun = FakeClock(), 0
    provider = HostPoliteness(sheet)
    provider.clock = clock
    for host, address in hosts:
        provider.put(host, address)
    while isinstance(host := provider.next(clock.monotonic()), str):
        provider.begin(Task(f"http://{host}/", host), dict(hosts)[host], clock.monotonic())
        begun += 1
    return begun


@pytest.mark.parametrize("live", [1, 2])
def test_so_many_requests_go_to_a_domain_or_an_address_at_once(live: int) -> None:
    of_a_domain = [(f"www{number}.example.org", f"192.0.2.{number}") for number in range(4)]
    assert begun_at_once(PolitenessSheet(domain_live=live, domain_delay=0.0, ip_delay=0.0), *of_a_domain) == live
    at_an_address = [(f"example{number}.org", "192.0.2.1") for number in range(4)]
    assert begun_at_once(PolitenessSheet(ip_live=live, domain_delay=0.0, ip_delay=0.0), *at_an_address) == live


@pytest.mark.parametrize("factor", [2.0, 5.0])
def test_an_adaptive_delay_is_so_many_times_what_the_server_takes(factor: float) -> None:
    clock = FakeClock()
    provider = HostPoliteness(PolitenessSheet(delay="auto", factor=factor, floor=0.0, cap=100.0))
    provider.clock = clock
    task = Task("http://a.test/", "a.test")
    provider.begin(task, "192.0.2.1", clock.monotonic())
    provider.answered(Answer(task.url, task.host, Outcome.OK, 1.0, is_met=True))
    assert provider.delay("a.test") == pytest.approx(factor)
