"""The pace that politeness finds on simulated servers; the whole of it is `gossamer bench pace`."""

import pytest

from gossamer.values.outcome import Outcome
from tools.bench.politeness import (
    MINUTE,
    TokenBucket,
    at_random,
    broken_pages,
    bucket,
    crawl,
    figures,
    flaky,
    moody,
    obedient,
    overloaded,
    refusing,
)

HALF = 30 * MINUTE


@pytest.mark.parametrize("delay", [1.0, 2.0])
def test_refusals_at_random_cost_at_most_15_percent_of_the_pace(delay: float) -> None:
    without = figures(obedient(flaky(0.0), delay, 2 * HALF), 0.0, 2 * HALF)
    assert at_random(delay, seed=1).pace >= 0.85 * without.pace


@pytest.mark.parametrize("delay", [0.25, 0.0])
def test_at_short_delays_refusals_at_random_cost_little_beside_the_waits_asked_for(delay: float) -> None:
    alone = figures(obedient(flaky(0.01), delay, 2 * HALF), 0.0, 2 * HALF)
    assert at_random(delay, seed=1).pace >= 0.9 * alone.pace


@pytest.mark.parametrize("retry_after", ["", "exact", "1"])
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.8, 2.0, 20.0])
def test_a_rate_limit_is_used_by_four_fifths_and_seldom_refuses(rate: float, retry_after: str) -> None:
    found = bucket(rate, 10.0, retry_after, seed=1)
    assert 0.8 * rate <= found.pace <= 1.02 * rate
    assert found.refused <= 0.02


@pytest.mark.parametrize("knee", [1.0, 5.0])
def test_an_overloaded_server_is_kept_below_its_knee(knee: float) -> None:
    found = figures(crawl(overloaded(knee), 0.0, HALF), HALF / 3, HALF)
    assert 0.6 * knee <= found.asked <= knee
    assert found.refused <= 0.03


@pytest.mark.parametrize("delay", [1.0, 0.0])
def test_a_broken_server_gets_a_quarter_of_the_pace(delay: float) -> None:
    well = figures(crawl(refusing(0.0), delay, HALF), 0.0, HALF)
    found = figures(crawl(refusing(0.5), delay, HALF), 0.0, HALF)
    assert 0.2 * well.asked <= found.asked <= 0.3 * well.asked


def test_a_host_that_refused_everything_for_five_minutes_is_at_its_pace_within_three_more() -> None:
    requests = list(crawl(moody(10 * MINUTE, 5 * MINUTE), 1.0, 25 * MINUTE))
    back = figures(iter(requests), 18 * MINUTE, 25 * MINUTE)
    assert back.refused == 0.0
    assert back.pace >= 0.9 / 1.05


def test_pages_that_are_broken_themselves_do_not_slow_their_host_down() -> None:
    asked = figures(crawl(broken_pages(20), 1.0, 2 * HALF), 0.0, 2 * HALF).asked
    assert asked >= 0.9 / 1.05


def test_a_limit_that_is_lifted_is_noticed_within_minutes() -> None:
    server = TokenBucket(0.5, 1.0)
    pace, free_at = 0.0, 20 * MINUTE
    clean = [0.0]
    for asked in crawl(server, 1.0, 40 * MINUTE):
        if asked.began >= free_at:
            server.rate = 100.0
        if asked.began >= 30 * MINUTE and asked.outcome is Outcome.OK:
            clean.append(asked.began)
    pace = len(clean) / (10 * MINUTE)
    assert pace >= 0.9 / 1.05
