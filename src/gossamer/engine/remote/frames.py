"""Frames: how messages of a remote connector cross a socket, and how items and control messages become bytes and come back.

A frame is a length (4 bytes, big-endian, of what follows), a kind (1 byte) and a payload. Control payloads are msgpack structs; the
payload of `DATA` is the number of its first item and a msgpack array. Between machines `DATA` is compressed where that makes it
shorter: it goes over the wire as `PACKED`, and the reader gets `DATA`. The length is judged before anything of that size is kept: a
peer that has not proved itself gets 4 KiB.

Items are encoded one by one when they are sent (:mod:`.sending`): what cannot cross is refused to the sender, and sizes are known
before a frame is cut; :mod:`.receiving` decodes them. A class that msgspec does not know may cross, too: `to_parcel()` makes plain
data of it, and `from_parcel(data)`, a class method, makes it again, or raises the reason why it cannot.
"""

import asyncio
import contextlib
import enum
import struct
import typing
import zlib
from collections import deque
from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from gossamer.engine.connector import crosses
from gossamer.engine.errors import BrokenFrame, WrongItem

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
        self.channel = b""
        """Of a sealed connection, the digest of the certificate of the side that listens; proofs hold for it alone."""
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
        if self._error is not None:
            return
        self._partial += data
        try:
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
        except BrokenFrame as error:
            self._partial.clear()
            self._break_off(error)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._break_off(LinkLost(str(exc or "the other side closed the connection")))
        self._gone.set()
        self._drained.set()

    def pause_writing(self) -> None:
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
            unpacker = zlib.decompressobj()
            whole = b""
            with contextlib.suppress(zlib.error):
                whole = unpacker.decompress(payload, self.limit)
            if not unpacker.eof or unpacker.unused_data:
                self._frames.clear()
                self._error = BrokenFrame(f"a packed frame came that is damaged, or longer than {self.limit} bytes")
                self.abort()
                raise self._error
            kind, payload = FrameKind.DATA, whole
        return kind, payload

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
        """Write a frame, suspended while the peer does not read. Raises LinkLost: the connection is gone."""
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
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def gone(self) -> None:
        await self._gone.wait()


# -- messages

T = TypeVar("T")

#: First item's number, then the head of a msgpack array with a 32 bit length.
_ITEMS = struct.Struct("!QBI")
_NUMBER = struct.Struct("!Q")
_ARRAY_32 = 0xDD

#: Bytes that a frame has beside its items.
OVERHEAD = _ITEMS.size

#: Of these every value that encodes decodes as well; of others, a field may hold what its type does not allow.
_SELF_EVIDENT = (str, bytes, int, float, bool)


def _to_parcel(value: Any) -> Any:
    if crosses(type(value)):
        return value.to_parcel()
    raise TypeError(f"{type(value).__name__} is neither plain data nor a msgspec struct")


def _from_parcel(kind: Any, parcel: Any) -> Any:
    return kind.from_parcel(parcel) if crosses(kind) else parcel


def type_name(item_type: Any) -> str:
    return getattr(item_type, "__qualname__", "") if isinstance(item_type, type) else str(item_type)


class Codec(Generic[T]):
    """Encodes and decodes items of one type."""

    def __init__(self, name: str, item_type: Any, item_class: type, limit: int) -> None:
        self._name = name
        self._class = item_class
        self._limit = limit - OVERHEAD - 1
        self._encode = msgspec.msgpack.Encoder(enc_hook=_to_parcel).encode
        self._try = msgspec.msgpack.Decoder(item_type, dec_hook=_from_parcel).decode
        self._proven = item_type in _SELF_EVIDENT
        self._decode_many = msgspec.msgpack.Decoder(list[item_type], dec_hook=_from_parcel).decode

    def encode(self, items: Sequence[T]) -> list[bytes]:
        """Each item on its own. Raises WrongItem: an item is not of the type, not even a subclass of it (the other side would
        get another class), cannot be decoded again as it is filled, or is longer than a frame may be."""
        try:
            encoded = [self._encode(item) for item in items if type(item) is self._class]
            if not self._proven:
                for parcel in encoded:
                    self._try(parcel)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise WrongItem(
                f"connector {self._name!r}: an item cannot cross to the other side: {error}; among {items!r:.100}"
            ) from None
        if len(encoded) != len(items):
            wrong = next(item for item in items if type(item) is not self._class)
            raise WrongItem(
                f"connector {self._name!r} carries {self._class.__name__} to another process, "
                f"not {type(wrong).__name__}: {wrong!r:.100}"
            )
        if encoded and len(max(encoded, key=len)) > self._limit:
            size = len(max(encoded, key=len))
            raise WrongItem(
                f"connector {self._name!r}: an item of {size} bytes is longer than its frame_limit, {self._limit} bytes"
            )
        return encoded

    @staticmethod
    def pack(first: int, parcels: Sequence[bytes]) -> bytes:
        return b"".join((_ITEMS.pack(first, _ARRAY_32, len(parcels)), *parcels))

    def unpack(self, payload: bytes) -> tuple[int, list[T]]:
        """The number of the first item, and the items. Raises BrokenFrame: it is not what :meth:`pack` makes."""
        try:
            (first,) = _NUMBER.unpack_from(payload)
            items = self._decode_many(memoryview(payload)[_NUMBER.size :])
        except (struct.error, ValueError, RecursionError) as error:
            raise BrokenFrame(
                f"connector {self._name!r}: a frame holds no items of {self._class.__name__}: {error}"
            ) from None
        if not items or not first:
            raise BrokenFrame(f"connector {self._name!r}: a frame without items or without a number came")
        return first, items


# -- control frames, as msgpack structs

#: Changed whenever frames change their meaning; both sides must agree.
VERSION = 2

#: Bytes of a nonce: as long as the hash, so that none ever comes twice.
NONCE_BYTES = 32

#: Characters of a reason; in UTF-8 it fits into a frame of the handshake.
_REASON = 900

_Name = Annotated[str, msgspec.Meta(max_length=200)]
_Nonce = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
_Proof = Annotated[bytes, msgspec.Meta(max_length=64)]
_Number = Annotated[int, msgspec.Meta(ge=0)]


class About(msgspec.Struct, frozen=True, array_like=True):
    """Words of one side about itself."""

    connector: _Name
    """The connector's name in the wiring."""
    item_type: _Name
    sending: bool
    slot: _Name
    """The name of its process: a sender that comes back has the same."""
    stream: _Name
    """A sender's numbering. It outlives the process only with a journal in a file. Empty for a receiver."""
    first: _Number
    """The number of a sender's first item that is not acknowledged."""


class Challenge(msgspec.Struct, frozen=True, array_like=True):  # the acceptor's first word
    version: int
    nonce: _Nonce


class Hello(msgspec.Struct, frozen=True, array_like=True):  # the dialer's answer
    version: int
    about: About
    nonce: _Nonce
    proof: _Proof


class Welcome(msgspec.Struct, frozen=True, array_like=True):  # the acceptor's consent
    about: About
    proof: _Proof


class LinkRefused(msgspec.Struct, frozen=True, array_like=True):
    """No, and why."""

    reason: Annotated[str, msgspec.Meta(max_length=_REASON)]
    again: bool = False
    """It may be different soon; otherwise the side that is refused does not come again."""


class Ack(msgspec.Struct, frozen=True, array_like=True):
    """Every item up to this number was handled."""

    position: _Number


M = TypeVar("M", bound=msgspec.Struct)

encode = msgspec.msgpack.Encoder().encode


def decode(payload: bytes, kind: type[M]) -> M:
    """A message from a payload. Raises BrokenFrame: it is none of that kind."""
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except (ValueError, RecursionError) as error:
        raise BrokenFrame(f"a {kind.__name__.lower()} message cannot be read: {error}") from None


def refusal(reason: str, *, again: bool = False) -> bytes:
    return encode(LinkRefused(reason[:_REASON], again))
