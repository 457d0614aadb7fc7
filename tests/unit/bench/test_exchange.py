"""A divided crawl by simulation; the whole of it is `gossamer bench exchange`."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from gossamer.values.hosts import registered_domain
from tools.bench.exchange import KINDS, DividedWeb, ExchangeMode, crawl, filled, owners, quality, run, saved, zipf


@cache
def web() -> DividedWeb:
    return DividedWeb(2_000, 100, seed=1)


def test_a_tenth_of_the_links_lead_to_other_hosts() -> None:
    made = web()
    leads = [made.host_of[page] != made.host_of[to] for page in range(len(made)) for to in made.links[page]]
    # Links that a page has twice are counted once, and those are within a host more often.
    assert 0.1 <= np.mean(leads) <= 0.2


def test_a_page_belongs_to_the_agent_of_its_domain() -> None:
    made, owner = web(), owners(web(), 7, "domain")
    agents: dict[str, set[int]] = {}
    for page in range(len(made)):
        agents.setdefault(registered_domain(made.hosts[made.host_of[page]]), set()).add(owner[page])
    assert {len(those) for those in agents.values()} == {1}
    assert len(set(owner)) == 7


def test_exchange_covers_what_one_agent_covers_and_fetches_nothing_twice() -> None:
    alone = crawl(web(), owners(web(), 1, "domain"), ExchangeMode.EXCHANGE)
    several = crawl(web(), owners(web(), 5, "domain"), ExchangeMode.EXCHANGE)
    assert set(several.fetched) == set(alone.fetched)
    assert several.overlap == 0
    assert alone.links_sent == alone.urls_sent == 0


def test_what_is_exchanged_is_every_link_to_another_agent() -> None:
    owner = owners(web(), 5, "domain")
    told = crawl(web(), owner, ExchangeMode.EXCHANGE)
    crossing = [(owner[page], to) for page in told.fetched for to in web().links[page] if owner[page] != owner[to]]
    assert told.links_sent == len(crossing)
    assert told.urls_sent == len(set(crossing))


def test_hashing_urls_costs_far_more_exchange_than_hashing_hosts() -> None:
    by_host, by_url = (crawl(web(), owners(web(), 8, by), ExchangeMode.EXCHANGE) for by in ("host", None))
    assert by_host.links_sent / len(by_host.fetched) < 1.2
    assert by_url.links_sent > 4 * by_host.links_sent


def test_a_firewall_fetches_nothing_twice_and_covers_less_with_more_agents() -> None:
    told = [crawl(web(), owners(web(), agents, "domain"), ExchangeMode.FIREWALL) for agents in (1, 4, 64)]
    assert [one.overlap for one in told] == [0, 0, 0]
    assert all(len(more.fetched) < len(fewer.fetched) for fewer, more in pairwise(told))


def test_cross_over_covers_all_and_fetches_pages_twice() -> None:
    alone = crawl(web(), owners(web(), 1, "domain"), ExchangeMode.EXCHANGE)
    told = crawl(web(), owners(web(), 3, "domain"), ExchangeMode.CROSS_OVER)
    assert set(told.fetched) == set(alone.fetched)
    assert told.overlap > 1


def test_a_crawl_with_a_budget_never_fetches_more_and_tells_the_others_at_its_moments_alone() -> None:
    owner = owners(web(), 4, "domain")
    once = crawl(web(), owner, ExchangeMode.EXCHANGE, budget=400, exchanges=1, best_first=True)
    never = crawl(web(), owner, ExchangeMode.FIREWALL, budget=400, best_first=True)
    assert len(once.fetched) <= 400
    assert once.fetched[:190] == never.fetched[:190]
    assert once.fetched != never.fetched


def test_a_budget_that_agents_cannot_share_evenly_is_kept() -> None:
    assert len(crawl(web(), owners(web(), 7, "domain"), ExchangeMode.EXCHANGE, budget=100).fetched) == 100


def test_quality_is_the_share_of_the_best_pages() -> None:
    importance = np.array([5.0, 1.0, 4.0, 3.0, 2.0])
    assert quality([0, 2], importance, 2) == 1
    assert quality([0, 1], importance, 2) == 0.5
    assert quality([1, 4], importance, 2) == 0


@pytest.mark.parametrize("name", KINDS)
def test_a_table_with_room_for_all_saves_all_repetitions(name: str) -> None:
    load = zipf(1_000, 5_000, 1.0, seed=2)
    assert saved(filled(KINDS[name](5_000)), load) == pytest.approx(1 - len(set(load)) / len(load))


def test_the_load_follows_the_formula() -> None:
    load = zipf(100, 100_000, 1.0, seed=3)
    harmonic = sum(1 / rank for rank in range(1, 101))
    for rank in (1, 2, 10):
        share = sum(url.endswith(f"/{rank - 1}") for url in load) / len(load)
        assert share == pytest.approx(1 / rank / harmonic, rel=0.1)


def test_the_report_has_a_row_for_each_number_of_agents() -> None:
    assert [len(table.rows) for table in run(400).tables] == [6, 6, 6, 6, 6, 3]
