"""The trie as the queue of a crawl: tasks of a host take turns at every branch of its paths (Ridgway 2010, section 4.6; row R3).

Place in the flow: `--strategy trie` puts this provider in front of the ledger's task queues. The seed's XTrie keeps URLs in files
of its own and forgets what was handed out when it is killed. Here the tasks stay in the ledger, which knows after a kill what was
in flight, and the trie holds a window of each host that the frontier holds: the tasks that the ledger has given to it. Hosts take
turns by politeness, so that a branch above the host would have no say.

Promises: a task is handed out once for each time that it was queued; what a kill leaves is popped again; the window is bounded.
Against the seed, turns are taken among `window` tasks of a host at a time: a branch that the ledger has behind them waits for the
next round.
"""

from collections import deque
from collections.abc import Iterator
from typing import Annotated

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.ledger.contract import TaskQueues
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task


def segments_of(url: str) -> list[str]:
    """The branches that lead to a URL below its host: the segments of its path, then its query."""
    authority = url.find("://") + 3
    slash = url.find("/", authority)
    path, sign, query = url[slash + 1 if slash >= 0 else len(url) :].partition("?")
    return [*path.split("/"), *([sign + query] if sign else ())]


class _Branch:
    """Tasks at one place of a host's paths, and the branches below it in the order of their turns."""

    __slots__ = ("below", "tasks")

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        self.below: dict[str, _Branch] = {}

    def put(self, task: Task) -> None:
        """Let a task wait at its place."""
        here = self
        for segment in segments_of(task.url):
            here = here.below.setdefault(segment, _Branch())
        here.tasks.append(task)

    def take(self) -> Task:
        """The task whose turn it is: one that waits here, else one of the branch that has waited longest."""
        if self.tasks:
            return self.tasks.popleft()
        segment = next(iter(self.below))
        branch = self.below.pop(segment)
        task = branch.take()
        if branch.tasks or branch.below:
            self.below[segment] = branch  # behind all others
        return task

    def left(self) -> Iterator[Task]:
        """Every task that waits here and below."""
        yield from self.tasks
        for branch in self.below.values():
            yield from branch.left()


class _Window:
    """The tasks of one held host that the ledger has given away and the frontier has not got yet."""

    __slots__ = ("count", "returned", "root")

    def __init__(self) -> None:
        self.root = _Branch()
        self.returned: list[Task] = []
        """Tasks that came back: they go before all others, the last one first."""
        self.count = 0

    def take(self) -> Task:
        self.count -= 1
        return self.returned.pop() if self.returned else self.root.take()


class TrieQueuesSheet(Sheet, frozen=True):
    """Settings of :class:`TrieQueues`."""

    window: Annotated[int, setting("Let this many tasks of a host take turns.", unit="tasks", ge=1, le=10_000)] = 256
    tasks: Annotated[int, setting("Hold at most about this many tasks of all hosts.", unit="tasks", ge=1)] = 50_000


class TrieQueues(Provider[TrieQueuesSheet]):
    """Hands out the tasks of a host by turns at every branch of its paths. Contract: `storage.ledger.contract.TaskQueues`, but for
    the order of tasks within a host."""

    behind: Uses[TaskQueues]
    keeps_state = True

    def __init__(self, sheet: TrieQueuesSheet | None = None) -> None:
        super().__init__(sheet)
        self._windows: dict[str, _Window] = {}
        self._waiting = 0
        """Tasks in all windows."""
        self.metrics.gauge("taking_turns", lambda: self._waiting)

    def __len__(self) -> int:
        return len(self.behind) + self._waiting

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        """Hosts that the caller now holds."""
        return self.behind.admit(now, most)

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host. If there are none, the host is no longer held."""
        window = self._windows.setdefault(host, _Window())
        if not window.count:
            # Only then: a host of which the ledger gives nothing is held no more, and could be admitted twice.
            given = self.behind.pop(host, max(1, min(self.sheet.window, self.sheet.tasks - self._waiting)))
            for task in given:
                window.root.put(task)
            window.count = len(given)
            self._waiting += window.count
        if not window.count:
            del self._windows[host]
            return []
        taken = [window.take() for _ in range(min(most, window.count))]
        self._waiting -= len(taken)
        return taken

    def put_back(self, task: Task) -> None:
        """This popped task is not in flight after all."""
        window = self._windows.get(task.host)
        if window is None:
            self.behind.put_back(task)
        else:
            window.returned.append(task)
            window.count += 1
            self._waiting += 1

    def rest(self, host: str, until: float) -> None:
        """Hold this host no more before `until`; tasks that still took turns go back to the ledger."""
        window = self._windows.pop(host, None)
        if window is not None:
            self._waiting -= window.count
            for task in [*window.root.left(), *window.returned]:
                self.behind.put_back(task)
        self.behind.rest(host, until)

    def next_rest(self) -> float:
        """When the next resting host may be admitted."""
        return self.behind.next_rest()

    def next_due(self) -> float:
        """When the next task for later is due."""
        return self.behind.next_due()

    def wake(self, now: float) -> int:
        """Queue tasks that are due."""
        return self.behind.wake(now)
