"""How long one host is left alone between two requests: events in, a new state out.

Place in the flow: :mod:`gates` keeps one :class:`Pace` for each host that it has asked, and calls :func:`after` with
every answer. The delay is the longest of four, each with its own cause:

- *base*: `--delay`, or 5 x latency between floor and cap (FAULTS 90; seed 001 section 2.4 asked each site every 30 s);
- *Crawl-delay* of robots.txt, obeyed up to a day (DESIGN 9.9);
- *strain*: while a fifth of the replies are errors the rate is half, while half of them are, a quarter (FAULTS 91);
- *back-off* after 429 or `Retry-After`: doubling from 5 s, taken back by a tenth for every 50 clean replies (FAULTS 89).

Beside the delay there is an instant before which nothing is asked at all: what the server itself said (FAULTS 88).
"""

import math
from collections.abc import Callable

import msgspec

from gossamer.model.outcome import ANSWERED, Outcome
from gossamer.model.task import Answer
from gossamer.services.politeness.waiting import DAY, asked_wait

#: Seconds of the first own back-off after 429 (FAULTS 89).
FIRST_BACKOFF = 5.0

#: Seconds of the longest delay that back-off or strain keep up between requests. A wait may be longer, up to a day; a
#: *pace* of more than five minutes would need weeks of clean replies to recover.
LONGEST_PACE = 300.0

#: Clean replies for one step of recovery, and the step: a tenth more pace (FAULTS 89).
CLEAN_REPLIES = 50
RECOVERY = 1.1

#: A wait is longer by up to this part of itself, so that hosts that were refused together do not come back together.
JITTER = 0.25

#: Replies that the error rate looks back on: with 20 a fifth is 4, enough not to be chance (5 % errors reach 4 in 2 of
#: 100 windows), and few enough to notice a server in trouble within a minute.
WINDOW = 20

#: Strain -> errors in the window at which it begins, and at which it ends; apart, so that it does not flutter.
STRAIN_BEGINS = {2: 4, 4: 10}
STRAIN_ENDS = {2: 1, 4: 4}

#: Smoothing of latency. Rising is believed at once (after 5 replies 97 % of a jump is in), falling is not.
RISE = 0.5
FALL = 0.1

#: Answers of a server that has its hands full.
_ERRORS = frozenset({Outcome.SERVER_ERROR, Outcome.TIMED_OUT, Outcome.TOO_SLOW})

#: Answers of a server that is well.
_CLEAN = ANSWERED - {Outcome.SERVER_ERROR, Outcome.RATE_LIMITED}


class PaceRules(msgspec.Struct, frozen=True):
    """The settings that every host's pace follows. All in seconds but `factor`."""

    delay: float | None = None
    """Fixed (`--delay`); None is adaptive."""
    factor: float = 5.0
    """The server gets five times as long for itself as it works for us."""
    floor: float = 1.0
    cap: float = 30.0


class Pace(msgspec.Struct, frozen=True, gc=False):
    """What one host's answers have taught. Instants are monotonic seconds."""

    latency: float = 0.0
    """Seconds, smoothed; 0 until the first answer."""
    crawl_delay: float = 0.0
    """Seconds, of robots.txt; 0 where it has none."""
    backoff: float = 0.0
    """Seconds of the last own back-off, as far as it is not recovered; 0 is none."""
    until: float = 0.0
    """Nothing is asked before."""
    clean: int = 0
    """Clean replies since the last step of recovery."""
    errors: int = 0
    """The last replies as bits, the newest lowest; 1 is an error."""
    strain: int = 1
    """What the rate is divided by."""
    refusals: int = 0
    """429 and `Retry-After` in a row."""

    @property
    def is_alone(self) -> bool:
        """Until it has recovered from a refusal, such a host has one request in flight, whatever `per_host` says."""
        return self.backoff > 0.0


#: The pace of a host that was never asked.
FRESH = Pace()


def base_delay(pace: Pace, rules: PaceRules) -> float:
    """Seconds between requests while all is well."""
    base = rules.delay
    if base is None:
        base = rules.factor * pace.latency
        base = rules.floor if base < rules.floor else rules.cap if base > rules.cap else base
    return base if base > pace.crawl_delay else pace.crawl_delay


def delay_of(pace: Pace, rules: PaceRules) -> float:
    """Seconds from the end of one request to the start of the next."""
    base = base_delay(pace, rules)
    if pace.strain == 1 and not pace.backoff:
        return base
    delay = base
    if pace.strain > 1:
        # A request takes latency + delay; for the rate to halve, their sum doubles.
        delay = pace.strain * base + (pace.strain - 1) * pace.latency
        delay = max(base, min(delay, LONGEST_PACE))
    return max(delay, min(pace.backoff, LONGEST_PACE))


def with_crawl_delay(pace: Pace, seconds: float | None) -> Pace:
    """The pace under this `Crawl-delay`: more than a day counts as a day; negative and unreadable ones as none."""
    usable = seconds is not None and seconds > 0.0  # not so for NaN
    return msgspec.structs.replace(pace, crawl_delay=min(DAY, seconds) if seconds is not None and usable else 0.0)


def after(
    pace: Pace, answer: Answer, now: float, wall: float, rules: PaceRules, draw: Callable[[], float] = lambda: 0.0
) -> Pace:
    """The pace after this answer.

    Args:
        pace: before it.
        answer: to a request that really went out.
        now: monotonic seconds.
        wall: seconds since the epoch, for a `Retry-After` that is a date.
        rules: the settings.
        draw: for jitter; gives numbers in [0, 1).
    """
    outcome = answer.outcome
    if outcome is Outcome.RATE_LIMITED or (outcome is Outcome.SERVER_ERROR and answer.retry_after):
        return _refused(pace, answer.retry_after, now, wall, rules, draw)
    is_error = outcome in _ERRORS
    is_clean = outcome in _CLEAN
    if not is_error and not is_clean:
        return pace
    errors = ((pace.errors << 1) | is_error) & ((1 << WINDOW) - 1)
    backoff, clean, refusals = pace.backoff, pace.clean, pace.refusals
    if is_clean:
        refusals = 0
        if backoff:
            backoff, clean = _recovered(min(backoff, LONGEST_PACE), clean + 1)
            if backoff <= base_delay(pace, rules):
                backoff, clean = 0.0, 0
    return Pace(
        latency=_smoothed(pace.latency, answer.elapsed, may_fall=is_clean),
        crawl_delay=pace.crawl_delay,
        backoff=backoff,
        until=pace.until if pace.until > now else 0.0,
        clean=clean,
        errors=errors,
        strain=_strain(pace.strain, errors.bit_count()) if errors or pace.strain > 1 else 1,
        refusals=refusals,
    )


def _refused(
    pace: Pace, retry_after: str, now: float, wall: float, rules: PaceRules, draw: Callable[[], float]
) -> Pace:
    """The whole host waits for the longer of its own back-off and what it asks for."""
    own = pace.backoff
    if now >= pace.until:
        # Refusals that arrive during a wait answer requests from before it: one cause, one doubling.
        own = min(DAY, max(FIRST_BACKOFF, 2.0 * max(own, base_delay(pace, rules))))
    wait = min(DAY, max(own, asked_wait(retry_after, wall)) * (1.0 + JITTER * draw()))
    return msgspec.structs.replace(
        pace, backoff=own, until=max(pace.until, now + wait), clean=0, refusals=pace.refusals + 1
    )


def _recovered(backoff: float, clean: int) -> tuple[float, int]:
    return (backoff / RECOVERY, 0) if clean >= CLEAN_REPLIES else (backoff, clean)


def _smoothed(latency: float, sample: float, *, may_fall: bool) -> float:
    """An error that comes quickly is no proof of a quick server, so only clean replies may lower the latency."""
    if not (0.0 <= sample < math.inf):
        return latency
    if not latency or sample > latency:
        return latency + (RISE if latency else 1.0) * (sample - latency)
    return latency + FALL * (sample - latency) if may_fall else latency


def _strain(strain: int, errors: int) -> int:
    for level in (4, 2):
        if errors >= STRAIN_BEGINS[level] or (strain >= level and errors > STRAIN_ENDS[level]):
            return level
    return 1
