"""Links to the runtimes that a person configured, one for each address, and the runtime at home.

Place in the flow: the crawler manager asks here. An address of http or https is a runtime elsewhere; any other is a folder of this
machine, which a runtime at home serves: the home host always has one (Agarwal and others, 3.1). There a crawler runs in a thread of
this process, by the same calls as elsewhere, and only while its next batch is wanted, so that no more than :data:`MAX_HELD` batches
of each wait in memory.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.robots.provider import ObeyRobots
from gossamer.mobile.contract import (
    MAX_WAIT,
    CrawlerStanding,
    FailureReason,
    OfferedHost,
    OfferedProcessor,
    PageSource,
    RuntimeLink,
    RuntimeOffer,
    RuntimeRefused,
)
from gossamer.mobile.crawler import VERSIONS, CrawlerBatch, MobileCrawler
from gossamer.mobile.judging import Installed
from gossamer.mobile.manager.making import runtime_key
from gossamer.mobile.options import RuntimeKeys
from gossamer.mobile.running import Fetch, run_crawler
from gossamer.mobile.sources.files import FileSource
from gossamer.mobile.sources.gate import GatedPages, ServedSite
from gossamer.mobile.sources.owner import OwnerLimits
from gossamer.mobile.wire import checked_identity, frame_of, received
from gossamer.values.errors import UsageError
from gossamer.values.task import Task
from gossamer.values.visit import Response

if TYPE_CHECKING:
    from gossamer.mobile.manager.remote_runtime import RemoteRuntime


class RuntimesSheet(Sheet, frozen=True):
    addresses: Annotated[
        tuple[str, ...], setting("Start only if the runtimes at these addresses can be used.", restart="links are open")
    ] = ()
    keys: Annotated[RuntimeKeys, setting(restart="links are open")] = ""


class ConfiguredRuntimes(Provider[RuntimesSheet]):
    """Opens each link to a runtime when it is first needed."""

    def __init__(self, sheet: RuntimesSheet | None = None) -> None:
        super().__init__(sheet)
        self._links: dict[str, HomeRuntime | RemoteRuntime] = {}
        self._closing: list[Callable[[], object]] = []

    async def start(self) -> None:
        """Refuse what can never be reached before anything is sent.
        Raises UsageError: a key is not known, or an address is none."""
        for address in self.sheet.addresses:
            self.link(address, "")

    def link(self, address: str, host: str) -> RuntimeLink:
        """The link to the runtime at an address; `host` is one that it is asked for. Raises UsageError: there can be none."""
        # A folder is one site: another host is another one.
        name = address if "://" in address else f"{host}={address}"
        if name not in self._links and "://" not in address:
            self._links[name] = self._at_home(address, host)
        elif name not in self._links:
            from gossamer.mobile.manager.remote_runtime import RemoteRuntime  # a crawl over folders needs no client

            known = runtime_key(address, self.sheet.keys)
            self._links[name] = RemoteRuntime(address, known.key, known.pin)
        return self._links[name]

    def _at_home(self, folder: str, host: str) -> "HomeRuntime":
        if not Path(folder).is_dir():
            raise UsageError(
                f"--runtime {host}={folder}: no such folder; name the root of the site's files, or https://ADDRESS"
            )
        source: PageSource = FileSource(Path(folder), limit=OwnerLimits().max_page_size)
        self._closing.append(source.close)
        served = ServedSite(source)  # on every port
        pages = partial(
            GatedPages,
            lambda name: served if host in (name, name.rpartition(":")[0]) else None,
            *(ObeyRobots(), self.clock),
        )
        return HomeRuntime(pages, (OfferedHost(host, ("http", "https")),))

    async def stop(self) -> None:
        """End the crawlers that run here, and give back what they read."""
        for link in self._links.values():
            await link.close()
        for close in self._closing:
            close()


#: Batches of one crawler that wait to be acknowledged, about 8 MB each before they are packed; it goes on when one is.
MAX_HELD = 4


class HomeRuntime:
    """Runs crawlers in this process. Contract: :class:`~gossamer.mobile.contract.RuntimeLink`; use it in one event loop."""

    def __init__(
        self, pages: Callable[[], Fetch], hosts: Sequence[OfferedHost] = (), installed: Installed | None = None
    ) -> None:
        """Begin without crawlers. `pages` makes the source of one crawler, which is asked in a thread and refuses what may not
        be read; `hosts` are for the offer alone."""
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
        return self._changed(identity, lambda journey: journey.acknowledge(sequence))

    async def cancel(self, identity: str) -> CrawlerStanding:
        return self._changed(identity, _HomeJourney.cancel)

    def _changed(self, identity: str, change: "Callable[[_HomeJourney], None]") -> CrawlerStanding:
        journey = self._journeys.get(identity)
        if journey is None:
            return CrawlerStanding("unknown")
        change(journey)
        return journey.standing()

    async def close(self) -> None:
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
