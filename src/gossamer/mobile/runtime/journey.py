"""One crawler at a runtime, from the moment when it is taken until it is forgotten; memory and disk say the same.

Place in the flow: :mod:`gossamer.mobile.runtime.host` decides when it runs; then :meth:`HostedJourney.run` blocks in a thread.
Whatever is promised to the sender is on the disk first (:mod:`gossamer.mobile.contract`, promises 2 to 4). After a kill a crawler
runs again from its beginning, and each batch that was made before has to come again with the same digest.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.mobile.contract import CrawlerStanding
from gossamer.mobile.running import Fetch
from gossamer.mobile.runtime.keeper import ConfinedEnd, CrawlerKeeper, MadeBatch, ProcessLimits
from gossamer.mobile.runtime.store import JourneyFolder, JourneyNote
from gossamer.mobile.sources.owner import GatedPages
from gossamer.values.task import Task
from gossamer.values.visit import Response

#: Starts without a new batch until a crawler is held to be the reason why the runtime dies.
MAX_STARTS = 20

#: Seconds between two looks at a disk that is full.
_LOOK = 0.5

#: Answers between two notices of how far a crawler has come.
_NOTICE = 64

#: Bytes that stay free on the disk whatever the sheet allows: the site's own programs need some.
FREE_DISK = 256 << 20


class ResultShelf:
    """Room for all results together."""

    def __init__(self, folder: Path, most: int, floor: int = FREE_DISK) -> None:
        self._folder = folder
        self._most = most
        self._floor = floor
        self.kept = 0
        """Bytes."""

    def has_room(self, length: int) -> bool:
        disk = os.statvfs(self._folder)
        return self.kept + length <= self._most and disk.f_bavail * disk.f_frsize >= self._floor + length


class JourneyStopped(Exception):
    """The journey was ended while its source, or the disk, let it wait."""


class HostedJourney:
    """One crawler. Its methods may be called by any thread; those that touch the disk say so."""

    def __init__(
        self, folder: JourneyFolder, note: JourneyNote, shelf: ResultShelf, most_kept: int, notify: Callable[[], None]
    ) -> None:
        """Take up a crawler as its note says. Its results may take `most_kept` bytes of the shelf; `notify` is called, in whatever
        thread, when something changes."""
        self._folder = folder
        self.note = note
        """Only to be read elsewhere."""
        self._shelf = shelf
        self._most_kept = most_kept
        self._notify = notify
        self._changed = threading.Condition()
        self._keeper: CrawlerKeeper | None = None
        self._stopped: tuple[str, str] | None = None
        self._is_full = False
        self.waited = 0.0
        """Seconds that it has waited for room since it was started."""
        self.heard = time.monotonic()
        """When its sender last spoke of it."""
        self.is_running = False
        shelf.kept += note.kept

    # -- what is said of it

    @property
    def has_ended(self) -> bool:
        return self.note.has_ended

    @property
    def is_done(self) -> bool:
        """It has ended, and its sender has taken everything."""
        return self.has_ended and self.note.acknowledged >= len(self.note.sizes)

    def copied(self) -> JourneyNote:
        with self._changed:
            return msgspec.structs.replace(self.note, digests=[], cuts=[], sizes=list(self.note.sizes))

    def standing(self) -> CrawlerStanding:
        note = self.note
        state = note.state
        if not note.has_ended:
            state = "running" if self.is_running and not self._is_full else "waiting"
        return CrawlerStanding(
            state,
            note.reason,  # type: ignore[arg-type]  # an older version's word at worst
            note.told,
            len(note.sizes),
            note.acknowledged,
            note.fetched,
        )

    def batch(self, sequence: int) -> bytes | None:
        """A frame that is kept. Reads the disk."""
        with self._changed:
            if not self.note.acknowledged <= sequence < len(self.note.sizes):
                return None
            return self._folder.batch(sequence)

    # -- what its sender says

    def acknowledge(self, sequence: int) -> None:
        """Forget batches up to this one. Writes to the disk. Raises OSError: nothing is forgotten."""
        with self._changed:
            self._forget(min(sequence + 1, len(self.note.sizes)))
            self._changed.notify_all()

    def cancel(self) -> None:
        """End it, and forget its results. Writes to the disk."""
        self.stop("cancelled", "its sender cancelled it")
        with self._changed:
            if not self.has_ended:
                self._end("failed", "cancelled", "its sender cancelled it")
            self._forget(len(self.note.sizes))
            self._changed.notify_all()

    def stop(self, reason: str, told: str) -> None:
        """End its process if it runs; the first reason stands."""
        with self._changed:
            self._stopped = self._stopped or (reason, told)
            self._changed.notify_all()
            keeper = self._keeper
        if keeper is not None:
            keeper.kill(reason, told)

    def fail(self, reason: str, told: str) -> None:
        """End it where it does not run. Writes to the disk."""
        with self._changed:
            if not self.has_ended:
                self._end("failed", reason, told)

    def remove(self) -> None:
        """Forget it, and that it ever was. Writes to the disk."""
        with self._changed:
            self._shelf.kept -= self.note.kept
            self.note.acknowledged = len(self.note.sizes)
            self._folder.remove()

    # -- its run

    def run(
        self, pages: Callable[[Callable[[float], None]], GatedPages], limits: ProcessLimits, allowed: tuple[str, ...]
    ) -> ConfinedEnd:
        """Run it to an end; `pages` makes its source, of a function that rests, and `allowed` names the processors that it may
        use. Blocks. Raises OSError: the disk fails in another way than being full; the crawler stands as it stood."""
        with self._changed:
            if self._stopped is not None or self.has_ended:
                return ConfinedEnd(*(self._stopped or ("", "")))
            self.note.starts += 1
            if self.note.starts > MAX_STARTS:
                told = f"the runtime died {MAX_STARTS} times while it ran"
                self._end("failed", "restarts", told)
                return ConfinedEnd("restarts", told)
            self._folder.write_note(self.note)
            keeper = self._keeper = CrawlerKeeper(self._folder.crawler(), limits, allowed, cuts=self._cuts())
            self.waited, self.note.fetched, self.is_running = 0.0, 0, True
            self._sequence = 0
        try:
            end = self._run(keeper, pages(self._rest))
        finally:
            with self._changed:
                self._keeper, self.is_running, self._is_full = None, False, False
        with self._changed:
            self.note.cpu += end.cpu
            # One that was stopped with the runtime has not ended.
            if end.reason not in ("", "stopped", "walls") and not self.has_ended:
                self._end("failed", end.reason, end.told)
            self._notify()
        return end

    def _cuts(self) -> list[int]:
        """After how many answers each batch was made that is kept or was; 0 where that was not noted."""
        return [*self.note.cuts, *[0] * (len(self.note.digests) - len(self.note.cuts))]

    def _run(self, keeper: CrawlerKeeper, gate: GatedPages) -> ConfinedEnd:
        try:
            return keeper.run(self._counted(gate), self._keep)
        except JourneyStopped:
            return ConfinedEnd(*(self._stopped or ("crashed", "it was stopped")))

    def _counted(self, gate: Fetch) -> Fetch:
        def fetch(task: Task) -> Response:
            self.note.fetched += 1
            if not self.note.fetched % _NOTICE:
                self._notify()
            return gate(task)

        return fetch

    def _rest(self, seconds: float) -> None:
        with self._changed:
            if self._changed.wait_for(lambda: self._stopped is not None, seconds):
                raise JourneyStopped

    def _keep(self, made: MadeBatch) -> None:
        """Keep a batch, when there is room; blocks until then. One that was kept before has to be the same."""
        digest = made.digest.hex()
        with self._changed:
            if self._stopped is not None:
                raise JourneyStopped
            note, sequence = self.note, self._sequence
            self._sequence += 1
            if sequence < len(note.digests):
                if note.digests[sequence] != digest:
                    self._stopped = (
                        "changed",
                        f"the data changed: batch {sequence} is different when the crawler runs again",
                    )
                    raise JourneyStopped
                return
            while not self._kept(sequence, made, digest):
                began = time.monotonic()
                self._is_full = True
                self._notify()
                self._changed.wait_for(lambda: self._stopped is not None, _LOOK)
                self.waited += time.monotonic() - began
                if self._stopped is not None:
                    raise JourneyStopped
            self._is_full = False
            self._notify()

    def _kept(self, sequence: int, made: MadeBatch, digest: str) -> bool:
        note, length = self.note, len(made.frame)
        # The first one always fits, however small the share is.
        if (note.kept and note.kept + length > self._most_kept) or not self._shelf.has_room(length):
            return False
        before = msgspec.structs.replace(note, digests=list(note.digests), sizes=list(note.sizes), cuts=self._cuts())
        try:
            self._folder.write_batch(sequence, made.frame)
            note.cuts = [*self._cuts(), note.fetched]
            note.digests.append(digest)
            note.sizes.append(length)
            note.starts = 0
            if made.is_last:
                note.state, note.ended = "finished", time.time()
            self._folder.write_note(note)
        except OSError:
            self.note = before
            return False
        self._shelf.kept += length
        if made.is_last:
            with contextlib.suppress(OSError):
                self._folder.forget_crawler()
        return True

    # -- with the lock held

    def _end(self, state: str, reason: str, told: str) -> None:
        note = self.note
        note.state, note.reason, note.told, note.ended = state, reason, told, time.time()  # type: ignore[assignment]
        # On a disk that is full it is written down with the next change, or the crawler runs again and ends again.
        with contextlib.suppress(OSError):
            self._folder.write_note(note)
            self._folder.forget_crawler()
        self._notify()

    def _forget(self, acknowledged: int) -> None:
        note = self.note
        if acknowledged <= note.acknowledged:
            return
        before, note.acknowledged = note.acknowledged, acknowledged
        try:
            self._folder.write_note(note)
        except OSError:
            note.acknowledged = before
            raise
        self._folder.forget(range(before, acknowledged))
        self._shelf.kept -= sum(note.sizes[before:acknowledged])
        self._notify()
