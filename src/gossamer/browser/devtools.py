"""The Chrome DevTools protocol over a pipe: commands go out, answers and events come in.

Place in the flow: :mod:`gossamer.browser.chromium` starts a browser with two pipes and speaks to it by a :class:`DevTools`;
:mod:`gossamer.browser.rendering` sends the commands of one page. No port is opened: a debugging port would hand the browser to
every user of the machine.

Messages are JSON objects, each ended by a zero byte (Chromium's `--remote-debugging-pipe`). A page, a frame of another site and a
worker are *sessions*, each with its own commands and events.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gossamer.values.errors import GossamerError

#: Bytes of the longest message: a page's markup at its limit, in JSON that writes each character as six.
MOST_BYTES = 64 << 20

#: Seconds in which a browser answers a command that does nothing slow.
PATIENCE = 10.0

Event = Callable[[str, dict[str, Any]], None]
"""A function that gets the name and parameters of each event of a session."""


class CommandFailed(GossamerError):
    """The browser refused a command, did not answer it in time, or is gone."""


class BrowserGone(CommandFailed):
    """There is no browser any more."""


class _Message(msgspec.Struct, rename={"session": "sessionId"}):
    """A message of the browser: an answer has an `id`, an event has a `method`."""

    id: int = 0
    method: str = ""
    params: dict[str, Any] = {}
    result: dict[str, Any] = {}
    error: dict[str, Any] = {}
    session: str = ""


class DevTools(asyncio.Protocol):
    """One browser, as its pipes show it."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Message)
        self._encoder = msgspec.json.Encoder()
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listeners: dict[str, Event] = {}
        self._number = 0
        self._read = bytearray()
        self._looked_at = 0
        """Bytes of `_read` that hold no end of a message: a long one comes in many pieces."""
        self._writer: asyncio.WriteTransport | None = None
        self._reader: asyncio.ReadTransport | None = None
        self.gone = asyncio.Event()
        """Set when the browser has closed its pipe, or was given up."""

    async def connect(self, read: int, write: int) -> None:
        """Speak by these descriptors, which belong to this object from now on."""
        loop = asyncio.get_running_loop()
        self._reader, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(read, "rb", 0))
        self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(write, "wb", 0))

    def close(self) -> None:
        """Speak no more; everything that waits for an answer learns that the browser is gone."""
        for transport in (self._writer, self._reader):
            if transport is not None:
                transport.close()
        self.connection_lost(None)

    def listen(self, session: str, told: Event | None) -> None:
        """Call `told` with each event of a session; None ends that."""
        if told is None:
            self._listeners.pop(session, None)
        else:
            self._listeners[session] = told

    def post(self, method: str, params: Mapping[str, object] | None = None, session: str = "") -> None:
        """Send a command, and never ask what came of it."""
        self._send(method, params or {}, session)

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        session: str = "",
        *,
        patience: float = PATIENCE,
    ) -> dict[str, Any]:
        """Send a command and return its result.

        Raises:
            CommandFailed: the browser refuses, or does not answer within so many seconds.
            BrowserGone: it has ended.
        """
        if self.gone.is_set():
            raise BrowserGone("the browser has ended")
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        number = self._send(method, params or {}, session)
        self._asked[number] = future
        try:
            async with asyncio.timeout(patience):
                return await future
        except TimeoutError:
            raise CommandFailed(f"{method}: no answer within {patience:g} s") from None
        finally:
            self._asked.pop(number, None)

    def _send(self, method: str, params: Mapping[str, object], session: str) -> int:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        if self._writer is not None and not self.gone.is_set():
            self._writer.write(self._encoder.encode(message) + b"\0")
        return self._number

    # -- what comes in

    def data_received(self, data: bytes) -> None:
        """Read whole messages; a browser that sends none that can be read is given up."""
        self._read += data
        while (end := self._read.find(b"\0", self._looked_at)) >= 0:
            message = bytes(self._read[:end])
            del self._read[: end + 1]
            self._looked_at = 0
            try:
                self._take(self._decoded(message))
            except ValueError:
                return self.close()
        self._looked_at = len(self._read)
        if self._looked_at > MOST_BYTES:
            self.close()
        return None

    def _decoded(self, message: bytes) -> _Message:
        """A message. Scripts may write half a character (a surrogate alone), which is no Unicode: it is read as U+FFFD."""
        try:
            return self._decoder.decode(message)
        except ValueError:
            text = json.dumps(json.loads(message), ensure_ascii=False)
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return self._decoder.decode(whole)

    def connection_lost(self, exc: Exception | None) -> None:
        """The browser has ended, or is given up."""
        self.gone.set()
        for future in self._asked.values():
            if not future.done():
                future.set_exception(BrowserGone("the browser has ended"))
        self._asked.clear()
        for told in list(self._listeners.values()):
            with contextlib.suppress(Exception):
                told("Inspector.detached", {})

    def _take(self, message: _Message) -> None:
        if message.method:
            told = self._listeners.get(message.session)
            if told is not None:
                told(message.method, message.params)
            return
        future = self._asked.get(message.id)
        if future is None or future.done():
            return
        if message.error:
            future.set_exception(CommandFailed(str(message.error.get("message", "refused"))))
        else:
            future.set_result(message.result)
