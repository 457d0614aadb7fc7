"""Shares of `--rate` and `--bandwidth`: never more than the whole together, and where the work is."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.agents.shares import ENOUGH, LEAST, LOOSE, WINDOW, RateShares, divided
from gossamer.frontier.politeness.whole_crawl import RateUse

#: Units a second of an even part.
PART = 100.0

#: Seconds between two rounds of the supervisor.
ROUND = 0.1


class Worker:
    """An agent that uses its share as far as it has work."""

    def __init__(self, wants: float) -> None:
        self.wants = wants
        """Of an even part."""
        self.share = 1.0
        self.used = 0.0

    def step(self, part: float) -> RateUse:
        self.used += min(self.wants, self.share) * part * ROUND
        return RateUse(part, self.share, self.used)


class Crawl:
    """Agents and their lender, by a clock of their own."""

    def __init__(self, *wants: float, part: float = PART) -> None:
        self.part = part
        self.workers = {f"agent-{number:02d}": Worker(one) for number, one in enumerate(wants)}
        self.shares = RateShares(self.workers)
        self.now = 0.0

    def go_on(self, seconds: float, hears: Callable[[str], bool] = lambda name: True) -> None:
        for _ in range(round(seconds / ROUND)):
            self.now += ROUND
            for name, worker in self.workers.items():
                use = worker.step(self.part)
                if hears(name):
                    self.shares.hear(name, use, self.now)
            for name, share in self.shares.decide().items():
                if hears(name):
                    self.workers[name].share = share
            assert self.sum <= len(self.workers) + 1e-6

    @property
    def sum(self) -> float:
        return sum(worker.share for worker in self.workers.values())

    @property
    def lent(self) -> list[float]:
        return [worker.share for worker in self.workers.values()]


def test_an_idle_agents_share_goes_to_a_busy_one_and_comes_back_when_it_finds_work() -> None:
    crawl = Crawl(9.0, 0.0)
    crawl.go_on(2 * WINDOW)
    assert crawl.lent == pytest.approx([2 - LEAST, LEAST])
    crawl.workers["agent-01"].wants = 9.0
    crawl.go_on(3 * WINDOW)
    assert crawl.lent == pytest.approx([1.0, 1.0])


def test_agents_that_are_all_busy_or_all_idle_keep_even_parts() -> None:
    for wants in (9.0, 0.0, 0.5):
        crawl = Crawl(wants, wants, wants)
        crawl.go_on(5 * WINDOW)
        assert crawl.lent == [1.0, 1.0, 1.0]


def test_an_agent_keeps_what_it_uses_and_those_that_are_short_divide_the_rest() -> None:
    crawl = Crawl(0.4, 9.0, 9.0)
    crawl.go_on(4 * WINDOW)
    whole = (3 - 0.4 / LOOSE) / 2
    assert crawl.lent == pytest.approx([0.4 / LOOSE, whole, whole], abs=0.06)
    assert min(crawl.lent) > 0.4, "who gives has what it needs"


def test_a_share_becomes_more_only_when_who_has_less_has_confirmed_it() -> None:
    crawl = Crawl(9.0, 0.0)
    # From the middle on, nothing reaches the idle agent any more: it may go by its old share for ever.
    crawl.go_on(WINDOW - ROUND)
    crawl.go_on(5 * WINDOW, hears=lambda name: name == "agent-00")
    assert crawl.lent == [1.0, 1.0]


def test_a_slow_rate_is_measured_for_as_long_as_it_takes() -> None:
    crawl = Crawl(9.0, 0.0, part=1.0)
    crawl.go_on(ENOUGH - 1)
    assert crawl.lent == [1.0, 1.0]
    crawl.go_on(2.0)
    assert crawl.lent[0] > 1.5


def test_agents_that_have_too_much_together_are_told_to_have_less_at_once() -> None:
    crawl = Crawl(9.0, 9.0)
    shares = RateShares(crawl.workers)
    for name, share in (("agent-00", 1.9), ("agent-01", 1.0)):
        shares.hear(name, RateUse(PART, share, 0.0), 0.0)
    told = shares.decide()
    assert sum(told.values()) == pytest.approx(2.0)
    assert told.keys() == crawl.workers.keys()


def test_a_lender_that_takes_over_lends_nothing_before_all_have_spoken() -> None:
    shares = RateShares(["agent-00", "agent-01"])
    for number in range(100):
        shares.hear("agent-00", RateUse(PART, 1.0, number * PART * ROUND), number * ROUND)
        assert shares.decide() == {}


@given(
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 5.0]), min_size=2, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["deaf", "dies", "idle", "busy"])), max_size=12),
)
def test_shares_are_never_more_than_the_whole_whatever_agents_and_messages_do(
    wants: list[float], events: list[tuple[int, str]]
) -> None:
    crawl = Crawl(*wants)
    for index, event in events:
        name = list(crawl.workers)[index % len(wants)]
        worker = crawl.workers[name]
        if event == "dies":
            worker.used = 0.0  # its share is in its ledger
        elif event in ("idle", "busy"):
            worker.wants = 0.0 if event == "idle" else 9.0
        crawl.go_on(WINDOW, hears=(lambda one, deaf=name: one != deaf) if event == "deaf" else lambda one: True)  # type: ignore[misc]


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8))
def test_nobody_gets_more_than_it_wants_nor_less_than_one_that_wants_no_more(wants: list[float]) -> None:
    whole = float(len(wants))
    parts = divided(whole, wants)
    assert sum(parts) == pytest.approx(min(whole, sum(wants)))
    for want, part in zip(wants, parts, strict=True):
        assert part <= want + 1e-9
        assert part >= want - 1e-9 or part == pytest.approx(max(parts)), "who waits has no less than anybody"


def test_what_agents_tell_of_rates_goes_over_the_line() -> None:
    use = RateUse(PART, 0.5, 17.0)
    assert msgspec.json.decode(msgspec.json.encode({"rate": use}), type=dict[str, RateUse]) == {"rate": use}
