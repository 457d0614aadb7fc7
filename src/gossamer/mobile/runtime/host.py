"""The runtime's host: which crawlers are here, which of them run, and what their senders are told.

Place in the flow: senders reach it by :meth:`RuntimeHost.link`, each by a link of its own
(:class:`~gossamer.mobile.contract.RuntimeLink`). The host runs in one event loop; journeys run in threads
(:mod:`gossamer.mobile.runtime.journey`), their crawlers in processes.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from gossamer._version import __version__
from gossamer.engine.errors import refusing
from gossamer.mobile.contract import (
    MAX_WAIT,
    CrawlerStanding,
    OfferedHost,
    OfferedProcessor,
    RuntimeOffer,
    RuntimeRefused,
    RuntimeUnavailable,
)
from gossamer.mobile.crawler import VERSIONS
from gossamer.mobile.judging import Installed
from gossamer.mobile.runtime.journey import HostedJourney, ResultShelf
from gossamer.mobile.runtime.keeper import ConfinedEnd, ProcessLimits
from gossamer.mobile.runtime.store import Diary, JourneyNote, folder_of, kept_journeys
from gossamer.mobile.sources.opened import Runtime
from gossamer.mobile.sources.owner import GatedPages, OwnerSheet
from gossamer.mobile.wire import checked_identity, received
from gossamer.values.url import canonical

#: Seconds between two looks at the clocks of crawlers.
_LOOK = 1.0

#: Seconds beyond its time that a crawler has to come to its end: it is refused everything, and may still sum up.
GRACE = 30.0


class RuntimeHost:
    """Everything that one runtime does; use it in one event loop, as a context manager."""

    def __init__(
        self,
        sheet: OwnerSheet,
        sources: Runtime,
        folder: Path,
        diary: Diary,
        *,
        installed: Installed | None = None,
        limits: ProcessLimits | None = None,
    ) -> None:
        """Open nothing yet. Nothing else uses the folder of the crawlers. `limits` of processes say which walls are put up, and
        whether weak ones do; the rest is the sheet's."""
        self._sheet = sheet
        self._sources = sources
        self._root = folder / "crawlers"
        self._diary = diary
        self._installed = installed or {}
        walls = limits or ProcessLimits()
        self._limits = ProcessLimits(sheet.limits.memory, int(sheet.limits.cpu), walls.layers, walls.is_weak)
        self._journeys: dict[tuple[str, str], HostedJourney] = {}
        self._begun: set[HostedJourney] = set()
        """Those that run, or are about to."""
        self._started: dict[HostedJourney, float] = {}
        """When each of them began."""
        self._runs: set[asyncio.Task[None]] = set()
        self._arriving = asyncio.Lock()
        self._changes = asyncio.Condition()
        self._threads = ThreadPoolExecutor(sheet.crawlers, "crawler")
        self._watch: asyncio.Task[None] | None = None
        self._is_ending = False
        self.shelf = ResultShelf(folder, sheet.disk)

    async def __aenter__(self) -> "RuntimeHost":
        """Take up the crawlers that are kept. Raises OSError: the folder cannot be used."""
        self._loop = asyncio.get_running_loop()
        for folder, note in await asyncio.to_thread(lambda: list(kept_journeys(self._root))):
            journey = HostedJourney(folder, note, self.shelf, self._sheet.limits.kept, self._changed)
            self._journeys[note.sender, note.identity] = journey
        self._watch = asyncio.create_task(self._watched())
        self._schedule()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all processes. Crawlers that had not ended run again at the next start."""
        self._is_ending = True
        if self._watch is not None:
            self._watch.cancel()
        for journey in self._journeys.values():
            if journey.is_running:
                journey.stop("stopped", "the runtime was stopped")
        if self._runs:
            await asyncio.wait(self._runs)
        self._threads.shutdown()
        await self._announced()

    def link(self, sender: str) -> "HostedLink":
        return HostedLink(self, sender)

    def notes(self) -> list[tuple[JourneyNote, bool]]:
        """Each crawler, and whether it runs; in the order in which they were taken."""
        found = [(journey.copied(), journey.is_running) for journey in self._journeys.values()]
        return sorted(found, key=lambda one: one[0].accepted)

    # -- for links

    def offer(self, sender: str) -> RuntimeOffer:
        sheet, rules = self._sheet, self._sheet.rules(sender)
        hosts = tuple(
            OfferedHost(one.host, (one.scheme,) if one.scheme else ("http", "https"))
            for one in self._sources.hosts
            if rules.hosts is None or not one.host or one.host in rules.hosts
        )
        return RuntimeOffer(
            VERSIONS,
            hosts,
            tuple(OfferedProcessor(one.name, one.version) for one in self._installed),
            crawlers=min(sheet.crawlers, rules.crawlers or sheet.crawlers),
            requests=sheet.limits.requests,
            bytes=sheet.limits.bytes,
            seconds=sheet.limits.time,
            keeps=sheet.keep,
            software=f"gossamer {__version__}",
        )

    def journey(self, sender: str, identity: str) -> HostedJourney | None:
        """A crawler of this sender, who has spoken of it now."""
        journey = self._journeys.get((sender, identity))
        if journey is not None:
            journey.heard = time.monotonic()
        return journey

    async def take(self, sender: str, identity: str, crawler: bytes) -> HostedJourney:
        """Take a crawler, or know it again. Raises RuntimeRefused: it cannot run here, or another has its identity. Raises
        RuntimeUnavailable: too many are here, or the disk is full."""
        checked_identity(identity)
        digest = await asyncio.to_thread(lambda: hashlib.sha256(crawler).hexdigest())
        async with self._arriving:  # one at a time: a crawler takes some hundred megabytes while it is read
            journey = self.journey(sender, identity)
            if journey is None:
                journey = await self._taken(sender, identity, crawler, digest)
        if journey.note.crawler != digest:
            raise RuntimeRefused("other_crawler", f"another crawler was sent as {identity}")
        self._schedule()
        return journey

    async def _taken(self, sender: str, identity: str, crawler: bytes, digest: str) -> HostedJourney:
        await self._make_room(sender)
        try:
            program = (await asyncio.to_thread(received, crawler, self._installed)).program
            hosts = self._sheet.rules(sender).hosts
            if not any(self._sources.serves(canonical(seed), hosts) for seed in program.seeds):
                raise RuntimeRefused("hosts", "the runtime serves this sender no host of its seeds")
        except RuntimeRefused as refused:
            self._diary.tell("refused", sender=sender, crawler=identity, reason=refused.reason, told=str(refused))
            raise
        folder = folder_of(self._root, sender, identity)
        note = JourneyNote(sender, identity, digest, accepted=time.time())
        if not self.shelf.has_room(len(crawler)):
            raise RuntimeUnavailable("the runtime's disk is full")
        with refusing(RuntimeUnavailable, "the runtime cannot keep it"):
            await asyncio.to_thread(folder.create, note, crawler)
        journey = HostedJourney(folder, note, self.shelf, self._sheet.limits.kept, self._changed)
        self._journeys[sender, identity] = journey
        self._diary.tell("accepted", sender=sender, crawler=identity, program=program.digest, bytes=len(crawler))
        return journey

    async def _make_room(self, sender: str) -> None:
        """Forget what this sender is done with, where too many of its crawlers are here.
        Raises RuntimeUnavailable: it is done with too few."""
        theirs = [one for one in self._journeys.values() if one.note.sender == sender]
        if sum(not one.is_done for one in theirs) >= self._sheet.waiting:
            raise RuntimeUnavailable(f"{self._sheet.waiting} crawlers of {sender} are here; take their results first")
        done = sorted((one for one in theirs if one.is_done), key=lambda one: one.heard)
        # As many again are remembered, so that a sender that asks once more is told the same.
        for journey in done[: max(0, len(theirs) + 1 - 2 * self._sheet.waiting)]:
            await self._forgotten(journey)

    async def wait(self, journey: HostedJourney, sequence: int, seconds: float) -> None:
        """Wait until a batch is there, or the crawler has ended; so long at most."""

        def is_there() -> bool:
            return journey.has_ended or journey.standing().batches > sequence or self._is_ending

        async with self._changes:
            try:
                async with asyncio.timeout(min(max(0.0, seconds), MAX_WAIT)):
                    await self._changes.wait_for(is_there)
            except TimeoutError:
                return

    # -- which one runs

    def _schedule(self) -> None:
        """Let crawlers begin, in the order in which they were taken, as many as the sheet allows."""
        running = list(self._begun)
        waiting = [one for one in self._journeys.values() if not one.has_ended and one not in running]
        for journey in waiting:
            most = self._sheet.rules(journey.note.sender).crawlers or self._sheet.crawlers
            is_free = len(running) < self._sheet.crawlers
            if self._is_ending or not is_free or sum(one.note.sender == journey.note.sender for one in running) >= most:
                continue
            running.append(journey)
            self._begun.add(journey)
            task = self._loop.create_task(self._run(journey))
            self._runs.add(task)
            task.add_done_callback(self._runs.discard)

    async def _run(self, journey: HostedJourney) -> None:
        rules = self._sheet.rules(journey.note.sender)
        gates: list[GatedPages] = []

        def pages(rest: Callable[[float], None]) -> GatedPages:
            gates.append(self._sources.pages(rules.hosts, rest))
            return gates[-1]

        began = self._started[journey] = time.monotonic()
        self._diary.tell("began", sender=journey.note.sender, crawler=journey.note.identity)
        run = partial(journey.run, pages, self._limits, self._sheet.allow)
        try:
            end = await self._loop.run_in_executor(self._threads, run)
        except OSError as error:
            end = ConfinedEnd("crashed", f"the disk of the runtime failed: {error.strerror or error}")
        finally:
            self._begun.discard(journey)
            self._started.pop(journey, None)
        note = journey.copied()
        refused = {name: tally.count for gate in gates for name, tally in gate.refused.items()}
        self._diary.tell(
            "stopped" if end.reason == "stopped" else "ended",
            sender=note.sender,
            crawler=note.identity,
            state=note.state,
            reason=end.reason,
            told=end.told,
            fetched=note.fetched,
            batches=len(note.sizes),
            brought=sum(note.sizes),
            seconds=round(time.monotonic() - began, 3),
            cpu=round(end.cpu, 3),
            peak=end.peak,
            refused=refused,
            **({"late": end.late} if end.late else {}),
        )
        await self._announced()
        if end.reason == "walls":
            journey.fail("crashed", end.told)
        self._schedule()

    async def _watched(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            now = time.monotonic()
            for journey in list(self._journeys.values()):
                began = self._started.get(journey)
                if began is not None and now - began - journey.waited > self._sheet.limits.time + GRACE:
                    journey.stop("time", f"it ran for more than {self._sheet.limits.time:g} s")
                if now - journey.heard > self._sheet.keep:
                    await self._forgotten(journey)

    async def _forgotten(self, journey: HostedJourney) -> None:
        """Forget a crawler; one that runs is ended first."""
        journey.stop("time", "its sender has not asked about it for too long")
        if journey in self._begun:
            return  # at the next look
        self._journeys.pop((journey.note.sender, journey.note.identity), None)
        await asyncio.to_thread(journey.remove)
        self._diary.tell("forgot", sender=journey.note.sender, crawler=journey.note.identity)

    # -- news

    def _changed(self) -> None:  # from any thread
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._announced()))

    async def _announced(self) -> None:
        async with self._changes:
            self._changes.notify_all()


class HostedLink:
    """One sender's link to the host. Contract: :class:`~gossamer.mobile.contract.RuntimeLink`."""

    def __init__(self, host: RuntimeHost, sender: str) -> None:
        self._host = host
        self._sender = sender

    async def offer(self) -> RuntimeOffer:
        return self._host.offer(self._sender)

    async def send(self, identity: str, crawler: bytes) -> CrawlerStanding:
        return (await self._host.take(self._sender, identity, crawler)).standing()

    async def batch(self, identity: str, sequence: int, wait: float) -> bytes | CrawlerStanding:
        journey = self._host.journey(self._sender, identity)
        if journey is None:
            return CrawlerStanding("unknown")
        await self._host.wait(journey, sequence, wait)
        return await asyncio.to_thread(journey.batch, sequence) or journey.standing()

    async def acknowledge(self, identity: str, sequence: int) -> CrawlerStanding:
        return await self._changed(identity, lambda journey: journey.acknowledge(sequence))

    async def cancel(self, identity: str) -> CrawlerStanding:
        return await self._changed(identity, HostedJourney.cancel)

    async def _changed(self, identity: str, change: Callable[[HostedJourney], None]) -> CrawlerStanding:
        journey = self._host.journey(self._sender, identity)
        if journey is None:
            return CrawlerStanding("unknown")
        with refusing(RuntimeUnavailable, "the runtime cannot write"):
            await asyncio.to_thread(change, journey)
        return journey.standing()
