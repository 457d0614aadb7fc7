"""Frames: how messages of a remote connector cross a socket. Under :mod:`.handshake`, :mod:`.sending` and the others.

A frame is a length (4 bytes, big-endian, of what follows), a kind (1 byte) and a payload. Control payloads are msgpack
structs (:mod:`.messages`); the payload of `DATA` is the number of its first item and a msgpack array (:mod:`.messages`).

Between machines `DATA` is compressed where that makes it shorter: it goes over the wire as `PACKED`, and the reader gets `DATA`.

The length is judged before anything of that size is kept: a peer that has not proved itself gets 4 KiB.
"""

import asyncio
import enum
import struct
import typing
import zlib
from collections import deque

from gossamer.engine.errors import BrokenFrame

#: Before the handshake is done: its messages hold a few names, two nonces and a proof.
HANDSHAKE_LIMIT = 4096

#: Default for a proved peer: the sender cuts frames at 1 MiB, so only single big items come near.
FRAME_LIMIT = 64 * 2**20

#: Frames read ahead of `read`; more would only hide a slow consumer. Enough to keep a link of small frames busy.
_AHEAD_FRAMES = 64
_AHEAD_BYTES = 2 * 2**20

#: Written to the transport unasked before `write` waits.
_HIGH_WATER = 2**20

#: A payload shorter than this is sent as it is: a few URLs shrink by less than it costs to look at them.
_WORTH_PACKING = 512

#: How hard it is tried: URLs of one batch share most of what they say, and a higher level gains a tenth of what it costs.
_LEVEL = 1

_HEAD = struct.Struct("!IB")


class FrameKind(enum.IntEnum):
    """The kinds of frames."""

    CHALLENGE = 1
    HELLO = 2
    WELCOME = 3
    REFUSED = 4
    DATA = 5
    ACK = 6
    END = 7
    ENDED = 8
    PACKED = 9


_KINDS = {int(kind): kind for kind in FrameKind}


class LinkLost(Exception):
    """Internal: the connection is gone. The side that dialled dials again; nothing was lost."""


class FramePipe(asyncio.Protocol):
    """One connection, in frames. One task reads; anyone writes. Frames written in one tick leave together."""

    def __init__(self, limit: int = HANDSHAKE_LIMIT, *, packs: bool = False) -> None:
        self.limit = limit
        """Longest frame that is accepted, in bytes, also when it is unpacked; raised when the peer has proved itself."""
        self.packs = packs
        """Items are compressed before they are sent."""
        self._transport: asyncio.Transport | None = None
        self._partial = bytearray()
        self._frames: deque[tuple[FrameKind, bytes]] = deque()
        self._ahead = 0
        self._reader: asyncio.Future[None] | None = None
        self._reading_paused = False
        self._drained = asyncio.Event()
        self._drained.set()
        self._out: list[bytes] = []
        self._error: Exception | None = None
        self._gone = asyncio.Event()

    def __repr__(self) -> str:
        state = "lost" if self._gone.is_set() else "open"
        return f"<FramePipe {state}: {len(self._frames)} frames to read>"

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = typing.cast("asyncio.Transport", transport)  # uvloop's is not derived from it
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)

    def data_received(self, data: bytes) -> None:
        """Cut what came into frames."""
        if self._error is not None:
            return
        self._partial += data
        try:
            self._cut()
        except BrokenFrame as error:
            self._partial.clear()
            self._break_off(error)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake reader and writers."""
        self._transport = None
        self._break_off(LinkLost(str(exc or "the other side closed the connection")))
        self._gone.set()
        self._drained.set()

    def pause_writing(self) -> None:
        """The peer reads slower than we write."""
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    # -- reading

    async def read(self) -> tuple[FrameKind, bytes]:
        """The next frame, unpacked.

        Raises:
            LinkLost: the connection is gone and every frame was read.
            BrokenFrame: what came is no frame; the connection was dropped.
        """
        while not self._frames:
            if self._error is not None:
                raise self._error
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        kind, payload = self._frames.popleft()
        self._ahead -= len(payload)
        if self._reading_paused and len(self._frames) < _AHEAD_FRAMES // 2 and self._ahead < _AHEAD_BYTES:
            self._reading_paused = False
            if self._transport is not None:
                self._transport.resume_reading()
        if kind is FrameKind.PACKED:
            # Not before it is read: one at a time, what comes to more than it took to send fills no memory.
            kind, payload = FrameKind.DATA, self._unpacked(payload)
        return kind, payload

    def _unpacked(self, payload: bytes) -> bytes:
        unpacker = zlib.decompressobj()
        try:
            whole = unpacker.decompress(payload, self.limit)
        except zlib.error:
            whole = b""
        if unpacker.eof and not unpacker.unused_data:
            return whole
        error = BrokenFrame(f"a packed frame came that is damaged, or longer than {self.limit} bytes")
        self._frames.clear()
        self._error = error
        self.abort()
        raise error

    def _cut(self) -> None:
        partial, start, limit = self._partial, 0, self.limit
        while len(partial) - start >= 4:
            length = int.from_bytes(partial[start : start + 4], "big")
            if not 1 <= length <= limit:
                raise BrokenFrame(f"a frame of {length} bytes was announced; between 1 and {limit} are accepted")
            end = start + 4 + length
            if len(partial) < end:
                break
            kind = _KINDS.get(partial[start + 4])
            if kind is None:
                raise BrokenFrame(f"a frame of unknown kind {partial[start + 4]} came")
            with memoryview(partial) as view:
                payload = bytes(view[start + 5 : end])
            self._frames.append((kind, payload))
            self._ahead += len(payload)
            start = end
        if start:
            del partial[:start]
            self._wake_reader()
        if not self._reading_paused and (len(self._frames) >= _AHEAD_FRAMES or self._ahead >= _AHEAD_BYTES):
            self._reading_paused = True
            if self._transport is not None:
                self._transport.pause_reading()

    def _break_off(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # -- writing

    def put(self, kind: FrameKind, payload: bytes) -> None:
        """Write a frame without waiting; the caller bounds what is under way. A lost connection swallows it."""
        if self._transport is None or self._transport.is_closing():
            return
        if self.packs and kind is FrameKind.DATA and len(payload) >= _WORTH_PACKING:
            packed = zlib.compress(payload, _LEVEL)
            if len(packed) < len(payload):
                kind, payload = FrameKind.PACKED, packed
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(_HEAD.pack(len(payload) + 1, kind))
        self._out.append(payload)

    async def write(self, kind: FrameKind, payload: bytes) -> None:
        """Write a frame, suspended while the peer does not read.

        Raises:
            LinkLost: the connection is gone.
        """
        self.put(kind, payload)
        self._flush()
        await self._drained.wait()
        if self._transport is None:
            raise LinkLost("the connection is gone")

    def _flush(self) -> None:
        if self._out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._out))
        self._out.clear()

    # -- ending

    def close(self) -> None:
        """Close after what was written is sent."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def gone(self) -> None:
        """Return when the connection is gone."""
        await self._gone.wait()
