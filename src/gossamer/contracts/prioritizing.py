"""A prioritizer says how urgent a task is (design promise 7; the system-design chapter, URL frontier).
Suite: `gossamer.testing.check_prioritizer`."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from gossamer.model.task import Task

#: Levels of urgency: 0 is the most urgent.
LEVELS = 8


class TaskStanding(msgspec.Struct, frozen=True, gc=False):
    """Facts that the frontier knows about a task beside the task itself."""

    site: float = 0.5
    """Importance of the task's site, from 0 to 1; 0.5 if nothing is known about it."""
    in_degree: int = 0
    """Number of links to the task's host from pages of other hosts; 0 for a prioritizer that does not ask for it."""


class Prioritizer(Protocol):
    """Chooses a front queue for each task.

    Promises:
        1. It returns one level for each task, in order, from 0 (most urgent) to `LEVELS` - 1.
        2. The level depends on the task and its standing alone, and is the same every time.
        3. It never raises an exception, for any canonical URL and standing.

    The frontier counts links, for `in_degree`, only for a prioritizer whose attribute `wants_in_degree` is true.
    """

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        """Return a level for each of `tasks`; `standings` has their standings, in the same order."""
        ...
