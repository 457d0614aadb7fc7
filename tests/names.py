"""A name server on loopback, which gives the answers that a test wants: true ones, too many, too long, none, or new ones each time.

::

    async with FakeDns({"a.test": ["192.0.2.1"], "b.test": Zone(cname="a.test", ttl=5)}) as names:
        resolver = DnsResolver(DnsSheet(servers=(names.server,)))
        ...
        assert names.asked["a.test"] == 1
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Self, cast

import msgspec

_A, _CNAME, _PTR, _AAAA = 1, 5, 12, 28
_NO_ERROR, _SERVER_FAILURE, _NO_SUCH_NAME = 0, 2, 3

#: What goes into a UDP answer; a longer one is cut, and asked for again by TCP.
_UDP = 1232


class Zone(msgspec.Struct, frozen=True):
    """The answer for one name."""

    addresses: Sequence[str] = ()
    cname: str = ""
    names: Sequence[str] = ()
    """Of an address, under its name in `in-addr.arpa`."""
    ttl: int = 300
    fails: bool = False
    """Answer that the server failed (SERVFAIL)."""
    silent: bool = False
    """Do not answer."""
    raw: bytes | None = None
    """Send these bytes after the two bytes of the query's number, whatever they are."""


Known = Zone | Sequence[str]


class FakeDns:
    """Answers by UDP and TCP on one free port of loopback. A name that it does not know does not exist."""

    def __init__(self, zones: Mapping[str, Known | Callable[[], Known]]) -> None:
        self.zones = dict(zones)
        self.asked: Counter[str] = Counter()
        """Number of queries for the IPv4 addresses of each name."""
        self.port = 0
        self._udp: asyncio.DatagramTransport | None = None
        self._tcp: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def server(self) -> str:
        """The address of the server, as a resolver's setting takes it."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._tcp = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._tcp.sockets[0].getsockname()[1]
        self._udp, _ = await loop.create_datagram_endpoint(lambda: _Udp(self), local_addr=("127.0.0.1", self.port))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._udp is not None and self._tcp is not None:
            self._udp.close()
            self._tcp.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await self._tcp.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (length,) = struct.unpack("!H", await reader.readexactly(2))
                if reply := self.reply(await reader.readexactly(length), most=65535):
                    writer.write(struct.pack("!H", len(reply)) + reply)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    def reply(self, packet: bytes, most: int) -> bytes | None:
        """Return the answer to a query packet (RFC 1035, section 4); None for silence."""
        name, end = _name_at(packet, 12)
        (kind,) = struct.unpack_from("!H", packet, end)
        if kind == _A:
            self.asked[name] += 1
        known = self.zones.get(name)
        known = known() if callable(known) else known
        zone = known if isinstance(known, Zone) else Zone(known) if known is not None else None
        if zone is not None and zone.silent:
            return None
        if zone is not None and zone.raw is not None:
            return packet[:2] + zone.raw
        code = _NO_SUCH_NAME if zone is None else _SERVER_FAILURE if zone.fails else _NO_ERROR
        records = self._records(name, kind) if code == _NO_ERROR else []
        head = packet[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        reply = head + packet[12 : end + 4] + b"".join(records)
        if len(reply) > most:
            return packet[:2] + struct.pack("!HHHHH", 0x8380, 1, 0, 0, 0) + packet[12 : end + 4]
        return reply

    def _records(self, name: str, kind: int) -> list[bytes]:
        """Return the records as a recursive server sends them: the aliases on the way, then the addresses of the last name."""
        records: list[bytes] = []
        for _ in range(100):
            known = self.zones.get(name, ())
            known = known() if callable(known) else known
            zone = known if isinstance(known, Zone) else Zone(known)
            if not zone.cname:
                for address in zone.addresses:
                    family = socket.AF_INET6 if ":" in address else socket.AF_INET
                    if kind == (_AAAA if ":" in address else _A):
                        records.append(_record(name, kind, zone.ttl, socket.inet_pton(family, address)))
                if kind == _PTR:
                    records += [_record(name, kind, zone.ttl, _packed(one)) for one in zone.names]
                break
            records.append(_record(name, _CNAME, zone.ttl, _packed(zone.cname)))
            name = zone.cname
        return records


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, names: FakeDns) -> None:
        self._names = names

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | bytes, int]) -> None:
        if reply := self._names.reply(data, most=_UDP):
            self._transport.sendto(reply, addr)


def _name_at(packet: bytes, place: int) -> tuple[str, int]:
    labels = []
    while length := packet[place]:
        labels.append(packet[place + 1 : place + 1 + length].decode("ascii").lower())
        place += 1 + length
    return ".".join(labels), place + 1


def _packed(name: str) -> bytes:
    return b"".join(bytes((len(label),)) + label.encode("ascii") for label in name.split(".")) + b"\0"


def _record(name: str, kind: int, ttl: int, data: bytes) -> bytes:
    return _packed(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data
