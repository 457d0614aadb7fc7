"""The durable heart: what a crawl must not forget (DESIGN 4.1). Suites: `gossamer.testing.check_ledger`, `check_task_queues`."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from gossamer.model.kept import HostState
from gossamer.model.task import Task
from gossamer.model.visit import Location, Visit


class Group(Protocol):
    """The consequences of a group of visits, staged until its `with` block ends: then all are kept, or none.

    Promises:
        1. Nothing is kept when the block raises, or the process dies before it ends.
        2. `offer` is check-and-put: what comes out is new to the store and to this group, in order, each once.
        3. A URL that `offer` let out is seen exactly if this group is kept.
    """

    def offer(self, urls: Sequence[str]) -> list[str]:
        """Those of `urls` that are new, in order, each once."""
        ...

    def push(self, tasks: Iterable[Task]) -> None:
        """Queue tasks behind those of their hosts. Never blocks, whatever their number."""
        ...

    def visited(self, visit: Visit, location: Location | None) -> bool:
        """Keep the row of a task that was popped and end its flight; False, and nothing, where it is not in flight."""
        ...

    def host(self, state: HostState) -> None:
        """Keep the state of a host."""
        ...

    def written(self, file: str, end: int) -> None:
        """A file of the crawl directory holds what this group points to, up to byte `end`."""
        ...


class Ledger(Protocol):
    """Keeps what a crawl must not forget.

    Promises:
        1. After the `with` block of a group, what it staged survives the death of the process.
        2. After `settle`, it survives what the durability setting names.
        3. A URL is seen exactly if its task is queued, in flight, or done.
    """

    def group(self) -> AbstractContextManager[Group]:
        """Open a group; one at a time."""
        ...

    async def settle(self) -> None:
        """Return when every group so far is as durable as the setting asks."""
        ...

    def counters(self) -> Mapping[str, int]:
        """Sums over all kept groups, by name; `outcome:WORD` for each outcome."""
        ...

    def committed_ends(self) -> Mapping[str, int]:
        """File of the crawl directory -> the byte at which what is kept of it ends. What follows was never committed."""
        ...


class TaskQueues(Protocol):
    """Tasks by host, hosts by turns. Whoever schedules them holds a host from `admit` until `pop` gives nothing or `rest`.

    Promises:
        1. Every pushed task is popped, in the order of its host's pushes.
        2. A popped task whose visit was not kept is popped again after the store is reopened, before those behind it.
        3. A host with tasks that nobody holds is admitted, sooner or later, also after reopening.
        4. Memory is bounded by settings, whatever the number of hosts and tasks.
    """

    def admit(self, now: float, most: int = 1_000) -> list[HostState]:
        """Hosts that the caller now holds: they have tasks, or may have. `now` is wall time, in seconds."""
        ...

    def pop(self, host: str, most: int = 1) -> list[Task]:
        """Up to `most` tasks of a held host, now in flight. None: the host is held no more, and comes again when its turn does."""
        ...

    def rest(self, host: str, until: float) -> None:
        """Hold this host no more; it is admitted again after `until` (wall time, in seconds), not before."""
        ...

    def __len__(self) -> int:
        """Tasks that are not popped."""
        ...
