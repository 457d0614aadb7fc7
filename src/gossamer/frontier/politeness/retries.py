"""Failures and refusals: which outcomes are tried again, whose try it is, and after how long; the circuits of names
and endpoints that failed; and the highest pace that a host bears.

Place in the flow: :mod:`provider` rules by it on every answer; the frontier puts the page back, or ends its story. A page's
try is spent where the page may be the cause. Where the *host* is, the page goes back untouched and the host waits: by
its circuit, its pace (:mod:`pace`) or the robots part. So a dead host of 1,000 pages costs a few connects and not 4,000.

A page that was answered 429 goes behind others of its host, for one page that is always refused would keep all of them waiting.
Where the host is well meanwhile, a try of the page is spent: then the page is at fault. `Retry-After` is read as strangers
write it: seconds, a date, a date long past, ten years, or junk.

:mod:`pace` keeps one :class:`RefusalControl` for each host that has refused something within the last hour. A refusal is a 429, a
5xx with `Retry-After`, or an error of a server that has become slow. One alone changes nothing: the wait that the server asked for
is over when it is over. From the second one on:

- *fine*: each refusal lengthens the gap by :data:`STEP`, each clean answer shortens it by :data:`EASE`. The two balance at one
  refusal in 73 answers, so a pace at which refusals stay rarer recovers, and one at which they do not is given up;
- *coarse*: when a fifth of an episode's answers are refusals, the gap becomes the time that the host took for each request
  that it accepted. Of a rate limit that is the limit itself, at whatever pace it was measured;
- *probing*: after a run of clean answers the gap shrinks faster and faster. A refusal takes it back near to the gap that
  held, and the next run must be longer. So a host that was only disturbed is at its old pace within minutes, and one
  with a limit is probed rarely.

A server that refuses at every pace must not sink without end. So the gap grows beyond four times the usual one only by
measurement, and only while that makes refusals rarer.
"""

import math
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


# -- the highest pace that a host bears

#: A refusal lengthens the gap by this factor; a clean answer shortens it by this part. One refusal in 73 answers balances
#: (0.04 / 0.00055): the wanted share of less than 2 %, with room for probes.
STEP = 1.04
EASE = 0.00055

#: Under a limit that was measured, a refusal after fewer clean answers than this says that the gap is off by more than a step.
SOON = 25

#: Part of the usual ease under a limit that was measured: what is known needs fewer refusals to be kept, one in 104 answers.
KNOWN = 0.7

#: Clean answers in a row that end an episode of refusals. Two refusals closer than this are more than 2 % of the answers.
CALM = 50

#: Refusals of an episode from which on its share is measured, and the share from which on the gap is set by measurement.
MANY = 5
LARGE = 0.2

#: Part of the farthest gap from which on the next one is measured, too: steps lead no farther.
NEAR = 0.8

#: Accepted requests that a measurement needs: with three it is at most a third off.
ENOUGH = 3

#: A measured gap is longer by this part, so that it lies below the limit and not on it.
MARGIN = 1.05

#: How many times the usual gap a host is given without evidence that a longer one helps, as a broken one is.
FARTHEST = 4.0

#: A gap that is longer by this factor has helped if each accepted request does not take longer by this part of what the gap is
#: longer: of a rate limit it takes as long as before.
LONGER = 1.2
HELPED = 0.5

#: How many times the gap is tried where nothing is known of a longer one.
TRIAL = 1.3

#: How many times the measured gap fine steps may reach.
BEYOND = 1.15

#: Clean answers in a row before the gap shrinks faster: at first, and at most. A limit is probed once in more than 100 answers.
FIRST_HOLD = 8
LONGEST_HOLD = 100

#: How far a refused probe goes back to the gap that held before it, 1 being all the way: less at first, for the limit lies
#: somewhere between; nearly all the way under a limit that was measured and kept.
LIKELY = 2 / 3
SURE = 0.9

#: How much faster the gap shrinks with each further clean answer, and the largest part that one takes off.
GROWTH = 1.3
FASTEST = 0.1

#: Seconds that count as one clean answer where the gap is longer: a host that is asked every two minutes also recovers.
SLOW_ANSWER = 30.0

#: Seconds after the last refusal for which it is remembered.
MEMORY = 3600.0

#: The gap never shrinks below this part of the usual one: there it binds nothing, since latencies rarely differ by more,
#: and is near when the limit shows again.
UNBOUND = 0.5

#: Answers that would have brought so many refusals at the old share, and brought none, prove that a measured gap is good
#: (by chance they would in 7 of 1,000 cases).
PROOF = 5.0


class RefusalControl(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The lessons of the refusals of one host. Instants are monotonic seconds."""

    last: float
    """The instant of its last refusal."""
    since: float
    """The instant of the episode's first refusal."""
    refused: int = 1
    """Refusals of the episode."""
    taken: int = 0
    """Clean answers of the episode."""
    streak: float = 0.0
    """Clean answers since the last refusal."""
    gap: float = 0.0
    """Seconds from one start to the next; 0 while one refusal is all there was."""
    measured: float = 0.0
    """Seconds that the host took for each accepted request, by the last measurement that is trusted; 0 without one."""
    at: float = 0.0
    """The gap at which that was measured."""
    share: float = 0.0
    """Part of the answers that were refusals then; 0 once what was measured has proved good."""
    hold: float = FIRST_HOLD
    """Clean answers in a row before the gap shrinks faster."""
    good: float = 0.0
    """The gap that held before it shrank faster; 0 where it has not yet."""


def after_refusal(control: RefusalControl | None, usual: float, now: float, bearable: float = 0.0) -> RefusalControl:
    """The lessons after a refusal.

    Args:
        control: what was known before; None where nothing was.
        usual: seconds from one start to the next while nothing is wrong.
        now: monotonic seconds.
        bearable: seconds of a gap that is no too long one, be it more than four times the usual one.
    """
    if control is None or now - control.last > MEMORY:
        return RefusalControl(last=now, since=now)
    if control.streak >= CALM:
        episode = msgspec.structs.replace(control, since=now, refused=1, taken=0)
    else:
        episode = msgspec.structs.replace(control, refused=control.refused + 1)
    farthest = max(FARTHEST * usual, bearable, BEYOND * MARGIN * control.measured, control.gap)
    share = episode.refused / (episode.refused + episode.taken)
    if episode.refused >= MANY and (share >= LARGE or control.gap >= NEAR * farthest):
        found = _coarse(episode, share, usual, max(FARTHEST * usual, bearable), now)
    elif control.gap or episode.refused > 1:
        found = msgspec.structs.replace(episode, gap=min(_fine(episode, usual), farthest), good=0.0)
    else:
        found = episode
    # Only a refusal after a run at a gap that binds shows that the run was too short.
    was_short = control.streak >= FIRST_HOLD and control.gap > UNBOUND * usual
    hold = min(2.0 * control.hold, LONGEST_HOLD) if was_short else control.hold
    return msgspec.structs.replace(found, last=now, streak=0.0, hold=hold)


def after_clean(control: RefusalControl, usual: float, now: float) -> RefusalControl | None:
    """The lessons after a clean answer; None once the last refusal is forgotten. For the arguments see :func:`after_refusal`."""
    if now - control.last > MEMORY:
        return None
    weight = max(1.0, control.gap / SLOW_ANSWER)
    streak = control.streak + weight
    if not control.gap:
        return None if streak >= CALM else msgspec.structs.replace(control, taken=control.taken + 1, streak=streak)
    beyond = streak - control.hold
    ease, good = EASE * KNOWN if control.measured else EASE, control.good
    if beyond > 0.0:
        ease, good = min(FASTEST, ease * GROWTH ** min(beyond, 50.0)), good or control.gap
    gap = max(control.gap * (1.0 - min(0.5, ease * weight)), UNBOUND * usual)
    share = 0.0 if streak * control.share >= PROOF and streak >= CALM else control.share
    measured = control.measured if gap > UNBOUND * usual else 0.0  # a limit that nothing shows any more is none
    return msgspec.structs.replace(
        control, taken=control.taken + 1, streak=streak, gap=gap, good=good, share=share, measured=measured
    )


def pardoned(control: RefusalControl | None) -> RefusalControl | None:
    """The lessons once a refusal turns out to be its page's own: the step that it caused is taken back."""
    if control is None:
        return None
    return msgspec.structs.replace(control, refused=max(0, control.refused - 1), gap=control.gap / STEP)


def _fine(control: RefusalControl, usual: float) -> float:
    """The gap after one more refusal: a step, or most of the way back to the gap that held."""
    tried = max(control.gap, usual)
    stepped = tried * (STEP * STEP if control.measured and control.streak < SOON else STEP)
    if not control.good:
        return stepped
    trust = SURE if control.measured and control.hold >= CALM else LIKELY
    return max(stepped, tried * math.pow(control.good / tried, trust))


def _coarse(control: RefusalControl, share: float, usual: float, farthest: float, now: float) -> RefusalControl:
    """The gap by what was accepted since the episode began; twice as long while that is too little to measure."""
    if control.taken < ENOUGH:
        return msgspec.structs.replace(control, gap=min(2.0 * max(control.gap, usual), farthest), good=0.0)
    held, measured = max(control.gap, usual), (now - control.since) / control.taken
    gap = max(held, MARGIN * measured)
    again = msgspec.structs.replace(control, gap=gap, good=0.0, since=now, refused=0, taken=0)
    if control.share and held < LONGER * control.at:
        # As long as when it was measured last: whether a longer gap helps is tried with one that is a little longer.
        return msgspec.structs.replace(again, gap=min(gap, TRIAL * held))
    if control.share and measured - control.measured > HELPED * (held - control.at):
        return msgspec.structs.replace(again, gap=min(gap, max(farthest, control.at)))
    return msgspec.structs.replace(again, measured=measured, at=held, share=share)
