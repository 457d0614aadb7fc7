"""Policies: how long a page can wait for its next visit. Contract: `revisiting.RevisitPolicy`.

Place in the flow: the schedule asks one of them when a visit ends; `--recrawl` names it. `greedy` is the policy of
`--recrawl adaptive`; the others are there for who wants them, and for comparison.
"""

from typing import Annotated

from gossamer.contracts.revisiting import Outlook
from gossamer.flow.sheet import NoSettings, Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.change_rate import aged, unaged, wait_for
from gossamer.model.known import KnownPage

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
        """Seconds by the rule."""
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
        """Seconds by the rule."""
        if not page.waits:
            return self.sheet.first
        is_changed = page.changed_at >= page.visited_at
        return max(page.waits * (1 - self.sheet.shorter if is_changed else 1 + self.sheet.longer), _LEAST)
