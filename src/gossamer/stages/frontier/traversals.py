"""Traversals, by name: breadth-first, depth-first, host by host, best first, random walk (row C8).

Place in the flow: the frontier asks one of them what to follow of a page's new tasks, and where a task waits; the
schedule of :mod:`gossamer.services.politeness` then says when. Hunyadi 2007 (sections 2.1 and 3) describes each.
"""

import random
from collections.abc import Sequence
from typing import Annotated

from gossamer.contracts.prioritizing import LEVELS
from gossamer.contracts.traversal import DEEPEST
from gossamer.flow.sheet import NoSettings, Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.task import Task


class BreadthFirst(Provider[NoSettings]):
    """Fetches pages near the seeds first; hosts take turns. This is the default, since it finds important pages
    early."""

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """All of them."""
        return tasks

    def level(self, task: Task, urgency: int) -> int:
        """By depth: tasks of a lesser depth that come late still go first."""
        return min(task.depth, DEEPEST)

    def host_level(self, task: Task, urgency: int) -> int:
        """All hosts are alike."""
        return 0


class DepthFirst(Provider[NoSettings]):
    """Fetches the pages furthest from the seeds first. Within a host this is strict; among hosts it prefers the deeper
    ones.

    With one request at a time the crawl walks in preorder, because the deepest URLs are those of the page that came
    last.
    """

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """All of them."""
        return tasks

    def level(self, task: Task, urgency: int) -> int:
        """The deeper, the sooner."""
        return max(0, DEEPEST - task.depth)

    def host_level(self, task: Task, urgency: int) -> int:
        """The deeper, the sooner."""
        return max(0, LEVELS - 1 - task.depth)


class HostBreadthFirst(BreadthFirst):
    """Crawls breadth-first within the hosts of the seeds; it follows no link that leaves its page's host."""

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """Those on the source's host."""
        return tasks if source is None else [task for task in tasks if task.host == source.host]


class BestFirst(Provider[NoSettings]):
    """Fetches the most urgent tasks first, as the prioritizer judges them: within a host strictly, among hosts with the
    bias of the front queues."""

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """All of them."""
        return tasks

    def level(self, task: Task, urgency: int) -> int:
        """The urgency."""
        return urgency

    def host_level(self, task: Task, urgency: int) -> int:
        """That of its most urgent task."""
        return urgency


class RandomWalkSheet(Sheet, frozen=True):
    """Settings of :class:`RandomWalk`."""

    seed: Annotated[
        int, setting("Seed of the random numbers; the same seed walks the same way.", restart="walks are under way")
    ] = 1


class RandomWalk(Provider[RandomWalkSheet]):
    """Goes from each page to one of its links, which it draws at random with equal odds. There are as many walkers as seeds.

    A walk may return to pages, so its wiring has neither URL-seen nor content-seen test (Hunyadi 2007, section 2.1).
    """

    def __init__(self, sheet: RandomWalkSheet | None = None) -> None:
        super().__init__(sheet)
        self._draw = random.Random(self.sheet.seed)

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """One of them; every seed."""
        return tasks if source is None or not tasks else [tasks[int(self._draw.random() * len(tasks))]]

    def level(self, task: Task, urgency: int) -> int:
        """One queue."""
        return 0

    def host_level(self, task: Task, urgency: int) -> int:
        """All hosts are alike."""
        return 0
