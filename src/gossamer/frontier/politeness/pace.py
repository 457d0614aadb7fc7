"""How long one host is left alone between two requests: events in, a new state out.

Place in the flow: :mod:`schedule` keeps one :class:`Pace` for each host that it has asked, and calls :func:`after` with
every answer. The longest of three delays passes from the end of one request to the start of the next:

- *base*: `--delay`, or 5 x latency between floor and cap (Agarwal and others section 2.4 asked each site every 30 s);
- *Crawl-delay* of robots.txt, obeyed up to a day;
- *strain*: while a fifth of the replies are errors the rate is half, while half of them are, a quarter.

At least the *gap* that refusals have taught (:mod:`retries`) passes from one start to the next. And there is an instant
before which nothing is asked at all: what the server itself said, to the letter, which by itself slows nothing down
afterwards.
"""

import math
from collections.abc import Callable
from enum import StrEnum

import msgspec

from gossamer.frontier.politeness.retries import DAY, RefusalControl, after_clean, after_refusal, asked_wait, pardoned
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.task import Answer

#: How many usual gaps a host is left alone that refuses without saying for how long, and seconds of the shortest such wait.
UNSAID = 2.0
SHORTEST_UNSAID = 0.1

#: Refusals in a row from which on the host also waits by our own measure, and seconds of the first such wait; then doubling.
IN_A_ROW = 3
FIRST_BACKOFF = 5.0

#: Seconds of the longest such wait. A host that is well again is found so within minutes, and so is one of which only a run of
#: pages was broken; one that refuses for ever is asked twelve times an hour.
LONGEST_BACKOFF = 300.0

#: Seconds of the longest delay that strain keeps up between requests.
LONGEST_PACE = 300.0

#: Refusals in a row beyond which our own wait does not grow while it is in doubt whether the pages or the host are at fault. It is
#: 20 s then: shorter than a crawl lingers by default, so a crawl does not end for what may be a few broken pages.
DOUBTED = 5

#: Pages in a row that a server refuses at their first try with an error, none clean between, until their host is at fault. A part
#: of a site breaks as a whole, and the next one may be well. To ask for so many pages takes six minutes.
BLOCK = 20

#: A wait is longer by up to this part of itself, so that hosts that were refused together do not come back together.
JITTER = 0.05

#: Replies that the error rate looks back on: with 20 a fifth is 4, enough not to be chance (5 % errors reach 4 in 2 of
#: 100 windows), and few enough to notice a server in trouble within a minute.
WINDOW = 20

#: Strain -> errors in the window at which it begins, and at which it ends; apart, so that it does not flutter.
STRAIN_BEGINS = {2: 4, 4: 10}
STRAIN_ENDS = {2: 1, 4: 4}

#: Smoothing of latency. Rising is believed at once (after 5 replies 97 % of a jump is in), falling is not.
RISE = 0.5
FALL = 0.1

#: Smoothing of the least latency that a host is capable of: falling is believed soon, rising late.
LEAST_RISE = 0.001
LEAST_FALL = 0.05

#: A server whose smoothed latency is so many times its least one is slow because it is asked too much: pages differ by less.
#: An error of such a server is a refusal.
OVERLOADED = 5.0

#: Smoothing of the time between two answers, and how many times the smoothed value one sample may count at most: a host that
#: had nothing to be asked for a while is none that must be asked rarely.
PERIOD = 0.03
PERIOD_OUTLIER = 4.0

#: Seconds of the shortest usual gap: a host that has only refused so far has no latency, and a gap of nothing could not grow.
SHORTEST_USUAL = 0.001

#: Clean answers in a row to the latest first tries of other pages that make a second refusal of one page its own.
OTHERS_CLEAN = 3

#: Part of the latest first tries that came clean from which on a refused retry tells nothing of its host: the page was refused
#: before, and half of the others are well. A crawl that has only such pages left would take them for refusals in a row.
WELL = 0.5

#: Pages in a row found at fault from which on a refusal counts as its page's before its second try has shown so: a site may have
#: many such pages.
OWN = 2

#: Answers of a server that has its hands full.
_ERRORS = frozenset({Outcome.SERVER_ERROR, Outcome.TIMED_OUT, Outcome.TOO_SLOW})

#: Answers of a server that is well.
_CLEAN = ANSWERED - {Outcome.SERVER_ERROR, Outcome.RATE_LIMITED}


class Reason(StrEnum):
    """Why a host is asked no more often."""

    SETTING = "setting"
    LATENCY = "latency"
    ROBOTS = "robots"
    ERRORS = "errors"
    REFUSALS = "refusals"


class PaceRules(msgspec.Struct, frozen=True):
    """The settings that every host's pace follows. All in seconds but `factor`."""

    delay: float | None = None
    """Fixed (`--delay`); None is adaptive."""
    factor: float = 5.0
    """The server gets five times as long for itself as it works for us."""
    floor: float = 1.0
    cap: float = 30.0


class Pace(msgspec.Struct, frozen=True, gc=False):
    """The lessons of one host's answers. Instants are monotonic seconds. New fields have defaults: older notes lack them."""

    latency: float = 0.0
    """Seconds, smoothed; 0 until the first answer."""
    crawl_delay: float = 0.0
    """Seconds, of robots.txt; 0 where it has none."""
    until: float = 0.0
    """Nothing is asked before."""
    errors: int = 0
    """The last replies as bits, the newest lowest; 1 is an error."""
    strain: int = 1
    """The divisor of the rate."""
    refusals: int = 0
    """429 and `Retry-After` in a row, as far as they count for the host."""
    broken: int = 0
    """Pages in a row whose first try was refused with an error of the server, up to :data:`BLOCK`."""
    clean: int = 0
    """Clean answers in a row to first tries of pages, up to the width of the window."""
    least: float = 0.0
    """Seconds of latency that the host is capable of."""
    period: float = 0.0
    """Seconds from one answer to the next while nothing was refused, smoothed; 0 until there were two."""
    seen: float = 0.0
    """The instant of the last answer; 0 where the next one tells nothing of the period."""
    own: int = 0
    """Second tries in a row that showed their page, and not the host, to be at fault; up to :data:`OWN`."""
    firsts: int = 0
    """The latest answers to first tries of pages as bits, the newest lowest; 1 is a clean one."""
    tried: int = 0
    """How many of these bits are known, up to the width of the window."""
    control: RefusalControl | None = None
    """The lessons of refusals; None where there were none of late."""

    @property
    def gap(self) -> float:
        """Seconds from one start to the next, by what refusals have taught; 0 is nothing."""
        return self.control.gap if self.control is not None else 0.0

    @property
    def is_well(self) -> bool:
        clean = self.firsts.bit_count()
        return clean >= OTHERS_CLEAN and clean >= WELL * self.tried


#: The pace of a host that was never asked.
FRESH = Pace()


def delay_of(pace: Pace, rules: PaceRules, *, usual: bool = False) -> float:
    """Seconds from the end of one request to the start of the next, the gap of refusals apart; `usual` as while all is well."""
    base = rules.delay
    if base is None:
        base = rules.factor * pace.latency
        base = rules.floor if base < rules.floor else rules.cap if base > rules.cap else base
    if base < pace.crawl_delay:
        base = pace.crawl_delay
    if usual or pace.strain == 1:
        return base
    # A request takes latency + delay; for the rate to halve, their sum doubles.
    delay = pace.strain * base + (pace.strain - 1) * pace.latency
    return max(base, min(delay, LONGEST_PACE))


def shown_delay(pace: Pace, rules: PaceRules) -> tuple[float, Reason]:
    """Seconds from the end of one request to the start of the next, all causes included, and the cause that decides."""
    delay = delay_of(pace, rules)
    if pace.control is not None and pace.control.gap - pace.latency > delay:
        return pace.control.gap - pace.latency, Reason.REFUSALS
    if pace.strain > 1:
        return delay, Reason.ERRORS
    if pace.crawl_delay and pace.crawl_delay >= delay:
        return delay, Reason.ROBOTS
    is_set = rules.delay is not None or not rules.floor < delay < rules.cap
    return delay, Reason.SETTING if is_set else Reason.LATENCY


def with_crawl_delay(pace: Pace, seconds: float | None) -> Pace:
    """The pace under this `Crawl-delay`: more than a day counts as a day; negative and unreadable ones as none."""
    usable = seconds is not None and seconds > 0.0  # not so for NaN
    return msgspec.structs.replace(pace, crawl_delay=min(DAY, seconds) if seconds is not None and usable else 0.0)


def after(
    pace: Pace,
    answer: Answer,
    now: float,
    wall: float,
    rules: PaceRules,
    draw: Callable[[], float] = lambda: 0.0,
    attempt: int = 1,
) -> Pace:
    """The pace after this answer.

    Args:
        pace: before it.
        answer: to a request that really went out.
        now: monotonic seconds.
        wall: seconds since the epoch, for a `Retry-After` that is a date.
        rules: the settings.
        draw: for jitter; gives numbers in [0, 1).
        attempt: which try of its page it was, from 1.
    """
    outcome = answer.outcome
    is_own = attempt > 1 and pace.clean >= OTHERS_CLEAN
    if outcome is Outcome.RATE_LIMITED or (outcome is Outcome.SERVER_ERROR and answer.retry_after):
        return _refused(pace, answer, now, wall, rules, draw, attempt)
    is_error = outcome in _ERRORS
    is_clean = outcome in _CLEAN
    if not is_error and not is_clean:
        return pace
    period = _period(pace, now)
    control = pace.control
    if control is not None and is_clean:
        control = after_clean(control, _usual(pace, rules), now)
    elif is_error and not is_own and pace.least > 0.0 and pace.latency > OVERLOADED * pace.least:
        control = after_refusal(control, _usual(pace, rules), now, rules.factor * pace.latency)
    errors = ((pace.errors << 1) | (is_error and not is_own)) & ((1 << WINDOW) - 1)
    latency, least = _latencies(pace, answer.elapsed, is_clean=is_clean, may_rise=control is None)
    return Pace(
        latency=latency,
        crawl_delay=pace.crawl_delay,
        until=pace.until if pace.until > now else 0.0,
        errors=errors,
        strain=_strain(pace.strain, errors.bit_count()) if errors or pace.strain > 1 else 1,
        refusals=0 if is_clean and now >= pace.until else pace.refusals,
        broken=0 if is_clean else pace.broken,
        clean=pace.clean if attempt > 1 else min(pace.clean + 1, WINDOW) if is_clean else 0,
        least=least,
        period=period,
        seen=now,
        own=0 if is_clean and attempt == 2 else pace.own,
        firsts=((pace.firsts << 1) | is_clean) & ((1 << WINDOW) - 1) if attempt == 1 else pace.firsts,
        tried=min(pace.tried + (attempt == 1), WINDOW),
        control=control,
    )


def _refused(
    pace: Pace, answer: Answer, now: float, wall: float, rules: PaceRules, draw: Callable[[], float], attempt: int
) -> Pace:
    """The whole host waits for as long as it asks; where it says nothing, or refuses again and again, by our own measure."""
    usual, said = _usual(pace, rules), asked_wait(answer.retry_after, wall)
    control, refusals, clean, own = pace.control, pace.refusals, pace.clean, pace.own
    is_error = answer.outcome is Outcome.SERVER_ERROR  # a 429 is its host's word, unless others come clean around it
    is_silent = is_error and attempt > 1 and pace.is_well
    broken = min(pace.broken + 1, BLOCK) if is_error and attempt == 1 else pace.broken
    is_doubted = is_error and refusals >= DOUBTED and pace.broken < BLOCK
    if attempt > 1 and clean >= OTHERS_CLEAN:
        if attempt == 2:
            control, own = pardoned(control), min(own + 1, OWN)
    elif now >= pace.until and own >= OWN and clean >= OTHERS_CLEAN:
        clean = 0
    elif now >= pace.until and not is_silent:
        # Refusals that arrive during a wait answer requests from before it: one cause, counted once.
        control, refusals = after_refusal(control, usual, now), refusals + (not is_doubted)
        clean = clean if attempt > 1 else 0
    wait = said or max(SHORTEST_UNSAID, UNSAID * max(usual, pace.gap))
    if refusals >= IN_A_ROW and not is_silent:
        wait = max(wait, min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(refusals - IN_A_ROW, 32)))
    until = max(pace.until, now + min(DAY, wait * (1.0 + JITTER * draw())))
    known = msgspec.structs.replace(
        pace, until=until, refusals=refusals, broken=broken, clean=clean, seen=0.0, own=own, control=control
    )
    if attempt > 1:
        return known
    firsts = (pace.firsts << 1) & ((1 << WINDOW) - 1)
    return msgspec.structs.replace(known, firsts=firsts, tried=min(pace.tried + 1, WINDOW))


def _usual(pace: Pace, rules: PaceRules) -> float:
    """Seconds from one start to the next while nothing is wrong: with several requests at once less than one of them takes."""
    alone = max(SHORTEST_USUAL, delay_of(pace, rules, usual=True) + pace.latency)
    return min(alone, pace.period) if pace.period else alone


def _period(pace: Pace, now: float) -> float:
    """The smoothed time between two answers, learned only while nothing slows the host down."""
    if not pace.seen or pace.strain > 1 or (pace.control is not None and pace.control.gap):
        return pace.period
    sample = now - pace.seen
    if not pace.period:
        return sample
    return pace.period + PERIOD * (min(sample, PERIOD_OUTLIER * pace.period) - pace.period)


def _latencies(pace: Pace, sample: float, *, is_clean: bool, may_rise: bool) -> tuple[float, float]:
    """The smoothed latency, and the least that a host is capable of. An error that comes quickly is no proof of a quick server, so
    only clean replies may lower the latency. A host that is asked as much as it bears is slower than it could be, so what it is
    capable of does not rise meanwhile."""
    latency, least = pace.latency, pace.least
    if not (0.0 <= sample < math.inf):
        return latency, least
    if is_clean and not least:
        least = sample
    elif is_clean and (may_rise or sample <= least):
        least += (LEAST_RISE if sample > least else LEAST_FALL) * (sample - least)
    if not latency or sample > latency:
        return latency + (RISE if latency else 1.0) * (sample - latency), least
    return latency + FALL * (sample - latency) if is_clean else latency, least


def _strain(strain: int, errors: int) -> int:
    for level in (4, 2):
        if errors >= STRAIN_BEGINS[level] or (strain >= level and errors > STRAIN_ENDS[level]):
            return level
    return 1
