"""Whether it is known where a host's requests would go, and what follows where its name leads nowhere.

Place in the flow: the frontier asks before a task goes out; :mod:`lookups` asks the resolver, ahead of the host's turn.
"""

from collections.abc import Callable
from functools import partial

from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import endpoint_of
from gossamer.stages.frontier.hosts import FrontierHost
from gossamer.stages.frontier.lingering import Failures
from gossamer.stages.frontier.lookups import Lookups
from gossamer.stages.frontier.nameless import Nameless
from gossamer.stages.frontier.stopping import Stopping
from gossamer.stages.frontier.uses import FrontierUses


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
