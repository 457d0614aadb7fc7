"""Settings of the schedule of known pages, and the bounds that a person sets for the time between two visits."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from gossamer.engine import sheet
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.expressions.compiling import Expression
from gossamer.expressions.syntax import ExpressionError, tests
from gossamer.values.errors import UsageError
from gossamer.values.hosts import HostTable
from gossamer.values.task import Task

# Settings of the schedule of known pages.
#
# Place in the flow: `--recrawl` and the options that belong to it set them, and :mod:`~gossamer.recrawl.schedule` obeys them.


class RevisitSheet(Sheet, frozen=True):
    """Settings of :class:`~gossamer.recrawl.schedule.RevisitSchedule`."""

    is_active: Annotated[bool, setting("Visit known pages again; if off, only compute the times of these visits.")] = (
        True
    )
    rate: Annotated[
        float,
        setting("While there are new pages, spend at most this share of all requests on known pages.", gt=0, le=1),
    ] = 0.5
    min_interval: Annotated[float, setting("Wait at least this long between two visits.", unit="s", gt=0)] = 3_600.0
    max_interval: Annotated[float, setting("Wait at most this long between two visits.", unit="s", gt=0)] = (
        90 * 86_400.0
    )
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
    intervals: Annotated[
        tuple[str, ...],
        setting(
            "Use these bounds for pages for which an expression is true, each as `MIN..MAX: EXPRESSION`. The first "
            "expression that matches counts, and it wins over the bounds of hosts and of the crawl."
        ),
    ] = ()
    min_by_host: Annotated[
        dict[str, Annotated[float, msgspec.Meta(gt=0)]],
        setting("Wait at least this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)
    max_by_host: Annotated[
        dict[str, Annotated[float, msgspec.Meta(gt=0)]],
        setting("Wait at most this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)


# Bounds for the time between two visits, of single hosts and of pages that an expression is true of.
#
# Place in the flow: the schedule of known pages (:mod:`~gossamer.recrawl.schedule`) asks for the bounds of a page when it
# says when the page is visited again.


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
        max_by_host: likewise.

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
        """The bounds of a page, where these are the crawl's."""
        return self.of_page(url, host).within(*self.of_host(host).within(least, most))

    def of_host(self, host: str) -> Bounds:
        """The bounds of a host, in its canonical form."""
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
    """A rule as a person writes it.

    Raises:
        SettingError: it cannot be read; says what is wrong with it.
    """
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
