"""How crawls stand, told again and again: events for browsers, and figures for Prometheus.

Place in the flow: :mod:`app` gives a browser the stream of a crawl. One poller looks at each crawl, however many browsers listen;
a browser that reads slowly misses some events and gets the newest. `/metrics` has the figures in the text format 0.0.4. Their
labels are the crawl's key, an outcome or the name of a data set: closed lists, so that no web site adds a time series or writes
into one.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

import msgspec

from gossamer.crawls.control.standing import CrawlStanding
from gossamer.dashboard.crawls import ShownCrawl
from gossamer.values.errors import GossamerError
from gossamer.values.outcome import Outcome

# Figures for Prometheus.

#: Field of a standing -> type, and the text of its help.
FIGURES: dict[str, tuple[str, str]] = {
    "pages": ("counter", "Successful HTML documents."),
    "fetched": ("counter", "Answered requests, without those for robots.txt."),
    "unique_documents": ("counter", "Documents that differ from each other."),
    "bytes": ("counter", "Bytes that were received."),
    "errors": ("counter", "Requests that failed, and names without an address."),
    "raised": ("counter", "Visits on which processors or handlers raised."),
    "discovered": ("gauge", "URLs that were found."),
    "queued": ("gauge", "URLs that wait."),
    "set_aside": ("gauge", "URLs that look like parts of traps."),
    "in_flight": ("gauge", "Requests in flight."),
    "hosts": ("gauge", "Hosts that were asked."),
    "seconds": ("gauge", "Seconds of the present run, or of the last one."),
    "recent_pages_per_second": ("gauge", "Speed over the last ten seconds."),
    "cpu_seconds": ("gauge", "Seconds of CPU that the run has used."),
    "peak_rss_bytes": ("gauge", "Most bytes of memory that the run has held."),
    "disk_free": ("gauge", "Free bytes on the disk of the crawl directory."),
}


def exposition(crawls: Mapping[str, CrawlStanding]) -> str:
    """The figures of crawls, by their keys."""
    return "".join(f"{line}\n" for line in _lines(crawls))


def _lines(crawls: Mapping[str, CrawlStanding]) -> Iterator[str]:
    for name, (kind, text) in FIGURES.items():
        full = f"gossamer_{name}" + ("_total" if kind == "counter" else "")
        samples = ((f'crawl="{key}"', getattr(now, name)) for key, now in crawls.items())
        yield from _family(full, kind, text, samples)
    running = ((f'crawl="{key}"', int(now.is_at_work)) for key, now in crawls.items())
    yield from _family("gossamer_running", "gauge", "Whether a process is at work on the crawl.", running)
    problems = ((f'crawl="{key}"', len(now.problems)) for key, now in crawls.items())
    yield from _family("gossamer_problems", "gauge", "Problems that the crawl has.", problems)
    outcomes = (
        (f'crawl="{key}",outcome="{outcome}"', now.outcomes.get(outcome, 0))
        for key, now in crawls.items()
        for outcome in Outcome
    )
    yield from _family("gossamer_requests_total", "counter", "Requests by what became of them.", outcomes)
    sizes = ((f'crawl="{key}",store="{one.name}"', one.bytes) for key, now in crawls.items() for one in now.sizes)
    yield from _family("gossamer_store_bytes", "gauge", "Bytes of the main data sets.", sizes)


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{{{labels}}} {value}"


#: Seconds between two looks at a crawl that a browser watches.
INTERVAL = 2.0

#: Seconds after which a comment shows a silent browser that we are there, and us that it is.
HEARTBEAT = 15.0

#: Streams at once.
MAX_STREAMS = 100


class Streams:
    """All streams."""

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._topics: dict[str, _Topic] = {}
        self.count = 0
        """Streams that are open."""

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_STREAMS

    async def of(self, shown: ShownCrawl) -> AsyncIterator[bytes]:
        """The events of a crawl, as `text/event-stream` has them; ends when its reader is gone."""
        topic = self._topics.setdefault(shown.key, _Topic())
        self.count += 1
        topic.listeners += 1
        if topic.poller is None:
            topic.poller = asyncio.create_task(self._poll(shown, topic))
        try:
            seen = 0
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        seen, event = await topic.next(seen)
                    yield event
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self.count -= 1
            topic.listeners -= 1
            if not topic.listeners and topic.poller is not None:
                topic.poller.cancel()
                self._topics.pop(shown.key, None)

    async def _poll(self, shown: ShownCrawl, topic: "_Topic") -> None:
        while True:
            try:
                standing = await shown.standing(fresh=self._interval / 2)
                event = b"event: standing\ndata: " + msgspec.json.encode(standing) + b"\n\n"
            except GossamerError as error:
                event = b"event: trouble\ndata: " + msgspec.json.encode({"error": str(error)}) + b"\n\n"
            await topic.tell(event)
            await asyncio.sleep(self._interval)


class _Topic:
    """The newest event of one crawl, and who waits for the next."""

    def __init__(self) -> None:
        self.listeners = 0
        self.poller: asyncio.Task[None] | None = None
        self._number = 0
        self._event = b""
        self._changed = asyncio.Condition()

    async def tell(self, event: bytes) -> None:
        async with self._changed:
            if event != self._event:
                self._number, self._event = self._number + 1, event
                self._changed.notify_all()

    async def next(self, seen: int) -> tuple[int, bytes]:
        async with self._changed:
            await self._changed.wait_for(lambda: self._number > seen)
            return self._number, self._event
