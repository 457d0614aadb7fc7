"""Instants as text: the one form in which archive, log and tables write them."""

from datetime import UTC, datetime


def utc_text(seconds: float) -> str:
    """Seconds since the epoch as `2026-03-01T12:00:00.000000Z`: UTC with microseconds, the form of WARC/1.1."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:26] + "Z"
