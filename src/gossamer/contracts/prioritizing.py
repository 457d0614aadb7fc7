"""How urgent a task is (design promise 7; the system-design chapter, URL frontier). Suite: `gossamer.testing.check_prioritizer`."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from gossamer.model.task import Task

#: Levels of urgency: 0 is the most urgent.
LEVELS = 8


class TaskStanding(msgspec.Struct, frozen=True, gc=False):
    """What the frontier knows of a task beside the task itself."""

    site: float = 0.5
    """Importance of its site, 0 to 1; 0.5 where nothing is known."""
    in_degree: int = 0
    """Links to its host from pages of other hosts, as far as they were met; 0 for a prioritizer that does not want to know it."""


class Prioritizer(Protocol):
    """Puts tasks into front queues.

    Promises:
        1. One level for each task, in order, from 0 (most urgent) to `LEVELS` - 1.
        2. The level of a task depends on its own task and standing alone, and is the same every time.
        3. It raises on no canonical URL, and on no standing.

    One that has an attribute `wants_in_degree`, which is true, gets standings with it; links are counted only for such a one.
    """

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        """A level for each of `tasks`; `standings` are theirs, in the same order."""
        ...
