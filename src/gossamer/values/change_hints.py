"""What hosts say of changes: when a page changed last, how often it changes, how long it can be kept.

Place in the flow: a sitemap's page is found with what the sitemap says of it (:mod:`gossamer.parsing.sitemaps`); the ledger of
revisits gives that to the schedule, which believes it as far as it has proved true. A word about how often a page changes puts the
page into a kind (:func:`kind_of`), and the visits of a kind teach the prior of its pages. So a word is worth as much as it has
proved to mean on that host.
"""

import re
from datetime import UTC, datetime

import msgspec

from gossamer.values.identity import read_date

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

_AFTER = re.compile(r"\s*(\d{1,4})?\s*([a-z]+)\s*", re.ASCII)


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
    """The group of pages of its host that a page is like, in how often it changes.

    Args:
        path: of its URL.
        cache_control: the header field of its answer.
        frequency: what a sitemap or the page itself says of it; that goes first.
        is_html: whether it is a page, and no image or archive.

    Returns:
        A word; there are fewer than twenty.
    """
    if frequency:
        return f"said-{frequency}"
    if not is_html:
        return "file"
    age = _age(cache_control)
    if age is not None:
        return next((name for most, name in _AGES if age <= most), "age-long")
    if path in ("", "/"):
        return "front"
    return "list" if path.endswith("/") else "leaf"


def _age(cache_control: str) -> int | None:
    """Seconds for which a server says that its answer can be kept; None where it says nothing. That it must not be kept says
    something of who may see it, and nothing of changes."""
    for part in cache_control[:512].lower().split(","):
        name, _, value = part.strip().partition("=")
        value = value.strip('" ')
        if name == "max-age" and value.isascii() and value.isdigit() and len(value) <= 12:
            return int(value)
    return None
