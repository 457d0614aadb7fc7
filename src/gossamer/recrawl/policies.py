"""How long a page can wait for its next visit: settings of the schedule, bounds that a person sets, the policies, and the price of
a visit that keeps within the budget.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Annotated

import msgspec

from gossamer.engine import sheet
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.compiling import Expression
from gossamer.expressions.syntax import ExpressionError, tests
from gossamer.frontier.contract import Outlook
from gossamer.recrawl.options import Intervals, MaxInterval, MinInterval
from gossamer.values.errors import UsageError
from gossamer.values.hosts import HostTable
from gossamer.values.page_history import Belief, KnownPage, aged, gain_after, unaged, wait_for
from gossamer.values.task import Task

# Settings of the schedule of known pages. `--recrawl` and the options that belong to it set them, and
# :mod:`~gossamer.recrawl.schedule` obeys them.


class RevisitSheet(Sheet, frozen=True):
    is_active: Annotated[bool, setting("Visit known pages again; if off, only compute the times of these visits.")] = (
        True
    )
    rate: Annotated[
        float,
        setting("While there are new pages, spend at most this share of all requests on known pages.", gt=0, le=1),
    ] = 0.5
    min_interval: MinInterval = 3_600.0
    max_interval: MaxInterval = 90 * 86_400.0
    mean_interval: Annotated[
        float,
        setting(
            "If the policy uses a price, set it so that an average page is visited once in this time.",
            unit="s",
            gt=0,
        ),
    ] = 7 * 86_400.0
    weighs: Annotated[
        bool,
        setting(
            "Use the priority level at which a new page waited as its importance; each level counts half of the one "
            "before."
        ),
    ] = False
    intervals: Intervals = ()
    min_by_host: Annotated[
        dict[str, Annotated[float, msgspec.Meta(gt=0)]],
        setting("Wait at least this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)
    max_by_host: Annotated[
        dict[str, Annotated[float, msgspec.Meta(gt=0)]],
        setting("Wait at most this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)


# Bounds for the time between two visits, of single hosts and of pages that an expression is true of. The schedule of known pages
# (:mod:`~gossamer.recrawl.schedule`) asks for the bounds of a page when it says when the page is visited again.

_FORM = "write MIN..MAX: EXPRESSION, as '1h..1d: path(\"/news/**\")'; either time may be left out"


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """The least and the longest time between two visits, in seconds; None says nothing."""

    least: float | None = None
    most: float | None = None

    def within(self, least: float, most: float) -> tuple[float, float]:
        """These bounds in the place of coarser ones, which give way where the two do not meet."""
        if self.least is not None:
            least, most = self.least, max(most, self.least)
        if self.most is not None:
            least, most = min(least, self.most), self.most
        return least, most


_NONE = Bounds()


class IntervalRules:
    """Bounds of single hosts and pages. Those of a page come before those of its host, and these before the crawl's.

    Args:
        rules: each as `MIN..MAX: EXPRESSION`; the first that is true of a URL holds.
        min_by_host: seconds by host or pattern of hosts, as `*.example.org`.

    Raises:
        SettingError: a rule or a host cannot be read, or a rule asks for more than the URL.
    """

    def __init__(
        self,
        rules: Sequence[str] = (),
        min_by_host: Mapping[str, float] | None = None,
        max_by_host: Mapping[str, float] | None = None,
    ) -> None:
        self._rules = [_rule(text) for text in rules]
        self._least, self._most = _table("min_by_host", min_by_host), _table("max_by_host", max_by_host)

    def __repr__(self) -> str:
        return f"<IntervalRules, {len(self._rules)} for pages>"

    def within(self, url: str, host: str, least: float, most: float) -> tuple[float, float]:
        return self.of_page(url, host).within(*self.of_host(host).within(least, most))

    def of_host(self, host: str) -> Bounds:
        least, most = self._least.get(host), self._most.get(host)
        return _NONE if least is most is None else Bounds(least, most)

    def of_page(self, url: str, host: str) -> Bounds:
        """The bounds of the first rule that a URL fits; none where it fits none."""
        if self._rules:
            task = Task(url, host)
            for expression, bounds in self._rules:
                if not expression.judge(task):
                    return bounds
        return _NONE


def _table(name: str, seconds: Mapping[str, float] | None) -> HostTable[float]:
    if wrong := [host for host, time in (seconds or {}).items() if not time > 0]:
        raise SettingError(f"setting {name!r}: the time of {wrong[0]!r} must be above 0")
    try:
        return HostTable(seconds)
    except UsageError as error:
        raise SettingError(f"setting {name!r}: {error}") from None


def _rule(text: str) -> tuple[Expression, Bounds]:
    """A rule as a person writes it. Raises SettingError: it cannot be read; says what is wrong with it."""
    times, colon, source = text.partition(":")
    least, dots, most = times.partition("..")
    if not colon or not source.strip() or not times.strip():
        raise SettingError(f"interval {text!r}: {_FORM}")
    try:
        bounds = Bounds(_time(least), _time(most if dots else least))
        expression = Expression(source.strip(), "schedule")
    except ExpressionError as error:
        raise SettingError(f"interval {text!r}: {error}") from None
    except ValueError as error:
        raise SettingError(f"interval {text!r}: {error}; {_FORM}") from None
    if bounds == _NONE:
        raise SettingError(f"interval {text!r}: {_FORM}")
    if bounds.least is not None and bounds.most is not None and bounds.least > bounds.most:
        raise SettingError(f"interval {text!r}: the first time is longer than the second")
    if others := sorted({test.fact for test in tests(expression.tree)} - {"url"}):
        raise SettingError(
            f"interval {text!r}: {others[0]!r} is not known here; a rule may ask for the URL and its parts"
        )
    return expression, bounds


def _time(text: str) -> float | None:
    """Seconds; None for nothing. Raises ValueError for what is not a time above 0."""
    if not text.strip():
        return None
    seconds = sheet.parse(text.strip(), "s")
    if not seconds > 0:
        raise ValueError(f"{text.strip()!r} is not a time above 0")
    return seconds


# Policies: how long a page can wait for its next visit. Contract: `frontier.contract.RevisitPolicy`. The schedule asks one of them
# when a visit ends; `--recrawl` names it. `greedy` is the policy of `--recrawl adaptive`.

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
    every: Annotated[float, setting("Visit each page again after this time.", unit="s", gt=0)] = 7 * 86_400.0


class FixedInterval(Provider[FixedIntervalSheet]):
    """Visits all pages at the same interval (`--recrawl every=TIME`)."""

    is_priced = False

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        return self.sheet.every


class ProportionalSheet(Sheet, frozen=True):
    visits: Annotated[float, setting("Visit a page this many times for each expected change.", gt=0)] = 1.0


class Proportional(Provider[ProportionalSheet]):
    """Visits pages that change twice as often twice as often."""

    is_priced = False

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
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


# The price of a visit: it rises while more pages are worth one than there may be visits, and falls while fewer are. The schedule
# asks for the price when it says how long a page waits, and reports the visits that it queues. No page but the one at hand is
# looked at, so the price costs the same for ten pages and ten million.

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
