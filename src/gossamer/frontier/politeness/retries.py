"""Which outcomes are tried again, whose try it is, and after how long; and the circuits of names and endpoints that failed.

Place in the flow: :mod:`gates` rules by it on every answer; the frontier puts the page back, or ends its story. A page's
try is spent where the page may be the cause. Where the *host* is, the page goes back untouched and the host waits: by
its circuit, its pace (:mod:`pace`) or the robots part. So a dead host of 1,000 pages costs a few connects and not 4,000.

A page that was answered 429 goes behind others of its host, for one page that is always refused would keep all of them waiting.
Where the host is well meanwhile, a try of the page is spent: then the page is at fault. `Retry-After` is read as strangers
write it: seconds, a date, a date long past, ten years, or junk.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from gossamer.values.instants import read_date
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.task import DONE, GONE, KEEP, Disposition, RetryDecision

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
    """The cause of a failure: it is tried again."""

    PAGE = "page"
    HOST = "host"


#: Every outcome that a later try may turn into a page. All others are final.
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


def ruling(outcome: Outcome, attempt: int, waits: Sequence[float] = WAITS) -> RetryDecision:
    """The ruling on a page whose try number `attempt` (from 1) ended so; `waits` are the seconds before further tries."""
    whose = RETRIED.get(outcome)
    if whose is None:
        return DONE
    if whose is Whose.HOST:
        return KEEP
    return RetryDecision(Disposition.RETRY, waits[attempt - 1]) if attempt <= len(waits) else GONE


def refused(attempt: int, rest: float, gap: float, *, is_well: bool, waits: Sequence[float] = WAITS) -> RetryDecision:
    """The ruling on a page that was answered 429.

    Args:
        attempt: which try it was, from 1.
        rest: seconds until its host may be asked again.
        gap: seconds from one request to the next there.
        is_well: enough other pages of the host come clean.
        waits: seconds before further tries of a page.
    """
    if not is_well:
        return RetryDecision(Disposition.POSTPONE, rest + BEHIND * gap)
    known = (*REFUSED_WAITS, *waits[1:])
    return RetryDecision(Disposition.RETRY, known[attempt - 1]) if attempt <= len(known) else GONE


def host_wait(probes: int, waits: Sequence[float] = WAITS) -> float:
    """Seconds that a host waits after `probes` failed probes (0: its circuit has just opened)."""
    if probes < len(waits):
        return waits[probes]
    doublings = min(probes - len(waits) + 1, 32)  # more would leave the range of numbers, long after the cap
    return min(LONGEST_WAIT, (waits or WAITS)[-1] * 2.0**doublings)


#: Failures in a row that open a circuit: fewer are a hiccup.
STRIKES = 5

#: Outcomes that say that no server is there which speaks to us: a strike each.
STRIKING = frozenset(
    {
        Outcome.DNS_FAILED,
        Outcome.CONNECT_FAILED,
        Outcome.TLS_FAILED,
        Outcome.TIMED_OUT,
        Outcome.PROTOCOL_FAILED,
    }
)

#: Outcomes that close it.
CLOSING = ANSWERED | {Outcome.TOO_SLOW}


class Circuit(msgspec.Struct, frozen=True, gc=False):
    """A name or endpoint that failed; one that is well has no circuit.

    Five failures to connect in a row open it. While it is open nothing is asked before `until`, then one request alone: the
    probe. Its pages are kept all the while. After the three waits of the retry table it is *spent*: its pages still wait, and
    probes still go out at doubling distances while the crawl runs, but the crawl need not stay alive for it.
    """

    strikes: int = 0
    probes: int = 0
    """Probes that failed since it opened."""
    until: float = 0.0
    """Monotonic seconds of the next probe."""

    is_open: bool = False
    """Only probes go out."""

    def is_spent(self, waits: Sequence[float] = WAITS) -> bool:
        """The retries of the host are used up."""
        return self.is_open and self.probes >= len(waits)


def circuit_after(
    circuit: Circuit | None, outcome: Outcome, now: float, waits: Sequence[float] = WAITS, limit: int = STRIKES
) -> Circuit | None:
    """The circuit after a request with this outcome; None is closed and without a strike. `limit` strikes open it."""
    if outcome in CLOSING:
        return None
    if outcome not in STRIKING:
        return circuit
    if circuit is None or not circuit.is_open:
        strikes = 1 if circuit is None else circuit.strikes + 1
        if strikes < limit:
            return Circuit(strikes=strikes)
        return Circuit(strikes=strikes, until=now + host_wait(0, waits), is_open=True)
    if now < circuit.until:
        # Failures of requests that were under way when it opened: the same trouble, not a new probe.
        return circuit
    probes = circuit.probes + 1
    return Circuit(circuit.strikes, probes, now + host_wait(probes, waits), is_open=True)


#: Seconds of the longest wait that a server can ask for: a day. An owner who wants to be left alone longer has robots.txt.
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
