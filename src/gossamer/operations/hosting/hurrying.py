"""Connections that say nothing are closed: each is given some seconds for the head of a request, from its first byte on.

Place in the flow: uvicorn makes one of these for each connection of a runtime and of the dashboard. It has no such limit of its
own, and as many silent connections as it takes at once would keep everybody out.
"""

import asyncio
from collections import OrderedDict
from typing import ClassVar
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState


class HurriedProtocol(H11Protocol):
    """HTTP/1.1, in time."""

    SECONDS = 10.0

    #: Connections of each server whose head has not come, the oldest first. Where they are half of all connections, the oldest
    #: is closed for each new one: a stranger who opens many does not keep out the owner, whose head comes at once.
    _headless: ClassVar[WeakKeyDictionary[ServerState, "OrderedDict[HurriedProtocol, asyncio.TimerHandle]"]] = (
        WeakKeyDictionary()
    )

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to count."""
        super().connection_made(transport)
        self._count()

    def data_received(self, data: bytes) -> None:
        """Count on, or begin with the next request: uvicorn counts the pauses between two, and ends that with the first byte."""
        super().data_received(data)
        self._count()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nobody to hurry."""
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
