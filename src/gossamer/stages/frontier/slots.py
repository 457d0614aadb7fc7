"""Slots of the frontier: one for each task that was handed out or refused, until its visit is committed.

Place in the flow: whatever takes a task out of the queues for good takes a slot here; a committed visit frees it.
"""

from collections import deque
from typing import Final

from gossamer.model.outcome import Outcome
from gossamer.model.task import ROBOTS, Answer, Task
from gossamer.model.visit import Response, Visit
from gossamer.stages.frontier.uses import FrontierUses

#: One slot in so many is for hosts whose last page came within some seconds: hundreds of hosts that answer a byte a second
#: would take all slots for as long as such answers are borne with, and those that are well would wait (fault 11).
KEPT_FREE: Final = 8


class Slots:
    """As many as there may be visits under way."""

    def __init__(self, uses: FrontierUses) -> None:
        self._uses = uses
        self.taken = 0
        """Slots that are not free."""
        self.refused: deque[Visit] = deque()
        """Visits without a request, on their way to the commit."""

    def __repr__(self) -> str:
        return f"<Slots: {self.taken} taken, {self.free} free>"

    @property
    def free(self) -> int:
        """Slots that are left; below zero where the setting was lowered."""
        return self._uses.sheet.concurrency - self.taken

    @property
    def free_for_all(self) -> int:
        """Slots that are left for hosts of any kind, and not kept for lively ones."""
        return self.free - self._uses.sheet.concurrency // KEPT_FREE

    def depart(self, task: Task) -> None:
        """A task is under way."""
        self.taken += 1
        self._uses.flights.depart(task.identity)

    def take_back(self, task: Task) -> bool:
        """A task is under way no more, though nobody has fetched it. A request that may not be sent twice ends here, since it was
        perhaps sent. Returns False if its visit was committed meanwhile."""
        uses = self._uses
        if not uses.flights.arrive(task.identity):
            return False
        mark = "" if task.request is None else task.request.mark
        is_errand = task.relation == ROBOTS
        lost = Answer(task.url, task.host, Outcome.INTERRUPTED, 0.0, is_errand=is_errand, mark=mark)
        uses.politeness.ruling(lost)
        self.taken -= 1
        if not task.is_safe:
            self.end(task, Outcome.INTERRUPTED, "the crawler that had it is gone, and it may not be sent twice")
        return True

    def end(self, task: Task, outcome: Outcome, why: str = "") -> None:
        """A task's story ends without a request: at the commit, like any other."""
        self.depart(task)
        self.refused.append(Visit(task, Response(outcome, started=self._uses.clock.now(), error=why)))

    def take_refused(self, most: int) -> list[Visit]:
        """Up to `most` of these visits."""
        return [self.refused.popleft() for _ in range(min(most, len(self.refused)))]
