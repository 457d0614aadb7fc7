"""When pages change: a Poisson process for each page, looked up at any moment without history.

Place in the flow: `render` asks when a page last changed (its Last-Modified, its revision), the
auditor asks whether a copy fetched then is still fresh now.

Time is cut into cells as long as the page's mean interval. In each cell a Poisson number of changes
(mean 1) fall at uniform moments, which is exactly a Poisson process, and the draws of a cell depend
on page and cell alone. Looking up the last change means looking into this cell and, if it is empty,
into the ones before it: 1.6 cells on average.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Final

from gossamer.simweb import draws
from gossamer.simweb.draws import MASK30

DAY: Final = 86_400

INTERVALS: Final = (
    (0.23, DAY / 4, DAY),
    (0.15, DAY, 7 * DAY),
    (0.16, 7 * DAY, 30 * DAY),
    (0.16, 30 * DAY, 120 * DAY),
    (0.30, 120 * DAY, 1200 * DAY),
)
"""Share of pages, and from what to what their mean seconds between changes lie. Shares and inner
bounds: Cho and Garcia-Molina, "The evolution of the Web and implications for an incremental
crawler", VLDB 2000; the outermost bounds, which they could not observe, are our choice."""

ROLL_BITS: Final = 14
MOMENT_BITS: Final = 16
"""Of a cell's 30 bits, those that decide how many changes fall into it, and those that decide when."""


def _poisson_ends() -> tuple[int, ...]:
    """Return, of 2^ROLL_BITS, the upper ends of 0, 1, 2, ... 7 changes in a cell of mean 1."""
    total, ends = 0.0, []
    for count in range(8):
        total += math.exp(-1) / math.factorial(count)
        ends.append(round(total * (1 << ROLL_BITS)))
    return tuple(ends)


_ENDS: Final = _poisson_ends()
_NONE, _ONE = _ENDS[:2]
_ROLL: Final = (1 << ROLL_BITS) - 1
_MULTIPLIERS: Final = draws.multipliers(0, len(_ENDS))


def _intervals() -> tuple[int, ...]:
    """Return 256 equally likely mean intervals in seconds, evenly spread by their logarithm."""
    found: list[int] = []
    for share, low, high in INTERVALS:
        count = round(share * 256)
        ratio = high / low
        found += (round(low * ratio ** ((k + 0.5) / count)) for k in range(count))
    found += [round(INTERVALS[-1][2])] * (256 - len(found))
    return tuple(found[:256])


class ChangeHistory:
    """The change histories of pages. A page is known by its bits (`Pages.bits`)."""

    def __init__(self) -> None:
        self._table = _intervals()

    def interval(self, bits: int) -> int:
        """Return the mean seconds between two changes of a page."""
        return self._table[bits & 255]

    def last(self, bits: int, moment: int) -> int:
        """Return when a page last changed, in whole seconds of the web's time, at or before
        `moment`; 0 if it never has."""
        interval = self._table[bits & 255]
        cell = moment // interval
        while cell >= 0:
            events = draws.draw(bits, cell) & MASK30
            roll = events & _ROLL
            if roll >= _NONE:
                # One change in a cell is the usual case.
                when = cell * interval + ((events >> ROLL_BITS) * interval >> MOMENT_BITS)
                latest = when if when <= moment else 0
                if roll >= _ONE:
                    latest = max(latest, _latest_of_more(events, cell * interval, interval, moment))
                if latest:
                    return latest
            cell -= 1
        return 0


def _latest_of_more(events: int, begin: int, interval: int, moment: int) -> int:
    """Return the last change that is not after `moment` in a cell of several, its first apart; 0 if there is none."""
    latest = 0
    for number in range(bisect_right(_ENDS, events & _ROLL) - 1):
        when = begin + ((events * _MULTIPLIERS[number] & MASK30) * interval >> 30)
        if latest < when <= moment:
            latest = when
    return latest
