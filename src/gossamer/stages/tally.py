"""The tally: the end of the records arrow. Adds up what was committed, for progress and the closing line."""

from collections import Counter

from gossamer.flow.component import Consumer
from gossamer.flow.ports import In
from gossamer.flow.sheet import NoSettings
from gossamer.model.outcome import ANSWERED, TRANSIENT
from gossamer.model.visit import Record

#: Hosts whose pace is remembered: progress shows a handful, and memory must not grow with the crawl.
SLOWEST_HOSTS = 32


class Tally(Consumer[NoSettings]):
    """Counts committed visits by what became of them."""

    records: In[Record]

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self.outcomes: Counter[str] = Counter()
        self.pages = 0
        self.bytes = 0
        self.documents = 0
        self.slowest: dict[str, float] = {}
        self.metrics.gauge("pages", lambda: self.pages)
        self.metrics.gauge("bytes", lambda: self.bytes)

    @property
    def fetched(self) -> int:
        """Answered requests, robots.txt apart."""
        return sum(count for outcome, count in self.outcomes.items() if outcome in ANSWERED)

    @property
    def unfinished(self) -> int:
        """Fetches that a later try could turn into a page."""
        return sum(count for outcome, count in self.outcomes.items() if outcome in TRANSIENT)

    def consume(self, record: Record) -> None:
        """One more."""
        visit = record.visit
        response = visit.response
        self.outcomes[response.outcome.value] += 1
        self.bytes += len(response.body)
        if visit.is_page:
            self.pages += 1
        if visit.is_answered and response.body and not visit.duplicate_of and response.status < 300:
            self.documents += 1
        self._note_pace(visit.task.host, response.elapsed)

    def _note_pace(self, host: str, elapsed: float) -> None:
        """A moving average for each host; the table is bounded by forgetting the fastest."""
        before = self.slowest.get(host, elapsed)
        self.slowest[host] = 0.8 * before + 0.2 * elapsed
        if len(self.slowest) > SLOWEST_HOSTS:
            del self.slowest[min(self.slowest, key=self.slowest.__getitem__)]
