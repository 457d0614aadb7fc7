"""Bounds for the time between two visits, of single hosts and of pages that an expression is true of.

Place in the flow: the schedule of known pages (:mod:`~gossamer.stores.revisits.schedule`) asks for the bounds of a page when it
says when the page is visited again.
"""

from collections.abc import Mapping, Sequence

import msgspec

from gossamer.expressions.compiling import Expression
from gossamer.expressions.scanning import ExpressionError
from gossamer.expressions.syntax import tests
from gossamer.flow import quantities
from gossamer.flow.errors import SettingError
from gossamer.model.errors import UsageError
from gossamer.model.host_table import HostTable
from gossamer.model.task import Task

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
    seconds = quantities.parse(text.strip(), "s")
    if not seconds > 0:
        raise ValueError(f"{text.strip()!r} is not a time above 0")
    return seconds
