"""A DNS server for the simulated web: every host name to its loopback address.

Place in the flow: `server` starts it beside the HTTP server when asked to; a crawler that can be
told which name server to use then needs no other set-up. It answers A queries for hosts of the web,
"no such name" for others, and "no such record" for other types of a name that exists.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final, NamedTuple, cast

from gossamer.simweb.hosts import SimHosts

TYPE_A: Final = 1
CLASS_IN: Final = 1
TIME_TO_LIVE: Final = 300

_NAME_ERROR: Final = 3
_NOT_IMPLEMENTED: Final = 4
_FORMAT_ERROR: Final = 1


class DnsQuestion(NamedTuple):
    """The one question of a query."""

    name: str
    kind: int
    end: int
    """Where in the packet it ends."""


def read_question(packet: bytes) -> DnsQuestion | None:
    """Return the first question of a query, or None if the packet holds none (RFC 1035, 4.1.2)."""
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
    kind, _ = struct.unpack_from(">HH", packet, place + 1)
    return DnsQuestion(".".join(labels), kind, place + 5)


def answer_query(hosts: SimHosts, packet: bytes, shared_addresses: bool) -> bytes | None:
    """Return the answer to a query packet, or None for one that deserves none (RFC 1035).

    With `shared_addresses` hosts live on the addresses that they share with others in 127.0.0.0/8;
    without, all of them are at 127.0.0.1.
    """
    if len(packet) < 12:
        return None
    number, flags = struct.unpack_from(">HH", packet)
    if flags & 0x8000:
        return None
    question = read_question(packet)
    if question is None or struct.unpack_from(">H", packet, 4)[0] != 1:
        return struct.pack(">HHHHHH", number, 0x8400 | _FORMAT_ERROR, 0, 0, 0, 0)
    # Answer, authoritative; "recursion desired" is copied from the query.
    reply = 0x8400 | (flags & 0x0100)
    asked = packet[12 : question.end]
    if flags & 0x7800:
        return struct.pack(">HHHHHH", number, reply | _NOT_IMPLEMENTED, 1, 0, 0, 0) + asked
    rank = hosts.rank_of_name(question.name) if question.name.endswith(".sim") else None
    if rank is None:
        return struct.pack(">HHHHHH", number, reply | _NAME_ERROR, 1, 0, 0, 0) + asked
    if question.kind != TYPE_A:
        return struct.pack(">HHHHHH", number, reply, 1, 0, 0, 0) + asked
    address = socket.inet_aton(hosts.address(rank) if shared_addresses else "127.0.0.1")
    # 0xC00C points back at the name in the question.
    record = struct.pack(">HHHIH", 0xC00C, TYPE_A, CLASS_IN, TIME_TO_LIVE, 4) + address
    return struct.pack(">HHHHHH", number, reply, 1, 1, 0, 0) + asked + record


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
