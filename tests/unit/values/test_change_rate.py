"""How often a page changes: the estimate is as good as one that computes everything, in 18 bytes a page."""

import random
from math import exp, inf, log

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.values.page_history import (
    NO_SIGNALS,
    USUAL,
    Belief,
    Evidence,
    RateGroup,
    Signals,
    aged,
    believed,
    gain_after,
    grouped,
    judged,
    learnt,
    prior_of,
    unaged,
    wait_for,
)

DAY = 86_400.0
GRID = np.exp(np.linspace(log(1e-6), log(60), 2_000))


def changed(chance: random.Random, rate: float, time: float) -> bool:
    return chance.random() < 1 - exp(-rate * time)


@pytest.mark.parametrize("shape", [3.0, 1.0, 0.5])
@pytest.mark.parametrize("regular", [True, False])
def test_after_ten_visits_the_error_is_at_most_a_tenth_above_that_of_exact_bayes(shape: float, regular: bool) -> None:
    chance, prior = random.Random(7), Belief(shape, shape)
    ours, exact = list[float](), list[float]()
    for _ in range(400):
        rate = chance.gammavariate(shape, 1 / shape)
        evidence, logs = Evidence(), shape * np.log(GRID) - shape * GRID
        for _ in range(10):
            time = 1.0 if regular else exp(chance.gauss(0, 1))
            is_changed = changed(chance, rate, time)
            evidence = learnt(prior, evidence, time, is_changed)
            logs = logs + (np.log(-np.expm1(-GRID * time)) if is_changed else -GRID * time)
        weights = np.exp(logs - logs.max())
        ours.append(abs(believed(prior, evidence).rate / rate - 1))
        exact.append(abs(float((weights * GRID).sum() / weights.sum()) / rate - 1))
    assert np.median(ours) <= 1.1 * np.median(exact)


def test_changes_that_no_visit_saw_are_not_forgotten() -> None:
    evidence, often = Evidence(), Belief(0.5, 0.5)
    for _ in range(20):
        evidence = learnt(often, evidence, 1.0, True)
    assert believed(often, evidence).rate > 2.0, "counting alone says 1"


def test_the_evidence_of_a_page_has_at_most_24_bytes() -> None:
    evidence = Evidence()
    for time in (3.3, 1e7, 12.0):
        evidence = learnt(USUAL, evidence, time, time > 5)
    assert len(msgspec.msgpack.encode((evidence.shape, evidence.scale))) - 1 <= 24


@given(st.floats(-inf, inf), st.booleans(), st.integers(0, 10**6), st.floats(1e-3, 1e3), st.floats(1e-6, 1e12))
def test_no_time_makes_nonsense(time: float, is_changed: bool, signalled: int, shape: float, scale: float) -> None:
    prior, signals = Belief(shape, scale), Signals(10, 5, 1, 1)
    evidence = learnt(prior, Evidence(), time, is_changed, signals, signalled)
    belief = believed(prior, evidence)
    assert 0 < belief.rate < inf
    told = judged(signals, belief, time, is_changed, signalled)
    assert 0 < told.precision < 1 and 0 <= told.recall < 1
    if not 0 < time < inf:
        assert evidence == Evidence() and told == signals, "a clock that jumps teaches nothing"


@pytest.mark.parametrize("shape", [0.5, 2.0])
def test_the_prior_of_a_group_is_learnt_from_its_visits(shape: float) -> None:
    chance, group, rates = random.Random(3), RateGroup(), [0.0] * 300
    rates = [chance.gammavariate(shape, 1 / (shape * 5 * DAY)) for _ in rates]
    kept = [Evidence() for _ in rates]
    for _ in range(24):
        for at, rate in enumerate(rates):
            prior = prior_of(group)
            kept[at] = learnt(prior, kept[at], 3 * DAY, changed(chance, rate, 3 * DAY))
            group = grouped(group, believed(prior, kept[at]), 3 * DAY)
    prior = prior_of(group)
    assert prior.rate == pytest.approx(1 / (5 * DAY), rel=0.25)
    assert prior.shape == pytest.approx(shape, rel=0.4)


def test_a_group_with_few_visits_stays_near_the_wider_one() -> None:
    wide = Belief(1.0, 10 * DAY)
    once = grouped(RateGroup(), Belief(1.0, DAY / 100), DAY)
    assert prior_of(RateGroup(), wide) == wide
    assert wide.rate < prior_of(once, wide).rate < 100 / DAY / 10


@given(st.floats(0.05, 50), st.floats(1.0, 1e8), st.floats(1e-2, 1e7))
def test_a_page_waits_until_a_visit_is_worth_the_price(shape: float, scale: float, gain: float) -> None:
    belief, longest = Belief(shape, scale), 400 * DAY
    waits = wait_for(belief, gain, longest)
    if waits < longest:
        assert gain_after(belief, waits) == pytest.approx(gain, rel=1e-2)
    else:
        assert gain_after(belief, longest) <= gain * (1 + 1e-6)


def told(chance: random.Random, precision: float, recall: float) -> Signals:
    signals, rate, belief = NO_SIGNALS, 1 / DAY, Belief(50.0, 50 * DAY)
    for _ in range(3_000):
        time = DAY * chance.uniform(0.2, 2)
        true, missed = poisson(chance, rate * recall * time), poisson(chance, rate * (1 - recall) * time)
        false = poisson(chance, rate * recall * (1 - precision) / precision * time)
        signals = judged(signals, belief, time, bool(true + missed), true + false)
    return signals


def poisson(chance: random.Random, mean: float) -> int:
    left, count = exp(-mean), 0
    product = chance.random()
    while product > left:
        product *= chance.random()
        count += 1
    return count


@pytest.mark.parametrize(("precision", "recall"), [(0.8, 0.8), (0.3, 0.9), (0.95, 0.3)])
def test_precision_and_recall_of_a_hosts_signals_are_learnt(precision: float, recall: float) -> None:
    signals = told(random.Random(5), precision, recall)
    assert signals.precision == pytest.approx(precision, abs=0.07)
    assert signals.recall == pytest.approx(recall, abs=0.07)
    assert signals.is_believed


def test_a_host_that_says_all_the_time_that_all_changed_is_not_believed() -> None:
    signals = NO_SIGNALS
    for day in range(300):
        signals = judged(signals, Belief(1.0, 30 * DAY), DAY, day % 30 == 0, 24)
    assert signals.precision < 0.02 and not signals.is_believed
    assert aged(Belief(1.0, 30 * DAY), signals, DAY, 24) == DAY


@given(st.floats(0.2, 5), st.floats(1e3, 1e7), st.floats(1.0, 1e7), st.integers(0, 3))
def test_age_and_time_are_each_others_inverse(shape: float, scale: float, time: float, signalled: int) -> None:
    belief, signals = Belief(shape, scale), Signals(50, 20, 10, 1)
    age = aged(belief, signals, time, signalled)
    assert age >= time * (1 - signals.recall) * 0.999
    assert unaged(belief, signals, age, signalled) == pytest.approx(time, rel=1e-3, abs=1e-3)
