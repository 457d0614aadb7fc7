"""What control frames say, as msgpack structs. Used by :mod:`.handshake`, :mod:`.sending` and :mod:`.receiving`."""

from typing import Annotated, TypeVar

import msgspec

from gossamer.flow.errors import BrokenFrame

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
    """What one side says of itself."""

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
    """A payload."""
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
