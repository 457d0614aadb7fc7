"""Units in the records arrow behind the commit: the tally at its end, copies for further subscribers, and applications.

The tally feeds progress (which hosts are slow) and metrics (which kinds of documents came), and decides nothing. Where a wiring has
more than one subscriber of records, a copy stands before the tally; each subscriber has a connector of its own, so none takes items
from another (:func:`gossamer.crawls.subscribing.with_subscriber`).

An *application* is a program of the user's own that says which URLs to fetch next (row P1). It stands in a process that a
person starts (`process = "outside"`), sends tasks, and receives each committed visit with its document;
`examples/04-own-application` is such a program. Of several agents each sends its visits, and the first one takes the tasks: it
brings those of the others' hosts there as it does with links.
"""

from collections.abc import Callable, Iterable

from gossamer.engine.component import AsynchronousFilter, Consumer, Filter
from gossamer.engine.ends import In, Out
from gossamer.engine.sheet import NoSettings
from gossamer.values.task import Task
from gossamer.values.visit import Record


class CopyRecords(Filter[NoSettings]):
    """Sends every record to two subscribers, at the pace of the slower one."""

    inbox: In[Record]
    outbox: Out[Record]
    copy: Out[Record]

    async def filter_many(self, records: list[Record]) -> None:
        await self.outbox.send_many(records)
        await self.copy.send_many(records)


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
        """Called with each record."""

    def consume(self, record: Record) -> None:
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


# Never run: it tells the wiring which items flow.


class Application(AsynchronousFilter[NoSettings]):
    """Stands for an application of yours in another process: it receives records of the crawl and sends URLs."""

    records: In[Record]
    urls: Out[Task]

    optional = frozenset({"urls"})

    def on_records(self, record: Record) -> None:
        raise NotImplementedError('an application is a program of its own; give this component process = "outside"')

    def take_urls(self, free: int) -> Iterable[Task]:
        """Tasks that are new to it; a URL that was fetched before is not fetched again."""
        raise NotImplementedError('an application is a program of its own; give this component process = "outside"')
