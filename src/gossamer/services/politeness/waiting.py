"""`Retry-After`, as strangers write it: seconds, a date, a date long past, ten years, or junk (fault 88)."""

from gossamer.model.dates import read_date

#: Seconds of the longest wait that a server can ask for: a day. Who wants to be left alone longer has robots.txt.
DAY = 86_400.0

#: Characters that are looked at: every date form of RFC 9110 has fewer than 40.
_LONGEST_TEXT = 64


def asked_wait(text: str, wall: float) -> float:
    """Seconds that a `Retry-After` field asks for, between 0 and a day; 0 where it says nothing usable.

    Args:
        text: the field's value as sent.
        wall: seconds since the epoch, for the form that is a date (RFC 9110, section 10.2.3).
    """
    text = text.strip()
    if not text.isascii():
        return 0.0
    if text.isdigit():
        # More digits than a day has are a longer wait than a day: no need to read them all.
        significant = text.lstrip("0")
        return DAY if len(significant) > len("86400") else min(DAY, float(significant or 0))
    if len(text) > _LONGEST_TEXT:
        return 0.0
    instant = read_date(text)
    return 0.0 if instant is None else min(DAY, max(0.0, instant - wall))
