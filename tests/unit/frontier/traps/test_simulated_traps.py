"""Trap detection against the traps of the simulated web, in memory: traps cost little, and no page is lost to it."""

import msgspec

from gossamer.simweb import SimWeb, WebSpec
from gossamer.simweb.hosts import TRAPS
from tools.chores.honest_sites import crawl

#: Small pages that never fail for a while, on hosts of which every second has a trap.
TRAPPED = WebSpec(pages=1500, hosts=40, trap_share=0.5, size_median=1000, flaky_share=0.0, seed=5)


def test_traps_cost_little_and_no_page_is_lost_to_their_detection() -> None:
    web = SimWeb(TRAPPED)
    spent, learnt = crawl(web)
    kinds = {web.hosts.host(rank).name: web.hosts.host(rank).trap for rank in range(len(web.hosts))}
    assert {kinds[host] for host in spent.trapped} == set(TRAPS), "every kind of trap was met"
    assert max(spent.trapped.values()) <= 50, "fault 40: set aside within fifty pages of a host"
    harmless, _ = crawl(SimWeb(msgspec.structs.replace(TRAPPED, trap_share=0.0)), cut=False)
    assert harmless.pages - spent.pages == set()
    assert spent.aside.total() > 100 and not spent.lost
    assert learnt.metrics.counters.keys() >= {"aside:trap:calendar", "aside:trap:facets", "aside:trap:session-ids"}


def test_without_setting_aside_traps_are_named_and_everything_is_fetched() -> None:
    spent, learnt = crawl(SimWeb(TRAPPED), cut=False, most=4_000)
    assert max(spent.trapped.values()) > 100
    assert not spent.aside and not any(name.startswith("aside:") for name in learnt.metrics.counters)
    assert any(name.startswith("found:trap:") for name in learnt.metrics.counters)


def test_of_a_usual_web_probes_take_one_request_in_a_hundred_until_nothing_else_is_left() -> None:
    web = SimWeb(WebSpec(pages=4_000, hosts=40, size_median=1000, seed=2))
    everything, _ = crawl(web)
    early, _ = crawl(web, most=3_000)
    assert 0 < sum(early.probed.values()) <= 0.01 * early.fetched
    assert 0 < max(everything.trapped.values()) <= 50
    assert sum(everything.trapped.values()) <= 0.05 * everything.fetched


def test_a_large_host_whose_pages_are_few_words_in_many_orders_is_never_suspected() -> None:
    for seed in (1, 2):
        spent, learnt = crawl(SimWeb(WebSpec(pages=2_000, hosts=1, seed=seed)))
        assert not any(name.startswith("found:") for name in learnt.metrics.counters) and not spent.aside
