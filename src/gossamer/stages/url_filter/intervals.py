"""Bounds for the time between two visits, of single hosts and of pages that an expression is true of.

Place in the flow: the schedule of known pages (:mod:`gossamer.stores.revisits.schedule`) asks for a page's bounds when it says when
the page is visited again. It stands here because the language of filters does.
"""

from typing import Annotated

import msgspec

from gossamer.contracts.revisiting import Bounds
from gossamer.expressions.compiling import Expression
from gossamer.expressions.scanning import ExpressionError
from gossamer.expressions.syntax import tests
from gossamer.flow import quantities
from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.errors import UsageError
from gossamer.model.host_table import HostTable
from gossamer.model.task import Task

_NONE = Bounds()

_FORM = "write MIN..MAX: EXPRESSION, as '1h..1d: path(\"/news/**\")'; either time may be left out"


class IntervalSheet(Sheet, frozen=True):
    """Settings of :class:`IntervalBounds`."""

    rules: Annotated[
        tuple[str, ...],
        setting(
            "Keep these bounds for pages that an expression is true of, each as `MIN..MAX: EXPRESSION`; the first that fits holds, "
            "before the bounds of hosts and those of the crawl."
        ),
    ] = ()
    min_by_host: Annotated[
        dict[str, float],
        setting("Wait at least this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)
    max_by_host: Annotated[
        dict[str, float],
        setting("Wait at most this long between two visits of a page of these hosts, as `*.example.org`.", unit="s"),
    ] = msgspec.field(default_factory=dict)


class IntervalBounds(Provider[IntervalSheet]):
    """Knows bounds of single hosts and pages. Contract: `revisiting.IntervalRules`.

    Raises:
        SettingError: a rule or host cannot be read, or asks for more than the URL.
    """

    def __init__(self, sheet: IntervalSheet | None = None) -> None:
        super().__init__(sheet)
        self._read()

    def changed(self, before: IntervalSheet) -> None:
        """Take the new rules, or keep the old ones if a new one is bad. Pages obey when their next visit is judged."""
        self._read()

    def _read(self) -> None:
        sheet = self.sheet
        for name, table in (("min_by_host", sheet.min_by_host), ("max_by_host", sheet.max_by_host)):
            if wrong := [host for host, seconds in table.items() if not seconds > 0]:
                raise SettingError(f"setting {name!r}: the time of {wrong[0]!r} must be above 0")
        try:
            least, most = HostTable(sheet.min_by_host), HostTable(sheet.max_by_host)
        except UsageError as error:
            raise SettingError(str(error)) from None
        rules = [_rule(text) for text in sheet.rules]
        self._rules, self._least, self._most = rules, least, most

    def bounds_of(self, host: str) -> Bounds:
        """The bounds of a host."""
        least, most = self._least.get(host), self._most.get(host)
        return _NONE if least is most is None else Bounds(least, most)

    def bounds(self, url: str, host: str) -> Bounds:
        """The bounds of the first rule that a URL fits; none where it fits none."""
        if self._rules:
            task = Task(url, host)
            for expression, bounds in self._rules:
                if not expression.judge(task):
                    return bounds
        return _NONE


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
    """Seconds; None for nothing. Raises ValueError for what is no time above 0."""
    if not text.strip():
        return None
    seconds = quantities.parse(text.strip(), "s")
    if not seconds > 0:
        raise ValueError(f"{text.strip()!r} is no time above 0")
    return seconds
