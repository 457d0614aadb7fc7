"""Two frame pipes joined in memory: what one writes the other reads, until the link is cut."""

import asyncio
from collections.abc import Callable

import pytest

from gossamer.engine.remote.frames import FRAME_LIMIT, FramePipe


class MemoryTransport(asyncio.Transport):
    """A transport whose other side is a protocol in the same test."""

    def __init__(self, own: FramePipe) -> None:
        super().__init__()
        self.own = own
        self.other: FramePipe | None = None
        self.written = bytearray()
        self.reading = True
        self._closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        if self.other is not None:
            asyncio.get_running_loop().call_soon(self.other.data_received, bytes(data))

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            loop = asyncio.get_running_loop()
            loop.call_soon(self.own.connection_lost, None)
            if self.other is not None:
                loop.call_soon(self.other.connection_lost, None)

    def abort(self) -> None:
        self.close()


Lone = Callable[[], tuple[FramePipe, MemoryTransport]]
Joined = Callable[[], tuple[FramePipe, FramePipe]]


@pytest.fixture
def lone_pipe() -> Lone:
    def make() -> tuple[FramePipe, MemoryTransport]:
        pipe = FramePipe()
        transport = MemoryTransport(pipe)
        pipe.connection_made(transport)
        return pipe, transport

    return make


@pytest.fixture
def joined_pipes() -> Joined:
    def make() -> tuple[FramePipe, FramePipe]:
        pipes = FramePipe(FRAME_LIMIT), FramePipe(FRAME_LIMIT)
        transports = [MemoryTransport(pipe) for pipe in pipes]
        for pipe, transport, other in zip(pipes, transports, reversed(pipes), strict=True):
            transport.other = other
            pipe.connection_made(transport)
        return pipes

    return make
