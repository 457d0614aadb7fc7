"""When pages are visited again: who says when, who wakes them, who knows what they were.
Suite: `gossamer.testing.check_revisit_policy`.

Place in the flow: the ledger of revisits asks a policy when a visit ends, and keeps the time; the frontier asks it what is due;
the stage `changes` asks it what a page was.
"""

from typing import Protocol

import msgspec

from gossamer.model.change_rate import NO_SIGNALS, USUAL, Belief, Signals
from gossamer.model.known import KnownPage
from gossamer.model.task import Task


class Outlook(msgspec.Struct, frozen=True, gc=False):
    """What is believed of a page beside what its visits brought, and what a visit costs."""

    belief: Belief = USUAL
    """How often it changes."""
    weight: float = 1.0
    """Its importance; 1 is usual."""
    signals: Signals = NO_SIGNALS
    """How far what its host says of changes has proved true."""
    price: float = 3_600.0
    """Seconds of freshness of a page of weight 1 that a visit must be worth. It follows the rate of visits that there may be."""
    longest: float = 90 * 86_400.0
    """Seconds after which the page is visited whatever the policy says."""


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """The least and the longest time between two visits, in seconds; None says nothing."""

    least: float | None = None
    most: float | None = None

    def within(self, least: float, most: float) -> tuple[float, float]:
        """These bounds in the place of coarser ones, which give way where the two do not meet."""
        if self.least is not None:
            least, most = self.least, max(most, self.least)
        if self.most is not None:
            least, most = min(least, self.most), self.most
        return least, most


class IntervalRules(Protocol):
    """Knows bounds of single hosts and pages. The bounds of a page come before those of its host, and these before the crawl's.

    Promises:
        1. It is pure until its settings change, and costs nothing that grows with the crawl.
        2. What it returns has a least time that is not longer than the longest, where both are there.
    """

    def bounds_of(self, host: str) -> Bounds:
        """The bounds of a host, in its canonical form."""
        ...

    def bounds(self, url: str, host: str) -> Bounds:
        """The bounds of a page itself."""
        ...


class RevisitPolicy(Protocol):
    """Says how long a page can wait.

    Promises:
        1. It is pure: the same page with the same outlook has the same interval, and nothing is remembered between calls.
        2. The interval is a number above 0, in seconds. Bounds of the user's hold whatever it says, and so does politeness.
    """

    @property
    def is_priced(self) -> bool:
        """Whether the interval grows with the price. Then the schedule sets the price, and asks again when a page is due."""
        ...

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        """Seconds from this visit, which `page` includes, to the next."""
        ...


class KnownPages(Protocol):
    """Knows what earlier visits brought."""

    def known(self, task: Task) -> KnownPage | None:
        """What is known of a task's page before it is visited; None where it was never visited, or is not visited again."""
        ...


class Revisits(Protocol):
    """Known pages, each with the time of its next visit. They count neither as queued nor as discovered before that.

    Promises:
        1. A page is queued by the first `wake` at or after its time that has room, not before, and once for each visit.
        2. A kill forgets no page, and brings none twice.
        3. Memory is bounded, whatever the number of pages.
    """

    def next_due(self) -> float:
        """When `wake` will find something, in seconds since the epoch; infinite where there is nothing to visit again."""
        ...

    def wake(self, now: float, waiting: int) -> int:
        """Queue pages that are due, some at a time, in a group of its own.

        Args:
            now: wall time, in seconds since the epoch.
            waiting: tasks in the queues.

        Returns:
            How many were queued.
        """
        ...
