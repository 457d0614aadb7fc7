"""How often a page changes, estimated from visits that see only whether it changed since the visit before.

Place in the flow: the schedule of known pages learns from each visit (:func:`learnt`), and policies ask what a visit would bring
(:func:`gain_after`, :func:`wait_for`). Pure code over values; times in seconds, rates in changes a second.

Changes are taken as a Poisson process, and what is believed of its rate as a gamma distribution. A visit that finds nothing new
says
that there was no change in all that time, which a gamma distribution takes up exactly. A visit that finds a change says that there
was at least one, which is the bias of counting (Cho and Garcia-Molina 2003): the true distribution then is no gamma any more, and
the gamma with its mean and variance stands for it. What visits added is kept apart from the prior, so that a prior that is learnt
later holds for old visits, too. That takes two numbers a page.
"""

from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt

import msgspec

#: Kept of the evidence at each visit: a page's rate may change, and visits a hundred visits ago say little then.
_KEPT = 0.99

#: Visits of a group that weigh as much as what is believed of its wider group.
_SHRUNK_BY = 20.0

#: Visits of a group, and changes and signals of a host, after which the oldest fade: what was learnt of them with less knowledge
#: must give way, and the noise of so many is small enough. Signals come rarely, and of few pages.
_MEMORY, _SIGNALS_KEPT = 2_000.0, 400.0

#: What is taken for this unlikely may happen: one visit does not decide on a host.
_UNLIKELY = 0.05

#: Between these a prior's shape stays: pages all alike, pages of every kind.
_LEAST_SHAPE, _MOST_SHAPE = 0.1, 20.0

#: Steps in which a wait is searched: each is a Newton step or halves the range, so the wait is right to one in ten thousand.
_STEPS, _CLOSE = 60, 1e-4

#: A gamma distribution this close to shape 1 has that shape: the formula of the gain divides by the difference.
_NEAR_ONE = 1e-6


class Belief(msgspec.Struct, frozen=True, gc=False):
    """A gamma distribution of a page's rate of change."""

    shape: float
    scale: float
    """Seconds."""

    @property
    def rate(self) -> float:
        """Its mean, in changes a second."""
        return self.shape / self.scale


#: Before anything is known: pages of every kind, and a change in ten days on the mean.
USUAL = Belief(0.5, 0.5 * 10 * 86_400.0)


class Evidence(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Evidence that visits of one page add to the belief about all: 18 bytes as kept."""

    shape: float = 0.0
    scale: float = 0.0


class Signals(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far what a host says of changes has proved true, as expected counts."""

    true: float = 0.0
    false: float = 0.0
    missed: float = 0.0
    """Changes of pages that nothing was said of."""
    worth: float = 0.0
    """By how much visits turned out likelier with what the host says than without, as a logarithm."""

    @property
    def is_believed(self) -> bool:
        """Whether the host's hints foretell changes better than the past of its pages."""
        return self.worth > 0

    @property
    def precision(self) -> float:
        """Share of signals that are true; a host of which nothing is known is half believed."""
        return (self.true + 0.5) / (self.true + self.false + 1)

    @property
    def recall(self) -> float:
        """Share of changes that are signalled; nothing is expected of a host of which nothing is known."""
        return self.true / (self.true + self.missed + 2)


#: Nothing is said of changes.
NO_SIGNALS = Signals()


class RateGroup(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Rates of a group of pages, learnt for their prior. Each visit counts by the time since the one before, so that
    each page counts alike, however often it is visited."""

    visits: float = 0.0
    time: float = 0.0
    rate: float = 0.0
    """Sum of the mean rates, by time."""
    log_rate: float = 0.0


def believed(prior: Belief, evidence: Evidence) -> Belief:
    """The prior with what a page's visits say."""
    return Belief(max(prior.shape + evidence.shape, 1e-3), max(prior.scale + evidence.scale, 1e-6))


def learnt(
    prior: Belief, evidence: Evidence, time: float, is_changed: bool, signals: Signals = NO_SIGNALS, signalled: int = 0
) -> Evidence:
    """The evidence with one more visit.

    Args:
        prior: of the page's group.
        evidence: before this visit.
        time: seconds since the visit before; a time that is not positive says nothing.
        is_changed: whether this visit found a change.
        signals: of the host.
        signalled: how many signals came for the page in this time.
    """
    if not 0 < time < inf:
        return evidence
    evidence = Evidence(evidence.shape * _KEPT, evidence.scale * _KEPT)
    if not is_changed:
        return Evidence(evidence.shape, evidence.scale + time)
    belief = believed(prior, evidence)
    if signalled and signals.is_believed:
        true, missed = _changes(belief.rate, time, signals, signalled)
        return Evidence(evidence.shape + true + missed, evidence.scale + time)
    after = _changed(belief, time)
    return Evidence(after.shape - belief.shape + evidence.shape, after.scale - belief.scale + evidence.scale)


def _changed(belief: Belief, time: float) -> Belief:
    """The gamma distribution with mean and variance of what is to be believed after at least one change in a time."""
    shape, scale = belief.shape, belief.scale
    length = log1p(time / scale)
    none = -expm1(-shape * length)
    mean = shape / scale * -expm1(-(shape + 1) * length) / none
    square = shape * (shape + 1) / scale**2 * -expm1(-(shape + 2) * length) / none
    spread = square - mean * mean
    if not spread > 0:  # the time is too short beside the scale for numbers to tell
        return Belief(shape + 1, scale)
    return Belief(mean * mean / spread, mean / spread)


def _changes(rate: float, time: float, signals: Signals, signalled: int) -> tuple[float, float]:
    """Of a page that changed: how many signals are expected to be true, and how many changes to have had none."""
    unseen = (1 - signals.recall) * rate * time
    some = max(1 - exp(-unseen) * (1 - signals.precision) ** signalled, 1e-9)
    return min(signalled * signals.precision / some, signalled), unseen / some


def judged(signals: Signals, belief: Belief, time: float, is_changed: bool, signalled: int) -> Signals:
    """Evidence of a visit about a host's signals; `belief` is of the page's rate, before the visit."""
    if not 0 < time < inf:
        return signals
    true, missed = _changes(belief.rate, time, signals, signalled) if is_changed else (0.0, 0.0)
    # A host that says all the time that all has changed is right now and then: what counts is whether that says more than time
    # does.
    without = (1 + time / belief.scale) ** -belief.shape
    recall, doubt = signals.recall, (1 - signals.precision) ** signalled
    with_them = (1 + (1 - recall) * time / belief.scale) ** -belief.shape * doubt
    if is_changed:
        without, with_them = 1 - without, 1 - with_them
    won = log(max(with_them, _UNLIKELY) / max(without, _UNLIKELY))
    total = signals.true + signals.false + signals.missed
    kept = 1.0 if total < _SIGNALS_KEPT else 1 - 1 / _SIGNALS_KEPT
    return Signals(
        signals.true * kept + true,
        signals.false * kept + signalled - true,
        signals.missed * kept + missed,
        signals.worth * kept + won,
    )


def grouped(group: RateGroup, belief: Belief, time: float) -> RateGroup:
    """The group with one more visit, after which this is believed of the page."""
    if not 0 < time < inf:
        return group
    kept = 1.0 if group.visits < _MEMORY else 1 - 1 / _MEMORY
    return RateGroup(
        group.visits * kept + 1,
        group.time * kept + time,
        group.rate * kept + time * belief.rate,
        group.log_rate * kept + time * (_digamma(belief.shape) - log(belief.scale)),
    )


@lru_cache(maxsize=1024)  # it is asked for every page of a host that is looked at
def prior_of(group: RateGroup, wider: Belief = USUAL) -> Belief:
    """Belief about a page of a group before its own visits: the gamma distribution to which the group's means belong, and
    those of a wider group as far as the group has few visits."""
    if group.visits <= 0 or group.time <= 0:
        return wider
    share = group.visits / (group.visits + _SHRUNK_BY)
    mean = share * group.rate / group.time + (1 - share) * wider.rate
    means = share * group.log_rate / group.time + (1 - share) * (_digamma(wider.shape) - log(wider.scale))
    spread = max(log(mean) - means, 1e-6)
    # The likeliest gamma distribution of these two means (Minka 2002, first step).
    shape = (3 - spread + sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    shape = min(max(shape, _LEAST_SHAPE), _MOST_SHAPE)
    return Belief(shape, shape / mean)


def _digamma(value: float) -> float:
    """The mean logarithm of a gamma distribution of this shape and scale 1."""
    low = 0.0
    while value < 6:
        low -= 1 / value
        value += 1
    square = 1 / (value * value)
    return low + log(value) - 0.5 / value - square * (1 / 12 - square * (1 / 120 - square / 252))


def gain_after(belief: Belief, time: float) -> float:
    """Seconds of freshness that one visit more is worth after a time: the marginal gain of Azar and others (2018), as the mean over
    what is believed of the rate. It grows with time."""
    shape, length = belief.shape, log1p(time / belief.scale)
    less = length if abs(1 - shape) < _NEAR_ONE else expm1((1 - shape) * length) / (1 - shape)
    return belief.scale * shape * max(less + expm1(-shape * length) / shape, 0.0)


def wait_for(belief: Belief, gain: float, longest: float) -> float:
    """Seconds until a visit is worth this gain, at most `longest`; that, too, where none ever is."""
    if not gain_after(belief, longest) > gain:
        return longest
    low, high = 0.0, longest
    # While little has changed the gain is near rate x time^2 / 2.
    time = min(sqrt(2 * gain / belief.rate) * 1.1, longest)
    for _ in range(_STEPS):
        over = gain_after(belief, time) - gain
        low, high = (low, time) if over > 0 else (time, high)
        fresh = (1 + time / belief.scale) ** -(belief.shape + 1)
        slope = time * belief.rate * fresh
        step = over / slope if slope > 0 else inf
        following = time - step
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - time) <= _CLOSE * time:
            return following
        time = following
    return time


def aged(belief: Belief, signals: Signals, time: float, signalled: int) -> float:
    """The time after which a page without signals would be as likely to be fresh as this one is.

    Time runs slower where changes are signalled and none was; each signal ages the page (Busa-Fekete and others 2025).
    """
    if not signals.is_believed:
        return time
    slow = log1p((1 - signals.recall) * time / belief.scale)
    return belief.scale * expm1(min(slow - signalled * log1p(-signals.precision) / belief.shape, 600.0))


def unaged(belief: Belief, signals: Signals, age: float, signalled: int) -> float:
    """The time after which a page has this age, other things equal; negative where it is older already at once."""
    if not signals.is_believed:
        return age
    slow = log1p(age / belief.scale) + signalled * log1p(-signals.precision) / belief.shape
    return belief.scale * expm1(max(slow, -600.0)) / (1 - signals.recall)
