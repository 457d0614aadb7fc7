"""How long a page can wait for its next visit: the policies, and the price of a visit that keeps within the budget."""

from math import exp
from typing import Annotated

import msgspec

from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.seams import Outlook
from gossamer.values.change_rate import Belief, aged, gain_after, unaged, wait_for
from gossamer.values.page_history import KnownPage

# Policies: how long a page can wait for its next visit. Contract: `revisiting.RevisitPolicy`.
#
# Place in the flow: the schedule asks one of them when a visit ends; `--recrawl` names it. `greedy` is the policy of
# `--recrawl adaptive`; the others are there for who wants them, and for comparison.


#: The least interval that a policy says, in seconds: the contract wants one above 0, and the user's bounds are far above it.
_LEAST = 1e-3

#: Of the time since a page's last change, Nutch takes this share off the wait to come near the next change (`sync_delta_rate`).
_SYNC_RATE = 0.3


class GreedyPolicy(Provider[NoSettings]):
    """Visits a page when the expected gain exceeds the price of a visit: the threshold policy of Busa-Fekete and others
    (2025), with an estimate in place of the page's true rate of change."""

    is_priced = True

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        """Seconds until a visit is worth the price, given the signals that came."""
        belief, signals = outlook.belief, outlook.signals
        oldest = aged(belief, signals, outlook.longest, page.signalled)
        age = wait_for(belief, outlook.price / outlook.weight, oldest)
        return min(max(unaged(belief, signals, age, page.signalled), _LEAST), outlook.longest)


class FixedIntervalSheet(Sheet, frozen=True):
    """Settings of :class:`FixedInterval`."""

    every: Annotated[float, setting("Visit each page again after this time.", unit="s", gt=0)] = 7 * 86_400.0


class FixedInterval(Provider[FixedIntervalSheet]):
    """Visits all pages at the same interval (`--recrawl every=TIME`)."""

    is_priced = False

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        """Seconds to the next visit: as the setting says."""
        return self.sheet.every


class ProportionalSheet(Sheet, frozen=True):
    """Settings of :class:`Proportional`."""

    visits: Annotated[float, setting("Visit a page this many times for each expected change.", gt=0)] = 1.0


class Proportional(Provider[ProportionalSheet]):
    """Visits pages that change twice as often twice as often."""

    is_priced = False

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        """Seconds in which so many changes are expected."""
        return max(1 / (outlook.belief.rate * self.sheet.visits), _LEAST)


class NutchSheet(Sheet, frozen=True):
    """Settings of :class:`NutchAdaptive`, with the defaults of Nutch's file `nutch-default.xml`."""

    first: Annotated[float, setting("Wait this long after the first visit.", unit="s", gt=0)] = 30 * 86_400.0
    longer: Annotated[float, setting("Lengthen the wait by this share if nothing changed.", ge=0)] = 0.4
    shorter: Annotated[float, setting("Shorten the wait by this share if the page changed.", ge=0, lt=1)] = 0.2


class NutchAdaptive(Provider[NutchSheet]):
    """Follows Nutch's adaptive schedule: the wait grows by a share while a page stays unchanged, and shrinks by a share
    when it changes. A page that stayed unchanged for longer than its wait gets that time as its wait, and is visited
    earlier by a share of it."""

    is_priced = False

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        sheet = self.sheet
        if not page.waits:
            return sheet.first
        is_changed = page.changed_at >= page.visited_at
        waits = page.waits * (1 - sheet.shorter if is_changed else 1 + sheet.longer)
        stayed = max(page.visited_at - page.changed_at, 0.0)
        return max(max(waits, stayed) - stayed * _SYNC_RATE, _LEAST)


class StormCrawlerSheet(Sheet, frozen=True):
    """Settings of :class:`StormCrawlerAdaptive`, with the values of the documentation of StormCrawler's `AdaptiveScheduler`."""

    first: Annotated[float, setting("Wait this long after the first visit.", unit="s", gt=0)] = 86_400.0
    longer: Annotated[float, setting("Lengthen the wait by this share if nothing changed.", ge=0)] = 0.5
    shorter: Annotated[float, setting("Shorten the wait by this share if the page changed.", ge=0, lt=1)] = 0.5


class StormCrawlerAdaptive(Provider[StormCrawlerSheet]):
    """Follows StormCrawler's adaptive scheduler: the wait grows by half while a page stays unchanged, and is halved
    when it changes."""

    is_priced = False

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        if not page.waits:
            return self.sheet.first
        is_changed = page.changed_at >= page.visited_at
        return max(page.waits * (1 - self.sheet.shorter if is_changed else 1 + self.sheet.longer), _LEAST)


# The price of a visit: it rises while more pages are worth one than there may be visits, and falls while fewer are.
#
# Place in the flow: the schedule asks for the price when it says how long a page waits, and reports the visits that it
# queues. No page but the one at hand is looked at, so the price costs the same for ten pages and ten million.

#: Visits that may be ahead of the rate or behind it, as a share of the known pages, and at least: the price follows this
#: difference.
_AHEAD, _LEAST_AHEAD = 0.02, 32.0

#: By how many powers of e the price answers at once when the visits are as far ahead as they may be, and how many more in the time
#: of one mean interval. The first keeps it steady, the second brings it to its place.
_AT_ONCE, _IN_TIME = 2.0, 2.0

#: The price goes at most this far from the worth of a usual page after the mean interval, in powers of e: it comes back soon.
_FURTHEST = 6.0


class Price(msgspec.Struct, array_like=True):
    """The price, as it is kept between runs. Call :meth:`step` before the rest; times are in seconds."""

    at: float = 0.0
    """Wall time of the last step."""
    credit: float = 0.0
    """Visits that there may be yet; below 0 they are ahead."""
    offset: float = 0.0
    """By how many powers of e the price is above the worth of a usual page."""
    most: float = _LEAST_AHEAD
    """By how many visits they may be ahead or behind."""

    def step(self, now: float, known: int, mean_interval: float) -> None:
        """Time has passed. A clock that goes back changes nothing; one that leaps brings what a full credit is."""
        passed, self.at = max(now - self.at, 0.0) if self.at else 0.0, now
        self.most = max(known * _AHEAD, _LEAST_AHEAD)
        self.credit = min(self.credit + passed * known / mean_interval, self.most)
        if passed < mean_interval:  # a longer time is a pause, which says nothing of the price
            change = _IN_TIME * self.credit / self.most * passed / mean_interval
            self.offset = min(max(self.offset - change, -_FURTHEST), _FURTHEST)

    def hold(self, now: float) -> None:
        """Time has passed in which visits were kept back for other reasons: the price stays."""
        self.at = now

    @property
    def room(self) -> int:
        """How many visits there may be at once."""
        return max(int(self.credit + self.most), 0)

    def spend(self, visits: int) -> None:
        self.credit -= visits

    def now(self, usual: Belief, mean_interval: float) -> float:
        """Seconds of freshness that a visit must be worth; `usual` is what is believed of all pages."""
        ahead = min(max(self.credit / self.most, -1.0), 1.0)
        return gain_after(usual, mean_interval) * exp(self.offset - _AT_ONCE * ahead)
