"""A line between two machines, on loopback: a proxy that delays, limits the rate, and counts what passes at its sockets.

Place in the flow: `gossamer bench mobile` has crawls reach a server, or a runtime, through it. Both directions are lines of their
own, that all connections share.
"""

import asyncio
import re
import threading
from types import TracebackType
from typing import Self

import msgspec

#: Bytes that are read at once.
_PIECE = 64 << 10

#: How a request begins.
_REQUEST = re.compile(rb"(?:GET|PUT|DELETE|POST|HEAD) /")


class LineCount(msgspec.Struct):
    """What has passed."""

    up: int = 0
    """Bytes towards the server."""
    down: int = 0
    requests: int = 0
    connections: int = 0


class _Direction:
    """One direction of the line: a byte leaves when those before it have left, and arrives half a round trip later."""

    def __init__(self, delay: float, rate: float) -> None:
        self._delay = delay
        self._rate = rate
        self._free = 0.0

    def arrives(self, now: float, size: int) -> float:
        self._free = max(self._free, now) + size / self._rate
        return self._free + self._delay


class SlowLine:
    """The proxy, on a thread of its own: `with SlowLine(port, 0.05, 100e6) as line` listens at `line.port`."""

    def __init__(self, to: int, round_trip: float, rate: float) -> None:
        """Ready.

        Args:
            to: port of the server on 127.0.0.1.
            round_trip: seconds.
            rate: bytes a second, each way.
        """
        self.count = LineCount()
        self.port = 0
        self._to = to
        self._up, self._down = (_Direction(round_trip / 2, rate) for _ in range(2))
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break all connections off; new ones can be made."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count.connections += 1
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:  # nobody listens there now
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._carried(reader, back, self._up), self._carried(there, writer, self._down))
        finally:
            self._writers -= {writer, back}

    async def _carried(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Direction) -> None:
        """Carry one direction of one connection: pieces are on their way while others are read."""
        moving: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arriving = asyncio.create_task(_delivered(moving, writer))
        try:
            while piece := await reader.read(_PIECE):
                if way is self._up:
                    self.count.up += len(piece)
                    self.count.requests += _REQUEST.match(piece) is not None
                else:
                    self.count.down += len(piece)
                moving.put_nowait((way.arrives(self._loop.time(), len(piece)), piece))
        except ConnectionError:
            pass
        moving.put_nowait((0.0, b""))
        await arriving


async def _delivered(moving: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    try:
        while True:
            at, piece = await moving.get()
            if not piece:
                break
            if (wait := at - loop.time()) > 0:
                await asyncio.sleep(wait)
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
