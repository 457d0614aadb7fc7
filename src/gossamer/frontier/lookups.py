"""Names are looked up ahead of their hosts' turn, a bounded number at once.

Place in the flow: :mod:`dispatch` asks before it hands out a host's first task, so that the address takes its share of
politeness, and so that a host that must not be asked, or that does not exist, is known as such before its robots.txt is
asked for. Names are looked up in turn by the host whose page named them, and of each in the order in which they came: a page
that names thousands of hosts that do not exist delays only its own.
"""

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from gossamer.frontier.host_turns import FrontierHost
from gossamer.values.errors import AddressRefused, DiskFull, NoSuchName, ResolutionFailed
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import endpoint_of, host_of, is_machine, scheme_of

if TYPE_CHECKING:
    from gossamer.frontier.component import Frontier

#: Names that are looked up at once: a page may link to 6,000 hosts.
LOOKUPS: Final = 64


class Lookups:
    """Finds the addresses of hosts, and notes the hosts that have none."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self._sought: dict[str, deque[tuple[FrontierHost, str, int]]] = {}
        """By the host that named them, the next one first."""
        self._waiting = 0
        self._tasks: set[asyncio.Task[ResolutionFailed | None]] = set()
        self._nameless: list[str] = []
        """Names without an address that the ledger does not know of yet."""

    def __len__(self) -> int:
        return self._waiting + len(self._tasks)

    def is_known(self, host: FrontierHost, task: Task) -> bool:
        """Whether it is known where this task's request would go; otherwise that is looked up."""
        port = endpoint_of(task.url)[1]
        if host.absent or port in host.ports:
            return True
        sheet = self._frontier.sheet
        if not is_machine(host.name) or scheme_of(task.url) in sheet.unresolved:
            host.ports[port] = ""  # there is nothing to look up, as for files of this machine
            return True
        if sheet.proxied:
            host.ports[port] = ""
            try:
                self._frontier.resolver.judge(host.name, port)
            except AddressRefused as error:
                host.ports[port] = str(error)
            return True
        self._sought.setdefault(host_of(task.source) if task.source else "", deque()).append((host, task.url, port))
        self._waiting += 1
        self._go_on()
        return False

    def write(self) -> None:
        """Count each name that turned out to have no address as a failure of its host, all in one group: a page may name
        thousands."""
        if not self._nameless:
            return
        politeness, now = self._frontier.politeness, self._frontier.clock.now()
        try:
            with self._frontier.ledger.group() as group:
                group.count(f"outcome:{Outcome.DNS_FAILED}", len(self._nameless))
                for name in self._nameless:
                    state = group.host_state(name)
                    counters = {**state.counters, "errors": state.counters.get("errors", 0) + 1}
                    note, first = politeness.note(name), state.first_seen or now
                    group.host(
                        msgspec.structs.replace(state, note=note, counters=counters, first_seen=first, last_seen=now)
                    )
        except DiskFull:
            return  # they are written down when there is room again
        self._nameless.clear()

    async def close(self) -> None:
        """Look up nothing more, and write down what was found."""
        self._sought.clear()
        self._waiting = 0
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.write()

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

    async def _look_up(self, host: FrontierHost, url: str, port: int) -> ResolutionFailed | None:
        """Put the address into the host; returns why there is none now. The port is then as unknown as it was."""
        reason = ""
        try:
            host.address = (await self._frontier.resolver.resolve(endpoint_of(url)[0], port)).address
        except AddressRefused as error:
            reason = str(error)
        except ResolutionFailed as error:
            host.address = ""
            return error
        except Exception as error:  # against the resolver's contract; its host is not held up by that
            host.address = ""
            self._frontier.metrics.count(f"broken_resolver:{type(error).__name__}")
        host.ports[port] = reason
        host.is_none = False
        return None

    def _done(self, host: FrontierHost, task: "asyncio.Task[ResolutionFailed | None]") -> None:
        self._tasks.discard(task)
        self._go_on()
        # The host goes on only when it is no longer counted: the frontier may ask whether anything is still being looked up.
        if not task.cancelled():
            if (failure := task.result()) is not None:
                self._missing(host, is_none=isinstance(failure, NoSuchName))
            self._frontier.turns.put(host.name)
            self._frontier.signal("tasks")

    def _missing(self, host: FrontierHost, *, is_none: bool) -> None:
        """Let a host without an address wait like any host that failed, though it was not asked.

        Of a name that does not exist (`is_none`) the second look-up is the last: its links are dead.
        """
        if host.errands:
            # Another host's robots.txt led here, and is not to be had.
            host.ports[endpoint_of(host.errands[0].url)[1]] = ""
            return
        is_last = is_none and host.is_none
        host.is_none = host.is_none or is_none
        if is_last:
            host.absent = "the name does not exist"
        else:
            self._frontier.politeness.missed(host.name)
            self._nameless.append(host.name)
        self._frontier.totals.missed(host.name)
        outcome = Outcome.CLIENT_ERROR if is_last else Outcome.DNS_FAILED
        self._frontier.failures.answered(f"http://{host.name}/", outcome)
