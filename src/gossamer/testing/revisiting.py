"""Conformance suite for policies of revisits: run it over an implementation of your own.

Each check is one promise of `contracts.revisiting`. A broken promise is an AssertionError that says which.
"""

from itertools import product
from math import inf

from gossamer.contracts.revisiting import RevisitPolicy
from gossamer.model.known import KnownPage

_DAY = 86_400.0

#: Pages that never changed, always changed, were visited once or ten thousand times, at once or over years.
_PAGES = [
    KnownPage(visited_at=1e9 + age, changed_at=1e9 + age * last, visits=visits, changes=round((visits - 1) * share))
    for age, last, visits, share in product((0.0, 1.0, _DAY, 3650 * _DAY), (0.0, 1.0), (1, 2, 10_000), (0.0, 0.5, 1.0))
]


def check_revisit_policy(policy: RevisitPolicy) -> None:
    """A policy keeps its promises."""
    first = [policy.interval(page) for page in _PAGES]
    assert first == [policy.interval(page) for page in _PAGES], "the same page has the same interval"
    assert all(0 < interval < inf for interval in first), "an interval is a number above 0, in seconds"
