"""The receiving side of a remote connector (Hunyadi 2007, figure 4.3: the receiver and the local connection of site B).

Frames are put into a local queue, each item once: items are numbered by stream, and what comes again after a mended
link is dropped. Every frame has a receipt; when it and all frames before it are handled, their sender is told so. When
the queue is full nothing is read from the socket, so that back-pressure reaches the sender's producers.

A consumer that keeps positions with its results has every item once even if this process is killed: `position` of its connector.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Generic, TypeVar

from gossamer.engine.connector import Receipts, Waiters
from gossamer.engine.errors import BrokenFrame, RemoteRefused
from gossamer.engine.gate import Receipt
from gossamer.engine.local import Buffer, LocalConnector
from gossamer.engine.remote.frames import (
    About,
    Ack,
    Codec,
    FrameKind,
    FramePipe,
    LinkLost,
    LinkRefused,
    decode,
    encode,
    refusal,
)

T = TypeVar("T")

#: Streams of restarted senders that are still told to stop when they come back; more never are at large.
_REMEMBERED = 1000


class Stream:
    """State of one sender's numbering."""

    def __init__(self, slot: str, position: int) -> None:
        self.slot = slot
        self.received = position
        """Last item that was put into the queue; all before it were as well."""
        self.handed = position
        """Last item that a consumer has taken."""
        self.finished = position
        """Last item that was handled, as all before it."""
        self.pipe: FramePipe | None = None
        self._open: deque[int] = deque()
        self._complete: set[int] = set()

    def begin(self, last: int) -> None:
        self.received = last
        self._open.append(last)

    def complete(self, last: int) -> bool:
        self._complete.add(last)
        before = self.finished
        while self._open and self._open[0] in self._complete:
            self.finished = self._open.popleft()
            self._complete.discard(self.finished)
        return self.finished > before


class FrameReceipt(Receipt):
    """The receipt of a frame, which says of which stream its items are."""

    __slots__ = ("stream",)

    def __init__(self, done: Callable[[], None], stream: Stream) -> None:
        super().__init__(done)
        self.stream = stream


class FrameBuffer(Generic[T]):
    """First in, first out, kept in frames: one receipt each, and positions are counted as items leave."""

    def __init__(self) -> None:
        self._frames: deque[tuple[Sequence[T], FrameReceipt]] = deque()
        self._taken = 0
        """Items of the first frame that are gone."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, items: Sequence[T], receipt: Receipt | None) -> None:
        assert isinstance(receipt, FrameReceipt)
        receipt.hold(len(items))
        self._frames.append((items, receipt))
        self._length += len(items)

    def get(self, limit: int) -> tuple[list[T], Receipts]:
        taken: list[T] = []
        receipts: list[Receipt | None] = []
        while self._frames and len(taken) < limit:
            items, receipt = self._frames[0]
            piece = items[self._taken : self._taken + limit - len(taken)]
            self._taken += len(piece)
            if self._taken == len(items):
                self._frames.popleft()
                self._taken = 0
            taken += piece
            receipts += [receipt] * len(piece)
            receipt.stream.handed += len(piece)
        self._length -= len(taken)
        return taken, receipts


class Inbox(LocalConnector[T]):
    """The queue of the receiving side. Items that enter it were checked by the decoder."""

    def make_buffer(self) -> Buffer[T]:
        return FrameBuffer()

    def check(self, items: Sequence[object]) -> None:
        """Nothing to check any more."""


class ExpectedSenders:
    """The senders that are expected, and those that have ended."""

    def __init__(self, senders: int | frozenset[str]) -> None:
        self._senders = senders
        self._seen: set[str] = set()
        self._ended: set[str] = set()

    def objection(self, slot: str) -> str:
        """Why this one is not one of them; empty if it is."""
        if self.all_ended:
            return "all its senders have ended"
        if isinstance(self._senders, frozenset):
            known = ", ".join(sorted(self._senders))
            return "" if slot in self._senders else f"{slot!r} is not one of its senders; known: {known}"
        if slot not in self._seen and len(self._seen) >= self._senders:
            seen = ", ".join(sorted(self._seen))
            return f"it has its {self._senders} senders ({seen}), and {slot!r} is not one of them"
        return ""

    def joined(self, slot: str) -> None:
        """It is there, and has not ended, whatever it said in an earlier life."""
        self._seen.add(slot)
        self._ended.discard(slot)

    def ended(self, slot: str) -> None:
        self._ended.add(slot)

    @property
    def all_ended(self) -> bool:
        """No sender will send anything more."""
        if isinstance(self._senders, frozenset):
            return self._ended >= self._senders
        return len(self._ended) >= self._senders


class Receiver(Generic[T]):
    """One receiving side; a :class:`~.handshake.Party`."""

    def __init__(
        self,
        about: About,
        item_type: type[T],
        codec: Codec[T],
        capacity: int,
        frame_limit: int,
        expected: ExpectedSenders,
        changes: Waiters,
    ) -> None:
        self._about = about
        self._codec = codec
        self.frame_limit = frame_limit
        self._expected = expected
        self.inbox: Inbox[T] = Inbox(about.connector, item_type, capacity)
        self._changes = changes
        self.repeated = 0
        self.ready = asyncio.Event()
        """A consumer takes items: from then on senders are served."""
        self._streams: dict[str, Stream] = {}
        self._resumed: dict[str, int] = {}
        self._superseded: dict[str, None] = {}
        self._to_tell: dict[Stream, None] = {}
        self._refused = ""
        self._local_end: Callable[[int], None] | None = None

    def __repr__(self) -> str:
        connected = sum(stream.pipe is not None for stream in self._streams.values())
        return f"<Receiver of {self._about.connector}: {connected} senders connected, {self.inbox!r}>"

    # -- for consumers

    def position(self) -> dict[str, int]:
        """How far each stream was handed to consumers; of those that have not come back yet, as it was."""
        return {**self._resumed, **{key: stream.handed for key, stream in self._streams.items()}}

    def resume(self, positions: Mapping[str, int]) -> None:
        self._resumed.update(positions)

    def received(self, slot: str, stream: str) -> int:
        known = self._streams.get(_key(slot, stream))
        return known.received if known else 0

    def close(self, local_end: Callable[[int], None] | None = None) -> None:
        """Drop connections. Items that consumers hold are acknowledged to `local_end`, if the sender is in this process."""
        self._local_end = local_end
        for stream in self._streams.values():
            if stream.pipe is not None:
                stream.pipe.close()

    # -- the other side

    @property
    def done(self) -> bool:
        return bool(self._refused) or self._expected.all_ended

    def about(self) -> About:
        return self._about

    def objection(self, peer: About) -> str:
        """Senders that are not expected, and those that were replaced, are refused."""
        if _key(peer.slot, peer.stream) in self._superseded:
            return f"another process has taken the place of {peer.slot!r}; two of one name cannot send"
        reason = self._expected.objection(peer.slot)
        return f"connector {self._about.connector!r}: {reason}" if reason else ""

    def fail(self, reason: str) -> None:
        """The sender that we dialled refused us: say so to every consumer."""
        self._refused = reason
        self.inbox.fail(RemoteRefused(f"connector {self._about.connector!r}: the sending side refused: {reason}"))

    async def serve(self, pipe: FramePipe, peer: About) -> None:
        stream: Stream | None = None
        try:
            await self.ready.wait()
            stream = self._join(pipe, peer)
            pipe.put(FrameKind.ACK, encode(Ack(stream.finished)))
            while stream.pipe is pipe:
                kind, payload = await pipe.read()
                if kind is FrameKind.DATA:
                    if stream.pipe is pipe:
                        await self._accept(stream, *self._codec.unpack(payload))
                    continue
                if kind is FrameKind.END and stream.finished == stream.received:
                    self._expected.ended(stream.slot)
                    pipe.put(FrameKind.ENDED, b"")
                    if self._expected.all_ended:
                        self.inbox.end()
                elif kind is FrameKind.REFUSED:
                    self.fail(decode(payload, LinkRefused).reason)
                else:
                    raise BrokenFrame(f"a {kind.name} frame came where items were due")
                break
        except LinkLost:
            pass
        except (BrokenFrame, RemoteRefused) as error:
            pipe.put(FrameKind.REFUSED, refusal(str(error)))
        finally:
            pipe.close()
            if stream is not None and stream.pipe is pipe:
                stream.pipe = None

    def _join(self, pipe: FramePipe, peer: About) -> Stream:
        """The stream of a sender, new or known; an older one from its slot is superseded. Raises RemoteRefused: it may not
        send (any more), or goes on after items that our consumer never had."""
        reason = self.objection(peer)
        if reason:
            raise RemoteRefused(reason)
        key = _key(peer.slot, peer.stream)
        stream = self._streams.get(key)
        if stream is None:
            position = self._resumed.get(key, peer.first - 1)
            if position < peer.first - 1:
                raise RemoteRefused(
                    f"connector {self._about.connector!r}: the consumer has kept items up to {position} of {key!r}, "
                    f"the sender goes on at {peer.first}: the items between were acknowledged and are lost"
                )
            # Earlier lives of this sender are forgotten; their items in the queue are handled as usual.
            for other in [
                one for one in (*self._streams, *self._resumed) if one.rpartition("/")[0] == peer.slot and one != key
            ]:
                earlier = self._streams.pop(other, None)
                if earlier is not None and earlier.pipe is not None:
                    reason = f"another process has taken the place of {peer.slot!r}"
                    earlier.pipe.put(FrameKind.REFUSED, refusal(reason))
                    earlier.pipe.close()
                    earlier.pipe = None
                self._resumed.pop(other, None)
                self._superseded[other] = None
            while len(self._superseded) > _REMEMBERED:
                del self._superseded[next(iter(self._superseded))]
            stream = self._streams[key] = Stream(peer.slot, position)
        elif stream.pipe is not None:
            stream.pipe.abort()
        stream.pipe = pipe
        self._resumed.pop(key, None)
        self._expected.joined(peer.slot)
        return stream

    async def _accept(self, stream: Stream, first: int, items: list[T]) -> None:
        """Put what is new of a frame into the queue; suspended while that is full. Raises LinkLost: frames are missing; the
        sender starts again from what is acknowledged."""
        last = first + len(items) - 1
        known = stream.received - first + 1
        if known < 0:
            raise LinkLost(f"item {stream.received + 1} was due, item {first} came")
        if known:
            self.repeated += min(known, len(items))
            items = items[known:]
            if not items:
                return
        receipt = FrameReceipt(partial(self._finished, stream, last), stream)
        stream.begin(last)
        self._changes.changed()
        if not self.inbox.offer(items, receipt):
            await self.inbox.send(items, receipt)
        receipt.release()

    def _finished(self, stream: Stream, last: int) -> None:
        """A frame is handled. The sender is told once a tick, however many frames are handled in it."""
        if not stream.complete(last):
            return
        if self._local_end is not None:
            self._local_end(stream.finished)
        elif stream.pipe is not None:
            if not self._to_tell:
                asyncio.get_running_loop().call_soon(self._tell)
            self._to_tell[stream] = None

    def _tell(self) -> None:
        for stream in self._to_tell:
            if stream.pipe is not None:
                stream.pipe.put(FrameKind.ACK, encode(Ack(stream.finished)))
        self._to_tell.clear()


def _key(slot: str, stream: str) -> str:
    """A stream's name in positions: unique, and it shows the sender."""
    return f"{slot}/{stream}"
