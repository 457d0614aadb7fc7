"""Which hosts take turns: they come from the queues, stand in the schedule of politeness, rest on the disk, and leave.

Place in the flow: the frontier calls this whenever something happened to a host; politeness says whose turn it is.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import chain
from math import inf
from typing import Final

import msgspec

from gossamer.frontier.contract import Politeness
from gossamer.frontier.sheet import FrontierUses
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.errors import DiskFull
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of

# What the frontier knows of the hosts that take turns: plain bookkeeping, bounded by their number.
#
# A host is here from its admission until its queue is empty or its turn is over; for a while after that it is remembered,
# since most hosts come back soon. What must outlive the process is in the ledger.

#: Hosts that are remembered after they left: their address and pace need not be found again.
REMEMBERED = 8_192


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

    def __repr__(self) -> str:
        return f"<Host {self.name} at {self.address}, asking {sorted(self.asking)}>"


class FrontierHosts:
    """Hosts by name."""

    def __init__(self) -> None:
        self._hosts: dict[str, FrontierHost] = {}
        self._left: OrderedDict[str, FrontierHost] = OrderedDict()
        self.get = self._hosts.get
        """The host of this name, or None where it takes no turns."""

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[FrontierHost]:
        return iter(self._hosts.values())

    def __repr__(self) -> str:
        return f"<Hosts {len(self._hosts)} here, {len(self._left)} remembered>"

    def enter(self, name: str, *, is_held: bool) -> FrontierHost:
        """This host takes turns from now on."""
        host = self._hosts.get(name)
        if host is None:
            host = self._left.pop(name) if name in self._left else FrontierHost(name)
            self._hosts[name] = host
        host.is_held = host.is_held or is_held
        return host

    def leave(self, host: FrontierHost) -> list[str]:
        """Its queue is empty, or its turn is over. Returns hosts that are remembered no more."""
        host.is_held = False
        if not (host.asking or host.errands):
            self._hosts.pop(host.name, None)
            self._left[host.name] = host
        forgotten = []
        while len(self._left) > REMEMBERED:
            forgotten.append(self._left.popitem(last=False)[0])
        return forgotten


# Hosts whose names turned out to have no address, until the ledger is told.
#
# Place in the flow: the frontier gathers them as look-ups end, and writes all of a turn in one group: a page may name
# thousands.


class Nameless:
    """Names that are still to be written down."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __repr__(self) -> str:
        return f"<Nameless {len(self._names)} to be written>"

    def add(self, name: str) -> None:
        """This name has no address."""
        self._names.append(name)

    def write(self, ledger: Ledger, politeness: Politeness, now: float) -> None:
        """Count each as a failure of its host, with what is known of the host; `now` is in seconds since the epoch."""
        if not self._names:
            return
        try:
            with ledger.group() as group:
                group.count(f"outcome:{Outcome.DNS_FAILED}", len(self._names))
                for name in self._names:
                    state = group.host_state(name)
                    counters = {**state.counters, "errors": state.counters.get("errors", 0) + 1}
                    note, first = politeness.note(name), state.first_seen or now
                    group.host(
                        msgspec.structs.replace(state, note=note, counters=counters, first_seen=first, last_seen=now)
                    )
        except DiskFull:
            return  # they are written down when there is room again
        self._names.clear()


# Hosts that are set aside: those that rest on the disk, and those whose turn it was and who were not asked.
#
# Place in the flow: the frontier asks here before it takes a host's next task, and asks whether all that is left had its
# chances: then the crawl need not stay alive.


class Aside:
    """Names of hosts, by why they are set aside."""

    def __init__(self, politeness: Callable[[], Politeness], is_all_here: Callable[[], bool]) -> None:
        """Nobody is set aside.

        Args:
            politeness: gives the present one: it may be exchanged while a crawl runs.
            is_all_here: whether neither a seed nor a task for later will bring another host.
        """
        self._politeness = politeness
        self._is_all_here = is_all_here
        self._resting: set[str] = set()
        """Hosts that rest on the disk and had chances left when they went."""
        self._passed_over: deque[str] = deque()
        """Hosts whose turn it was when only slots were left that are kept for lively ones."""
        self._held_back: list[str] = []
        """Spent hosts whose turn it was while nothing else was left: of thousands some are always due, and their probes
        would keep a crawl alive for ever."""
        self._are_last: bool | None = None
        """Whether only spent hosts are left, in this round; None until somebody asked."""

    def __repr__(self) -> str:
        return (
            f"<Aside {len(self._resting)} rest, {len(self._passed_over)} passed over, {len(self._held_back)} held back>"
        )

    def rests(self, name: str) -> None:
        """This host goes to the disk until a time."""
        if not self._politeness().is_spent(name):
            self._resting.add(name)

    def is_back(self, name: str) -> None:
        """This host was admitted, from the disk perhaps."""
        self._resting.discard(name)

    def next_round(self, slots: int) -> list[str]:
        """Hosts that are to take turns again, now that so many slots are free for hosts of any kind."""
        names, self._held_back, self._are_last = self._held_back, [], None
        names += [self._passed_over.popleft() for _ in range(min(len(self._passed_over), slots))]
        return names

    def keeps(self, host: FrontierHost, *, only_lively: bool) -> bool:
        """Whether a host whose turn it is is not asked now, but after the next round began.

        Args:
            host: it has left the schedule.
            only_lively: only slots are left that are kept for lively hosts.
        """
        if only_lively and not host.is_lively:
            self._passed_over.append(host.name)
            return True
        if host.errands or not self._politeness().is_spent(host.name):
            return False
        if self._are_last is None:
            self._are_last = self.is_only_spent()
        if self._are_last:
            self._held_back.append(host.name)
        return self._are_last

    def is_only_spent(self) -> bool:
        """Whether all hosts that wait were given their chances, and no other will come. `O(n)` where it is so."""
        if not self._is_all_here():
            return False
        polite = self._politeness()
        return all(map(polite.is_spent, self._names()))

    def all_wait(self, seconds: float, now: float) -> bool:
        """Whether every host that has tasks waits for longer than so many seconds, to be tried again. `O(n)` where it is so."""
        polite = self._politeness()
        return all(polite.retry_wait(name, now) > seconds for name in self._names())

    def first_retry(self, now: float) -> float:
        """Seconds until the first of these hosts is tried again; infinite where there is none. `O(n)`."""
        polite = self._politeness()
        return min((polite.retry_wait(name, now) for name in self._names()), default=inf)

    def next_retry(self, now: float) -> float:
        """The same of those alone that do wait to be tried again."""
        polite = self._politeness()
        return min((polite.retry_wait(name, now) for name in self.waiting(now)), default=inf)

    def waiting(self, now: float) -> Iterator[str]:
        """Hosts that wait to be tried again."""
        polite = self._politeness()
        return (name for name in self._names() if polite.retry_wait(name, now) > 0.0)

    def _names(self) -> Iterator[str]:
        return chain(self._resting, self._passed_over, self._held_back, self._politeness().at_work())


#: Hosts that are admitted at once: each batch of moves is one commit.
ADMITTED: Final = 256

#: Tasks of a host that are looked at for another endpoint when one of them does not answer.
LOOKED_AT: Final = 256

#: Hosts that take turns before those that wait long make room for others, and what is long, in seconds: they come back
#: from the disk when they are due.
CROWDED: Final = 8_192
LONG_WAIT: Final = 300.0


class HostTurns:
    """Hosts that come, wait for their turns, and go."""

    def __init__(self, uses: FrontierUses, hosts: FrontierHosts, aside: Aside, crowded: int) -> None:
        """Nobody is here yet.

        Args:
            uses: the frontier's providers.
            hosts: who is here.
            aside: who is set aside.
            crowded: hosts that take turns before those that wait long make room for others.
        """
        self._uses = uses
        self._hosts = hosts
        self._aside = aside
        self._crowded = crowded
        self.is_stirred = True
        """The queues may have hosts that can be admitted."""

    def __repr__(self) -> str:
        return f"<HostTurns of {self._hosts!r}>"

    def put(self, name: str) -> None:
        """This host may take a turn, if it has something to ask and nothing else comes first."""
        host = self._hosts.get(name)
        if host is None or (not host.errands and (host.asking or not host.is_held)):
            return
        if host.is_held and not host.errands and len(self._hosts) > self._crowded:
            wait = self._uses.politeness.waits(name, self._uses.clock.monotonic())
            if LONG_WAIT < wait < inf:
                self._rest(host, wait)
                return
        self._uses.politeness.put(name, host.address, host.level)

    def _rest(self, host: FrontierHost, seconds: float) -> None:
        self._aside.rests(host.name)
        self._uses.queues.rest(host.name, self._uses.clock.steady() + seconds)
        self.leave(host)

    def leave(self, host: FrontierHost) -> None:
        """Its queue is empty, or its turn is over."""
        for name in self._hosts.leave(host):
            self._uses.politeness.forget(name)

    def settle(self, site: str) -> None:
        """A site's robots.txt has been asked for: its host goes on."""
        host = self._hosts.get(host_of(site))
        if host is None:
            return
        host.asking = tuple(one for one in host.asking if one != site)
        if host.is_held:
            self.put(host.name)
        else:
            self.leave(host)

    def admit(self) -> bool:
        """Take hosts over from the queues, where there may be any; False if there is none."""
        if not self.is_stirred:
            return False
        uses = self._uses
        states = uses.queues.admit(uses.clock.steady(), ADMITTED)
        self.is_stirred = len(states) == ADMITTED
        for state in states:
            self._aside.is_back(state.host)
            uses.politeness.restore(state.host, state.note, clean=uses.ledger.is_clean)
            self._hosts.enter(state.host, is_held=True)
            if self.look_around(state.host):
                self.put(state.host)
        return bool(states)

    def wake_due(self) -> None:
        """Tasks whose next try is due go back to their hosts, and hosts whose rest is over come back."""
        queues, wall = self._uses.queues, self._uses.clock.steady()
        if queues.next_due() <= wall:
            queues.wake(wall)
            self.is_stirred = True
        if queues.next_rest() <= wall:
            self.is_stirred = True

    def wake_known(self) -> None:
        """Pages that are due for another visit go to their hosts."""
        uses = self._uses
        wall = uses.clock.steady()
        for revisits in uses.revisits.get("due", ()):
            if revisits.next_due() <= wall and revisits.wake(wall, len(uses.queues)):
                self.is_stirred = True

    def look_around(self, name: str) -> bool:
        """Where a host waits because an endpoint does not answer: see whether it has tasks for another. False where it has none at
        all, and is held no more."""
        host, uses = self._hosts.get(name), self._uses
        if host is None or not host.is_held or not uses.politeness.is_closed(name, uses.clock.monotonic()):
            return True
        tasks = uses.queues.pop(name, LOOKED_AT)
        if not tasks:
            self.leave(host)
            return False
        for task in reversed(tasks):
            uses.queues.put_back(task)
        uses.politeness.meet(name, {task.url for task in tasks})
        return True
