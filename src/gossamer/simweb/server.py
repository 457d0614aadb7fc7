"""Putting the web on the loopback network: sockets, processes, start and stop.

Place in the flow: the outermost ring. `serve` is for tests and other Python programs, `run` for the
command line; both listen on the loopback interface only.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

import msgspec

from gossamer.simweb.beside import ServerJob, port_of, processes
from gossamer.simweb.dns import NameServer
from gossamer.simweb.log import RequestLog
from gossamer.simweb.protocol import Connection, Shared
from gossamer.simweb.site import SimWeb
from gossamer.simweb.spec import ServeOptions, WebSpec

BACKLOG: Final = 4096
"""Connections that may wait to be accepted: a crawler opens hundreds at once."""


class Serving(msgspec.Struct, frozen=True):
    """A web that is being served."""

    web: SimWeb
    port: int
    https_port: int | None
    dns_port: int | None
    certificate: bytes | None
    """The certificate to trust for HTTPS, in PEM."""

    def url(self, rank: int = 0) -> str:
        """Return the home page of a host by its own address, which needs no name server."""
        return f"http://{self.web.hosts.own_address(rank)}:{self.port}/"


@contextlib.asynccontextmanager
async def serve(
    web: SimWeb,
    options: ServeOptions | None = None,
    *,
    started: float | None = None,
    authority_pem: bytes | None = None,
    joining: bool = False,
) -> AsyncIterator[Serving]:
    """Serve a web from this process until the context is left.

    `started` is the reading of the monotonic clock at which the web's own time begins (now, if not
    given); `joining` marks a further process of a server that has its log already. Raises OSError
    if a port is taken, LogError if the log's file is not empty.
    """
    options = options or ServeOptions()
    begin = time.monotonic() if started is None else started
    async with contextlib.AsyncExitStack() as stack:
        log = None
        if options.log is not None:
            log = stack.enter_context(RequestLog(options.log))
            log.open(web.spec, begin, join=joining)
        shared = Shared(web, log, begin, options.every_address)
        stack.callback(_abort_all, shared)
        port = await _listen(stack, shared, options, "http", options.port, None)
        https_port = certificate = None
        if options.https_port is not None:
            from gossamer.simweb.tls import Authority  # needs an optional package

            authority = Authority(authority_pem)
            certificate = authority.certificate
            context = authority.server_context()
            https_port = await _listen(stack, shared, options, "https", options.https_port, context)
            if options.authority is not None:
                options.authority.write_bytes(certificate)
        dns_port = None
        if options.dns_port is not None:
            dns_port = await _listen_dns(stack, web, options)
        yield Serving(web, port, https_port, dns_port, certificate)


def _abort_all(shared: Shared) -> None:
    for connection in list(shared.connections):
        connection.close()


async def _listen(
    stack: contextlib.AsyncExitStack,
    shared: Shared,
    options: ServeOptions,
    scheme: str,
    port: int,
    tls: Any,
) -> int:
    """Start to accept connections on one port; return its number."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if options.processes > 1:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        # No interface address stands for 127.0.0.0/8; connections from elsewhere are refused by
        # `Connection` as soon as they are accepted.
        listener.bind(("0.0.0.0" if options.every_address else "127.0.0.1", port))  # noqa: S104
    except OSError:
        listener.close()
        raise
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(shared, scheme), sock=listener, ssl=tls, backlog=BACKLOG)
    stack.callback(server.close)
    number: int = listener.getsockname()[1]
    return number


async def _listen_dns(stack: contextlib.AsyncExitStack, web: SimWeb, options: ServeOptions) -> int:
    """Start the name server; return its port."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: NameServer(web.hosts, options.every_address),
        local_addr=("127.0.0.1", options.dns_port or 0),
    )
    stack.callback(transport.close)
    port: int = transport.get_extra_info("sockname")[1]
    return port


def run(spec: WebSpec, options: ServeOptions, ready: Callable[[Serving], None] | None = None) -> None:
    """Serve a web until interrupted (SIGINT or SIGTERM); blocks.

    `ready` is called once, when all processes accept connections. Errors are those of `serve`.
    """
    run_loop(_run(spec, options, ready))


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on uvloop where there is one.

    Answers hold no reference cycles, so the collector finds next to nothing: it is left the rare
    job of clearing away closed connections.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    if sys.platform == "win32":
        asyncio.run(main)
        return
    import uvloop

    uvloop.run(main)


async def _run(spec: WebSpec, options: ServeOptions, ready: Callable[[Serving], None] | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    started = time.monotonic()
    pem = None
    if options.https_port is not None:
        from gossamer.simweb.tls import Authority

        pem = Authority().pem
    async with serve(SimWeb(spec), options, started=started, authority_pem=pem) as serving:
        # Further processes join the ports that this one has found; the name server stays here.
        fixed = msgspec.structs.replace(
            options, port=serving.port, https_port=serving.https_port, dns_port=None, authority=None
        )
        job = ServerJob(spec, fixed, started, pem, joining=True)
        with processes(options.processes - 1, job) as further:
            for process in further:
                await loop.run_in_executor(None, port_of, process)
            if ready is not None:
                ready(serving)
            await stop.wait()
