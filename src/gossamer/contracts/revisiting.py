"""When pages are visited again: who says when, who wakes them, who knows what they were.
Suite: `gossamer.testing.check_revisit_policy`.

Place in the flow: the ledger of revisits asks a policy when a visit ends, and keeps the time; the frontier asks it what is due;
the stage `changes` asks it what a page was, and compares texts where bytes differ.
"""

from typing import Protocol

import msgspec

from gossamer.model.change_rate import NO_SIGNALS, USUAL, Belief, Signals
from gossamer.model.known import KnownPage
from gossamer.model.task import Task
from gossamer.model.visit import Visit


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


class PageTexts(Protocol):
    """Makes fingerprints of the texts of pages, when two versions of one are compared.

    Promises:
        1. The same text has the same fingerprint, and similar texts have fingerprints that differ in few bits.
        2. It is 0 where the text is too short, or cannot be had. A page never costs more than its first mebibytes do.
    """

    def of_visit(self, visit: Visit) -> int:
        """That of a page that was just fetched."""
        ...

    def of_known(self, url: str, page: KnownPage) -> int:
        """That of a page as the archive keeps it."""
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
