"""The history of a page that is visited again: whether a visit found it changed, and how often it changes.

Place in the flow: the stage `changes` compares each visit with what is known (:func:`compared`); the ledger of revisits keeps
what is known then (:func:`after`), beside the time of the next visit. The schedule learns from each visit (:func:`learnt`), and
policies ask what a visit would bring (:func:`gain_after`, :func:`wait_for`). Pure code over values; times in seconds, rates in
changes a second.

Visits see only whether a page changed since the visit before. Changes are taken as a Poisson process, and what is believed of
its rate as a gamma distribution. A visit that finds nothing new says that there was no change in all that time, which a gamma
distribution takes up exactly. A visit that finds a change says that there was at least one, which is the bias of counting (Cho
and Garcia-Molina 2003): the true distribution then is no gamma any more, and the gamma with its mean and variance stands for
it. What visits added is kept apart from the prior, so that a prior that is learnt later holds for old visits, too. That takes
two numbers a page.
"""

from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt

import msgspec
from xxhash import xxh3_64_hexdigest

from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Comparison, JudgedBy, Outcome, PageChange
from gossamer.values.request_identity import Requested
from gossamer.values.visit import Location, Visit

#: Kept of the evidence at each visit: a page's rate may change, and visits a hundred visits ago say little then.
_KEPT = 0.99

#: Visits of a group that weigh as much as what is believed of its wider group.
_SHRUNK_BY = 20.0

#: Visits of a group, and changes and signals of a host, after which the oldest fade: what was learnt of them with less knowledge
#: must give way, and the noise of so many is small enough. Signals come rarely, and of few pages.
_MEMORY, _SIGNALS_KEPT = 2_000.0, 400.0

#: The likelihood that any case has at least: one visit does not decide on a host.
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
    """The evidence with one more visit, `time` seconds after the visit before; a time that is not positive says nothing. `prior` is
    of the page's group, `signals` of its host, and `signalled` says how many of them came for the page in this time."""
    if not 0 < time < inf:
        return evidence
    evidence = Evidence(evidence.shape * _KEPT, evidence.scale * _KEPT)
    if not is_changed:
        return Evidence(evidence.shape, evidence.scale + time)
    belief = believed(prior, evidence)
    if signalled and signals.is_believed:
        true, missed = _changes(belief.rate, time, signals, signalled)
        return Evidence(evidence.shape + true + missed, evidence.scale + time)
    # The gamma distribution with mean and variance of what is to be believed after at least one change in this time.
    shape, scale = belief.shape, belief.scale
    length = log1p(time / scale)
    none = -expm1(-shape * length)
    mean = shape / scale * -expm1(-(shape + 1) * length) / none
    square = shape * (shape + 1) / scale**2 * -expm1(-(shape + 2) * length) / none
    spread = square - mean * mean
    if not spread > 0:  # the time is too short beside the scale for numbers to tell
        return Evidence(evidence.shape + 1, evidence.scale)
    return Evidence(mean * mean / spread - shape + evidence.shape, mean / spread - scale + evidence.scale)


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
    # A host that says all the time that all has changed is right now and then: the question is whether that says more than time
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


#: Characters of ETag and Last-Modified that are kept; a longer one is no validator of ours (fault 78).
MAX_VALIDATOR = 512

#: Bits in which the fingerprints of two texts may differ that count as the same: three, as with near-duplicates. In a text of
#: 300 words that is about one word, as a date or a counter is.
SAME_TEXT_BITS = 3

#: Answers that say that there is nothing: the page is gone when two visits in a row bring one.
_NOT_THERE = frozenset((404, 410))


class KnownPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The state of a page between visits. New fields go to the end, with a default. Times are in seconds since the epoch."""

    due: float = 0.0
    """When it is to be visited again; 0 while it is queued for that."""
    visited_at: float = 0.0
    changed_at: float = 0.0
    """When a visit found it new or changed last."""
    visits: int = 1
    changes: int = 0
    """Visits that found it changed."""
    digest: str = ""
    simhash: int = 0
    etag: str = ""
    last_modified: str = ""
    target: str = ""
    """A hash of where it redirects to; empty where it does not."""
    missing: int = 0
    """Visits in a row that found nothing there."""

    is_page: bool = False
    """It counts as a page of the crawl already."""
    request: Requested | None = None
    """The request beside the URL, as label and data of a spider's request; None for a plain GET."""
    waits: float = 0.0
    """Seconds from its last visit to the next, as the policy said; 0 before it said anything."""
    evidence: Evidence = Evidence()
    """The evidence of its visits on how often it changes."""
    kind: str = ""
    """Which pages of its host it is like: see :func:`gossamer.values.instants.kind_of`."""
    level: int = 0
    """At which level it waited when it was new, 0 the most urgent."""
    signalled: int = 0
    """How often it was said to have changed since its last visit."""
    signalled_at: float = 0.0
    """The latest time at which it was said to have changed."""
    brought: float = 0.0
    """How many new URLs a visit brought after the first, in the mean of the last ones."""
    body_at: Location | None = None
    """Where the archive keeps the bytes with this digest; None where it keeps none."""

    @property
    def is_gone(self) -> bool:
        """Whether two visits in a row found nothing there."""
        return self.missing >= 2


def compared(known: KnownPage | None, visit: Visit) -> Comparison | None:
    """Compare a visit with the one before; None where nothing is known of the page, or the fetch failed.

    A `304` to a request without validators says nothing.
    """
    if known is None or visit.task.is_marked or visit.is_robots:
        return None
    response, task = visit.response, visit.task
    if response.outcome is Outcome.NOT_MODIFIED:
        is_asked = bool(task.etag or task.last_modified)
        return Comparison(PageChange.UNCHANGED, JudgedBy.SERVER) if is_asked else None
    if response.status in _NOT_THERE:
        change = PageChange.GONE if known.missing else PageChange.MISSING
        return Comparison(PageChange.UNCHANGED if known.is_gone else change, JudgedBy.STATUS)
    if response.outcome is Outcome.REDIRECT:
        is_same = known.target == _target(visit) and not known.is_gone
        return Comparison(PageChange.UNCHANGED if is_same else PageChange.REDIRECTED, JudgedBy.STATUS)
    if response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return None
    if known.is_gone:
        return Comparison(PageChange.BACK, JudgedBy.STATUS)
    if known.target:
        return Comparison(PageChange.CHANGED, JudgedBy.STATUS)
    bits = (known.simhash ^ visit.simhash).bit_count() if known.simhash and visit.simhash else None
    if visit.shown_digest == known.digest:
        return Comparison(PageChange.UNCHANGED, JudgedBy.DIGEST, bits)
    if bits is None:
        return Comparison(PageChange.CHANGED, JudgedBy.DIGEST)
    return Comparison(PageChange.UNCHANGED if bits <= SAME_TEXT_BITS else PageChange.CHANGED, JudgedBy.TEXT, bits)


def is_judged_by_text(known: KnownPage, visit: Visit) -> bool:
    """Whether a visit brings another document in the place of the known one, so that the texts of both decide."""
    is_document = visit.response.outcome in (Outcome.OK, Outcome.TRUNCATED) and visit.media_type in HTML_TYPES
    return is_document and not (known.is_gone or known.target) and visit.shown_digest != known.digest


def after(known: KnownPage | None, visit: Visit, now: float) -> KnownPage | None:
    """The state of a page after a visit; None where it is not to be visited again, since it never brought anything."""
    response = visit.response
    if known is None:
        if response.outcome not in (Outcome.OK, Outcome.TRUNCATED, Outcome.REDIRECT):
            return None
        return _found(KnownPage(visited_at=now, changed_at=now), visit)
    found = visit.compared or compared(known, visit)
    if found is None:
        # A server that answers so without being asked gets no validator next time: it would say so again.
        is_odd = response.outcome is Outcome.NOT_MODIFIED
        kept = msgspec.structs.replace(known, etag="", last_modified="") if is_odd else known
        return msgspec.structs.replace(kept, visited_at=now)
    is_changed = found.change not in (PageChange.UNCHANGED, PageChange.MISSING)
    counted = msgspec.structs.replace(
        known,
        visited_at=now,
        visits=known.visits + 1,
        changes=known.changes + is_changed,
        changed_at=now if is_changed else known.changed_at,
    )
    if response.outcome is Outcome.NOT_MODIFIED:
        return msgspec.structs.replace(counted, missing=0)
    if response.status in _NOT_THERE:
        return msgspec.structs.replace(counted, missing=min(known.missing + 1, 2), etag="", last_modified="")
    return _found(counted, visit)


def _found(known: KnownPage, visit: Visit) -> KnownPage:
    """The page with what this visit brought."""
    response = visit.response
    is_redirect = response.outcome is Outcome.REDIRECT
    etag, modified = response.header("etag"), response.header("last-modified")
    # A browser may make something else of the same answer each time: the server cannot say that nothing has changed.
    is_whole = response.outcome is Outcome.OK and not response.barred and visit.rendered is None
    request = visit.task.request
    if request is not None and request.was_begun:
        request = msgspec.structs.replace(request, was_begun=False)  # that of the next visit was not sent yet
    return msgspec.structs.replace(
        known,
        digest=visit.shown_digest,
        simhash=visit.simhash or (known.simhash if visit.shown_digest == known.digest else 0),
        etag=etag if is_whole and len(etag) <= MAX_VALIDATOR else "",
        last_modified=modified if is_whole and len(modified) <= MAX_VALIDATOR else "",
        target=_target(visit) if is_redirect else "",
        missing=0,
        is_page=known.is_page or visit.is_page,
        request=request,
    )


def _target(visit: Visit) -> str:
    return xxh3_64_hexdigest(visit.response.header("location").encode("utf-8", "surrogateescape"))
