"""The tally: the end of the records arrow. Watches what is committed; other subscribers get copies of what it gets.

It feeds progress (which hosts are slow) and metrics (what kinds of documents came), and decides nothing.
"""

from collections.abc import Callable

from gossamer.flow.component import Consumer
from gossamer.flow.ports import In
from gossamer.flow.sheet import NoSettings
from gossamer.model.visit import Record

#: Hosts whose pace is remembered: progress shows a handful, and memory must not grow with the crawl.
SLOWEST_HOSTS = 32

#: Media types that are counted by name: a server may invent as many as it likes.
COUNTED_TYPES = 100


class Tally(Consumer[NoSettings]):
    """Counts committed documents by media type, and remembers the slowest hosts."""

    records: In[Record]

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self.slowest: dict[str, float] = {}
        self.told: Callable[[Record], None] | None = None
        """Called with each record, where somebody wants to see every one."""

    def consume(self, record: Record) -> None:
        """One more."""
        if self.told is not None:
            self.told(record)
        visit = record.visit
        counters = self.metrics.counters
        if visit.is_answered:
            kind = f"type:{visit.response.mime or 'none'}"
            counters[kind if kind in counters or len(counters) < COUNTED_TYPES else "type:other"] += 1
        self._note_pace(visit.task.host, visit.response.elapsed)

    def _note_pace(self, host: str, elapsed: float) -> None:
        """A moving average for each host; the table is bounded by forgetting the fastest."""
        before = self.slowest.get(host, elapsed)
        self.slowest[host] = 0.8 * before + 0.2 * elapsed
        if len(self.slowest) > SLOWEST_HOSTS:
            del self.slowest[min(self.slowest, key=self.slowest.__getitem__)]
