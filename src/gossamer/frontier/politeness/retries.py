"""Which outcomes are tried again, whose try it is, and after how long: one table, on its own page.

Place in the flow: :mod:`gates` rules by it on every answer; the frontier puts the page back, or ends its story. A page's
try is spent where the page may be the cause. Where the *host* is, the page goes back untouched and the host waits: by
its circuit (:mod:`circuit`), its pace (:mod:`pace`) or the robots part. So a dead host of 1,000 pages costs a few
connects and not 4,000 (faults 22, 26; design question 12).

A page that was answered 429 goes behind others of its host, for one page that is always refused would keep all of them waiting.
Where the host is well meanwhile, a try of the page is spent: then the page is what is refused.
"""

from collections.abc import Sequence
from enum import Enum

from gossamer.values.identity import read_date
from gossamer.values.outcome import Outcome
from gossamer.values.task import DONE, GONE, KEEP, Ruling, What

#: Seconds before the second, third and fourth try: a hiccup, a restart of the server, a repair.
WAITS = (10.0, 600.0, 3600.0)

#: Seconds before the second, third and fourth try of a page that was answered 429 by a host that is well; then the usual waits
#: follow. These are shorter than a crawl lingers. Of a limit that refuses one request in 50, one page in six million gets so far.
REFUSED_WAITS = (10.0, 20.0, 20.0)

#: Seconds of the longest wait of a host that does not answer; from the end of `WAITS` on, waits double up to it.
LONGEST_WAIT = 6 * 3600.0


#: Requests to a host after which a page comes again that it refused: two of other pages go first, if there are so many.
BEHIND = 2.5


class Whose(Enum):
    """Who is tried again."""

    PAGE = "page"
    HOST = "host"


#: Every outcome that a later try may turn into a page. What is not here is final.
RETRIED: dict[Outcome, Whose] = {
    Outcome.SERVER_ERROR: Whose.PAGE,
    Outcome.TIMED_OUT: Whose.PAGE,
    Outcome.TOO_SLOW: Whose.PAGE,
    Outcome.PROTOCOL_FAILED: Whose.PAGE,
    Outcome.DNS_FAILED: Whose.HOST,
    Outcome.CONNECT_FAILED: Whose.HOST,
    Outcome.TLS_FAILED: Whose.HOST,
    Outcome.RATE_LIMITED: Whose.HOST,
    Outcome.ROBOTS_UNREACHABLE: Whose.HOST,
}


def ruling(outcome: Outcome, attempt: int, waits: Sequence[float] = WAITS) -> Ruling:
    """What becomes of a page whose try number `attempt` (from 1) ended so; `waits` are the seconds before further tries."""
    whose = RETRIED.get(outcome)
    if whose is None:
        return DONE
    if whose is Whose.HOST:
        return KEEP
    return Ruling(What.RETRY, waits[attempt - 1]) if attempt <= len(waits) else GONE


def refused(attempt: int, rest: float, gap: float, *, is_well: bool, waits: Sequence[float] = WAITS) -> Ruling:
    """What becomes of a page that was answered 429.

    Args:
        attempt: which try it was, from 1.
        rest: seconds until its host may be asked again.
        gap: seconds from one request to the next there.
        is_well: enough other pages of the host come clean.
        waits: seconds before further tries of a page.
    """
    if not is_well:
        return Ruling(What.POSTPONE, rest + BEHIND * gap)
    known = (*REFUSED_WAITS, *waits[1:])
    return Ruling(What.RETRY, known[attempt - 1]) if attempt <= len(known) else GONE


def host_wait(probes: int, waits: Sequence[float] = WAITS) -> float:
    """Seconds that a host waits after `probes` failed probes (0: its circuit has just opened)."""
    if probes < len(waits):
        return waits[probes]
    doublings = min(probes - len(waits) + 1, 32)  # more would leave the range of numbers, long after the cap
    return min(LONGEST_WAIT, (waits or WAITS)[-1] * 2.0**doublings)


# `Retry-After`, as strangers write it: seconds, a date, a date long past, ten years, or junk (fault 88).

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
