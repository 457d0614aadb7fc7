"""What an agent is lent of `--rate` and `--bandwidth` outlives it, and holds among the same agents only."""

from typing import Any, cast

import pytest

from gossamer.agents.shares import LentRates
from gossamer.crawls.figures import UnitsAtWork
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.values.errors import DiskFull

TWO = ("agent-00", "agent-01")


class Kept:
    """As much of a ledger as shares need."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.is_full = False

    def meta(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def put_meta(self, name: str, value: bytes) -> None:
        if self.is_full:
            raise DiskFull("no space left")
        self.kept[name] = value


class Life:
    """An agent's units in one life."""

    def __init__(self, ledger: Kept) -> None:
        self.ledger = ledger
        self.polite = HostPoliteness(PolitenessSheet(rate=10.0, bandwidth=1000.0))
        self.http = HttpModule(HttpSheet(bandwidth=1000.0))
        self.signals = 0

    @property
    def frontier(self) -> "Life":
        return self

    def signal(self, name: str) -> None:
        self.signals += 1

    def providers(self, kind: type) -> list[Any]:
        return [one for one in (self.polite, self.http) if isinstance(one, kind)]

    def lent(self, among: tuple[str, ...] = TWO) -> LentRates:
        lent = LentRates(cast(UnitsAtWork, self), among)
        lent.begin()
        return lent

    def shares(self, lent: LentRates) -> tuple[float, float, float]:
        """Of pages, of bytes of requests, of bytes that come in."""
        uses = lent.uses()
        assert self.http._valve is not None
        return uses["rate"].share, uses["bandwidth"].share, self.http._valve.rate / 1000.0


def test_an_agent_that_comes_back_goes_by_the_shares_that_it_had() -> None:
    ledger, life = Kept(), Life(Kept())
    life.ledger = ledger
    lent = life.lent()
    assert life.shares(lent) == (1.0, 1.0, 1.0)
    lent.take({"rate": 1.5})
    lent.take({"bandwidth": 0.2})
    assert life.shares(lent) == (1.5, 0.2, 0.2)
    assert life.signals == 2, "the frontier looks again"
    later = Life(ledger)
    assert later.shares(later.lent()) == (1.5, 0.2, 0.2)


@pytest.mark.parametrize("among", [("agent-00",), ("agent-00", "agent-02"), ("agent-00", "agent-01", "agent-02")])
def test_shares_that_were_divided_among_other_agents_are_not_used(among: tuple[str, ...]) -> None:
    ledger = Kept()
    Life(ledger).lent().take({"rate": 1.9, "bandwidth": 1.9})
    later = Life(ledger)
    assert later.shares(later.lent(among)) == (1.0, 1.0, 1.0)


def test_shares_that_cannot_be_kept_are_not_taken() -> None:
    ledger = Kept()
    life = Life(ledger)
    lent = life.lent()
    ledger.is_full = True
    lent.take({"rate": 0.1, "bandwidth": 1.9})
    assert life.shares(lent) == (1.0, 1.0, 1.0), "nobody is lent the difference before it says so"


def test_a_bandwidth_that_is_set_anew_is_lent_in_the_same_share() -> None:
    life = Life(Kept())
    life.lent().take({"bandwidth": 0.5})
    before, life.http.sheet = life.http.sheet, HttpSheet(bandwidth=4000.0)
    life.http.changed(before)
    assert life.http._valve is not None
    assert life.http._valve.rate == 2000.0
