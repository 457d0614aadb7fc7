"""Politeness providers keep the contract, whatever clocks do."""

import msgspec

from gossamer.services.politeness.provider import HostPoliteness, PolitenessSheet
from gossamer.testing import check_politeness
from gossamer.testing.clock import FakeClock


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
