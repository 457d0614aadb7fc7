"""Visited pages whose links are announced again because the limit of depth rose, seen from the frontier.

Place in the flow: the frontier takes some pages at a time, sends each through the ring to the commit as a visit that was not
fetched, and takes the next when all of these are committed. So they wait for their slots as tasks do, and the crawl does not end
before.
"""

from collections import deque

from gossamer.contracts.ledger import Depths
from gossamer.model.task import Task

#: Pages that are taken at once; when all are committed the ledger notes how far it is.
TAKEN = 256


class Announcing:
    """Hands out visited pages, some at a time."""

    def __init__(self, depths: Depths) -> None:
        self._depths = depths
        self._waiting: deque[Task] = deque()
        self._under_way = 0

    def __repr__(self) -> str:
        return f"<Announcing: {len(self._waiting)} pages wait, {self._under_way} are under way>"

    @property
    def is_over(self) -> bool:
        """Whether every page that has to be announced again has been."""
        return not (self._waiting or self._under_way or self._depths.is_owing)

    @property
    def is_searching(self) -> bool:
        """Whether the next look at the ledger need not wait for anything."""
        return not self._waiting and not self._under_way and self._depths.is_owing

    def take(self, most: int) -> list[Task]:
        """At most so many pages; none while there is nothing to announce, or the search for them has to go on."""
        if self.is_searching:
            self._waiting.extend(self._depths.owing(TAKEN))
            if not self._waiting:
                self._depths.announced()
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._under_way += len(taken)
        return taken

    def committed(self) -> None:
        """The links of one page are queued."""
        self._under_way -= 1
        if not self._under_way and not self._waiting:
            self._depths.announced()
