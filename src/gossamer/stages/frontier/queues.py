"""Queues by host, the frontier's memory: plain code without clock or loop.

Mercator's back queues (seed 004, section 3.2) in their simplest honest form: one FIFO queue a host, hosts take turns,
and at most `per_host` requests of a host are live at once.
"""

from collections import deque

from gossamer.model.task import Task


class HostQueues:
    """Tasks by host; hosts with work and a free slot are *ready* and take turns."""

    def __init__(self, per_host: int = 1) -> None:
        self.per_host = per_host
        self._waiting: dict[str, deque[Task]] = {}
        self._live: dict[str, int] = {}
        self._ready: deque[str] = deque()
        self._is_ready: set[str] = set()
        self._count = 0
        self._hosts: set[str] = set()

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<HostQueues {self._count} tasks of {len(self._waiting)} hosts, {len(self._ready)} ready>"

    @property
    def hosts(self) -> int:
        """Hosts that were ever seen."""
        return len(self._hosts)

    def push(self, task: Task) -> None:
        """Append a task to its host's queue."""
        self._hosts.add(task.host)
        queue = self._waiting.get(task.host)
        if queue is None:
            queue = self._waiting[task.host] = deque()
        queue.append(task)
        self._count += 1
        self._consider(task.host)

    def pop(self) -> Task | None:
        """The next task of the host whose turn it is, which then has one more live request; None while no host is ready."""
        if not self._ready:
            return None
        host = self._ready.popleft()
        self._is_ready.discard(host)
        queue = self._waiting[host]
        task = queue.popleft()
        if not queue:
            del self._waiting[host]
        self._count -= 1
        self._live[host] = self._live.get(host, 0) + 1
        self._consider(host)
        return task

    def free(self, host: str) -> None:
        """One live request of this host has ended."""
        live = self._live.get(host, 0) - 1
        if live > 0:
            self._live[host] = live
        else:
            self._live.pop(host, None)
        self._consider(host)

    def _consider(self, host: str) -> None:
        if host in self._waiting and host not in self._is_ready and self._live.get(host, 0) < self.per_host:
            self._ready.append(host)
            self._is_ready.add(host)
