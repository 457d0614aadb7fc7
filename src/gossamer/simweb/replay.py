"""Stored records served as a web: any WARC or ARC file becomes something to crawl, without a network (row C11).

Place in the flow: :mod:`gossamer.storage.archive.others` knows where each record lies; here they are on the loopback network, HTTP
and HTTPS on one port, whatever host a request names. A crawler is told that all names are at this port (`--resolve
'*=127.0.0.1:PORT'`), so plain requests and TLS handshakes come in together; the first byte of a connection tells them apart.
"""

import asyncio
import contextlib
import socket
from typing import Final

from gossamer.storage.archive.others import ReplayError, ReplayIndex, stored
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical

HEAD_LIMIT: Final = 65_536
"""Bytes of a request's head; more ends the connection."""

HANDSHAKE: Final = 0x16
"""The first byte of every TLS connection."""

FIRST_BYTE: Final = 30.0
"""Seconds that a connection may say nothing."""


class Replay:
    """Serves the records of an index until the context is left."""

    def __init__(self, index: ReplayIndex, *, port: int = 0, timing: bool = False) -> None:
        """Nothing is opened yet.

        Args:
            port: on the loopback interface; 0 lets the system choose.
            timing: wait before each answer as long as it took when it was recorded.
        """
        from gossamer.simweb.tls import Authority

        self._index, self._timing = index, timing
        self._authority = Authority()
        self._context = self._authority.server_context()
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(("127.0.0.1", port))
        except OSError:
            self._listener.close()
            raise
        self._accepting: asyncio.Task[None] | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.answered = 0
        self.missing = 0

    @property
    def port(self) -> int:
        number: int = self._listener.getsockname()[1]
        return number

    @property
    def certificate(self) -> bytes:
        """The certificate to trust for HTTPS, in PEM."""
        return self._authority.certificate

    async def __aenter__(self) -> "Replay":
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._open, *filter(None, (self._accepting,))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(self._listener)
            task = loop.create_task(self._serve(connection))
            self._open.add(task)
            task.add_done_callback(self._open.discard)

    async def _serve(self, connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError),
            connection,
        ):
            first = await asyncio.wait_for(_peeked(connection), FIRST_BYTE)
            if not first:
                return
            is_tls = first[0] == HANDSHAKE
            loop = asyncio.get_running_loop()
            reader = asyncio.StreamReader(HEAD_LIMIT, loop)
            protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self._context if is_tls else None
            )
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            try:
                while await self._exchange(reader, writer, "https" if is_tls else "http"):
                    pass
            finally:
                writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, scheme: str) -> bool:
        """Answer one request; False where the connection ends with it."""
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, _, rest = lines[0].partition(" ")
        target, _, version = rest.rpartition(" ")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        keeps = version == "HTTP/1.1" and fields.get("connection", "").lower() != "close" and method in ("GET", "HEAD")
        url = target if "://" in target else f"{scheme}://{fields.get('host', '')}{target}"
        status, answered, body, seconds = (
            self._answer(url) if method in ("GET", "HEAD") else (b"405 Not Allowed", [], b"", 0.0)
        )
        if self._timing and seconds:
            await asyncio.sleep(seconds)
        block = [b"HTTP/1.1 " + status, *(name + b": " + value for name, value in answered)]
        block += [b"Content-Length: %d" % len(body), *([] if keeps else [b"Connection: close"])]
        writer.write(b"\r\n".join(block) + b"\r\n\r\n")
        if method == "GET" and status[:3] not in (b"204", b"304"):
            writer.write(body)
        await writer.drain()
        return keeps

    def _answer(self, text: str) -> tuple[bytes, list[tuple[bytes, bytes]], bytes, float]:
        """Status, fields, body and time of a URL's answer; 404 where no record has it."""
        try:
            url = canonical(text)
        except UnreadableUrl:
            return b"400 Bad Request", [], b"", 0.0
        found = stored(self._index, url)
        if found is None:
            self.missing += 1
            return b"404 Not Found", [(b"Content-Type", b"text/plain")], b"not in the archive\n", 0.0
        self.answered += 1
        return found.status, found.fields, found.body, found.seconds


async def _peeked(connection: socket.socket) -> bytes:
    """The first byte of a connection, which stays to be read; empty where the other side has gone."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


__all__ = ["Replay", "ReplayError", "ReplayIndex"]
