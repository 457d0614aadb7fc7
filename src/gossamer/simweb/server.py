"""Putting the web on the loopback network: sockets, processes, start and stop, and a DNS server with every host name's loopback
address.

Place in the flow: the outermost ring. `serve` is for tests and other Python programs, `run` for the command line, and `beside`
serves from a process of its own; all listen on the loopback interface only. With the DNS server, which is started when asked for,
a crawler that can be told its name server needs no other set-up. It answers A queries for hosts of the web, "no such name" for
others, and "no such record" for other types of a name that exists.
"""

import asyncio
import contextlib
import gc
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from gossamer.engine import processes
from gossamer.simweb.hosts import SimHosts
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
            log = RequestLog(options.log)
            stack.callback(log.close)
            log.open(web.spec, begin, join=joining)
        shared = Shared(web, log, begin, options.every_address)
        stack.callback(shared.close)
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
            names, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: NameServer(web.hosts, options.every_address), local_addr=("127.0.0.1", options.dns_port or 0)
            )
            stack.callback(names.close)
            dns_port = names.get_extra_info("sockname")[1]
        yield Serving(web, port, https_port, dns_port, certificate)


async def _listen(
    stack: contextlib.AsyncExitStack, shared: Shared, options: ServeOptions, scheme: str, port: int, tls: Any
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
        with server_processes(options.processes - 1, job) as further:
            for process in further:
                await loop.run_in_executor(None, port_of, process)
            if ready is not None:
                ready(serving)
            await stop.wait()


# Further processes: those that share a server's ports, and one beside a crawler. A process is told what to serve in one line on its
# standard input, says its port in one line, and ends when its input does, even if its parent is killed.

#: Seconds that a process has to end when its input has.
_GRACE = 5.0


class ServerJob(msgspec.Struct, frozen=True):
    """The orders of a further server process."""

    spec: WebSpec
    options: ServeOptions | None
    started: float | None = None
    """The monotonic clock's reading when the web began; None when it begins now."""
    authority: bytes | None = None
    joining: bool = False
    """It shares ports and log of a server that runs already."""


@contextlib.contextmanager
def server_processes(count: int, job: ServerJob) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start so many server processes, and end them with the context; :func:`port_of` waits until one serves."""
    line = msgspec.json.encode(job, enc_hook=str) + b"\n"
    running: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            process = subprocess.Popen(
                processes.command("gossamer.simweb"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=processes.environment(),
            )
            running.append(process)
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it died; its missing port tells
                process.stdin.write(line)
                process.stdin.flush()
        yield running
    finally:
        for process in running:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def port_of(process: subprocess.Popen[bytes]) -> int:
    """The port for HTTP of a process that was started; blocks until it serves. Raises OSError: it did not come up."""
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if not said.isdigit():
        raise OSError("the server of the simulated web did not start")
    return int(said)


@contextlib.contextmanager
def beside(spec: WebSpec, options: ServeOptions | None = None) -> Iterator[int]:
    """Serve a web from a process of its own until the context is left; gives its port for HTTP.

    For programs that crawl it themselves: server and crawler then share no interpreter. The process ignores Ctrl-C,
    which is the crawler's to handle, and ends when we do. Raises OSError if it does not come up.
    """
    with server_processes(1, ServerJob(spec, options)) as [process]:
        yield port_of(process)


def main() -> None:
    """Serve what the standard input says, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerJob, dec_hook=lambda _, text: Path(text))

    async def serving() -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
        own: dict[str, Any] = {"started": job.started, "authority_pem": job.authority, "joining": job.joining}
        async with serve(SimWeb(job.spec), job.options, **own) as served:
            sys.stdout.write(f"{served.port}\n")
            sys.stdout.flush()
            await ended.wait()

    run_loop(serving())


TYPE_A: Final = 1
CLASS_IN: Final = 1
TIME_TO_LIVE: Final = 300

_NAME_ERROR: Final = 3
_NOT_IMPLEMENTED: Final = 4
_FORMAT_ERROR: Final = 1


def answer_query(hosts: SimHosts, packet: bytes, shared_addresses: bool) -> bytes | None:
    """Return the answer to a query packet, or None for one that deserves none (RFC 1035).

    With `shared_addresses` hosts live on the addresses that they share with others in 127.0.0.0/8;
    without, all of them are at 127.0.0.1.
    """
    if len(packet) < 12:
        return None
    number, flags, questions = struct.unpack_from(">HHH", packet)
    if flags & 0x8000:
        return None
    # Answer, authoritative; "recursion desired" is copied from the query.
    reply = 0x8400 | (flags & 0x0100)
    asked = _question(packet)
    if asked is None or questions != 1:
        return struct.pack(">HHHHHH", number, 0x8400 | _FORMAT_ERROR, 0, 0, 0, 0)
    name, kind, question = asked
    rank = hosts.rank_of_name(name) if name.endswith(".sim") else None
    error = _NOT_IMPLEMENTED if flags & 0x7800 else _NAME_ERROR if rank is None else 0
    if rank is None or error or kind != TYPE_A:
        return struct.pack(">HHHHHH", number, reply | error, 1, 0, 0, 0) + question
    address = socket.inet_aton(hosts.address(rank) if shared_addresses else "127.0.0.1")
    # 0xC00C points back at the name in the question.
    record = struct.pack(">HHHIH", 0xC00C, TYPE_A, CLASS_IN, TIME_TO_LIVE, 4) + address
    return struct.pack(">HHHHHH", number, reply, 1, 1, 0, 0) + question + record


def _question(packet: bytes) -> tuple[str, int, bytes] | None:
    """Return name, kind and bytes of the first question of a query, or None if the packet holds none (RFC 1035, 4.1.2)."""
    labels: list[str] = []
    place = 12
    while place < len(packet) and packet[place]:
        length = packet[place]
        if length > 63 or place + 1 + length >= len(packet):
            return None
        labels.append(packet[place + 1 : place + 1 + length].decode("latin-1").lower())
        place += 1 + length
    if place + 5 > len(packet):
        return None
    return ".".join(labels), int.from_bytes(packet[place + 1 : place + 3]), packet[12 : place + 5]


class NameServer(asyncio.DatagramProtocol):
    """The UDP end of it."""

    def __init__(self, hosts: SimHosts, shared_addresses: bool) -> None:
        self._hosts, self._shared = hosts, shared_addresses
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str | bytes, int]) -> None:
        reply = answer_query(self._hosts, data, self._shared)
        if reply is not None and self._transport is not None:
            self._transport.sendto(reply, addr)
