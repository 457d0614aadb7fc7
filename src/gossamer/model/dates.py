"""Instants as text: the one form in which archive, log and tables write them, and those in which servers do."""

from datetime import UTC, datetime
from functools import lru_cache


def utc_text(seconds: float) -> str:
    """Seconds since the epoch as `2026-03-01T12:00:00.000000Z`: UTC with microseconds, the form of WARC/1.1."""
    second, microseconds = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_second(second)}.{microseconds:06d}Z"


@lru_cache(maxsize=256)  # the instants of a moment share their second; the calendar costs three times the rest
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19]


def read_date(text: str) -> datetime:
    """The date of a header field (RFC 9110, 5.6.7), in any form that the standard library knows; naive where it names no zone.

    Raises:
        ValueError, TypeError, IndexError, OverflowError: it is none, or none that can be.
    """
    from email.utils import parsedate_to_datetime  # with a dozen modules of mail, and few servers send such a field

    return parsedate_to_datetime(text)
