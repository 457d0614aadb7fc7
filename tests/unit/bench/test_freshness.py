"""The benchmark of freshness measures what it says: small webs, with the real schedule."""

import numpy as np
import pytest

from gossamer.recrawl.policies import FixedInterval, FixedIntervalSheet, NutchAdaptive
from tools.bench.changing import ChangingPages, WebOfChanges, best_freshness, simulated
from tools.bench.freshness import by_scaled_waits, in_due_order

DAY = 86_400.0


def test_the_optimum_of_pages_that_are_alike_is_to_visit_them_alike() -> None:
    rates, weights = np.full(50, 1 / DAY), np.ones(50)
    assert best_freshness(rates, weights, 50 / DAY) == pytest.approx(1 - np.exp(-1), rel=1e-3)


def test_the_optimum_leaves_what_changes_too_fast() -> None:
    rates, weights = np.array([1 / DAY, 1_000 / DAY]), np.ones(2)
    assert best_freshness(rates, weights, 2 / DAY) == pytest.approx((1 - np.exp(-0.5)) / 0.5 / 2, rel=0.01)


def test_hosts_say_as_much_and_as_truly_as_the_web_was_told_to_let_them() -> None:
    pages = ChangingPages(WebOfChanges(pages=2_000, shape=5.0, precision=0.8, recall=0.6))
    said = true = changed = 0
    for _ in range(200):
        before = pages.versions.copy()
        named = pages.step(DAY / 50)
        news = pages.versions - before
        counts = np.bincount(named, minlength=2_000)
        said, changed, true = said + len(named), changed + int(news.sum()), true + int(np.minimum(counts, news).sum())
    assert true / said == pytest.approx(0.8, abs=0.05)
    assert true / changed == pytest.approx(0.6, abs=0.05)


def test_a_rule_has_as_many_visits_as_ours_whatever_it_asks_for() -> None:
    web = WebOfChanges(pages=300)
    often, seldom = (FixedInterval(FixedIntervalSheet(every=every)) for every in (60.0, 30 * DAY))
    assert by_scaled_waits(often, web, 1.0) == pytest.approx(by_scaled_waits(seldom, web, 1.0), rel=1e-6)


def test_in_due_order_pages_that_wait_alike_are_visited_in_turn() -> None:
    web, rule = WebOfChanges(pages=300, shape=50.0), FixedInterval(FixedIntervalSheet(every=DAY))
    # All pages change about once between two visits that are a day apart.
    assert in_due_order(rule, web, 1.0) == pytest.approx(1 - np.exp(-1), abs=0.02)
    assert in_due_order(rule, web, 1.0) == pytest.approx(by_scaled_waits(rule, web, 1.0), abs=0.02)


def test_adaptive_comes_near_the_optimum_and_is_far_above_nutchs_rule() -> None:
    web, budget = WebOfChanges(pages=600), 1.0
    pages, ours = ChangingPages(web), simulated(web, budget, steps=40)
    best = best_freshness(pages.rates, pages.weights, web.pages * budget / web.mean)
    assert ours.visits == pytest.approx(1, abs=0.1)
    assert 0.9 * best < ours.freshness < 1.05 * best
    assert ours.freshness > 1.25 * by_scaled_waits(NutchAdaptive(), web, budget)
