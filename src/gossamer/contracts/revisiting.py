"""Contracts of the recrawl. They decide when a page is visited again, queue it at that time, and know its earlier state.
Suite: `gossamer.testing.check_revisit_policy`.

Place in the flow: when a visit ends, the ledger of revisits asks a policy for the time of the next one and keeps it. The
frontier asks the ledger which pages are due. The stage `changes` asks it for the earlier state of a page, and compares
texts if the bytes differ.
"""

from typing import Protocol

import msgspec

from gossamer.model.change_rate import NO_SIGNALS, USUAL, Belief, Signals
from gossamer.model.known import KnownPage
from gossamer.model.task import Task
from gossamer.model.visit import Visit


class Outlook(msgspec.Struct, frozen=True, gc=False):
    """Beliefs about a page beside the results of its visits, and the price of a visit."""

    belief: Belief = USUAL
    """How often the page changes."""
    weight: float = 1.0
    """Importance of the page; 1 is usual."""
    signals: Signals = NO_SIGNALS
    """How reliable the host's announcements of changes have been."""
    price: float = 3_600.0
    """Seconds of freshness of a page of weight 1 that a visit must be worth. It follows the allowed rate of visits."""
    longest: float = 90 * 86_400.0
    """Seconds after which the page is visited in any case."""


class RevisitPolicy(Protocol):
    """Decides how long a page waits for its next visit.

    Promises:
        1. It is pure: it gives the same page with the same outlook the same interval, and remembers nothing between calls.
        2. The interval is a number above 0, in seconds. The user's bounds and politeness take precedence over it.
    """

    @property
    def is_priced(self) -> bool:
        """Whether the interval grows with the price. If so, the schedule sets the price, and asks again when a page is due."""
        ...

    def interval(self, page: KnownPage, outlook: Outlook) -> float:
        """Return the seconds from this visit, which `page` includes, to the next."""
        ...


class KnownPages(Protocol):
    """Knows the results of earlier visits."""

    def known(self, task: Task) -> KnownPage | None:
        """Return the state of a task's page before its visit; None if it was never visited, or is not visited again."""
        ...


class PageTexts(Protocol):
    """Makes fingerprints of the texts of pages, to compare two versions of a page.

    Promises:
        1. The same text has the same fingerprint, and similar texts have fingerprints that differ in few bits.
        2. The fingerprint is 0 if the text is too short or cannot be read. Only the first mebibytes of a page are read.
    """

    def of_visit(self, visit: Visit) -> int:
        """Return the fingerprint of a page that was just fetched."""
        ...

    def of_known(self, url: str, page: KnownPage) -> int:
        """Return the fingerprint of a page as the archive keeps it."""
        ...


class Revisits(Protocol):
    """Keeps the known pages, each with the time of its next visit. Until then they count neither as queued nor as discovered.

    Promises:
        1. The first `wake` at or after a page's time that has room queues the page. It never queues the page earlier, and
           queues it once for each visit.
        2. After a kill no page is forgotten, and none comes twice.
        3. Memory is bounded, for any number of pages.
    """

    def next_due(self) -> float:
        """Return when `wake` will find a page, in seconds since the epoch; infinite if no page is visited again."""
        ...

    def wake(self, now: float, waiting: int) -> int:
        """Queue some of the pages that are due, in a group of their own.

        Args:
            now: wall time, in seconds since the epoch.
            waiting: tasks in the queues.

        Returns:
            The number of pages that were queued.
        """
        ...
