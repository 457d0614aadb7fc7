"""Which URL a crawler asks for next: URLs known, waiting and done, in the order of its traversal. Plain code.

Place in the flow: :mod:`gossamer.mobile.running` adds what pages lead to, and takes the next task.
"""

import heapq
from collections import deque
from collections.abc import Iterable

from gossamer.contracts.traversal import LEFT, Traversal
from gossamer.mobile.crawler import TravelLimits
from gossamer.model.leading import task_of
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Link
from gossamer.stages.frontier.traversals import BreadthFirst, DepthFirst, HostBreadthFirst

#: The shipped traversals that never come to a URL twice, by the names that `--strategy` has for them.
TRAVERSALS: dict[str, type[BreadthFirst | DepthFirst]] = {
    "breadth": BreadthFirst,
    "depth": DepthFirst,
    "host-breadth": HostBreadthFirst,
}

#: In the place of a depth: the URL was handed out, or home knows it.
_DONE = -1


class Itinerary:
    """The URLs of one crawler, each handed out once, on the shortest way that is known when its turn comes."""

    def __init__(self, traversal: str, limits: TravelLimits, known: Iterable[str]) -> None:
        self._traversal: Traversal = TRAVERSALS[traversal]()
        self._limits = limits
        self._depths: dict[str, int] = dict.fromkeys(known, _DONE)
        self._lanes: dict[int, deque[Task]] = {}
        self._levels: list[int] = []
        self.waiting = 0
        """URLs that wait to be handed out."""
        self.discovered = 0
        """URLs that were found, beside those that home knows."""

    def begin(self, seed: str, depth: int = 0) -> None:
        """Add a seed, whether home knows it or not; `seed` is canonical, and `depth` is the one that home has met it at."""
        if self._depths.get(seed, _DONE) == _DONE:
            self._add(Task(seed, host_of(seed), depth))

    def lead(self, source: Task, links: Iterable[Link]) -> dict[str, int]:
        """Add what a page leads to; how many links a limit kept out, by its name (`depth`, `urls`)."""
        depths = self._depths
        # Most links of a page are known, so that a task is made of few.
        tasks = [
            task_of(source, link.url, link.relation)
            for link in links
            if (before := depths.get(link.url)) is None or before > source.depth
        ]
        followed = self._traversal.follow(tasks, source)
        out: dict[str, int] = {LEFT: len(tasks) - len(followed)} if len(followed) < len(tasks) else {}
        for task in followed:
            before = depths.get(task.url)
            if before is not None and before <= task.depth:
                continue
            if self._limits.depth is not None and task.depth > self._limits.depth:
                out["depth"] = out.get("depth", 0) + 1
            elif before is None and self.discovered >= self._limits.urls:
                out["urls"] = out.get("urls", 0) + 1
            else:
                self._add(task)
        return out

    def _add(self, task: Task) -> None:
        if self._depths.get(task.url, _DONE) == _DONE:
            self.waiting += 1
            self.discovered += 1
        self._depths[task.url] = task.depth
        level = self._traversal.level(task, 0)
        if level not in self._lanes:
            self._lanes[level] = deque()
            heapq.heappush(self._levels, level)
        self._lanes[level].append(task)

    def next(self) -> Task | None:
        """The task whose turn it is; None where none waits."""
        while self._levels:
            level = self._levels[0]
            lane = self._lanes[level]
            while lane:
                task = lane.popleft()
                # A shorter way was found: the task for that one stands, or stood, in another place.
                if self._depths[task.url] == task.depth:
                    self._depths[task.url] = _DONE
                    self.waiting -= 1
                    return task
            heapq.heappop(self._levels)
            del self._lanes[level]
        return None
