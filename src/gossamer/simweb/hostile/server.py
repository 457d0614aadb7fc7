"""The table of all hostile cases, and the server that plays them on loopback: one port for HTTP, one for each way in which TLS
goes wrong.

Place in the flow: the tests, the command line and the generated documentation read the table; the server obeys a case's script
step by step. A healthy page stands beside the hostile ones at `/healthy`, and `/` links to all, so that a crawler can be let
loose on the whole. Nothing is endless for this server: each connection ends after so many bytes and so much time.
"""

import asyncio
import socket
import ssl
import struct
import warnings
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from gossamer.engine.remote.addresses import stop_listening
from gossamer.simweb.hostile import content, framing
from gossamer.simweb.hostile.case import PAGE, HostileAct, HostileCase, Step, always, answer, redirect, table
from gossamer.simweb.tls import DAY, Key, Signer, context_of, new_key

# Chapter G, TLS and identity: certificates that do not hold, handshakes without an end, and servers that ask for credentials. Each
# way in which TLS goes wrong has a port of its own.

NAME: Final = "hostile.sim"
"""The name that certificates are for, with every name one level below it, where they are for the right one."""

EXPIRED: Final = timedelta(days=400)
"""How long ago the expired certificate was made: longer than any holds."""

LINKS: Final = 100
"""Authorities in the long chain."""

MEGABYTE: Final = 1 << 20

TICKETS: Final = 10_000


def contexts(known: Signer) -> dict[str, ssl.SSLContext]:
    """The contexts of all cases that need one, by the way in which TLS goes wrong; `known` is trusted by crawlers."""

    def signed(signer: Signer, key: Key, name: str = NAME, age: timedelta = DAY, padding: int = 0) -> x509.Certificate:
        return signer.signed(key, name, x509.DNSName(f"*.{name}"), age=age, padding=padding)

    key, itself, chain = new_key(), Signer(NAME), [known]
    for number in range(LINKS):
        chain.append(Signer(f"link {number}", chain[-1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a key so weak, and so old a version, are deprecated, and meant
        weak = rsa.generate_private_key(65537, 1024)  # noqa: S505  # as weak as the case says
        old = context_of(key, signed(known, key), level=0)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1
    made = {
        "sound": context_of(key, signed(known, key)),
        "unknown": context_of(key, signed(Signer("nobody knows me"), key)),
        "expired": context_of(key, signed(known, key, age=EXPIRED)),
        "name": context_of(key, signed(known, key, "elsewhere.sim")),
        "self": context_of(itself.key, signed(itself, itself.key)),
        "weak": context_of(weak, signed(known, weak), level=0),
        "megabyte": context_of(key, signed(known, key), [signed(known, key, padding=MEGABYTE)]),
        "hundred": context_of(key, signed(chain[-1], key), [one.signed_by for one in reversed(chain[1:])]),
        "old": old,
        "tickets": context_of(key, signed(known, key)),
    }
    made["tickets"].num_tickets = TICKETS
    return made


_WELL: Final = answer(PAGE)

#: How TLS goes wrong, where no request is ever sent.
_REFUSED: Final = dict(
    zip(
        ("G98a", "G98b", "G98c", "G98d", "G98e", "G98f", "G99a", "G99b", "G99c", "G99d", "G99e"),
        ("unknown", "expired", "name", "self", "weak", "megabyte", "stalled", "plain", "old", "drip", "endless"),
        strict=True,
    )
)

_TLS_CASES: Final = table(
    """
    G98a | unknown authority | tls_failed | A certificate by an unknown authority. | no request is sent
    G98b | expired | tls_failed | A certificate that has expired. | no request is sent
    G98c | wrong name | tls_failed | A certificate for another name. | no request is sent
    G98d | self-signed | tls_failed | A certificate that vouches for itself. | no request is sent
    G98e | weak key | tls_failed | A certificate of a known authority with an RSA key of 1,024 bits. | no \
        request is sent
    G98f | chain of a megabyte | tls_failed | A sound certificate, followed by 1 MiB of others. | no request is sent
    G99a | stalled handshake | tls_failed | Accepts the connection and never begins TLS. | no request is sent
    G99b | no TLS | tls_failed | Speaks plain HTTP on the port for HTTPS. | no request is sent
    G99c | TLS 1.0 | tls_failed | Knows TLS 1.0 and nothing later. | no request is sent
    G99d | dripping handshake | tls_failed | A byte of its handshake each second. | no request is sent
    G99e | endless handshake | tls_failed | A handshake message of 16 MiB. | no request is sent
    G98g | chain of a hundred | ok | A hundred authorities, each vouching for the next, from a known one. | it \
        holds: OpenSSL follows a hundred authorities at most, and reads 100 KB of certificates
    G99f | ten thousand tickets | ok | A sound handshake and 10,000 session tickets after it. | read past, one \
        at most kept
    G100 | downgrade | redirect | HTTPS that redirects to plain HTTP at the same host. | credentials and \
        cookies of the secure site stay there
    G103 | asks for credentials | client_error | A server that is no proxy and asks for a proxy's credentials \
        (407), whatever it is told. | asked once; credentials go to the proxy that they were given for alone
    """,
    {
        **dict.fromkeys(_REFUSED, always(HostileAct.STAY)),
        "G98g": _WELL,
        "G99f": _WELL,
        "G100": redirect(b"http://hostile.sim/G100/plain"),
        "G103": answer(
            b"no", b"Proxy-Authenticate: Basic realm=x\r\n", b"HTTP/1.1 407 Proxy Authentication Required\r\n"
        ),
    },
    {**_REFUSED, "G98g": "hundred", "G99f": "tickets", "G100": "sound"},
)

CASES: Final = (*framing.CASES, *content.CASES, *_TLS_CASES)

NOT_PLAYED: Final[dict[str, str]] = {
    "B13": "a dropped SYN: needs a packet filter",
    "B23": "HTTP/2: off by default; tests of the fetcher play its floods on a server of their own",
    "B26": "the same failure on a thousand URLs: belongs to politeness, whose tests play it",
    "C30, C31": "credentials and scope on redirects: need two servers and something to lose",
    "C35": "addresses in disguise: as D41b",
    "D43-D46, D51-D53": "name servers that lie: tests of the resolver have one; proxies and Unix sockets belong to the options",
    "E57": "depth beyond a parser's limit: as E54",
    "E63, E64": "patterns and selectors: what a user writes, not a server",
    "E66": "documents other than HTML are not parsed",
    "E68, E72, E75": "torn archives, previews, floods of copies: belong to the archive, the screens and the simulated web",
    "F86, F89-F97": "rules and paces over many requests: belong to robots.txt and politeness, and to the auditor",
    "G98, revoked": "no server is asked whether a certificate was revoked; there is no list to look it up in",
    "G99, after the handshake": "renegotiation and key updates without an end: Python's TLS cannot begin them",
    "G101-G103": "who we say that we are, signatures, and proxies: belong to the options; proxies to tests of the fetcher",
}
"""Faults of the chapters A to G that are not here, and why."""


MOST_BYTES: Final = 64 << 20
"""Sent on one connection: four times the largest body that a crawler keeps by default, so endless to any."""

MOST_SECONDS: Final = 600.0
"""Of one connection: five times the longest a fetch may take by default."""

HEAD_LIMIT: Final = 65_536
"""Bytes of a request's head that are read."""

HEALTHY: Final = "/healthy"

HANDSHAKE: Final = b"\x16\x03\x03\x40\x00"
"""The head of a TLS record of 16 KiB that is part of a handshake (RFC 8446, 5.1)."""

SERVER_HELLO: Final = b"\x02\xff\xff\xff"
"""The head of a handshake message that says it is as long as one can be (RFC 8446, 4)."""


#: Conversations on ports where there is no TLS at all, or none that a library would speak.
_ODDITIES: Final[dict[str, Callable[[], Iterable[Step]]]] = {
    "stalled": lambda: (HostileAct.STAY,),
    "plain": lambda: (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",),
    "drip": lambda: (step for byte in HANDSHAKE + SERVER_HELLO + bytes(999) for step in (bytes([byte]), 1.0)),
    "endless": lambda: (HANDSHAKE + SERVER_HELLO + bytes(16_380), *[HANDSHAKE + bytes(16_384)] * 1024),
}

_Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class HostileWeb:
    """Serves cases from entering the context until leaving it; raises OSError where a port is taken."""

    def __init__(self, cases: Sequence[HostileCase] = CASES, port: int = 0) -> None:
        self.cases = {case.path: case for case in cases}
        self.port = port
        self.tls_ports: dict[str, int] = {}
        """Port by the way in which TLS goes wrong on it."""
        self.stalled = asyncio.Event()
        """Set when a script waits for the first time after it was cleared: a test then moves its clock."""
        self.certificate = b""
        """The authority to trust, in PEM, so that each TLS case fails for its own reason."""
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<HostileWeb :{self.port} {len(self.cases)} cases>"

    def url(self, case: HostileCase) -> str:
        if case.tls:
            return f"https://{NAME}:{self.tls_ports[case.tls]}{case.path}"
        return f"http://{NAME}:{self.port}{case.path}"

    @property
    def healthy(self) -> str:
        return f"http://{NAME}:{self.port}{HEALTHY}"

    async def __aenter__(self) -> Self:
        self.port = await self._listen(self._serve, self.port, None)
        wrong = sorted({case.tls for case in self.cases.values() if case.tls})
        if not wrong:
            return self
        known = Signer("Gossamer hostile web")
        self.certificate = known.certificate
        shown = contexts(known)
        for tls in wrong:
            serve = partial(self._converse, _ODDITIES[tls]) if tls in _ODDITIES else self._serve
            self.tls_ports[tls] = await self._listen(serve, 0, shown.get(tls))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            await stop_listening(server)
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()

    async def _listen(self, serve: _Serve, port: int, tls: ssl.SSLContext | None) -> int:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._bounded(serve, reader, writer))
            self._open.add(task)
            task.add_done_callback(self._open.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", port, ssl=tls, limit=HEAD_LIMIT, backlog=1024)
        self._servers.append(server)
        number: int = server.sockets[0].getsockname()[1]
        return number

    async def _bounded(self, serve: _Serve, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, whose end comes whatever its script says."""
        try:
            async with asyncio.timeout(MOST_SECONDS):
                await serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the crawler has gone, as a good one does, or has sent no request
        finally:
            writer.transport.abort() if writer.is_closing() else writer.close()

    async def _converse(
        self, steps: Callable[[], Iterable[Step]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read(1)
        await self._play(steps(), writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            target = (head.split(b" ", 2)[1:2] or [b"/"])[0].decode("ascii", "replace")
            case = self.cases.get("/".join(target.partition("?")[0].split("/")[:3]))
            if case is None:
                writer.writelines(self._plain(target))
                await writer.drain()
                continue
            await self._play(case.script(target), writer)
            return

    def _plain(self, target: str) -> Iterable[bytes]:
        """The pages that mean no harm."""
        if target == HEALTHY:
            steps = answer(PAGE)(target)
        elif target == "/":
            links = "".join(f'<li><a href="{case.path}">{case.number} {case.name}</a>' for case in self.cases.values())
            steps = answer(f'<!doctype html><title>Hostile</title><a href="{HEALTHY}">well</a>{links}'.encode())(target)
        else:
            steps = answer(b"not here", b"", b"HTTP/1.1 404 Not Found\r\n")(target)
        return [step for step in steps if isinstance(step, bytes)]

    async def _play(self, steps: Iterable[Step], writer: asyncio.StreamWriter) -> None:
        sent = 0
        for step in steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
                sent += len(step)
                if sent > MOST_BYTES:
                    break
            elif isinstance(step, float):
                if step:
                    self.stalled.set()
                await asyncio.sleep(step)
            elif step is HostileAct.STAY:
                self.stalled.set()
                await asyncio.sleep(MOST_SECONDS)
            else:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
