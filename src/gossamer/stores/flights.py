"""Flights in memory: what is between hand-out and commit, bounded by the crawl's concurrency."""

from itertools import islice

from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider


class MemoryFlights(Provider[NoSettings]):
    """Remembers which tasks are being fetched, in memory."""

    keeps_state = True

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._open: dict[str, int] = {}
        self.metrics.gauge("open", lambda: len(self._open))

    def depart(self, identity: str) -> None:
        """This task was handed out: twice at once where walks cross."""
        self._open[identity] = self._open.get(identity, 0) + 1

    def oldest(self, most: int) -> list[str]:
        """The identities that have been under way for longest, the oldest first."""
        return list(islice(self._open, most))

    def arrive(self, identity: str) -> bool:
        """True once for each departure."""
        count = self._open.get(identity, 0)
        if count > 1:
            self._open[identity] = count - 1
        elif count:
            del self._open[identity]
        return count > 0
