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

CELL_LIMIT: Final = 200
"""Empty cells in a row before giving up; the chance of as many is e^-200."""


def _poisson_ends() -> tuple[int, ...]:
    """Return, of 65536, the upper ends of 0, 1, 2, ... 8 changes in a cell of mean 1."""
    total, ends = 0.0, []
    for count in range(9):
        total += math.exp(-1) / math.factorial(count)
        ends.append(round(total * 65536))
    return tuple(ends[:-1])


_ENDS: Final = _poisson_ends()
_NONE, _ONE = _ENDS[:2]


def _intervals() -> tuple[int, ...]:
    """Return 256 equally likely mean intervals in seconds, evenly spread by their logarithm."""
    found: list[int] = []
    for share, low, high in INTERVALS:
        count = round(share * 256)
        ratio = high / low
        found += (round(low * ratio ** ((k + 0.5) / count)) for k in range(count))
    found += [round(INTERVALS[-1][2])] * (256 - len(found))
    return tuple(found[:256])


class Changes:
    """The change histories of pages. A page is known by its bits (`Pages.bits`)."""

    def __init__(self) -> None:
        self._table = _intervals()

    def interval(self, bits: int) -> int:
        """Return the mean seconds between two changes of a page."""
        return self._table[bits & 255]

    def last(self, bits: int, moment: float) -> int:
        """Return when a page last changed, in whole seconds of the web's time, at or before
        `moment`; 0 if it never has."""
        interval = self._table[bits & 255]
        cell = int(moment) // interval
        for number in range(cell, max(-1, cell - CELL_LIMIT), -1):
            events = draws.mix(bits + number)
            roll = events & 65535
            if roll < _NONE:
                continue
            if roll < _ONE:
                # One change in a cell is the usual case.
                when = number * interval + (events >> 16) % interval
                if when <= moment:
                    return when
            else:
                latest = _latest_in(events, number, interval, moment)
                if latest is not None:
                    return latest
        return 0


def _latest_in(bits: int, cell: int, interval: int, moment: float) -> int | None:
    """Return the last change within one cell (whose draw is `bits`) that is not after `moment`."""
    count = bisect_right(_ENDS, bits & 65535)
    latest: int | None = None
    for _ in range(count):
        when = cell * interval + (bits >> 16) % interval
        if when <= moment and (latest is None or when > latest):
            latest = when
        if count > 1:
            bits = draws.mix(bits)
    return latest
