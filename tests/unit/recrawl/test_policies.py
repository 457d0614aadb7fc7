"""Policies: they keep the contract, and each follows its own rule."""

import pytest

from gossamer.frontier.contract import Outlook, RevisitPolicy
from gossamer.recrawl.policies import (
    FixedInterval,
    FixedIntervalSheet,
    GreedyPolicy,
    NutchAdaptive,
    NutchSheet,
    Proportional,
    ProportionalSheet,
    StormCrawlerAdaptive,
    StormCrawlerSheet,
)
from gossamer.testing import check_revisit_policy
from gossamer.values.page_history import Belief, KnownPage, Signals, gain_after

DAY = 86_400.0


@pytest.mark.parametrize(
    "policy",
    [
        FixedInterval(FixedIntervalSheet(every=5.0)),
        GreedyPolicy(),
        Proportional(),
        NutchAdaptive(),
        StormCrawlerAdaptive(),
    ],
)
def test_the_shipped_policies_keep_the_promises(policy: RevisitPolicy) -> None:
    check_revisit_policy(policy)


def test_a_policy_that_is_not_pure_is_found() -> None:
    class Counting:
        asked = 0
        is_priced = False

        def interval(self, page: object, outlook: object) -> float:
            self.asked += 1
            return float(self.asked)

    with pytest.raises(AssertionError, match="same page"):
        check_revisit_policy(Counting())


def test_a_policy_that_waits_shorter_for_dearer_visits_is_found() -> None:
    class Backwards:
        is_priced = True

        def interval(self, page: object, outlook: Outlook) -> float:
            return 1 / outlook.price

    with pytest.raises(AssertionError, match="costs more"):
        check_revisit_policy(Backwards())


def test_a_page_is_visited_when_that_is_worth_the_price() -> None:
    outlook = Outlook(Belief(2.0, 20 * DAY), weight=4.0, price=8 * 3_600.0)
    waits = GreedyPolicy().interval(KnownPage(), outlook)
    assert gain_after(outlook.belief, waits) * 4 == pytest.approx(8 * 3_600.0)


def test_an_important_page_and_one_that_is_said_to_have_changed_come_sooner() -> None:
    policy, belief = GreedyPolicy(), Belief(1.0, 10 * DAY)
    proved, lied = Signals(true=80, false=20, missed=20, worth=9), Signals(true=1, false=10_000, missed=20, worth=-9)
    usual = policy.interval(KnownPage(), Outlook(belief))
    assert policy.interval(KnownPage(), Outlook(belief, weight=8.0)) < usual / 2
    quiet = policy.interval(KnownPage(), Outlook(belief, signals=proved))
    assert quiet > usual * 2, "a host that tells is visited less where it is quiet"
    assert policy.interval(KnownPage(signalled=1), Outlook(belief, signals=proved)) < usual / 2
    assert policy.interval(KnownPage(signalled=1), Outlook(belief, signals=lied)) > usual * 0.9, (
        "a liar is not believed"
    )


def test_a_page_that_changes_too_fast_to_be_kept_fresh_waits_for_the_longest_time() -> None:
    often = Outlook(Belief(100.0, 100 * 60.0), price=DAY, longest=30 * DAY)
    assert GreedyPolicy().interval(KnownPage(), often) == pytest.approx(30 * DAY)


def test_proportional_visits_once_for_each_change() -> None:
    assert Proportional().interval(KnownPage(), Outlook(Belief(3.0, 6 * DAY))) == pytest.approx(2 * DAY)


def test_nutch_lengthens_by_four_tenths_shortens_by_a_fifth_and_follows_the_last_change() -> None:
    policy, outlook = NutchAdaptive(), Outlook()
    assert policy.interval(KnownPage(), outlook) == 30 * DAY
    assert policy.interval(KnownPage(visited_at=9 * DAY, changed_at=9 * DAY, waits=DAY), outlook) == pytest.approx(
        0.8 * DAY
    )
    stayed = KnownPage(visited_at=9 * DAY, changed_at=8 * DAY, waits=DAY)
    assert policy.interval(stayed, outlook) == pytest.approx(1.4 * DAY - 0.3 * DAY)
    long = KnownPage(visited_at=9 * DAY, changed_at=4 * DAY, waits=DAY)
    assert policy.interval(long, outlook) == pytest.approx(5 * DAY - 0.3 * 5 * DAY)


def test_stormcrawler_lengthens_by_half_and_halves() -> None:
    policy, outlook = StormCrawlerAdaptive(), Outlook()
    assert policy.interval(KnownPage(), outlook) == DAY
    assert policy.interval(KnownPage(visited_at=9.0, changed_at=9.0, waits=DAY), outlook) == pytest.approx(DAY / 2)
    assert policy.interval(KnownPage(visited_at=9.0, changed_at=8.0, waits=DAY), outlook) == pytest.approx(1.5 * DAY)


def test_the_shares_of_the_rules_can_be_set() -> None:
    changed = KnownPage(visited_at=9 * DAY, changed_at=9 * DAY, waits=DAY)
    stayed = KnownPage(visited_at=9 * DAY, changed_at=8.9 * DAY, waits=DAY)
    for policy in (
        NutchAdaptive(NutchSheet(first=5.0, longer=1.0, shorter=0.9)),
        StormCrawlerAdaptive(StormCrawlerSheet(first=5.0, longer=1.0, shorter=0.9)),
    ):
        assert policy.interval(KnownPage(), Outlook()) == 5.0
        assert policy.interval(changed, Outlook()) == pytest.approx(0.1 * DAY)
        assert policy.interval(stayed, Outlook()) == pytest.approx(2 * DAY, rel=0.02)
    twice = Proportional(ProportionalSheet(visits=2.0))
    assert twice.interval(KnownPage(), Outlook(Belief(1.0, DAY))) == pytest.approx(DAY / 2)
