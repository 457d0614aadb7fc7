"""Hosts that are set aside: those that rest on the disk, and those whose turn it was and who were not asked.

Place in the flow: the frontier asks here before it takes a host's next task, and asks whether all that is left had its
chances: then the crawl need not stay alive.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from math import inf

from gossamer.contracts.politeness import Politeness
from gossamer.stages.frontier.hosts import FrontierHost


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
