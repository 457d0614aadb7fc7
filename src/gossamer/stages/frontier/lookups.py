"""Names that are looked up ahead of their hosts' turn (row M8), a bounded number at once.

Place in the flow: the frontier asks before it hands out a host's first task, so that the address takes its share of politeness,
and so that a host that must not be asked, or that does not exist, is known as such before its robots.txt is.

Whose pages name hosts take turns: one that names thousands that do not exist makes those wait that are its own, and
nobody else's.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Container
from functools import partial

from gossamer.contracts.resolving import Resolver
from gossamer.model.errors import AddressRefused, NoSuchName, ResolutionFailed
from gossamer.model.task import Task
from gossamer.model.url import endpoint_of, host_of, is_machine, scheme_of
from gossamer.stages.frontier.hosts import FrontierHost

#: Names that are looked up at once: a page may link to 6,000 hosts.
LOOKUPS = 64

_Told = Callable[[FrontierHost], None]


class Lookups:
    """Looks up hosts: in turn by the host whose page named them, and of each in the order in which they were asked for."""

    def __init__(
        self,
        resolver: Callable[[], Resolver],
        known: _Told,
        missing: _Told,
        no_such: _Told,
        broken: Callable[[Exception], None],
    ) -> None:
        """Nothing is looked up yet.

        Args:
            resolver: gives the present one: it may be exchanged while a crawl runs.
            known: called with each host whose port is known.
            missing: called with each host whose name has no address now; its port is as unknown as it was.
            no_such: called with each host whose name does not exist, in its place.
            broken: called with what a resolver raised against its contract; its host is not held up by that.
        """
        self._resolver = resolver
        self._known = known
        self._missing = missing
        self._no_such = no_such
        self._broken = broken
        self._sought: dict[str, deque[tuple[FrontierHost, str, int]]] = {}
        """By the host that named them, whose turn it is first."""
        self._waiting = 0
        self._tasks: set[asyncio.Task[_Told]] = set()

    def __len__(self) -> int:
        return self._waiting + len(self._tasks)

    def __repr__(self) -> str:
        return f"<Lookups {len(self._tasks)} under way, {self._waiting} wait>"

    def is_known(self, host: FrontierHost, task: Task, *, proxied: bool, unresolved: Container[str] = ()) -> bool:
        """Whether it is known where this task's request would go; otherwise that is looked up, ahead of its turn (M8).

        Args:
            host: the task's.
            task: what is to be asked for.
            proxied: a proxy alone looks names up: they are judged here, unseen.
            unresolved: schemes whose names are those of no machine.
        """
        port = endpoint_of(task.url)[1]
        if host.absent or port in host.ports:
            return True
        if not is_machine(host.name) or scheme_of(task.url) in unresolved:
            host.ports[port] = ""  # there is nothing to look up, as for files of this machine
            return True
        if proxied:
            host.ports[port] = self._judged_unseen(host.name, port)
            return True
        self.seek(host, task, port)
        return False

    def _judged_unseen(self, name: str, port: int) -> str:
        """Why this host must not be asked through a proxy; empty where it may."""
        try:
            self._resolver().judge(name, port)
        except AddressRefused as error:
            return str(error)
        return ""

    def seek(self, host: FrontierHost, task: Task, port: int) -> None:
        """Find out where a request for this task would go; the answer is put into the host."""
        self._sought.setdefault(host_of(task.source) if task.source else "", deque()).append((host, task.url, port))
        self._waiting += 1
        self._go_on()

    async def close(self) -> None:
        """Look up nothing more."""
        self._sought.clear()
        self._waiting = 0
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _go_on(self) -> None:
        while self._sought and len(self._tasks) < LOOKUPS:
            by = next(iter(self._sought))
            named = self._sought.pop(by)
            host, url, port = named.popleft()
            task = asyncio.create_task(self._look_up(host, url, port))
            if named:
                self._sought[by] = named
            self._waiting -= 1
            self._tasks.add(task)
            task.add_done_callback(partial(self._done, host))

    def _done(self, host: FrontierHost, task: "asyncio.Task[_Told]") -> None:
        self._tasks.discard(task)
        self._go_on()
        # Only when it is no longer counted: whoever is told may ask whether anything is still being looked up.
        if not task.cancelled():
            task.result()(host)

    async def _look_up(self, host: FrontierHost, url: str, port: int) -> _Told:
        """Put what is found into the host; returns who is to be told."""
        reason = ""
        try:
            host.address = (await self._resolver().resolve(endpoint_of(url)[0], port)).address
        except AddressRefused as error:
            reason = str(error)
        except NoSuchName:
            host.address = ""
            return self._no_such
        except ResolutionFailed:
            host.address = ""
            return self._missing
        except Exception as error:
            host.address = ""
            self._broken(error)
        host.ports[port] = reason
        host.is_none = False
        return self._known
