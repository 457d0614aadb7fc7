"""Instants as text, and names that nothing else has.

Place in the flow: archive, log and tables write instants in one form, and :func:`read_date` reads those that servers write. The
commit numbers each visit once, when its outcome is settled; the row logs name their runs. A name is made of the time, for people
and for order, and of random bits, so that agents, runs and copies of a crawl need no agreement.
"""

import itertools
import os
import re
from datetime import UTC, datetime
from functools import lru_cache

#: What stands between two delimiters of RFC 6265, section 5.1.1, and what it can be. Digits are those of ASCII.
_TOKEN = re.compile(r"[^\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY = re.compile(r"([0-9]{1,2})(?![0-9])")
_YEAR = re.compile(r"([0-9]{2,4})(?![0-9])")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_FIRST_YEAR = 1601

#: Characters that are looked at: no date has half as many, even with a remark in brackets.
_LONGEST = 256

#: Blanks inside a time (`00: 00:00`), which the cases of the working group have and its algorithm does not read.
_BLANK_TIME = re.compile(r"(?<=[0-9]): +(?=[0-9])")

#: The zones of RFC 5322, sections 3.3 and 4.3, behind a time: an offset, perhaps behind GMT, or a name of North America.
_OFFSET = re.compile(r" *(?:GMT|UTC?)? *([+-])(0[0-9]|1[0-4]):?([0-5][0-9])(?![0-9])", re.IGNORECASE)
_ZONE = re.compile(r" *([A-Z]{3})(?![A-Z])", re.IGNORECASE)
_ZONES = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}


def utc_text(seconds: float) -> str:
    """Seconds since the epoch as `2026-03-01T12:00:00.000000Z`: UTC with microseconds, the form of WARC/1.1."""
    second, microseconds = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_second(second)}.{microseconds:06d}Z"


@lru_cache(maxsize=256)  # the instants of a moment share their second; the calendar costs three times the rest
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def read_date(text: str, *, zones: bool = True) -> float | None:
    """Seconds since the epoch of a date as servers write it; None where it is none.

    Every form of RFC 9110, section 5.6.7 is read, and whatever else the algorithm of RFC 6265, section 5.1.1 makes a date of. A
    date that names no zone is UTC, whatever zone this machine is in.

    Args:
        text: the value of a field.
        zones: obey the zone that it names. Browsers do, but for cookies, whose dates are UTC whatever they say.
    """
    hour = minute = second = day = month = year = end = -1
    text = _BLANK_TIME.sub(":", text[:_LONGEST])
    for found in _TOKEN.finditer(text):
        token = found[0]
        if hour < 0 and (time := _TIME.match(token)):
            hour, minute, second = map(int, time.groups())
            end = found.end()
        elif day < 0 and (number := _DAY.match(token)):
            day = int(number[1])
        elif month < 0 and (place := _MONTHS.find(token[:3].lower())) >= 0 and len(token) >= 3:
            month = place // 4 + 1
        elif year < 0 and (number := _YEAR.match(token)):
            year = int(number[1])
            year += 1900 if 70 <= year <= 99 else 2000 if year < 70 else 0
    if min(hour, day, month, year - _FIRST_YEAR) < 0:
        return None
    try:
        instant = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return instant - _zone(text[end:]) if zones else instant


def _zone(text: str) -> int:
    """Seconds by which the zone that follows a time is ahead of UTC."""
    if offset := _OFFSET.match(text):
        seconds = int(offset[2]) * 3600 + int(offset[3]) * 60
        return -seconds if offset[1] == "-" else seconds
    name = _ZONE.match(text)
    return _ZONES.get(name[1].upper(), 0) * 3600 if name else 0


# -- names of runs, visits and crawls

#: Random bytes of a name: one collision in 10^9 is to be expected among 700,000 runs that begin in the same second.
_RANDOM = 6


def unique_name(now: float) -> str:
    """A name that nothing else has: 8 hexadecimal digits of the time in seconds since the epoch, and 12 of chance."""
    return f"{int(now):08x}{os.urandom(_RANDOM).hex()}"


class VisitIds:
    """Numbers the visits of one run. Two runs never give the same id, so a visit that a kill undid never shares its id."""

    def __init__(self, now: float) -> None:
        self._run = unique_name(now)
        self._serials = itertools.count(1)

    def next(self) -> str:
        """An id that no other visit has, as `69a42f80c1d2e3f4a5b6-17`."""
        return f"{self._run}-{next(self._serials)}"


def visit_order(visit: str) -> tuple[str, int]:
    """A key that sorts ids of visits in the order in which they were made: by the time of their run, then by number."""
    run, _, number = visit.partition("-")
    return run, int(number) if number.isdecimal() else 0
