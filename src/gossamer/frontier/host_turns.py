"""Hosts take turns: they come from the ledger's queues, stand in politeness' schedule, rest on the disk, and leave; and their
names are looked up ahead of their turns, a bounded number at once.

Place in the flow: the component calls this whenever something happened to a host, and :mod:`dispatch` before it asks one.
Memory is bounded by the number of hosts that take turns; anything that must outlive the process is in the ledger.

A look-up comes before a host's first task is handed out, so that the address takes its share of politeness, and so that a host
that must not be asked, or that does not exist, is known as such before its robots.txt is asked for. Names are looked up in turn
by the host whose page named them, and of each in the order in which they came: a page that names thousands of hosts that do not
exist delays only its own.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from gossamer.values.addresses import is_address
from gossamer.values.errors import AddressRefused, DiskFull, NoSuchName, ResolutionFailed
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import endpoint_of, host_of, is_machine, scheme_of

if TYPE_CHECKING:
    from gossamer.frontier.frontier import Frontier

#: Hosts that are remembered after they left: most come back soon, and their address and pace need not be found again.
REMEMBERED: Final = 8_192

#: Hosts that are admitted at once: each batch of moves is one commit.
ADMITTED: Final = 256

#: Tasks of a host that are looked at for another endpoint when one of them does not answer.
LOOKED_AT: Final = 256

#: Hosts that take turns before those that wait long make room for others, and what is long, in seconds: they come back
#: from the disk when they are due.
CROWDED: Final = 8_192
LONG_WAIT: Final = 300.0

#: Seconds that a page waits for a host that failed, or asked for a pause: it is read without what it wants there. It has a place of
#: few, and such a host may take an hour.
WANTED: Final = 60.0


class FrontierHost:
    """One host that takes turns, or that a robots.txt led to."""

    __slots__ = (
        "absent",
        "address",
        "asking",
        "crawl_delay",
        "errands",
        "is_held",
        "is_lively",
        "is_none",
        "level",
        "name",
        "ports",
        "wants",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = ""
        """Its IP address; empty where none is known."""
        self.ports: dict[int, str] = {}
        """Ports that were looked up -> why they must not be asked; empty where they may."""
        self.is_none = False
        """A look-up has said that its name does not exist."""
        self.absent = ""
        """Why none of its links leads anywhere; empty where they may."""
        self.is_held = False
        """The queues have handed it over: its tasks may be popped."""
        self.is_lively = False
        """The last page that it was asked for came, and soon."""
        self.level = 0
        """Of the task that was popped last: which front queue it stands in."""
        self.crawl_delay = 0.0
        """As politeness was told last, in seconds."""
        # Both are nearly always empty, and hosts are many: an empty deque and an empty set would take 970 bytes, these take 56.
        self.asking: tuple[str, ...] = ()
        """Sites of this host whose robots.txt is being fetched: no task goes out before."""
        self.errands: list[Task] = []
        """Robots.txt requests that were redirected to this host by another."""
        self.wants: list[Task] = []
        """Requests of pages that are being rendered."""


#: Seconds after which a host is looked at again that is not asked, since it is about to go to another agent.
WITHHELD = 1.0


class HostTurns:
    """Hosts that come, wait for their turns, and go."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self._hosts: dict[str, FrontierHost] = {}
        self._left: OrderedDict[str, FrontierHost] = OrderedDict()
        self.get = self._hosts.get
        """The host of this name, or None where it takes no turns."""
        self.is_stirred = True
        """The queues may have hosts that can be admitted."""
        self._resting: set[str] = set()
        """Hosts that rest on the disk and had chances left when they went."""
        self._passed_over: deque[str] = deque()
        """Hosts whose turn it was when only slots were left that are kept for lively ones."""
        self._held_back: list[str] = []
        """Spent hosts whose turn it was while nothing else was left: of thousands some are always due, and their probes
        would keep a crawl alive for ever."""
        self.is_withheld: Callable[[str], bool] = frozenset[str]().__contains__
        """Says which hosts are not asked, since they are about to go to another agent."""
        self.is_doubtful: Callable[[str], bool] = lambda name: False
        """Says of which hosts it is not known here when they were asked last."""
        self.wanting: set[str] = set()
        """Hosts that pages want something from while they are rendered."""
        self._only_spent: bool | None = None
        """Whether only spent hosts are left, in this round; None until that was asked."""
        self.has_put_off = False
        """The next round differs from this one: hosts were put off, or it was asked whether only spent ones are left."""

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[FrontierHost]:
        return iter(self._hosts.values())

    # -- coming

    def admit(self) -> bool:
        """Take hosts over from the queues, where there may be any (`is_stirred`); False if there is none."""
        frontier = self._frontier
        states = frontier.queues.admit(frontier.clock.steady(), ADMITTED)
        self.is_stirred = len(states) == ADMITTED
        for state in states:
            self._resting.discard(state.host)
            is_sure = frontier.ledger.is_clean and not self.is_doubtful(state.host)
            frontier.politeness.restore(state.host, state.note, clean=is_sure)
            self.enter(state.host, is_held=True)
            if self.look_around(state.host):
                self.put(state.host)
        return bool(states)

    def enter(self, name: str, *, is_held: bool) -> FrontierHost:
        host = self._hosts.get(name)
        if host is None:
            host = self._left.pop(name) if name in self._left else FrontierHost(name)
            self._hosts[name] = host
        host.is_held = host.is_held or is_held
        return host

    def wake_due(self, wall: float, *, known_pages: bool) -> None:
        """Queue tasks whose next try is due, and `known_pages` that are due for a visit; hosts whose rest is over come back."""
        queues = self._frontier.queues
        if queues.next_due() <= wall:
            queues.wake(wall)
            self.is_stirred = True
        if queues.next_rest() <= wall:
            self.is_stirred = True
        if known_pages:
            for revisits in self._frontier.revisits.get("due", ()):
                if revisits.next_due() <= wall and revisits.wake(wall, len(queues)):
                    self.is_stirred = True

    # -- requests of pages that are being rendered

    def want(self, task: Task) -> None:
        """A page waits for this."""
        self.enter(task.host, is_held=False).wants.append(task)
        self.wanting.add(task.host)
        self.put(task.host)

    def given(self, host: FrontierHost) -> Task:
        """Take the first of those of a host."""
        task = host.wants.pop(0)
        if not host.wants:
            self.wanting.discard(host.name)
        return task

    def refuse_wants(self, host: FrontierHost, outcome: Outcome, why: str) -> None:
        """Pages are read without what they want from a host."""
        while host.wants:
            self._frontier.slots.end(self.given(host), outcome, why)

    def take_own(self, host: FrontierHost, most: int) -> list[Task]:
        """Take up to `most` requests of a host that are in no queue."""
        tasks, host.errands[:] = host.errands[:most], host.errands[most:]
        while host.wants and len(tasks) < most:
            tasks.append(self.given(host))
        return tasks

    # -- waiting for a turn

    def put(self, name: str) -> None:
        """Let this host take a turn, if it has something to ask and nothing else comes first."""
        host, frontier = self._hosts.get(name), self._frontier
        if host is None:
            return
        if host.wants and frontier.politeness.retry_wait(name, frontier.clock.monotonic()) > WANTED:
            self.refuse_wants(host, Outcome.BLOCKED, "its host does not answer, or has asked for a pause")
            if not (host.is_held or host.asking or host.errands):
                self.leave(host)
        if not host.errands and (host.asking or not (host.is_held or host.wants)):
            return
        if host.is_held and len(self._hosts) > frontier.crowded and not (host.errands or host.wants):
            wait = frontier.politeness.waits(name, frontier.clock.monotonic())
            if LONG_WAIT < wait < inf:
                if not frontier.politeness.is_spent(name):
                    self._resting.add(name)
                frontier.queues.rest(name, frontier.clock.steady() + wait)
                self.leave(host)
                return
        frontier.politeness.put(name, host.address, host.level)

    def begin_round(self) -> None:
        """Let hosts that were not asked take turns again, as far as slots are free for hosts of any kind."""
        held_back, self._held_back, self._only_spent = self._held_back, [], None
        for name in held_back:
            self.put(name)
        for _ in range(min(len(self._passed_over), self._frontier.slots.free_for_all)):
            self.put(self._passed_over.popleft())
        self.has_put_off = bool(self._passed_over)

    def passes_over(self, host: FrontierHost, *, wants_only: bool = False) -> bool:
        """Whether a host whose turn has come, and which left the schedule, is asked only after the next round began; `wants_only`:
        nothing goes out but the requests of pages that are being rendered."""
        frontier = self._frontier
        if host.wants:
            return False
        if wants_only or (not host.is_lively and frontier.slots.free_for_all <= 0):
            self._passed_over.append(host.name)
            self.has_put_off = True
            return True
        if host.errands or not frontier.politeness.is_spent(host.name):
            return False
        if self._only_spent is None:
            self._only_spent = frontier.termination.is_only_spent()
            self.has_put_off = True
        if self._only_spent:
            self._held_back.append(host.name)
        return self._only_spent

    def settle(self, site: str) -> None:
        host = self._hosts.get(host_of(site))
        if host is None:
            return
        host.asking = tuple(one for one in host.asking if one != site)
        if host.is_held or host.wants:
            self.put(host.name)
        else:
            self.leave(host)

    def look_around(self, name: str) -> bool:
        """Where a host waits because an endpoint does not answer, see whether it has tasks for another. False where it has none at
        all, and is held no more."""
        host, frontier = self._hosts.get(name), self._frontier
        if host is None or not host.is_held or not frontier.politeness.is_closed(name, frontier.clock.monotonic()):
            return True
        tasks = frontier.queues.pop(name, LOOKED_AT)
        if not tasks:
            self.leave(host)
            return False
        for task in reversed(tasks):
            frontier.queues.put_back(task)
        frontier.politeness.meet(name, {task.url for task in tasks})
        return True

    def names(self) -> Iterator[str]:
        """Hosts that have tasks and wait: in the schedule, on the disk, or for the next round."""
        return chain(self._resting, self._passed_over, self._held_back, self._frontier.politeness.at_work())

    # -- leaving

    def withhold(self, host: FrontierHost) -> None:
        """Let a host rest that is not asked now; it is looked at again soon."""
        self._resting.add(host.name)
        self._frontier.queues.rest(host.name, self._frontier.clock.steady() + WITHHELD)
        self.leave(host)

    def leave(self, host: FrontierHost) -> None:
        """Give a host no more turns: its queue is empty, or it rests."""
        host.is_held = False
        if not (host.asking or host.errands or host.wants):
            self._hosts.pop(host.name, None)
            self._left[host.name] = host
        while len(self._left) > REMEMBERED:
            self._frontier.politeness.forget(self._left.popitem(last=False)[0])

    def keep_waits(self) -> None:
        """Write down how long each host has still to wait, when a run ends.

        A host's state is written with each of its visits. A host that was asked in a run that was killed waits its whole
        delay in the next, which may end before it has visited the host: without this, a third run would go by the note of the
        first one, and ask too soon.
        """
        politeness, now = self._frontier.politeness, self._frontier.clock.monotonic()
        waiting = [name for name in politeness.at_work() if politeness.waits(name, now) > 0.0]
        if not waiting:
            return
        try:
            with self._frontier.ledger.group() as group:
                for name in waiting:
                    if note := politeness.note(name):
                        group.host(msgspec.structs.replace(group.host_state(name), note=note))
        except DiskFull:
            return  # then they go by what was written before


# -- look-ups

#: Names that are looked up at once: a page may link to 6,000 hosts.
LOOKUPS: Final = 64


class Lookups:
    """Finds the addresses of hosts, and notes the hosts that have none."""

    def __init__(self, frontier: "Frontier") -> None:
        self._frontier = frontier
        self._sought: dict[str, deque[tuple[FrontierHost, str, int]]] = {}
        """By the host that named them, the next one first."""
        self._waiting = 0
        self._tasks: dict[asyncio.Task[ResolutionFailed | None], FrontierHost] = {}
        self.nameless: list[str] = []
        """Names without an address that the ledger does not know of yet."""

    def __len__(self) -> int:
        return self._waiting + len(self._tasks)

    @property
    def names(self) -> int:
        """Hosts among them that have a name: an address is judged, and no server is asked for it."""
        sought = (host for named in self._sought.values() for host, _, _ in named)
        return sum(not is_address(host.name.strip("[]")) for host in chain(sought, self._tasks.values()))

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
        politeness, now = self._frontier.politeness, self._frontier.clock.now()
        try:
            with self._frontier.ledger.group() as group:
                group.count(f"outcome:{Outcome.DNS_FAILED}", len(self.nameless))
                for name in self.nameless:
                    state = group.host_state(name)
                    counters = {**state.counters, "errors": state.counters.get("errors", 0) + 1}
                    note, first = politeness.note(name), state.first_seen or now
                    group.host(
                        msgspec.structs.replace(state, note=note, counters=counters, first_seen=first, last_seen=now)
                    )
        except DiskFull:
            return  # they are written down when there is room again
        self.nameless.clear()

    async def close(self) -> None:
        self._sought.clear()
        self._waiting = 0
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.nameless:
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
            self._tasks[task] = host
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
        self._tasks.pop(task, None)
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
        self._frontier.turns.refuse_wants(host, Outcome.DNS_FAILED, "its host has no address now")
        is_last = is_none and host.is_none
        host.is_none = host.is_none or is_none
        if is_last:
            host.absent = "the name does not exist"
        else:
            self._frontier.politeness.missed(host.name)
            self.nameless.append(host.name)
        self._frontier.totals.missed(host.name)
        outcome = Outcome.CLIENT_ERROR if is_last else Outcome.DNS_FAILED
        self._frontier.failures.answered(f"http://{host.name}/", outcome)
