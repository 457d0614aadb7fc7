"""Which hosts take turns: they come from the queues, stand in the schedule of politeness, rest on the disk, and leave.

Place in the flow: the frontier calls this whenever something happened to a host; politeness says whose turn it is.
"""

from math import inf
from typing import Final

from gossamer.model.url import host_of
from gossamer.stages.frontier.aside import Aside
from gossamer.stages.frontier.hosts import FrontierHost, FrontierHosts
from gossamer.stages.frontier.uses import FrontierUses

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
