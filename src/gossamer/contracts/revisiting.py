"""When pages are visited again: who says when, who wakes them, who knows what they were.
Suite: `gossamer.testing.check_revisit_policy`.

Place in the flow: the ledger of revisits asks a policy when a visit ends, and keeps the time; the frontier asks it what is due;
the stage `changes` asks it what a page was.
"""

from typing import Protocol

from gossamer.model.known import KnownPage
from gossamer.model.task import Task


class RevisitPolicy(Protocol):
    """Says how long a page can wait.

    Promises:
        1. It is pure: the same page has the same interval, and nothing is remembered between calls.
        2. The interval is a number above 0, in seconds. Bounds of the user's hold whatever it says, and so does politeness.
    """

    def interval(self, page: KnownPage) -> float:
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
