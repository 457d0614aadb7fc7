"""The one HTTP server of ours: the dashboard, a runtime of mobile crawlers and the SPARQL endpoint are applications behind it.

Place in the flow: each of them binds its socket first (:func:`listening_socket`), puts its application behind a :class:`Guard` that
knows its keys, and has :func:`server` serve it.

Promises: an address that is taken is one line, before anything else begins. A request is judged before its body is read. A client
that says nothing, or half a head, or a body that never ends, keeps no other client out.
"""

import asyncio
import ipaddress
import socket
from collections import OrderedDict
from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar
from weakref import WeakKeyDictionary

import h11
import msgspec
import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from gossamer.engine.errors import refusing
from gossamer.values.errors import UsageError
from gossamer.values.patterns import lazy_pattern

#: Seconds that answers under way have when a server ends.
GRACE = 2

#: A length as it may be read: Python refuses to make a number of thousands of digits.
_DIGITS = lazy_pattern(r"[0-9]{1,12}")


def is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def listening_socket(name: str, port: int, most: int) -> socket.socket:
    """A TCP socket that listens.

    Args:
        name: a name or address of this machine.
        port: 0 takes any that is free.
        most: connections that may wait. A client may be quicker than the server, so they wait for it.

    Raises:
        UsageError: nothing can listen there; says why.
    """
    with refusing(UsageError, f"cannot listen at {name}:{port}"):
        info = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(info[0], socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(info[4])
            bound.listen(most)
        except OSError:
            bound.close()
            raise
    return bound


def server(
    guard: "Guard", *, most: int, head: int, certificate: str | None = None, key: str | None = None
) -> uvicorn.Server:
    """A server of a guarded application.

    Args:
        most: connections at once.
        head: bytes of the head of a request.
        certificate: a file with the chain of certificates, as PEM; with it the server speaks TLS.
        key: a file with the key of the certificate.
    """
    return uvicorn.Server(
        uvicorn.Config(
            guard,
            log_level="critical",
            access_log=False,
            http=HurriedProtocol,
            ws="none",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=most,
            h11_max_incomplete_event_size=head,
            timeout_graceful_shutdown=GRACE,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
    )


class HurriedProtocol(H11Protocol):
    """A connection whose client has some seconds for the head of each request, from its first byte on.

    uvicorn has no such limit of its own, and as many silent connections as it takes at once would keep all clients out.
    """

    SECONDS = 10.0

    #: Connections of each server whose head has not come, the oldest first. Where they are half of all connections, the oldest
    #: is closed for each new one: a stranger who opens many does not keep out the owner, whose head comes at once.
    _headless: ClassVar[WeakKeyDictionary[ServerState, "OrderedDict[HurriedProtocol, asyncio.TimerHandle]"]] = (
        WeakKeyDictionary()
    )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._count()

    def data_received(self, data: bytes) -> None:
        """Count on, or begin with the next request: uvicorn counts the pauses between two, and ends that with the first byte."""
        super().data_received(data)
        self._count()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _count(self) -> None:
        waiting = self._waiting()
        if self.conn.their_state is not h11.IDLE:
            self._end()
        elif self not in waiting and not self.transport.is_closing():
            waiting[self] = self.loop.call_later(self.SECONDS, self._late)
            if self.limit_concurrency is not None and len(waiting) > self.limit_concurrency // 2:
                next(iter(waiting))._late()

    def _waiting(self) -> "OrderedDict[HurriedProtocol, asyncio.TimerHandle]":
        return self._headless.setdefault(self.server_state, OrderedDict())

    def _end(self) -> None:
        handle = self._waiting().pop(self, None)
        if handle is not None:
            handle.cancel()

    def _late(self) -> None:
        self._end()
        self.transport.abort()


class Guard:
    """An application, guarded: a subclass says in :meth:`refused` which requests go no further."""

    #: Said with every answer that does not say otherwise itself.
    headers: ClassVar[Mapping[str, str]] = {}

    #: Bytes of a body that are read at most, and seconds in which it has to come; 0 where the application sees to both itself.
    max_body: ClassVar[int] = 0
    patience: ClassVar[float] = 30.0

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def refused(self, scope: Scope) -> Response | None:
        """The answer to a request that goes no further; None lets it in."""
        raise NotImplementedError

    def ended(self, scope: Scope) -> None:
        """A request that was let in has its answer, or its client has gone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the server speaks no WebSocket

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self.refused(scope)
        if refusal is not None:
            await refusal(scope, receive, dressed)
            return
        try:
            await self._app(scope, self._bounded(receive) if self.max_body else receive, dressed)
        finally:
            self.ended(scope)

    def _bounded(self, receive: Receive) -> Receive:
        """A body that is given up as if its client had gone, when it is too long or too late."""
        taken, is_whole = 0, False
        until = asyncio.get_running_loop().time() + self.patience

        async def bounded() -> Message:
            nonlocal taken, is_whole
            if is_whole:
                return await receive()  # the end of the connection, which may come at any time
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}
            taken += len(message.get("body", b""))
            is_whole = not message.get("more_body")
            return {"type": "http.disconnect"} if taken > self.max_body else message

        return bounded


def refusal(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """A line of text. The connection is closed: a body that comes with the request, in time or never, is not read."""
    return PlainTextResponse(f"{text}\n", status_code=status, headers={"connection": "close", **(headers or {})})


def json_answer(value: object, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def length_of(headers: Headers) -> int | None:
    """The length that a request announces for its body; None where it announces none that can be read."""
    told = headers.get("content-length", "")
    return int(told) if _DIGITS.fullmatch(told) else None


def names_server(host: str, name: str = "localhost") -> bool:
    """Whether `Host`, without its port, is an address, `localhost` or `name`. Any other name leads here by a trick of its owner
    (DNS rebinding); an address cannot."""
    if host in ("localhost", name):
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def parted_host(host: str) -> tuple[str, str]:
    """`Host` as name and port; the port is empty where none is given."""
    name, _, port = host.lower().rpartition(":")
    return (name, port) if name and port.isdigit() and not host.endswith("]") else (host.lower(), "")
