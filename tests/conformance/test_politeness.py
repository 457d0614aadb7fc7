"""Politeness providers keep the contract, whatever clocks do."""

import msgspec
import pytest

from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.testing import check_politeness
from gossamer.testing.clock import FakeClock
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Task


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
