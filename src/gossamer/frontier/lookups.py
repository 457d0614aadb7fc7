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

from gossamer.fetcher.contract import Resolver
from gossamer.frontier.host_turns import FrontierHost, Nameless
from gossamer.frontier.limits import Failures, Stopping
from gossamer.frontier.sheet import FrontierUses
from gossamer.values.errors import AddressRefused, NoSuchName, ResolutionFailed
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import endpoint_of, host_of, is_machine, scheme_of

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


# Whether it is known where a host's requests would go, and what follows where its name leads nowhere.
#
# Place in the flow: the frontier asks before a task goes out; :mod:`lookups` asks the resolver, ahead of the host's turn.


class HostAddresses:
    """Looks hosts up, and notes those that have no address."""

    def __init__(
        self,
        uses: FrontierUses,
        stopping: Stopping,
        failures: Failures,
        known: Callable[[FrontierHost], None],
        broken: Callable[[Exception], None],
    ) -> None:
        """Nothing is looked up yet.

        Args:
            uses: the frontier's providers.
            stopping: is told of hosts that nobody can reach.
            failures: remembers why they are tried again.
            known: called with each host of which there is news.
            broken: called with what a resolver raised against its contract.
        """
        self._uses = uses
        self._stopping = stopping
        self._failures = failures
        self._known = known
        missing, no_such = partial(self._missing, is_none=False), partial(self._missing, is_none=True)
        self._lookups = Lookups(lambda: uses.resolver, known, missing, no_such, broken)
        self._nameless = Nameless()

    def __len__(self) -> int:
        return len(self._lookups)

    def __repr__(self) -> str:
        return f"<HostAddresses: {len(self)} are looked up>"

    def is_known(self, host: FrontierHost, task: Task) -> bool:
        """Whether it is known where this task's request would go; otherwise that is looked up."""
        sheet = self._uses.sheet
        return self._lookups.is_known(host, task, proxied=sheet.proxied, unresolved=sheet.unresolved)

    def write(self) -> None:
        """Write down whose names turned out to have no address."""
        self._nameless.write(self._uses.ledger, self._uses.politeness, self._uses.clock.now())

    async def close(self) -> None:
        """Look up nothing more."""
        await self._lookups.close()

    def _missing(self, host: FrontierHost, *, is_none: bool) -> None:
        """Its name has no address: it has failed without being asked, and waits like any host that failed (fault 46).

        Of a name that does not exist (`is_none`) the second look-up is the last: its links are dead.
        """
        if host.errands:
            # Another host's robots.txt led here, and is not to be had.
            host.ports[endpoint_of(host.errands[0].url)[1]] = ""
        elif not (is_none and self._is_none_again(host)):
            self._uses.politeness.missed(host.name)
            self._note(host, Outcome.DNS_FAILED)
            self._nameless.add(host.name)
        self._known(host)

    def _is_none_again(self, host: FrontierHost) -> bool:
        host.is_none, was_none = True, host.is_none
        if was_none:
            self._note(host, Outcome.CLIENT_ERROR)
            host.absent = "the name does not exist"
        return was_none

    def _note(self, host: FrontierHost, outcome: Outcome) -> None:
        self._stopping.missed(host.name)
        self._failures.answered(f"http://{host.name}/", outcome)
