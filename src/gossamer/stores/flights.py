"""Flights in memory: what is between hand-out and commit, bounded by the crawl's concurrency."""

from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider


class MemoryFlights(Provider[NoSettings]):
    """Departures that have not arrived yet."""

    keeps_state = True

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._open: set[str] = set()
        self.metrics.gauge("open", lambda: len(self._open))

    def depart(self, url: str) -> None:
        """This URL was handed out."""
        self._open.add(url)

    def arrive(self, url: str) -> bool:
        """True the first time after a departure."""
        if url in self._open:
            self._open.remove(url)
            return True
        return False
