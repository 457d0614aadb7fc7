"""Frames: cut anywhere, judged before they are kept."""

import asyncio
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from gossamer.engine.errors import BrokenFrame
from gossamer.engine.remote.frames import HANDSHAKE_LIMIT, FrameKind, FramePipe, LinkLost

Run = Callable[[Any], Any]


def frame(kind: int, payload: bytes) -> bytes:
    return struct.pack("!IB", len(payload) + 1, kind) + payload


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_frames_are_read_however_they_were_cut(piece: int, run: Run, lone_pipe: Any) -> None:
    async def test() -> None:
        pipe, _ = lone_pipe()
        data = frame(FrameKind.ACK, b"abc") + frame(FrameKind.END, b"") + frame(FrameKind.DATA, b"x" * 500)
        for start in range(0, len(data), piece):
            pipe.data_received(data[start : start + piece])
        assert [await pipe.read() for _ in range(3)] == [
            (FrameKind.ACK, b"abc"),
            (FrameKind.END, b""),
            (FrameKind.DATA, b"x" * 500),
        ]

    run(test())


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff\x05",
        struct.pack("!I", HANDSHAKE_LIMIT + 1),
        struct.pack("!I", 0),
        frame(0, b"zero"),
        frame(99, b"unknown"),
        b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
    ],
    ids=["4 GiB", "over the limit", "empty", "kind 0", "kind 99", "HTTP"],
)
def test_hostile_bytes_drop_the_connection(data: bytes, run: Run, lone_pipe: Any) -> None:
    async def test() -> None:
        pipe, transport = lone_pipe()
        pipe.data_received(frame(FrameKind.ACK, b"good"))
        pipe.data_received(data)
        assert transport.is_closing()
        assert await pipe.read() == (FrameKind.ACK, b"good")
        for _ in range(2):
            with pytest.raises(BrokenFrame):
                await pipe.read()
        pipe.data_received(frame(FrameKind.ACK, b"late"))
        with pytest.raises(BrokenFrame):
            await pipe.read()

    run(test())


def test_a_truncated_frame_is_never_read(run: Run, lone_pipe: Any) -> None:
    async def test() -> None:
        pipe, transport = lone_pipe()
        pipe.data_received(frame(FrameKind.DATA, b"whole") + frame(FrameKind.DATA, b"truncated")[:-1])
        transport.close()
        assert await pipe.read() == (FrameKind.DATA, b"whole")
        with pytest.raises(LinkLost):
            await pipe.read()

    run(test())


def test_reading_pauses_while_nobody_reads_and_goes_on_after(run: Run, lone_pipe: Any) -> None:
    async def test() -> None:
        pipe, transport = lone_pipe()
        frames = 0
        while transport.reading:
            pipe.data_received(frame(FrameKind.DATA, b"x" * 100))
            frames += 1
            assert frames < 10_000
        for _ in range(frames):
            await pipe.read()
        assert transport.reading

    run(test())


def test_writing_waits_while_the_peer_does_not_read(run: Run, lone_pipe: Any) -> None:
    async def test() -> None:
        pipe, transport = lone_pipe()
        pipe.pause_writing()
        writing = asyncio.ensure_future(pipe.write(FrameKind.DATA, b"x"))
        await asyncio.sleep(0)
        assert not writing.done()
        pipe.resume_writing()
        await writing
        pipe.pause_writing()
        cut_off = asyncio.ensure_future(pipe.write(FrameKind.DATA, b"y"))
        transport.close()
        with pytest.raises(LinkLost):
            await cut_off

    run(test())


def test_frames_of_one_tick_leave_in_one_write(run: Run, lone_pipe: Any) -> None:
    async def test() -> None:
        pipe, transport = lone_pipe()
        pipe.put(FrameKind.ACK, b"1")
        pipe.put(FrameKind.ACK, b"2")
        assert not transport.written
        await asyncio.sleep(0)
        assert transport.written == frame(FrameKind.ACK, b"1") + frame(FrameKind.ACK, b"2")
        lost = FramePipe()
        lost.put(FrameKind.ACK, b"into nothing")

    run(test())


def test_items_between_machines_are_sent_shorter_and_read_as_they_were(run: Run, lone_pipe: Any) -> None:
    async def test() -> None:
        sender, wire = lone_pipe()
        sender.packs = True
        reader, _ = lone_pipe()
        urls = b"".join(b"http://www.example.org/pages/%d.html" % number for number in range(100))
        noise = random.Random(3).randbytes(2000)
        said = [(FrameKind.DATA, urls), (FrameKind.DATA, b"few"), (FrameKind.DATA, noise), (FrameKind.ACK, b"x" * 2000)]
        for kind, payload in said:
            await sender.write(kind, payload)
        assert len(wire.written) < len(urls) // 4 + 3 + len(noise) + 2000 + 20
        reader.data_received(bytes(wire.written))
        assert [await reader.read() for _ in said] == said, "also what is not worth it, or does not get shorter"

    run(test())


@pytest.mark.parametrize(
    "payload",
    [b"", b"no stream", zlib.compress(b"cut")[:-1], zlib.compress(b"more") + b"!", zlib.compress(bytes(1 << 20))],
    ids=["empty", "noise", "cut", "more behind", "longer than a frame may be"],
)
def test_a_packed_frame_that_is_damaged_or_too_long_drops_the_connection(
    payload: bytes, run: Run, lone_pipe: Any
) -> None:
    async def test() -> None:
        pipe, transport = lone_pipe()
        pipe.data_received(frame(FrameKind.PACKED, payload) + frame(FrameKind.ACK, b"behind it"))
        for _ in range(2):
            with pytest.raises(BrokenFrame):
                await pipe.read()
        assert transport.is_closing()

    run(test())
