"""Conformance suite for policies of revisits: run it over an implementation of your own.

Each check is one promise of `contracts.revisiting`. A broken promise raises an AssertionError that names it.
"""

from itertools import product
from math import inf

from gossamer.contracts.revisiting import Outlook, RevisitPolicy
from gossamer.model.change_rate import Belief, Signals
from gossamer.model.known import KnownPage

_DAY = 86_400.0

#: Pages that never changed, always changed, were visited once or ten thousand times, at once or over years, and were said to have
#: changed or not.
_PAGES = [
    KnownPage(
        visited_at=1e9 + age,
        changed_at=1e9 + age * last,
        visits=visits,
        changes=round((visits - 1) * share),
        waits=waits,
        signalled=signalled,
    )
    for age, last, visits, share, waits, signalled in product(
        (0.0, _DAY, 3650 * _DAY), (0.0, 1.0), (1, 10_000), (0.0, 0.5, 1.0), (0.0, 60.0, 365 * _DAY), (0, 1, 1_000)
    )
]

#: Pages that change all the time, or never, or nobody knows; worth much or little; at hosts that are right, or wrong, about
#: changes.
_OUTLOOKS = [
    Outlook(Belief(shape, scale), weight, signals, price)
    for shape, scale, weight, signals, price in product(
        (1e-3, 1.0, 1e4),
        (1e-3, _DAY, 1e10),
        (1e-3, 1e3),
        (Signals(), Signals(1e4, 0, 0, 1), Signals(0, 1e4, 1e4, 1)),
        (1e-3, _DAY),
    )
]


def check_revisit_policy(policy: RevisitPolicy) -> None:
    """Check that a policy keeps its promises."""
    usual = Outlook()
    asked = [(page, usual) for page in _PAGES] + [(page, outlook) for page in _PAGES[::7] for outlook in _OUTLOOKS]
    first = [policy.interval(page, outlook) for page, outlook in asked]
    assert first == [policy.interval(page, outlook) for page, outlook in asked], "the same page has the same interval"
    assert all(0 < interval < inf for interval in first), "an interval is a number above 0, in seconds"
    if not policy.is_priced:
        return
    for page in _PAGES:
        waits = [policy.interval(page, Outlook(price=price)) for price in (1.0, 100.0, 10_000.0)]
        assert waits == sorted(waits), "a page waits no shorter for a visit that costs more"
