"""A crawl of one process comes to rest, so that several agents can go on with it: nothing is in flight, everything is committed.

Place in the flow: :mod:`growing` asks for it. Until the crawl has come to rest, it can still end as any crawl does, and a person's
`pause` and `continue` mean what follows.
"""

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from gossamer.stores.ledger.lock import ProcessLock

if TYPE_CHECKING:
    from gossamer.assembly.control.standing import CrawlStanding
    from gossamer.assembly.crawl import Crawl

#: Seconds that what is in flight may take. A crawl goes on where one answer takes longer: nothing is cut off for this.
PATIENCE = 30.0

#: Seconds between two looks.
_LOOK = 0.05


class BegunAlone(NamedTuple):
    """What one process did of a run that several agents go on with."""

    began: float
    """The monotonic instant at which the run began."""
    pages_before: int
    """Pages of earlier runs."""
    is_paused: bool
    """A person has said so."""
    standing: "CrawlStanding"
    """How the crawl stood then."""
    lock: ProcessLock
    """That of the crawl's supervisor: nobody else may have the crawl in between."""


class HandingOver:
    """The way from work to rest."""

    def __init__(self, crawl: "Crawl") -> None:
        """The crawl works as ever."""
        self._crawl = crawl
        self._is_resting = False
        self.is_paused = False
        """A person has said so; whoever goes on with the crawl begins so."""
        self.is_done = False
        """The crawl has ended at rest, and others are to go on with it."""

    def __repr__(self) -> str:
        return f"<HandingOver {'done' if self.is_done else 'under way' if self._is_resting else 'not asked for'}>"

    def pause(self) -> None:
        """Ask for nothing more until :meth:`go_on`."""
        self.is_paused = True
        self._crawl.units.frontier.pause()

    def go_on(self) -> None:
        """Ask again, or let the others do so."""
        self.is_paused = False
        if not self._is_resting:
            self._crawl.units.frontier.go_on()

    async def rest(self) -> bool:
        """End the crawl as soon as nothing is in flight, if it has more to do. False where it ended or goes on otherwise."""
        crawl, frontier = self._crawl, self._crawl.units.frontier
        self._is_resting = True
        frontier.pause()
        until = time.monotonic() + PATIENCE
        while crawl.working and not crawl.is_stopping and time.monotonic() < until:
            if not frontier.metrics.snapshot()["in_flight"]:
                if frontier.limit or not len(frontier.queues):
                    break  # it is about to end by itself
                self.is_done = True
                crawl.finish()
                return True
            await asyncio.sleep(_LOOK)
        self._is_resting = False
        if crawl.working and not self.is_paused:
            frontier.go_on()
        return False
