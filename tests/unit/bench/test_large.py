"""The month of a large crawl: what is counted where machines are lost, and what is not."""

import random

import pytest

from gossamer.agents.joined.link import BEYOND
from gossamer.backup.options import StoreOptions
from gossamer.values.agents import Member, agent_name
from tools.bench.large import IN_FLIGHT, KNOWN, LINE, MONTH, PAGES, by_masters, by_ring, exchanged, month, shares, sizes

AGENTS = [Member(agent_name(number)) for number in range(10)]
EVEN = {one.agent: 1 / len(AGENTS) for one in AGENTS}
EVERY, KEPT = 300.0, 20.0


def test_a_month_without_losses_costs_nothing() -> None:
    found = month(EVEN, 0.0, EVERY, 1e9, KEPT, random.Random(1))
    assert (found.lost, found.refetched, found.away, found.restored, found.again) == (0, 0.0, 0.0, 0.0, 0.0)


def test_an_agent_fetches_again_what_it_has_not_published_and_is_away_for_the_lease_and_its_ledger() -> None:
    found = month(EVEN, 2.0, EVERY, 1e9, KEPT, random.Random(1))
    assert found.lost == pytest.approx(2 * MONTH / 3_600, rel=0.1)
    of_one = PAGES / len(AGENTS) / MONTH * EVERY
    assert found.refetched == pytest.approx(found.lost * (of_one / 2 + IN_FLIGHT), rel=0.1), (
        "half an interval on the mean"
    )
    lease = StoreOptions().lease + BEYOND
    assert found.lost * lease < found.away < found.lost * (lease + KNOWN / len(AGENTS) * KEPT / LINE)
    assert found.longest > lease


def test_a_shorter_interval_fetches_less_again() -> None:
    long, short = (month(EVEN, 2.0, every, 1e9, KEPT, random.Random(1)) for every in (EVERY, EVERY / 5))
    assert short.lost == long.lost
    assert short.refetched < long.refetched / 3


@pytest.mark.parametrize("designated", [by_ring, by_masters])
def test_each_domain_has_one_agent_and_all_urls_are_shared(designated: type) -> None:
    parts = sizes(2_000, 0.01, random.Random(1))
    assert max(parts.values()) < 0.011
    found = shares(parts, designated(parts, AGENTS), EVEN)
    assert sum(found.values()) == pytest.approx(1.0)
    assert all(found.values())


def test_two_agents_send_each_other_a_url_once_at_most_and_more_agents_more_often() -> None:
    assert exchanged(2, random.Random(1)) < KNOWN < exchanged(100, random.Random(1))
