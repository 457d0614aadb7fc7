"""Events for browsers: how a crawl stands, told again when it has changed. One poller for each crawl, however many listen.

Place in the flow: :mod:`app` gives a browser the stream of a crawl. Who reads slowly misses some, and gets the newest.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from gossamer.dashboard.crawls import ShownCrawl
from gossamer.model.errors import GossamerError

#: Seconds between two looks at a crawl that somebody watches.
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

    def __repr__(self) -> str:
        return f"<Streams: {self.count} of {len(self._topics)} crawls>"

    @property
    def is_full(self) -> bool:
        """No more are opened."""
        return self.count >= MAX_STREAMS

    async def of(self, shown: ShownCrawl) -> AsyncIterator[bytes]:
        """The events of a crawl, as `text/event-stream` has them; ends when nobody reads any more."""
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
