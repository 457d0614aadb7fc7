"""Find the highest pace that a host bears: refusals in, a gap between two requests out.

Place in the flow: :mod:`pace` keeps one :class:`RefusalControl` for each host that has refused something within the last hour,
and none for the others. A refusal is a 429, a 5xx with `Retry-After`, or an error of a server that has become slow.

One refusal alone changes nothing: the wait that the server asked for is over when it is over. From the second one on:

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

import msgspec

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


def refused(control: RefusalControl | None, usual: float, now: float, bearable: float = 0.0) -> RefusalControl:
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


def accepted(control: RefusalControl, usual: float, now: float) -> RefusalControl | None:
    """The lessons after a clean answer; None once the last refusal is forgotten. For the arguments see :func:`refused`."""
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
