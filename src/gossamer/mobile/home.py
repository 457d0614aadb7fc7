"""The runtime at home: crawlers run in this process, over a source of pages.

Place in the flow: home always has a runtime (Agarwal and others, 3.1). The caller runs crawlers here by the same
calls as elsewhere. A crawler runs in a thread, and only while its next batch is wanted, so that no more than
:data:`MAX_HELD` batches of each wait in memory.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence

from gossamer.mobile.contract import (
    MAX_WAIT,
    CrawlerStanding,
    FailureReason,
    OfferedHost,
    OfferedProcessor,
    RuntimeOffer,
    RuntimeRefused,
)
from gossamer.mobile.crawler import VERSIONS, CrawlerBatch, MobileCrawler
from gossamer.mobile.judging import Installed
from gossamer.mobile.running import Fetch, run_crawler
from gossamer.mobile.wire import checked_identity, frame_of, received
from gossamer.values.errors import UsageError
from gossamer.values.task import Task
from gossamer.values.visit import Response

#: Batches of one crawler that wait to be acknowledged, about 8 MB each before they are packed; it goes on when one is.
MAX_HELD = 4


class HomeRuntime:
    """Runs crawlers in this process. Contract: :class:`~gossamer.mobile.contract.RuntimeLink`; use it in one event loop."""

    def __init__(
        self, pages: Callable[[], Fetch], hosts: Sequence[OfferedHost] = (), installed: Installed | None = None
    ) -> None:
        """Begin without crawlers.

        Args:
            pages: makes the source of one crawler, which is asked in a thread; it refuses what may not be read.
            hosts: that the source has, for the offer alone.
            installed: processors that crawlers may name.
        """
        self._pages = pages
        self._hosts = tuple(hosts)
        self._installed = installed or {}
        self._journeys: dict[str, _HomeJourney] = {}

    async def offer(self) -> RuntimeOffer:
        processors = tuple(OfferedProcessor(one.name, one.version) for one in self._installed)
        return RuntimeOffer(VERSIONS, self._hosts, processors, crawlers=1_000, software="home")

    async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
        digest = hashlib.sha256(crawler).digest()
        journey = self._journeys.get(checked_identity(identity))
        if journey is None:
            program = received(crawler, self._installed)
            journey = self._journeys[identity] = _HomeJourney(digest, program, self._pages(), self._installed)
        elif journey.digest != digest:
            raise RuntimeRefused("other_crawler", f"another crawler was sent as {identity}")
        return journey.standing()

    async def batch(self, identity: str, sequence: int, wait: float) -> bytes | CrawlerStanding:
        journey = self._journeys.get(identity)
        return CrawlerStanding("unknown") if journey is None else await journey.batch(sequence, min(wait, MAX_WAIT))

    async def acknowledge(self, identity: str, sequence: int) -> CrawlerStanding:
        journey = self._journeys.get(identity)
        if journey is None:
            return CrawlerStanding("unknown")
        journey.acknowledge(sequence)
        return journey.standing()

    async def cancel(self, identity: str) -> CrawlerStanding:
        journey = self._journeys.get(identity)
        if journey is None:
            return CrawlerStanding("unknown")
        journey.cancel()
        return journey.standing()

    async def close(self) -> None:
        """End all crawlers, and wait until their threads have."""
        for journey in self._journeys.values():
            journey.cancel()
            await journey.ended()
        self._journeys.clear()


class _Cancelled(Exception):
    """Home does not want the crawler any more."""


class _HomeJourney:
    """One crawler, its batches that wait, and the thread that makes the next one."""

    def __init__(self, digest: bytes, crawler: MobileCrawler, fetch: Fetch, installed: Installed) -> None:
        self.digest = digest
        self._fetch = fetch
        self._crawler = crawler
        self._installed = installed
        self._running: Iterator[CrawlerBatch] | None = None
        self._making: asyncio.Task[None] | None = None
        self._frames: dict[int, bytes] = {}
        self._made = self._acknowledged = self._fetched = 0
        self._is_finished = self._is_cancelled = False
        self._failed: tuple[FailureReason, str] | None = None

    def standing(self) -> CrawlerStanding:
        counts = (self._made, self._acknowledged, self._fetched)
        if self._is_finished:
            return CrawlerStanding("finished", "", "", *counts)
        if self._failed is not None:
            return CrawlerStanding("failed", *self._failed, *counts)
        return CrawlerStanding("waiting" if self._is_full() else "running", "", "", *counts)

    def acknowledge(self, sequence: int) -> None:
        while self._acknowledged <= min(sequence, self._made - 1):
            self._frames.pop(self._acknowledged, None)
            self._acknowledged += 1

    def cancel(self) -> None:
        self._is_cancelled = True
        self._frames.clear()
        self._acknowledged = self._made
        if not self._is_finished and self._failed is None:
            self._failed = "cancelled", "home cancelled it"

    async def ended(self) -> None:
        if self._making is not None:
            await asyncio.wait({self._making})

    async def batch(self, sequence: int, wait: float) -> bytes | CrawlerStanding:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        while sequence >= self._made and not self._has_ended() and not self._is_full():
            if self._making is None or self._making.done():
                self._making = loop.create_task(self._make())
            done, _ = await asyncio.wait({self._making}, timeout=max(0.0, until - loop.time()))
            if not done:
                break
        return self._frames.get(sequence) or self.standing()

    def _has_ended(self) -> bool:
        return self._is_finished or self._failed is not None

    def _is_full(self) -> bool:
        return not self._has_ended() and len(self._frames) >= MAX_HELD

    async def _make(self) -> None:
        """Let the crawler run until its next batch; nothing raises."""
        try:
            frame, is_last = await asyncio.to_thread(self._next)
        except _Cancelled:
            return
        except UsageError as error:
            self._failed = "processors", str(error)
        except Exception as error:
            self._failed = "crashed", f"{type(error).__name__}: {error}"[:300]
        else:
            if not self._is_cancelled:
                self._frames[self._made] = frame
                self._made += 1
                self._is_finished = is_last

    def _next(self) -> tuple[bytes, bool]:
        if self._running is None:
            self._running = run_crawler(self._crawler, self._watched, self._installed)
        batch = next(self._running)
        return frame_of(batch), batch.summary is not None

    def _watched(self, task: Task) -> Response:
        if self._is_cancelled:
            raise _Cancelled
        self._fetched += 1
        return self._fetch(task)
