"""Items and control messages to bytes and back.

Place in the flow: :mod:`.sending` codes items at the entrance and :mod:`.receiving` decodes them at the exit; they and
:mod:`.handshake` exchange the control frames.

Items are encoded one by one when they are sent: what cannot cross is refused to the sender, and sizes are known
before a frame is cut. A frame's payload is the number of its first item and a msgpack array, put together from those.
A class that msgspec does not know may cross, too: `to_parcel()` makes plain data of it, and `from_parcel(data)`, a class
method, makes it again, or raises the reason why it cannot.
"""

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from gossamer.engine.connector import crosses
from gossamer.engine.errors import BrokenFrame, WrongItem

T = TypeVar("T")

#: First item's number, then the head of a msgpack array with a 32 bit length.
_HEAD = struct.Struct("!QBI")
_NUMBER = struct.Struct("!Q")
_ARRAY_32 = 0xDD

#: Bytes that a frame has beside its items.
OVERHEAD = _HEAD.size

#: Of these every value that encodes decodes as well; of others, a field may hold what its type does not allow.
_SELF_EVIDENT = (str, bytes, int, float, bool)


def _to_parcel(value: Any) -> Any:
    if crosses(type(value)):
        return value.to_parcel()
    raise TypeError(f"{type(value).__name__} is neither plain data nor a msgspec struct")


def _from_parcel(kind: Any, parcel: Any) -> Any:
    if crosses(kind):
        return kind.from_parcel(parcel)
    return parcel


def type_name(item_type: Any) -> str:
    """The name of the type, on which both sides must agree."""
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
        """Each item on its own.

        Raises:
            WrongItem: an item is not of the type, not even a subclass of it (the other side would get another class),
                cannot be decoded again as it is filled, or is longer than a frame may be.
        """
        try:
            encoded = [self._encode(item) for item in items if type(item) is self._class]
            if not self._proven:
                for parcel in encoded:
                    self._try(parcel)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
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
        return b"".join((_HEAD.pack(first, _ARRAY_32, len(parcels)), *parcels))

    def unpack(self, payload: bytes) -> tuple[int, list[T]]:
        """The number of the first item, and the items.

        Raises:
            BrokenFrame: it is not what :meth:`pack` makes.
        """
        try:
            (first,) = _NUMBER.unpack_from(payload)
            items = self._decode_many(memoryview(payload)[_NUMBER.size :])
        except (struct.error, msgspec.MsgspecError, ValueError, RecursionError) as error:
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


class Challenge(msgspec.Struct, frozen=True, array_like=True):
    """The acceptor's first word."""

    version: int
    nonce: _Nonce


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """The dialer's answer."""

    version: int
    about: About
    nonce: _Nonce
    proof: _Proof


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """The acceptor's consent."""

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

_encoder = msgspec.msgpack.Encoder()


def encode(message: object) -> bytes:
    return _encoder.encode(message)


def decode(payload: bytes, kind: type[M]) -> M:
    """A message from a payload.

    Raises:
        BrokenFrame: it is none of that kind.
    """
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenFrame(f"a {kind.__name__.lower()} message cannot be read: {error}") from None


def refusal(reason: str, *, again: bool = False) -> bytes:
    """The payload of a REFUSED frame."""
    return encode(LinkRefused(reason[:_REASON], again))


# -- waiting for a change, on either side


class Waiters:
    """Tasks that wait until a condition holds. `changed` costs a look at a list where none waits."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def changed(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when the condition holds, or raise its exception."""
        while not holds():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
