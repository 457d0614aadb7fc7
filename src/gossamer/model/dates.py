"""Instants as text: the one form in which archive, log and tables write them."""

import math
from datetime import UTC, datetime
from functools import lru_cache


def utc_text(seconds: float) -> str:
    """Seconds since the epoch as `2026-03-01T12:00:00.000000Z`: UTC with microseconds, the form of WARC/1.1."""
    fraction, whole = math.modf(seconds)
    microseconds = round(fraction * 1e6)
    if 0 <= microseconds < 1_000_000:
        return f"{_second(whole)}.{microseconds:06d}Z"
    # Before 1970, and what rounds up into the next second.
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:26] + "Z"


@lru_cache(maxsize=64)  # a page has some instants, and all that are under way are of the last seconds
def _second(whole: float) -> str:
    return datetime.fromtimestamp(whole, UTC).isoformat(timespec="seconds")[:19]
