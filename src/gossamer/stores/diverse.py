"""Queues by pages with a diversity threshold (Ridgway 2010, section 5.2.2; row R3), in front of other task queues.

So many tasks that are popped make a *page*; of a page no host has more than a share, the *diversity threshold*, as long as another
host has tasks. A host that has had its share steps back until the next page. The seed writes pages out sorted, and carries what is
too much over to the next; here the queues by host stay as they are, and only the order in which hosts are admitted changes.

Against the default (docs/benchmarks.md): politeness already keeps a host from being asked too often. A page adds fairness where
there is no delay that would do it, as on hosts of one's own.
"""

from collections import Counter
from typing import Annotated

from gossamer.contracts.ledger import Ledger, TaskQueues
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.kept import HostState
from gossamer.model.task import Task

#: The threshold of the first page, where it is tuned.
AT_FIRST = 0.1


class DiverseQueuesSheet(Sheet, frozen=True):
    """Settings of :class:`DiverseQueues`."""

    page: Annotated[int, setting("Read this many tasks of a page at once.", unit="tasks", ge=1)] = 1_000
    threshold: (
        Annotated[
            float,
            setting(
                "Share of a page that a host may have. Left out: tuned to the pace of the last page, so that a host comes "
                "once a second.",
                gt=0,
                le=1,
            ),
        ]
        | None
    ) = None


class DiverseQueues(Provider[DiverseQueuesSheet]):
    """No host has more than its share of a page. Contract: `ledger.TaskQueues`, for any `behind` that keeps it."""

    behind: Uses[TaskQueues]
    ledger: Uses[Ledger]
    keeps_state = True

    def __init__(self, sheet: DiverseQueuesSheet | None = None) -> None:
        super().__init__(sheet)
        self._held: set[str] = set()
        """Hosts that the caller holds."""
        self._back: dict[str, None] = {}
        """Hosts that stepped back until the page ends."""
        self._coming: dict[str, None] = {}
        """Hosts that stepped back on an earlier page, and are to be admitted."""
        self._taken: Counter[str] = Counter()
        self._popped = 0
        self._tuned = AT_FIRST
        self._began: float | None = None
        self.metrics.gauge("threshold", lambda: self.threshold)
        self.metrics.gauge("stepped_back", lambda: len(self._back) + len(self._coming))

    @property
    def threshold(self) -> float:
        """Share of a page that a host may have now."""
        return self._tuned if self.sheet.threshold is None else self.sheet.threshold

    def __len__(self) -> int:
        return len(self.behind)

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        """Hosts that the caller now holds: those first that stepped back on an earlier page."""
        if self._began is None:
            self._began = self.clock.monotonic()
        if self._popped >= self.sheet.page:
            self._turn()
        states = self._admitted(now, most)
        if not states and self._back and not self._held:
            self._turn()
            states = self._admitted(now, most)
        return states

    def _admitted(self, now: float, most: int) -> list[HostState]:
        names = list(self._coming)[:most]
        for name in names:
            del self._coming[name]
        states = self.ledger.host_states(names) if names else []
        if len(states) < most:
            states = [*states, *self.behind.admit(now, most - len(states))]
        self._held.update(state.host for state in states)
        return states

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host, within its share of the page."""
        if host not in self._held:
            return []
        if self._popped >= self.sheet.page or (self._left(host) <= 0 and self._is_alone):
            self._turn()
        left = self._left(host)
        tasks = self.behind.pop(host, min(most, max(1, left)))
        if not tasks:
            self._held.discard(host)
        elif left <= 0:
            # It has more, so it steps back; where it has none, nobody need hold it any longer.
            self.behind.put_back(tasks.pop())
            self._held.discard(host)
            self._back[host] = None
        self._taken[host] += len(tasks)
        self._popped += len(tasks)
        return tasks

    def put_back(self, task: Task) -> None:
        """This popped task is not in flight after all."""
        self._taken[task.host] -= 1
        self._popped -= 1
        self.behind.put_back(task)

    def rest(self, host: str, until: float) -> None:
        """Hold this host no more before `until`."""
        self._held.discard(host)
        self.behind.rest(host, until)

    def next_rest(self) -> float:
        """When the next resting host may be admitted."""
        return self.behind.next_rest()

    def next_due(self) -> float:
        """When the next task for later is due; now where hosts may come back."""
        may_come_back = self._coming or (self._back and (not self._held or self._popped >= self.sheet.page))
        return 0.0 if may_come_back else self.behind.next_due()

    def wake(self, now: float) -> int:
        """Queue tasks that are due."""
        return self.behind.wake(now)

    def _left(self, host: str) -> int:
        return max(1, int(self.threshold * self.sheet.page)) - self._taken[host]

    @property
    def _is_alone(self) -> bool:
        """No other host is there that the rest of the page could be for."""
        return not (self._back or self._coming or len(self._held) > 1)

    def _turn(self) -> None:
        """Begin a page. What stepped back comes again, those first that did so first."""
        now = self.clock.monotonic()
        if self._began is not None and now > self._began and self._popped:
            self._tuned = min(1.0, (now - self._began) / self._popped)
        self._began = now
        self._coming.update(self._back)
        self._back.clear()
        self._taken.clear()
        self._popped = 0
