"""Which outcomes are tried again, whose try it is, and after how long: one table, on its own page.

Place in the flow: :mod:`gates` rules by it on every answer; the frontier puts the page back, or ends its story. A page's
try is spent where the page may be the cause. Where the *host* is, the page goes back untouched and the host waits: by
its circuit (:mod:`circuit`), its pace (:mod:`pace`) or the robots part. So a dead host of 1,000 pages costs a few
connects and not 4,000 (FAULTS 22, 26; DESIGN 9.12).
"""

from enum import Enum

import msgspec

from gossamer.model.outcome import Outcome

#: Seconds before the second, third and fourth try: a restart of the server, a repair, a longer one.
WAITS = (60.0, 600.0, 3600.0)

#: Seconds of the longest wait of a host that does not answer; from the end of `WAITS` on, waits double up to it.
LONGEST_WAIT = 6 * 3600.0


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


class What(Enum):
    """What becomes of a page after an answer."""

    DONE = "done"
    """Its story ends with this outcome."""
    KEEP = "keep"
    """Back to the head of its host's queue; no try is spent."""
    RETRY = "retry"
    """Another try after `wait` seconds; one is spent."""
    GONE = "gone"
    """Its tries are spent: `gone_after_retries`."""


class Ruling(msgspec.Struct, frozen=True, gc=False):
    """What becomes of a page, and after how many seconds it may be tried again."""

    what: What
    wait: float = 0.0


DONE = Ruling(What.DONE)
KEEP = Ruling(What.KEEP)
GONE = Ruling(What.GONE)
_TRIES = tuple(Ruling(What.RETRY, wait) for wait in WAITS)


def ruling(outcome: Outcome, attempt: int) -> Ruling:
    """What becomes of a page whose try number `attempt` (from 1) ended so."""
    whose = RETRIED.get(outcome)
    if whose is None:
        return DONE
    if whose is Whose.HOST:
        return KEEP
    return _TRIES[attempt - 1] if attempt <= len(_TRIES) else GONE


def host_wait(probes: int) -> float:
    """Seconds that a host waits after `probes` failed probes (0: its circuit has just opened)."""
    if probes < len(WAITS):
        return WAITS[probes]
    doublings = min(probes - len(WAITS) + 1, 32)  # more would leave the range of numbers, long after the cap
    return min(LONGEST_WAIT, WAITS[-1] * 2.0**doublings)
