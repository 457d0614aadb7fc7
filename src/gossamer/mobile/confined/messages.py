"""What a runtime and the process of a crawler say to each other through the pipe: a length of four bytes, then msgpack.

Place in the flow: both ends of :mod:`gossamer.mobile.confined`. The runtime believes nothing that the process says: lengths,
types and URLs are checked, since the process reads pages that strangers wrote by a program that another stranger sent.
"""

import socket
from typing import Annotated, BinaryIO, Literal

import msgspec
from msgspec import Meta

from gossamer.contracts.runtimes import MAX_FRAME
from gossamer.flow.confining.walls import LAYERS, Layer, Walls
from gossamer.model.url import MAX_URL_BYTES

#: Bytes of a message from the process: a batch, and its head.
MAX_MESSAGE = MAX_FRAME + 4_096

_Url = Annotated[str, Meta(max_length=MAX_URL_BYTES)]
_Told = Annotated[str, Meta(max_length=1_000)]


class ConfinedSetup(msgspec.Struct, frozen=True):
    """First to the process: what to run, and how it is shut in."""

    crawler: bytes
    """As it was sent; empty: say only which walls hold."""
    memory: int
    seconds: int
    processors: tuple[str, ...] = ()
    """Names that the owner allows."""
    layers: tuple[Layer, ...] = LAYERS
    cuts: tuple[int, ...] = ()
    """Of each batch that an earlier run made, after how many answers."""


class GivenPage(msgspec.Struct, frozen=True, array_like=True):
    """The answer to :class:`WantedPage`: a response, with its document without content coding."""

    outcome: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    cut: str
    error: str


class WallsStand(msgspec.Struct, frozen=True, array_like=True, tag="walls"):
    """First from the process: it is shut in."""

    walls: Walls


class WantedPage(msgspec.Struct, frozen=True, array_like=True, tag="wanted"):
    """The process wants the answer for a URL."""

    url: _Url
    depth: Annotated[int, Meta(ge=0, le=65_535)]
    source: _Url
    relation: _Told


class MadeBatch(msgspec.Struct, frozen=True, array_like=True, tag="made"):
    """A batch is full, or is the last."""

    frame: Annotated[bytes, Meta(max_length=MAX_FRAME)]
    digest: Annotated[bytes, Meta(min_length=32, max_length=32)]
    """SHA-256 of the batch before it was packed."""
    is_last: bool
    late: Annotated[tuple[_Told, ...], Meta(max_length=100)] = ()
    """Modules that were wanted after the walls stood, and could not be had."""


class GaveUp(msgspec.Struct, frozen=True, array_like=True, tag="gave-up"):
    """The process ends without a last batch."""

    reason: Literal["memory", "processors", "invalid", "crashed"]
    told: _Told


FromProcess = WallsStand | WantedPage | MadeBatch | GaveUp


def put(pipe: socket.socket, message: object) -> None:
    """Send a message, whole.

    Raises:
        OSError: the other end is gone.
    """
    data = msgspec.msgpack.encode(message)
    pipe.sendall(len(data).to_bytes(4) + data)


def taken(reader: BinaryIO, most: int) -> bytes:
    """The bytes of the next message.

    Raises:
        EOFError: the other end is gone.
        ValueError: it says that it sends more than `most` bytes.
    """
    head = reader.read(4)
    length = int.from_bytes(head)
    if len(head) == 4 and length > most:
        raise ValueError(f"a message of {length} bytes")
    data = reader.read(length) if len(head) == 4 else b""
    if len(head) < 4 or len(data) < length:
        raise EOFError("the other end is gone")
    return data
