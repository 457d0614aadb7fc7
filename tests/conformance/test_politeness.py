"""Politeness providers keep the contract, whatever clocks do."""

from gossamer.services.politeness.provider import HostPoliteness, PolitenessSheet
from gossamer.testing import check_politeness
from gossamer.testing.clock import FakeClock


def test_politeness_by_host_keeps_the_contract() -> None:
    def make(clock: FakeClock) -> HostPoliteness:
        provider = HostPoliteness(PolitenessSheet(delay=2.0, domain_delay=0.0, ip_delay=0.0))
        provider.clock = clock
        return provider

    check_politeness(make)


def test_adaptive_politeness_keeps_the_contract() -> None:
    def make(clock: FakeClock) -> HostPoliteness:
        provider = HostPoliteness(PolitenessSheet(domain_delay=0.0))
        provider.clock = clock
        return provider

    check_politeness(make)
