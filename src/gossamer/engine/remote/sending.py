"""The sending side of a remote connector (Hunyadi 2007, figure 4.3: the local connection and the sender of site A).

Items wait in a local queue, encoded. A task takes them in batches, numbers them, keeps them in the journal and writes
them to the connection, if there is one. At most `window` items are under way; their receipts, and in the journal their
bytes, are held until the receiver acknowledges them. On a new connection the receiver first says how far it is; what it
has is dropped, the rest is sent again in order. When the producers have closed and everything is acknowledged, END.

A journal in a file is itself a safe place: then `send` returns after the items are committed to it, and receipts are
released with that.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from gossamer.engine.connector import Receipts, Waiters
from gossamer.engine.errors import BrokenFrame, Closed, ConnectorError, EndOfItems, RemoteRefused
from gossamer.engine.gate import Receipt, runs
from gossamer.engine.local import LocalConnector
from gossamer.engine.remote.frames import (
    HANDSHAKE_LIMIT,
    About,
    Ack,
    Codec,
    FrameKind,
    FramePipe,
    LinkLost,
    LinkRefused,
    decode,
    refusal,
)
from gossamer.engine.remote.journal import KeptFrame, MemoryJournal

T = TypeVar("T")

#: Longest payload that more than one item makes: long enough for the price of a frame not to show, short enough for the
#: receiver to begin.
_FRAME_BYTES = 2**20

#: Bytes that a receiver which acknowledges nothing can make a sender keep, however many items its window allows.
_WINDOW_BYTES = 16 * 2**20


class _UnderWay(msgspec.Struct):
    """A frame that is not acknowledged."""

    kept: KeptFrame
    held: list[tuple[Receipt, int]]
    """Receipts of its items, and how often each is held."""


class Intake(LocalConnector[bytes]):
    """The queue of the sending side. Items that enter it were checked by the codec."""

    def check(self, items: Sequence[object]) -> None:
        """Nothing to check any more."""

    @property
    def over(self) -> bool:
        return self._ended

    def fits(self, items: int) -> bool:
        return not self._sending and len(self._buffer) + items <= self.capacity

    @property
    def vacant(self) -> bool:
        """Nothing waits, and no producer is in the middle of a bulk."""
        return not self._sending and not len(self._buffer)


class Sender(Generic[T]):
    """One sending side; a :class:`~.handshake.Party`."""

    frame_limit = HANDSHAKE_LIMIT

    def __init__(
        self,
        about: About,
        codec: Codec[T],
        journal: MemoryJournal,
        capacity: int,
        batch: int,
        window: int,
        changes: Waiters,
    ) -> None:
        self._about = about
        self._codec = codec
        self._journal = journal
        self._batch, self._window = batch, window
        self.intake = Intake(about.connector, bytes, capacity)
        self.changes = changes
        self.numbered = 0
        self.acknowledged = 0
        self._under_way: OrderedDict[int, _UnderWay] = OrderedDict()
        self._bytes = 0
        self._pipe: FramePipe | None = None
        self._peer = ""
        self._caught_up = False
        self._written = 0
        self._ended = False
        self._over = False
        self._closed = False
        self.stalled = 0.0
        self.failure: ConnectorError | None = None
        self._pump: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "connected" if self._pipe is not None else "not connected"
        return f"<Sender of {self._about.connector}, {state}: {self.unacknowledged} of {self.numbered} unacknowledged>"

    # -- its life

    def open(self) -> None:
        """Open the journal and begin to take items. Raises WiringError: the journal cannot be used."""
        loaded = self._journal.open()
        self._about = msgspec.structs.replace(self._about, stream=loaded.stream)
        self.acknowledged = loaded.acknowledged
        self.numbered = loaded.frames[-1].last if loaded.frames else loaded.acknowledged
        for kept in loaded.frames:
            self._under_way[kept.first] = _UnderWay(kept, [])
            self._bytes += kept.size
        self._pump = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        """Stop taking items, drop the connection, close the journal. Producers that still wait get :class:`Closed`."""
        self._closed = True
        self._break(self.failure or Closed(f"connector {self._about.connector!r} was stopped"))
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait([self._pump])
        if self._pipe is not None:
            self._pipe.close()
        self._journal.close()

    @property
    def unacknowledged(self) -> int:
        return self.numbered - self.acknowledged

    @property
    def delivered(self) -> bool:
        """Everything is acknowledged, and the end too if there was one. Raises ConnectorError: it never will be."""
        self.check()
        return self.intake.vacant and not self.unacknowledged and (self._over or not self._ended)

    @property
    def ended(self) -> bool:
        return self._ended or self.intake.over

    @property
    def window(self) -> int:
        """Items under way, at most; with a journal in a file, a batch more where two paths race for the last room."""
        return self._window + (self._batch if self._journal.durable else 0)

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    # -- items come in

    def offer(self, items: Sequence[T], receipt: Receipt | None) -> bool:
        """Accept all items now or none. With a journal in a file they are in it when this returns True."""
        self.check()
        if not self.intake.fits(len(items)):
            return False
        parcels = self._codec.encode(items)
        if not self._journal.durable:
            return self.intake.offer(parcels, receipt)
        if not self.intake.vacant or len(parcels) > self._free():
            return False
        self._ship(parcels, None)
        return True

    async def send(self, items: Sequence[T], receipt: Receipt | None) -> None:
        """Accept all items as room allows. With a journal in a file they are in it when this returns."""
        self.check()
        parcels = self._codec.encode(items)
        began = time.monotonic()
        try:
            await self.intake.send(parcels, None if self._journal.durable else receipt)
            if self._journal.durable:
                last = self.numbered + self.intake.statistics().waiting

                def is_numbered() -> bool:
                    self.check()
                    return self.numbered >= last

                await self.changes.until(is_numbered)
        finally:
            self.stalled += time.monotonic() - began

    async def room(self) -> int:
        self.check()
        if not self._journal.durable:
            return await self.intake.room()
        while not (free := self._free() if self.intake.vacant else 0):
            await self.intake.idle()
            await self.changes.until(lambda: self._is_free() or not self.intake.vacant)
        return free

    def _is_free(self) -> bool:
        self.check()
        return self._free() > 0

    def _free(self) -> int:
        if self._bytes >= _WINDOW_BYTES:
            return 0
        return max(0, self._window - self.unacknowledged)

    async def _run(self) -> None:
        try:
            while True:
                if not self._free():
                    await self.changes.until(self._is_free)
                parcels, receipts = await self.intake.take(min(self._batch, self._free()))
                self._ship(parcels, receipts)
        except EndOfItems:
            self._ended = True
            self._say_end()
        except ConnectorError as error:
            self._break(error)

    def _ship(self, parcels: list[bytes], receipts: Receipts) -> None:
        """Number, keep and write what was taken, in frames of bounded length."""
        payloads, start, size = [], 0, 0
        for end, parcel in enumerate(parcels) if sum(map(len, parcels)) > _FRAME_BYTES else ():  # most are one frame
            size += len(parcel)
            if size > _FRAME_BYTES and end > start:
                payloads.append(self._keep(parcels[start:end], receipts and receipts[start:end]))
                start, size = end, len(parcel)
        payloads.append(self._keep(parcels[start:], receipts and receipts[start:]))
        self._journal.commit()
        if self._caught_up and self._pipe is not None:
            for payload in payloads:
                self._pipe.put(FrameKind.DATA, payload)
            self._written = self.numbered
        self.changes.changed()

    def _keep(self, parcels: list[bytes], receipts: Receipts) -> bytes:
        first = self.numbered + 1
        payload = self._codec.pack(first, parcels)
        kept = KeptFrame(first, self.numbered + len(parcels), len(payload))
        self._journal.append(kept.first, kept.last, payload)
        self._under_way[first] = _UnderWay(kept, list(runs(receipts)))
        self._bytes += kept.size
        self.numbered = kept.last
        return payload

    # -- the other side

    @property
    def done(self) -> bool:
        return self._over or self.failure is not None

    def about(self) -> About:
        return msgspec.structs.replace(self._about, first=self.acknowledged + 1)

    def objection(self, peer: About) -> str:
        """One receiver at a time; one that comes back, by its slot, replaces itself."""
        if self._pipe is not None and peer.slot != self._peer:
            return f"connector {self._about.connector!r} has a receiver already, {self._peer!r}"
        return ""

    def fail(self, reason: str) -> None:
        """The receiver refused us: say so to every producer."""
        self._break(RemoteRefused(f"connector {self._about.connector!r}: the receiving side refused: {reason}"))

    def _break(self, error: ConnectorError) -> None:
        self.failure = error
        self.intake.fail(error)
        self.changes.changed()

    async def serve(self, pipe: FramePipe, peer: About) -> None:
        if self._pipe is not None:
            self._pipe.abort()
        self._pipe, self._peer, self._caught_up = pipe, peer.slot, False
        try:
            if await self._hear(pipe):
                self._written = next(iter(self._under_way), self.numbered + 1) - 1
                # Frames without an acknowledgement go first, in order, one in memory at a time; then new frames go out at once.
                while self._written < self.numbered and self._pipe is pipe:
                    kept = self._under_way[self._written + 1].kept
                    self._written = kept.last
                    await pipe.write(FrameKind.DATA, self._journal.payload(kept.first))
                if self._pipe is pipe:
                    self._caught_up = True
                    self._say_end()
                while await self._hear(pipe):
                    pass
        except LinkLost:
            pass
        except BrokenFrame as error:
            pipe.put(FrameKind.REFUSED, refusal(str(error)))
        except ConnectorError as error:
            self._break(error)
        finally:
            pipe.close()
            if self._pipe is pipe:
                self._pipe, self._caught_up = None, False

    async def _hear(self, pipe: FramePipe) -> bool:
        """Act on what the receiver says next; False when it was its last word."""
        kind, payload = await pipe.read()
        if kind is FrameKind.ACK:
            self.acknowledge(decode(payload, Ack).position)
            return True
        if kind is FrameKind.ENDED and self._ended and not self.unacknowledged:
            self._over = True
            self.changes.changed()
        elif kind is FrameKind.REFUSED:
            self.fail(decode(payload, LinkRefused).reason)
        else:
            raise BrokenFrame(f"a {kind.name} frame came where an acknowledgement was due")
        return False

    def acknowledge(self, position: int) -> None:
        """Everything up to this number is safe on the other side. Raises BrokenFrame: the receiver claims items that were
        never sent: it knows another life of this stream."""
        if position > self.numbered:
            self.fail(
                f"it has {position} items of this stream, but {self.numbered} were sent: the journal is older than it"
            )
            raise BrokenFrame(f"item {position} was acknowledged, but {self.numbered} is the last that was sent")
        if position <= self.acknowledged:
            return
        self.acknowledged = position
        while self._under_way and next(iter(self._under_way.values())).kept.last <= position:
            _, frame = self._under_way.popitem(last=False)
            self._bytes -= frame.kept.size
            for receipt, times in frame.held:
                receipt.release(times)
        if not self._closed:
            self._journal.acknowledged(position)
        self._say_end()
        self.changes.changed()

    def _say_end(self) -> None:
        if self._ended and not self.unacknowledged and self._caught_up and self._pipe is not None:
            self._pipe.put(FrameKind.END, b"")
