"""Instants as text, what hosts say of changes, and names that nothing else has.

Place in the flow: archive, log and tables write instants in one form, and :func:`read_date` reads those that servers write. A
sitemap's page is found with what the sitemap says of it (:mod:`gossamer.parsing.feeds`); the ledger of revisits gives that to
the schedule, which believes it as far as it has proved true. A word about how often a page changes puts the page into a kind
(:func:`kind_of`), and the visits of a kind teach the prior of its pages: a word is worth as much as it has proved to mean on
that host. The commit numbers each visit once, when its outcome is settled; the row logs name their runs. A name is made of the
time, for people and for order, and of random bits, so that agents, runs and copies of a crawl need no agreement.
"""

import itertools
import os
import re
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from gossamer.values.patterns import lazy_pattern

#: The text between two delimiters of RFC 6265, section 5.1.1, and the forms that it can have. Digits are those of ASCII.
_TOKEN = lazy_pattern(r"[^\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = lazy_pattern(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY = lazy_pattern(r"([0-9]{1,2})(?![0-9])")
_YEAR = lazy_pattern(r"([0-9]{2,4})(?![0-9])")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_FIRST_YEAR = 1601

#: Characters that are looked at: no date has half as many, even with a remark in brackets.
_LONGEST = 256

#: Blanks inside a time (`00: 00:00`), which the cases of the working group have and its algorithm does not read.
_BLANK_TIME = lazy_pattern(r"(?<=[0-9]): +(?=[0-9])")

#: The zones of RFC 5322, sections 3.3 and 4.3, behind a time: an offset, perhaps behind GMT, or a name of North America.
_OFFSET = lazy_pattern(r" *(?:GMT|UTC?)? *([+-])(0[0-9]|1[0-4]):?([0-5][0-9])(?![0-9])", re.IGNORECASE)
_ZONE = lazy_pattern(r" *([A-Z]{3})(?![A-Z])", re.IGNORECASE)
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
    date that names no zone is UTC, whatever zone this machine is in. `text`: the value of a field; `zones`: obey the zone that
    it names. Browsers do, but for cookies, whose dates are UTC whatever they say."""
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
    if zones and (offset := _OFFSET.match(text, end)):
        ahead = int(offset[2]) * 3600 + int(offset[3]) * 60
        return instant + ahead if offset[1] == "-" else instant - ahead
    name = _ZONE.match(text, end) if zones else None
    return instant - _ZONES.get(name[1].upper(), 0) * 3600 if name else instant


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


#: The words of sitemaps.org.
FREQUENCIES = frozenset({"always", "hourly", "daily", "weekly", "monthly", "yearly", "never"})

#: Longer texts are no times.
_LONGEST_TIME = 64

#: Up to how many seconds a server says that an answer can be kept, and what its kind is called.
_AGES = ((0, "age-none"), (3_600, "age-hour"), (86_400, "age-day"), (7 * 86_400, "age-week"))

#: Seconds of the units of `revisit-after`, which are also written with an s.
_UNITS = (
    ("hour", 3_600.0),
    ("day", 86_400.0),
    ("week", 7 * 86_400.0),
    ("month", 31 * 86_400.0),
    ("year", 366 * 86_400.0),
)

#: Intervals of so many seconds and less have the word of sitemaps.org beside them.
_MEANT = ((3_600.0, "hourly"), (86_400.0, "daily"), (7 * 86_400.0, "weekly"), (31 * 86_400.0, "monthly"))

_AFTER = lazy_pattern(r"\s*(\d{1,4})?\s*([a-z]+)\s*", re.ASCII)


class ChangeHint(msgspec.Struct, frozen=True, gc=False):
    """Hints of a host about a page."""

    changed_at: float = 0.0
    """Seconds since the epoch; 0 where it says no time."""
    frequency: str = ""
    """One of :data:`FREQUENCIES`, or empty."""


def frequency_of(text: str) -> str:
    """The word of sitemaps.org for what a page says in `<meta name="revisit-after">`, as `7 days`; empty where it says nothing."""
    found = _AFTER.fullmatch(text[:_LONGEST_TIME].lower())
    if found is None:
        return ""
    number, word = found.groups()
    if number is None and word in FREQUENCIES:
        return word
    unit = next((seconds for name, seconds in _UNITS if word in (name, f"{name}s")), 0.0)
    seconds = int(number or 1) * unit
    return next((meant for most, meant in _MEANT if seconds <= most), "yearly") if seconds else ""


def hint_of(changed_at: str, frequency: str) -> ChangeHint | None:
    """The hints in texts of a sitemap; None where they have none that can be read."""
    word = frequency.strip().lower()
    found = ChangeHint(time_of(changed_at), word if word in FREQUENCIES else "")
    return found if found.changed_at or found.frequency else None


def time_of(text: str) -> float:
    """Seconds since the epoch of a time as ISO 8601 or RFC 5322 writes it; 0 where it is none. A day counts from its beginning,
    and what names no time zone is UTC."""
    text = text.strip()
    if not text or len(text) > _LONGEST_TIME:
        return 0.0
    try:
        found = datetime.fromisoformat(text)
        return max((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp(), 0.0)
    except (ValueError, OverflowError):
        return max(read_date(text) or 0.0, 0.0)


def kind_of(path: str, cache_control: str, frequency: str, *, is_html: bool) -> str:
    """The group of pages of its host that a page is like, in how often it changes: one of fewer than twenty words. `frequency`,
    the word of a sitemap or of the page itself, goes first; then come the header field `Cache-Control` and the path of the URL."""
    if frequency:
        return f"said-{frequency}"
    if not is_html:
        return "file"
    # That an answer must not be kept says something of who may see it, and nothing of changes.
    for part in cache_control[:512].lower().split(","):
        name, _, value = part.strip().partition("=")
        value = value.strip('" ')
        if name == "max-age" and value.isascii() and value.isdigit() and len(value) <= 12:
            return next((kind for most, kind in _AGES if int(value) <= most), "age-long")
    if path in ("", "/"):
        return "front"
    return "list" if path.endswith("/") else "leaf"
